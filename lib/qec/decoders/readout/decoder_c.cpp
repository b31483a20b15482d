// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/decoding/decoder_c.h"

#include "cudaq/qec/decoding/heralds.h"
#include "cudaq/qec/decoding/readout.h"

#include "lib/qec/decoding/c_boundary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <utility>

namespace qec = cudaq::qec::realtime;

struct cudaq_qec_decoder {
  std::unique_ptr<qec::decoder> instance;
  std::unique_ptr<qec::readout_table> readout; ///< may be null
  qec::shot_probabilities list;                ///< of the shot
  std::vector<qec::error_probability> joined, of_readout;
  std::string readout_fault;
  const char *fault = ""; ///< of the last decode
};

namespace {

int32_t refused(std::string_view text, char *error, size_t error_size) noexcept {
  qec::write_text(text, error, error_size);
  return CUDAQ_QEC_DECODER_NOT_SUPPORTED;
}

int32_t create(const char *name, std::string_view dem, const cudaq_qec_decoder_options_t &options,
               cudaq_qec_decoder_t **decoder, char *error, size_t error_size) {
  auto made = std::make_unique<cudaq_qec_decoder>();
  qec::decoder_result result =
      options.heralds != nullptr ? qec::make_decoder(name, dem, std::string_view(options.heralds, options.heralds_size))
                                 : qec::make_decoder(name, dem);
  if (!result)
    return refused(result.error, error, error_size);
  made->instance = std::move(result.instance);
  if (options.readout != nullptr) {
    qec::readout_table_result table = qec::read_readout_table({options.readout, options.readout_size}, dem);
    if (!table)
      return refused("readout: " + table.error, error, error_size);
    if (const std::string refusal = qec::refuses_readout(*made->instance, *table.instance); !refusal.empty())
      return refused("readout: " + refusal, error, error_size);
    made->readout = std::move(table.instance);
    made->of_readout.reserve(made->readout->max_errors());
  }
  *decoder = made.release();
  return CUDAQ_QEC_DECODER_OK;
}

static_assert(sizeof(qec::error_probability) == sizeof(cudaq_qec_error_probability_t) &&
              offsetof(qec::error_probability, probability) == offsetof(cudaq_qec_error_probability_t, probability));

/// Replaces `list` by what the shot knows; without a table it stays where the caller has it. Throws std::bad_alloc.
qec::decode_status take_list(cudaq_qec_decoder &with, const cudaq_qec_shot_t &shot) {
  with.list = {reinterpret_cast<const qec::error_probability *>(shot.probabilities), shot.num_probabilities};
  if (with.readout == nullptr) {
    if (shot.soft_bytes == 0 && shot.leakage_bytes == 0)
      return qec::decode_status::ok;
    with.fault = "the decoder has no table of a readout";
    return qec::decode_status::not_supported;
  }
  const qec::decode_status status = with.readout->list_of({.soft = {shot.soft, shot.soft_bytes},
                                                           .kind = static_cast<qec::soft_kind>(shot.soft_kind),
                                                           .leakage = {shot.leakage, shot.leakage_bytes}},
                                                          with.of_readout, with.readout_fault);
  if (status != qec::decode_status::ok)
    with.fault = with.readout_fault.c_str();
  with.joined.assign(with.list.begin(), with.list.end());
  with.joined.insert(with.joined.end(), with.of_readout.begin(), with.of_readout.end());
  with.list = with.joined;
  return status;
}

bool has_null(const cudaq_qec_shot_t &shot) noexcept {
  return (shot.events == nullptr && shot.num_events != 0) ||
         (shot.probabilities == nullptr && shot.num_probabilities != 0) ||
         (shot.soft == nullptr && shot.soft_bytes != 0) || (shot.leakage == nullptr && shot.leakage_bytes != 0);
}

/// The decoder is not null, its fault is "". `gaps`: empty: they are not wanted.
int32_t decode(cudaq_qec_decoder &with, const cudaq_qec_shot_t *shot, std::span<std::uint8_t> out,
               std::span<double> gaps) {
  if (!qec::has_known_size(shot) || has_null(*shot) || (out.data() == nullptr && !out.empty())) {
    with.fault = "the shot or one of its pointers is NULL, or its struct_size is not that of this version";
    return CUDAQ_QEC_DECODER_NOT_SUPPORTED;
  }
  qec::decode_status status = qec::decode_status::internal_error;
  try {
    status = take_list(with, *shot);
  } catch (const std::exception &) { // out of memory
    with.fault = "out of memory";
  }
  if (status != qec::decode_status::ok) {
    std::ranges::fill(out.first(std::min(out.size(), with.instance->observable_bytes())), std::uint8_t{0});
    return static_cast<int32_t>(status);
  }
  qec::decode_details details{.gaps = gaps};
  status = with.instance->decode({shot->events, shot->num_events}, out, with.list, gaps.empty() ? nullptr : &details);
  const char *const refusal = with.instance->refuses_probabilities();
  if (status == qec::decode_status::not_supported && !gaps.empty() && with.instance->refuses_gaps() != nullptr)
    with.fault = with.instance->refuses_gaps();
  else if (status == qec::decode_status::not_supported && refusal != nullptr)
    with.fault = refusal;
  else if (status == qec::decode_status::internal_error || status == qec::decode_status::bad_probability)
    with.fault = with.instance->fault(); // after others it may still be that of an earlier shot
  return static_cast<int32_t>(status);
}

} // namespace

int32_t cudaq_qec_decoder_create(const char *name, const char *dem_text, size_t dem_size,
                                 const cudaq_qec_decoder_options_t *options, cudaq_qec_decoder_t **decoder, char *error,
                                 size_t error_size) {
  if (decoder != nullptr)
    *decoder = nullptr;
  if (name == nullptr || dem_text == nullptr || decoder == nullptr)
    return refused("name, dem_text or decoder is NULL", error, error_size);
  if (options != nullptr && !qec::has_known_size(options))
    return refused("options: struct_size is not that of this version of the library", error, error_size);
  try {
    return create(name, {dem_text, dem_size}, options != nullptr ? *options : cudaq_qec_decoder_options_t{}, decoder,
                  error, error_size);
  } catch (const std::exception &failure) { // out of memory
    qec::write_text(failure.what(), error, error_size);
    return CUDAQ_QEC_DECODER_INTERNAL_ERROR;
  }
}

void cudaq_qec_decoder_destroy(cudaq_qec_decoder_t *decoder) { delete decoder; }

int32_t cudaq_qec_decoder_get_info(const cudaq_qec_decoder_t *decoder, cudaq_qec_decoder_info_t *info) {
  if (decoder == nullptr || !qec::has_known_size(info))
    return CUDAQ_QEC_DECODER_NOT_SUPPORTED;
  const qec::decoder &of = *decoder->instance;
  const qec::readout_table *const table = decoder->readout.get();
  *info = {.struct_size = sizeof *info,
           .num_detectors = of.num_detectors(),
           .num_observables = of.num_observables(),
           .num_measurements = table != nullptr ? table->num_measurements() : 0,
           .num_flags = table != nullptr ? table->num_flags() : 0,
           .name = of.name(),
           .takes_probabilities = of.refuses_probabilities() == nullptr ? 1U : 0U,
           .gives_gaps = of.refuses_gaps() == nullptr ? 1U : 0U};
  return CUDAQ_QEC_DECODER_OK;
}

int32_t cudaq_qec_decoder_decode(cudaq_qec_decoder_t *decoder, const cudaq_qec_shot_t *shot, uint8_t *observables,
                                 size_t observable_bytes) {
  if (decoder == nullptr)
    return CUDAQ_QEC_DECODER_NOT_SUPPORTED;
  decoder->fault = "";
  return decode(*decoder, shot, {observables, observable_bytes}, {});
}

int32_t cudaq_qec_decoder_decode_gaps(cudaq_qec_decoder_t *decoder, const cudaq_qec_shot_t *shot, uint8_t *observables,
                                      size_t observable_bytes, double *gaps, size_t num_gaps) {
  if (decoder == nullptr)
    return CUDAQ_QEC_DECODER_NOT_SUPPORTED;
  decoder->fault = "";
  const auto wanted = static_cast<size_t>(decoder->instance->num_observables());
  const std::span<double> of_observables(gaps, gaps == nullptr ? 0 : std::min(num_gaps, wanted));
  std::ranges::fill(of_observables, std::nan(""));
  if (num_gaps < wanted)
    return CUDAQ_QEC_DECODER_BUFFER_TOO_SMALL;
  if (gaps == nullptr && wanted != 0) {
    decoder->fault = "gaps is NULL";
    return CUDAQ_QEC_DECODER_NOT_SUPPORTED;
  }
  return decode(*decoder, shot, {observables, observable_bytes}, of_observables);
}

const char *cudaq_qec_decoder_fault(const cudaq_qec_decoder_t *decoder) {
  return decoder != nullptr ? decoder->fault : "";
}

const char *cudaq_qec_decoder_status_text(int32_t status) {
  return qec::decode_status_text(static_cast<qec::decode_status>(status));
}

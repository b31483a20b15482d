// SPDX-License-Identifier: Apache-2.0
// Chromobius (C. Gidney, C. Jones, "New circuits for an open source color code decoder", 2023) as a decoder plug-in,
// for colour codes. The model's detectors must carry their basis and colour in the fourth coordinate, as Chromobius
// describes; at most 64 observables.
#include "cudaq/qec/decoding/decoder_plugin.h"

#include "chromobius/decode/decoder.h"

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace {

constexpr std::uint64_t kMaxObservables = 64; // chromobius::obsmask_int

struct plugin_decoder {
  stim::DetectorErrorModel model;
  std::unique_ptr<chromobius::Decoder> with; ///< null after an exception: made again by the next decode
  std::vector<std::uint8_t> bits;
  std::size_t observable_bytes = 0;

  void clear() noexcept {
    for (std::uint8_t &byte : bits)
      byte = 0;
  }
  void build() {
    with =
        std::make_unique<chromobius::Decoder>(chromobius::Decoder::from_dem(model, chromobius::DecoderConfigOptions{}));
  }
};

std::int32_t refuse(const char *why, char *error, std::size_t error_size) noexcept {
  std::snprintf(error, error_size, "%s", why);
  return CUDAQ_QEC_DECODE_NOT_SUPPORTED;
}

std::int32_t create(const cudaq_qec_decoder_model_t *model, void **decoder, char *error, std::size_t error_size) {
  if (model->num_settings != 0)
    return refuse("chromobius has no settings", error, error_size);
  if (model->num_observables > kMaxObservables)
    return refuse("chromobius takes at most 64 observables", error, error_size);
  try {
    auto made = std::make_unique<plugin_decoder>();
    made->model = stim::DetectorErrorModel(std::string_view(model->dem_text, model->dem_size));
    made->bits.resize(static_cast<std::size_t>(model->num_detectors / 8 + 1));
    made->observable_bytes = static_cast<std::size_t>((model->num_observables + 7) / 8);
    made->build();
    *decoder = made.release();
    return CUDAQ_QEC_DECODE_OK;
  } catch (const std::exception &failure) { // its text says which detector has no colour
    return refuse(failure.what(), error, error_size);
  }
}

std::int32_t decode(void *self, const std::uint64_t *events, std::size_t num_events, std::uint8_t *observables,
                    double *) {
  auto &decoder = *static_cast<plugin_decoder *>(self);
  try {
    if (decoder.with == nullptr)
      decoder.build();
    for (std::size_t i = 0; i < num_events; ++i)
      decoder.bits[events[i] / 8] = static_cast<std::uint8_t>(decoder.bits[events[i] / 8] | 1U << events[i] % 8);
    const chromobius::obsmask_int flips = decoder.with->decode_detection_events(decoder.bits);
    for (std::size_t i = 0; i < num_events; ++i)
      decoder.bits[events[i] / 8] = 0;
    for (std::size_t byte = 0; byte < decoder.observable_bytes; ++byte)
      observables[byte] = static_cast<std::uint8_t>(flips >> (8 * byte));
    return CUDAQ_QEC_DECODE_OK;
  } catch (const std::invalid_argument &failure) { // the decoder may hold parts of this shot
    decoder.with.reset();
    decoder.clear();
    // PyMatching's text. Chromobius also throws this if it cannot lift a matching to the colour code.
    const bool unmatched = std::string_view(failure.what()).find("No perfect matching") != std::string_view::npos;
    return unmatched ? CUDAQ_QEC_DECODE_NO_SOLUTION : CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  } catch (...) {
    // Out of memory in the middle of a decode: PyMatching's matcher can neither be used nor destroyed. It is leaked.
    static_cast<void>(decoder.with.release());
    decoder.clear();
    return CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  }
}

void destroy(void *self) { delete static_cast<plugin_decoder *>(self); }

} // namespace

const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(std::uint32_t host_version) {
  static const cudaq_qec_decoder_plugin_t table = {CUDAQ_QEC_DECODER_PLUGIN_VERSION,
                                                   sizeof(table),
                                                   "chromobius",
                                                   create,
                                                   decode,
                                                   destroy,
                                                   nullptr,
                                                   nullptr,
                                                   nullptr,
                                                   CUDAQ_QEC_ERRORS_JOINED,
                                                   0,
                                                   nullptr};
  return host_version == CUDAQ_QEC_DECODER_PLUGIN_VERSION ? &table : nullptr;
}

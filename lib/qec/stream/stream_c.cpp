// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/decoding/stream_c.h"

#include "cudaq/qec/decoding/stream.h"
#include "lib/qec/decoding/c_boundary.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace qec = cudaq::qec::realtime;

struct cudaq_qec_stream {
  std::unique_ptr<qec::stream_decoder> decoder;
};
struct cudaq_qec_stream_workers {
  std::shared_ptr<qec::stream_workers> threads;
};

namespace {

int32_t refused(std::string_view text, char *error, size_t error_size) noexcept {
  qec::write_text(text, error, error_size);
  return CUDAQ_QEC_STREAM_NOT_SUPPORTED;
}

int32_t value_of(qec::decode_status status) noexcept { return static_cast<int32_t>(status); }

int32_t write_progress(const qec::stream_progress &now, cudaq_qec_stream_progress_t &to) noexcept {
  to.committed_rounds = now.committed_rounds;
  to.pushed_rounds = now.pushed_rounds;
  to.status = value_of(now.status);
  to.is_final = now.is_final ? 1 : 0;
  return to.status;
}

std::chrono::steady_clock::time_point time_of(uint64_t ns) noexcept {
  constexpr auto kLast = std::chrono::steady_clock::time_point::max().time_since_epoch().count();
  return std::chrono::steady_clock::time_point(
      std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(std::min(ns, static_cast<uint64_t>(kLast)))));
}

qec::stream_options cxx_options(const cudaq_qec_stream_options_t &c) {
  qec::stream_options options;
  options.decoder = c.decoder != nullptr ? c.decoder : "auto";
  options.rounds = c.rounds != nullptr ? c.rounds : "time";
  options.commit = c.commit;
  options.buffer = c.buffer;
  options.mode = static_cast<qec::stream_mode>(c.mode);
  options.workers = c.workers;
  options.pool = c.pool != nullptr ? c.pool->threads : nullptr;
  options.queue_rounds = c.queue_rounds;
  if (c.readout != nullptr)
    options.readout.emplace(c.readout, c.readout_size);
  return options;
}

using cxx_call = qec::decode_status (qec::stream_decoder::*)(std::span<const std::uint8_t>, std::uint64_t,
                                                             const qec::stream_values &) noexcept;

/// `call` with the caller's values; null: none.
int32_t push_or_finish(cudaq_qec_stream_t *stream, cxx_call call, std::span<const uint8_t> bits, uint64_t count,
                       const cudaq_qec_stream_values_t *values) noexcept {
  if (stream == nullptr || (bits.data() == nullptr && !bits.empty()))
    return CUDAQ_QEC_STREAM_NOT_SUPPORTED;
  if (values == nullptr)
    return value_of((stream->decoder.get()->*call)(bits, count, {}));
  if (!qec::has_known_size(values) || (values->soft == nullptr && values->soft_bytes != 0) ||
      (values->leakage == nullptr && values->leakage_bytes != 0))
    return CUDAQ_QEC_STREAM_NOT_SUPPORTED;
  return value_of((stream->decoder.get()->*call)(bits, count,
                                                 {.soft = {values->soft, values->soft_bytes},
                                                  .num_soft = values->num_soft,
                                                  .kind = static_cast<qec::soft_kind>(values->soft_kind),
                                                  .leakage = {values->leakage, values->leakage_bytes},
                                                  .num_leakage = values->num_leakage}));
}

constexpr auto kPush = static_cast<cxx_call>(&qec::stream_decoder::push);
constexpr auto kFinish = static_cast<cxx_call>(&qec::stream_decoder::finish);

} // namespace

int32_t cudaq_qec_stream_workers_create(size_t count, cudaq_qec_stream_workers_t **workers, char *error,
                                        size_t error_size) {
  if (workers == nullptr)
    return refused("workers is NULL", error, error_size);
  try {
    qec::workers_result made = qec::make_stream_workers(count);
    if (!made)
      return refused(made.error, error, error_size);
    *workers = new cudaq_qec_stream_workers{std::move(made.instance)};
    return CUDAQ_QEC_STREAM_OK;
  } catch (const std::exception &failure) { // out of memory
    qec::write_text(failure.what(), error, error_size);
    return CUDAQ_QEC_STREAM_INTERNAL_ERROR;
  }
}

void cudaq_qec_stream_workers_destroy(cudaq_qec_stream_workers_t *workers) { delete workers; }

int32_t cudaq_qec_stream_create(const char *dem_text, size_t dem_size, const cudaq_qec_stream_options_t *options,
                                cudaq_qec_stream_t **stream, char *error, size_t error_size) {
  if (dem_text == nullptr || stream == nullptr)
    return refused("dem_text or stream is NULL", error, error_size);
  if (options != nullptr && !qec::has_known_size(options))
    return refused("options: struct_size is not that of this version of the library", error, error_size);
  if (options != nullptr && options->mode > CUDAQ_QEC_STREAM_PARALLEL)
    return refused("options: mode is not a cudaq_qec_stream_mode_t", error, error_size);
  try {
    qec::stream_result made = qec::make_stream_decoder(
        {dem_text, dem_size}, options != nullptr ? cxx_options(*options) : qec::stream_options{});
    if (!made)
      return refused(made.error, error, error_size);
    *stream = new cudaq_qec_stream{std::move(made.instance)};
    return CUDAQ_QEC_STREAM_OK;
  } catch (const std::exception &failure) { // out of memory
    qec::write_text(failure.what(), error, error_size);
    return CUDAQ_QEC_STREAM_INTERNAL_ERROR;
  }
}

void cudaq_qec_stream_destroy(cudaq_qec_stream_t *stream) { delete stream; }

int32_t cudaq_qec_stream_get_info(const cudaq_qec_stream_t *stream, cudaq_qec_stream_info_t *info) {
  if (stream == nullptr || !qec::has_known_size(info))
    return CUDAQ_QEC_STREAM_NOT_SUPPORTED;
  const qec::stream_decoder &of = *stream->decoder;
  *info = {sizeof *info,         of.head_detectors(),      of.body_detectors(),        of.tail_detectors(),
           of.num_observables(), of.description().c_str(), of.is_parallel() ? 1U : 0U, 0};
  return CUDAQ_QEC_STREAM_OK;
}

int32_t cudaq_qec_stream_push(cudaq_qec_stream_t *stream, const uint8_t *bits, size_t bytes, uint64_t count) {
  return push_or_finish(stream, kPush, {bits, bytes}, count, nullptr);
}

int32_t cudaq_qec_stream_finish(cudaq_qec_stream_t *stream, const uint8_t *bits, size_t bytes, uint64_t count) {
  return push_or_finish(stream, kFinish, {bits, bytes}, count, nullptr);
}

int32_t cudaq_qec_stream_push_values(cudaq_qec_stream_t *stream, const uint8_t *bits, size_t bytes, uint64_t count,
                                     const cudaq_qec_stream_values_t *values) {
  return push_or_finish(stream, kPush, {bits, bytes}, count, values);
}

int32_t cudaq_qec_stream_finish_values(cudaq_qec_stream_t *stream, const uint8_t *bits, size_t bytes, uint64_t count,
                                       const cudaq_qec_stream_values_t *values) {
  return push_or_finish(stream, kFinish, {bits, bytes}, count, values);
}

int32_t cudaq_qec_stream_get_values_info(const cudaq_qec_stream_t *stream, cudaq_qec_stream_values_info_t *info) {
  if (stream == nullptr || !qec::has_known_size(info))
    return CUDAQ_QEC_STREAM_NOT_SUPPORTED;
  const qec::stream_values_info of = stream->decoder->values_info();
  *info = {sizeof *info, of.body_soft, of.other_soft, of.body_leakage, of.other_leakage, of.kinds, 0};
  return CUDAQ_QEC_STREAM_OK;
}

int32_t cudaq_qec_stream_poll(const cudaq_qec_stream_t *stream, uint8_t *observables, size_t bytes,
                              cudaq_qec_stream_progress_t *progress) {
  if (stream == nullptr || !qec::has_known_size(progress) || (observables == nullptr && bytes != 0))
    return CUDAQ_QEC_STREAM_NOT_SUPPORTED;
  return write_progress(stream->decoder->poll({observables, bytes}), *progress);
}

int32_t cudaq_qec_stream_wait(const cudaq_qec_stream_t *stream, uint64_t round, uint64_t deadline_ns,
                              uint8_t *observables, size_t bytes, cudaq_qec_stream_progress_t *progress) {
  if (stream == nullptr || !qec::has_known_size(progress) || (observables == nullptr && bytes != 0))
    return CUDAQ_QEC_STREAM_NOT_SUPPORTED;
  return write_progress(stream->decoder->wait_committed(round, time_of(deadline_ns), {observables, bytes}), *progress);
}

int32_t cudaq_qec_stream_reset(cudaq_qec_stream_t *stream) {
  if (stream == nullptr)
    return CUDAQ_QEC_STREAM_NOT_SUPPORTED;
  stream->decoder->reset();
  return CUDAQ_QEC_STREAM_OK;
}

int32_t cudaq_qec_stream_get_statistics(const cudaq_qec_stream_t *stream, cudaq_qec_stream_statistics_t *statistics) {
  if (stream == nullptr || !qec::has_known_size(statistics))
    return CUDAQ_QEC_STREAM_NOT_SUPPORTED;
  const qec::stream_statistics now = stream->decoder->statistics();
  *statistics = {sizeof *statistics,     now.windows,          now.decode_ns,     now.worst_decode_ns,
                 now.worst_queue_rounds, now.worst_lag_rounds, now.deadlines.met, now.deadlines.missed,
                 now.deadlines.late};
  return CUDAQ_QEC_STREAM_OK;
}

const char *cudaq_qec_stream_fault(const cudaq_qec_stream_t *stream) {
  return stream != nullptr ? stream->decoder->fault() : "";
}

const char *cudaq_qec_stream_status_text(int32_t status) {
  return qec::decode_status_text(static_cast<qec::decode_status>(status));
}

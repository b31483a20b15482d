// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/decoder/served_decoder.h"

#include "lib/qec/server/decoder/probes.h"

#include <algorithm>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

/// The workers of a stream wake the decoder. Without a queue nothing waits for them.
stream_listener listener_of(decoder_turn &turn, bool waits_for_rounds) noexcept {
  if (!waits_for_rounds)
    return {};
  return {.user = &turn, .progressed = [](void *self) { static_cast<decoder_turn *>(self)->note_progress(); }};
}

} // namespace

served_decoder::served_decoder(const decoder_limits &limits, std::unique_ptr<decoding_unit> unit,
                               const cudaq::realtime::detail::tick_clock &ticks)
    : limits_(limits), num_observables_(unit->num_observables()), num_detectors_(unit->num_detectors()),
      bits_per_shot_(unit->bits_per_shot()), readout_(unit->readout()), gap_bytes_(unit->gap_bytes()),
      answer_bytes_(unit->answer_bytes(unit->num_observables())), is_stream_(unit->is_stream()),
      head_detectors_(is_stream_ ? unit->stream()->head_detectors() : 0),
      tail_detectors_(is_stream_ ? unit->stream()->tail_detectors() : 0), counters_(ticks),
      queue_(limits.queue_length, unit->max_request_bytes()),
      turn_(queue_, session_, counters_, limits.age_limit_ns,
            is_stream_ ? std::min(limits.queue_length, kMaxRoundWaits) : 0),
      session_(std::move(unit), limits.sequence, limits.queue_length != 0, listener_of(turn_, holds_slots()),
               counters_) {}

bool served_decoder::submit(const read_result &read, std::span<std::uint8_t> result, const cudaq_host_job_t &job,
                            server_answer &now, request_moments &moments) {
  counters_.add_request(read.request.is_padded);
  if (limits_.queue_length == 0) {
    CUDAQ_QEC_PROBE(taken, job.request_id, job.slot);
    now = session_.serve(read, result, moments.arrived);
    moments.accepted = moments.queued = moments.taken = moments.arrived;
    moments.decoded = counters_.times().now();
    counters_.times().record(moments, moments.decoded, true);
    CUDAQ_QEC_PROBE(decoded, job.request_id, job.slot);
    return true;
  }
  now = queue_.enter(read, result, job, session_.memory(), counters_.times(), moments);
  if (now.waits) {
    turn_.wake();
    return false;
  }
  counters_.add_answer(read.request.function, now);
  return true;
}

} // namespace cudaq::qec::realtime

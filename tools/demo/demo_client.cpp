// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/demo_client.h"

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "tools/common/clock.h"

#include <algorithm>
#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

constexpr std::size_t kMaxNotes = 5;
constexpr std::size_t kMaxNoteBytes = 16;

std::string hex(std::span<const std::uint8_t> bytes) {
  return fmt::format("{:02x}{}", fmt::join(bytes.first(std::min(bytes.size(), kMaxNoteBytes)), ""),
                     bytes.size() > kMaxNoteBytes ? "..." : "");
}

} // namespace

bool shot_sender::more_to_send(std::uint64_t now) const {
  const pass_config &config = state_.config;
  if (config.interrupted != nullptr && config.interrupted->load(std::memory_order_relaxed))
    return false;
  return config.duration_ns != 0 ? now - state_.begin_ns < config.duration_ns : producer_.sent() < config.shots;
}

bool shot_sender::turn() {
  if (done())
    return false;
  const std::uint64_t now = now_ns();
  if (!more_to_send(now)) {
    state_.done_sending.store(true, std::memory_order_release);
    return false;
  }
  const std::uint64_t cadence = state_.config.cadence_ns;
  const std::uint64_t due = cadence == 0 ? now : state_.begin_ns + producer_.sent() * cadence;
  if (now < due)
    return false;
  const std::uint32_t shot = state_.plan.shot_of(producer_.sent());
  if (!producer_.try_send(kDecodeFunctionId, state_.plan.shots().detection_row(shot), shot, due)) {
    wait_for_slot(now);
    return false;
  }
  if (traced_request *const r = state_.traced(producer_.sent() - 1))
    r->accepted = now_ns();
  if (blocked_since_ns_ != 0)
    stalled_ns_ += now - blocked_since_ns_;
  blocked_since_ns_ = 0;
  return true;
}

void shot_sender::wait_for_slot(std::uint64_t now) {
  if (blocked_since_ns_ == 0) {
    blocked_since_ns_ = now;
    ++stalls_;
  }
  // The collector detects a request without an answer. A slot that stays taken without a request is detected only here.
  if (now - blocked_since_ns_ > state_.config.timeout_ns)
    state_.stalled.store(true, std::memory_order_relaxed);
}

void shot_sender::report(pass_result &result) const {
  result.sent = producer_.sent();
  result.stalls = stalls_;
  result.stalled_ns = stalled_ns_;
}

bool answer_collector::turn() {
  if (consumer_.collect([this](const answer &a) { check(a); }) == 0)
    return false;
  waiting_since_ns_ = 0;
  state_.answered.store(consumer_.collected(), std::memory_order_relaxed);
  return true;
}

bool answer_collector::done() const noexcept {
  return state_.done_sending.load(std::memory_order_acquire) &&
         consumer_.collected() == state_.sent.count.load(std::memory_order_acquire);
}

void answer_collector::watch(std::uint64_t now) {
  if (consumer_.collected() == state_.sent.count.load(std::memory_order_acquire))
    waiting_since_ns_ = 0;
  else if (waiting_since_ns_ == 0)
    waiting_since_ns_ = now;
  else if (now - waiting_since_ns_ > state_.config.timeout_ns)
    state_.stalled.store(true, std::memory_order_relaxed);
}

void answer_collector::report() const {
  result_.answered = consumer_.collected();
  result_.out_of_order = consumer_.out_of_order();
  result_.wall_ns = last_answer_ns_ > state_.begin_ns ? last_answer_ns_ - state_.begin_ns : 0;
}

void answer_collector::check(const answer &a) {
  last_answer_ns_ = a.seen_ns;
  result_.from_sent.record(a.seen_ns - a.sent_ns);
  result_.timeline.record(a.seen_ns, a.seen_ns - a.sent_ns);
  if (state_.config.cadence_ns != 0)
    result_.from_due.record(a.seen_ns - a.due_ns);
  const qec::shot_set &shots = state_.plan.shots(); // the reference is counted for each shot, whatever came for it
  if (shots.has_predictions() && shots.has_observables())
    result_.golden_logical_errors += !std::ranges::equal(shots.prediction_row(a.tag), shots.observable_row(a.tag));
  if (a.fault != answer_fault::none) {
    ++result_.faults;
    note(a, answer_fault_text(a.fault));
  } else if (const auto status = static_cast<qec::decode_status>(a.header.status); result_.undecided.add(status)) {
    if (!unanswered_shots::agree(status, state_.plan.expected_status(a.tag))) {
      ++result_.mismatches;
      ++result_.missing;
      note(a, fmt::format("no answer ({}), expected one", qec::decode_status_text(status)));
    }
  } else if (a.header.status != 0) {
    ++result_.bad_status;
    note(a, a.header.status < 0 ? cudaq_rpc_status_string(a.header.status)
                                : qec::decode_status_text(static_cast<qec::decode_status>(a.header.status)));
  } else {
    check_correction(a);
  }
  if (traced_request *const r = state_.traced(a.sequence)) {
    if (state_.config.handled != nullptr && a.slot < state_.config.handled->size()) {
      const handled_span &span = (*state_.config.handled)[a.slot];
      r->begin = span.begin_ns;
      r->end = span.end_ns;
      r->worker = span.thread;
    }
    r->slot = a.slot;
    r->sent = a.sent_ns;
    r->seen = a.seen_ns;
    r->collected = now_ns();
  }
}

void answer_collector::check_correction(const answer &a) {
  const qec::shot_set &shots = state_.plan.shots();
  const auto expected = state_.plan.expected_row(a.tag);
  const qec::decode_status offline = state_.plan.expected_status(a.tag);
  if (!unanswered_shots::agree(qec::decode_status::ok, offline)) {
    ++result_.mismatches;
    note(a, fmt::format("correction {}, expected none ({})", hex(a.result), qec::decode_status_text(offline)));
  } else if (offline == qec::decode_status::ok && !std::ranges::equal(a.result, expected)) {
    ++result_.mismatches;
    note(a, fmt::format("correction {} ({} bytes), expected {}", hex(a.result), a.result.size(), hex(expected)));
  }
  const bool has_golden = shots.has_predictions(), has_truth = shots.has_observables();
  result_.golden_differences += has_golden && !std::ranges::equal(a.result, shots.prediction_row(a.tag));
  result_.logical_errors += has_truth && !std::ranges::equal(a.result, shots.observable_row(a.tag));
}

void answer_collector::note(const answer &a, const std::string &what) {
  if (result_.notes.size() < kMaxNotes)
    result_.notes.push_back(
        fmt::format("request {} (shot {} of the set, slot {}): {}", a.sequence, a.tag, a.slot, what));
}

} // namespace cudaq::realtime::tools

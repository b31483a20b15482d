// SPDX-License-Identifier: Apache-2.0
#include "tools/ring/ring_client.h"

#include "tools/common/clock.h"

#include <fmt/core.h>

namespace cudaq::realtime::tools {

const char *answer_fault_text(answer_fault fault) noexcept {
  switch (fault) {
  case answer_fault::none:
    return "none";
  case answer_fault::launch_error:
    return "the tx flag holds a launch error instead of an answer";
  case answer_fault::bad_frame:
    return "the slot holds no response frame";
  case answer_fault::wrong_id:
    return "the answer has another request's id";
  case answer_fault::wrong_timestamp:
    return "the answer does not return the request's timestamp";
  }
  return "unknown";
}

bool ring_producer::try_send(std::uint32_t function_id, std::span<const std::uint8_t> payload, std::uint32_t tag,
                             std::uint64_t due_ns, std::optional<std::uint64_t> sent_ns) {
  const auto slot = static_cast<std::uint32_t>(sequence_ % sent_.slots.size());
  if (!port_.take(slot))
    return false;
  const std::uint64_t time = sent_ns ? *sent_ns : now_ns();
  sent_.slots[slot] = sent_request{sequence_, time, due_ns, tag};
  port_.write(slot, function_id, payload, static_cast<std::uint32_t>(sequence_), time);
  port_.signal(slot);
  sent_.count.store(++sequence_, std::memory_order_release);
  return true;
}

std::optional<answer> ring_consumer::next() {
  if (holds_)
    give_back(scan_ - 1);
  holds_ = false;
  if (!scans_) {
    scan_ = oldest_;
    scan_end_ = sent_.count.load(std::memory_order_acquire);
    scans_ = true;
  }
  // oldest_ advances during the scan; requests before it have left the window.
  for (scan_ = std::max(scan_, oldest_); scan_ < scan_end_;) {
    const std::uint64_t sequence = scan_++;
    // Checked before the record, because only this thread writes collected_. As soon as the oldest slot is free, the
    // producer may start the next lap and write the records of slots that were collected out of order.
    if (collected_[slot_of(sequence)] != 0)
      continue;
    answer a;
    if (!collect(sequence, a)) {
      if (order_ == collect_order::of_requests)
        break;
      continue;
    }
    holds_ = true;
    return a;
  }
  scans_ = false;
  return std::nullopt;
}

bool ring_consumer::collect(std::uint64_t sequence, answer &a) const {
  a.slot = slot_of(sequence);
  const cudaq_tx_status_t status = port_.poll(a.slot, &a.cuda_error);
  if (status == CUDAQ_TX_EMPTY || status == CUDAQ_TX_IN_FLIGHT)
    return false;
  a.seen_ns = now_ns();
  const sent_request &record = sent_.slots[a.slot];
  a.sequence = sequence;
  a.tag = record.tag;
  a.sent_ns = record.sent_ns;
  a.due_ns = record.due_ns;
  if (status == CUDAQ_TX_ERROR) {
    a.fault = answer_fault::launch_error;
    return true;
  }
  if (!port_.read(a.slot, a.header, a.result)) {
    a.fault = answer_fault::bad_frame;
    return true;
  }
  if (a.header.request_id != static_cast<std::uint32_t>(sequence) || record.sequence != sequence)
    a.fault = answer_fault::wrong_id;
  else if (a.header.ptp_timestamp != record.sent_ns)
    a.fault = answer_fault::wrong_timestamp;
  return true;
}

void ring_consumer::give_back(std::uint64_t sequence) {
  const std::uint32_t slot = slot_of(sequence);
  collected_[slot] = 1;
  ++count_;
  if (sequence != oldest_)
    ++out_of_order_;
  else
    advance();
  // The record is reset first: after that the producer owns the slot.
  sent_.slots[slot] = sent_request{};
  port_.give_back(slot);
}

void ring_consumer::drop_if_free(std::uint64_t sequence) {
  const std::uint32_t slot = slot_of(sequence);
  const bool is_held = holds_ && sequence == scan_ - 1;
  if (sequence < oldest_ || collected_[slot] != 0 || is_held || port_.has_handle() || !port_.is_free(slot))
    return;
  collected_[slot] = 1;
  sent_.slots[slot] = sent_request{};
  if (sequence == oldest_)
    advance();
}

void ring_consumer::advance() {
  // Ends at the first request that is not answered. A collected_ entry is reset when its request leaves the window;
  // that is before the slot can be used for the next lap.
  while (collected_[slot_of(oldest_)] != 0) {
    collected_[slot_of(oldest_)] = 0;
    ++oldest_;
  }
}

std::uint32_t ring_consumer::count_leftover_answers() const {
  std::uint32_t left = 0;
  for (std::uint32_t slot = 0; slot < collected_.size(); ++slot)
    if (!port_.is_free(slot))
      ++left;
  return left;
}

std::string ring_consumer::describe_outstanding(std::uint64_t now_ns) const {
  constexpr std::uint64_t kMaxLines = 16;
  const std::uint64_t sent = sent_.count.load(std::memory_order_acquire);
  std::string text;
  std::uint64_t lines = 0;
  for (std::uint64_t sequence = oldest_; sequence < sent; ++sequence) {
    const std::uint32_t slot = slot_of(sequence);
    if (collected_[slot] != 0)
      continue;
    if (++lines > kMaxLines)
      continue;
    const char *const names[] = {"no answer", "in flight", "error", "answered"};
    const auto status = static_cast<unsigned>(port_.poll(slot));
    text += fmt::format("  request {} in slot {}: {} for {:.3f} s\n", sequence, slot, names[status & 3u],
                        static_cast<double>(now_ns - sent_.slots[slot].sent_ns) * 1e-9);
  }
  if (lines > kMaxLines)
    text += fmt::format("  and {} more\n", lines - kMaxLines);
  return text;
}

} // namespace cudaq::realtime::tools

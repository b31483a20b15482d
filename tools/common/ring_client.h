// SPDX-License-Identifier: Apache-2.0
// The control system's side of a ring: a producer that fills slots in ring order, and a consumer that collects answers
// in whatever order they come. Only the slot helpers of the C API touch flags and frames.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// What the client remembers of the request in a slot. Written by the producer before it signals the slot, read and
/// reset by the consumer before it clears the slot; the ring's own flags order the two.
struct alignas(64) sent_request {
  static constexpr std::uint64_t kNone = UINT64_MAX;
  std::uint64_t sequence = kNone; ///< running number of the request; its low 32 bits are the request id
  std::uint64_t sent_ns = 0;      ///< also the request's ptp_timestamp
  std::uint64_t due_ns = 0;       ///< when it should have been sent
  std::uint32_t tag = 0;          ///< the caller's own
};

/// Shared by one producer and one consumer, which may be one thread or two.
struct sent_requests {
  explicit sent_requests(std::uint32_t num_slots) : slots(num_slots) {}
  std::vector<sent_request> slots;
  alignas(64) std::atomic<std::uint64_t> count{0}; ///< requests signalled so far
};

/// Slot of a request: sequence modulo slots, the order in which producers must fill a ring.
class ring_producer {
public:
  ring_producer(const cudaq_ringbuffer_t &ring, sent_requests &sent) : ring_(ring), sent_(sent) {}

  /// Writes and signals one request in the next slot. False: that slot is still taken, nothing was done.
  /// Throws api_error if the payload does not fit.
  bool try_send(std::uint32_t function_id, std::span<const std::uint8_t> payload, std::uint32_t tag,
                std::uint64_t due_ns);

  [[nodiscard]] std::uint64_t sent() const noexcept { return sequence_; }

private:
  const cudaq_ringbuffer_t &ring_;
  sent_requests &sent_;
  std::uint64_t sequence_ = 0;
};

/// What may be wrong with an answer before its content is looked at.
enum class answer_fault : std::uint8_t {
  none,
  launch_error,    ///< the tx flag carries an error instead of a frame
  bad_frame,       ///< no response frame in the slot
  wrong_id,        ///< another request's id
  wrong_timestamp, ///< id right, timestamp not echoed
};
const char *answer_fault_text(answer_fault fault) noexcept;

struct answer {
  std::uint64_t sequence = 0;
  std::uint32_t slot = 0;
  std::uint32_t tag = 0;
  std::uint64_t sent_ns = 0;
  std::uint64_t due_ns = 0;
  std::uint64_t seen_ns = 0;
  answer_fault fault = answer_fault::none;
  int cuda_error = 0;
  cudaq_rpc_response_t header{};
  std::span<const std::uint8_t> result; ///< valid during the callback only
};

/// Scans the slots of all outstanding requests, from the oldest to the newest.
class ring_consumer {
public:
  ring_consumer(const cudaq_ringbuffer_t &ring, sent_requests &sent)
      : ring_(ring), sent_(sent), collected_(sent.slots.size(), 0) {}

  /// Collects every answer that is there: on_answer(const answer &), then the slot is given back. Returns how many.
  template <typename OnAnswer>
  std::uint32_t collect(OnAnswer &&on_answer) {
    const std::uint64_t sent = sent_.count.load(std::memory_order_acquire);
    std::uint32_t found = 0;
    // oldest_ moves on while we scan, and what lies before it has left the window.
    for (std::uint64_t sequence = oldest_; sequence < sent; sequence = std::max(sequence + 1, oldest_)) {
      // Private to this thread, and looked at before the record: as soon as the oldest slot is free the producer may
      // go round and write the records of slots that were collected out of turn.
      if (collected_[slot_of(sequence)] != 0)
        continue;
      answer a;
      if (!collect(sequence, a))
        continue;
      on_answer(static_cast<const answer &>(a));
      give_back(sequence);
      ++found;
    }
    return found;
  }

  [[nodiscard]] std::uint64_t collected() const noexcept { return count_; }
  /// Requests that are answered, and were sent after one that is not.
  [[nodiscard]] std::uint64_t out_of_order() const noexcept { return out_of_order_; }
  /// First request without an answer.
  [[nodiscard]] std::uint64_t oldest() const noexcept { return oldest_; }
  /// Slots that still carry an answer or a marker although nothing is outstanding: answers given twice. Call when all
  /// requests are answered and the dispatcher has stopped.
  [[nodiscard]] std::uint32_t count_leftover_answers() const;
  /// The outstanding requests and what their flags say, as text.
  [[nodiscard]] std::string describe_outstanding(std::uint64_t now_ns) const;

private:
  [[nodiscard]] std::uint32_t slot_of(std::uint64_t sequence) const noexcept {
    return static_cast<std::uint32_t>(sequence % collected_.size());
  }
  bool collect(std::uint64_t sequence, answer &a) const;
  void give_back(std::uint64_t sequence);
  void advance();

  const cudaq_ringbuffer_t &ring_;
  sent_requests &sent_;
  std::vector<std::uint8_t> collected_; ///< of the requests from oldest_ on: answered already
  std::uint64_t oldest_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t out_of_order_ = 0;
};

} // namespace cudaq::realtime::tools

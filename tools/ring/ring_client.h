// SPDX-License-Identifier: Apache-2.0
// The control system's side of a ring: a producer that fills slots in ring order, and a consumer that collects answers
// in any order.
#pragma once

#include "tools/ring/ring_port.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools {

/// The client's record of the request in a slot. The producer writes it before it signals the slot. The consumer reads
/// and resets it before it clears the slot. The ring's flags order the two.
struct alignas(64) sent_request {
  static constexpr std::uint64_t kNone = UINT64_MAX;
  std::uint64_t sequence = kNone; ///< running number of the request; its low 32 bits are the request id
  std::uint64_t sent_ns = 0;      ///< also the request's ptp_timestamp
  std::uint64_t due_ns = 0;       ///< scheduled time of sending
  std::uint32_t tag = 0;          ///< chosen by the caller
};

/// Shared by one producer and one consumer, which may be one thread or two.
struct sent_requests {
  explicit sent_requests(std::uint32_t num_slots) : slots(num_slots) {}
  std::vector<sent_request> slots;
  alignas(64) std::atomic<std::uint64_t> count{0}; ///< requests signalled so far
};

/// Slot of a request: its sequence number modulo the number of slots. Producers must fill a ring in this order.
class ring_producer {
public:
  ring_producer(const ring_port &port, sent_requests &sent) : port_(port), sent_(sent) {}

  /// Writes and signals one request in the next slot. Returns false, and does nothing, if that slot is still taken.
  /// `sent_ns`: the time in the request; by default the clock before it is written. Throws api_error if the payload
  /// does not fit.
  bool try_send(std::uint32_t function_id, std::span<const std::uint8_t> payload, std::uint32_t tag = 0,
                std::uint64_t due_ns = 0, std::optional<std::uint64_t> sent_ns = {});

  [[nodiscard]] std::uint64_t sent() const noexcept { return sequence_; }

private:
  const ring_port port_;
  sent_requests &sent_;
  std::uint64_t sequence_ = 0;
};

/// What can be wrong with an answer, apart from its content.
enum class answer_fault : std::uint8_t {
  none,
  launch_error,    ///< the tx flag holds an error; there is no frame
  bad_frame,       ///< no response frame in the slot
  wrong_id,        ///< another request's id
  wrong_timestamp, ///< the id is right, the timestamp is not the request's
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
  std::span<const std::uint8_t> result; ///< valid until its slot is given back
};

/// Which answers a consumer collects: all, or only the answer to the oldest outstanding request.
enum class collect_order : std::uint8_t { any, of_requests };

/// Scans the slots of all outstanding requests, from the oldest to the newest.
class ring_consumer {
public:
  ring_consumer(const ring_port &port, sent_requests &sent, collect_order order = collect_order::any)
      : port_(port), sent_(sent), order_(order), collected_(sent.slots.size(), 0) {}

  /// The next answer of a scan. Its slot is given back to the producer by the next call. Nothing: the scan has ended;
  /// the next call begins another.
  std::optional<answer> next();
  /// A whole scan: calls on_answer(const answer &) for every answer that is present. Returns the number of answers.
  template <typename OnAnswer>
  std::uint32_t collect(OnAnswer &&on_answer) {
    std::uint32_t found = 0;
    for (std::optional<answer> a; (a = next()); ++found)
      on_answer(std::as_const(*a));
    return found;
  }

  [[nodiscard]] std::uint64_t collected() const noexcept { return count_; }
  /// Number of answers that were collected while an older request had no answer.
  [[nodiscard]] std::uint64_t out_of_order() const noexcept { return out_of_order_; }
  /// First request without an answer.
  [[nodiscard]] std::uint64_t oldest() const noexcept { return oldest_; }
  /// For a request to which no answer is expected any more. If its slot is free, the dispatcher has dropped it: then
  /// the request leaves the window, so that its slot can be used again. Never with a producer's handle: its ring may be
  /// in GPU memory. Not while the producer is in another thread.
  void drop_if_free(std::uint64_t sequence);
  /// Number of slots that hold an answer or a marker although no request is outstanding: answers given twice. Call it
  /// after all requests are answered and the dispatcher has stopped.
  [[nodiscard]] std::uint32_t count_leftover_answers() const;
  /// The outstanding requests and the states of their tx flags, as text.
  [[nodiscard]] std::string describe_outstanding(std::uint64_t now_ns) const;

private:
  [[nodiscard]] std::uint32_t slot_of(std::uint64_t sequence) const noexcept {
    return static_cast<std::uint32_t>(sequence % collected_.size());
  }
  bool collect(std::uint64_t sequence, answer &a) const;
  void give_back(std::uint64_t sequence);
  void advance();

  const ring_port port_;
  sent_requests &sent_;
  const collect_order order_;
  std::uint64_t scan_ = 0, scan_end_ = 0; ///< requests that the scan has not looked at
  bool scans_ = false;
  bool holds_ = false;                  ///< the answer to request scan_ - 1 was returned, its slot not yet given back
  std::vector<std::uint8_t> collected_; ///< by slot, 1: a request from oldest_ on whose answer is collected
  std::uint64_t oldest_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t out_of_order_ = 0;
};

} // namespace cudaq::realtime::tools

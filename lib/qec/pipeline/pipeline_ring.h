// SPDX-License-Identifier: Apache-2.0
// The pipeline's ring: which request may use a slot, and the record that the pipeline keeps for it besides the frame.
//
// A ticket is the number of a submitted request; ticket t uses slot t mod n. The flags alone do not show whether an
// injector with an earlier ticket still has to write into a slot. So each slot has a word with the ticket that it
// admits.
#pragma once

#include "cudaq/qec/realtime/pipeline.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"
#include "cudaq/realtime/detail/base/flag_word.h"
#include "lib/base/generation_word.h"

#include <memory>
#include <vector>

namespace cudaq::qec::realtime::detail {

using cudaq::realtime::detail::counter;
using cudaq::realtime::detail::shared_word;

/// Who may answer a slot's request. It shares one word with the request's generation, which the dispatcher gives.
/// docs/pipeline.md, "Who answers", has the steps.
enum class request_phase : std::uint64_t {
  none,        ///< answered, or no request so far
  held,        ///< its CPU stage does not run: its worker may answer it, or a stop
  completable, ///< its CPU stage runs, or has deferred it: complete_deferred may answer it, too
  given_up,    ///< a stop has answered it while it was completable
};

using request_state = cudaq::realtime::detail::generation_word<request_phase>;
static_assert(request_state::fits(request_phase::given_up));

/// The pipeline's data about the request in a slot. docs/pipeline.md has the writer and the time of each field.
struct alignas(64) request_record {
  shared_word<std::uint64_t> admitted_ticket; ///< the ticket that uses the slot, or may use it next
  request_state state;
  std::uint64_t request_id = 0;
  std::uint32_t payload_size = 0;
  int error = 0; ///< of the GPU stage; own ring only
};

/// The ring's memory, its records, and the injectors' side of it.
class pipeline_ring {
public:
  /// Throws std::invalid_argument or std::runtime_error.
  explicit pipeline_ring(const experimental::pipeline_stage_config &config);
  ~pipeline_ring() = default;
  pipeline_ring(const pipeline_ring &) = delete;
  pipeline_ring &operator=(const pipeline_ring &) = delete;

  const cudaq_ringbuffer_t &ring() const { return ring_; }
  bool external() const { return memory_ == nullptr; }
  std::uint32_t num_slots() const { return static_cast<std::uint32_t>(records_.size()); }
  std::size_t max_payload() const { return slot_size_ - CUDAQ_RPC_HEADER_SIZE; }
  request_record &record(std::uint32_t slot) { return records_[slot]; }
  const request_record &record(std::uint32_t slot) const { return records_[slot]; }
  std::uint8_t *rx_slot(std::uint32_t slot) const { return ring_.rx_data_host + slot * ring_.rx_stride_sz; }
  std::uint8_t *tx_slot(std::uint32_t slot) const {
    return in_place() ? rx_slot(slot) : ring_.tx_data_host + slot * ring_.tx_stride_sz;
  }
  bool in_place() const { return ring_.tx_data_host == nullptr || ring_.tx_data_host == ring_.rx_data_host; }

  // --- injectors ---

  enum class admission { accepted, full, closed };
  /// Throws std::invalid_argument for a payload that does not fit.
  admission submit(std::uint32_t function_id, const void *payload, std::size_t size, std::uint64_t request_id);
  void close() { next_.raise_bits(kClosed); }
  void open() { next_.clear_bits(kClosed); }
  /// Number of tickets drawn: submitted requests and those that injectors are writing.
  std::uint64_t drawn() const { return next_.load() & ~kClosed; }
  /// Number of requests that are signalled, or will be in a moment.
  std::uint64_t submitted() const { return submitted_.value(); }
  counter &stalls() { return stalls_; }
  const counter &stalls() const { return stalls_; }

  // --- consumer ---

  /// Ticket `t` is drawn and not collected yet.
  bool open_ticket(std::uint64_t t) const { return records_[t % num_slots()].admitted_ticket.peek() == t; }
  /// Frees the slot of an answered ticket.
  void collect(std::uint64_t ticket);

private:
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;

  struct free_memory {
    void operator()(cudaq_ringbuffer_memory_t *memory) const noexcept {
      if (cudaq_ringbuffer_destroy(memory) != CUDAQ_OK) // the ring is then as before
        cudaq_ringbuffer_destroy(memory);
    }
  };

  // In this order: the largest part is allocated first.
  std::size_t slot_size_;
  cudaq_ringbuffer_t ring_{};
  std::unique_ptr<cudaq_ringbuffer_memory_t, free_memory> memory_; ///< nullptr: an external ring
  std::vector<request_record> records_;
  alignas(64) shared_word<std::uint64_t> next_;
  alignas(64) counter submitted_;
  counter stalls_;
};

} // namespace cudaq::qec::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// The owner of an external ring of a pipeline, in the place of an FPGA. One thread uses it. It writes requests and
// takes answers, both in ring order.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "tools/services/device_service.h"

#include <cstdint>
#include <span>

namespace cudaq::realtime::tools {

class external_ring_client {
public:
  /// A ring in mapped memory, with a side for requests and one for answers. Throws api_error.
  external_ring_client(int gpu, std::uint32_t slots, std::size_t slot_bytes)
      : memory_(gpu, slots, static_cast<std::uint32_t>(slot_bytes), CUDAQ_MEMORY_MAPPED), ring_(memory_.ring()) {}

  /// For pipeline_stage_config::external_ringbuffer.
  [[nodiscard]] void *ring() { return &ring_; }
  /// Writes the next request, whose id is the low half of its number. Returns false if its slot is not free.
  bool try_send(std::uint32_t function_id, std::span<const std::uint8_t> payload) {
    const std::uint32_t slot = slot_of(sent_);
    if (cudaq_host_ringbuffer_slot_available(&ring_, slot) == 0)
      return false;
    require_ok(cudaq_host_ringbuffer_write_rpc_request(&ring_, slot, function_id, payload.data(),
                                                       static_cast<std::uint32_t>(payload.size()),
                                                       static_cast<std::uint32_t>(sent_), sent_),
               "cudaq_host_ringbuffer_write_rpc_request");
    cudaq_host_ringbuffer_signal_slot(&ring_, slot);
    ++sent_;
    return true;
  }
  /// Calls take(number, result) for each answer that has arrived; an empty result stands for an error.
  template <class Take>
  void collect(Take &&take) {
    for (; answered_ != sent_; ++answered_) {
      const std::uint32_t slot = slot_of(answered_);
      const cudaq_tx_status_t tx = cudaq_host_ringbuffer_poll_tx_flag(&ring_, slot, nullptr);
      if (tx == CUDAQ_TX_EMPTY || tx == CUDAQ_TX_IN_FLIGHT)
        return;
      cudaq_rpc_response_t header{};
      const void *result = nullptr;
      const bool good = tx == CUDAQ_TX_READY &&
                        cudaq_host_ringbuffer_read_rpc_response(&ring_, slot, &header, &result) == CUDAQ_OK &&
                        header.status == CUDAQ_RPC_OK && header.request_id == static_cast<std::uint32_t>(answered_);
      take(answered_, good ? std::span(static_cast<const std::uint8_t *>(result), header.result_len)
                           : std::span<const std::uint8_t>());
      cudaq_host_ringbuffer_clear_slot(&ring_, slot);
    }
  }
  [[nodiscard]] std::uint64_t answered() const { return answered_; }

private:
  [[nodiscard]] std::uint32_t slot_of(std::uint64_t number) const {
    return static_cast<std::uint32_t>(number % memory_.num_slots());
  }

  bare_ring memory_;
  cudaq_ringbuffer_t ring_;
  std::uint64_t sent_ = 0, answered_ = 0;
};

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// How a client of the benchmark puts a request into a ring. One thread uses a port.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "tools/common/api_objects.h"

#include <cstdint>
#include <span>

namespace cudaq::realtime::tools {

class request_port {
public:
  /// The slot helpers of the C API.
  request_port(const cudaq_ringbuffer_t &ring) : ring_(ring) {} // NOLINT: every ring has a port
  /// The producer's handle of the ring. Its next slot must be that of the client.
  request_port(const cudaq_ringbuffer_t &ring, cudaq_ringbuffer_producer_t *producer)
      : ring_(ring), producer_(producer) {}
  /// For a floor: a slot is free when its last answer is collected, which the client must know, and its tx flag is 0.
  /// Reads host memory only. If the slot is used again soon, the floor must clear rx before it sets tx.
  static request_port on_tx_alone(const cudaq_ringbuffer_t &ring) {
    request_port port(ring);
    port.tx_alone_ = true;
    return port;
  }

  const cudaq_ringbuffer_t &ring() const noexcept { return ring_; }
  bool is_on_tx_alone() const noexcept { return tx_alone_; }

  /// True if the slot may be written.
  bool take(std::uint32_t slot) const {
    if (producer_ != nullptr) {
      std::uint32_t claimed = 0, count = 0;
      require_ok(cudaq_ringbuffer_producer_claim(producer_, 1, &claimed, &count), "cudaq_ringbuffer_producer_claim");
      if (count == 1 && claimed != slot) [[unlikely]]
        throw api_error("the producer's handle is at another slot than the benchmark");
      return count == 1;
    }
    return tx_alone_ ? cudaq_host_ringbuffer_poll_tx_flag(&ring_, slot, nullptr) == CUDAQ_TX_EMPTY
                     : cudaq_host_ringbuffer_slot_available(&ring_, slot) != 0;
  }
  void write(std::uint32_t slot, std::uint32_t function_id, std::span<const std::uint64_t> payload,
             std::uint64_t n) const {
    const auto bytes = static_cast<std::uint32_t>(payload.size_bytes());
    const auto id = static_cast<std::uint32_t>(n);
    const cudaq_status_t status =
        producer_ != nullptr
            ? cudaq_ringbuffer_producer_write(producer_, slot, function_id, payload.data(), bytes, id, n)
            : cudaq_host_ringbuffer_write_rpc_request(&ring_, slot, function_id, payload.data(), bytes, id, n);
    if (status != CUDAQ_OK) [[unlikely]]
      require_ok(status, "writing a request");
  }
  void signal(std::uint32_t slot) const {
    if (producer_ != nullptr)
      require_ok(cudaq_ringbuffer_producer_commit(producer_, slot, 1), "cudaq_ringbuffer_producer_commit");
    else
      cudaq_host_ringbuffer_signal_slot(&ring_, slot);
  }

private:
  const cudaq_ringbuffer_t &ring_;
  cudaq_ringbuffer_producer_t *producer_ = nullptr;
  bool tx_alone_ = false;
};

} // namespace cudaq::realtime::tools

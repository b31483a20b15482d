// SPDX-License-Identifier: Apache-2.0
// A client's access to the slots of a ring: the slot helpers of the C API, or the producer's handle of the ring.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/daemon/dispatcher/ring_producer.h"
#include "tools/common/api_objects.h"

#include <cstdint>
#include <span>

namespace cudaq::realtime::tools {

/// The sending side calls take, write and signal, the collecting side the functions after them; they may be two
/// threads. The ring must outlive the port.
class ring_port {
public:
  /// By the slot helpers.
  ring_port(const cudaq_ringbuffer_t &ring) : ring_(&ring) {} // NOLINT: every ring has a port
  /// By the handle, whose next slot must be that of the client.
  ring_port(const cudaq_ringbuffer_t &ring, cudaq_ringbuffer_producer_t *producer)
      : ring_(&ring), producer_(producer) {}
  /// By the slot helpers, but `set_rx` signals a slot.
  using signal_function = void (*)(void *context, std::uint32_t slot);
  ring_port(const cudaq_ringbuffer_t &ring, signal_function set_rx, void *context)
      : ring_(&ring), signal_(set_rx), context_(context) {}
  /// For a floor: a slot is free when its last answer is collected, which the client must know, and its tx flag is 0.
  /// Reads host memory only. If the slot is used again soon, the floor must clear rx before it sets tx.
  static ring_port on_tx_alone(const cudaq_ringbuffer_t &ring) {
    ring_port port(ring);
    port.tx_alone_ = true;
    return port;
  }

  [[nodiscard]] bool is_on_tx_alone() const noexcept { return tx_alone_; }
  [[nodiscard]] bool has_handle() const noexcept { return producer_ != nullptr; }

  /// True if the slot may be written. With a handle it is claimed, and must be written.
  [[nodiscard]] bool take(std::uint32_t slot) const { return take(slot, 1) == 1; }
  /// How many slots may be written, from `slot` on: with a handle up to `most`, without one at most one.
  [[nodiscard]] std::uint32_t take(std::uint32_t slot, std::uint32_t max_count) const {
    if (producer_ != nullptr) {
      std::uint32_t claimed = 0, count = 0;
      require_ok(cudaq_ringbuffer_producer_claim(producer_, max_count, &claimed, &count),
                 "cudaq_ringbuffer_producer_claim");
      if (count != 0 && claimed != slot) [[unlikely]]
        throw api_error("the producer's handle is at another slot than the client");
      return count;
    }
    return max_count != 0 && (tx_alone_ ? poll(slot) == CUDAQ_TX_EMPTY : is_free(slot)) ? 1 : 0;
  }
  /// Throws api_error if the payload does not fit.
  void write(std::uint32_t slot, std::uint32_t function_id, std::span<const std::uint8_t> payload, std::uint32_t id,
             std::uint64_t timestamp) const {
    const auto bytes = static_cast<std::uint32_t>(payload.size());
    const cudaq_status_t status =
        producer_ != nullptr
            ? cudaq_ringbuffer_producer_write(producer_, slot, function_id, payload.data(), bytes, id, timestamp)
            : cudaq_host_ringbuffer_write_rpc_request(ring_, slot, function_id, payload.data(), bytes, id, timestamp);
    if (status != CUDAQ_OK) [[unlikely]]
      require_ok(status, "writing a request");
  }
  /// `count`: as take() has returned it.
  void signal(std::uint32_t slot, std::uint32_t count = 1) const {
    if (producer_ != nullptr)
      require_ok(cudaq_ringbuffer_producer_commit(producer_, slot, count), "cudaq_ringbuffer_producer_commit");
    else if (signal_ != nullptr)
      signal_(context_, slot);
    else
      cudaq_host_ringbuffer_signal_slot(ring_, slot);
  }

  [[nodiscard]] cudaq_tx_status_t poll(std::uint32_t slot, int *cuda_error = nullptr) const noexcept {
    return cudaq_host_ringbuffer_poll_tx_flag(ring_, slot, cuda_error);
  }
  [[nodiscard]] bool is_answered(std::uint32_t slot) const noexcept {
    const cudaq_tx_status_t status = poll(slot);
    return status == CUDAQ_TX_READY || status == CUDAQ_TX_ERROR;
  }
  /// The answer in the slot; `result` is valid until give_back. False: there is no response frame.
  [[nodiscard]] bool read(std::uint32_t slot, cudaq_rpc_response_t &header,
                          std::span<const std::uint8_t> &result) const noexcept {
    const void *bytes = nullptr;
    if (cudaq_host_ringbuffer_read_rpc_response(ring_, slot, &header, &bytes) != CUDAQ_OK)
      return false;
    result = {static_cast<const std::uint8_t *>(bytes), header.result_len};
    return true;
  }
  void give_back(std::uint32_t slot) const noexcept { cudaq_host_ringbuffer_clear_slot(ring_, slot); }
  /// Both flags are 0. Not with requests in GPU memory, which the CPU should not read.
  [[nodiscard]] bool is_free(std::uint32_t slot) const noexcept {
    return cudaq_host_ringbuffer_slot_available(ring_, slot) == 1;
  }

private:
  const cudaq_ringbuffer_t *ring_;
  cudaq_ringbuffer_producer_t *producer_ = nullptr;
  signal_function signal_ = nullptr;
  void *context_ = nullptr;
  bool tx_alone_ = false;
};

} // namespace cudaq::realtime::tools

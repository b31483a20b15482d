// SPDX-License-Identifier: Apache-2.0
// Memory into which a worker's thread writes requests for its GPU stage, and a stream for that stage. Errors are thrown
// as std::runtime_error with the name of the owner.
#pragma once

#include "kernels/qec/device_memory.h"
#include "lib/base/cpu_relax.h"

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <chrono>
#include <cstdint>

namespace cudaq::qec::realtime::gpu {

/// The kinds of memory that the CPU can write and a kernel can read without a copy.
inline bool is_kind_for_requests(cudaq_memory_kind_t kind) {
  return kind == CUDAQ_MEMORY_AUTO || kind == CUDAQ_MEMORY_DEVICE_RX || kind == CUDAQ_MEMORY_MAPPED;
}

/// Slots for requests, written by the slot helpers.
class request_ring {
public:
  request_ring(const std::string &owner, cudaq_memory_kind_t kind, std::uint32_t slots, std::size_t payload_bytes,
               int device_id) {
    cudaq_ringbuffer_options_t o;
    cudaq_ringbuffer_options_init(&o, sizeof(o));
    o.memory_kind = kind;
    o.num_slots = slots;
    o.slot_size = static_cast<std::uint32_t>(CUDAQ_RPC_HEADER_SIZE + payload_bytes);
    o.device_id = device_id;
    if (cudaq_ringbuffer_create(&o, &memory_, &ring) != CUDAQ_OK)
      throw std::runtime_error(owner + ": " + cudaq_last_error_message());
  }
  ~request_ring() {
    if (cudaq_ringbuffer_destroy(memory_) != CUDAQ_OK) // the ring is then as before
      cudaq_ringbuffer_destroy(memory_);
  }
  request_ring(const request_ring &) = delete;
  request_ring &operator=(const request_ring &) = delete;

  cudaq_ringbuffer_info_t info() const {
    cudaq_ringbuffer_info_t info{};
    info.struct_size = sizeof(info);
    cudaq_ringbuffer_get_info(memory_, &info);
    return info;
  }
  /// False: the payload does not fit.
  bool write(std::uint32_t slot, const void *payload, std::size_t bytes) const {
    return cudaq_host_ringbuffer_write_rpc_request(&ring, slot, 0, payload, static_cast<std::uint32_t>(bytes), 0, 0) ==
           CUDAQ_OK;
  }
  cudaq_ringbuffer_t ring{};

private:
  cudaq_ringbuffer_memory_t *memory_ = nullptr;
};

/// Work on it does not wait for the legacy stream.
class own_stream {
public:
  explicit own_stream(const std::string &owner) {
    require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), (owner + ": a stream").c_str());
  }
  ~own_stream() { cudaStreamDestroy(stream_); }
  own_stream(const own_stream &) = delete;
  own_stream &operator=(const own_stream &) = delete;
  cudaStream_t get() const { return stream_; }

private:
  cudaStream_t stream_ = nullptr;
};

/// Calls done() until it is true, at most for timeout_ns. Returns its last value.
template <class Done>
bool spin_until(std::uint64_t timeout_ns, Done &&done) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  bool is_done = done();
  while (!is_done && static_cast<std::uint64_t>((clock::now() - begin).count()) < timeout_ns) {
    cudaq::realtime::detail::cpu_relax();
    is_done = done();
  }
  return is_done;
}

} // namespace cudaq::qec::realtime::gpu

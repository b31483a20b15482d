// SPDX-License-Identifier: Apache-2.0
// The requester's side of a ring for kernels: what a network interface, or a kernel that stands in for one, does with the
// slots. Producer and consumer may be one kernel or two (an RX and a TX kernel with the dispatch kernel between them).
//
//   producer  slot_available(i) -> write_request(i, ...) -> signal(i)       slots in ring order, next(i)
//   consumer  poll(i) == CUDAQ_TX_READY -> read_response(i, header), result(i) -> clear(i)
//
// The rules behind it: docs/ring_protocol.md. What waits takes a deadline; a caller that polls in a loop of its own needs
// an end besides the expected one, too, and one that all threads of the group reach together.
#ifndef CUDAQ_REALTIME_DEVICE_RING_CUH
#define CUDAQ_REALTIME_DEVICE_RING_CUH

#include "cudaq/realtime/detail/ring/frame.h"
#include "cudaq/realtime/detail/ring/ring_view.h"

namespace cudaq::realtime {

/// When a loop on the device has waited long enough, by the device's clock in nanoseconds.
class device_deadline {
public:
  __device__ explicit device_deadline(std::uint64_t ns) : end_(now() + ns) {}
  __device__ bool passed() const { return now() >= end_; }

private:
  __device__ static std::uint64_t now() {
    std::uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
  }
  std::uint64_t end_;
};

/// Who calls the members of a device_ring together. All threads of the group call every member, with the same arguments,
/// and get the same answer; payloads are copied by all of them.
struct one_thread {
  __device__ static std::uint32_t rank() { return 0; }
  __device__ static std::uint32_t size() { return 1; }
  __device__ static void sync() {}
  __device__ static std::uint64_t from_first(std::uint64_t value) { return value; }
};

/// A full, converged warp.
struct one_warp {
  __device__ static std::uint32_t rank() {
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
  }
  __device__ static std::uint32_t size() { return 32; }
  __device__ static void sync() { __syncwarp(); }
  __device__ static std::uint64_t from_first(std::uint64_t value) {
    value = __shfl_sync(0xFFFFFFFFu, value, 0);
    __syncwarp(); // a shuffle orders no memory: what the first thread has acquired counts for all
    return value;
  }
};

/// All threads of a block.
struct one_block {
  __device__ static std::uint32_t rank() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
  __device__ static std::uint32_t size() { return blockDim.x * blockDim.y * blockDim.z; }
  __device__ static void sync() { __syncthreads(); }
  __device__ static std::uint64_t from_first(std::uint64_t value) {
    __shared__ std::uint64_t shared;
    __syncthreads(); // the last value has been read
    if (rank() == 0)
      shared = value;
    __syncthreads();
    return shared;
  }
};

/// A ring as its device sees it; plain data, to be passed to kernels by value. Scope: thread_scope_device only if
/// everybody who touches the flags, the dispatcher included, runs on this device and the flags are in its memory.
template <class Group = one_thread, cuda::thread_scope Scope = cuda::thread_scope_system>
class device_ring {
public:
  /// From the device views of `ring`. Strides are multiples of 8 from 24 on and flags and slots are aligned to 8, as
  /// cudaq_dispatcher_set_ringbuffer demands. slot_size: usable bytes, 0: the smaller stride.
  device_ring(const cudaq_ringbuffer_t &ring, std::uint32_t num_slots, std::uint32_t slot_size = 0) {
    view_ = detail::with_answers_in_place(detail::device_view(ring, num_slots, slot_size)).template with_scope<Scope>();
    const std::size_t smaller = view_.rx_stride < view_.tx_stride ? view_.rx_stride : view_.tx_stride;
    if (slot_size == 0 || slot_size > smaller)
      view_.slot_size = static_cast<std::uint32_t>(smaller);
  }

  __host__ __device__ std::uint32_t num_slots() const { return view_.num_slots; }
  __host__ __device__ std::uint32_t max_payload() const { return view_.max_payload(); }
  __device__ std::uint32_t next(std::uint32_t slot) const { return view_.next(slot); }

  // --- producer ---

  /// Both flags are 0; the slot may be filled.
  __device__ bool slot_available(std::uint32_t slot) const {
    return Group::from_first(Group::rank() == 0 && view_.free_for_producer(slot)) != 0;
  }

  /// Waits until it is so. False: the deadline has passed.
  __device__ bool wait_available(std::uint32_t slot, const device_deadline &deadline) const {
    bool free = false;
    if (Group::rank() == 0)
      while (!(free = view_.free_for_producer(slot)) && !deadline.passed()) {
      }
    return Group::from_first(free) != 0;
  }

  /// Writes a request into a free slot and does not signal it. `payload` (any alignment) must be readable by every thread
  /// of the group; with payload_len 0 it may be null. False, and nothing written: it does not fit.
  __device__ bool write_request(std::uint32_t slot, std::uint32_t function_id, const void *payload,
                                std::uint32_t payload_len, std::uint32_t request_id,
                                std::uint64_t ptp_timestamp = 0) const {
    if (payload_len > max_payload())
      return false;
    std::uint8_t *const to = view_.rx_slot(slot);
    if (Group::rank() == 0)
      detail::write_request(
          to, detail::request{CUDAQ_RPC_MAGIC_REQUEST, function_id, payload_len, request_id, ptp_timestamp});
    copy(to + CUDAQ_RPC_HEADER_SIZE, static_cast<const std::uint8_t *>(payload), payload_len);
    return true;
  }

  /// Publishes what the group has written: the first thread's store releases everybody's writes.
  __device__ void signal(std::uint32_t slot) const {
    Group::sync();
    if (Group::rank() == 0)
      view_.signal(slot);
  }

  // --- consumer ---

  /// State of the slot's answer. *cuda_error (may be null) gets the error of CUDAQ_TX_ERROR, else 0.
  __device__ cudaq_tx_status_t poll(std::uint32_t slot, int *cuda_error = nullptr) const {
    return state_of(Group::from_first(Group::rank() == 0 ? view_.answer(slot) : 0), cuda_error);
  }
  /// Waits until it is CUDAQ_TX_READY or CUDAQ_TX_ERROR, and returns the state; another one: the deadline has passed.
  __device__ cudaq_tx_status_t wait_answer(std::uint32_t slot, const device_deadline &deadline,
                                           int *cuda_error = nullptr) const {
    std::uint64_t flag = 0;
    if (Group::rank() == 0)
      while (((flag = view_.answer(slot)) == 0 || flag == CUDAQ_TX_FLAG_IN_FLIGHT) && !deadline.passed()) {
      }
    return state_of(Group::from_first(flag), cuda_error);
  }

  /// Header of the response, after CUDAQ_TX_READY. False: the frame is no response (wrong magic or length).
  __device__ bool read_response(std::uint32_t slot, cudaq_rpc_response_t &header) const {
    const auto r = detail::read_header<detail::response>(view_.tx_slot(slot));
    header = {r.magic, r.status, r.result_len, r.request_id, r.ptp_timestamp};
    return r.magic == CUDAQ_RPC_MAGIC_RESPONSE && r.result_len <= max_payload();
  }

  /// The result in the slot, aligned to 8; valid until clear.
  __device__ const std::uint8_t *result(std::uint32_t slot) const {
    return view_.tx_slot(slot) + CUDAQ_RPC_HEADER_SIZE;
  }

  /// Gives the slot back, once the whole group has read what it needs.
  __device__ void clear(std::uint32_t slot) const {
    Group::sync();
    if (Group::rank() == 0)
      view_.collect(slot);
  }

private:
  __device__ static cudaq_tx_status_t state_of(std::uint64_t flag, int *cuda_error) {
    const bool failed = flag >> CUDAQ_TX_FLAG_ERROR_SHIFT == CUDAQ_TX_FLAG_ERROR_TAG;
    if (cuda_error != nullptr)
      *cuda_error = failed ? static_cast<int>(flag & 0xFFFFFFFFu) : 0;
    if (failed)
      return CUDAQ_TX_ERROR;
    if (flag == CUDAQ_TX_FLAG_IN_FLIGHT)
      return CUDAQ_TX_IN_FLIGHT;
    return flag == 0 ? CUDAQ_TX_EMPTY : CUDAQ_TX_READY;
  }
  __device__ static void copy(std::uint8_t *to, const std::uint8_t *from, std::uint32_t bytes) {
    std::uint32_t done = 0;
    if (reinterpret_cast<std::uintptr_t>(from) % 8 == 0) {
      done = bytes & ~7u;
      for (std::uint32_t at = 8 * Group::rank(); at < done; at += 8 * Group::size())
        std::memcpy(__builtin_assume_aligned(to + at, 8), __builtin_assume_aligned(from + at, 8), 8);
    }
    for (std::uint32_t at = done + Group::rank(); at < bytes; at += Group::size())
      to[at] = from[at];
  }

  detail::scoped_slot_ring<Scope> view_;
};

} // namespace cudaq::realtime

#endif

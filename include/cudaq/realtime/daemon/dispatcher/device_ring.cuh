// SPDX-License-Identifier: Apache-2.0
// The requester's side of a ring for kernels: the work of a network interface, or of a kernel that replaces one in a
// test. Producer and consumer may be one kernel or two (an RX and a TX kernel with the dispatch kernel between them).
//
//   producer  slot_available(i) -> write_request(i, ...) -> signal(i)       slots in ring order, next(i)
//   consumer  poll(i) == CUDAQ_TX_READY -> read_response(i, header), result(i) -> clear(i)
//
// The rules are in docs/ring_protocol.md. Members that wait take a deadline. If a caller polls in its own loop, that
// loop needs a deadline too, and all threads of the group must leave it together.
#ifndef CUDAQ_REALTIME_DEVICE_RING_CUH
#define CUDAQ_REALTIME_DEVICE_RING_CUH

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"
#include "cudaq/realtime/detail/ring/frame.h"
#include "cudaq/realtime/detail/ring/ring_view.h"

namespace cudaq::realtime {

/// A deadline for loops on the device, `ns` nanoseconds from now by the device's clock. A duration that the clock
/// cannot add gives a deadline that does not pass.
class device_deadline {
public:
  __device__ explicit device_deadline(std::uint64_t ns) : end_(after(now(), ns)) {}
  __device__ bool passed() const { return now() >= end_; }

private:
  __device__ static std::uint64_t after(std::uint64_t begin, std::uint64_t ns) {
    return ns < UINT64_MAX - begin ? begin + ns : UINT64_MAX;
  }
  __device__ static std::uint64_t now() {
    std::uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
  }
  std::uint64_t end_;
};

/// Groups: which threads call the members of a device_ring together. All threads of the group call every member, with
/// the same arguments, and get the same result. All of them copy payloads.
///
/// One thread.
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
    __syncwarp(); // a shuffle orders no memory; this passes on to all lanes what the first one has acquired
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
    __syncthreads(); // all threads have read the last value
    if (rank() == 0)
      shared = value;
    __syncthreads();
    return shared;
  }
};

/// A ring as its device sees it. Plain data; pass it to kernels by value. Scope: thread_scope_device only if all
/// threads that touch the flags, those of the dispatcher included, run on this device, and the flags are in its memory.
template <class Group = one_thread, cuda::thread_scope Scope = cuda::thread_scope_system>
class device_ring {
public:
  /// Uses the device views of `ring`. Strides must be multiples of 8 and at least 24; flags and slots must be aligned
  /// to 8, as for cudaq_dispatcher_set_ringbuffer. slot_size: usable bytes; 0: the smaller stride.
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

  /// True if both flags are 0: the slot may be filled.
  __device__ bool slot_available(std::uint32_t slot) const {
    return Group::from_first(Group::rank() == 0 && view_.free_for_producer(slot)) != 0;
  }

  /// Waits until slot_available() is true. False: the deadline has passed.
  __device__ bool wait_available(std::uint32_t slot, const device_deadline &deadline) const {
    bool free = false;
    if (Group::rank() == 0)
      while (!(free = view_.free_for_producer(slot)) && !deadline.passed()) {
      }
    return Group::from_first(free) != 0;
  }

  /// Writes a request into a free slot; does not signal it. Every thread of the group must be able to read `payload`
  /// (any alignment). It may be null if payload_len is 0. False, and nothing is written: the request does not fit.
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

  /// Publishes the request: the first thread's store releases the writes of the whole group.
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
  /// Waits until the state is CUDAQ_TX_READY or CUDAQ_TX_ERROR, and returns it. Any other state: the deadline has
  /// passed.
  __device__ cudaq_tx_status_t wait_answer(std::uint32_t slot, const device_deadline &deadline,
                                           int *cuda_error = nullptr) const {
    std::uint64_t flag = 0;
    if (Group::rank() == 0)
      while (((flag = view_.answer(slot)) == 0 || flag == CUDAQ_TX_FLAG_IN_FLIGHT) && !deadline.passed()) {
      }
    return state_of(Group::from_first(flag), cuda_error);
  }

  /// Reads the header of the response, after CUDAQ_TX_READY. False: the slot holds no valid response (wrong magic or
  /// length).
  __device__ bool read_response(std::uint32_t slot, cudaq_rpc_response_t &header) const {
    const auto r = detail::read_header<detail::response>(view_.tx_slot(slot));
    header = {r.magic, r.status, r.result_len, r.request_id, r.ptp_timestamp};
    return r.magic == CUDAQ_RPC_MAGIC_RESPONSE && r.result_len <= max_payload();
  }

  /// The result in the slot, aligned to 8; valid until clear.
  __device__ const std::uint8_t *result(std::uint32_t slot) const {
    return view_.tx_slot(slot) + CUDAQ_RPC_HEADER_SIZE;
  }

  /// Gives the slot back, after the whole group has read what it needs.
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

// SPDX-License-Identifier: Apache-2.0
// Ring memory: one allocation that holds both flag arrays and the slot arrays.
#include "lib/api/options.h"
#include "lib/api/ring_claims.h"
#include "lib/base/cuda_device.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace cudaq::realtime::detail;

struct cudaq_ringbuffer_memory_t {
  std::uint32_t memory_kind = CUDAQ_MEMORY_HOST;
  void *base = nullptr; ///< host address, or device address for CUDAQ_MEMORY_DEVICE
  std::size_t bytes = 0;
  std::uint8_t *flags = nullptr; ///< host address of the rx flags; NULL for CUDAQ_MEMORY_DEVICE
  int device_id = 0;
};

namespace {

constexpr std::size_t kLine = 128; // flags of different owners do not share a pair of cache lines
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

/// Offsets in the allocation, in bytes from the rx flags. The rx flags of a ring in memory of the host are not at its
/// base: the owner word (ring_claims.h) is before them.
struct layout {
  std::size_t stride, tx_flags, rx_data, tx_data, bytes;
  explicit layout(const cudaq_ringbuffer_options_t &o) {
    const std::size_t flags = round_up(std::size_t{o.num_slots} * sizeof(std::uint64_t), kLine);
    stride = round_up(o.slot_size, 64);
    tx_flags = flags;
    rx_data = 2 * flags;
    tx_data = rx_data + round_up(o.num_slots * stride, kLine);
    bytes = o.in_place ? tx_data : tx_data + o.num_slots * stride;
  }
};

/// mbind with MPOL_BIND; the constants are those of the Linux kernel's user interface.
status_or_reason bind_to_node(void *base, std::size_t bytes, int node) {
  constexpr int kBind = 2;
  constexpr unsigned kStrict = 1u; // pages that cannot be placed are an error
  unsigned long mask[16] = {};
  constexpr int kBits = 8 * sizeof(unsigned long);
  if (node >= 16 * kBits)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "options->numa_node is %d, the largest node number is %d", node,
                       16 * kBits - 1);
  mask[node / kBits] = 1ul << (node % kBits);
  if (syscall(SYS_mbind, base, bytes, kBind, mask, 16ul * kBits, kStrict) != 0)
    return make_reason(errno == EINVAL ? CUDAQ_ERR_INVALID_ARG : CUDAQ_ERR_INTERNAL,
                       "options->numa_node %d: the system refused the placement: %s", node, std::strerror(errno));
  return {};
}

status_or_reason allocate_host(const cudaq_ringbuffer_options_t &o, cudaq_ringbuffer_memory_t &memory) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (o.hugepages != 0) {
    flags |= MAP_HUGETLB;
    memory.bytes = round_up(memory.bytes, kHugePage);
  }
  void *base = mmap(nullptr, memory.bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (base == MAP_FAILED)
    return make_reason(CUDAQ_ERR_INTERNAL, "no memory for a ring of %zu bytes%s: %s", memory.bytes,
                       o.hugepages != 0 ? " in huge pages (see vm.nr_hugepages)" : "", std::strerror(errno));
  status_or_reason refused;
  if (o.numa_node != CUDAQ_NUMA_NODE_ANY)
    refused = bind_to_node(base, memory.bytes, o.numa_node);
  if (refused)
    munmap(base, memory.bytes);
  else
    std::memset(memory.base = base, 0, memory.bytes); // touches all pages now, so the first request has no page fault
  return refused;
}

#if defined(CUDAQ_REALTIME_HAS_CUDART)
/// Runs `work` with its own stream. The legacy stream, and calls that synchronise the device, would wait for dispatch
/// kernels, which run until they are stopped.
template <class Work>
status_or_reason on_own_stream(const char *what, Work &&work) {
  cudaStream_t stream = nullptr;
  cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (error != cudaSuccess)
    return cuda_failed(what, error);
  error = work(stream);
  cudaStreamDestroy(stream); // does not wait: work that is queued still runs
  return error == cudaSuccess ? status_or_reason{} : cuda_failed(what, error);
}

status_or_reason allocate_cuda(cudaq_ringbuffer_memory_t &memory) {
  return on_device(memory.device_id, [&]() -> status_or_reason {
    if (memory.memory_kind == CUDAQ_MEMORY_MAPPED) {
      if (const cudaError_t error =
              cudaHostAlloc(&memory.base, memory.bytes, cudaHostAllocMapped | cudaHostAllocPortable))
        return cuda_failed("cudaHostAlloc", error);
      std::memset(memory.base, 0, memory.bytes);
      return {};
    }
    return on_own_stream("allocating the ring", [&](cudaStream_t stream) {
      cudaError_t error = cudaMallocAsync(&memory.base, memory.bytes, stream);
      if (error != cudaSuccess)
        return error;
      error = cudaMemsetAsync(memory.base, 0, memory.bytes, stream);
      if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
      if (error != cudaSuccess)
        cudaFreeAsync(memory.base, stream);
      return error;
    });
  });
}

status_or_reason free_cuda(const cudaq_ringbuffer_memory_t &memory) {
  return on_device(memory.device_id, [&]() -> status_or_reason {
    if (memory.memory_kind == CUDAQ_MEMORY_DEVICE)
      return on_own_stream("freeing the ring", [&](cudaStream_t stream) {
        const cudaError_t error = cudaFreeAsync(memory.base, stream);
        if (error == cudaSuccess) // an error of the wait must not be returned: a second call would free it twice
          cudaStreamSynchronize(stream);
        return error;
      });
    if (const cudaError_t error = cudaFreeHost(memory.base))
      return cuda_failed("cudaFreeHost", error);
    return {};
  });
}

status_or_reason device_address(const cudaq_ringbuffer_memory_t &memory, std::uint8_t *&out) {
  void *address = memory.base;
  if (memory.memory_kind == CUDAQ_MEMORY_MAPPED)
    if (const cudaError_t error = cudaHostGetDevicePointer(&address, memory.base, 0))
      return cuda_failed("cudaHostGetDevicePointer", error);
  out = static_cast<std::uint8_t *>(address);
  return {};
}
#else
status_or_reason no_cuda() {
  return make_reason(
      CUDAQ_ERR_UNSUPPORTED,
      "options->memory_kind: this library was built without the CUDA runtime; it supports only 0 (plain host memory)");
}
status_or_reason allocate_cuda(cudaq_ringbuffer_memory_t &) { return no_cuda(); }
status_or_reason free_cuda(const cudaq_ringbuffer_memory_t &) { return no_cuda(); }
status_or_reason device_address(const cudaq_ringbuffer_memory_t &, std::uint8_t *&) { return no_cuda(); }
#endif

status_or_reason free_memory(const cudaq_ringbuffer_memory_t &memory) {
  if (memory.memory_kind != CUDAQ_MEMORY_HOST)
    return free_cuda(memory);
  if (munmap(memory.base, memory.bytes) != 0)
    return make_reason(CUDAQ_ERR_INTERNAL, "munmap: %s", std::strerror(errno));
  return {};
}

/// The four arrays as one side sees them.
void fill_view(std::uint8_t *base, const layout &at, bool in_place, volatile std::uint64_t *&rx_flags,
               volatile std::uint64_t *&tx_flags, std::uint8_t *&rx_data, std::uint8_t *&tx_data) {
  rx_flags = reinterpret_cast<volatile std::uint64_t *>(base);
  tx_flags = reinterpret_cast<volatile std::uint64_t *>(base + at.tx_flags);
  rx_data = base + at.rx_data;
  tx_data = in_place ? nullptr : base + at.tx_data;
}

status_or_reason create(const cudaq_ringbuffer_options_t &o, cudaq_ringbuffer_memory_t **out_memory,
                        cudaq_ringbuffer_t *out_ring) {
  auto memory = std::make_unique<cudaq_ringbuffer_memory_t>();
  const layout at(o);
  memory->memory_kind = o.memory_kind;
  const bool in_host_memory = o.memory_kind != CUDAQ_MEMORY_DEVICE;
  memory->bytes = at.bytes + (in_host_memory ? kOwnerBytes + kPageBytes : 0);
  memory->device_id = o.device_id;
  if (status_or_reason refused =
          o.memory_kind == CUDAQ_MEMORY_HOST ? allocate_host(o, *memory) : allocate_cuda(*memory))
    return refused;
  cudaq_ringbuffer_t ring{};
  ring.rx_stride_sz = ring.tx_stride_sz = at.stride;
  std::size_t begin = 0; // of the rx flags
  if (in_host_memory) {
    auto *const base = static_cast<std::uint8_t *>(memory->base);
    begin = kOwnerBytes;
    begin +=
        (kPageBytes + kFlagsOffsetInPage - (reinterpret_cast<std::uintptr_t>(base) + begin) % kPageBytes) % kPageBytes;
    memory->flags = base + begin;
    make_owner_word(memory->flags);
    fill_view(memory->flags, at, o.in_place, ring.rx_flags_host, ring.tx_flags_host, ring.rx_data_host,
              ring.tx_data_host);
  }
  if (o.memory_kind != CUDAQ_MEMORY_HOST) {
    std::uint8_t *device_base = nullptr;
    if (status_or_reason refused = device_address(*memory, device_base)) {
      free_memory(*memory);
      return refused;
    }
    fill_view(device_base + begin, at, o.in_place, ring.rx_flags, ring.tx_flags, ring.rx_data, ring.tx_data);
    if (o.in_place)
      ring.tx_data = ring.rx_data; // the device path needs tx_data to be set
  }
  *out_ring = ring;
  *out_memory = memory.release();
  return {};
}

} // namespace

extern "C" {

cudaq_status_t cudaq_ringbuffer_create(const cudaq_ringbuffer_options_t *options,
                                       cudaq_ringbuffer_memory_t **out_memory, cudaq_ringbuffer_t *out_ring) {
  return guarded(__func__, [&]() -> status_or_reason {
    cudaq_ringbuffer_options_t o = default_ringbuffer_options();
    if (status_or_reason found = read_sized("options", options, o))
      return found;
    if (out_memory == nullptr || out_ring == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", out_memory == nullptr ? "out_memory" : "out_ring");
    if (status_or_reason found = validate_ring_options(o))
      return found;
    return create(o, out_memory, out_ring);
  });
}

cudaq_status_t cudaq_ringbuffer_destroy(cudaq_ringbuffer_memory_t *memory) {
  return guarded(__func__, [&]() -> status_or_reason {
    if (memory == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "memory is NULL");
    if (memory->flags != nullptr)
      erase_owner_word(memory->flags);
    if (status_or_reason refused = free_memory(*memory))
      return refused;
    delete memory;
    return {};
  });
}

} // extern "C"

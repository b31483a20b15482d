// SPDX-License-Identifier: Apache-2.0
#include "lib/api/rings/ring_memory.h"

#include "lib/base/cuda_device.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cudaq::realtime::detail {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// mbind with MPOL_BIND; the constants are those of the Linux kernel's user interface.
expected<> bind_to_node(void *base, std::size_t bytes, int node) {
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

expected<> allocate_host(const cudaq_ringbuffer_options_t &o, cudaq_ringbuffer_memory_t &memory) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (o.hugepages != 0) {
    flags |= MAP_HUGETLB;
    memory.bytes = (memory.bytes + kHugePage - 1) / kHugePage * kHugePage;
  }
  void *base = mmap(nullptr, memory.bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (base == MAP_FAILED)
    return make_reason(CUDAQ_ERR_INTERNAL, "no memory for a ring of %zu bytes%s: %s", memory.bytes,
                       o.hugepages != 0 ? " in huge pages (see vm.nr_hugepages)" : "", std::strerror(errno));
  expected<> result;
  if (o.numa_node != CUDAQ_NUMA_NODE_ANY)
    result = bind_to_node(base, memory.bytes, o.numa_node);
  if (result.failed())
    munmap(base, memory.bytes);
  else
    std::memset(memory.base = base, 0, memory.bytes); // touches all pages now, so the first request has no page fault
  return result;
}

#if defined(CUDAQ_REALTIME_HAS_CUDART)
expected<> allocate_cuda(cudaq_ringbuffer_memory_t &memory) {
  return on_device(memory.device_id, [&]() -> expected<> {
    if (memory.memory_kind != CUDAQ_MEMORY_DEVICE) {
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
      error = zero_by_copies(memory.base, memory.bytes, stream);
      if (error != cudaSuccess)
        cudaFreeAsync(memory.base, stream);
      return error;
    });
  });
}

/// A refusal of CUDA on a machine without driver or device, as what is missing.
expected<> or_what_is_missing(const cudaq_ringbuffer_memory_t &memory, expected<> result) {
  int count = 0;
  const cudaError_t error = result.failed() ? cudaGetDeviceCount(&count) : cudaSuccess;
  const bool no_driver = error == cudaErrorInsufficientDriver || error == cudaErrorStubLibrary;
  if (!no_driver && error != cudaErrorNoDevice)
    return result;
  return make_reason(CUDAQ_ERR_UNSUPPORTED, "options->memory_kind is %u: %s (%s); use 0 (plain host memory)",
                     static_cast<unsigned>(memory.memory_kind),
                     no_driver ? "the CUDA driver (libcuda.so.1) is missing or older than this library needs"
                               : "there is no CUDA device here, or CUDA_VISIBLE_DEVICES hides it",
                     cudaGetErrorString(error));
}

expected<> free_cuda(const cudaq_ringbuffer_memory_t &memory) {
  return on_device(memory.device_id, [&]() -> expected<> {
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

#else
expected<> no_cuda() {
  return make_reason(
      CUDAQ_ERR_UNSUPPORTED,
      "options->memory_kind: this library was built without the CUDA runtime; it supports only 0 (plain host memory)");
}
expected<> allocate_cuda(cudaq_ringbuffer_memory_t &) { return no_cuda(); }
expected<> or_what_is_missing(const cudaq_ringbuffer_memory_t &, expected<> result) { return result; }
expected<> free_cuda(const cudaq_ringbuffer_memory_t &) { return no_cuda(); }
#endif

} // namespace

expected<> allocate_block(const cudaq_ringbuffer_options_t &o, cudaq_ringbuffer_memory_t &memory) {
  if (memory.memory_kind == CUDAQ_MEMORY_HOST)
    return allocate_host(o, memory);
  return or_what_is_missing(memory, allocate_cuda(memory));
}

expected<> free_block(const cudaq_ringbuffer_memory_t &memory) {
  if (memory.memory_kind != CUDAQ_MEMORY_HOST)
    return free_cuda(memory);
  if (munmap(memory.base, memory.bytes) != 0)
    return make_reason(CUDAQ_ERR_INTERNAL, "munmap: %s", std::strerror(errno));
  return {};
}

#if defined(CUDAQ_REALTIME_HAS_CUDART)
expected<> device_address(const cudaq_ringbuffer_memory_t &memory, std::uint8_t *&out) {
  void *address = memory.base;
  if (memory.memory_kind != CUDAQ_MEMORY_DEVICE)
    if (expected<> result = on_device(memory.device_id,
                                      [&]() -> expected<> {
                                        if (const cudaError_t error =
                                                cudaHostGetDevicePointer(&address, memory.base, 0))
                                          return cuda_failed("cudaHostGetDevicePointer", error);
                                        return {};
                                      });
        result.failed())
      return result;
  out = static_cast<std::uint8_t *>(address);
  return {};
}

expected<> map_requests(const cudaq_ringbuffer_options_t &o, std::size_t bytes, cudaq_ringbuffer_memory_t &memory) {
  return or_what_is_missing(memory,
                            map_device_memory({o.device_id, bytes, o.nic_registration != 0, false, &memory.refused},
                                              memory.requests, memory.reason));
}

void release_requests(cudaq_ringbuffer_memory_t &memory) {
  if (memory.requests != nullptr || !memory.refused.empty())
    (void)on_device(memory.device_id, [&]() -> expected<> {
      memory.requests.reset();
      memory.refused.clear();
      return {};
    });
}
#else
expected<> device_address(const cudaq_ringbuffer_memory_t &, std::uint8_t *&) { return no_cuda(); }
expected<> map_requests(const cudaq_ringbuffer_options_t &, std::size_t, cudaq_ringbuffer_memory_t &) {
  return no_cuda();
}
void release_requests(cudaq_ringbuffer_memory_t &) {}
#endif

} // namespace cudaq::realtime::detail

cudaq_ringbuffer_memory_t::~cudaq_ringbuffer_memory_t() { cudaq::realtime::detail::release_requests(*this); }

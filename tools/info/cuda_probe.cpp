// SPDX-License-Identifier: Apache-2.0
#include "tools/info/cuda_probe.h"

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <dlfcn.h>
#include <fmt/core.h>

namespace cudaq::realtime::tools {
namespace {

// Constants of cuda.h, which may be missing on the machine that builds this.
constexpr int kAttributeHostNativeAtomics = 86;
constexpr int kAttributeDmaBuf = 124;
constexpr int kAttributeCapabilityMajor = 75;
constexpr int kAttributeCapabilityMinor = 76;
constexpr int kNoDevice = 100;

/// The driver functions that this file calls. A pointer is null if the driver has no function of that name.
struct driver {
  explicit driver(void *library)
      : init(reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"))),
        get_version(reinterpret_cast<int (*)(int *)>(dlsym(library, "cuDriverGetVersion"))),
        get_count(reinterpret_cast<int (*)(int *)>(dlsym(library, "cuDeviceGetCount"))),
        get_device(reinterpret_cast<int (*)(int *, int)>(dlsym(library, "cuDeviceGet"))),
        get_name(reinterpret_cast<int (*)(char *, int, int)>(dlsym(library, "cuDeviceGetName"))),
        get_memory(reinterpret_cast<int (*)(std::size_t *, int)>(dlsym(library, "cuDeviceTotalMem_v2"))),
        get_attribute(reinterpret_cast<int (*)(int *, int, int)>(dlsym(library, "cuDeviceGetAttribute"))),
        get_error_string(reinterpret_cast<int (*)(int, const char **)>(dlsym(library, "cuGetErrorString"))) {}

  [[nodiscard]] bool complete() const noexcept {
    return init != nullptr && get_version != nullptr && get_count != nullptr && get_device != nullptr &&
           get_name != nullptr && get_memory != nullptr && get_attribute != nullptr && get_error_string != nullptr;
  }
  [[nodiscard]] std::string text(int error) const {
    const char *words = nullptr;
    get_error_string(error, &words);
    return fmt::format("{} (CUresult {})", words == nullptr ? "unknown error" : words, error);
  }

  int (*init)(unsigned);
  int (*get_version)(int *);
  int (*get_count)(int *);
  int (*get_device)(int *, int);
  int (*get_name)(char *, int, int);
  int (*get_memory)(std::size_t *, int);
  int (*get_attribute)(int *, int, int);
  int (*get_error_string)(int, const char **);
};

cuda_device query_device(const driver &cuda, int ordinal) {
  cuda_device d;
  int handle = 0;
  if (cuda.get_device(&handle, ordinal) != 0)
    return d;
  char name[128] = "";
  if (cuda.get_name(name, sizeof name, handle) == 0)
    d.name = name;
  int atomics = 0, dma_buf = 0;
  cuda.get_attribute(&d.major, kAttributeCapabilityMajor, handle);
  cuda.get_attribute(&d.minor, kAttributeCapabilityMinor, handle);
  cuda.get_attribute(&atomics, kAttributeHostNativeAtomics, handle);
  cuda.get_attribute(&dma_buf, kAttributeDmaBuf, handle);
  cuda.get_memory(&d.memory_bytes, handle);
  d.host_native_atomics = atomics != 0;
  d.exports_dma_buf = dma_buf != 0;
  return d;
}

/// Makes a small ring and destroys it.
void try_requests_in_memory(cuda_device &d, int ordinal) {
  cudaq_ringbuffer_options_t options;
  cudaq_ringbuffer_options_init(&options, sizeof options);
  options.memory_kind = CUDAQ_MEMORY_DEVICE_RX;
  options.num_slots = 1;
  options.slot_size = 64;
  options.device_id = ordinal;
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring;
  d.maps_requests = cudaq_ringbuffer_create(&options, &memory, &ring) == CUDAQ_OK;
  if (!d.maps_requests) {
    d.mapping_of_those = cudaq_last_error_message();
    return;
  }
  cudaq_ringbuffer_info_t info{};
  info.struct_size = sizeof info;
  cudaq_ringbuffer_get_info(memory, &info);
  d.maps_by_vulkan = info.mapping_source == CUDAQ_MAPPING_VULKAN;
  d.mapping_of_those = fmt::format("{}; writes ordering {}", info.reason, info.writes_ordering);
  cudaq_ringbuffer_destroy(memory);
}

} // namespace

cuda_probe probe_cuda() {
  cuda_probe probe;
  // Never closed: unloading an initialised driver is not safe.
  void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    probe.error = "no driver: libcuda.so.1 cannot be loaded";
    return probe;
  }
  probe.driver_found = true;
  const driver cuda(library);
  if (!cuda.complete()) {
    probe.error = "libcuda.so.1 lacks functions that every driver has";
    return probe;
  }
  cuda.get_version(&probe.driver_version);
  if (const int error = cuda.init(0); error != 0) {
    probe.error = error == kNoDevice ? "the driver finds no device" : "the driver does not start: " + cuda.text(error);
    return probe;
  }
  int count = 0;
  if (const int error = cuda.get_count(&count); error != 0 || count == 0) {
    probe.error = error == 0 ? "the driver finds no device" : cuda.text(error);
    return probe;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal)
    try_requests_in_memory(probe.devices.emplace_back(query_device(cuda, ordinal)), ordinal);
  return probe;
}

bool built_with_kernels() noexcept {
#ifdef CUDAQ_TOOL_HAS_KERNELS
  return true;
#else
  return false;
#endif
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// GDRCopy (https://github.com/NVIDIA/gdrcopy): a kernel module, and a library that maps device memory through it.
#include "lib/gpu_memory/mapping_ways.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace cudaq::realtime::detail {
namespace {

constexpr std::size_t kGpuPage = 65536; // GDRCopy pins whole pages of the GPU

/// The part of GDRCopy's interface (gdrapi.h, version 2) that is used here.
struct gdr_mapping {
  unsigned long handle;
};
struct gdr_interface {
  void *(*open)();
  int (*close)(void *);
  int (*pin_buffer)(void *, unsigned long address, std::size_t bytes, std::uint64_t, std::uint32_t, gdr_mapping *);
  int (*unpin_buffer)(void *, gdr_mapping);
  int (*map)(void *, gdr_mapping, void **out, std::size_t bytes);
  int (*unmap)(void *, gdr_mapping, void *, std::size_t bytes);

  bool find(const opened_library &library) {
    return library.find(open, "gdr_open") && library.find(close, "gdr_close") &&
           library.find(pin_buffer, "gdr_pin_buffer") && library.find(unpin_buffer, "gdr_unpin_buffer") &&
           library.find(map, "gdr_map") && library.find(unmap, "gdr_unmap");
  }
};

class gdrcopy_memory : public mapped_device_memory {
public:
  gdrcopy_memory() : mapped_device_memory(CUDAQ_MAPPING_GDRCOPY) {}
  ~gdrcopy_memory() override {
    if (host_ != nullptr)
      api_.unmap(gdr_, mapping_, host_, bytes_);
    if (pinned_)
      api_.unpin_buffer(gdr_, mapping_);
    if (gdr_ != nullptr)
      api_.close(gdr_);
    if (allocated_ != nullptr)
      cudaFree(allocated_);
  }

  expected<> map(const mapping_request &request, const gdrcopy_files &files) {
    if (!library_.open(files.library))
      return lacks("%s is not installed", files.library);
    if (!api_.find(library_))
      return lacks("%s lacks a function of version 2", files.library);
    if ((gdr_ = api_.open()) == nullptr)
      return lacks("gdr_open failed on %s", files.device);
    bytes_ = (request.bytes + kGpuPage - 1) / kGpuPage * kGpuPage;
    if (const cudaError_t error = cudaMalloc(&allocated_, bytes_ + kGpuPage))
      return cuda_failed("cudaMalloc", error);
    const auto address = (reinterpret_cast<std::uintptr_t>(allocated_) + kGpuPage - 1) / kGpuPage * kGpuPage;
    device_ = reinterpret_cast<std::uint8_t *>(address);
    pinned_ = api_.pin_buffer(gdr_, address, bytes_, 0, 0, &mapping_) == 0;
    if (!pinned_)
      return lacks("gdr_pin_buffer refused %zu bytes", bytes_);
    void *mapped = nullptr;
    if (api_.map(gdr_, mapping_, &mapped, bytes_) != 0)
      return lacks("gdr_map refused %zu bytes", bytes_);
    host_ = static_cast<std::uint8_t *>(mapped);
    return zero_device_memory(device_, bytes_);
  }

private:
  opened_library library_;
  gdr_interface api_{};
  void *gdr_ = nullptr, *allocated_ = nullptr;
  gdr_mapping mapping_{};
  bool pinned_ = false;
  std::size_t bytes_ = 0;
};

} // namespace

expected<> map_by_gdrcopy(const mapping_request &request, mapping_result &out, const gdrcopy_files &files) {
  if (request.exportable)
    return lacks("another process cannot map the memory of this one");
  if (access(files.device, R_OK | W_OK) != 0)
    return lacks("%s (kernel module gdrdrv): %s", files.device, std::strerror(errno));
  return map_as<gdrcopy_memory>(request, out, files);
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// The two ways through Vulkan, which maps all device memory for the CPU where the BAR is large enough:
//
//   vulkan_memory     Vulkan allocates and maps, CUDA imports: the quicker one
//   imported_memory   CUDA allocates, Vulkan imports and maps: memory that a NIC's driver can register
#include "lib/gpu_memory/mapping_ways.h"
#include "lib/gpu_memory/vulkan_device.h"

#include <cstring>
#include <cuda.h>
#include <unistd.h>

namespace cudaq::realtime::detail {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20; // of device memory

constexpr std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kGranularity - 1) / kGranularity * kGranularity;
}

/// Vulkan's device on the GPU that CUDA numbers.
expected<> open_device(vulkan_device &vulkan, int device) {
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device))
    return cuda_failed("cudaGetDeviceProperties", error);
  std::uint8_t uuid[16];
  static_assert(sizeof(uuid) == sizeof(properties.uuid));
  std::memcpy(uuid, &properties.uuid, sizeof(uuid));
  return vulkan.open(uuid, ("CUDA device " + std::to_string(device)).c_str());
}

class vulkan_memory : public mapped_device_memory {
public:
  vulkan_memory() : mapped_device_memory(CUDAQ_MAPPING_VULKAN) {}
  ~vulkan_memory() override {
    if (device_ != nullptr)
      cudaFree(device_);
    if (external_ != nullptr)
      cudaDestroyExternalMemory(external_);
  }

  expected<> map(const mapping_request &request) {
    const std::size_t bytes = whole_pages(request.bytes);
    if (expected<> result = open_device(vulkan_, request.device); result.failed())
      return result;
    if (expected<> result = vulkan_.allocate(bytes, nullptr, true); result.failed())
      return result;
    cudaExternalMemoryHandleDesc from{};
    from.type = cudaExternalMemoryHandleTypeOpaqueFd;
    from.size = bytes;
    if (expected<> result = vulkan_.export_descriptor(from.handle.fd); result.failed())
      return result;
    if (const cudaError_t error = cudaImportExternalMemory(&external_, &from)) {
      close(from.handle.fd); // else it belongs to CUDA
      return cuda_failed("cudaImportExternalMemory", error);
    }
    cudaExternalMemoryBufferDesc whole{};
    whole.size = bytes;
    void *device = nullptr;
    if (const cudaError_t error = cudaExternalMemoryGetMappedBuffer(&device, external_, &whole))
      return cuda_failed("cudaExternalMemoryGetMappedBuffer", error);
    device_ = static_cast<std::uint8_t *>(device);
    host_ = vulkan_.mapped();
    return zero_device_memory(device_, bytes);
  }

  expected<> export_to(exported_memory &out, int &descriptor) const override {
    out = vulkan_.ids();
    return vulkan_.export_descriptor(descriptor);
  }

private:
  vulkan_device vulkan_; // freed last
  cudaExternalMemory_t external_ = nullptr;
};

/// The calls of the driver that the runtime does not have.
struct driver_calls {
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) free_address = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  decltype(&cuMemExportToShareableHandle) export_handle = nullptr;

  bool find() {
    return find_one(create, "cuMemCreate") && find_one(release, "cuMemRelease") &&
           find_one(reserve, "cuMemAddressReserve") && find_one(free_address, "cuMemAddressFree") &&
           find_one(map, "cuMemMap") && find_one(unmap, "cuMemUnmap") && find_one(set_access, "cuMemSetAccess") &&
           find_one(export_handle, "cuMemExportToShareableHandle");
  }

private:
  template <class Function>
  static bool find_one(Function &out, const char *name) {
    constexpr unsigned kSince = 11030; // CUDA 11.3 has all of them
    void *symbol = nullptr;
    cudaDriverEntryPointQueryResult found{};
    const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &symbol, kSince, cudaEnableDefault, &found);
    out = reinterpret_cast<Function>(symbol);
    return error == cudaSuccess && found == cudaDriverEntryPointSuccess && symbol != nullptr;
  }
};

class imported_memory : public mapped_device_memory {
public:
  imported_memory() : mapped_device_memory(CUDAQ_MAPPING_VULKAN_IMPORT) {}
  ~imported_memory() override {
    if (mapped_)
      driver_.unmap(address_, bytes_);
    if (address_ != 0)
      driver_.free_address(address_, bytes_);
    if (created_)
      driver_.release(memory_);
  }

  expected<> map(const mapping_request &request) {
    bytes_ = whole_pages(request.bytes);
    if (expected<> result = open_device(vulkan_, request.device); result.failed())
      return result;
    if (!driver_.find())
      return lacks("the driver has no calls for memory with a file descriptor");
    if (expected<> result = create(request.device); result.failed())
      return result;
    VkImportMemoryFdInfoKHR import{};
    import.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR;
    import.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    if (const CUresult error = driver_.export_handle(&import.fd, memory_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0))
      return failed("cuMemExportToShareableHandle", error);
    if (expected<> result = vulkan_.allocate(bytes_, &import, false); result.failed()) {
      if (import.fd >= 0)
        close(import.fd);
      return result;
    }
    host_ = vulkan_.mapped();
    return zero_device_memory(device_, bytes_);
  }

private:
  static expected<> failed(const char *call, CUresult error) {
    return make_reason(CUDAQ_ERR_CUDA, "%s returned %d", call, static_cast<int>(error));
  }

  expected<> create(int device) {
    CUmemAllocationProp kind{};
    kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    kind.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    kind.allocFlags.gpuDirectRDMACapable = 1;
    if (const CUresult error = driver_.create(&memory_, bytes_, &kind, 0))
      return lacks("cuMemCreate of %zu bytes for GPUDirect RDMA returned %d", bytes_, static_cast<int>(error));
    created_ = true;
    if (const CUresult error = driver_.reserve(&address_, bytes_, 0, 0, 0))
      return failed("cuMemAddressReserve", error);
    if (const CUresult error = driver_.map(address_, bytes_, 0, memory_, 0))
      return failed("cuMemMap", error);
    mapped_ = true;
    const CUmemAccessDesc access{kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (const CUresult error = driver_.set_access(address_, bytes_, &access, 1))
      return failed("cuMemSetAccess", error);
    device_ = reinterpret_cast<std::uint8_t *>(address_);
    return {};
  }

  vulkan_device vulkan_; // freed last
  driver_calls driver_;
  std::size_t bytes_ = 0;
  CUmemGenericAllocationHandle memory_{};
  CUdeviceptr address_ = 0;
  bool created_ = false, mapped_ = false;
};

} // namespace

expected<> map_by_vulkan(const mapping_request &request, mapping_result &out) {
  return request.nic_registration ? map_as<imported_memory>(request, out) : map_as<vulkan_memory>(request, out);
}

} // namespace cudaq::realtime::detail

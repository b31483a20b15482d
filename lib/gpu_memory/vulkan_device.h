// SPDX-License-Identifier: Apache-2.0
// A Vulkan device on a GPU that is named by its UUID, for memory that CUDA or another process uses, too. No CUDA.
#pragma once

#include "lib/gpu_memory/exported_memory.h"
#include "lib/gpu_memory/opened_library.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

namespace cudaq::realtime::detail {

class vulkan_device {
public:
  vulkan_device() = default;
  ~vulkan_device();
  vulkan_device(const vulkan_device &) = delete;
  vulkan_device &operator=(const vulkan_device &) = delete;

  /// `name`: of the device, for the texts.
  expected<> open(const std::uint8_t (&uuid)[16], const char *name);
  /// Allocates memory that the device holds and the CPU can map, and maps it. `import`: NULL, or the memory of CUDA
  /// that it is; its descriptor becomes -1 when Vulkan owns it. `exports`: with a descriptor for CUDA.
  expected<> allocate(std::size_t bytes, VkImportMemoryFdInfoKHR *import, bool exports);
  /// Maps memory that another process has allocated. The descriptor of `from` becomes -1 when Vulkan owns it.
  expected<> import(const exported_memory &memory, VkImportMemoryFdInfoKHR &from);
  /// A new descriptor of the memory; the caller closes it.
  expected<> export_descriptor(int &out) const;
  std::uint8_t *mapped() const { return mapped_; }
  /// The device and, after allocate, the type of its memory.
  const exported_memory &ids() const { return ids_; }

private:
  expected<> make_instance();
  expected<> find_gpu(const std::uint8_t (&uuid)[16], const char *name);
  VkPhysicalDeviceMemoryProperties memory_kinds() const;
  expected<> allocate_and_map(const VkMemoryAllocateInfo &info, VkImportMemoryFdInfoKHR *import);
  expected<> make_device();
  template <class Function>
  Function of_instance(const char *name) const {
    return reinterpret_cast<Function>(get_(instance_, name));
  }
  template <class Function>
  Function of_device(const char *name) const {
    return reinterpret_cast<Function>(get_device_proc_(device_, name));
  }

  opened_library library_;
  PFN_vkGetInstanceProcAddr get_ = nullptr;
  PFN_vkGetDeviceProcAddr get_device_proc_ = nullptr;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice gpu_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  std::uint8_t *mapped_ = nullptr;
  exported_memory ids_;
};

} // namespace cudaq::realtime::detail

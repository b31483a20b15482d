// SPDX-License-Identifier: Apache-2.0
#include "lib/gpu_memory/vulkan_device.h"

#include "lib/base/descriptor.h"

#include <array>
#include <cstring>
#include <vector>

namespace cudaq::realtime::detail {
namespace {

constexpr VkMemoryPropertyFlags kMappedOnDevice =
    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

expected<> vulkan_failed(const char *call, VkResult result) {
  return lacks("%s returned %d", call, static_cast<int>(result));
}

} // namespace

vulkan_device::~vulkan_device() {
  if (memory_ != VK_NULL_HANDLE)
    of_device<PFN_vkFreeMemory>("vkFreeMemory")(device_, memory_, nullptr); // unmaps it too
  if (device_ != VK_NULL_HANDLE)
    of_device<PFN_vkDestroyDevice>("vkDestroyDevice")(device_, nullptr);
  if (instance_ != VK_NULL_HANDLE)
    of_instance<PFN_vkDestroyInstance>("vkDestroyInstance")(instance_, nullptr);
}

expected<> vulkan_device::open(const std::uint8_t (&uuid)[16], const char *name) {
  if (!library_.open("libvulkan.so.1"))
    return lacks("libvulkan.so.1 is not installed (Debian: libvulkan1)");
  if (!library_.find(get_, "vkGetInstanceProcAddr"))
    return lacks("libvulkan.so.1 has no vkGetInstanceProcAddr");
  if (expected<> result = make_instance(); result.failed())
    return result;
  if (expected<> result = find_gpu(uuid, name); result.failed())
    return result;
  return make_device();
}

expected<> vulkan_device::make_instance() {
  VkApplicationInfo program{};
  program.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  program.apiVersion = VK_API_VERSION_1_1;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &program;
  const auto create = of_instance<PFN_vkCreateInstance>("vkCreateInstance");
  if (const VkResult result = create(&info, nullptr, &instance_)) {
    instance_ = VK_NULL_HANDLE;
    return result == VK_ERROR_INCOMPATIBLE_DRIVER
               ? lacks("no Vulkan driver found; set VK_DRIVER_FILES to the NVIDIA driver's nvidia_icd.json")
               : vulkan_failed("vkCreateInstance", result);
  }
  for (const char *driver :
       {"libGLX_nvidia.so.0", "libEGL_nvidia.so.0"}) // Vulkan's loader unloads it with the instance
    opened_library::keep(driver);
  get_device_proc_ = of_instance<PFN_vkGetDeviceProcAddr>("vkGetDeviceProcAddr");
  return {};
}

expected<> vulkan_device::find_gpu(const std::uint8_t (&uuid)[16], const char *name) {
  const auto list = of_instance<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices");
  std::uint32_t count = 0;
  if (const VkResult result = list(instance_, &count, nullptr))
    return vulkan_failed("vkEnumeratePhysicalDevices", result);
  std::vector<VkPhysicalDevice> gpus(count);
  if (const VkResult result = list(instance_, &count, gpus.data()); result < 0)
    return vulkan_failed("vkEnumeratePhysicalDevices", result);
  const auto get_properties = of_instance<PFN_vkGetPhysicalDeviceProperties2>("vkGetPhysicalDeviceProperties2");
  for (std::uint32_t i = 0; i < count; ++i) {
    VkPhysicalDeviceIDProperties id{};
    id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
    VkPhysicalDeviceProperties2 all{};
    all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    all.pNext = &id;
    get_properties(gpus[i], &all);
    if (all.properties.apiVersion >= VK_API_VERSION_1_1 && std::memcmp(id.deviceUUID, uuid, VK_UUID_SIZE) == 0) {
      gpu_ = gpus[i];
      std::memcpy(ids_.device_uuid, id.deviceUUID, VK_UUID_SIZE);
      std::memcpy(ids_.driver_uuid, id.driverUUID, VK_UUID_SIZE);
      return {};
    }
  }
  return lacks("none of %u Vulkan devices is %s; set VK_DRIVER_FILES to the NVIDIA driver's nvidia_icd.json", count,
               name);
}

expected<> vulkan_device::make_device() {
  constexpr float kPriority = 1;
  VkDeviceQueueCreateInfo queue{}; // a device must have one
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueCount = 1;
  queue.pQueuePriorities = &kPriority;
  const std::array<const char *, 1> extensions = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME};
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  if (const VkResult result = of_instance<PFN_vkCreateDevice>("vkCreateDevice")(gpu_, &info, nullptr, &device_)) {
    device_ = VK_NULL_HANDLE;
    return vulkan_failed("vkCreateDevice", result);
  }
  return {};
}

VkPhysicalDeviceMemoryProperties vulkan_device::memory_kinds() const {
  VkPhysicalDeviceMemoryProperties kinds{};
  of_instance<PFN_vkGetPhysicalDeviceMemoryProperties>("vkGetPhysicalDeviceMemoryProperties")(gpu_, &kinds);
  return kinds;
}

expected<> vulkan_device::allocate(std::size_t bytes, VkImportMemoryFdInfoKHR *import, bool exports) {
  const VkPhysicalDeviceMemoryProperties kinds = memory_kinds();
  VkExportMemoryAllocateInfo to_cuda{};
  to_cuda.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
  to_cuda.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = import != nullptr ? static_cast<const void *>(import) : exports ? &to_cuda : nullptr;
  info.allocationSize = bytes;
  const auto has = [&](std::uint32_t i) {
    return (kinds.memoryTypes[i].propertyFlags & kMappedOnDevice) == kMappedOnDevice;
  };
  while (info.memoryTypeIndex < kinds.memoryTypeCount && !has(info.memoryTypeIndex))
    ++info.memoryTypeIndex;
  if (info.memoryTypeIndex == kinds.memoryTypeCount)
    return lacks("the device has no memory that the CPU can map (resizable BAR is off?)");
  return allocate_and_map(info, import);
}

expected<> vulkan_device::import(const exported_memory &memory, VkImportMemoryFdInfoKHR &from) {
  const VkPhysicalDeviceMemoryProperties kinds = memory_kinds();
  if (memory.memory_type >= kinds.memoryTypeCount ||
      (kinds.memoryTypes[memory.memory_type].propertyFlags & kMappedOnDevice) != kMappedOnDevice)
    return lacks("the device has no memory of type %u that the CPU can map", memory.memory_type);
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = &from;
  info.allocationSize = memory.bytes;
  info.memoryTypeIndex = memory.memory_type;
  return allocate_and_map(info, &from);
}

expected<> vulkan_device::allocate_and_map(const VkMemoryAllocateInfo &info, VkImportMemoryFdInfoKHR *import) {
  if (const VkResult result = of_device<PFN_vkAllocateMemory>("vkAllocateMemory")(device_, &info, nullptr, &memory_)) {
    memory_ = VK_NULL_HANDLE;
    return lacks("vkAllocateMemory of %llu bytes returned %d", static_cast<unsigned long long>(info.allocationSize),
                 static_cast<int>(result));
  }
  if (import != nullptr)
    import->fd = -1; // it belongs to Vulkan now
  ids_.bytes = info.allocationSize, ids_.memory_type = info.memoryTypeIndex;
  void *mapped = nullptr;
  if (const VkResult result = of_device<PFN_vkMapMemory>("vkMapMemory")(device_, memory_, 0, VK_WHOLE_SIZE, 0, &mapped))
    return vulkan_failed("vkMapMemory", result);
  mapped_ = static_cast<std::uint8_t *>(mapped);
  return {};
}

expected<> vulkan_device::export_descriptor(int &out) const {
  VkMemoryGetFdInfoKHR what{};
  what.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR;
  what.memory = memory_;
  what.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  const auto get = of_device<PFN_vkGetMemoryFdKHR>("vkGetMemoryFdKHR");
  if (get == nullptr)
    return lacks("the driver has no vkGetMemoryFdKHR");
  if (const VkResult result = get(device_, &what, &out))
    return vulkan_failed("vkGetMemoryFdKHR", result);
  out = above_standard_streams(out);
  return out >= 0 ? expected<>{} : lacks("the system gave no descriptor");
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// A GPU that any driver of Vulkan makes, also one that computes on the CPU (Debian: mesa-vulkan-drivers). The server of
// the tests puts the requests into its memory; the client is the real library, which imports it.
#include "lib/gpu_memory/vulkan_device.h"
#include "unittests/transport/shm/shm_gpu_double.h"

#include <cstring>

namespace cudaq::realtime::test {
namespace {

using namespace detail;

/// The UUID of the first device that Vulkan lists.
expected<> first_device(std::uint8_t (&uuid)[16]) {
  opened_library library;
  PFN_vkGetInstanceProcAddr get = nullptr;
  if (!library.open("libvulkan.so.1") || !library.find(get, "vkGetInstanceProcAddr"))
    return lacks("libvulkan.so.1 is not installed");
  VkApplicationInfo program{};
  program.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, program.apiVersion = VK_API_VERSION_1_1;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, info.pApplicationInfo = &program;
  VkInstance instance = VK_NULL_HANDLE;
  const auto of_instance = [&](const char *name) { return get(instance, name); };
  if (reinterpret_cast<PFN_vkCreateInstance>(of_instance("vkCreateInstance"))(&info, nullptr, &instance) != VK_SUCCESS)
    return lacks("Vulkan has no driver");
  std::uint32_t count = 1;
  VkPhysicalDevice gpu = VK_NULL_HANDLE;
  reinterpret_cast<PFN_vkEnumeratePhysicalDevices>(of_instance("vkEnumeratePhysicalDevices"))(instance, &count, &gpu);
  VkPhysicalDeviceIDProperties id{};
  id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
  VkPhysicalDeviceProperties2 all{};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, all.pNext = &id;
  if (count == 1)
    reinterpret_cast<PFN_vkGetPhysicalDeviceProperties2>(of_instance("vkGetPhysicalDeviceProperties2"))(gpu, &all);
  reinterpret_cast<PFN_vkDestroyInstance>(of_instance("vkDestroyInstance"))(instance, nullptr);
  std::memcpy(uuid, id.deviceUUID, sizeof(uuid));
  return count == 1 ? expected<>{} : lacks("Vulkan has no device");
}

class vulkan_double : public shm_device_memory {
public:
  expected<> make(std::uint64_t bytes) {
    std::uint8_t uuid[16] = {};
    if (expected<> result = first_device(uuid); result.failed())
      return result;
    if (expected<> result = vulkan_.open(uuid, "the first device"); result.failed())
      return result;
    if (expected<> result = vulkan_.allocate(bytes, nullptr, true); result.failed())
      return result;
    int file = -1;
    if (expected<> result = vulkan_.export_descriptor(file); result.failed())
      return result;
    file_.reset(file);
    exported_ = vulkan_.ids();
    host_ = device_ = vulkan_.mapped();
    std::memset(host_, 0, bytes);
    return {};
  }

private:
  vulkan_device vulkan_;
};

} // namespace

expected<> make_vulkan_double(std::uint64_t bytes, std::unique_ptr<shm_device_memory> &out) {
  auto memory = std::make_unique<vulkan_double>();
  if (expected<> result = memory->make(bytes); result.failed())
    return result;
  out = std::move(memory);
  return {};
}

} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
#include "lib/gpu_memory/vulkan_device.h"

#include <cstring>

namespace cudaq::realtime::detail {
namespace {

class vulkan_mapping : public imported_mapping {
public:
  expected<> map(const exported_memory &memory, int &descriptor) {
    if (expected<> result = vulkan_.open(memory.device_uuid, "the device of the server"); result.failed())
      return result;
    if (std::memcmp(vulkan_.ids().driver_uuid, memory.driver_uuid, sizeof(memory.driver_uuid)) != 0)
      return lacks("the server uses another driver for the device than this process");
    VkImportMemoryFdInfoKHR import{};
    import.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR;
    import.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    import.fd = descriptor;
    const expected<> result = vulkan_.import(memory, import);
    descriptor = import.fd;
    host_ = vulkan_.mapped();
    return result;
  }

private:
  vulkan_device vulkan_;
};

} // namespace

expected<> map_exported_memory(const exported_memory &memory, int &descriptor, std::unique_ptr<imported_mapping> &out) {
  auto mapping = std::make_unique<vulkan_mapping>();
  if (expected<> result = mapping->map(memory, descriptor); result.failed())
    return result;
  out = std::move(mapping);
  return {};
}

} // namespace cudaq::realtime::detail

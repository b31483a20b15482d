// SPDX-License-Identifier: Apache-2.0
// Stands in for vulkan_memory.cpp if the headers were not there at build time.
#include "lib/gpu_memory/mapping_ways.h"

namespace cudaq::realtime::detail {

expected<> map_by_vulkan(const mapping_request &, mapping_result &) {
  return lacks("this library was built without Vulkan's headers (Debian: libvulkan-dev)");
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// Stands in for vulkan_import.cpp if the headers were not there at build time.
#include "lib/gpu_memory/exported_memory.h"
#include "lib/gpu_memory/opened_library.h"

namespace cudaq::realtime::detail {

expected<> map_exported_memory(const exported_memory &, int &, std::unique_ptr<imported_mapping> &) {
  return lacks("this library was built without Vulkan's headers (Debian: libvulkan-dev)");
}

} // namespace cudaq::realtime::detail

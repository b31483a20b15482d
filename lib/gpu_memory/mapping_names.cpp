// SPDX-License-Identifier: Apache-2.0
#include "lib/gpu_memory/mapped_device_memory.h"

namespace cudaq::realtime::detail {

const char *name_of(cudaq_mapping_source_t source) {
  switch (source) {
  case CUDAQ_MAPPING_NONE:
    return "none";
  case CUDAQ_MAPPING_GDRCOPY:
    return "GDRCopy";
  case CUDAQ_MAPPING_VULKAN:
    return "Vulkan";
  case CUDAQ_MAPPING_VULKAN_IMPORT:
    return "Vulkan, with memory of CUDA";
  case CUDAQ_MAPPING_COHERENT:
    return "coherent memory";
  }
  return "unknown";
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// The ways to map device memory, each with the same interface. Only the files of this room and tests include
// this.
#pragma once

#include "lib/base/cuda_device.h"
#include "lib/gpu_memory/mapped_device_memory.h"
#include "lib/gpu_memory/opened_library.h"

namespace cudaq::realtime::detail {

using mapping_result = std::unique_ptr<mapped_device_memory>;

/// Where GDRCopy is. Tests have a library of their own.
struct gdrcopy_files {
  const char *device = "/dev/gdrdrv";
  const char *library = "libgdrapi.so.2";
};
expected<> map_by_gdrcopy(const mapping_request &request, mapping_result &out, const gdrcopy_files &files);
/// Memory of Vulkan, imported into CUDA; with nic_registration memory of CUDA, imported into Vulkan. The only way whose
/// memory another process can map.
expected<> map_by_vulkan(const mapping_request &request, mapping_result &out);
expected<> map_coherent(const mapping_request &request, mapping_result &out);

/// Sets device memory to zero on a stream of its own: the legacy stream would wait for kernels that run.
expected<> zero_device_memory(void *device, std::size_t bytes);

/// Maps memory of this class.
template <class Memory, class... Values>
expected<> map_as(const mapping_request &request, mapping_result &out, const Values &...values) {
  auto memory = std::make_unique<Memory>();
  if (expected<> result = memory->map(request, values...); result.failed()) {
    if (request.refused != nullptr && memory->device() != nullptr) // it has allocated
      request.refused->push_back(std::move(memory));
    return result;
  }
  out = std::move(memory);
  return {};
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// Looks for a CUDA driver at run time, without linking to one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct cuda_device {
  std::string name;
  int major = 0; ///< compute capability
  int minor = 0;
  std::size_t memory_bytes = 0;
  bool host_native_atomics = false;
  bool exports_dma_buf = false; ///< its memory can be given to a network adapter as a dma-buf
  bool maps_requests = false;   ///< the library makes rings whose requests lie in this device's memory
  bool maps_by_vulkan = false;  ///< by Vulkan, whose memory other processes can map
  std::string mapping_of_those; ///< the way of the mapping, or why each way failed
};

struct cuda_probe {
  bool driver_found = false; ///< libcuda.so.1 could be loaded
  int driver_version = 0;    ///< newest CUDA version of the driver, 1000 * major + 10 * minor; 0: unknown
  std::string error;         ///< why there are no devices; empty if there are devices
  std::vector<cuda_device> devices;
};

/// Loads libcuda.so.1 and queries it. Never throws; `error` names the missing part.
cuda_probe probe_cuda();

/// Device kernels are built with this program, into cudaq-realtime-gpu: nvcc was found.
bool built_with_kernels() noexcept;

} // namespace cudaq::realtime::tools

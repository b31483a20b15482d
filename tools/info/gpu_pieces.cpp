// SPDX-License-Identifier: Apache-2.0
#include "tools/info/gpu_pieces.h"

#include "tools/common/report.h"

#include <fmt/core.h>

namespace cudaq::realtime::tools {

piece driver_piece(const cuda_probe &probe) {
  piece p{"CUDA driver", probe.driver_found, probe.error,
          "rings that a GPU can access, and all paths that run "
          "handlers on a GPU; HOST_CALL does not need it",
          "install the driver package of your distribution or of NVIDIA, version 580 or newer for CUDA 13"};
  if (probe.driver_found)
    p.detail = fmt::format("serves up to CUDA {}{}{}", format_cuda_version(probe.driver_version),
                           probe.error.empty() ? "" : ", but ", probe.error);
  return p;
}

piece devices_piece(const cuda_probe &probe) {
  piece p{"CUDA devices", !probe.devices.empty(), "",
          "GPU handlers; compute capability 9.0 or higher for device graph "
          "dispatch",
          "a machine with an NVIDIA GPU, visible to this process (in a container: --gpus all)"};
  for (const cuda_device &d : probe.devices)
    p.detail += fmt::format("{}{} (compute capability {}.{}, {} GiB{})", p.detail.empty() ? "" : "; ", d.name, d.major,
                            d.minor, d.memory_bytes >> 30, d.host_native_atomics ? ", host-native atomics" : "");
  if (probe.devices.empty())
    p.detail = "none";
  return p;
}

piece kernels_piece() {
  const bool built = built_with_kernels();
  return {"device kernels", built, built ? "in cudaq-realtime-gpu" : "left out: no nvcc was found when this was built",
          "handlers and graphs that a kernel on the GPU dispatches, and --device gpu; nothing else needs them",
          "build again on a machine with the CUDA toolkit, 12.6 or newer"};
}

piece requests_piece(const cuda_probe &probe) {
  piece p{"requests in GPU memory", false, "",
          "rings of the kind CUDAQ_MEMORY_DEVICE_RX: about 1 us less for a request of a CPU to a kernel",
          "libvulkan1 and the Vulkan part of the driver, or GDRCopy: share/doc/cudaq-realtime/docs/guide/rings.md"};
  for (const cuda_device &d : probe.devices) {
    p.present = p.present || d.maps_requests;
    p.detail += (p.detail.empty() ? "" : "; ") + d.mapping_of_those;
  }
  if (probe.devices.empty())
    p.detail = "no device";
  return p;
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/doctor_checks.h"
#include "tools/services/provider_service.h"

namespace cudaq::realtime::tools {
namespace {

finding provider_line() {
  constexpr const char *remedy =
      "build it with the Holoscan sensor bridge and the DOCA SDK: CUDAQ_WITH_GPU_ROCE, "
      "HOLOLINK_ROOT, DOCA_GPUNETIO_ROOT; share/doc/cudaq-realtime/docs/transport/gpu_roce.md";
  const std::string path = provider_library("gpu-roce");
  const auto library = open_provider(path); // stays loaded: drivers may have threads
  if (library.failed())
    return {"provider", grade::wrong, library.text(), remedy};
  return {"provider", grade::good, path, ""};
}

finding device_of_provider_line(const cuda_probe &probe) {
  if (probe.devices.empty())
    return {"GPU for the provider", grade::wrong, probe.error.empty() ? "none" : probe.error,
            "the provider needs a GPU: install the driver; in a container: --gpus all"};
  std::string names;
  for (const cuda_device &d : probe.devices)
    names += (names.empty() ? "" : ", ") + d.name;
  return {"GPU for the provider", grade::good, names, ""};
}

/// The way by which an adapter reaches memory of a GPU.
finding peer_memory_line(const system_files &files, const cuda_probe &probe) {
  if (files.exists("/sys/module/nvidia_peermem"))
    return {"peer memory", grade::good, "the module nvidia_peermem is loaded", ""};
  std::string without;
  bool exported = false;
  for (std::size_t n = 0; n < probe.devices.size(); ++n) {
    exported = exported || probe.devices[n].exports_dma_buf;
    if (!probe.devices[n].exports_dma_buf)
      without += fmt::format("{}GPU {}", without.empty() ? "" : ", ", n);
  }
  if (exported && without.empty())
    return {"peer memory", grade::good, "dma-buf; the module nvidia_peermem is not loaded", ""};
  if (exported)
    return {"peer memory", grade::warning, "dma-buf, but not for " + without,
            "choose another with --gpu, or as root: modprobe nvidia-peermem"};
  return {"peer memory", grade::wrong, "neither nvidia_peermem nor dma-buf: the adapter cannot write into a GPU",
          "as root: modprobe nvidia-peermem; or the open kernel modules of the driver, on Linux 5.12 or newer"};
}

/// Adapters that are only software: they reach no memory of a GPU.
std::vector<finding> software_adapter_lines(const system_files &files) {
  std::vector<finding> lines;
  for (const std::string &name : files.names("/sys/class/infiniband"))
    if (!files.exists("/sys/class/infiniband/" + name + "/device"))
      lines.push_back({"adapter " + name, grade::wrong, "is software: it cannot write into a GPU",
                       "name another with --device; for this one: serve --transport cpu_roce"});
  return lines;
}

} // namespace

std::vector<finding> gpu_roce_lines(const system_files &files, const cuda_probe &probe) {
  std::vector<finding> lines = {provider_line(), device_of_provider_line(probe), peer_memory_line(files, probe)};
  for (const auto &more : {rdma_lines(files), software_adapter_lines(files)})
    lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/doctor_checks.h"

#include "tools/info/gpu_pieces.h"

#include <cuda_runtime_api.h>

namespace cudaq::realtime::tools {
namespace {

finding driver_line(const cuda_probe &probe) {
  if (!probe.driver_found)
    return {"CUDA driver", grade::warning, probe.error,
            "handlers run on the CPU only; install the driver, version 580 or newer for CUDA 13"};
  if (!probe.error.empty())
    return {"CUDA driver", grade::wrong, probe.error, "look at dmesg and nvidia-smi; in a container: --gpus all"};
  if (probe.driver_version < CUDART_VERSION / 1000 * 1000)
    return {"CUDA driver", grade::wrong,
            fmt::format("serves up to CUDA {}, this build needs {}", format_cuda_version(probe.driver_version),
                        format_cuda_version(CUDART_VERSION)),
            "install a newer driver, or build with an older toolkit"};
  return {"CUDA driver", grade::good, "serves up to CUDA " + format_cuda_version(probe.driver_version), ""};
}

finding kernels_line() {
  const piece p = kernels_piece();
  return {p.name, p.present ? grade::good : grade::warning, p.detail, p.present ? "" : p.get};
}

finding device_line(const cuda_device &d, std::size_t number) {
  finding f{fmt::format("GPU {}", number), grade::good,
            fmt::format("{}, compute capability {}.{}", d.name, d.major, d.minor), ""};
  if (d.major < 9) {
    f.is = grade::warning;
    f.remedy = "graphs launched by the GPU need compute capability 9.0; dispatch kernels and host graphs work";
  }
  return f;
}

std::vector<finding> permission_lines(const system_files &files) {
  std::vector<finding> lines;
  for (const std::string &name : files.names("/dev"))
    if (name == "nvidiactl" || name == "nvidia-uvm" ||
        (name.starts_with("nvidia") && name.size() == 7 && name.back() >= '0' && name.back() <= '9'))
      if (!files.writable("/dev/" + name))
        lines.push_back({"/dev/" + name, grade::wrong, "this process may not read and write it",
                         "add the user to the group of the file, or change its mode by a udev rule"});
  return lines;
}

std::vector<finding> mapping_lines(const system_files &files, const cuda_probe &probe) {
  std::vector<finding> lines = {{"pinned rings", grade::good, "host memory that the GPU reads over the bus", ""}};
  if (files.exists("/dev/gdrdrv") && !files.writable("/dev/gdrdrv"))
    lines.push_back({"GDRCopy", grade::warning, "/dev/gdrdrv exists, but this process may not open it",
                     "change the mode of /dev/gdrdrv, or the user's group"});
  else if (files.exists("/dev/gdrdrv"))
    lines.push_back({"GDRCopy", grade::good, "/dev/gdrdrv", ""});
  bool coherent = false;
  for (const cuda_device &d : probe.devices)
    coherent = coherent || d.host_native_atomics;
  if (coherent)
    lines.push_back({"coherent memory", grade::good, "CPU and GPU share memory coherently", ""});
  for (std::size_t n = 0; n < probe.devices.size(); ++n) {
    const cuda_device &d = probe.devices[n];
    lines.push_back(
        {fmt::format("requests in memory of GPU {}", n), d.maps_requests ? grade::good : grade::warning,
         d.mapping_of_those,
         d.maps_requests
             ? ""
             : "install libvulkan1 and the Vulkan part of the driver: share/doc/cudaq-realtime/docs/guide/rings.md"});
  }
  return lines;
}

} // namespace

std::vector<finding> check_gpu(const system_files &files, const cuda_probe &probe) {
  std::vector<finding> lines = {driver_line(probe), kernels_line()};
  for (const finding &f : permission_lines(files))
    lines.push_back(f);
  for (std::size_t n = 0; n < probe.devices.size(); ++n)
    lines.push_back(device_line(probe.devices[n], n));
  if (!probe.devices.empty())
    for (const finding &f : mapping_lines(files, probe))
      lines.push_back(f);
  return lines;
}

} // namespace cudaq::realtime::tools

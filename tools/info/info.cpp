// SPDX-License-Identifier: Apache-2.0
#include "tools/info/info.h"

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/version.h"
#include "tools/common/machine.h"
#include "tools/common/system_files.h"
#include "tools/info/gpu_pieces.h"
#ifdef CUDAQ_TOOL_HAS_QEC
#include "cudaq/qec/decoding/decoder.h"
#endif

#include <filesystem>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

std::string version_text(std::uint32_t v) { return fmt::format("{}.{}.{}", v >> 16, v >> 8 & 0xff, v & 0xff); }

piece pymatching_piece() {
  piece p{"PyMatching", false, "",
          "the demo on distance 13 with a matching decoder; without it the built-in lookup "
          "table serves distance 3 only",
          "configure again with a network and python3-pip, or with -DCUDAQ_PYMATCHING_DIR=... -DCUDAQ_STIM_DIR=... "
          "that name unpacked sources"};
#ifdef CUDAQ_TOOL_HAS_QEC
  p.present = qec::realtime::pymatching_available();
  p.detail = p.present ? qec::realtime::pymatching_version() : "not built in";
#else
  p.detail = "this build has no decoders at all: configure with -DCUDAQ_REALTIME_BUILD_QEC=ON";
#endif
  return p;
}

piece nvcc_piece() {
  piece p{"CUDA compiler", false, "no nvcc in $CUDA_HOME/bin, $PATH or /usr/local/cuda/bin",
          "building handlers and kernels for the GPU paths", "install the CUDA toolkit 13 (package cuda-nvcc-13-0)"};
  std::vector<std::string> folders;
  if (const char *home = std::getenv("CUDA_HOME"); home != nullptr)
    folders.push_back(std::string(home) + "/bin");
  if (const char *path = std::getenv("PATH"); path != nullptr) {
    std::string_view rest = path;
    while (!rest.empty()) {
      const std::size_t colon = std::min(rest.find(':'), rest.size());
      folders.emplace_back(rest.substr(0, colon));
      rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
  }
  folders.emplace_back("/usr/local/cuda/bin");
  for (const std::string &folder : folders) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(folder + "/nvcc", error))
      continue;
    p.present = true;
    p.detail = folder + "/nvcc";
    break;
  }
  return p;
}

piece cores_piece() {
  const std::size_t cores = allowed_cores().size();
  return {
      "CPU cores", cores >= 2, fmt::format("{} usable by this process", cores),
      "with 2, client and dispatcher have a core each, so that measurements are useful; with 4, also the handler pool",
      "allow more in the container or with taskset"};
}

piece isolation_piece() {
  const std::vector<int> isolated = system_files("").isolated_cores();
  return {
      "isolated cores", !isolated.empty(), isolated.empty() ? "none" : fmt::format("{}", fmt::join(isolated, ", ")),
      "latency tails without other programs (p99.9 and max)",
      "boot with isolcpus=... nohz_full=... and name the cores with --core-dispatcher and the other --core-* options"};
}

piece realtime_piece() {
  const std::string limit = realtime_priority_limit();
  return {"realtime priority", !limit.empty(), limit.empty() ? "not allowed" : limit,
          "realtime_priority in the dispatcher's options (SCHED_FIFO)",
          "raise rtprio in /etc/security/limits.conf, or give the program CAP_SYS_NICE"};
}

piece numa_piece() {
  const bool built = (cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_NUMA) != 0;
  return {"NUMA placement", built,
          fmt::format("{}; this machine has {} node(s)", built ? "in the library" : "not in the library",
                      read_machine_info().numa_nodes),
          "rings and threads on the node of the GPU or network card", "a build on Linux with NUMA support switched on"};
}

piece hugepages_piece() {
  const long long free_pages = system_files("").free_huge_pages();
  return {"huge pages", free_pages > 0, fmt::format("{} free", free_pages),
          "fewer TLB misses on large rings (option hugepages)", "as root: echo 64 > /proc/sys/vm/nr_hugepages"};
}

piece cuda_memory_piece() {
  const bool built = (cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_CUDA_MEMORY) != 0;
  return {"CUDA ring memory", built,
          built ? fmt::format("in the library; headers of CUDA {}, runtime linked statically",
                              format_cuda_version(CUDART_VERSION))
                : "not in the library",
          "rings in pinned or device memory",
          "configure with -DCUDAQ_REALTIME_ENABLE_CUDA=ON and the toolkit installed"};
}

json piece_json(const piece &p) {
  json j = {{"present", p.present}, {"detail", p.detail}};
  if (!p.present)
    j.update({{"gives", p.gives}, {"get", p.get}});
  return j;
}

json devices_json(const cuda_probe &probe) {
  json devices = json::array();
  for (const cuda_device &d : probe.devices)
    devices.push_back({{"name", d.name},
                       {"compute_capability", fmt::format("{}.{}", d.major, d.minor)},
                       {"memory_bytes", d.memory_bytes},
                       {"host_native_atomics", d.host_native_atomics},
                       {"requests_in_memory", d.maps_requests},
                       {"requests_mapping", d.mapping_of_those}});
  return {{"driver_found", probe.driver_found},
          {"driver_cuda_version", probe.driver_version},
          {"header_cuda_version", CUDART_VERSION},
          {"error", probe.error},
          {"devices", devices}};
}

} // namespace

int run_info(const output &out) {
  const std::uint32_t library = cudaq_realtime_version();
  const bool fits = library_fits(CUDAQ_REALTIME_VERSION, library);
  const machine_info m = read_machine_info();
  const cuda_probe probe = probe_cuda();
  const std::vector<piece> pieces = {cores_piece(),         pymatching_piece(),  cuda_memory_piece(),
                                     kernels_piece(),       driver_piece(probe), devices_piece(probe),
                                     requests_piece(probe), nvcc_piece(),        numa_piece(),
                                     hugepages_piece(),     isolation_piece(),   realtime_piece()};
  const bool host_path = (cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_HOST_PATH) != 0;
  out.text("cudaq-realtime {} (built {} with {}); library {}{}\n", program_version(), CUDAQ_TOOL_BUILD_TYPE,
           __VERSION__, version_text(library),
           fits ? "" : ": WRONG VERSION, it must have the program's major and at least its minor version");
  out.text("{}, {} cores, {} {}{}\n", m.cpu_model, m.online_cores, m.kernel, m.architecture,
           m.virtual_machine ? ", virtual machine" : "");
  out.text("HOST_CALL dispatch on CPU threads: {}\n\n", host_path ? "yes" : "no");
  json parts = json::object();
  for (const piece &p : pieces) {
    out.text("{} {:<18} {}\n", p.present ? "  have" : "  LACK", p.name, p.detail);
    if (!p.present)
      out.text("       gives: {}\n       get:   {}\n", p.gives, p.get);
    parts[p.name] = piece_json(p);
  }
  return out.finish({{"header_version", version_text(CUDAQ_REALTIME_VERSION)},
                     {"library_version", version_text(library)},
                     {"features", {{"bits", cudaq_realtime_features()}, {"host_path", host_path}}},
                     {"build", {{"type", CUDAQ_TOOL_BUILD_TYPE}, {"compiler", __VERSION__}}},
                     {"cuda", devices_json(probe)},
                     {"pieces", parts}},
                    fits ? "" : "the library has another version than the program", kExitRefused);
}

} // namespace cudaq::realtime::tools

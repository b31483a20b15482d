// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/doctor_checks.h"
#include "tools/services/ucx_library.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/ranges.h>
#include <set>

namespace cudaq::realtime::tools {
namespace {

finding version_line(const std::string &version) {
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2 && (major > 1 || minor >= 13))
    return {"UCX", grade::good, "version " + version, ""};
  return {"UCX", grade::wrong, "version " + version, "install version 1.13 or newer, and build again"};
}

/// The transports among `wanted`, with their devices; a name with _ at its end stands for all that begin so.
std::vector<std::string> those_of(const std::vector<std::string> &resources, const std::vector<std::string> &wanted) {
  std::set<std::string> found;
  for (const std::string &resource : resources)
    for (const std::string &name : wanted)
      if (resource.starts_with(name + "/") || (name.ends_with('_') && resource.starts_with(name)))
        found.insert(resource);
  return {found.begin(), found.end()};
}

/// The variables of the environment with which UCX chooses transports and devices, each after "; ".
std::string chosen_by_environment() {
  std::string text;
  for (const char *const name : {"UCX_TLS", "UCX_NET_DEVICES"})
    if (const char *const value = std::getenv(name); value != nullptr)
      text += fmt::format("; {}={}", name, value);
  return text;
}

finding local_line(const std::vector<std::string> &resources, const std::string &chosen) {
  const auto memory = those_of(resources, {"posix", "sysv", "cma", "xpmem", "knem"});
  if (!memory.empty())
    return {"local nodes", grade::good, fmt::format("{}{}", fmt::join(memory, ", "), chosen), ""};
  return {"local nodes", grade::warning, "no shared memory" + chosen,
          "router and nodes of this machine talk over the network: let UCX_TLS include posix or sysv, or unset it"};
}

finding remote_line(const std::vector<std::string> &resources, const std::string &chosen) {
  const auto rdma = those_of(resources, {"rc_", "ud_", "dc_", "srd_"}), tcp = those_of(resources, {"tcp"});
  const auto outward = std::count_if(tcp.begin(), tcp.end(), [](const auto &name) { return name != "tcp/lo"; });
  if (!rdma.empty())
    return {"remote nodes", grade::good, fmt::format("{}{}", fmt::join(rdma, ", "), chosen), ""};
  if (outward != 0)
    return {
        "remote nodes", grade::warning, fmt::format("{}, no RDMA{}", fmt::join(tcp, ", "), chosen),
        "TCP takes longer: with an RDMA adapter load its driver (doctor --transport cpu_roce looks closer), and let "
        "UCX_TLS include it"};
  if (tcp.empty())
    return {"remote nodes", grade::wrong, "neither tcp nor RDMA, over which UCX connects local nodes, too" + chosen,
            "let UCX_TLS and UCX_NET_DEVICES include tcp and a network interface, or unset them"};
  return {
      "remote nodes", grade::warning, "none can be reached: tcp/lo is the only way" + chosen,
      "only nodes of this machine work: bring a network interface up, or let UCX_TLS and UCX_NET_DEVICES include it"};
}

} // namespace

std::vector<finding> ucx_lines() {
  std::unique_ptr<ucx_library> library;
  try {
    library = std::make_unique<ucx_library>("the transport");
  } catch (const std::runtime_error &e) {
    return {{"provider", grade::wrong, e.what(),
             "install UCX, and configure and build again: share/doc/cudaq-realtime/docs/building.md"}};
  }
  std::vector<finding> lines = {{"provider", grade::good, library->path(), ""}};
  try {
    const detail::ucx_description found = library->describe();
    const std::string chosen = chosen_by_environment();
    lines.push_back(version_line(found.version));
    lines.push_back(local_line(found.resources, chosen));
    lines.push_back(remote_line(found.resources, chosen));
  } catch (const std::runtime_error &e) {
    lines.push_back({"UCX", grade::wrong, e.what(), "unset UCX_TLS, or name transports that ucx_info -d lists"});
  }
  return lines;
}

} // namespace cudaq::realtime::tools

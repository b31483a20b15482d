// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/doctor_checks.h"

#include "tools/services/provider_service.h"

#include <cstdio>

namespace cudaq::realtime::tools {
namespace {

/// A socket that keeps others from a port. `state`: that of the socket in its table, as the system writes it; "": any.
struct port_tables {
  const char *protocol;
  const char *tables[2];
  const char *state;
  const char *free; ///< the meaning if no socket is found
};
constexpr port_tables kUdpTables = {"UDP", {"/proc/net/udp", "/proc/net/udp6"}, "", "free"};
constexpr port_tables kTcpTables = {"TCP", {"/proc/net/tcp", "/proc/net/tcp6"}, "0A", "no program listens at it"};

/// The inode of such a socket; 0: the port is free.
unsigned long long inode_of_port(const system_files &files, const char *table, const std::string &state, int port) {
  for (const std::string &l : files.lines(table)) {
    unsigned number = 0;
    unsigned long long inode = 0;
    char is[3] = "";
    // sl local_address rem_address st queues tr tm->when retrnsmt uid timeout inode
    if (std::sscanf(l.c_str(), " %*d: %*[0-9A-Fa-f]:%x %*s %2s %*s %*s %*s %*s %*s %llu", &number, is, &inode) == 3 &&
        static_cast<int>(number) == port && (state.empty() || state == is))
      return inode;
  }
  return 0;
}

/// "4711 (name)"; "" if the process is not visible to this user.
std::string process_with_socket(const system_files &files, unsigned long long inode) {
  const std::string wanted = fmt::format("socket:[{}]", inode);
  for (const std::string &pid : files.names("/proc")) {
    if (pid.find_first_not_of("0123456789") != std::string::npos)
      continue;
    const std::string folder = "/proc/" + pid + "/fd";
    for (const std::string &fd : files.names(folder))
      if (files.link(folder + "/" + fd) == wanted)
        return fmt::format("{} ({})", pid, files.line("/proc/" + pid + "/comm"));
  }
  return "";
}

finding port_line(const system_files &files, const port_tables &of, int port) {
  const std::string name = fmt::format("{} port {}", of.protocol, port);
  for (const char *table : of.tables)
    if (const unsigned long long inode = inode_of_port(files, table, of.state, port); inode != 0) {
      const std::string who = process_with_socket(files, inode);
      return {name, grade::wrong, "taken by " + (who.empty() ? "a process of another user" : "process " + who),
              "end that program, or choose another port; --port 0 takes a free one"};
    }
  return {name, grade::good, of.free, ""};
}

finding receive_buffer_line(const system_files &files) {
  const long long max_bytes = files.number("/proc/sys/net/core/rmem_max").value_or(0);
  const std::string text = fmt::format("at most {} bytes", max_bytes);
  if (max_bytes >= 4 << 20)
    return {"receive buffer", grade::good, text, ""};
  return {"receive buffer", grade::warning, text,
          "bursts are lost while the dispatcher is busy; as root: sysctl net.core.rmem_max=8388608"};
}

finding busy_poll_line(const system_files &files) {
  const long long us = files.number("/proc/sys/net/core/busy_read").value_or(0);
  if (us > 0)
    return {"busy polling", grade::good, fmt::format("{} us", us), ""};
  return {"busy polling", grade::warning, "off",
          "with a network card, each datagram waits for an interrupt; as root: sysctl net.core.busy_read=50 "
          "net.core.busy_poll=50 (loopback does not need it)"};
}

std::vector<finding> shm_lines(const system_files &files) {
  if (!files.writable("/dev/shm"))
    return {{"/dev/shm", grade::wrong, "this process may not create files there",
             "mount a tmpfs at /dev/shm with mode 1777; in a container: --ipc=host or --shm-size"}};
  return {{"/dev/shm", grade::good, "writable", ""}};
}

std::vector<finding> port_of_rdma(const system_files &files, const std::string &device, const std::string &port) {
  const std::string at = "/sys/class/infiniband/" + device + "/ports/" + port + "/";
  const std::string state = files.line(at + "state"), name = device + " port " + port;
  if (state.find("ACTIVE") == std::string::npos)
    return {{name, grade::wrong, "state " + (state.empty() ? "unknown" : state), "check the cable, and ip link"}};
  int usable = 0;
  for (const std::string &index : files.names(at + "gid_attrs/types"))
    usable += files.line(at + "gid_attrs/types/" + index) == "RoCE v2" &&
              files.line(at + "gids/" + index).find_first_not_of("0:") != std::string::npos;
  if (usable == 0)
    return {{name, grade::wrong, "active, but no RoCE v2 GID", "give its network interface an IPv4 address"}};
  return {{name, grade::good, fmt::format("active, {} RoCE v2 GIDs", usable), ""}};
}

} // namespace

/// Interfaces that have a device: the others are of the system itself.
std::vector<finding> network_card_lines(const system_files &files) {
  std::vector<finding> lines;
  for (const std::string &name : files.names("/sys/class/net")) {
    const std::string at = "/sys/class/net/" + name + "/";
    if (!files.exists(at + "device"))
      continue;
    const std::string state = files.line(at + "operstate");
    const long long speed = files.number(at + "speed").value_or(-1), mtu = files.number(at + "mtu").value_or(0);
    const std::string text = fmt::format("{}, {}, packets of {} bytes", state.empty() ? "state unknown" : state,
                                         speed > 0 ? fmt::format("{} Mb/s", speed) : "speed unknown", mtu);
    if (state == "down")
      lines.push_back(
          {"network card " + name, grade::warning, text,
           fmt::format("if the control system is connected to it: check the cable; as root: ip link set {} up", name)});
    else
      lines.push_back({"network card " + name, grade::good, text, ""});
  }
  if (lines.empty())
    lines.push_back({"network cards", grade::warning, "none", "only programs of this machine can be peers"});
  return lines;
}

std::vector<finding> rdma_lines(const system_files &files) {
  const std::vector<std::string> devices = files.names("/sys/class/infiniband");
  if (devices.empty())
    return {{"RDMA devices", grade::wrong, "none",
             "load the driver of the network card; without one, cpu_roce also takes soft-RoCE: rdma link add rxe0 type "
             "rxe netdev INTERFACE"}};
  std::vector<finding> lines;
  for (const std::string &device : devices)
    for (const std::string &port : files.names("/sys/class/infiniband/" + device + "/ports"))
      for (const finding &f : port_of_rdma(files, device, port))
        lines.push_back(f);
  for (const std::string &name : files.names("/dev/infiniband"))
    if (name.starts_with("uverbs") && !files.writable("/dev/infiniband/" + name))
      lines.push_back({"/dev/infiniband/" + name, grade::wrong, "this process may not read and write it",
                       "install rdma-core, or change the mode by a udev rule"});
  return lines;
}

std::vector<finding> gpu_request_lines(const cuda_probe &probe) {
  const std::string remedy =
      "install libvulkan1 and the Vulkan part of the driver (share/doc/cudaq-realtime/docs/guide/rings.md), or leave "
      "--requests gpu out: the requests are then in pinned memory";
  if (probe.devices.empty())
    return {{"requests gpu", grade::warning, "no client can map them: no GPU that CUDA knows",
             "leave --requests gpu out: the requests are then in host memory"}};
  std::vector<finding> lines;
  for (std::size_t n = 0; n < probe.devices.size(); ++n) {
    const cuda_device &d = probe.devices[n];
    const std::string name = fmt::format("requests gpu {}", n);
    if (!d.maps_requests)
      lines.push_back({name, grade::warning, "no client can map them: " + d.mapping_of_those, remedy});
    else if (d.maps_by_vulkan)
      lines.push_back({name, grade::good, "a client can map them: by Vulkan, with memory that processes share", ""});
    else
      lines.push_back({name, grade::warning,
                       "a client needs Vulkan, which was not tried: here another way was first: " + d.mapping_of_those,
                       remedy});
  }
  return lines;
}

std::vector<finding> own_provider_lines(const std::string &library, const std::vector<std::string> &options) {
  try {
    const provider_service service(provider_library(library), options, CUDAQ_WAIT_SPIN_YIELD);
    return {{"provider", grade::good,
             fmt::format("shape {}, {} slots of {} bytes; {}", service.shape(), service.num_slots(),
                         service.slot_bytes(), service.endpoint().empty() ? "no endpoint line" : service.endpoint()),
             ""},
            {"loopback", grade::warning, "not tested: doctor has no client of this provider",
             "start `serve --transport " + library + "`, and send from its peer"}};
  } catch (const std::exception &e) { // usage_error and api_error
    return {{"provider", grade::wrong, e.what(), "remove the reason that the text names"}};
  }
}

std::vector<finding> check_transport(const system_files &files, const cuda_probe &probe, const std::string &transport,
                                     int port) {
  const bool over_udp = transport == "udp" || transport == "roce";
  std::vector<finding> lines;
  if (transport == "shm") {
    lines = shm_lines(files);
    for (const finding &f : gpu_request_lines(probe))
      lines.push_back(f);
  } else if (transport == "cpu_roce") {
    lines = rdma_lines(files);
  } else if (transport == "ucx") {
    lines = ucx_lines();
  } else if (transport == "gpu-roce") {
    lines = gpu_roce_lines(files, probe);
  } else if (over_udp) {
    lines = {receive_buffer_line(files), busy_poll_line(files)};
    for (const finding &f : network_card_lines(files))
      lines.push_back(f);
  } else {
    throw usage_error("--transport: \"" + transport + "\" is not one of udp, roce, shm, cpu_roce, gpu-roce, ucx");
  }
  if (port == 0)
    return lines;
  if (transport == "shm" || transport == "gpu-roce")
    throw usage_error(fmt::format("--port {}: it has no effect with --transport {}", port, transport));
  lines.push_back(port_line(files, over_udp ? kUdpTables : kTcpTables, port));
  return lines;
}

} // namespace cudaq::realtime::tools

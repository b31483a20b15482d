// SPDX-License-Identifier: Apache-2.0
#include "unittests/support/program_paths.h"
#include "unittests/tools/doctor/made_up_machine.h"

namespace cudaq::realtime::tools::test {
namespace {

TEST(Doctor, JudgesThisMachineAndSendsARequestThroughADispatcher) {
  const program_result r = run_program("doctor --json");
  const auto j = r.json();
  ASSERT_FALSE(j.is_discarded()) << r.out << r.err;
  EXPECT_EQ(r.exit_code, j.at("wrong") == 0 ? 0 : 1);
  EXPECT_TRUE(contains(line_of(j, "self-test", "dispatcher"), ": one request through a ring and back in "));
  for (const auto &[part, lines] : j.at("parts").items())
    for (const auto &f : lines) {
      EXPECT_FALSE(f.at("detail").get<std::string>().empty()) << part << " " << f;
      EXPECT_EQ(f.contains("remedy"), f.at("verdict") != "good") << part << " " << f;
    }
}

TEST(Doctor, FindsNothingToChangeOnAPreparedMachine) {
  made_up_machine m;
  m.each_core("cpufreq/scaling_governor", "performance");
  m.each_core("cpuidle/state0/latency", "0");
  m.each_core("cpuidle/state1/latency", "900");
  m.each_core("cpuidle/state1/disable", "1");
  m.file("sys/devices/system/cpu/isolated", "2-3,8");
  m.file("proc/irq/9/effective_affinity_list", "0-1");
  m.file("sys/devices/system/cpu/online", "0-3");
  m.file("proc/loadavg", "2.00 9.00 9.00 9/99 999");
  m.file("proc/meminfo", "MemTotal: 5 kB\nHugePages_Free:       64");
  m.file("proc/cmdline", "quiet isolcpus=2-3,8 nohz_full=2-3,8 root=/dev/sda");
  m.file("proc/sys/kernel/sched_rt_runtime_us", "-1");
  m.file("proc/sys/kernel/sched_rt_period_us", "1000000");
  m.file("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc");
  m.file("dev/cpu_dma_latency", "");
  const auto j = m.doctor().json();
  EXPECT_EQ(line_of(j, "machine", "kernel options"), "good: isolcpus=2-3,8 nohz_full=2-3,8");
  EXPECT_EQ(line_of(j, "machine", "real-time throttling"), "good: off");
  EXPECT_EQ(line_of(j, "machine", "clock"), "good: tsc");
  EXPECT_EQ(line_of(j, "machine", "wake-up latency"), "good: this process may hold it (cpu_dma_latency_us)");
  EXPECT_TRUE(contains(line_of(j, "machine", "frequency governor"), "good: performance on"));
  EXPECT_EQ(line_of(j, "machine", "sleep states"), "good: none that the system reports");
  EXPECT_EQ(line_of(j, "machine", "isolated cores"), "good: 2, 3, 8");
  EXPECT_EQ(line_of(j, "machine", "interrupts"), "good: none goes to an isolated core");
  EXPECT_EQ(line_of(j, "machine", "load"), "good: 2.00 in the last minute, of 4 cores");
  EXPECT_EQ(line_of(j, "machine", "huge pages"), "good: 64 free");
}

TEST(Doctor, JudgesThePriorityAsTheSystemDoes) {
  // A child is asked: the line must agree, whatever the system grants here.
  const bool granted = std::system("chrt -f 1 true 2>/dev/null") == 0;
  const std::string line = line_of(run_program("doctor --json").json(), "machine", "realtime priority");
  EXPECT_EQ(line.starts_with("good: "), granted) << line;
}

TEST(Doctor, NamesWhatMakesAMachineSlow) {
  made_up_machine m;
  m.each_core("cpufreq/scaling_governor", "powersave");
  m.each_core("cpuidle/state2/latency", "133");
  m.each_core("cpuidle/state2/name", "C6");
  m.file("sys/devices/system/cpu/isolated", "2-3");
  m.file("proc/irq/9/effective_affinity_list", "3");
  m.file("proc/irq/11/effective_affinity_list", "0");
  m.file("sys/devices/system/cpu/online", "0-3");
  m.file("proc/loadavg", "2.01 0.00 0.00 9/99 999");
  m.file("proc/cmdline", "isolcpus=2-3");
  m.file("proc/sys/kernel/sched_rt_runtime_us", "950000");
  m.file("proc/sys/kernel/sched_rt_period_us", "1000000");
  m.file("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet");
  const auto j = m.doctor().json();
  EXPECT_EQ(line_of(j, "machine", "kernel options"), "warning: isolcpus=2-3, no nohz_full=");
  EXPECT_EQ(line_of(j, "machine", "real-time throttling"),
            "warning: threads of a real-time priority get 950000 of 1000000 us");
  EXPECT_EQ(line_of(j, "machine", "clock"), "warning: hpet");
  EXPECT_EQ(line_of(j, "machine", "wake-up latency"), "good: the system has no /dev/cpu_dma_latency");
  EXPECT_TRUE(contains(line_of(j, "machine", "frequency governor"), "warning: powersave on"));
  EXPECT_EQ(line_of(j, "machine", "sleep states"), "warning: C6 takes 133 us to leave");
  EXPECT_EQ(line_of(j, "machine", "interrupts"), "warning: 1 go to isolated cores: 9");
  EXPECT_EQ(line_of(j, "machine", "load"), "warning: 2.01 in the last minute, of 4 cores");
  EXPECT_EQ(line_of(j, "machine", "huge pages"), "warning: none free");
}

TEST(Doctor, SeesTheQuotaOfAContainer) {
  struct control_group {
    const char *name, *file, *value;
  };
  for (const control_group &g : {control_group{"0::/", "sys/fs/cgroup/cpu.max", "10000 100000"},
                                 {"0::/a.slice/b", "sys/fs/cgroup/a.slice/cpu.max", "10000 100000"},
                                 {"3:cpu,cpuacct:/c", "sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "10000"}}) {
    made_up_machine m;
    m.file("proc/self/cgroup", std::string("7:cpuset:/x\n") + g.name);
    m.file("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000");
    m.file("sys/fs/cgroup/a.slice/b/cpu.max", "max 100000");
    m.file(g.file, g.value);
    const std::string line = line_of(m.doctor().json(), "machine", "cores");
    EXPECT_TRUE(line.starts_with("wrong: ") && contains(line, "a quota gives it the time of 0.1")) << g.name << line;
  }
}

TEST(Doctor, NamesTheProcessThatHasThePort) {
  made_up_machine m;
  m.file("proc/net/udp",
         "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
         " ref pointer drops\n  105: 0100007F:1388 00000000:0000 07 00000000:00000000 00:00000000 "
         "00000000     0        0 4242 2 0000000000000000 0");
  m.file("proc/777/comm", "other-server");
  m.link("proc/777/fd/5", "socket:[4242]");
  const program_result r = m.doctor("--transport udp --port 5000");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_EQ(line_of(r.json(), "transport udp", "UDP port 5000"), "wrong: taken by process 777 (other-server)");
  EXPECT_EQ(line_of(m.doctor("--transport udp --port 5001").json(), "transport udp", "UDP port 5001"), "good: free");
}

// Only a socket that listens keeps others from a TCP port.
TEST(Doctor, NamesTheProcessThatListensAtATcpPort) {
  made_up_machine m;
  const auto row = [](const char *local, const char *state, const char *inode) {
    return std::string("   0: ") + local + " 00000000:0000 " + state +
           " 00000000:00000000 00:00000000 00000000     0 " + "       0 " + inode +
           " 1 0000000000000000 100 0 0 10 0\n";
  };
  const std::string head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
                           "inode\n";
  m.file("proc/net/tcp", head + row("0100007F:1388", "01", "4241") + row("0100007F:1389", "0A", "4242"));
  m.file("proc/net/tcp6", head + row("00000000000000000000000000000000:138A", "0A", "4243"));
  m.file("proc/net/udp", head + row("0100007F:138B", "07", "4244"));
  m.file("proc/777/comm", "other-server");
  m.link("proc/777/fd/5", "socket:[4242]");
  for (const std::string transport : {"cpu_roce", "ucx"}) {
    const auto port = [&](const std::string &number) {
      const std::string name = "TCP port " + number;
      return line_of(m.doctor("--transport " + transport + " --port " + number).json(), "transport " + transport, name);
    };
    EXPECT_EQ(port("5000"), "good: no program listens at it") << "a connection is no listener";
    EXPECT_EQ(port("5001"), "wrong: taken by process 777 (other-server)");
    EXPECT_EQ(port("5002"), "wrong: taken by a process of another user");
    EXPECT_EQ(port("5003"), "good: no program listens at it") << "UDP has ports of its own";
  }
}

TEST(Doctor, SaysThatNoRequestWentThroughAnAdapter) {
  const auto j = run_program("doctor --json --transport cpu_roce").json();
  EXPECT_TRUE(contains(line_of(j, "self-test", "loopback"), "warning: not tested: that needs an RDMA adapter"));
}

TEST(Doctor, JudgesThePortsOfRdmaDevices) {
  made_up_machine m;
  const std::string port = "sys/class/infiniband/rxe0/ports/1/";
  EXPECT_EQ(line_of(m.doctor("--transport cpu_roce").json(), "transport cpu_roce", "RDMA devices"), "wrong: none");
  m.file(port + "state", "1: DOWN");
  EXPECT_EQ(line_of(m.doctor("--transport cpu_roce").json(), "transport cpu_roce", "rxe0 port 1"),
            "wrong: state 1: DOWN");
  m.file(port + "state", "4: ACTIVE");
  m.file(port + "gid_attrs/types/0", "IB/RoCE v1");
  m.file(port + "gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001");
  EXPECT_EQ(line_of(m.doctor("--transport cpu_roce").json(), "transport cpu_roce", "rxe0 port 1"),
            "wrong: active, but no RoCE v2 GID");
  m.file(port + "gid_attrs/types/1", "RoCE v2");
  m.file(port + "gids/1", "0000:0000:0000:0000:0000:ffff:0a09:0001");
  EXPECT_EQ(line_of(m.doctor("--transport cpu_roce").json(), "transport cpu_roce", "rxe0 port 1"),
            "good: active, 1 RoCE v2 GIDs");
}

TEST(Doctor, SendsARequestThroughEachTransport) {
  for (const char *transport : {"udp", "roce", "shm"}) {
    const auto j = run_program(std::string("doctor --json --transport ") + transport).json();
    EXPECT_TRUE(contains(line_of(j, "self-test", "loopback"),
                         ": one request through client, provider and dispatcher and back in "))
        << transport << ": " << line_of(j, "self-test", "loopback");
  }
  EXPECT_EQ(line_of(run_program("doctor --json").json(), "self-test", "loopback"), "no such line");
}

TEST(Doctor, ListsNetworkCards) {
  made_up_machine m;
  m.file("sys/class/net/lo/operstate", "unknown");
  EXPECT_EQ(line_of(m.doctor("--transport udp").json(), "transport udp", "network cards"), "warning: none");
  for (const std::string card : {"eth0", "eth1"}) {
    m.file("sys/class/net/" + card + "/device/vendor", "0x15b3");
    m.file("sys/class/net/" + card + "/mtu", "9000");
    m.file("sys/class/net/" + card + "/speed", card == "eth0" ? "100000" : "-1");
    m.file("sys/class/net/" + card + "/operstate", card == "eth0" ? "up" : "down");
  }
  const auto j = m.doctor("--transport roce").json();
  EXPECT_EQ(line_of(j, "transport roce", "network card eth0"), "good: up, 100000 Mb/s, packets of 9000 bytes");
  EXPECT_EQ(line_of(j, "transport roce", "network card eth1"), "warning: down, speed unknown, packets of 9000 bytes");
}

// doctor --transport gpu-roce, with a provider and without one. The lines about a GPU depend on this machine, so only
// what holds on every machine is compared.

/// Runs a copy of the program far from the build tree: it finds no provider except beside itself.
program_result doctor(const made_up_machine &m) {
  const auto copy = m.path() / "cudaq-realtime";
  if (!std::filesystem::exists(copy))
    std::filesystem::copy_file(CUDAQ_TOOL_PATH, copy);
  return run_program("doctor --json --transport gpu-roce --root '" + m.path().string() + "'", copy);
}

std::string judged(const made_up_machine &m, const std::string &name) {
  const program_result r = doctor(m);
  return line_of(r.json(), name == "loopback" ? "self-test" : "transport gpu-roce", name);
}

TEST(DoctorGpuRoce, SaysThatTheLibraryIsNotThere) {
  const made_up_machine m;
  EXPECT_TRUE(contains(judged(m, "provider"), "wrong: libcudaq-realtime-bridge-gpu-roce.so: "))
      << judged(m, "provider");
  EXPECT_EQ(doctor(m).exit_code, 1);
}

TEST(DoctorGpuRoce, NamesTheLibraryBesideTheProgram) {
  const made_up_machine m;
  const auto library = m.path() / "libcudaq-realtime-bridge-gpu-roce.so";
  std::filesystem::create_symlink(CUDAQ_UDP_PROVIDER, library);
  EXPECT_EQ(judged(m, "provider"), "good: " + library.string());
}

TEST(DoctorGpuRoce, JudgesGpuAndPeerMemory) {
  made_up_machine m;
  EXPECT_TRUE(contains(judged(m, "GPU for the provider"), ": ")) << judged(m, "GPU for the provider");
  const std::string without = judged(m, "peer memory");
  EXPECT_TRUE(contains(without, "wrong: neither nvidia_peermem nor dma-buf") || contains(without, "dma-buf"))
      << without;
  m.file("sys/module/nvidia_peermem/refcnt", "0");
  EXPECT_EQ(judged(m, "peer memory"), "good: the module nvidia_peermem is loaded");
}

TEST(DoctorGpuRoce, RefusesAdaptersThatAreSoftware) {
  made_up_machine m;
  EXPECT_EQ(judged(m, "RDMA devices"), "wrong: none");
  for (const std::string adapter : {"mlx5_0", "rxe0"}) {
    const std::string at = "sys/class/infiniband/" + adapter + "/";
    m.file(at + "ports/1/state", "4: ACTIVE");
    m.file(at + "ports/1/gid_attrs/types/1", "RoCE v2");
    m.file(at + "ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:0a09:0001");
  }
  m.file("sys/class/infiniband/mlx5_0/device/vendor", "0x15b3");
  EXPECT_EQ(judged(m, "mlx5_0 port 1"), "good: active, 1 RoCE v2 GIDs");
  EXPECT_EQ(judged(m, "adapter mlx5_0"), "no such line");
  EXPECT_EQ(judged(m, "adapter rxe0"), "wrong: is software: it cannot write into a GPU");
}

TEST(DoctorGpuRoce, SaysThatNoRequestWasSent) {
  EXPECT_EQ(judged(made_up_machine(), "loopback"),
            "warning: not tested: that needs an RDMA adapter, a GPU, and a peer that sends");
}

} // namespace
} // namespace cudaq::realtime::tools::test

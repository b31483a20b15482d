// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/doctor_checks.h"

#include "tools/services/thread_rights.h"

#include <algorithm>
#include <charconv>
#include <fmt/ranges.h>
#include <map>
#include <sstream>
#include <sys/resource.h>

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kCpu = "/sys/devices/system/cpu/";

finding cores_line(const system_files &files, const std::vector<int> &cores) {
  finding f{"cores", grade::good, fmt::format("{} usable by this process", cores.size()), ""};
  if (const auto quota = files.cpu_quota(); quota && *quota < static_cast<double>(cores.size())) {
    f.detail += fmt::format("; a quota gives it the time of {:.3g}", *quota);
    f.is = *quota < 2 ? grade::wrong : grade::warning;
    f.remedy = "with the quota used up, all threads stop until its next period, often for 100 ms: give the container "
               "whole cores (--cpuset-cpus) in place of a share (--cpus)";
  } else if (cores.size() < 2) {
    f.is = grade::wrong;
    f.remedy = "dispatcher and client need a core each: allow two or more in the container or with taskset";
  } else if (cores.size() < 4) {
    f.is = grade::warning;
    f.remedy = "with 4 or more, the system and the handlers do not use the cores of dispatcher and client";
  }
  return f;
}

/// Dispatcher and client spin, each on a core of its own.
finding load_line(const system_files &files) {
  const std::string average = files.line("/proc/loadavg"); // "0.12 0.34 0.56 1/234 5678"
  const std::size_t online = parse_cpu_list(files.line(std::string(kCpu) + "online")).size();
  double load = 0;
  if (std::from_chars(average.data(), average.data() + average.size(), load).ec != std::errc() || online == 0)
    return {"load", grade::good, "not known", ""};
  const std::string text = fmt::format("{:.2f} in the last minute, of {} cores", load, online);
  if (load <= std::max(0.5, static_cast<double>(online) - 2))
    return {"load", grade::good, text, ""};
  return {"load", grade::warning, text,
          "other programs take the cores of dispatcher and client, latencies grow to milliseconds; end them (top), or "
          "give them other cores (taskset)"};
}

finding governor_line(const system_files &files, const std::vector<int> &cores) {
  std::map<std::string, int> count;
  for (const int core : cores)
    if (const std::string g = files.line(fmt::format("{}cpu{}/cpufreq/scaling_governor", kCpu, core)); !g.empty())
      ++count[g];
  if (count.empty())
    return {"frequency governor", grade::good, "none: the system does not change the frequency", ""};
  std::string text;
  for (const auto &[governor, number] : count)
    text += fmt::format("{}{} on {} cores", text.empty() ? "" : ", ", governor, number);
  if (count.size() == 1 && count.contains("performance"))
    return {"frequency governor", grade::good, text, ""};
  return {"frequency governor", grade::warning, text,
          "a core that was idle is slow at first; as root: cpupower frequency-set -g performance"};
}

finding sleep_line(const system_files &files, const std::vector<int> &cores) {
  long long worst = 0;
  std::string name;
  for (const int core : cores) {
    const std::string folder = fmt::format("{}cpu{}/cpuidle", kCpu, core);
    for (const std::string &state : files.names(folder)) {
      const std::string at = fmt::format("{}/{}/", folder, state);
      const long long latency = files.number(at + "latency").value_or(0);
      if (files.number(at + "disable").value_or(0) == 0 && latency > worst) {
        worst = latency;
        name = files.line(at + "name");
      }
    }
  }
  if (worst <= 2)
    return {"sleep states", grade::good, worst == 0 ? "none that the system reports" : "only light ones", ""};
  return {"sleep states", grade::warning, fmt::format("{} takes {} us to leave", name, worst),
          "threads that wait by `block` wake up late; as root: cpupower idle-set -D 2, or boot with "
          "intel_idle.max_cstate=1"};
}

finding isolation_line(const std::vector<int> &isolated) {
  if (!isolated.empty())
    return {"isolated cores", grade::good, fmt::format("{}", fmt::join(isolated, ", ")), ""};
  return {"isolated cores", grade::warning, "none",
          "other programs lengthen p99.9; boot with isolcpus=... nohz_full=... and name these cores with --core-..."};
}

finding interrupts_line(const system_files &files, const std::vector<int> &isolated) {
  if (isolated.empty())
    return {"interrupts", grade::good, "not judged: there are no isolated cores", ""};
  std::vector<std::string> misrouted;
  for (const std::string &irq : files.names("/proc/irq")) {
    const std::vector<int> where = parse_cpu_list(files.line("/proc/irq/" + irq + "/effective_affinity_list"));
    if (std::any_of(where.begin(), where.end(),
                    [&](int cpu) { return std::find(isolated.begin(), isolated.end(), cpu) != isolated.end(); }))
      misrouted.push_back(irq);
  }
  if (misrouted.empty())
    return {"interrupts", grade::good, "none goes to an isolated core", ""};
  return {"interrupts", grade::warning,
          fmt::format("{} go to isolated cores: {}", misrouted.size(), fmt::join(misrouted, ", ")),
          "as root: echo CORES > /proc/irq/NUMBER/smp_affinity_list, and stop irqbalance"};
}

finding huge_pages_line(const system_files &files) {
  const long long free_pages = files.free_huge_pages();
  if (free_pages > 0)
    return {"huge pages", grade::good, fmt::format("{} free", free_pages), ""};
  return {"huge pages", grade::warning, "none free",
          "large rings miss the TLB; as root: echo 64 > /proc/sys/vm/nr_hugepages"};
}

/// What of the kernel's command line keeps other work away from cores.
finding kernel_options_line(const system_files &files, const std::vector<int> &isolated) {
  std::string found;
  std::istringstream words(files.line("/proc/cmdline"));
  for (std::string word; words >> word;)
    for (const char *name : {"isolcpus=", "nohz_full=", "rcu_nocbs=", "irqaffinity=", "idle=", "intel_idle.max_cstate=",
                             "processor.max_cstate="})
      if (word.starts_with(name))
        found += (found.empty() ? "" : " ") + word;
  if (isolated.empty() || found.find("nohz_full=") != std::string::npos)
    return {"kernel options", grade::good, found.empty() ? "none for cores of their own" : found, ""};
  return {"kernel options", grade::warning, found.empty() ? "no nohz_full=" : found + ", no nohz_full=",
          "the timer stops isolated cores up to 1000 times a second; boot with nohz_full=... rcu_nocbs=..."};
}

/// Of FIFO threads that spin.
finding throttling_line(const system_files &files) {
  const auto runtime = files.number("/proc/sys/kernel/sched_rt_runtime_us"),
             period = files.number("/proc/sys/kernel/sched_rt_period_us");
  if (!runtime || !period || *runtime < 0 || *runtime >= *period)
    return {"real-time throttling", grade::good, runtime ? "off" : "not known", ""};
  return {
      "real-time throttling", grade::warning,
      fmt::format("threads of a real-time priority get {} of {} us", *runtime, *period),
      "one that spins stops for the rest, which is in p99.9; as root: echo -1 > /proc/sys/kernel/sched_rt_runtime_us"};
}

finding clock_line(const system_files &files) {
  const std::string source = files.line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  if (source != "hpet" && source != "acpi_pm" && source != "jiffies")
    return {"clock", grade::good, source.empty() ? "not known" : source, ""};
  return {"clock", grade::warning, source, "reading the time takes a microsecond; boot with clocksource=tsc"};
}

finding wake_up_line(const system_files &files) {
  constexpr const char *kDevice = "/dev/cpu_dma_latency";
  if (!files.exists(kDevice))
    return {"wake-up latency", grade::good, "the system has no /dev/cpu_dma_latency", ""};
  if (files.writable(kDevice))
    return {"wake-up latency", grade::good, "this process may hold it (cpu_dma_latency_us)", ""};
  return {"wake-up latency", grade::warning, "this process may not hold it",
          "cores that sleep wake up late; give the user of the server the right to write to /dev/cpu_dma_latency"};
}

std::string limit_text(rlim_t value) { return value == RLIM_INFINITY ? "unlimited" : fmt::format("{}", value); }

/// The limit alone does not say it: control groups may refuse, too.
finding priority_line() {
  if (refused_placement(-1, 1).empty()) {
    const std::string limit = realtime_priority_limit();
    return {"realtime priority", grade::good, limit.empty() ? "allowed, by CAP_SYS_NICE" : limit, ""};
  }
  return {"realtime priority", grade::warning, "not allowed",
          "the option realtime_priority is refused; raise rtprio in /etc/security/limits.conf, or give CAP_SYS_NICE"};
}

finding locked_memory_line() {
  rlimit limit{};
  constexpr rlim_t enough = rlim_t{64} << 20;
  if (may_lock_all_memory())
    return {"locked memory", grade::good, "unlimited, by CAP_IPC_LOCK", ""};
  const bool known = getrlimit(RLIMIT_MEMLOCK, &limit) == 0;
  if (known && limit.rlim_cur >= enough)
    return {"locked memory", grade::good, limit_text(limit.rlim_cur), ""};
  return {"locked memory", grade::warning, known ? limit_text(limit.rlim_cur) + " bytes" : "unknown",
          "large pinned or registered rings fail; raise memlock in /etc/security/limits.conf to 64 MiB or more"};
}

} // namespace

std::vector<finding> check_machine(const system_files &files, const std::vector<int> &cores) {
  const std::vector<int> isolated = files.isolated_cores();
  return {cores_line(files, cores),
          load_line(files),
          governor_line(files, cores),
          sleep_line(files, cores),
          isolation_line(isolated),
          interrupts_line(files, isolated),
          kernel_options_line(files, isolated),
          clock_line(files),
          wake_up_line(files),
          throttling_line(files),
          huge_pages_line(files),
          priority_line(),
          locked_memory_line()};
}

} // namespace cudaq::realtime::tools

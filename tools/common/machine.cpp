// SPDX-License-Identifier: Apache-2.0
#include "tools/common/machine.h"

#include "tools/common/report.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <thread>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

constexpr int kMaxCpus = 4096;
struct cpu_set_deleter {
  void operator()(cpu_set_t *set) const noexcept { CPU_FREE(set); }
};

/// The value of the first line of /proc/cpuinfo that begins with one of the keys.
std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    for (const char *key : {"model name", "Model", "cpu model"})
      if (line.rfind(key, 0) == 0 && line.find(": ") != std::string::npos)
        return line.substr(line.find(": ") + 2);
  return "unknown";
}

bool has_hypervisor_flag() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("flags", 0) == 0)
      return (line + " ").find(" hypervisor ") != std::string::npos;
  return false;
}

unsigned count_numa_nodes() {
  unsigned nodes = 0;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator("/sys/devices/system/node", error))
    if (entry.path().filename().string().rfind("node", 0) == 0)
      ++nodes;
  return nodes;
}

std::string topology(int cpu, const char *word) {
  return read_line("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + word);
}

} // namespace

std::string read_line(const std::string &path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

machine_info read_machine_info() {
  machine_info m;
  m.cpu_model = cpu_model();
  utsname name{};
  if (uname(&name) == 0) {
    m.architecture = name.machine;
    m.kernel = std::string(name.sysname) + " " + name.release;
  }
  m.governor = read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  m.online_cores = std::thread::hardware_concurrency();
  m.numa_nodes = count_numa_nodes();
  m.virtual_machine = has_hypervisor_flag();
  return m;
}

std::vector<int> allowed_cores() {
  std::vector<int> cores;
  const std::unique_ptr<cpu_set_t, cpu_set_deleter> set(CPU_ALLOC(kMaxCpus));
  const std::size_t bytes = CPU_ALLOC_SIZE(kMaxCpus);
  if (set && sched_getaffinity(0, bytes, set.get()) == 0)
    for (int cpu = 0; cpu < kMaxCpus; ++cpu)
      if (CPU_ISSET_S(static_cast<unsigned>(cpu), bytes, set.get()))
        cores.push_back(cpu);
  if (cores.empty())
    cores.push_back(0);
  return cores;
}

std::pair<int, int> pick_two_cores(const std::vector<int> &allowed) {
  const int first = allowed.front();
  const auto same_core = [&](int cpu) {
    const std::string id = topology(first, "core_id");
    return !id.empty() && id == topology(cpu, "core_id") &&
           topology(first, "physical_package_id") == topology(cpu, "physical_package_id");
  };
  for (const int cpu : allowed)
    if (cpu != first && !same_core(cpu))
      return {first, cpu};
  return {first, allowed.back()};
}

std::string pin_this_thread(int core) {
  if (core < 0)
    return "";
  if (core >= kMaxCpus)
    return "core " + std::to_string(core) + ": it does not exist";
  const std::unique_ptr<cpu_set_t, cpu_set_deleter> set(CPU_ALLOC(kMaxCpus));
  const std::size_t bytes = CPU_ALLOC_SIZE(kMaxCpus);
  CPU_ZERO_S(bytes, set.get());
  CPU_SET_S(static_cast<unsigned>(core), bytes, set.get());
  if (sched_setaffinity(0, bytes, set.get()) == 0)
    return "";
  return "core " + std::to_string(core) + ": " + std::strerror(errno);
}

void require_core(const char *option, int core) {
  if (core < 0)
    return;
  std::string reason;
  std::thread([&] { reason = pin_this_thread(core); }).join(); // this thread keeps its cores
  if (reason.empty())
    return;
  std::string allowed;
  for (const int usable : allowed_cores())
    allowed += (allowed.empty() ? "" : ", ") + std::to_string(usable);
  throw usage_error(
      fmt::format("{}: a thread cannot run on {}; the cores of this process are {}", option, reason, allowed));
}

void require_cores(const thread_cores &cores, int workers) {
  require_core("--core-producer", cores.producer);
  require_core("--core-consumer", cores.consumer);
  require_core("--core-dispatcher", cores.dispatcher);
  for (int worker = 0; cores.workers >= 0 && worker < workers; ++worker)
    require_core("--core-workers", cores.workers + worker);
}

std::uint64_t involuntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<std::uint64_t>(usage.ru_nivcsw);
}

std::string program_folder() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

std::string utc_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

} // namespace cudaq::realtime::tools

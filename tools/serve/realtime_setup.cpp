// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/realtime_setup.h"

#include "tools/common/machine.h"
#include "tools/common/system_files.h"
#include "tools/services/thread_rights.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

using cudaq::qec::realtime::realtime_config;

rlim_t locked_memory_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 ? limit.rlim_cur : 0;
}

/// With a limit, locked memory that is made later would be refused: no decoder could be made any more.
int lock_flags() {
  const bool is_unlimited = locked_memory_limit() == RLIM_INFINITY || may_lock_all_memory();
  return is_unlimited ? MCL_CURRENT | MCL_FUTURE : MCL_CURRENT;
}

} // namespace

realtime_calls realtime_calls::of_this_system() {
  return {&tools::refused_placement, &mlockall, "/dev/cpu_dma_latency", read_line("/sys/devices/system/cpu/possible")};
}

realtime_setup::realtime_setup(const std::string &option, realtime_calls calls) : calls_(std::move(calls)) {
  if (option.empty())
    return;
  auto read = cudaq::qec::realtime::read_realtime_config(option);
  if (read.failed())
    refuse(read.status() != CUDAQ_ERR_INVALID_ARG, fmt::format("--realtime \"{}\": {}", option, read.text()));
  has_option_ = true;
  option_ = *read;
}

realtime_setup::~realtime_setup() {
  if (dma_latency_fd_ >= 0)
    close(dma_latency_fd_);
}

void realtime_setup::note(std::string what, std::string why) {
  if (const auto earlier = std::ranges::find(steps_, what, &realtime_step::what); earlier != steps_.end())
    earlier->why = std::move(why);
  else
    steps_.push_back({std::move(what), std::move(why)});
}

bool realtime_setup::grant(const std::string &what, int core, int priority) {
  std::string why = calls_.refused_placement(core, priority);
  const bool is_granted = why.empty();
  const std::vector<int> cores = parse_cpu_list(calls_.cores);
  if (!is_granted && core != CUDAQ_CORE_ANY && !cores.empty() && std::ranges::find(cores, core) == cores.end())
    throw usage_error(fmt::format("realtime: {}: this machine has the cores {}", what, calls_.cores));
  if (!is_granted)
    why += (priority != 0 ? "; give the process CAP_SYS_NICE, or raise RLIMIT_RTPRIO (systemd: LimitRTPRIO=)"
                          : fmt::format("; the process may use the cores {}", fmt::join(allowed_cores(), ", ")));
  note(what, std::move(why));
  return is_granted;
}

void realtime_setup::adjust(cudaq::qec::realtime::server_config &config) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (has_option_)
    config.realtime = option_;
  if (is_adjusted_) {
    if (config.realtime == wanted_)
      config.realtime = granted_;
    return;
  }
  is_adjusted_ = true;
  wanted_ = config.realtime;
  realtime_config &r = config.realtime;
  if (r.loop_core != CUDAQ_CORE_ANY && !grant(fmt::format("loop_core {}", r.loop_core), r.loop_core, 0))
    r.loop_core = CUDAQ_CORE_ANY;
  for (const auto &[name, cores] : {std::pair{"pool_cores", &r.pool_cores}, {"stream_cores", &r.stream_cores}})
    std::erase_if(*cores, [&, field = name](int core) { return !grant(fmt::format("{} {}", field, core), core, 0); });
  if (r.priority != 0 && !grant(fmt::format("priority {}", r.priority), CUDAQ_CORE_ANY, r.priority))
    r.priority = 0;
  granted_ = r;
  check_required(r);
}

void realtime_setup::check_required(const realtime_config &section) const {
  std::string refused;
  for (const realtime_step &step : steps_)
    if (section.required && !step.why.empty())
      refused += fmt::format("{}{}: {}", refused.empty() ? "" : "; ", step.what, step.why);
  if (!refused.empty())
    throw std::runtime_error("realtime: it is required, and not all of it can be applied: " + refused);
}

std::string realtime_setup::lock_memory() const {
  if (calls_.lock_all(lock_flags()) == 0)
    return "";
  const std::string failure = std::strerror(errno);
  const rlim_t limit = locked_memory_limit();
  return fmt::format("mlockall: {}; RLIMIT_MEMLOCK is {}: give the process CAP_IPC_LOCK, or raise the limit (systemd: "
                     "LimitMEMLOCK=infinity)",
                     failure, limit == RLIM_INFINITY ? "unlimited" : fmt::format("{} bytes", limit));
}

void realtime_setup::apply(const realtime_config &granted) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (granted.lock_memory)
    note("lock_memory", lock_memory());
  if (granted.cpu_dma_latency_us < 0)
    return check_required(granted);
  const auto us = static_cast<std::int32_t>(granted.cpu_dma_latency_us);
  if (dma_latency_fd_ < 0)
    dma_latency_fd_ = open(calls_.dma_latency.c_str(), O_WRONLY | O_CLOEXEC);
  // The request lasts as long as the device is open.
  const bool held = dma_latency_fd_ >= 0 && write(dma_latency_fd_, &us, sizeof us) == sizeof us;
  note(fmt::format("cpu_dma_latency_us {}", us),
       held ? ""
            : fmt::format("{}: {}; give the user of the server the right to write to this device", calls_.dma_latency,
                          std::strerror(errno)));
  check_required(granted);
}

std::string realtime_setup::lock_again(const realtime_config &granted) const {
  return granted.lock_memory ? lock_memory() : "";
}

std::vector<realtime_step> realtime_setup::steps() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return steps_;
}

json realtime_setup::as_json() const {
  const std::vector<realtime_step> made = steps();
  json all = made.empty() ? json() : json::array();
  for (const realtime_step &step : made)
    all.push_back({{"what", step.what}, {"applied", step.why.empty()}, {"why", step.why}});
  return all;
}

} // namespace cudaq::realtime::tools

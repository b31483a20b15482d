// SPDX-License-Identifier: Apache-2.0
#include "lib/base/affinity.h"

#include <charconv>
#include <cstring>
#include <fstream>
#include <pthread.h>
#include <sched.h>

namespace cudaq::realtime::detail {
namespace {

expected<> pin_to(const std::vector<int> &cpus, const char *field, int value) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) {
    if (cpu < 0 || cpu >= CPU_SETSIZE)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s %d: the largest CPU number is %d", field, value, CPU_SETSIZE - 1);
    CPU_SET(cpu, &set);
  }
  if (const int error = pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
    return make_reason(CUDAQ_ERR_INTERNAL, "%s %d: the system refused the affinity: %s", field, value,
                       std::strerror(error));
  return {};
}

} // namespace

std::vector<int> cpus_in_list(const std::string &list) {
  std::vector<int> cpus;
  const char *at = list.data();
  const char *const end = at + list.size();
  const auto number = [&](int &value) {
    const auto [after, code] = std::from_chars(at, end, value);
    at = after;
    return code == std::errc{};
  };
  int first = 0;
  while (number(first)) {
    int last = first;
    if (at != end && *at == '-' && (++at, !number(last)))
      break;
    for (int cpu = first; cpu <= last; ++cpu)
      cpus.push_back(cpu);
    if (at != end && *at == ',')
      ++at;
  }
  return cpus;
}

std::vector<int> cpus_of_node(int node) {
  std::ifstream file("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
  std::string list;
  std::getline(file, list);
  return cpus_in_list(list);
}

expected<> place_this_thread(const thread_placement &placement) {
  if (placement.core != CUDAQ_CORE_ANY) {
    if (expected<> result = pin_to({placement.core}, "core", placement.core); result.failed())
      return result;
  } else if (placement.numa_node != CUDAQ_NUMA_NODE_ANY) {
    const std::vector<int> cpus = cpus_of_node(placement.numa_node);
    if (cpus.empty())
      return make_reason(CUDAQ_ERR_INVALID_ARG, "numa_node %d: this node does not exist, or it has no CPUs",
                         placement.numa_node);
    if (expected<> result = pin_to(cpus, "numa_node", placement.numa_node); result.failed())
      return result;
  }
  if (placement.realtime_priority != 0) {
    sched_param param{};
    param.sched_priority = placement.realtime_priority;
    if (const int error = pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
      return make_reason(CUDAQ_ERR_INTERNAL, "realtime_priority %d: the system refused SCHED_FIFO: %s",
                         placement.realtime_priority, std::strerror(error));
  }
  return {};
}

void name_this_thread(const char *name) {
  char cut[16] = {};
  std::strncpy(cut, name, sizeof(cut) - 1);
  pthread_setname_np(pthread_self(), cut);
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// What a figure depends on: the machine, its cores, and how this process may use them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools {

struct machine_info {
  std::string cpu_model;
  std::string architecture;
  std::string kernel;
  std::string governor; ///< of CPU 0, "" where there is none (virtual machines)
  unsigned online_cores = 0;
  unsigned numa_nodes = 0;
  bool virtual_machine = false;
};
machine_info read_machine_info();

/// Cores that the user gave the threads of a run; -1: none.
struct thread_cores {
  int producer = -1, consumer = -1, dispatcher = -1;
  int workers = -1; ///< of the first one; the others follow
};

/// CPUs this process may run on, ascending; at least one.
std::vector<int> allowed_cores();

/// Two different physical cores of `allowed` if there are, else two CPUs, else the same CPU twice.
std::pair<int, int> pick_two_cores(const std::vector<int> &allowed);

/// Pins the calling thread; core < 0 does nothing. Returns "" or the reason why not.
std::string pin_this_thread(int core);

/// Times the calling thread lost its core against its will so far.
std::uint64_t involuntary_switches();

/// First line of a small file, "" if it cannot be read.
std::string read_line(const std::string &path);

/// Folder of the running program.
std::string program_folder();

/// Now, as 2025-01-31T12:34:56Z.
std::string utc_date();

} // namespace cudaq::realtime::tools

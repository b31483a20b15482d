// SPDX-License-Identifier: Apache-2.0
// The machine that a measurement ran on, its cores, and which of them this process may use.
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
  std::string governor; ///< frequency governor of CPU 0; "" if it has none (virtual machines)
  unsigned online_cores = 0;
  unsigned numa_nodes = 0;
  bool virtual_machine = false;
};
machine_info read_machine_info();

/// The cores that the user chose for the threads of a run; -1: not chosen.
struct thread_cores {
  int producer = -1, consumer = -1, dispatcher = -1;
  int workers = -1; ///< core of the first worker; the next workers get the next cores
};

/// The number of worker threads is not chosen.
inline constexpr int kAutoWorkers = -1;

/// CPUs this process may run on, ascending; at least one.
std::vector<int> allowed_cores();

/// Two CPUs of `allowed` on different physical cores. If there are none: two CPUs of one core. If there is only one
/// CPU: that CPU twice.
std::pair<int, int> pick_two_cores(const std::vector<int> &allowed);

/// Pins the calling thread to `core`; a negative `core` does nothing. Returns "", or the reason of a failure.
std::string pin_this_thread(int core);

/// Throws usage_error with `option` if this process cannot run on `core`. A negative core is not checked. Call it
/// before the work.
void require_core(const char *option, int core);
/// The same for all threads of a run with `workers` workers.
void require_cores(const thread_cores &cores, int workers);

/// Number of involuntary context switches of the calling thread so far.
std::uint64_t involuntary_switches();

/// First line of a small file; "" if it cannot be read.
std::string read_line(const std::string &path);

/// Folder that holds the running program; "." if it is not known.
std::string program_folder();

/// Now, as 2025-01-31T12:34:56Z.
std::string utc_date();

} // namespace cudaq::realtime::tools

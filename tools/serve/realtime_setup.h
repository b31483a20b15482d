// SPDX-License-Identifier: Apache-2.0
// The section `realtime` of the server: what the system grants of it, and what the process holds.
#pragma once

#include "lib/qec/server/server_config.h"
#include "tools/common/report.h"

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// The calls of the system that may be refused. Tests give others.
struct realtime_calls {
  std::function<std::string(int core, int priority)> refused_placement; ///< as the function of this name
  std::function<int(int flags)> lock_all;                               ///< mlockall
  std::string dma_latency; ///< the device that holds the wake-up latency of all cores
  std::string cores;       ///< of the machine, also those that this process may not use: "0-7"; "": not known

  static realtime_calls of_this_system();
};

/// One line of the section: applied, or why not and which right is missing.
struct realtime_step {
  std::string what; ///< field and value: "priority 50"
  std::string why;  ///< "" if it is applied
};

/// Threads: adjust by the thread that reads a configuration, the others by the main thread; both may run at once.
class realtime_setup {
public:
  /// `option`: the fields of --realtime, which stand in place of the section; "": none. Throws usage_error.
  explicit realtime_setup(const std::string &option, realtime_calls calls = realtime_calls::of_this_system());
  realtime_setup(const realtime_setup &) = delete;
  realtime_setup &operator=(const realtime_setup &) = delete;
  ~realtime_setup(); ///< gives the wake-up latency back; the memory stays locked

  /// Before the decoders are made: leaves in the section what this system grants. The same section later, in a reload,
  /// becomes the same. Throws usage_error for a core that the machine does not have, and as check_required.
  void adjust(cudaq::qec::realtime::server_config &config);
  /// Holds the wake-up latency, and locks the memory. After the decoders are there and before the first request: a
  /// required step that is refused must not end a server that has answered. And again after the transport's threads are
  /// there, to lock their memory, too; then a step has what the last call has found. Throws as check_required, after
  /// all steps.
  void apply(const cudaq::qec::realtime::realtime_config &granted);
  /// After a reload, whose decoders are new. "", or why the memory is not locked.
  [[nodiscard]] std::string lock_again(const cudaq::qec::realtime::realtime_config &granted) const;
  /// In the order of the fields; none without a section.
  [[nodiscard]] std::vector<realtime_step> steps() const;
  /// For a report; null without a section.
  [[nodiscard]] json as_json() const;

private:
  bool grant(const std::string &what, int core, int priority);
  /// Throws std::runtime_error, with all steps that are not applied, if there are such and the section is required.
  void check_required(const cudaq::qec::realtime::realtime_config &section) const;
  /// In place of an earlier step with the same `what`.
  void note(std::string what, std::string why);
  [[nodiscard]] std::string lock_memory() const;

  const realtime_calls calls_;
  bool has_option_ = false;
  cudaq::qec::realtime::realtime_config option_;
  mutable std::mutex mutex_; ///< protects the members below
  bool is_adjusted_ = false;
  cudaq::qec::realtime::realtime_config wanted_, granted_;
  std::vector<realtime_step> steps_;
  int dma_latency_fd_ = -1;
};

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

namespace cudaq::realtime::tools {

/// Work that may never end, on a thread of its own: reading files, and the functions of plug-ins. The destructor waits
/// for the end, so a program that must end while the work runs ends by _exit.
class background_task {
public:
  /// `work` must not throw. `at_end` is called on the same thread after it. Throws std::system_error.
  background_task(std::function<void()> work, std::function<void()> at_end)
      : at_end_(std::move(at_end)), thread_([this, work = std::move(work)] {
          work();
          ended_ = true;
          at_end_();
        }) {}
  background_task(const background_task &) = delete;
  background_task &operator=(const background_task &) = delete;
  ~background_task() { thread_.join(); }

  [[nodiscard]] bool ended() const noexcept { return ended_; }

private:
  const std::function<void()> at_end_;
  std::atomic<bool> ended_{false};
  std::thread thread_; ///< the last member: it uses the others
};

} // namespace cudaq::realtime::tools

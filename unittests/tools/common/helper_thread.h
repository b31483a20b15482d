// SPDX-License-Identifier: Apache-2.0
// A second thread of a test.
#pragma once

#include <exception>
#include <functional>
#include <gtest/gtest.h>
#include <thread>
#include <utility>

namespace cudaq::realtime::tools::test {

/// Its destructor ends and joins it, so that a test may leave its scope by an exception or an ASSERT. An exception of
/// the thread is a failure of the test.
class helper_thread {
public:
  /// `release`: lets `body` end if the test does not reach join(). Of a body that ends by itself it does nothing.
  explicit helper_thread(
      std::function<void()> body, std::function<void()> release = [] {})
      : release_(std::move(release)), thread_([run = std::move(body)] {
          try {
            run();
          } catch (const std::exception &failure) {
            ADD_FAILURE() << failure.what();
          }
        }) {}
  ~helper_thread() {
    if (!thread_.joinable())
      return;
    release_();
    thread_.join();
  }
  helper_thread(const helper_thread &) = delete;
  helper_thread &operator=(const helper_thread &) = delete;
  /// Waits for the end of `body`.
  void join() { thread_.join(); }

private:
  std::function<void()> release_;
  std::thread thread_;
};

} // namespace cudaq::realtime::tools::test

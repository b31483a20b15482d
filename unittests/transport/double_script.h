// SPDX-License-Identifier: Apache-2.0
// What a test tells the double of scripted_double.cpp to do, and what the double reports. The test owns the script and
// passes its address as the double's option `script=ADDRESS`.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace cudaq::realtime::test {

enum class act {
  succeed,
  fail,                ///< CUDAQ_ERR_CUDA
  fail_once,           ///< the same at the first call
  throw_error,         ///< a std::runtime_error with the text "the double threw"
  throw_int,           ///< 7
  bad_status,          ///< 99, which is no cudaq_status_t
  negative_status,     ///< -3
  end_thread,          ///< pthread_exit
  hold,                ///< waits for `released`, then succeeds
  hold_then_fail,      ///< waits for `released`, then fails
  wait_for_disconnect, ///< waits for disconnect or `released`; CUDAQ_ERR_INTERNAL after disconnect
  leave_out            ///< succeeds, and writes no output, or a part of it
};

struct double_script {
  std::map<std::string, act> does; ///< by the name of the entry; written while the double is not called
  std::atomic<bool> released{false};
  std::atomic<bool> disconnect_called{false};

  std::atomic<std::uint64_t> calls{0};
  std::atomic<int> inside{0};   ///< entries that run
  std::atomic<int> overlaps{0}; ///< entries that began while another one ran, except disconnect during connect
  std::atomic<bool> connecting{false};
  std::atomic<bool> disconnecting{false};
  std::atomic<bool> unterminated_endpoint{false};

  std::mutex mutex; ///< for all below
  std::vector<std::string> log;
  std::vector<std::string> arguments; ///< of create, without the script
  bool null_after_arguments = false;
  std::thread::id connect_thread;

  std::string logged() {
    const std::lock_guard lock(mutex);
    std::string all;
    for (const std::string &entry : log)
      all += (all.empty() ? "" : " ") + entry;
    return all;
  }
};

} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// What the test's server does with a request: functions whose answers a client can check, and that count how often each
// request was executed.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>

namespace cudaq::realtime::test {

inline const std::uint32_t kIncrement = fnv1a_hash("increment"); ///< answers each byte plus 1
inline const std::uint32_t kRecord = fnv1a_hash("record");       ///< counts its executions; see record_answer
inline const std::uint32_t kSleep = fnv1a_hash("sleep");         ///< sleeps the milliseconds in its first byte

/// Payload of kRecord: the number of the message, then any bytes.
struct record_answer {
  std::uint64_t number;
  std::uint64_t executions; ///< of messages with this number, this one included
  std::uint64_t checksum;   ///< of the payload
};

inline std::uint64_t checksum_of(std::span<const std::uint8_t> payload) {
  std::uint64_t sum = 1469598103934665603u;
  for (const std::uint8_t byte : payload)
    sum = (sum ^ byte) * 1099511628211u;
  return sum;
}

/// Any thread.
class udp_service {
public:
  /// Returns the status; `length` is that of the result.
  std::int32_t serve(std::uint32_t function_id, std::span<const std::uint8_t> payload, std::span<std::uint8_t> result,
                     std::uint32_t &length) {
    length = static_cast<std::uint32_t>(payload.size());
    if (function_id == kIncrement) {
      for (std::size_t i = 0; i < payload.size(); ++i)
        result[i] = static_cast<std::uint8_t>(payload[i] + 1);
      return 0;
    }
    if (function_id == kSleep) {
      std::this_thread::sleep_for(std::chrono::milliseconds(payload.empty() ? 0 : payload[0]));
      std::memcpy(result.data(), payload.data(), payload.size());
      return 0;
    }
    record_answer answer{};
    if (payload.size() < sizeof(answer.number))
      return 1;
    std::memcpy(&answer.number, payload.data(), sizeof(answer.number));
    answer.checksum = checksum_of(payload);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      answer.executions = ++executions_[answer.number];
      twice_ += answer.executions == 2;
    }
    length = sizeof(answer);
    std::memcpy(result.data(), &answer, sizeof(answer));
    return 0;
  }
  /// Messages that were executed more than once.
  std::uint64_t twice() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return twice_;
  }
  std::uint64_t different() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return executions_.size();
  }

private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> executions_;
  std::uint64_t twice_ = 0;
};

} // namespace cudaq::realtime::test

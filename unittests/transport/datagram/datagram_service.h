// SPDX-License-Identifier: Apache-2.0
// What the test's server does with a request: functions whose answers a client can check, and that count how often each
// request was executed.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <unordered_map>

namespace cudaq::realtime::test {

inline constexpr std::uint32_t kIncrement = fnv1a_hash("increment"); ///< answers each byte plus 1
inline constexpr std::uint32_t kRecord = fnv1a_hash("record");       ///< counts its executions; see record_answer
inline constexpr std::uint32_t kHold = fnv1a_hash("hold");           ///< is answered after a request of kOpen
inline constexpr std::uint32_t kOpen = fnv1a_hash("open");           ///< lets all requests of kHold go on

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
class datagram_service {
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
    if (function_id == kHold || function_id == kOpen) {
      length = 0;
      std::unique_lock<std::mutex> lock(mutex_);
      open_ = open_ || function_id == kOpen;
      opened_.notify_all();
      return opened_.wait_for(lock, std::chrono::minutes(2), [this] { return open_; }) ? 0 : 1;
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
  std::condition_variable opened_;
  bool open_ = false;
  std::unordered_map<std::uint64_t, std::uint64_t> executions_;
  std::uint64_t twice_ = 0;
};

} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The floors: the smallest programs for two cores that do the work, without this
// library's dispatcher. This file and its .cpp are the only files of tools/latency that access flags directly.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "tools/common/exchange.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

namespace cudaq::realtime::tools {

/// Floor (a): two flags, each in a cache line of its own, and one line of payload in each direction. The two lines of a
/// direction are adjacent: the adjacent-line prefetcher loads them as a pair.
struct exchange_lines {
  alignas(128) std::uint64_t request_flag = 0;
  alignas(64) payload_words request{};
  alignas(64) std::uint64_t reply_flag = 0;
  alignas(64) payload_words reply{};
};

/// A thread on a core of its own. It is ready when the constructor returns; it ends when the object is destroyed.
/// Construction throws usage_error if the thread cannot be pinned.
class server_thread {
public:
  server_thread(const server_thread &) = delete;
  server_thread &operator=(const server_thread &) = delete;
  ~server_thread();

  /// Serves floor (a).
  static std::unique_ptr<server_thread> two_flags(exchange_lines &lines, std::size_t words, int core, bool share_core);
  /// Serves floor (b): a ring, in slot order from slot 0 on, with its flags, slots and frames. It assumes that every
  /// request is right and calls the same function: no parsing, no lookup, no markers, no statistics.
  static std::unique_ptr<server_thread> bare_ring(const cudaq_ringbuffer_t &ring, std::uint32_t slots,
                                                  std::size_t words, int core, bool share_core);

private:
  template <typename Loop>
  server_thread(int core, Loop loop);

  std::atomic<bool> stop_{false};
  std::atomic<bool> ready_{false};
  std::string error_;
  std::thread thread_;
};

/// Client of floor (a), on the calling thread. The server must already run, with the same number of words. Flag values
/// continue from the values in `lines`. Throws exchange_stalled if a reply does not come within config.timeout_ns.
loop_result exchange_two_flags(exchange_lines &lines, const exchange_config &config, const tick_scale &scale);

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// The floors: the least that two cores can do, without this library's dispatcher. This file and its .cpp are the only
// ones of tools/ that touch flags themselves.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "tools/common/exchange.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

namespace cudaq::realtime::tools {

/// Floor (a): two flags, each on a cache line of its own, and one line of payload each way. The two lines of a
/// direction are a pair for the adjacent-line prefetcher.
struct exchange_lines {
  alignas(128) std::uint64_t request_flag = 0;
  alignas(64) payload_words request{};
  alignas(64) std::uint64_t reply_flag = 0;
  alignas(64) payload_words reply{};
};

/// A thread on a core of its own that runs until it is destroyed.
class server_thread {
public:
  server_thread(const server_thread &) = delete;
  server_thread &operator=(const server_thread &) = delete;
  ~server_thread();

  /// Floor (a).
  static std::unique_ptr<server_thread> two_flags(exchange_lines &lines, std::size_t words, int core, bool share_core);
  /// Floor (b): serves a ring in slot order from slot 0 on, with its flags, slots and frames, but knows beforehand that
  /// every request is right and what it asks for: no parsing, no lookup, no markers, no statistics.
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

/// Client of floor (a), on the calling thread. The server runs already, with the same number of words; flag values go
/// on from what the lines hold.
loop_result exchange_two_flags(exchange_lines &lines, const loop_config &config, const tick_scale &scale);

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// Measuring clients of a ring. They keep no records except for the check of every reply. The same code measures
// dispatchers and floors.
#pragma once

#include "tools/common/exchange.h"
#include "tools/ring/ring_port.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace cudaq::realtime::tools {

/// True if `reply` is right for `request`. False if their lengths differ.
bool reply_follows(reply_rule rule, std::span<const std::uint64_t> request, std::span<const std::uint64_t> reply);

/// The requests of one loop and the check of their replies. One thread uses it.
class checked_payload {
public:
  explicit checked_payload(const exchange_config &config)
      : seed_(config.seed), function_id_(config.function_id), rule_(config.rule),
        request_(config.payload_bytes / sizeof(std::uint64_t)), reply_(request_.size()) {}

  /// Makes the random words of request n.
  void make(std::uint64_t n) {
    const std::span<std::uint64_t> words = request_;
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i] = random_word(seed_, n * words.size() + i);
  }
  /// Writes the request that make() has made.
  void write(const ring_port &port, std::uint32_t slot, std::uint64_t n) const {
    port.write(slot, function_id_, {reinterpret_cast<const std::uint8_t *>(request_.data()), bytes()},
               static_cast<std::uint32_t>(n), n);
  }
  /// Copies the reply. Returns false if the slot holds no good answer to request n.
  bool read(const ring_port &port, std::uint32_t slot, std::uint64_t n) {
    cudaq_rpc_response_t header;
    std::span<const std::uint8_t> result;
    if (!port.read(slot, header, result) || header.status != CUDAQ_RPC_OK || result.size() != bytes() ||
        header.request_id != static_cast<std::uint32_t>(n) || header.ptp_timestamp != n)
      return false;
    if (!result.empty())
      std::memcpy(reply_.data(), result.data(), result.size());
    return true;
  }
  /// The reply that read() has copied is right for the request that make() has made.
  [[nodiscard]] bool is_right() const { return reply_follows(rule_, request_, reply_); }

private:
  [[nodiscard]] std::size_t bytes() const noexcept { return request_.size() * sizeof(std::uint64_t); }

  const std::uint64_t seed_;
  const std::uint32_t function_id_;
  const reply_rule rule_;
  std::vector<std::uint64_t> request_, reply_;
};

/// In loops with many requests in flight every 16th exchange is timed.
inline constexpr std::uint64_t kTimedEvery = 16;

/// One request at a time, in ring order from slot 0. The measured time is config.timed. The test that the slot is free,
/// and giving the slot back, are outside of that time. With timed_part::frames laps are timed, too. Throws
/// exchange_stalled if an answer does not come within config.timeout_ns.
loop_result exchange_one_by_one(const ring_port &port, std::uint32_t slots, const exchange_config &config,
                                const tick_scale &scale);

/// On one thread, as many requests in flight as the ring has slots; answers are collected in order. The timed exchanges
/// have timed_part::frames, and laps. Throws exchange_stalled if neither a request can be sent nor an answer collected
/// for config.timeout_ns.
loop_result exchange_pipelined(const ring_port &port, std::uint32_t slots, const exchange_config &config,
                               const tick_scale &scale);

} // namespace cudaq::realtime::tools

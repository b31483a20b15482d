// SPDX-License-Identifier: Apache-2.0
// What a dispatch loop works with: its numbers, its working memory, and how a handler is called.
#pragma once

#include "cudaq/realtime/detail/loop/block_copy.h"
#include "cudaq/realtime/detail/loop/loop_counters.h"

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kLookBytes = 64;  ///< fetched of each request when several are ready
inline constexpr std::uint32_t kLeastBytes = 32; ///< fetched of a single request: header and first payload word
inline constexpr std::uint32_t kLookPitch = 80;  ///< where the next one begins: spreads them over memory banks
inline constexpr std::uint32_t kClockPolls = 8;  ///< empty looks between two looks at the clock
inline constexpr std::uint32_t kSectorFlags = 4; ///< flags that are read at the price of one
inline constexpr long long kIdleCycles =
    100000; ///< about how often the loop polls its control words while nothing comes
inline constexpr long long kBusyCycles = 200000;       ///< and while requests come
inline constexpr long long kCallerCycles = 1000000;    ///< how often it reads the caller's shutdown word
inline constexpr long long kBatchCycles = 10000;       ///< about how long an answer waits for others of its batch
inline constexpr std::uint32_t kRetryLooks = 32;       ///< at what will be answered later, between two at the ring
inline constexpr long long kRetryCycles = 3000;        ///< but no longer than a look at the ring over the bus
inline constexpr std::uint32_t kGroupCopyBytes = 4096; ///< what a group copies faster by itself than with helpers

/// One call of a handler. Frames, not payloads.
struct handler_call {
  std::uint32_t route, arg_len, max_result_len;
  const std::uint8_t *in;
  std::uint8_t *out;
  bool staged; ///< `in` is the group's own copy
};

/// No helpers: the group's first thread runs the handlers.
template <class Group>
struct no_helpers {
  static constexpr bool kAllThreadsCall = false;
  CUDAQ_REALTIME_HOST_DEVICE static void copy(std::uint8_t *to, const std::uint8_t *from, std::uint32_t bytes,
                                              bool wide) {
    copy_bytes(to, from, bytes, wide, Group::lane(), Group::kWidth);
  }
  template <class Meanwhile>
  CUDAQ_REALTIME_HOST_DEVICE static void copy_while(std::uint8_t *to, const std::uint8_t *from, std::uint32_t bytes,
                                                    bool wide, Meanwhile &&meanwhile) {
    meanwhile();
    copy(to, from, bytes, wide);
  }
  CUDAQ_REALTIME_HOST_DEVICE static std::uint8_t *out(std::uint8_t *staged) { return staged; }
  template <class Handlers>
  CUDAQ_REALTIME_HOST_DEVICE static std::int32_t call(const Handlers &handlers, const handler_call &c,
                                                      std::uint32_t &result_len) {
    struct {
      std::int32_t status = 0;
      std::uint32_t result_len = 0;
    } got;
    if (Group::lane() == 0)
      got.status = handlers.call(handlers.callee(c.route), c.in + CUDAQ_RPC_HEADER_SIZE, c.out + CUDAQ_RPC_HEADER_SIZE,
                                 c.arg_len, c.max_result_len, &got.result_len);
    got = Group::from(got, 0);
    result_len = got.result_len;
    return got.status;
  }
};

/// Working memory of one group; shared memory on a device.
struct loop_workspace {
  alignas(16) std::uint8_t requests[32 * kLookPitch];
  loop_report counts;
  std::uint8_t *in;            ///< staging_bytes, aligned to 16
  std::uint8_t *out;           ///< staging_bytes, or 32 * out_pitch
  std::uint32_t staging_bytes; ///< longer frames are read and written in the slot itself
  std::uint32_t out_pitch; ///< ANY ordering: room for an answer of each lane; 0: they are written in the slot itself
  std::uint32_t result_len[32];
};

} // namespace cudaq::realtime::detail

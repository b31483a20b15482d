// SPDX-License-Identifier: Apache-2.0
// The working memory and the constants of a dispatch loop, and the call of a handler without helper threads.
#pragma once

#include "cudaq/realtime/detail/loop/block_copy.h"
#include "cudaq/realtime/detail/loop/loop_counters.h"

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kLookBytes = 64;  ///< bytes fetched of each request when several are ready
inline constexpr std::uint32_t kLeastBytes = 32; ///< the same for a single request, at least: with first payload word
inline constexpr std::uint32_t kLookPitch = 80;  ///< distance of fetched requests: spreads them over memory banks
inline constexpr std::uint32_t kClockPolls = 8;  ///< empty looks between two reads of the clock
inline constexpr std::uint32_t kSectorFlags = 4; ///< flags that cost as much to read as one
inline constexpr long long kIdleCycles = 100000; ///< about the cycles between two polls of the control words, idle
inline constexpr long long kBusyCycles = 200000; ///< the same while requests arrive
inline constexpr long long kCallerCycles = 1000000;   ///< cycles between two reads of the caller's shutdown word
inline constexpr long long kBatchCycles = 10000;      ///< about the longest wait of an answer for others of its batch
inline constexpr long long kQuickBatchCycles = 30000; ///< the same for others that take less than kQuickCycles each
inline constexpr long long kQuickCycles = 1250;
inline constexpr std::uint32_t kRetryPolls = 32;       ///< polls for answers of graphs, between two looks at the ring
inline constexpr long long kRetryCycles = 3000;        ///< but not longer than a look at the ring over the bus takes
inline constexpr std::uint32_t kGroupCopyBytes = 4096; ///< up to this size a group copies faster without helper threads

/// True if the part of a batch is to be published that has taken `cycles` for `requests`. To publish takes 2800 to 6000
/// cycles, so quick handlers would spend a third of their time with it.
CUDAQ_REALTIME_HOST_DEVICE constexpr bool part_ends(long long cycles, std::uint32_t requests) {
  return cycles >= kBatchCycles && (cycles >= kQuickBatchCycles || cycles >= requests * kQuickCycles);
}

/// How a group stages answers.
enum class answer_staging : std::uint8_t {
  one,      ///< one at a time: cooperative kernels, graph schedulers
  in_order, ///< FIFO: one after another, up to 32. Each may fill a slot; a long one is the last before they are sent
  by_lane,  ///< ANY: 32 at the same time, with room for a slot each; slots above kShortAnswer are not staged
};
inline constexpr std::uint32_t kShortAnswer = 512; ///< bytes of a frame
/// Distance between the staged answers of the lanes; 0: there is room for one, or (ANY) none is staged.
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t out_pitch(std::uint32_t slot_size, answer_staging answers) {
  const bool fits = slot_size <= kShortAnswer;
  if (answers == answer_staging::one || (answers == answer_staging::by_lane && !fits))
    return 0;
  return round16(fits ? slot_size : kShortAnswer) + 16; // 16 more: the answers begin in different memory banks
}

/// Progress within a batch of messages; the same on all lanes.
struct batch_progress {
  std::uint32_t done = 0;     ///< first message that is not served yet
  std::uint32_t answered = 0; ///< bit k: message k has an answer
  std::uint32_t later = 0;    ///< bit k: message k is accepted, and a graph answers it later
  std::uint32_t plain = 0;    ///< served with status 0, not counted yet
};

/// One call of a handler. `in` and `out` are frames, not payloads.
struct handler_call {
  std::uint32_t route, arg_len, max_result_len;
  const std::uint8_t *in;
  std::uint8_t *out;
  bool staged; ///< `in` is the group's copy in its staging
};

/// No helpers: the group's first thread runs the handlers.
template <class Group>
struct no_helpers {
  static constexpr bool kAllThreadsCall = false;
  CUDAQ_REALTIME_HOST_DEVICE static void copy(std::uint8_t *to, const std::uint8_t *from, std::uint32_t bytes,
                                              bool aligned16) {
    copy_bytes(to, from, bytes, aligned16, Group::lane(), Group::kWidth);
  }
  /// The same from a slot, a whole number of words.
  CUDAQ_REALTIME_HOST_DEVICE static void fetch(std::uint8_t *to, const std::uint8_t *slot, std::uint32_t bytes,
                                               bool aligned16) {
    copy_request(to, slot, bytes, aligned16, Group::lane(), Group::kWidth);
  }
  template <class Meanwhile>
  CUDAQ_REALTIME_HOST_DEVICE static void fetch_while(std::uint8_t *to, const std::uint8_t *slot, std::uint32_t bytes,
                                                     bool aligned16, Meanwhile &&meanwhile) {
    meanwhile();
    fetch(to, slot, bytes, aligned16);
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
  std::uint8_t *out;           ///< 31 * out_pitch + staging_bytes
  std::uint32_t staging_bytes; ///< longer frames are read and written in the slot itself
  /// Distance of the lanes' answers in `out`. FIFO: at most; an answer may be longer, and none comes after it then.
  /// 0: there is room for one; ANY: they are written in the slot itself.
  std::uint32_t out_pitch;
  // Of the messages that the lanes have judged, by lane; for the lane that calls their handlers, and back.
  std::uint32_t routes[32];
  std::uint32_t result_len[32];
  std::int32_t status[32];
};

/// The counts of a loop. If its handlers answer later, all its executions share them.
template <class Handlers>
CUDAQ_REALTIME_HOST_DEVICE loop_report &counts_of([[maybe_unused]] const Handlers &handlers,
                                                  [[maybe_unused]] loop_workspace &workspace) {
  if constexpr (Handlers::kDefers)
    return handlers.counts();
  else
    return workspace.counts;
}

} // namespace cudaq::realtime::detail

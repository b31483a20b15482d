// SPDX-License-Identifier: Apache-2.0
// Several requests of one look, FIFO: the lanes judge and answer them at the same time, lane 0 calls the handlers one
// after another. The lanes are four threads.
#include "cudaq/realtime/detail/loop/posted_ring_transport.h"
#include "unittests/loop/loop_host.h"
#include "unittests/support/lap_ring.h"

#include <barrier>
#include <numeric>
#include <set>

namespace cudaq::realtime::test {
namespace {

/// Threads that make every call together, as the lanes of a warp do.
struct lockstep_thread_group {
  static constexpr std::uint32_t kWidth = 4;
  static std::uint32_t lane() { return number; }
  static void sync() { together.arrive_and_wait(); }
  static std::uint32_t ballot(bool vote) {
    votes[number] = vote;
    sync();
    std::uint32_t bits = 0;
    for (std::uint32_t k = 0; k < kWidth; ++k)
      bits |= std::uint32_t{votes[k]} << k;
    sync();
    return bits;
  }
  template <class T>
  static T from(const T &mine, std::uint32_t k) {
    static_assert(sizeof(T) <= sizeof(passed));
    if (number == k)
      std::memcpy(passed, &mine, sizeof(T));
    sync();
    T value;
    std::memcpy(&value, passed, sizeof(T));
    sync();
    return value;
  }
  static long long cycles() { return clock; }
  static long long common_cycles() { return from(static_cast<long long>(clock), 0); }

  static inline thread_local std::uint32_t number = 0;
  static inline std::barrier<> together{kWidth};
  static inline bool votes[kWidth];
  static inline std::atomic<long long> clock{0}; ///< handlers advance it
  alignas(16) static inline std::uint8_t passed[128];
};
using group = lockstep_thread_group;

constexpr std::uint32_t kSlots = 24, kDropped = 9, kUnknown = 13, kFails = 17, kStops = 10, kFunction = 3;
constexpr std::int32_t kStatus = 21;

/// The calls of the handler: the first byte of each payload, and the lane.
struct handler_calls {
  std::vector<std::uint8_t> first_bytes;
  std::vector<std::uint32_t> lanes;
};
handler_calls calls;
long long cycles_of_a_call = 0;
std::uint32_t *stop_word = nullptr; ///< set in the call for slot kStops, if there is one

/// Answers with the payload in reverse order. Writes to all bytes that it may write to, as a handler may.
int reverse(const void *in, void *out, std::uint32_t arg_len, std::uint32_t max_result_len, std::uint32_t *result_len) {
  const auto *const bytes = static_cast<const std::uint8_t *>(in);
  calls.first_bytes.push_back(bytes[0]);
  calls.lanes.push_back(group::lane());
  group::clock += cycles_of_a_call;
  if (bytes[0] == kStops && stop_word != nullptr)
    *stop_word = 1;
  std::memset(out, 0xee, max_result_len);
  std::reverse_copy(bytes, bytes + arg_len, static_cast<std::uint8_t *>(out));
  *result_len = arg_len;
  return bytes[0] == kFails ? kStatus : 0;
}

std::vector<std::uint8_t> payload_of(std::uint32_t slot, std::uint32_t slot_size) {
  std::vector<std::uint8_t> bytes(1 + slot * 37 % (slot_size - CUDAQ_RPC_HEADER_SIZE));
  std::iota(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(slot));
  return bytes;
}

/// A ring full of requests, and the loop's state.
struct full_ring {
  full_ring(std::uint32_t slot_size, bool with_laps, answer_staging answers)
      : ring(kSlots, slot_size, with_laps), host(host_ring({kSlots, slot_size, false}), 1, kFunction, 1) {
    host.params.ring = ring.view;
    host.params.handlers = &handler_address;
    const std::uint32_t staging = (slot_size + 15) & ~15u;
    workspace.staging_bytes = staging;
    workspace.out_pitch = out_pitch(slot_size, answers);
    memory.resize((2 * staging + (group::kWidth - 1) * workspace.out_pitch) / sizeof(word16));
    workspace.in = reinterpret_cast<std::uint8_t *>(memory.data());
    workspace.out = workspace.in + staging;
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      const std::vector<std::uint8_t> payload = payload_of(i, slot_size);
      write_request(ring.view.rx_slot(i),
                    {i == kDropped ? 1 : CUDAQ_RPC_MAGIC_REQUEST, i == kUnknown ? kFunction + 1 : kFunction,
                     static_cast<std::uint32_t>(payload.size()), 100 + i, 200 + i});
      std::memcpy(ring.view.rx_slot(i) + CUDAQ_RPC_HEADER_SIZE, payload.data(), payload.size());
      ring.view.signal(i);
    }
  }
  /// The lanes serve all requests.
  template <class Transport>
  void serve() {
    run<Transport>([](auto &loop) {
      for (std::uint32_t served = 0; served < kSlots;)
        served += loop.turn();
    });
  }
  /// Each lane calls body(loop).
  template <class Transport, class Body>
  void run(const Body &body) {
    std::vector<std::thread> lanes;
    for (std::uint32_t lane = 0; lane < group::kWidth; ++lane)
      lanes.emplace_back([this, lane, &body] {
        group::number = lane;
        const table_handler_set handlers(host.params.index, host.params.handlers);
        no_helpers<group> helpers;
        dispatch_loop<group, Transport, table_handler_set, no_helpers<group>, false> loop(
            host.params, 0, workspace, Transport(ring.view, 0), handlers, helpers);
        body(loop);
      });
    for (std::thread &lane : lanes)
      lane.join();
  }

  lap_ring ring;
  loop_host host;
  std::uint64_t handler_address = reinterpret_cast<std::uint64_t>(&reverse);
  std::vector<word16> memory;
  loop_workspace workspace{};
};

/// Slots whose answers all fit into 64 bytes, are partly longer, and partly longer than the distance of staged answers;
/// with laps or not; handlers that take no time, or so long that a batch is published in parts; room for several staged
/// answers or for one.
class DeviceLoopBatch : public ::testing::TestWithParam<std::tuple<std::uint32_t, bool, long long, answer_staging>> {
protected:
  void SetUp() override {
    calls = {};
    const auto [slot_size, with_laps, cycles, answers] = GetParam();
    cycles_of_a_call = cycles;
    stop_word = nullptr;
    full.emplace(slot_size, with_laps, answers);
    with_laps ? full->serve<posted_ring_transport<group>>() : full->serve<ring_transport<group, thread_scope_system>>();
  }
  std::optional<full_ring> full;
};

TEST_P(DeviceLoopBatch, CallsHandlersInOrderOnTheFirstLane) {
  std::vector<std::uint8_t> expected;
  for (std::uint32_t i = 0; i < kSlots; ++i)
    if (i != kDropped && i != kUnknown)
      expected.push_back(static_cast<std::uint8_t>(i));
  EXPECT_EQ(calls.first_bytes, expected);
  EXPECT_EQ(calls.lanes, std::vector<std::uint32_t>(expected.size(), 0));
}

TEST_P(DeviceLoopBatch, AnswersEachRequestInItsSlot) {
  const slot_ring &view = full->ring.view;
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    EXPECT_EQ(view.ready(i), 0u) << i;
    EXPECT_EQ(view.answer(i) != 0, i != kDropped) << i;
    if (i == kDropped)
      continue;
    const auto got = read_header<response>(view.tx_slot(i));
    std::vector<std::uint8_t> expected = payload_of(i, view.slot_size);
    std::reverse(expected.begin(), expected.end());
    if (i == kUnknown)
      expected.clear();
    EXPECT_EQ(got.magic, CUDAQ_RPC_MAGIC_RESPONSE) << i;
    EXPECT_EQ(got.request_id, 100 + i);
    EXPECT_EQ(got.ptp_timestamp, 200 + i);
    EXPECT_EQ(got.status, i == kUnknown ? std::int32_t{CUDAQ_RPC_ERR_NO_SUCH_FUNCTION}
                          : i == kFails ? kStatus
                                        : 0)
        << i;
    ASSERT_EQ(got.result_len, expected.size()) << i;
    EXPECT_EQ(std::memcmp(view.tx_slot(i) + CUDAQ_RPC_HEADER_SIZE, expected.data(), expected.size()), 0) << i;
  }
}

TEST_P(DeviceLoopBatch, CountsEachRequestAndOwesNoLap) {
  const loop_report &counts = full->workspace.counts;
  EXPECT_EQ(counts.dispatched, kSlots - 2);
  EXPECT_EQ(counts.responded, kSlots - 1);
  EXPECT_EQ(counts.refused, 1u);
  EXPECT_EQ(counts.dropped_bad_magic, 1u);
  EXPECT_EQ(counts.handler_errors, 1u);
  const slot_ring &view = full->ring.view;
  for (std::uint32_t i = 0; i < kSlots && view.lap_offset != 0; ++i) {
    EXPECT_EQ(view.rx_flags[i + view.lap_offset], 1u) << i;
    EXPECT_EQ(view.tx_flags[i + view.lap_offset], 1u) << i;
  }
}

TEST_P(DeviceLoopBatch, LeavesRequestsInTheirSlotsAfterAStop) {
  const auto [slot_size, with_laps, cycles, answers] = GetParam();
  full_ring stopped(slot_size, with_laps, answers);
  calls = {};
  cycles_of_a_call = kBusyCycles;
  stop_word = &stopped.host.library_word;
  const auto until_the_stop = [](auto &loop) { loop.run(1); };
  with_laps ? stopped.run<posted_ring_transport<group>>(until_the_stop)
            : stopped.run<ring_transport<group, thread_scope_system>>(until_the_stop);
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    EXPECT_EQ(stopped.ring.view.ready(i) != 0, i > kStops) << i;
    EXPECT_EQ(stopped.ring.view.answer(i) != 0, i <= kStops && i != kDropped) << i;
  }
  EXPECT_EQ(calls.first_bytes.size(), kStops); // all up to kStops, without kDropped
  EXPECT_EQ(calls.first_bytes.back(), kStops);
  EXPECT_EQ(stopped.workspace.counts.responded, kStops);
}

TEST(DeviceLoopParts, WaitLongerForQuickHandlersThanForSlowOnes) {
  EXPECT_FALSE(part_ends(kBatchCycles - 1, 1));
  EXPECT_TRUE(part_ends(kBatchCycles, 2));
  EXPECT_FALSE(part_ends(kBatchCycles, 12));
  EXPECT_FALSE(part_ends(kQuickBatchCycles - 1, 32));
  EXPECT_TRUE(part_ends(kQuickBatchCycles, 32));
  EXPECT_TRUE(part_ends(12 * kQuickCycles, 12));
}

/// The handler counts the answers that are there when it is called: the same for all calls of one publication.
TEST(DeviceLoopParts, SlotsAboveTheLongestStagedAnswerAreAnsweredTogether) {
  for (const std::uint32_t slot_size : {64u, 8192u}) {
    full_ring full(slot_size, false, answer_staging::in_order);
    for (std::uint32_t i = 0; i < kSlots; ++i)
      write_request(full.ring.view.rx_slot(i), {CUDAQ_RPC_MAGIC_REQUEST, kFunction, 8, 100 + i, 200 + i});
    static std::vector<std::uint32_t> answered; // before each call
    static const slot_ring *view;
    answered.clear();
    view = &full.ring.view;
    const auto count_answers = [](const void *, void *, std::uint32_t, std::uint32_t, std::uint32_t *result_len) {
      std::uint32_t there = 0;
      for (std::uint32_t i = 0; i < kSlots; ++i)
        there += view->answer(i) != 0 ? 1 : 0;
      answered.push_back(there);
      *result_len = 8;
      return 0;
    };
    full.handler_address = reinterpret_cast<std::uint64_t>(static_cast<DeviceRPCFunction>(count_answers));
    full.serve<ring_transport<group, thread_scope_system>>();
    ASSERT_EQ(answered.size(), kSlots);
    // The first looks read few flags; then each finds a request for each lane.
    EXPECT_EQ(std::set<std::uint32_t>(answered.begin() + group::kWidth, answered.end()).size(),
              kSlots / group::kWidth - 1)
        << slot_size;
  }
}

/// Answers of these lengths, in turn: up to and above the distance of staged answers, up to the whole slot.
constexpr std::uint32_t kLengths[] = {8, 504, 505, 8, 1000, 40, 41};
std::uint32_t length_of(std::uint32_t slot) { return kLengths[slot % std::size(kLengths)]; }

TEST(DeviceLoopParts, LongAnswersToShortRequestsLeaveTheOthersAsTheyAre) {
  full_ring full(1024, false, answer_staging::in_order);
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    write_request(full.ring.view.rx_slot(i), {CUDAQ_RPC_MAGIC_REQUEST, kFunction, 8, 100 + i, 200 + i});
    full.ring.view.rx_slot(i)[CUDAQ_RPC_HEADER_SIZE] = static_cast<std::uint8_t>(i);
  }
  const auto fill = [](const void *in, void *out, std::uint32_t, std::uint32_t max_result_len,
                       std::uint32_t *result_len) {
    const std::uint8_t slot = *static_cast<const std::uint8_t *>(in);
    std::memset(out, 0xee, max_result_len);
    std::memset(out, slot, length_of(slot));
    *result_len = length_of(slot);
    return 0;
  };
  full.handler_address = reinterpret_cast<std::uint64_t>(static_cast<DeviceRPCFunction>(fill));
  full.serve<ring_transport<group, thread_scope_system>>();
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    const std::uint8_t *const frame = full.ring.view.tx_slot(i);
    ASSERT_EQ(read_header<response>(frame).result_len, length_of(i)) << i;
    EXPECT_EQ(read_header<response>(frame).request_id, 100 + i);
    const std::vector<std::uint8_t> got(frame + CUDAQ_RPC_HEADER_SIZE, frame + CUDAQ_RPC_HEADER_SIZE + length_of(i));
    EXPECT_EQ(got, std::vector<std::uint8_t>(length_of(i), static_cast<std::uint8_t>(i))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Rings, DeviceLoopBatch,
                         ::testing::Combine(::testing::Values(64u, 256u, 1024u), ::testing::Bool(),
                                            ::testing::Values(0, kBatchCycles * 2 / 3),
                                            ::testing::Values(answer_staging::in_order, answer_staging::one)),
                         [](const auto &tested) {
                           return std::to_string(std::get<0>(tested.param)) +
                                  (std::get<1>(tested.param) ? "WithLaps" : "") +
                                  (std::get<2>(tested.param) != 0 ? "InParts" : "") +
                                  (std::get<3>(tested.param) == answer_staging::one ? "OneByOne" : "");
                         });

} // namespace
} // namespace cudaq::realtime::test

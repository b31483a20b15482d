// SPDX-License-Identifier: Apache-2.0
// FIFO: one handler at a time, in slot order. ANY: several handlers at the same time.
#include "unittests/gpu/support/gpu_dispatcher.h"

namespace cudaq::realtime::test {
namespace {

class KernelOrder : public gpu_test, public ::testing::WithParamInterface<kernel_kind> {};
class FifoOrder : public KernelOrder {};
class AnyOrder : public KernelOrder {};

/// A ring of `num_slots` slots that is full of requests before the dispatcher starts.
struct full_ring {
  full_ring(const kernel_kind &kind, std::uint32_t num_slots, handler h, const std::vector<std::uint8_t> &payload)
      : ring({num_slots, 512, false}, CUDAQ_MEMORY_MAPPED), dispatcher(manager.get, setup_of(kind, ring)),
        client(ring.ring, num_slots) {
    for (std::uint32_t i = 0; i < num_slots; ++i)
      client.send(id_of(h), payload, i);
  }
  manager_handle manager;
  host_ring ring;
  gpu_dispatcher dispatcher;
  gpu_client client;
};

TEST_P(FifoOrder, ServesInSlotOrder) {
  constexpr std::uint32_t kSlots = 100, kLaps = 20;
  const device_array<std::uint32_t> calls(1);
  const std::vector<std::uint8_t> payload = bytes_of(calls.get);
  full_ring full(GetParam(), kSlots, handler::count, payload);
  ASSERT_NO_FATAL_FAILURE(full.dispatcher.expect_start());
  for (std::uint32_t n = 0; n < kLaps * kSlots; ++n) {
    const answer got = full.client.collect(n % kSlots);
    ASSERT_EQ(got.header.request_id, n);
    ASSERT_EQ(value_of<std::uint32_t>(got.result), n) << "served out of order";
    if (n < (kLaps - 1) * kSlots)
      full.client.send(id_of(handler::count), payload, n + kSlots);
  }
}

// A producer that skips slots gets no order, but no request is lost.
TEST_P(FifoOrder, FindsRequestsAfterEmptySlots) {
  manager_handle manager;
  host_ring ring({40, 128, false}, CUDAQ_MEMORY_MAPPED);
  gpu_dispatcher dispatcher(manager.get, setup_of(GetParam(), ring));
  gpu_client client(ring.ring, 40);
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  for (std::uint32_t n = 1; n <= 20; ++n) {
    client.set_next_slot(n * 27 % 40);
    ASSERT_NO_FATAL_FAILURE(expect_serves(client, n));
  }
  EXPECT_TRUE(eventually([&] { return dispatcher.stats().cursor_jumps != 0; }, kOneSecond));
}

// Each of two handlers waits for the other. They run one at a time, so the first one waits until its time is over.
TEST_P(FifoOrder, RunsOneHandlerAtATime) {
  const device_array<std::uint32_t> calls(1);
  const meet_request short_wait{20'000'000, reinterpret_cast<std::uint64_t>(calls.get), 2}; // about 10 ms
  full_ring full(GetParam(), 2, handler::meet, bytes_of(short_wait));
  ASSERT_NO_FATAL_FAILURE(full.dispatcher.expect_start());
  EXPECT_EQ(full.client.collect(0).header.status, 1);
  EXPECT_EQ(full.client.collect(1).header.status, 0) << "the second handler counts the first one's call";
}

TEST_P(AnyOrder, RunsHandlersAtTheSameTime) {
  constexpr std::uint32_t kSlots = 128;
  for (const std::size_t bytes :
       {sizeof(meet_request), std::size_t{400}}) { // short requests, and ones that a whole group fetches
    const device_array<std::uint32_t> calls(1);
    const meet_request request{10'000'000'000ull, reinterpret_cast<std::uint64_t>(calls.get), 2};
    std::vector<std::uint8_t> payload = bytes_of(request);
    payload.resize(bytes);
    full_ring full(GetParam(), kSlots, handler::meet, payload);
    ASSERT_NO_FATAL_FAILURE(full.dispatcher.expect_start());
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      const answer got = full.client.collect(i);
      ASSERT_EQ(got.header.status, 0) << "slot " << i << " met no other handler";
      ASSERT_EQ(got.header.request_id, i);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FifoOrder,
                         ::testing::Values(kFifo32, kFifo256, kFifo2x64, kCooperative1x128, kCooperative4x64, kUnified),
                         name_of_kind);
INSTANTIATE_TEST_SUITE_P(Kinds, AnyOrder,
                         ::testing::Values(kAny4x64,
                                           kernel_kind{"Any8x32", CUDAQ_KERNEL_REGULAR, 8, 32, CUDAQ_ORDERING_ANY}),
                         name_of_kind);

} // namespace
} // namespace cudaq::realtime::test

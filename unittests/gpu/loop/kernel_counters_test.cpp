// SPDX-License-Identifier: Apache-2.0
// What the host reads of a running kernel, and which dispatchers may use a ring.
#include "unittests/gpu/support/gpu_dispatcher.h"

namespace cudaq::realtime::test {
namespace {

class KernelCounters : public gpu_test, public ::testing::WithParamInterface<kernel_kind> {
protected:
  void prepare() override {
    ring_ = std::make_unique<host_ring>(ring_shape{8, 256, false}, CUDAQ_MEMORY_MAPPED);
    client_ = std::make_unique<gpu_client>(ring_->ring, 8);
  }
  manager_handle manager_;
  std::unique_ptr<host_ring> ring_;
  std::unique_ptr<gpu_client> client_;
};

// Known failure 13.
TEST_P(KernelCounters, CountersAdvanceDuringTheRunAndAreExactAtItsEnd) {
  gpu_dispatcher dispatcher(manager_.get, setup_of(GetParam(), *ring_));
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  std::uint64_t good = 0, own_errors = 0, unknown = 0, refused = 0;
  for (std::uint32_t n = 0; n < 200; ++n) {
    if (n % 10 == 3) {
      client_->put(gpu_client::header(kUnknownId, 16, n), some_bytes(16, n));
      ++unknown;
    } else if (n % 10 == 5) {
      const std::uint32_t slot = client_->put(gpu_client::header(id_of(handler::reverse), 5000, n), some_bytes(4, n));
      EXPECT_EQ(client_->collect(slot).header.status, CUDAQ_RPC_ERR_BAD_ARG_LEN);
      ++refused;
    } else if (n % 10 == 7) {
      EXPECT_EQ(client_->call(id_of(handler::own_status), bytes_of(std::int32_t{9}), n).header.status, 9);
      ++own_errors;
    } else {
      ASSERT_NO_FATAL_FAILURE(expect_serves(*client_, n));
      ++good;
    }
    if (n % 50 == 49) { // the counters include each answer while the kernel still runs
      EXPECT_TRUE(eventually([&] { return dispatcher.stats().responded == good + own_errors + refused; }, kOneSecond));
      EXPECT_TRUE(eventually([&] { return dispatcher.processed() == n + 1; }, kOneSecond));
    }
  }
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatcher.get));
  const cudaq_dispatcher_stats_t stats = dispatcher.stats();
  EXPECT_EQ(stats.state, static_cast<std::uint32_t>(CUDAQ_DISPATCHER_STOPPED));
  EXPECT_EQ(stats.received, 200u);
  EXPECT_EQ(stats.dispatched, good + own_errors);
  EXPECT_EQ(stats.responded, good + own_errors + refused);
  EXPECT_EQ(stats.in_flight, 0u);
  EXPECT_EQ(stats.handler_errors, own_errors);
  EXPECT_EQ(stats.dropped_unknown_function, unknown);
  EXPECT_EQ(stats.protocol_errors[CUDAQ_RPC_ERROR_INDEX(CUDAQ_RPC_ERR_BAD_ARG_LEN)], refused);
  EXPECT_EQ(stats.dropped_bad_magic + stats.dropped_flag_value + stats.unexpected_flag_values, 0u);
  EXPECT_EQ(stats.busy_slots, 0u);
  if (GetParam().fifo()) {
    EXPECT_EQ(stats.cursor, 200u % 8);
  }
}

TEST_P(KernelCounters, HeartbeatMovesWhileNothingComes) {
  gpu_dispatcher dispatcher(manager_.get, setup_of(GetParam(), *ring_));
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  for (int n = 0; n < 3; ++n) {
    const std::uint64_t before = dispatcher.stats().heartbeat;
    EXPECT_TRUE(eventually([&] { return dispatcher.stats().heartbeat > before; }, kOneSecond));
  }
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatcher.get));
  const std::uint64_t at_end = dispatcher.stats().heartbeat;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(dispatcher.stats().heartbeat, at_end);
}

TEST_P(KernelCounters, StuckHandlerIsNamed) {
  gpu_dispatcher dispatcher(manager_.get, setup_of(GetParam(), *ring_));
  std::uint32_t *word = mapped_word<std::uint32_t>();
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  for (std::uint32_t n = 0; n < 5; ++n)
    ASSERT_NO_FATAL_FAILURE(expect_serves(*client_, n));
  const wait_request long_wait{60'000'000'000ull, reinterpret_cast<std::uint64_t>(word)};
  const std::uint32_t slot = client_->send(id_of(handler::wait_for_word), bytes_of(long_wait), 5);
  ASSERT_EQ(slot, 5u);
  EXPECT_TRUE(eventually([&] { return dispatcher.stats().busy_slots == 1; }, kOneSecond));
  std::string text;
  EXPECT_TRUE(finishes_within(kOneSecond, "dump_state", [&] { text = dispatcher.dump(); }));
  EXPECT_NE(text.find("slot 5"), std::string::npos) << text;
  store_release(*word, 1u);
  EXPECT_EQ(client_->collect(slot).header.status, 0);
  ASSERT_NO_FATAL_FAILURE(expect_serves(*client_, 6));
  EXPECT_TRUE(eventually([&] { return dispatcher.stats().busy_slots == 0; }, kOneSecond));
}

// Two kernels on one ring cannot agree which of them takes a slot. (A unified kernel is left out: its ring belongs to
// its transport, and the library does not have it.)
class KernelRings : public KernelCounters {};

// Known failure 14.
TEST_P(KernelRings, SecondDispatcherOnTheSameRingIsRefused) {
  gpu_dispatcher first(manager_.get, setup_of(GetParam(), *ring_));
  ASSERT_NO_FATAL_FAILURE(first.expect_start());
  for (const kernel_kind &kind : {kFifo32, kCooperative1x128, GetParam()}) {
    SCOPED_TRACE(kind.name);
    gpu_dispatcher second(manager_.get, setup_of(kind, *ring_));
    const call_result started = second.start();
    EXPECT_NE(started.status, CUDAQ_OK);
    EXPECT_NE(started.text, "");
  }
  for (std::uint32_t n = 0; n < 20; ++n)
    ASSERT_NO_FATAL_FAILURE(expect_serves(*client_, n));
  EXPECT_TRUE(eventually([&] { return first.stats().responded == 20; }));
}

INSTANTIATE_TEST_SUITE_P(Kinds, KernelRings, ::testing::Values(kFifo32, kAny4x64, kCooperative4x64), name_of_kind);
INSTANTIATE_TEST_SUITE_P(Kinds, KernelCounters, ::testing::ValuesIn(each_kind()), name_of_kind);

} // namespace
} // namespace cudaq::realtime::test

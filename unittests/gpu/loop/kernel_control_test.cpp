// SPDX-License-Identifier: Apache-2.0
// Starting, stopping, querying and destroying a dispatcher whose kernel does not end by itself.
#include "unittests/gpu/support/gpu_dispatcher.h"

#include <tuple>

namespace cudaq::realtime::test {
namespace {

/// Manager, ring, dispatcher, client.
struct session {
  explicit session(const kernel_kind &kind, bool control_in_device_memory = true,
                   const ring_shape &shape = {4, 256, false})
      : ring(shape, CUDAQ_MEMORY_MAPPED), setup(setup_of(kind, ring)) {
    setup.control_in_device_memory = control_in_device_memory;
    dispatcher = std::make_unique<gpu_dispatcher>(manager.get, setup);
    client = std::make_unique<gpu_client>(ring.ring, shape.num_slots);
  }
  manager_handle manager;
  host_ring ring;
  gpu_setup setup;
  std::unique_ptr<gpu_dispatcher> dispatcher;
  std::unique_ptr<gpu_client> client;
};

using kind_and_place = std::tuple<kernel_kind, bool>;
class KernelControlWords : public gpu_test, public ::testing::WithParamInterface<kind_and_place> {
protected:
  std::unique_ptr<session> make() {
    return std::make_unique<session>(std::get<0>(GetParam()), std::get<1>(GetParam()));
  }
};

// The test does not touch the shutdown flag. Only the library does.
// Known failure 1.
TEST_P(KernelControlWords, StopAndGetProcessedReturnWhileTheKernelRuns) {
  const auto s = make();
  ASSERT_NO_FATAL_FAILURE(s->dispatcher->expect_start());
  for (std::uint64_t n = 0; n < 100; ++n) {
    if (n % 10 == 0) {
      ASSERT_NO_FATAL_FAILURE(expect_serves(*s->client, static_cast<std::uint32_t>(n)));
    }
    std::uint64_t processed = 0;
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_get_processed(s->dispatcher->get, &processed));
    EXPECT_LE(processed, n / 10 + 1);
  }
  EXPECT_TRUE(eventually([&] { return s->dispatcher->processed() == 10; }, kOneSecond));
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(s->dispatcher->get));
  EXPECT_EQ(s->dispatcher->state(), CUDAQ_DISPATCHER_STOPPED);
  EXPECT_EQ(s->dispatcher->processed(), 10u);
  // A program may read the count from the word that it passed to cudaq_dispatcher_set_control.
  std::uint64_t word = 0;
  const side_stream stream;
  CUDA_EXPECT_OK(cudaMemcpyAsync(&word, s->dispatcher->stats_word, sizeof(word), cudaMemcpyDefault, stream.get));
  CUDA_EXPECT_OK(stream.wait());
  EXPECT_EQ(word, 10u);
}

TEST_P(KernelControlWords, CallersFlagEndsTheKernel) {
  const auto s = make();
  for (std::uint32_t round = 0; round < 3; ++round) {
    ASSERT_NO_FATAL_FAILURE(s->dispatcher->expect_start()); // clears the flag
    ASSERT_NO_FATAL_FAILURE(expect_serves(*s->client, round));
    s->dispatcher->raise_callers_flag();
    EXPECT_TRUE(eventually([&] { return s->dispatcher->state() == CUDAQ_DISPATCHER_STOPPED; }, kOneSecond));
  }
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(s->dispatcher->get));
  EXPECT_EQ(s->dispatcher->processed(), 3u);
}

INSTANTIATE_TEST_SUITE_P(Flavours, KernelControlWords,
                         ::testing::Combine(::testing::ValuesIn(each_kind()), ::testing::Bool()),
                         [](const auto &tested) {
                           return std::string(std::get<0>(tested.param).name) +
                                  (std::get<1>(tested.param) ? "_DeviceWords" : "_MappedWords");
                         });

class KernelControl : public gpu_test, public ::testing::WithParamInterface<kernel_kind> {};

// Known failure 12.
TEST_P(KernelControl, DestroyStopsAndLeavesNothingRunning) {
  session s(GetParam());
  for (std::uint32_t round = 0; round < 3; ++round) {
    ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
    ASSERT_NO_FATAL_FAILURE(expect_serves(*s.client, round));
    EXPECT_TRUE(finishes_within(kOneSecond, "destroy", [&] { s.dispatcher.reset(); }));
    EXPECT_TRUE(finishes_within(kOneSecond, "cudaDeviceSynchronize", [] { CUDA_EXPECT_OK(cudaDeviceSynchronize()); }));
    s.dispatcher = std::make_unique<gpu_dispatcher>(s.manager.get, s.setup);
    s.client->set_next_slot(0);
  }
}

TEST_P(KernelControl, DestroyOfOneThatNeverStartedReturns) {
  session s(GetParam());
  EXPECT_TRUE(finishes_within(kOneSecond, "destroy", [&] { s.dispatcher.reset(); }));
}

// The manager returns an error instead of leaving a kernel without an owner.
TEST_P(KernelControl, ManagerStaysWhileADispatcherRuns) {
  session s(GetParam());
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  const call_result destroyed = CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatch_manager_destroy(s.manager.get));
  EXPECT_EQ(destroyed.status, CUDAQ_ERR_STATE);
  ASSERT_NO_FATAL_FAILURE(expect_serves(*s.client, 1));
}

TEST_P(KernelControl, SettersAreRefusedWhileItRuns) {
  session s(GetParam());
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  EXPECT_EQ(CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatcher_start(s.dispatcher->get)).status, CUDAQ_OK);
  EXPECT_EQ(cudaq_dispatcher_set_ringbuffer(s.dispatcher->get, &s.ring.ring), CUDAQ_ERR_STATE);
  EXPECT_EQ(cudaq_dispatcher_set_options(s.dispatcher->get, &s.dispatcher->options), CUDAQ_ERR_STATE);
  EXPECT_EQ(cudaq_dispatcher_set_launch_fn(s.dispatcher->get, launch_nothing), CUDAQ_ERR_STATE);
  ASSERT_NO_FATAL_FAILURE(expect_serves(*s.client, 1));
}

// A stop ends the loop after the current request. The requests left stay in their slots, and the next start continues
// at the first of them.
TEST_P(KernelControl, RestartGoesOnAtTheSameSlot) {
  session s(GetParam());
  for (std::uint32_t round = 0; round < 7; ++round) { // 7 rounds, 4 slots: each slot is the first one of a start
    ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
    ASSERT_NO_FATAL_FAILURE(expect_serves(*s.client, round));
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(s.dispatcher->get));
    const std::vector<std::uint8_t> payload = some_bytes(9, round);
    const std::uint32_t slot = s.client->send(id_of(handler::reverse), payload, 100 + round);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(s.client->slots->tx_flag(slot), 0u) << "a stopped dispatcher must not answer";
    ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
    ASSERT_NO_FATAL_FAILURE(expect_reversed(s.client->collect(slot), payload, 100 + round));
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(s.dispatcher->get));
  }
  EXPECT_EQ(s.dispatcher->processed(), 14u);
}

// The handler does not return in time. After it has returned, stop succeeds and the dispatcher can start again.
TEST_P(KernelControl, StopTimesOutOnAStuckHandlerAndCanBeRepeated) {
  session s(GetParam());
  std::uint32_t *word = mapped_word<std::uint32_t>();
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  const wait_request long_wait{60'000'000'000ull, reinterpret_cast<std::uint64_t>(word)};
  const std::uint32_t slot = s.client->send(id_of(handler::wait_for_word), bytes_of(long_wait), 5);
  ASSERT_TRUE(eventually([&] { return s.dispatcher->stats().busy_slots != 0; }, kOneSecond));
  const call_result first =
      CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatcher_stop_timeout(s.dispatcher->get, 200'000'000));
  EXPECT_EQ(first.status, CUDAQ_ERR_TIMEOUT) << first.text;
  EXPECT_NE(first.text, "");
  EXPECT_EQ(s.dispatcher->state(), CUDAQ_DISPATCHER_STOPPING);
  EXPECT_EQ(CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatcher_start(s.dispatcher->get)).status, CUDAQ_ERR_STATE);
  store_release(*word, 1u);
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(s.dispatcher->get));
  EXPECT_EQ(s.dispatcher->state(), CUDAQ_DISPATCHER_STOPPED);
  EXPECT_EQ(s.client->collect(slot).header.status, 0); // the request of the stuck handler was completed
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  ASSERT_NO_FATAL_FAILURE(expect_serves(*s.client, 6));
}

// The second request stays in its slot, although it has been there since before the stop.
TEST_P(KernelControl, StopIsSeenBeforeTheNextHandlerRuns) {
  session s(GetParam(), true, {8, 256, false});
  std::uint32_t *word = mapped_word<std::uint32_t>();
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  for (std::uint32_t n = 0; n < 3;
       ++n) // the next flag is the last one of its memory sector, so the loop reads it alone
    ASSERT_NO_FATAL_FAILURE(expect_serves(*s.client, n));
  const wait_request slow{10'000'000'000ull, reinterpret_cast<std::uint64_t>(word)};
  const std::uint32_t first = s.client->send(id_of(handler::wait_for_word), bytes_of(slow), 5);
  ASSERT_TRUE(eventually([&] { return s.dispatcher->stats().busy_slots != 0; }, kOneSecond));
  const std::vector<std::uint8_t> payload = some_bytes(9, 1);
  const std::uint32_t second = s.client->send(id_of(handler::reverse), payload, 6);
  EXPECT_EQ(CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatcher_stop_timeout(s.dispatcher->get, 50'000'000)).status,
            CUDAQ_ERR_TIMEOUT);
  store_release(*word, 1u);
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(s.dispatcher->get));
  EXPECT_EQ(s.client->collect(first).header.status, 0);
  EXPECT_NE(s.client->slots->rx_flag(second), 0u);
  EXPECT_EQ(s.client->slots->tx_flag(second), 0u);
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  ASSERT_NO_FATAL_FAILURE(expect_reversed(s.client->collect(second), payload, 6));
}

INSTANTIATE_TEST_SUITE_P(Kinds, KernelControl, ::testing::ValuesIn(each_kind()), name_of_kind);

} // namespace
} // namespace cudaq::realtime::test

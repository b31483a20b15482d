// SPDX-License-Identifier: Apache-2.0
// Ring shape: several clients, one after the other, on the ring of one dispatcher. Each begins at slot 0, and its
// requests are taken in the order of its slots, wherever the requests of the client before it ended.
#include "unittests/support/provider_dispatcher.h"
#include "unittests/transport/shm/provider_handle.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <mutex>
#include <numeric>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kSlots = 8;

/// Keeps the request ids in the order in which the dispatcher serves them. Defers the first `to_defer` requests.
class order_keeper {
public:
  static std::int32_t serve(cudaq_host_call_t *call, void *user) {
    auto &self = *static_cast<order_keeper *>(user);
    const std::lock_guard lock(self.mutex_);
    self.ids_.push_back(call->job.request_id);
    if (self.deferred_.size() == self.to_defer_)
      return 0;
    self.deferred_.push_back(call->job);
    return CUDAQ_HOST_CALL_DEFERRED;
  }
  void defer(std::size_t count) {
    const std::lock_guard lock(mutex_);
    to_defer_ = count;
  }
  std::vector<cudaq_host_job_t> deferred() {
    const std::lock_guard lock(mutex_);
    return deferred_;
  }
  std::vector<std::uint32_t> ids() {
    const std::lock_guard lock(mutex_);
    return ids_;
  }

private:
  std::mutex mutex_;
  std::vector<std::uint32_t> ids_;
  std::vector<cudaq_host_job_t> deferred_;
  std::size_t to_defer_ = 0;
};

class ShmOrder : public ::testing::TestWithParam<cudaq_wait_policy_t> {
protected:
  ShmOrder() : name(own_name("order")), provider({"--name", name, "--num-slots", std::to_string(kSlots)}) {
    EXPECT_EQ(provider.status, CUDAQ_OK) << provider.text;
    CUDAQ_EXPECT_OK(provider.table->get_transport_context(provider.handle, RING_BUFFER, &ring));
  }

  void make_dispatcher(bool skips_markers = true) {
    cudaq_dispatcher_config_t config = host_config({kSlots, 256});
    config.skip_tx_markers = skips_markers ? 1 : 0;
    cudaq_dispatcher_options_t options = default_options();
    options.wait_policy = GetParam();
    dispatcher = std::make_unique<provider_dispatcher>(config, ring, nullptr,
                                                       function_v2(kChecked, order_keeper::serve, &kept), options);
  }
  std::unique_ptr<shm_client> attach(std::uint64_t timeout_ns = kPatience) {
    auto client = std::make_unique<shm_client>(name, GetParam(), timeout_ns);
    EXPECT_EQ(client->status, CUDAQ_OK) << client->text;
    return client;
  }
  /// Sends `count` requests from slot 0 on, as many at a time as the ring holds, and collects their answers.
  void pipeline(shm_client &client, std::uint32_t count) {
    for (std::uint32_t begin = 0; begin < count; begin += kSlots) {
      const std::uint32_t end = std::min(count, begin + kSlots);
      for (std::uint32_t n = begin; n < end; ++n) {
        ASSERT_EQ(cudaq_host_ringbuffer_slot_available(&client.ring, n % kSlots), 1) << n;
        client.send(n % kSlots, kChecked, nullptr, 0, next_id++);
      }
      for (std::uint32_t n = begin; n < end; ++n) {
        ASSERT_EQ(cudaq_shm_client_wait(client.get, n % kSlots, kPatience), CUDAQ_OK) << cudaq_shm_client_error();
        cudaq_host_ringbuffer_clear_slot(&client.ring, n % kSlots);
      }
    }
  }
  void expect_all_in_order() {
    std::vector<std::uint32_t> expected(next_id);
    std::iota(expected.begin(), expected.end(), 0u);
    EXPECT_EQ(kept.ids(), expected);
  }

  std::string name;
  provider_handle provider;
  cudaq_ringbuffer_t ring{};
  order_keeper kept;
  std::unique_ptr<provider_dispatcher> dispatcher;
  std::uint32_t next_id = 0;
};
INSTANTIATE_TEST_SUITE_P(Wait, ShmOrder, ::testing::Values(CUDAQ_WAIT_SPIN_YIELD, CUDAQ_WAIT_BLOCK));

TEST_P(ShmOrder, EachClientIsServedInTheOrderOfItsSlots) {
  make_dispatcher();
  for (std::uint32_t count = 1; count <= 2 * kSlots + 1; ++count) {
    const auto client = attach();
    ASSERT_NO_FATAL_FAILURE(pipeline(*client, count));
  }
  expect_all_in_order();
}

TEST_P(ShmOrder, ARequestThatAClientLeavesDoesNotChangeTheOrderOfTheNextOne) {
  make_dispatcher();
  auto old = attach();
  for (const std::uint32_t slot : {0u, 1u, 3u}) // slot 2 is skipped
    old->send(slot, kChecked, nullptr, 0, next_id++);
  old->detach();
  ASSERT_NO_FATAL_FAILURE(pipeline(*attach(), 2 * kSlots));
  expect_all_in_order();
}

TEST_P(ShmOrder, AClientWhoseAnswersAreDeferredDoesNotChangeTheOrderOfTheNextOne) {
  for (const bool skips_markers : {true, false}) {
    make_dispatcher(skips_markers);
    const std::size_t before = kept.deferred().size();
    kept.defer(before + 3);
    auto old = attach();
    for (std::uint32_t i = 0; i < 3; ++i)
      old->send(i, kChecked, nullptr, 0, next_id++);
    ASSERT_TRUE(eventually([&] { return kept.deferred().size() == before + 3; }));
    old->detach();
    EXPECT_EQ(shm_client(name, GetParam(), 30'000'000).status, CUDAQ_ERR_TIMEOUT);
    const std::vector<cudaq_host_job_t> jobs = kept.deferred();
    for (std::size_t n = jobs.size(); n-- > before;)
      CUDAQ_EXPECT_OK(cudaq_host_complete_deferred(dispatcher->get, &jobs[n], 0, 0));
    ASSERT_NO_FATAL_FAILURE(pipeline(*attach(), kSlots));
    expect_all_in_order();
    dispatcher.reset();
  }
}

TEST_P(ShmOrder, ADispatcherThatWasStoppedMeanwhileFreesTheRingWhenItRunsAgain) {
  make_dispatcher();
  auto old = attach();
  ASSERT_NO_FATAL_FAILURE(pipeline(*old, 5));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(dispatcher->get));
  old->detach();
  EXPECT_EQ(shm_client(name, GetParam(), 30'000'000).status, CUDAQ_ERR_TIMEOUT);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher->get));
  ASSERT_NO_FATAL_FAILURE(pipeline(*attach(), kSlots));
  expect_all_in_order();
}

TEST_P(ShmOrder, AnotherDispatcherFreesTheRingAndBeginsAtSlot0) {
  make_dispatcher();
  auto old = attach();
  ASSERT_NO_FATAL_FAILURE(pipeline(*old, 5));
  dispatcher.reset();
  old->detach();
  make_dispatcher();
  ASSERT_NO_FATAL_FAILURE(pipeline(*attach(), kSlots));
  expect_all_in_order();
}

TEST_P(ShmOrder, AClientThatSentNothingLeavesAFreeRingAlsoWithoutADispatcher) {
  for (int i = 0; i < 3; ++i)
    attach();
  const auto last = attach();
  for (std::uint32_t i = 0; i < kSlots; ++i)
    last->send(i, kChecked, nullptr, 0, next_id++);
  make_dispatcher();
  for (std::uint32_t i = 0; i < kSlots; ++i)
    EXPECT_EQ(cudaq_shm_client_wait(last->get, i, kPatience), CUDAQ_OK) << cudaq_shm_client_error();
  expect_all_in_order();
}

} // namespace
} // namespace cudaq::realtime::test

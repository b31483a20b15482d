// SPDX-License-Identifier: Apache-2.0
// Answers that come after, before or at the same time as the return of their handler.
#include "unittests/host_dispatcher/traffic.h"

#include <deque>
#include <mutex>

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  ring_shape shape;
  std::uint32_t pool = 0;
  bool skip_markers = false;
  bool shared = false;
};

/// A handler that defers each call and keeps it. Tests answer a kept call with its request id.
class keeper {
public:
  static std::int32_t serve(cudaq_host_call_t *call, void *user) {
    auto &self = *static_cast<keeper *>(user);
    const std::lock_guard lock(self.mutex_);
    self.calls_.push_back(*call);
    return CUDAQ_HOST_CALL_DEFERRED;
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return calls_.size();
  }
  bool take(cudaq_host_call_t &out, std::size_t which = 0) {
    const std::lock_guard lock(mutex_);
    if (calls_.size() <= which)
      return false;
    out = calls_[which];
    calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(which));
    return true;
  }
  cudaq_host_call_t wait_for_one() {
    cudaq_host_call_t out{};
    EXPECT_TRUE(eventually([&] { return take(out); }));
    return out;
  }

private:
  std::mutex mutex_;
  std::deque<cudaq_host_call_t> calls_;
};

/// Writes the request id as the result and completes the call.
cudaq_status_t answer_call(cudaq_dispatcher_t *d, const cudaq_host_call_t &call, std::int32_t status = 0) {
  std::memcpy(call.result, &call.job.request_id, 4);
  return cudaq_host_complete_deferred(d, &call.job, status, 4);
}

std::uint32_t echoed(const answer &got) {
  std::uint32_t id = 0;
  EXPECT_EQ(got.result.size(), 4u);
  std::memcpy(&id, got.result.data(), got.result.size() < 4 ? got.result.size() : 4);
  return id;
}

class DeferredCompletion : public ::testing::TestWithParam<flavour> {
protected:
  DeferredCompletion() : ring(GetParam().shape), client(ring) {
    cudaq_dispatcher_config_t config = host_config(GetParam().shape);
    config.skip_tx_markers = GetParam().skip_markers;
    config.shared_ring_mode = GetParam().shared;
    dispatcher =
        std::make_unique<host_dispatcher_handle>(manager.get, ring, std::vector<cudaq_function_entry_t>{}, config);
    options = default_options();
    options.handler_pool_size = GetParam().pool;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(dispatcher->get, &options));
  }
  void start(cudaq_host_handler_v2_t handler, void *user) {
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_host_handler_v2(dispatcher->get, 1, handler, user, nullptr));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_start(dispatcher->get));
  }
  std::uint32_t slots() const { return GetParam().shape.num_slots; }

  host_ring ring;
  manager_handle manager;
  std::unique_ptr<host_dispatcher_handle> dispatcher;
  cudaq_dispatcher_options_t options;
  ring_client client;
  keeper kept;
};

TEST_P(DeferredCompletion, AnswersOutOfOrder) {
  start(keeper::serve, &kept);
  for (std::uint32_t lap = 0; lap < 5; ++lap) {
    for (std::uint32_t i = 0; i < slots(); ++i)
      client.send(1, {1, 2, 3}, lap * 100 + i, lap);
    ASSERT_TRUE(eventually([&] { return kept.size() == slots(); }));
    for (std::uint32_t i = slots(); i-- > 0;) {
      cudaq_host_call_t call{};
      ASSERT_TRUE(kept.take(call, i * 7919 % (i + 1)));
      CUDAQ_EXPECT_OK(answer_call(dispatcher->get, call, 5));
      const answer got = client.collect(call.job.slot);
      EXPECT_EQ(got.header.status, 5);
      EXPECT_EQ(got.header.request_id, call.job.request_id);
      EXPECT_EQ(got.header.ptp_timestamp, lap);
      EXPECT_EQ(echoed(got), call.job.request_id);
    }
  }
}

TEST_P(DeferredCompletion, PayloadIsInTheSlotIfTheOptionIsSetOrTheResultIsElsewhere) {
  for (const bool in_slot : {false, true}) {
    options.payload_in_slot = in_slot;
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(dispatcher->get, &options));
    start(keeper::serve, &kept);
    const std::uint32_t slot = client.send(1, {1, 2, 3}, 7);
    const cudaq_host_call_t call = kept.wait_for_one();
    const bool in_place = call.result == ring.rx_slot(slot) + CUDAQ_RPC_HEADER_SIZE;
    const bool stands = call.payload == ring.rx_slot(slot) + CUDAQ_RPC_HEADER_SIZE;
    EXPECT_EQ(stands, in_slot || !in_place);
    if (stands) {
      EXPECT_EQ(std::memcmp(call.payload, "\1\2\3", 3), 0);
    }
    CUDAQ_EXPECT_OK(answer_call(dispatcher->get, call));
    EXPECT_EQ(echoed(client.collect(slot)), 7u);
    CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(dispatcher->get));
  }
}

TEST_P(DeferredCompletion, IsRefusedTheSecondTimeAndAfterTheSlotWasUsedAgain) {
  start(keeper::serve, &kept);
  client.send(1, {}, 7);
  const cudaq_host_call_t first = kept.wait_for_one();
  CUDAQ_EXPECT_OK(answer_call(dispatcher->get, first));
  EXPECT_EQ(answer_call(dispatcher->get, first), CUDAQ_ERR_STATE);
  client.collect(first.job.slot);
  for (std::uint32_t i = 1; i < slots(); ++i) {
    client.send(1, {}, i);
    const cudaq_host_call_t call = kept.wait_for_one();
    CUDAQ_EXPECT_OK(answer_call(dispatcher->get, call));
    client.collect(call.job.slot);
  }
  const std::uint32_t again = client.send(1, {}, 8);
  ASSERT_EQ(again, first.job.slot);
  const cudaq_host_call_t second = kept.wait_for_one();
  EXPECT_EQ(cudaq_host_complete_deferred(dispatcher->get, &first.job, 0, 0), CUDAQ_ERR_STATE);
  EXPECT_STRNE(cudaq_last_error_message(), "");
  CUDAQ_EXPECT_OK(answer_call(dispatcher->get, second));
  EXPECT_EQ(echoed(client.collect(again)), 8u);
}

TEST_P(DeferredCompletion, RefusesATooLongResultAndAForeignSlotAndKeepsTheJob) {
  start(keeper::serve, &kept);
  const std::uint32_t slot = client.send(1, {}, 7);
  const cudaq_host_call_t call = kept.wait_for_one();
  EXPECT_EQ(cudaq_host_complete_deferred(dispatcher->get, &call.job, 0, call.max_result_len + 1),
            CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(cudaq_host_complete_deferred(dispatcher->get, &call.job, CUDAQ_HOST_CALL_DEFERRED, 0),
            CUDAQ_ERR_INVALID_ARG);
  cudaq_host_job_t foreign = call.job;
  foreign.slot = slots();
  EXPECT_EQ(cudaq_host_complete_deferred(dispatcher->get, &foreign, 0, 0), CUDAQ_ERR_INVALID_ARG);
  CUDAQ_EXPECT_OK(answer_call(dispatcher->get, call));
  EXPECT_EQ(echoed(client.collect(slot)), 7u);
}

TEST_P(DeferredCompletion, BeforeTheReturnOfTheHandlerIsTheAnswer) {
  struct both {
    cudaq_dispatcher_t *dispatcher;
    std::atomic<int> refused{0};
  } user{dispatcher->get};
  start(
      [](cudaq_host_call_t *call, void *u) -> std::int32_t {
        auto &self = *static_cast<both *>(u);
        const std::uint32_t id = call->job.request_id;
        std::thread other([&] { self.refused += answer_call(self.dispatcher, *call, 1) != CUDAQ_OK; });
        other.join();
        if (id % 3 == 0)
          return CUDAQ_HOST_CALL_DEFERRED;
        if (id % 3 == 1)
          return 2; // has no effect: the request is completed already
        throw 3;
      },
      &user);
  for (std::uint32_t id = 0; id < 60; ++id) {
    const answer got = client.call(1, {}, id);
    ASSERT_EQ(got.header.status, 1);
    ASSERT_EQ(echoed(got), id);
  }
  EXPECT_EQ(user.refused.load(), 0);
  EXPECT_EQ(dispatcher->stats().responded, 60u);
}

TEST_P(DeferredCompletion, FromManyThreadsAnswersEachRequestOnce) {
  start(keeper::serve, &kept);
  std::atomic<bool> end{false};
  std::atomic<std::uint32_t> won{0};
  std::vector<std::thread> completers;
  for (int t = 0; t < 3; ++t)
    completers.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      while (!end.load()) {
        cudaq_host_call_t call{};
        const std::size_t waiting = kept.size();
        if (waiting == 0 || !kept.take(call, random() % waiting)) {
          std::this_thread::yield();
          continue;
        }
        std::memcpy(call.result, &call.job.request_id, 4);
        std::thread rival([&] { won += cudaq_host_complete_deferred(dispatcher->get, &call.job, 0, 4) == CUDAQ_OK; });
        won += cudaq_host_complete_deferred(dispatcher->get, &call.job, 0, 4) == CUDAQ_OK;
        rival.join();
      }
    });
  const std::uint32_t total = load_size(3000);
  std::deque<std::pair<std::uint32_t, std::uint32_t>> open;
  for (std::uint32_t id = 0; id < total; ++id) {
    open.emplace_back(client.send(1, {}, id), id);
    if (open.size() == slots()) {
      EXPECT_EQ(echoed(client.collect(open.front().first)), open.front().second);
      open.pop_front();
    }
  }
  for (const auto &[slot, id] : open)
    EXPECT_EQ(echoed(client.collect(slot)), id);
  EXPECT_TRUE(eventually([&] { return won.load() == total; }));
  end.store(true);
  for (std::thread &t : completers)
    t.join();
}

TEST_P(DeferredCompletion, AfterStopIsRefusedAndTheRequestIsAnsweredShuttingDown) {
  start(keeper::serve, &kept);
  for (int run = 0; run < 3; ++run) {
    const std::uint32_t slot = client.send(1, {}, 7);
    const cudaq_host_call_t call = kept.wait_for_one();
    CUDAQ_EXPECT_OK(stop_again(dispatcher->get, 5000000));
    const answer got = client.collect(slot);
    EXPECT_EQ(got.header.status, CUDAQ_RPC_ERR_SHUTTING_DOWN);
    EXPECT_EQ(got.header.request_id, 7u);
    EXPECT_EQ(cudaq_host_complete_deferred(dispatcher->get, &call.job, 0, 0), CUDAQ_ERR_STATE);
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher->get));
    EXPECT_EQ(cudaq_host_complete_deferred(dispatcher->get, &call.job, 0, 0), CUDAQ_ERR_STATE);
    const std::uint32_t next = client.send(1, {}, 8);
    const cudaq_host_call_t good = kept.wait_for_one();
    EXPECT_EQ(cudaq_host_complete_deferred(dispatcher->get, &call.job, 0, 0), CUDAQ_ERR_STATE);
    CUDAQ_EXPECT_OK(answer_call(dispatcher->get, good));
    EXPECT_EQ(echoed(client.collect(next)), 8u);
  }
}

// Stop and a completion race at the end of the grace period. Only one answers, and the completion reports if it was
// refused.
TEST_P(DeferredCompletion, AtTheEndOfTheGracePeriodAnswersOnce) {
  start(keeper::serve, &kept);
  const auto grace = std::chrono::milliseconds(20);
  bool in_time = true;
  for (int round = 0; round < 25 && in_time && !HasFailure(); ++round) {
    const std::uint32_t slot = client.send(1, {}, 500);
    const cudaq_host_call_t call = kept.wait_for_one();
    std::memcpy(call.result, &call.job.request_id, 4);
    std::atomic<cudaq_status_t> completed{CUDAQ_OK};
    std::thread late([&] {
      std::this_thread::sleep_for(grace + std::chrono::microseconds(20 * round - 300));
      completed = cudaq_host_complete_deferred(dispatcher->get, &call.job, 0, 4);
    });
    // On a busy machine, ending an idle loop can already take longer than the deadline.
    in_time =
        cudaq_dispatcher_stop_timeout(dispatcher->get, static_cast<std::uint64_t>(grace.count()) * 1000000) == CUDAQ_OK;
    if (in_time) {
      EXPECT_EQ(cudaq_host_ringbuffer_poll_tx_flag(&ring.ring, slot, nullptr), CUDAQ_TX_READY)
          << "stop returned before the answer was in the slot";
      CUDAQ_EXPECT_OK(cudaq_dispatcher_start(dispatcher->get));
    }
    late.join();
    const answer got = client.collect(slot);
    EXPECT_EQ(got.header.request_id, 500u);
    EXPECT_EQ(got.header.status, completed == CUDAQ_OK ? 0 : CUDAQ_RPC_ERR_SHUTTING_DOWN);
  }
}

// A thread completes jobs that were completed, or that a stop gave up, again and again while the dispatcher stops and
// starts.
// Known failure 12.
TEST_P(DeferredCompletion, OfAStaleJobMayComeAtAnyMomentOfARestart) {
  start(keeper::serve, &kept);
  std::mutex mutex;
  std::vector<cudaq_host_job_t> jobs;
  std::atomic<bool> end{false};
  std::thread stale([&] {
    std::vector<cudaq_host_job_t> known;
    while (!end.load()) {
      {
        const std::lock_guard lock(mutex);
        known = jobs;
      }
      std::this_thread::yield();
      for (const cudaq_host_job_t &job : known)
        EXPECT_EQ(cudaq_host_complete_deferred(dispatcher->get, &job, 0, 0), CUDAQ_ERR_STATE);
    }
  });
  for (std::uint32_t i = 0; i < 30; ++i) {
    const std::uint32_t slot = client.send(1, {}, i);
    const cudaq_host_call_t call = kept.wait_for_one();
    const bool completed = i % 2 == 0;
    if (completed) {
      CUDAQ_EXPECT_OK(answer_call(dispatcher->get, call));
    }
    CUDAQ_EXPECT_OK(stop_again(dispatcher->get, 1000000));
    EXPECT_EQ(client.collect(slot).header.status, completed ? 0 : CUDAQ_RPC_ERR_SHUTTING_DOWN);
    {
      const std::lock_guard lock(mutex);
      jobs.push_back(call.job);
    }
    CUDAQ_EXPECT_OK(cudaq_dispatcher_start(dispatcher->get));
  }
  end.store(true);
  stale.join();
}

INSTANTIATE_TEST_SUITE_P(Flavours, DeferredCompletion,
                         ::testing::Values(flavour{"Inline", {4, 256, false}}, flavour{"InlineInPlace", {4, 256, true}},
                                           flavour{"OneSlot", {1, 64, true}}, flavour{"Pool", {4, 256, false}, 2},
                                           flavour{"PoolInPlace", {4, 256, true}, 2},
                                           flavour{"PoolNoMarkers", {4, 256, true}, 2, true},
                                           flavour{"Shared", {4, 256, false}, 0, false, true},
                                           flavour{"SharedPool", {4, 256, true}, 1, false, true}),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Launches that the dispatcher hands over to the caller while further requests wait.
#include "unittests/host_dispatcher/fake_graphs.h"

namespace cudaq::realtime::test {
namespace {

/// Takes the launches of one worker, for the test's thread to make.
struct taker {
  static int take(void *self, cudaq_host_launch_fn_t launch, void *launch_data) {
    auto &to = *static_cast<taker *>(self);
    if (to.refuses)
      return 0;
    to.launch = launch;
    to.data = launch_data;
    ++to.taken;
    return 1;
  }
  int run() { return launch(data); }

  std::atomic<bool> refuses{false};
  std::atomic<int> taken{0};
  cudaq_host_launch_fn_t launch = nullptr; ///< read after `taken`
  void *data = nullptr;
};

/// Function 1 has one worker whose launches may be handed over, function 2 one that the library frees.
class HandedLaunch : public two_graphs {
protected:
  HandedLaunch() : two_graphs(CUDAQ_WORKER_CALLER_PUBLISHES) {}
  void SetUp() override {
    two_graphs::SetUp();
    plan.workers[0].hand_over_fn = &taker::take;
    plan.workers[0].hand_over_data = &offers;
    plan.workers[0].pre_launch_fn = [](void *self, void *, cudaStream_t) {
      auto &test = *static_cast<HandedLaunch *>(self);
      if (test.hooks_throw.exchange(false)) // once: the dispatcher may call the next hook at once
        throw 1;
      test.hook_threads[static_cast<std::size_t>(test.hooks.load()) % 4] = std::this_thread::get_id();
      ++test.hooks;
      eventually([&] { return test.go.load(); });
    };
    plan.workers[0].pre_launch_data = this;
  }
  /// Sends two requests. While the first is in its hook, the second comes: it waits when the first is launched.
  void send_two(graph_rig &rig) {
    go = false;
    rig.send(0, 1, 5, 1);
    ASSERT_TRUE(eventually([&] { return hooks == 1; }));
    rig.send(1, 1, 6, 2);
    go = true;
  }
  void offer_a_launch(graph_rig &rig) {
    ASSERT_NO_FATAL_FAILURE(send_two(rig));
    ASSERT_TRUE(eventually([&] { return offers.taken == 1; }));
  }

  /// The second of three requests waits for its hook, too: the first one's launch is the dispatcher's.
  void offer_a_hook(graph_rig &rig) {
    go = false;
    rig.send(0, 1, 5, 1);
    ASSERT_TRUE(eventually([&] { return hooks == 1; }));
    rig.send(1, 1, 6, 2);
    rig.send(2, 1, 7, 3);
    go = true;
    expect_answer(rig, 0, 0);
    ASSERT_TRUE(eventually([&] { return offers.taken == 1; }));
  }

  taker offers;
  std::atomic<bool> go{true}, hooks_throw{false};
  std::atomic<int> hooks{0};
  std::array<std::atomic<std::thread::id>, 4> hook_threads{}; ///< of the last calls
};

TEST_F(HandedLaunch, ComesWithABacklogAndEndsWithIt) {
  graph_rig rig(plan);
  ASSERT_NO_FATAL_FAILURE(offer_a_launch(rig));
  EXPECT_EQ(rig.device->launches, 0u);
  EXPECT_FALSE(rig.answered(0));
  EXPECT_EQ(offers.run(), 0);
  // The second request is the last one, so the dispatcher launches it.
  expect_answer(rig, 0, 0);
  expect_answer(rig, 1, 0);
  EXPECT_EQ(offers.taken, 1);
  EXPECT_EQ(rig.stats().launches, 2u);
}

TEST_F(HandedLaunch, DoesNotComeWhileTheDispatcherKeepsUp) {
  graph_rig rig(plan);
  for (std::uint32_t n = 0; n < 50; ++n) {
    rig.send(n % 8, 1, n, n);
    expect_answer(rig, n % 8, 0);
    cudaq_host_ringbuffer_clear_slot(&rig.ring.ring, n % 8);
  }
  EXPECT_EQ(offers.taken, 0);
}

TEST_F(HandedLaunch, HoldsUpItsWorkerAndNoOther) {
  plan.when_busy = CUDAQ_BUSY_WORKERS_PASS_FUNCTION;
  graph_rig rig(plan);
  ASSERT_NO_FATAL_FAILURE(offer_a_launch(rig));
  rig.send(2, 2, 7, 3);
  expect_answer(rig, 2, 0);
  EXPECT_FALSE(rig.answered(0));
  EXPECT_FALSE(rig.answered(1));
  EXPECT_EQ(offers.run(), 0);
  expect_answer(rig, 0, 0);
  expect_answer(rig, 1, 0);
}

// The graph may be quick: its request is answered and the worker released while the launch has not returned.
TEST_F(HandedLaunch, KeepsItsWorkerUntilItReturns) {
  plan.when_busy = CUDAQ_BUSY_WORKERS_PASS_FUNCTION;
  graph_rig rig(plan);
  std::atomic<bool> returns{false};
  rig.device->launched_elsewhere = [&] { EXPECT_TRUE(eventually([&] { return returns.load(); })); };
  ASSERT_NO_FATAL_FAILURE(offer_a_launch(rig));
  std::thread caller([&] { EXPECT_EQ(offers.run(), 0); });
  cudaq_host_job_t job{};
  EXPECT_TRUE(eventually([&] { return rig.dispatcher.worker_job(0, job).failed(); })) << "the worker is not released";
  rig.send(2, 2, 7, 3);
  expect_answer(rig, 2, 0); // the dispatcher has looked for idle workers since the release
  EXPECT_EQ(hooks, 1);
  EXPECT_FALSE(rig.answered(0));
  returns = true;
  caller.join();
  expect_answer(rig, 0, 0);
  expect_answer(rig, 1, 0);
  EXPECT_EQ(hooks, 2);
}

TEST_F(HandedLaunch, ThatIsRefusedIsMadeByTheDispatcher) {
  offers.refuses = true;
  graph_rig rig(plan);
  ASSERT_NO_FATAL_FAILURE(send_two(rig));
  expect_answer(rig, 0, 0);
  expect_answer(rig, 1, 0);
  EXPECT_EQ(rig.stats().launches, 2u);
}

TEST_F(HandedLaunch, ThatFailsFailsItsRequestAndFreesTheWorker) {
  graph_rig rig(plan);
  ASSERT_NO_FATAL_FAILURE(offer_a_launch(rig));
  rig.device->next_error = 2;
  EXPECT_EQ(offers.run(), 2);
  ASSERT_NO_FATAL_FAILURE(expect_error(rig, 0, 2));
  expect_answer(rig, 1, 0);
  EXPECT_EQ(rig.device->recoveries, 1u);
}

TEST_F(HandedLaunch, WithItsHookIsStagedByTheThreadThatLaunches) {
  plan.workers[0].hand_over = CUDAQ_HAND_OVER_HOOK_AND_LAUNCH;
  graph_rig rig(plan);
  ASSERT_NO_FATAL_FAILURE(offer_a_hook(rig));
  EXPECT_EQ(hooks, 1) << "the dispatcher has staged a request that it handed over";
  EXPECT_NE(hook_threads[0].load(), std::this_thread::get_id());
  EXPECT_EQ(offers.run(), 0);
  EXPECT_EQ(hook_threads[1].load(), std::this_thread::get_id());
  expect_answer(rig, 1, 0);
  expect_answer(rig, 2, 0); // the last one is the dispatcher's
  EXPECT_EQ(hooks, 3);
  EXPECT_EQ(offers.taken, 1);
  EXPECT_EQ(rig.stats().launches, 3u);
}

TEST_F(HandedLaunch, WhoseHookThrowsFailsItsRequestAndFreesTheWorker) {
  plan.workers[0].hand_over = CUDAQ_HAND_OVER_HOOK_AND_LAUNCH;
  graph_rig rig(plan);
  ASSERT_NO_FATAL_FAILURE(offer_a_hook(rig));
  hooks_throw = true;
  EXPECT_EQ(offers.run(), cudaErrorUnknown);
  ASSERT_NO_FATAL_FAILURE(expect_error(rig, 1, cudaErrorUnknown));
  expect_answer(rig, 2, 0);
  EXPECT_EQ(rig.stats().hook_failures, 1u);
  EXPECT_EQ(rig.device->launches, 2u);
}

TEST_F(HandedLaunch, IsWaitedForByAStop) {
  graph_rig rig(plan);
  ASSERT_NO_FATAL_FAILURE(offer_a_launch(rig));
  EXPECT_FALSE(rig.stop(std::chrono::milliseconds(20)));
  EXPECT_FALSE(rig.answered(0));
  EXPECT_EQ(offers.run(), 0);
  EXPECT_TRUE(rig.stop());
  EXPECT_TRUE(rig.answered(0));
}

TEST_F(HandedLaunch, OfAFailedDeviceIsAnsweredBeforeItIsMade) {
  plan.when_busy = CUDAQ_BUSY_WORKERS_PASS_FUNCTION;
  graph_rig rig(plan);
  rig.device->hold(true);
  ASSERT_NO_FATAL_FAILURE(offer_a_launch(rig));
  rig.device->trap();
  for (const std::uint32_t slot : {0u, 1u})
    ASSERT_NO_FATAL_FAILURE(expect_error(rig, slot, kFakeError));
  EXPECT_EQ(offers.run(), kFakeError);
}

// Else the caller's thread would use a launcher that is destroyed with the dispatcher.
TEST_F(HandedLaunch, OfAFailedDeviceIsWaitedForByAStop) {
  graph_rig rig(plan);
  rig.device->hold(true);
  ASSERT_NO_FATAL_FAILURE(offer_a_launch(rig));
  rig.device->trap();
  ASSERT_TRUE(eventually([&] { return rig.answered(0) && rig.answered(1); })) << rig.dispatcher.describe();
  EXPECT_FALSE(rig.stop(std::chrono::milliseconds(20)));
  EXPECT_EQ(offers.run(), kFakeError);
  EXPECT_TRUE(rig.stop());
  EXPECT_EQ(rig.stats().in_flight, 0u);
}

// A thread of the caller may answer before the one that launches has returned.
TEST_F(HandedLaunch, WhoseRequestTheCallerHasAnsweredIsNotAnsweredByAFault) {
  graph_rig rig(plan);
  std::atomic<bool> returns{false}, raised{false};
  rig.device->launched_elsewhere = [&] { EXPECT_TRUE(eventually([&] { return returns.load(); })); };
  rig.device->ready = [&](std::uint32_t) { // does not release the worker
    detail::store_release<std::uint64_t>(rig.ring.ring.tx_flags_host[0],
                                         reinterpret_cast<std::uint64_t>(rig.ring.tx_slot(0)));
    raised = true;
  };
  ASSERT_NO_FATAL_FAILURE(offer_a_launch(rig));
  std::thread caller([&] { EXPECT_EQ(offers.run(), 0); });
  EXPECT_TRUE(eventually([&] { return raised.load(); }));
  rig.device->trap();
  EXPECT_TRUE(eventually([&] { return rig.tx_status(1) == CUDAQ_TX_ERROR; })) << rig.dispatcher.describe();
  EXPECT_EQ(rig.tx_status(0), CUDAQ_TX_READY);
  returns = true;
  caller.join();
  EXPECT_TRUE(rig.stop());
  EXPECT_EQ(rig.tx_status(0), CUDAQ_TX_READY);
  const cudaq_dispatcher_stats_t stats = rig.stats();
  EXPECT_EQ(stats.responded, 2u);
  EXPECT_EQ(stats.in_flight, 0u);
  EXPECT_EQ(stats.protocol_errors[CUDAQ_RPC_ERROR_INDEX(CUDAQ_RPC_ERR_DEVICE_FAULT)], 1u) << "of the second request";
}

/// A pre-launch hook that finds requests out of order: those of its function, which the dispatcher's thread alone calls
/// it for, also if other threads launch; or, if it is handed over, those of its worker, which may skip some. The words
/// are for the thread sanitizer to watch.
struct ordered_hook {
  static void call(void *self, void *slot, cudaStream_t) {
    auto &hook = *static_cast<ordered_hook *>(self);
    const auto *frame = static_cast<const std::uint8_t *>(slot);
    const auto header = detail::read_header<detail::request>(frame);
    std::uint32_t sequence = 0;
    if (!intact_frame(frame + sizeof(cudaq_rpc_header_t), header.arg_len, kRequestSalt, sequence) ||
        (hook.may_skip ? sequence < hook.next : sequence != hook.next))
      ++hook.out_of_order;
    hook.next = sequence + 1;
    ++hook.calls;
  }
  bool may_skip = false;
  std::uint32_t next = 0, out_of_order = 0, calls = 0;
};

class HandedLaunches : public testing::TestWithParam<cudaq_hand_over_t> {};
INSTANTIATE_TEST_SUITE_P(Hands, HandedLaunches,
                         testing::Values(CUDAQ_HAND_OVER_LAUNCH, CUDAQ_HAND_OVER_HOOK_AND_LAUNCH),
                         [](const auto &with) {
                           return with.param == CUDAQ_HAND_OVER_LAUNCH ? "TheLaunch" : "TheHookAndTheLaunch";
                         });

// Two threads of the caller make the launches, while two device threads end and answer the graphs.
TEST_P(HandedLaunches, LoseNoRequestAndKeepTheOrderOfTheHooks) {
  constexpr std::size_t kFunctions = 3, kWorkers = 3; // of each function
  const bool with_hook = GetParam() == CUDAQ_HAND_OVER_HOOK_AND_LAUNCH;
  const std::uint32_t messages = load_size(kEmulated ? 1000 : 5000);
  struct offer {
    cudaq_host_launch_fn_t launch;
    void *data;
  };
  std::mutex mutex;
  std::deque<offer> offers;
  std::atomic<std::uint32_t> made{0};
  std::atomic<bool> ends{false};
  std::function<int(cudaq_host_launch_fn_t, void *)> take = [&](cudaq_host_launch_fn_t launch, void *data) {
    const std::lock_guard lock(mutex);
    offers.push_back({launch, data});
    return 1;
  };
  const auto make_launches = [&] {
    for (std::unique_lock lock(mutex); !ends || !offers.empty();) {
      if (offers.empty()) {
        lock.unlock();
        std::this_thread::yield();
      } else {
        const offer next = offers.front();
        offers.pop_front();
        lock.unlock();
        EXPECT_EQ(next.launch(next.data), 0);
        ++made;
      }
      lock.lock();
    }
  };
  std::vector<std::unique_ptr<checked_function>> functions;
  std::array<ordered_hook, kFunctions * kWorkers> hooks; // without the option the first of each function
  graph_rig_plan plan;
  plan.shape = {16, 128, true};
  plan.when_busy = CUDAQ_BUSY_WORKERS_PASS_FUNCTION;
  for (std::uint32_t id = 1; id <= kFunctions; ++id) {
    functions.push_back(std::make_unique<checked_function>(id, messages));
    checked_function::v1_by_id[id] = functions.back().get();
    for (std::size_t w = 0; w < kWorkers; ++w) {
      plan.workers.push_back(fake_worker(id, 0, CUDAQ_WORKER_CALLER_PUBLISHES));
      plan.workers.back().hand_over_fn = [](void *to, cudaq_host_launch_fn_t launch, void *data) {
        return (*static_cast<decltype(take) *>(to))(launch, data);
      };
      plan.workers.back().hand_over_data = &take;
      plan.workers.back().pre_launch_fn = &ordered_hook::call;
      plan.workers.back().hand_over = GetParam();
      ordered_hook &hook = hooks[(id - 1) * kWorkers + (with_hook ? w : 0)];
      hook.may_skip = with_hook;
      plan.workers.back().pre_launch_data = &hook;
    }
  }
  graph_rig rig(plan);
  std::thread first(make_launches), second(make_launches);
  traffic t(rig.ring, traffic_for(functions, messages));
  t.run();
  t.expect_clean(false, false);
  EXPECT_TRUE(rig.stop());
  ends = true;
  first.join();
  second.join();
  EXPECT_GT(made, 0u);
  for (std::size_t f = 0; f < kFunctions; ++f) {
    std::uint32_t calls = 0;
    for (std::size_t w = 0; w < kWorkers; ++w) {
      EXPECT_EQ(hooks[f * kWorkers + w].out_of_order, 0u) << "function " << f + 1;
      calls += hooks[f * kWorkers + w].calls;
    }
    EXPECT_EQ(calls, functions[f]->calls) << "function " << f + 1;
  }
  const cudaq_dispatcher_stats_t stats = rig.stats();
  EXPECT_EQ(stats.responded, messages);
  EXPECT_EQ(stats.launches, stats.dispatched);
  EXPECT_EQ(stats.in_flight, 0u);
}

} // namespace
} // namespace cudaq::realtime::test

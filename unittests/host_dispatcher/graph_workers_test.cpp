// SPDX-License-Identifier: Apache-2.0
// The graph workers of the host dispatcher, on fake graphs: no request is lost, doubled, torn or mixed up, for each way
// of publishing the answer.
#include "unittests/host_dispatcher/fake_graphs.h"

#include <ostream>

namespace cudaq::realtime::test {
namespace {

struct graph_flavour {
  const char *name;
  std::uint32_t completion;
  std::uint32_t workers; ///< per function; there are three functions
  ring_shape shape;
  bool markers;
  std::uint32_t when_busy;
};
void PrintTo(const graph_flavour &f, std::ostream *os) { *os << f.name; }

class GraphWorkers : public ::testing::TestWithParam<graph_flavour> {
protected:
  std::vector<std::unique_ptr<checked_function>> functions;

  graph_rig_plan plan_for(const graph_flavour &f, std::uint32_t messages) {
    graph_rig_plan plan;
    plan.shape = f.shape;
    plan.markers = f.markers;
    plan.when_busy = f.when_busy;
    for (std::uint32_t id = 1; id <= 3; ++id) {
      functions.push_back(std::make_unique<checked_function>(id, messages));
      checked_function::v1_by_id[id] = functions.back().get();
      for (std::uint32_t w = 0; w < f.workers; ++w)
        plan.workers.push_back(fake_worker(id, 0, f.completion));
    }
    return plan;
  }
};

// Known failure 19.
TEST_P(GraphWorkers, AnswerEveryRequestOnce) {
  const std::uint32_t messages = load_size(kEmulated ? 4000 : 20000);
  graph_rig rig(plan_for(GetParam(), messages));
  traffic t(rig.ring, traffic_for(functions, messages));
  t.run();
  const bool alone = GetParam().workers == 1;
  t.expect_clean(alone, alone); // several workers of one function run at the same time, in no order
  EXPECT_TRUE(rig.stop());
  const cudaq_dispatcher_stats_t stats = rig.stats();
  EXPECT_EQ(stats.responded, messages);
  EXPECT_EQ(stats.launches, stats.dispatched);
  EXPECT_EQ(stats.in_flight, 0u);
}

constexpr graph_flavour kGraphFlavours[] = {
    {"Library1", CUDAQ_WORKER_LIBRARY_PUBLISHES, 1, {8, 128, false}, true, CUDAQ_BUSY_WORKERS_WAIT},
    {"LibraryInPlace2Slots", CUDAQ_WORKER_LIBRARY_PUBLISHES, 2, {2, 128, true}, true, CUDAQ_BUSY_WORKERS_WAIT},
    {"Library21NoMarkers", CUDAQ_WORKER_LIBRARY_PUBLISHES, 21, {64, 128, false}, false, CUDAQ_BUSY_WORKERS_WAIT},
    {"Library1Pass", CUDAQ_WORKER_LIBRARY_PUBLISHES, 1, {16, 128, true}, false, CUDAQ_BUSY_WORKERS_PASS_FUNCTION},
    {"Graph1", CUDAQ_WORKER_GRAPH_PUBLISHES, 1, {8, 128, false}, true, CUDAQ_BUSY_WORKERS_WAIT},
    {"GraphInPlace8Pass", CUDAQ_WORKER_GRAPH_PUBLISHES, 8, {16, 128, true}, true, CUDAQ_BUSY_WORKERS_PASS_KEY},
    {"Graph2NoMarkers2Slots", CUDAQ_WORKER_GRAPH_PUBLISHES, 2, {2, 128, false}, false, CUDAQ_BUSY_WORKERS_WAIT},
    {"Caller1", CUDAQ_WORKER_CALLER_PUBLISHES, 1, {8, 128, false}, true, CUDAQ_BUSY_WORKERS_WAIT},
    {"Caller8PassInPlace", CUDAQ_WORKER_CALLER_PUBLISHES, 8, {16, 128, true}, true, CUDAQ_BUSY_WORKERS_PASS_FUNCTION},
    {"Caller21NoMarkers", CUDAQ_WORKER_CALLER_PUBLISHES, 21, {64, 128, false}, false, CUDAQ_BUSY_WORKERS_PASS_KEY},
};
INSTANTIATE_TEST_SUITE_P(Flavours, GraphWorkers, ::testing::ValuesIn(kGraphFlavours),
                         [](const auto &flavour) { return std::string(flavour.param.name); });

/// Functions 1 and 2 with one worker each. The library answers, except where a test changes that.
class GraphWorker : public two_graphs {
protected:
  GraphWorker() : two_graphs(CUDAQ_WORKER_LIBRARY_PUBLISHES) {}
};

// Known failure 15.
TEST_F(GraphWorker, AnExactRoutingKeyWinsAlsoWhileItsWorkerIsBusyAndAnotherIsIdle) {
  plan.workers.clear();
  for (std::uint64_t key : {0u, 1u, 2u})
    plan.workers.push_back(fake_worker(1, key, CUDAQ_WORKER_LIBRARY_PUBLISHES));
  plan.when_busy = CUDAQ_BUSY_WORKERS_PASS_KEY;
  graph_rig rig(plan);
  std::atomic<std::uint32_t> wrong{0};
  rig.device->seen = [&](std::uint32_t worker, const std::uint8_t *rx_slot) {
    std::uint64_t key = 0;
    std::memcpy(&key, rx_slot + CUDAQ_RPC_HEADER_SIZE, sizeof(key));
    wrong += worker != (key > 2 ? 0 : key); // worker 0 has key 0 and gets the keys that no other worker has
  };
  std::mt19937 random(7);
  for (std::uint32_t n = 0; n < load_size(2000); ++n) {
    const std::uint32_t slot = n % 8;
    ASSERT_TRUE(eventually([&] {
      if (rig.answered(slot))
        cudaq_host_ringbuffer_clear_slot(&rig.ring.ring, slot);
      return cudaq_host_ringbuffer_slot_available(&rig.ring.ring, slot) == 1;
    }));
    rig.send(slot, 1, random() % 5, n);
  }
  EXPECT_TRUE(eventually([&] { return rig.stats().responded == load_size(2000); })) << rig.dispatcher.describe();
  EXPECT_EQ(wrong.load(), 0u);
}

// Known failure 19.
TEST_F(GraphWorker, ABusyWorkerHoldsUpWhatTheOptionSays) {
  for (const std::uint32_t when_busy : {CUDAQ_BUSY_WORKERS_WAIT, CUDAQ_BUSY_WORKERS_PASS_FUNCTION}) {
    plan.when_busy = when_busy;
    plan.workers[0].completion = CUDAQ_WORKER_CALLER_PUBLISHES; // so that the test decides when it ends
    graph_rig rig(plan);
    std::atomic<bool> go_on{false};
    rig.device->ready = [&](std::uint32_t worker) {
      cudaq_host_job_t job{};
      EXPECT_TRUE(rig.dispatcher.worker_job(static_cast<int>(worker), job).ok());
      eventually([&] { return go_on.load(); });
      EXPECT_TRUE(rig.dispatcher.complete_deferred(job, 0, 0).ok());
      EXPECT_TRUE(rig.dispatcher.release_worker(static_cast<int>(worker)).ok());
    };
    rig.send(0, 1, 5, 1);
    rig.send(1, 1, 5, 2); // waits for function 1's worker
    rig.send(2, 2, 5, 3);
    if (when_busy == CUDAQ_BUSY_WORKERS_WAIT) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_FALSE(rig.answered(2));
    } else {
      ASSERT_TRUE(eventually([&] { return rig.answered(2); })) << "function 2 must not wait for function 1";
    }
    EXPECT_FALSE(rig.answered(1));
    go_on = true;
    for (std::uint32_t slot : {0u, 1u, 2u})
      EXPECT_TRUE(eventually([&] { return rig.answered(slot); })) << slot;
  }
}

// A blocking stream is served like any other. Its one effect is in the dump: it waits for the legacy stream.
// Known failure 60.
TEST_F(GraphWorker, OnABlockingStreamServesAndTheDumpNamesIt) {
  graph_rig rig(plan);
  rig.device->blocking_stream = 1;
  rig.send(0, 1, 5, 1);
  rig.send(1, 2, 5, 2);
  expect_answer(rig, 0, 0);
  expect_answer(rig, 1, 0);
  const std::string dump = rig.dispatcher.describe();
  EXPECT_NE(dump.find("graph worker 1: function 0x00000002, routing key 0, blocking stream (waits for the legacy "),
            std::string::npos)
      << dump;
  EXPECT_EQ(dump.find("blocking stream"), dump.rfind("blocking stream")) << dump;
}

// Known failure 7.
TEST_F(GraphWorker, AFailedLaunchFailsItsOwnRequestOnly) {
  graph_rig rig(plan);
  rig.device->next_error = 400;
  rig.send(0, 1, 5, 1);
  ASSERT_NO_FATAL_FAILURE(expect_error(rig, 0, 400));
  EXPECT_EQ(rig.device->recoveries.load(), 1u);
  rig.send(1, 1, 5, 2);
  expect_answer(rig, 1, 0);
  EXPECT_EQ(rig.stats().protocol_errors[CUDAQ_RPC_ERROR_INDEX(CUDAQ_RPC_ERR_LAUNCH_FAILED)], 1u);
}

TEST_F(GraphWorker, ARequestWhoseLaunchFailedHasNoTime) {
  plan.handler_times = true;
  graph_rig rig(plan);
  rig.device->next_error = 400;
  rig.send(0, 1, 5, 1);
  ASSERT_TRUE(eventually([&] { return rig.tx_status(0) == CUDAQ_TX_ERROR; }));
  rig.send(1, 1, 5, 2);
  expect_answer(rig, 1, 0);
  cudaq_handler_times_t times{};
  ASSERT_TRUE(eventually([&] { return rig.dispatcher.read_times(1, times).ok() && times.count != 0; }));
  EXPECT_EQ(times.count, 1u);
}

// Known failure 20.
TEST_F(GraphWorker, WithoutMarkersAFailedLaunchIsAResponseFrame) {
  plan.markers = false;
  graph_rig rig(plan);
  rig.device->next_error = 400;
  rig.send(0, 1, 5, 1);
  expect_answer(rig, 0, CUDAQ_RPC_ERR_LAUNCH_FAILED);
}

// Known failure 17.
TEST_F(GraphWorker, AHookThatThrowsFailsItsOwnRequestOnly) {
  plan.workers[0].pre_launch_fn = [](void *, void *, cudaStream_t) { throw 1; };
  plan.markers = false;
  graph_rig rig(plan);
  rig.send(0, 1, 5, 1);
  rig.send(1, 2, 5, 2);
  expect_answer(rig, 0, CUDAQ_RPC_ERR_LAUNCH_FAILED);
  expect_answer(rig, 1, 0);
}

// Known failure 9.
TEST_F(GraphWorker, AFaultFailsWhatIsPendingAndWhatComesLaterAtOnce) {
  plan.workers[1].completion = CUDAQ_WORKER_CALLER_PUBLISHES;
  graph_rig rig(plan);
  rig.device->hold(true);
  rig.send(0, 1, 5, 1);
  rig.send(1, 2, 5, 2);
  ASSERT_TRUE(eventually([&] { return rig.device->launches.load() == 2; }));
  rig.send(2, 1, 5, 3); // waits for a worker
  rig.device->trap();
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t slot : {0u, 1u, 2u})
    ASSERT_NO_FATAL_FAILURE(expect_error(rig, slot, kFakeError));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)); // milliseconds, if it has a core
  EXPECT_EQ(rig.dispatcher.fault(), kFakeError);
  rig.send(3, 1, 5, 4);
  ASSERT_TRUE(eventually([&] { return rig.tx_status(3) == CUDAQ_TX_ERROR; }));
  EXPECT_EQ(rig.stats().protocol_errors[CUDAQ_RPC_ERROR_INDEX(CUDAQ_RPC_ERR_DEVICE_FAULT)], 4u);
  EXPECT_TRUE(rig.stop());
}

// Known failure 21.
TEST_F(GraphWorker, AGraphThatAnswersNothingIsAnsweredFor) {
  plan.workers[1].completion = CUDAQ_WORKER_GRAPH_PUBLISHES;
  graph_rig rig(plan);
  rig.device->silent = true;
  rig.send(0, 1, 5, 1);
  rig.send(1, 2, 5, 2);
  expect_answer(rig, 0, CUDAQ_RPC_ERR_NO_RESPONSE);
  expect_answer(rig, 1, CUDAQ_RPC_ERR_NO_RESPONSE);
}

TEST_F(GraphWorker, InPlaceRingsReachReady) {
  plan.shape.in_place = true;
  graph_rig rig(plan);
  rig.send(0, 1, 5, 77);
  expect_answer(rig, 0, 0);
  cudaq_rpc_response_t header{};
  const void *result = nullptr;
  CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_read_rpc_response(&rig.ring.ring, 0, &header, &result));
  EXPECT_EQ(header.request_id, 77u) << "the library writes the request id of the answer";
}

// Known failure 12.
TEST_F(GraphWorker, StopWaitsForGraphsAndSaysSoWhenOneHangs) {
  graph_rig rig(plan);
  rig.device->hold(true);
  rig.send(0, 1, 5, 1);
  ASSERT_TRUE(eventually([&] { return rig.device->launches.load() == 1; }));
  rig.send(1, 1, 5, 2); // waits, because no worker is idle
  ASSERT_TRUE(eventually([&] { return rig.stats().dispatched == 2; }));
  EXPECT_FALSE(rig.stop(std::chrono::milliseconds(50)));
  EXPECT_NE(rig.dispatcher.describe().find("slot 0, generation"), std::string::npos);
  expect_answer(rig, 1, CUDAQ_RPC_ERR_SHUTTING_DOWN);
  EXPECT_EQ(rig.tx_status(0), CUDAQ_TX_IN_FLIGHT);
  rig.device->hold(false);
  EXPECT_TRUE(rig.stop());
  expect_answer(rig, 0, 0);
}

TEST_F(GraphWorker, StopDoesNotAnswerAfterTheCallerHasRaisedTheTxFlag) {
  plan.workers[0].completion = CUDAQ_WORKER_CALLER_PUBLISHES;
  graph_rig rig(plan);
  std::atomic<bool> raised{false};
  rig.device->ready = [&](std::uint32_t) { // never releases the worker
    detail::store_release<std::uint64_t>(rig.ring.ring.tx_flags_host[0],
                                         reinterpret_cast<std::uint64_t>(rig.ring.tx_slot(0)));
    raised = true;
  };
  rig.send(0, 1, 5, 1);
  ASSERT_TRUE(eventually([&] { return raised.load(); }));
  cudaq_host_ringbuffer_clear_slot(&rig.ring.ring, 0);
  rig.send(0, 2, 5, 2); // the slot is free: rx was cleared at the launch
  EXPECT_TRUE(eventually([&] { return rig.stop(std::chrono::milliseconds(200)); }));
  EXPECT_EQ(rig.tx_status(0), CUDAQ_TX_EMPTY) << "the slot was answered twice";
  EXPECT_EQ(rig.stats().responded, 1u);
}

// Known failure 34.
TEST_F(GraphWorker, OnlyTheJobThatAWorkerHoldsCanBeCompleted) {
  plan.workers[0].completion = CUDAQ_WORKER_CALLER_PUBLISHES;
  graph_rig rig(plan);
  cudaq_host_job_t job{};
  EXPECT_EQ(rig.dispatcher.worker_job(0, job).status(), CUDAQ_ERR_STATE) << "idle";
  EXPECT_EQ(rig.dispatcher.worker_job(2, job).status(), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(rig.dispatcher.release_worker(-1).status(), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(rig.dispatcher.release_worker(0).status(), CUDAQ_ERR_STATE) << "idle";
  EXPECT_EQ(rig.dispatcher.release_worker(1).status(), CUDAQ_ERR_STATE) << "only the library releases this worker";
  std::atomic<int> ready{0};
  rig.device->ready = [&](std::uint32_t) { ++ready; };
  rig.send(0, 1, 5, 1);
  ASSERT_TRUE(eventually([&] { return ready.load() == 1; }));
  ASSERT_TRUE(rig.dispatcher.worker_job(0, job).ok());
  EXPECT_EQ(job.slot, 0u);
  EXPECT_EQ(job.request_id, 1u);
  EXPECT_TRUE(rig.dispatcher.release_worker(0).ok()); // released before the request is answered
  rig.send(1, 1, 5, 2);
  ASSERT_TRUE(eventually([&] { return ready.load() == 2; })) << "the worker must take the next request";
  EXPECT_TRUE(rig.dispatcher.complete_deferred(job, 3, 0).ok());
  expect_answer(rig, 0, 3);
  EXPECT_EQ(rig.tx_status(1), CUDAQ_TX_IN_FLIGHT);
  EXPECT_EQ(rig.dispatcher.complete_deferred(job, 4, 0).status(), CUDAQ_ERR_STATE) << "a stale job";
  ASSERT_TRUE(rig.dispatcher.worker_job(0, job).ok());
  EXPECT_TRUE(rig.dispatcher.complete_deferred(job, 5, 0).ok());
  EXPECT_TRUE(rig.dispatcher.release_worker(0).ok());
  expect_answer(rig, 1, 5);
}

TEST_F(GraphWorker, TheCallerMayRaiseTheTxFlagBeforeItReleasesTheWorker) {
  plan.workers[0].completion = CUDAQ_WORKER_CALLER_PUBLISHES;
  graph_rig rig(plan);
  rig.device->ready = [&](std::uint32_t worker) { // as a CPU worker of existing programs does
    cudaq_host_job_t job{};
    EXPECT_TRUE(rig.dispatcher.worker_job(static_cast<int>(worker), job).ok());
    const cudaq_rpc_response_t frame{CUDAQ_RPC_MAGIC_RESPONSE, 9, 0, job.request_id, 0};
    std::memcpy(rig.ring.tx_slot(job.slot), &frame, sizeof(frame));
    detail::store_release<std::uint64_t>(rig.ring.ring.tx_flags_host[job.slot],
                                         reinterpret_cast<std::uint64_t>(rig.ring.tx_slot(job.slot)));
    EXPECT_TRUE(rig.dispatcher.release_worker(static_cast<int>(worker)).ok());
  };
  for (std::uint32_t n = 0; n < 40; ++n) {
    const std::uint32_t slot = n % 8;
    ASSERT_TRUE(eventually([&] { return cudaq_host_ringbuffer_slot_available(&rig.ring.ring, slot) == 1; }));
    rig.send(slot, 1, 5, n);
    expect_answer(rig, slot, 9);
    cudaq_host_ringbuffer_clear_slot(&rig.ring.ring, slot);
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(rig.stop());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kDeadline / 2) << "stop has nothing to wait for";
  const cudaq_dispatcher_stats_t stats = rig.stats();
  EXPECT_EQ(stats.responded, 40u);
  EXPECT_EQ(stats.protocol_errors[CUDAQ_RPC_ERROR_INDEX(CUDAQ_RPC_ERR_SHUTTING_DOWN)], 0u);
  for (std::uint32_t slot = 0; slot < 8; ++slot)
    EXPECT_EQ(cudaq_host_ringbuffer_slot_available(&rig.ring.ring, slot), 1) << slot;
}

TEST_F(GraphWorker, HostCallsGoOnBesideGraphs) {
  for (const std::uint32_t pool : {0u, 1u}) {
    static std::atomic<int> calls{0};
    calls = 0;
    cudaq_function_entry_t orphan{};
    orphan.function_id = 4;
    orphan.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
    orphan.routing_key = 6;
    plan.table = {host_entry("host",
                             [](const void *, void *tx_slot, std::size_t) {
                               ++calls;
                               const cudaq_rpc_response_t frame{CUDAQ_RPC_MAGIC_RESPONSE, 11, 0, 0, 0};
                               std::memcpy(tx_slot, &frame, sizeof(frame));
                             }),
                  orphan};
    plan.pool = pool;
    graph_rig rig(plan);
    rig.send(0, 1, 5, 1);
    rig.send(1, fnv1a_hash("host"), 5, 2);
    rig.send(2, 4, 6, 3); // an entry without a worker
    rig.send(3, 4, 5, 4); // a key without an entry
    expect_answer(rig, 0, 0);
    expect_answer(rig, 1, 11);
    expect_answer(rig, 2, CUDAQ_RPC_ERR_WORKER_UNAVAILABLE);
    expect_answer(rig, 3, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
    EXPECT_EQ(calls.load(), 1);
  }
}

} // namespace
} // namespace cudaq::realtime::test

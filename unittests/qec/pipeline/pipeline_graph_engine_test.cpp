// SPDX-License-Identifier: Apache-2.0
// The pipeline over graph workers whose graphs are functions: launches, ends of graphs, errors and stop.
// unittests/gpu/qec tests the same on a GPU.
#include "unittests/qec/pipeline/fake_graph_workers.h"
#include "unittests/qec/pipeline/foreign_ring.h"

#include "cudaq/realtime/detail/base/flag_word.h"

#include <stdexcept>

namespace cudaq::qec::realtime::test {

fake_graph_workers *fake_graph_workers::the_one = nullptr;

extern "C" {
cudaq_status_t cudaq_dispatcher_set_host_workers(cudaq_dispatcher_t *dispatcher, const cudaq_host_worker_t *workers,
                                                 std::size_t num_workers) {
  return fake_graph_workers::the_one->set(dispatcher, workers, num_workers);
}
cudaq_status_t cudaq_host_worker_job(cudaq_dispatcher_t *, int worker_id, cudaq_host_job_t *out_job) {
  return fake_graph_workers::the_one->job(worker_id, out_job);
}
cudaq_status_t cudaq_host_release_worker(cudaq_dispatcher_t *, int worker_id) {
  return fake_graph_workers::the_one->release(worker_id);
}
}

namespace {

using cudaq::realtime::detail::store_release;

/// The rig's workers as graphs: a graph copies the request to the worker's output, then sets its ready flag.
struct graph_rig {
  explicit graph_rig(const pipeline_stage_config &config, std::size_t requests = 0)
      : fake([this](int id, std::uint8_t *slot) { return play(id, slot); }), rig(config, requests) {
    const auto *ring = static_cast<const cudaq_ringbuffer_t *>(config.external_ringbuffer);
    fake.ring(rig.pipeline->ringbuffer_bases().rx_data_host, ring != nullptr ? ring->rx_stride_sz : config.slot_size);
    rig.pipeline->set_gpu_stage([this](int id) { return resources(id); });
  }
  gpu_worker_resources resources(int id) {
    gpu_worker_resources r = rig.resources(id);
    r.host_stage_fn = nullptr;
    r.graph_exec = reinterpret_cast<cudaGraphExec_t>(this);
    r.pre_launch_fn = [](void *self, void *, cudaStream_t) { ++static_cast<graph_rig *>(self)->hook_calls; };
    r.pre_launch_data = this;
    r.ready_flag = &rig.workers[static_cast<std::size_t>(id)].ready;
    return r;
  }
  std::uint32_t play(int id, std::uint8_t *slot) {
    if (before_work)
      before_work(id);
    copy_worker &w = rig.workers[static_cast<std::size_t>(id)];
    cudaq_rpc_header_t header{};
    if (reads_request) {
      std::memcpy(&header, slot, sizeof(header));
      std::memcpy(w.output.data(), slot + sizeof(header), header.arg_len);
      w.size = header.arg_len;
    }
    store_release(static_cast<volatile int &>(w.ready), 1);
    return header.arg_len;
  }

  std::function<void(int worker)> before_work;
  bool reads_request = true;
  std::atomic<std::uint64_t> hook_calls{0};
  fake_graph_workers fake;
  pipeline_rig rig;
};

TEST(PipelineGraphs, AnswerEveryRequestOnceAndCallTheHookBeforeEachLaunch) {
  for (const int workers : {1, 3, 64}) {
    graph_rig g(pipeline_rig::small(workers, 16), 2000);
    g.rig.run_all();
    CUDAQ_EXPECT_ALL_GOOD(g.rig);
    EXPECT_EQ(g.hook_calls, 2000u);
    EXPECT_TRUE(g.rig.pipeline->last_stop().drained) << g.rig.pipeline->last_stop().text;
  }
}

TEST(PipelineGraphs, PollModeAsksTheCpuStageUntilItHasAResult) {
  graph_rig g(pipeline_rig::small(2, 8), 500);
  g.rig.pipeline->set_gpu_stage([&](int id) {
    gpu_worker_resources r = g.resources(id);
    r.gpu_output = nullptr;
    r.ready_flag = nullptr;
    return r;
  });
  g.rig.pipeline->set_cpu_stage([](const cpu_stage_context &c) -> std::size_t {
    auto &w = *static_cast<copy_worker *>(c.user_context);
    if (!cudaq::realtime::detail::claim_word(static_cast<volatile int &>(w.ready), 1, 0))
      return 0;
    return pipeline_rig::echo(c);
  });
  g.rig.run_all();
  CUDAQ_EXPECT_ALL_GOOD(g.rig);
}

TEST(PipelineGraphs, WithoutACpuStageTheGraphAnswers) {
  graph_rig g(pipeline_rig::small(2, 8), 300);
  g.rig.pipeline->set_cpu_stage({}); // in place: the result is the request
  g.rig.run_all();
  CUDAQ_EXPECT_ALL_GOOD(g.rig);
}

TEST(PipelineGraphs, AFailedLaunchOrHookFailsItsRequestOnly) {
  graph_rig g(pipeline_rig::small(2, 8), 900);
  std::atomic<int> launches{0}, failed{0};
  g.fake.launch_fails = [&](int) { return launches++ % 3 == 1; };
  g.rig.pipeline->set_completion_handler([&](const completion &c) {
    if (c.status == CUDAQ_RPC_ERR_LAUNCH_FAILED && !c.success)
      ++failed;
    g.rig.record(c);
  });
  g.rig.run_all();
  EXPECT_EQ(g.rig.seen.not_once(), 0u);
  EXPECT_EQ(failed, 300);
  EXPECT_EQ(g.rig.seen.not_good(), 300u);
}

/// An external ring, with a client that sends a request, waits for its answer and clears the slot.
class PipelineGraphsOnAnExternalRing : public testing::Test {
protected:
  static constexpr std::uint32_t kSlots = 4;
  PipelineGraphsOnAnExternalRing() { config_.external_ringbuffer = &foreign_.ring; }

  void send_and_receive(std::uint64_t k, bool launch_fails) {
    ASSERT_TRUE(foreign_.send(k));
    ASSERT_TRUE(eventually([&] { return foreign_.receive(k, launch_fails ? CUDAQ_RPC_ERR_LAUNCH_FAILED : 0); }));
    ASSERT_TRUE(eventually([&] { return foreign_.is_free(k); }));
  }

  foreign_ring foreign_{kSlots, false};
  pipeline_stage_config config_ = pipeline_rig::small(2, kSlots);
};

TEST_F(PipelineGraphsOnAnExternalRing, AFailedLaunchIsACompletionToo) {
  constexpr std::uint32_t kRequests = 300;
  graph_rig g(config_);
  std::atomic<int> launches{0};
  g.fake.launch_fails = [&](int) { return launches++ % 3 == 1; };
  std::atomic<std::uint32_t> good{0}, failed{0};
  std::vector<std::atomic<int>> times(kRequests);
  g.rig.pipeline->set_completion_handler([&](const completion &c) {
    ++times[c.request_id];
    ++(c.success ? good : failed);
  });
  g.rig.pipeline->start();
  for (std::uint32_t k = 0; k < kRequests; ++k)
    ASSERT_NO_FATAL_FAILURE(send_and_receive(k, k % 3 == 1));
  EXPECT_TRUE(eventually([&] { return good + failed == kRequests; })) << g.rig.pipeline->dump();
  g.rig.pipeline->stop();
  EXPECT_EQ(failed, kRequests / 3);
  for (const auto &n : times)
    ASSERT_EQ(n, 1);
}

TEST_F(PipelineGraphsOnAnExternalRing, Row19_AHandlerThatIsFarBehindDoesNotHoldUpLaunchesThatFail) {
  constexpr std::uint32_t kRequests = 1500; // more than fit into the queue of completions
  graph_rig g(config_);
  g.fake.launch_fails = [](int) { return true; };
  std::atomic<bool> go{false};
  std::atomic<std::uint32_t> told{0};
  std::vector<std::atomic<int>> times(kRequests);
  g.rig.pipeline->set_completion_handler([&](const completion &c) {
    EXPECT_TRUE(eventually([&] { return go.load(); }));
    EXPECT_EQ(c.status, CUDAQ_RPC_ERR_LAUNCH_FAILED);
    ++times[c.request_id];
    ++told;
  });
  g.rig.pipeline->start();
  for (std::uint32_t k = 0; k < kRequests; ++k)
    ASSERT_NO_FATAL_FAILURE(send_and_receive(k, true));
  go = true;
  ASSERT_TRUE(eventually([&] { return told >= 1024; }));
  g.rig.pipeline->stop();
  const stop_report report = g.rig.pipeline->last_stop();
  EXPECT_EQ(report.stuck_threads, 0) << report.text;
  ASSERT_LT(told, kRequests);
  EXPECT_EQ(report.text, std::to_string(kRequests - told) + " completions not delivered");
  for (const auto &n : times)
    ASSERT_LE(n, 1);
}

TEST(PipelineGraphs, ADeviceThatFailsLeavesNoWorkerWaiting) {
  graph_rig g(pipeline_rig::small(2, 8), 2);
  std::atomic<bool> go{false};
  g.before_work = [&](int) { eventually([&] { return go.load(); }); };
  g.rig.pipeline->start();
  g.rig.submit_all();
  ASSERT_TRUE(eventually([&] { return g.fake.busy() == 2; }));
  g.fake.fail_device();
  EXPECT_TRUE(eventually([&] { return g.rig.seen.all == 2; }));
  EXPECT_TRUE(eventually([&] { return g.rig.pipeline->dump().find("waiting") == std::string::npos; }))
      << g.rig.pipeline->dump();
  go = true;
  g.rig.pipeline->stop();
  EXPECT_EQ(g.rig.seen.not_once(), 0u);
  EXPECT_EQ(g.rig.seen.not_good(), 2u);
}

TEST(PipelineGraphs, AGraphThatRunsAtTheStopKeepsItsWorkerUntilItHasEnded) {
  pipeline_stage_config config = pipeline_rig::small(1, 4);
  config.grace_period_ns = kSecond / 10;
  graph_rig g(config, 3);
  g.reads_request = false; // stop answers it in its slot while the graph runs
  std::atomic<bool> go{false};
  std::atomic<int> inside{0};
  g.before_work = [&](int) {
    EXPECT_EQ(inside++, 0);
    eventually([&] { return go.load(); });
    --inside;
  };
  g.rig.pipeline->start();
  g.rig.submit_all();
  ASSERT_TRUE(eventually([&] { return inside == 1; }));
  std::thread late([&] {
    eventually([&] { return g.rig.seen.all != 0; });
    EXPECT_EQ(g.fake.busy(), 1) << "answered, not released";
    go = true;
  });
  g.rig.pipeline->stop();
  late.join();
  EXPECT_EQ(g.fake.busy(), 0);
  EXPECT_FALSE(g.rig.pipeline->last_stop().drained);
  EXPECT_EQ(g.rig.seen.not_once(), 0u);
}

TEST(PipelineGraphs, ResourcesThatContradictThemselvesAreRefused) {
  graph_rig g(pipeline_rig::small(2, 4));
  const auto refused = [&](const char *why, auto change) {
    g.rig.pipeline->set_gpu_stage([&](int id) {
      gpu_worker_resources r = g.resources(id);
      change(r, id);
      return r;
    });
    try {
      g.rig.pipeline->start();
      ADD_FAILURE() << "started: " << why;
      g.rig.pipeline->stop();
    } catch (const std::invalid_argument &e) {
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  };
  refused("both graph_exec", [](auto &r, int) { r.host_stage_fn = &copy_worker::copy; });
  refused("ready_flag is not", [](auto &r, int) { r.ready_flag = nullptr; });
  refused("in one pipeline", [](auto &r, int id) {
    if (id == 1) {
      r.graph_exec = nullptr;
      r.host_stage_fn = &copy_worker::copy;
    }
  });
}

} // namespace
} // namespace cudaq::qec::realtime::test

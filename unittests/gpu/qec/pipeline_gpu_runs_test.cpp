// SPDX-License-Identifier: Apache-2.0
// Runs of the pipeline with graphs on a GPU: modes, external ring, slow and stuck graphs, faults, restart.
#include "unittests/gpu/graphs/host_graph_rig.h"
#include "unittests/gpu/qec/pipeline_gpu_rig.h"

namespace cudaq::realtime::test {
namespace {

constexpr std::size_t kPayload = 13104; // d13, INT32 measurements
constexpr std::size_t kSlot = 16384;

class PipelineRunsOnGpu : public gpu_test {};

/// Random payloads through graphs that copy them. The CPU stage answers with a checksum of its input.
struct copying {
  copying(int workers, std::size_t requests, gpu::staging how, std::uint64_t busy_ns = 0)
      : seen(requests), payload(kPayload + 8 * requests) {
    std::mt19937_64 random(7);
    for (auto &byte : payload)
      byte = static_cast<std::uint8_t>(random());
    for (int id = 0; id < workers; ++id)
      engines.push_back(std::make_unique<gpu::copy_gpu_worker>(kPayload, busy_ns, how, kSlot));
  }
  static std::uint64_t sum(const void *bytes) {
    const auto *words = static_cast<const std::uint64_t *>(bytes);
    std::uint64_t s = 0;
    for (std::size_t i = 0; i < kPayload / 8; ++i)
      s = s * 31 + words[i];
    return s;
  }
  const std::uint8_t *request(std::uint64_t k) const { return payload.data() + 8 * k; }
  void wire(pipe::realtime_pipeline &p) {
    p.set_gpu_stage([this](int id) { return engines[static_cast<std::size_t>(id)]->resources(kDecode, nullptr); });
    p.set_cpu_stage([](const pipe::cpu_stage_context &c) -> std::size_t {
      const std::uint64_t s = sum(c.gpu_output);
      std::memcpy(c.response_buffer, &s, sizeof(s));
      return sizeof(s);
    });
    p.set_completion_handler([this](const pipe::completion &c) { seen.record(c, right(c)); });
  }
  bool right(const pipe::completion &c) const {
    if (c.response == nullptr)
      return true; // external ring: the answer goes to its owner
    const std::uint64_t s = sum(request(c.request_id));
    return c.response_size == sizeof(s) && std::memcmp(c.response, &s, sizeof(s)) == 0;
  }
  /// Sends all requests through an injector of the pipeline.
  void submit_all(pipe::realtime_pipeline &p) const {
    auto injector = p.create_injector();
    for (std::uint64_t k = 0; k < seen.times.size(); ++k)
      ASSERT_TRUE(submit(injector, request(k), kPayload, k)) << p.dump();
  }
  seen_by_request seen;
  std::vector<std::uint8_t> payload;
  std::vector<std::unique_ptr<gpu::copy_gpu_worker>> engines;
};

TEST_F(PipelineRunsOnGpu, BytesArriveWholeByEitherStagingAndWithUpTo64Workers) {
  for (const gpu::staging how : {gpu::staging::mapped, gpu::staging::dma})
    for (const int workers : {1, 8, 64}) {
      copying with(workers, 2000, how);
      pipe::realtime_pipeline p(gpu_pipeline(workers, 32, kSlot));
      with.wire(p);
      ASSERT_NO_FATAL_FAILURE(expect_start(p));
      ASSERT_NO_FATAL_FAILURE(with.submit_all(p));
      expect_stop(p);
      with.seen.expect_each_once();
      EXPECT_TRUE(p.last_stop().drained) << p.last_stop().text;
    }
}

TEST_F(PipelineRunsOnGpu, PollModeGetsNoOutputAndIsAskedAgain) {
  copying with(2, 500, gpu::staging::mapped);
  pipe::realtime_pipeline p(gpu_pipeline(2, 8, kSlot));
  with.wire(p);
  struct polled {
    volatile int *ready;
    const void *output;
  };
  std::array<polled, 2> states{};
  p.set_gpu_stage([&](int id) {
    auto r = with.engines[static_cast<std::size_t>(id)]->resources(kDecode, &states[static_cast<std::size_t>(id)]);
    states[static_cast<std::size_t>(id)] = {std::exchange(r.ready_flag, nullptr), std::exchange(r.gpu_output, nullptr)};
    return r;
  });
  p.set_cpu_stage([](const pipe::cpu_stage_context &c) -> std::size_t {
    const auto &state = *static_cast<const polled *>(c.user_context);
    if (c.gpu_output != nullptr || !detail::claim_word(*state.ready, 1, 0))
      return 0;
    const std::uint64_t s = copying::sum(state.output);
    std::memcpy(c.response_buffer, &s, sizeof(s));
    return sizeof(s);
  });
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  ASSERT_NO_FATAL_FAILURE(with.submit_all(p));
  expect_stop(p);
  with.seen.expect_each_once();
}

TEST_F(PipelineRunsOnGpu, AnExternalRingIsServedAndItsFlagsAreTheOwners) {
  constexpr std::uint32_t kSlots = 8;
  const host_ring ring({kSlots, kSlot, true}, CUDAQ_MEMORY_MAPPED);
  cudaq_ringbuffer_t view = ring.ring;
  copying with(4, 2000, gpu::staging::automatic);
  pipe::pipeline_stage_config config = gpu_pipeline(4, kSlots, kSlot);
  config.external_ringbuffer = &view;
  pipe::realtime_pipeline p(config);
  with.wire(p);
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  const std::uint64_t wrong = exchange_on_ring(
      view, kSlots, 2000, [&](std::uint64_t k) { return std::span(with.request(k), kPayload); },
      [&](std::uint64_t k, const void *result, std::uint32_t bytes) {
        const std::uint64_t expected = copying::sum(with.request(k));
        return bytes == sizeof(expected) && std::memcmp(result, &expected, sizeof(expected)) == 0;
      });
  if (wrong != 0)
    ADD_FAILURE() << p.dump();
  EXPECT_EQ(wrong, 0u);
  expect_stop(p);
  with.seen.expect_each_once();
}

TEST_F(PipelineRunsOnGpu, SlowGraphsOverlap) {
  constexpr std::uint64_t kBusy = 200'000; // ns
  constexpr int kWorkers = 16;
  copying with(kWorkers, 1600, gpu::staging::mapped, kBusy);
  pipe::realtime_pipeline p(gpu_pipeline(kWorkers, 64, kSlot));
  with.wire(p);
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_NO_FATAL_FAILURE(with.submit_all(p));
  EXPECT_TRUE(eventually([&] { return with.seen.all == 1600; })) << p.dump();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 0.5 * 1600 * kBusy * 1e-9) << "half of the time that 1600 graphs one after another take";
  expect_stop(p);
  with.seen.expect_each_once();
}

TEST_F(PipelineRunsOnGpu, AGraphThatDoesNotEndIsReportedAndAwaitedByTheNextStop) {
  copying with(1, 2, gpu::staging::mapped, 4'000'000'000);
  pipe::pipeline_stage_config config = gpu_pipeline(1, 4, kSlot);
  config.grace_period_ns = 200'000'000;
  pipe::realtime_pipeline p(config);
  with.wire(p);
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  auto injector = p.create_injector();
  ASSERT_TRUE(submit(injector, with.request(0), kPayload, 0));
  expect_stop(p, std::chrono::seconds(3));
  EXPECT_FALSE(p.last_stop().drained);
  EXPECT_THROW(p.start(), std::logic_error) << "the graph still uses its memory";
  EXPECT_TRUE(eventually([&] {
    p.stop();
    try {
      p.start();
    } catch (const std::logic_error &) {
      return false;
    }
    return true;
  })) << p.dump();
  EXPECT_THROW(submit(injector, nullptr, kPayload, 1), std::invalid_argument);
  expect_stop(p, std::chrono::seconds(10));
}

/// The graphs of the host dispatcher's tests: they write their own frames, trap on request, and set a word at their
/// end.
struct task_graphs {
  task_graphs(int workers, bool traps)
      : contexts(static_cast<std::size_t>(workers)), ready(static_cast<std::size_t>(workers) * 16) {
    for (int id = 0; id < workers; ++id) {
      graph_task task;
      task.io = contexts.dev + id;
      task.slot_size = 256;
      task.traps = traps;
      task.ready = ready.dev + 16 * id;
      const graph_capture_result captured =
          capture_graph(graphs.emplace_back(), [&](cudaStream_t stream) { return launch_graph_task(task, stream); });
      EXPECT_EQ(captured.status, CUDAQ_OK) << captured.text;
    }
  }
  pipe::gpu_worker_resources resources(int id) {
    pipe::gpu_worker_resources r;
    r.graph_exec = graphs[static_cast<std::size_t>(id)].exec();
    r.function_id = kDecode;
    r.io_ctx = contexts.host + id;
    r.ready_flag = reinterpret_cast<volatile int *>(ready.host + 16 * id);
    r.gpu_output = contexts.host + id;
    r.gpu_output_size = sizeof(GraphIOContext);
    return r;
  }
  mapped_array<GraphIOContext> contexts;
  mapped_array<std::uint64_t> ready;
  std::deque<captured_graph> graphs;
};

TEST_F(PipelineRunsOnGpu, WithoutACpuStageTheGraphsFrameIsTheAnswer) {
  task_graphs graphs(4, false);
  seen_by_request seen(2000);
  pipe::realtime_pipeline p(gpu_pipeline(4, 8, 256));
  p.set_gpu_stage([&](int id) { return graphs.resources(id); });
  p.set_completion_handler([&](const pipe::completion &c) { seen.record(c, c.status == 0 && c.response_size == 0); });
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  auto injector = p.create_injector();
  for (std::uint64_t k = 0; k < 2000; ++k)
    ASSERT_TRUE(submit(injector, &k, sizeof(k), k)) << p.dump();
  expect_stop(p);
  seen.expect_each_once();
}

TEST_F(PipelineRunsOnGpu, AFaultOfTheDeviceFailsCompletionsAndNothingHangs) {
  // After a fault CUDA memory cannot be freed, so nothing is destroyed.
  auto &graphs = *new task_graphs(2, true);
  auto &seen = *new seen_by_request(4);
  auto &p = *new pipe::realtime_pipeline(gpu_pipeline(2, 8, 256));
  p.set_gpu_stage([&](int id) { return graphs.resources(id); });
  p.set_cpu_stage([](const pipe::cpu_stage_context &) -> std::size_t { return 1; });
  p.set_completion_handler([&](const pipe::completion &c) { seen.record(c, true); });
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  auto injector = p.create_injector();
  const std::uint64_t good = 1;
  ASSERT_TRUE(submit(injector, &good, sizeof(good), 0));
  ASSERT_TRUE(eventually([&] { return seen.all == 1; }));
  for (std::uint64_t k = 1; k < 4; ++k)
    ASSERT_TRUE(submit(injector, &kTrapWord, sizeof(kTrapWord), k));
  EXPECT_TRUE(eventually([&] { return seen.all == 4; })) << p.dump();
  expect_stop(p);
  seen.expect_each_once(3);
  EXPECT_NE(seen.last_error, 0);
  EXPECT_FALSE(p.last_stop().drained) << "the report names the device's error";
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Runs of the pipeline with graphs on a GPU: modes, external ring, slow graphs. pipeline_gpu_engines_test.cpp has what
// graphs and resident workers have in common.
#include "unittests/gpu/qec/pipeline_gpu_graphs.h"

namespace cudaq::realtime::test {
namespace {

class PipelineRunsOnGpu : public gpu_test {};

TEST_F(PipelineRunsOnGpu, BytesArriveWholeByEitherStagingAndWithUpTo64Workers) {
  for (const gpu::staging how : {gpu::staging::mapped, gpu::staging::dma})
    for (const int workers : {1, 8, 64}) {
      copying with(workers, 2000, how);
      pipe::realtime_pipeline p(gpu_pipeline(workers, 32, kSlot));
      with.wire(p);
      ASSERT_NO_FATAL_FAILURE(with.expect_run(p));
    }
}

TEST_F(PipelineRunsOnGpu, PollModeGetsNoOutputAndIsPolledAgain) {
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
  with.expect_run(p);
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
  ASSERT_NO_FATAL_FAILURE(submit_all(p, 1600, [&](std::uint64_t k) { return with.bytes(k); }));
  EXPECT_TRUE(eventually([&] { return with.seen.all == 1600; })) << p.dump();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 0.5 * 1600 * kBusy * 1e-9) << "half of the time that 1600 graphs one after another take";
  expect_stop(p);
  with.seen.expect_each_once();
}

TEST_F(PipelineRunsOnGpu, WithoutACpuStageTheGraphsFrameIsTheAnswer) {
  task_graphs graphs(4, false);
  seen_by_request seen(2000);
  pipe::realtime_pipeline p(gpu_pipeline(4, 8, 256));
  p.set_gpu_stage([&](int id) { return graphs.resources(id); });
  p.set_completion_handler([&](const pipe::completion &c) { seen.record(c, c.status == 0 && c.response_size == 0); });
  expect_run(p, seen, [](const std::uint64_t &k) { return bytes_of(k); });
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Recorded shots through the pipeline with predecoders on a GPU. Their output equals that of the CPU byte for byte, and
// every answer equals that of the same decode offline.
#include "unittests/gpu/qec/pipeline_gpu_rig.h"

namespace cudaq::realtime::test {
namespace {

struct engine_case {
  const char *name, *set, *engine;
  gpu::staging staging = gpu::staging::mapped;
  int workers = 4;
  int resident = -1; ///< cudaq_memory_kind_t of the mailboxes; -1: graphs
};
void PrintTo(const engine_case &c, std::ostream *out) { *out << c.name; }

class PipelineOnGpu : public gpu_test, public ::testing::WithParamInterface<engine_case> {
protected:
  void prepare() override {
    const engine_case &c = GetParam();
    set = recorded(c.set);
    layout = {static_cast<std::uint32_t>(set.num_detectors), static_cast<std::uint32_t>(set.num_observables)};
    if (c.engine == std::string("local"))
      graph = std::make_shared<gpu::device_graph>(*qec::detector_graph::from_text(set.dem_text));
    slot_size = (CUDAQ_RPC_HEADER_SIZE + std::max<std::size_t>(set.detection_bytes() + 8, 64) + 63) / 64 * 64;
    if (c.resident >= 0)
      resident = gpu::resident_predecoders(c.workers, layout, graph.get(), slot_size, test_device(),
                                           static_cast<cudaq_memory_kind_t>(c.resident));
    for (int id = 0; id < c.workers && c.resident < 0; ++id)
      workers.push_back(std::make_unique<gpu::predecoding_worker>(layout, graph, c.staging, slot_size));
  }
  stage_of_worker stage() const { return resident != nullptr ? stage_of(*resident) : stage_of(workers); }
  std::unique_ptr<qec::decoding_worker> offline() const { return offline_worker(set, GetParam().engine); }

  qec::shot_set set;
  qec::predecoder_layout layout;
  std::size_t slot_size = 0;
  std::shared_ptr<const gpu::device_graph> graph;
  std::vector<std::unique_ptr<gpu::predecoding_worker>> workers;
  std::unique_ptr<gpu::resident_workers> resident;
};

// Known failure 18.
TEST_P(PipelineOnGpu, ThePredecodersOutputIsTheCpusByteForByte) {
  std::deque<compared_outputs<qec::predecoder>> by_worker;
  for (int id = 0; id < GetParam().workers; ++id)
    by_worker.push_back({std::move(*qec::make_predecoder(GetParam().engine, set.dem_text))});
  expect_same_outputs(layout, by_worker, slot_size, 3000, stage(),
                      [&](std::uint64_t k) { return set.detection_row(k % set.shots); });
}

TEST_P(PipelineOnGpu, EveryAnswerEqualsTheOfflineDecode) {
  const auto expected = offline_answers(set, *offline());
  std::vector<std::unique_ptr<qec::decoding_worker>> matchers;
  for (int id = 0; id < GetParam().workers; ++id)
    matchers.push_back(offline());
  for (int run = 0; run < 2; ++run) // the second run follows a stop
    ASSERT_NO_FATAL_FAILURE(expect_offline_answers(gpu_pipeline(GetParam().workers, 16, slot_size), set, stage(),
                                                   matchers, expected, 5000));
}

class PipelineOnTwoGpus : public gpu_test {
protected:
  PipelineOnTwoGpus() : gpu_test(2) {}
};

// Known failure 10.
TEST_F(PipelineOnTwoGpus, PipelinesOfBothAnswerAsOffline) {
  const qec::shot_set set = recorded("surface_z_d7_p0.005");
  const qec::predecoder_layout layout{static_cast<std::uint32_t>(set.num_detectors),
                                      static_cast<std::uint32_t>(set.num_observables)};
  const std::size_t slot_size =
      (CUDAQ_RPC_HEADER_SIZE + std::max<std::size_t>(set.detection_bytes() + 8, 64) + 63) / 64 * 64;
  const auto expected = offline_answers(set, *offline_worker(set, "local"));
  const auto decode_on = [&](int device) {
    const current_device here(device);
    const auto graph = std::make_shared<gpu::device_graph>(*qec::detector_graph::from_text(set.dem_text));
    std::vector<std::unique_ptr<gpu::predecoding_worker>> on_gpu;
    std::vector<std::unique_ptr<qec::decoding_worker>> matchers;
    for (int id = 0; id < 4; ++id) {
      on_gpu.push_back(std::make_unique<gpu::predecoding_worker>(layout, graph, gpu::staging::mapped, slot_size));
      matchers.push_back(offline_worker(set, "local"));
    }
    pipe::pipeline_stage_config config = gpu_pipeline(4, 16, slot_size);
    config.device_id = device;
    expect_offline_answers(config, set, stage_of(on_gpu), matchers, expected, 5000);
  };
  std::thread second([&] { decode_on(1); });
  decode_on(0);
  second.join();
}

INSTANTIATE_TEST_SUITE_P(
    Engines, PipelineOnGpu,
    ::testing::Values(
        engine_case{"LocalD3", "surface_z_d3_p0.005", "local"},
        engine_case{"LocalD3OneWorker", "surface_z_d3_p0.005", "local", gpu::staging::mapped, 1},
        engine_case{"LocalD3Staged", "surface_z_d3_p0.003", "local", gpu::staging::dma},
        engine_case{"PassthroughD3", "surface_z_d3_p0.005", "passthrough"},
        engine_case{"LocalD7", "surface_z_d7_p0.005", "local"},
        engine_case{"LocalD7Staged64", "surface_z_d7_p0.005", "local", gpu::staging::dma, 64},
        engine_case{"LocalD13", "surface_z_d13_p0.005", "local"},
        engine_case{"PassthroughD13Staged", "surface_z_d13_p0.005", "passthrough", gpu::staging::dma},
        engine_case{"ResidentD3OneWorker", "surface_z_d3_p0.005", "local", gpu::staging::mapped, 1, CUDAQ_MEMORY_AUTO},
        engine_case{"ResidentD7", "surface_z_d7_p0.005", "local", gpu::staging::mapped, 4, CUDAQ_MEMORY_AUTO},
        engine_case{"ResidentD7On64", "surface_z_d7_p0.005", "local", gpu::staging::mapped, 64, CUDAQ_MEMORY_AUTO},
        engine_case{"ResidentD13", "surface_z_d13_p0.005", "local", gpu::staging::mapped, 8, CUDAQ_MEMORY_AUTO},
        engine_case{"ResidentD13Mapped", "surface_z_d13_p0.005", "local", gpu::staging::mapped, 8, CUDAQ_MEMORY_MAPPED},
        engine_case{"ResidentPassthroughD13", "surface_z_d13_p0.005", "passthrough", gpu::staging::mapped, 4,
                    CUDAQ_MEMORY_AUTO}),
    [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test

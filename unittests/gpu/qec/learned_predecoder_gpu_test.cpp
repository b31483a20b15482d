// SPDX-License-Identifier: Apache-2.0
// The learned predecoder's kernels against the network on the CPU.
#include "benchmarks/pipeline/memory_text.h"
#include "kernels/qec/learned/learned_worker.h"
#include "kernels/qec/request_memory.h"
#include "lib/qec/decoding/learned/learned_predecoder.h"
#include "lib/qec/decoding/model_sampler.h"
#include "unittests/gpu/qec/pipeline_gpu_rig.h"

#include "cudaq/qec/realtime/ai_decoder_service.h"
#include "cudaq/qec/realtime/gpu_services.h"

#include <cmath>
#include <cstdlib>
#include <random>
#include <thread>

namespace cudaq::realtime::test {
namespace {

const std::string kWeights = std::string(CUDAQ_TEST_WEIGHTS) + "/surface_128x6.safetensors";

/// Values between the layers have 16 bits on the GPU.
float tolerance(float logit) { return 0.03f + 0.01f * std::fabs(logit); }

qec::learned_model committed_model(const qec::decoder_model &errors) {
  auto model = qec::read_learned_model(kWeights, errors);
  if (model.failed())
    throw std::runtime_error(model.text()); // the test fails with it
  return std::move(*model);
}

/// A memory with shots that are sampled from its errors.
struct sampled_memory {
  sampled_memory(std::uint32_t distance, std::uint32_t rounds, std::size_t number)
      : text(tools::memory_text(distance, rounds, 0.006).text()), errors(text), model(committed_model(errors)) {
    const qec::model_sampler sampler(**errors.errors());
    std::mt19937_64 random(distance);
    std::vector<std::uint8_t> observables(sampler.observable_bytes());
    while (shots.size() < number) {
      std::vector<std::uint8_t> shot(sampler.shot_bytes());
      sampler.sample(random, shot, observables);
      if (std::ranges::any_of(shot, [](std::uint8_t byte) { return byte != 0; })) // else it has no logits
        shots.push_back(std::move(shot));
    }
  }
  std::shared_ptr<const gpu::device_network> on_gpu(std::uint32_t shots_at_once = 1,
                                                    gpu::network_form form = gpu::network_form::chain) const {
    return std::make_shared<const gpu::device_network>(model.network, model.lattice, model.layout, shots_at_once, form);
  }
  const std::string text;
  const qec::decoder_model errors;
  const qec::learned_model model;
  std::vector<std::vector<std::uint8_t>> shots;
};

bool bit(std::span<const std::uint8_t> bytes, std::size_t k) { return (bytes[k / 8] >> k % 8 & 1) != 0; }

std::vector<float> logits_of_cpu(const qec::learned_model &model, std::span<const std::uint8_t> shot) {
  const std::size_t cells = model.lattice.grid.cells();
  std::vector<float> input(cells * 4), output(cells * 3), memory(model.network.memory_floats(model.lattice.grid));
  for (std::size_t k = 0; k < model.lattice.places.size(); ++k) {
    const auto [cell, what] = model.lattice.places[k];
    input[cell * 4 + what] = bit(shot, k) ? 1 : 0;
    input[cell * 4 + 2 + what] = 1;
  }
  model.network.run(model.lattice.grid, input, output, memory);
  return output;
}

/// The engine with its tensors, and runs of it without a graph.
class engine_rig {
public:
  explicit engine_rig(const std::shared_ptr<const gpu::device_network> &network)
      : engine(gpu::make_learned_engine(network)) {
    for (std::size_t k = 0; k < 3; ++k) {
      memory.emplace_back(engine->tensors()[k].memory_bytes());
      engine->bind(k, memory.back().device<void>());
    }
  }
  void run(std::span<const std::uint8_t> shot) {
    std::ranges::copy(shot, memory[0].host<std::uint8_t>());
    CUDA_ASSERT_OK(engine->enqueue(stream.get()));
    cudaError_t state = cudaErrorNotReady;
    ASSERT_TRUE(eventually([&] { return (state = cudaStreamQuery(stream.get())) != cudaErrorNotReady; }));
    CUDA_ASSERT_OK(state);
  }
  std::span<const float> logits() const {
    return {memory[2].host<float>(), engine->tensors()[2].size_bytes() / sizeof(float)};
  }
  const std::uint8_t *output() const { return memory[1].host<std::uint8_t>(); }

  std::unique_ptr<pipe::inference_engine> engine;
  std::vector<gpu::mapped_block> memory;
  gpu::own_stream stream{"test"};
};

struct memory_case {
  const char *name;
  std::uint32_t distance, rounds;
  std::size_t shots;
  std::uint32_t shots_at_once = 1; ///< for which the layers are planned
  gpu::network_form form = gpu::network_form::chain;
};
constexpr gpu::network_form kForms[] = {gpu::network_form::chain, gpu::network_form::fused}; // of launches

class LearnedPredecoders : public gpu_test {
protected:
  void prepare() override {
    int major = 0;
    CUDA_ASSERT_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, test_device()));
    if (major < 9)
      GTEST_SKIP() << "the kernels need compute capability 9.0, this device has " << major << ".x";
  }
};

constexpr memory_case fused(const char *name, std::uint32_t distance, std::uint32_t rounds, std::size_t shots,
                            std::uint32_t shots_at_once = 1) {
  return {name, distance, rounds, shots, shots_at_once, gpu::network_form::fused};
}

class LearnedPredecoderOnGpu : public LearnedPredecoders, public ::testing::WithParamInterface<memory_case> {};

TEST_P(LearnedPredecoderOnGpu, HasTheLogitsOfTheCpuAndAppliesThem) {
  const sampled_memory memory(GetParam().distance, GetParam().rounds, GetParam().shots);
  const qec::learned_model &model = memory.model;
  const qec::predecoder_layout layout = model.layout;
  engine_rig rig(memory.on_gpu(GetParam().shots_at_once, GetParam().form));
  float worst = 0;
  for (const auto &shot : memory.shots) {
    ASSERT_NO_FATAL_FAILURE(rig.run(shot));
    const auto expected = logits_of_cpu(model, shot);
    const auto found = rig.logits();
    ASSERT_EQ(found.size(), expected.size());
    std::vector<bool> residual(layout.num_detectors), frame(layout.num_observables);
    for (std::size_t k = 0; k < residual.size(); ++k)
      residual[k] = bit(shot, k);
    std::uint32_t corrections = 0;
    for (std::size_t at = 0; at < expected.size(); ++at) {
      const float threshold = model.network.threshold();
      ASSERT_NEAR(found[at], expected[at], tolerance(expected[at])) << at;
      worst = std::max(worst, std::fabs(found[at] - expected[at]));
      if (std::fabs(expected[at] - threshold) > tolerance(expected[at])) {
        ASSERT_EQ(found[at] > threshold, expected[at] > threshold) << at;
      }
      const auto effect = model.lattice.effects[at % 3][at / 3];
      if (!(found[at] > threshold) || effect.detectors == 0)
        continue;
      ++corrections;
      for (std::uint32_t k = 0; k < effect.detectors + effect.observables; ++k) {
        const std::uint32_t index = model.lattice.lists[effect.first + k];
        auto &bits = k < effect.detectors ? residual : frame;
        bits[index] = !bits[index];
      }
    }
    qec::predecoder_header header;
    std::memcpy(&header, rig.output(), sizeof(header));
    EXPECT_EQ(header.status, 0);
    EXPECT_EQ(header.matched, corrections);
    EXPECT_EQ(header.num_events, static_cast<std::uint32_t>(std::ranges::count(residual, true)));
    for (std::size_t k = 0; k < residual.size(); ++k)
      ASSERT_EQ(bit({rig.output() + layout.dense_offset(), layout.dense_words() * 8}, k), residual[k]) << k;
    for (std::size_t k = 0; k < frame.size(); ++k)
      ASSERT_EQ(bit({rig.output() + layout.frame_offset(), layout.frame_words() * 8}, k), frame[k]) << k;
  }
  RecordProperty("largest_difference", std::to_string(worst));
  std::printf("largest difference of a logit: %g\n", static_cast<double>(worst));
}

INSTANTIATE_TEST_SUITE_P(
    Memories, LearnedPredecoderOnGpu,
    ::testing::Values(memory_case{"D3", 3, 2, 8}, memory_case{"D5", 5, 5, 8}, memory_case{"D9", 9, 9, 6},
                      memory_case{"D9Long", 9, 24, 3}, memory_case{"D13", 13, 13, 3}, memory_case{"D21", 21, 21, 1},
                      memory_case{"D13Long", 13, 104, 1}, memory_case{"D7OfMany", 7, 7, 6, 32},
                      memory_case{"D13OfSome", 13, 13, 3, 4}, memory_case{"D13OfMany", 13, 13, 3, 32},
                      fused("D3Fused", 3, 2, 8), fused("D5Fused", 5, 5, 8), fused("D9LongFused", 9, 24, 3),
                      fused("D13Fused", 13, 13, 3), fused("D21Fused", 21, 21, 1), fused("D13LongFused", 13, 104, 1),
                      fused("D7FusedOfMany", 7, 7, 6, 12), fused("D13FusedOfSome", 13, 13, 3, 8)),
    [](const auto &tested) { return std::string(tested.param.name); });

void expect_bytes_of_the_engine(const sampled_memory &memory, gpu::network_form form) {
  const auto network = memory.on_gpu(1, form);
  const std::size_t bytes = memory.model.layout.bytes();
  std::vector<std::vector<std::uint8_t>> expected;
  engine_rig rig(network);
  for (const auto &shot : memory.shots) {
    ASSERT_NO_FATAL_FAILURE(rig.run(shot));
    expected.emplace_back(rig.output(), rig.output() + bytes);
  }
  std::atomic<int> different{0};
  std::vector<std::unique_ptr<gpu::learned_gpu_predecoder>> predecoders;
  std::vector<std::thread> threads;
  for (int k = 0; k < 3; ++k)
    predecoders.push_back(std::make_unique<gpu::learned_gpu_predecoder>(network));
  for (const auto &one : predecoders)
    threads.emplace_back([&] {
      std::vector<std::uint64_t> output((bytes + 7) / 8);
      for (int round = 0; round < 5; ++round)
        for (std::size_t k = 0; k < memory.shots.size(); ++k) {
          const bool ok = one->run(memory.shots[k], output) == qec::decode_status::ok;
          qec::predecoder_header header;
          std::memcpy(&header, output.data(), sizeof(header));
          different += !ok || std::memcmp(output.data(), expected[k].data(),
                                          memory.model.layout.events_offset() + 4 * header.num_events) != 0;
        }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(different.load(), 0);
  for (const auto &one : predecoders)
    EXPECT_EQ(one->fault(), nullptr);
}

TEST_F(LearnedPredecoders, OfSeveralThreadsGiveTheBytesOfTheEngineInEachRun) {
  const sampled_memory memory(13, 13, 60);
  for (const gpu::network_form form : kForms)
    expect_bytes_of_the_engine(memory, form);
}

TEST_F(LearnedPredecoders, LeaveAShotWithoutEventsAndRefuseOneThatIsNone) {
  const sampled_memory memory(5, 5, 0);
  for (const gpu::network_form form : kForms) {
    gpu::learned_gpu_predecoder one(memory.on_gpu(1, form));
    std::vector<std::uint64_t> output((one.layout().bytes() + 7) / 8);
    std::vector<std::uint8_t> shot(one.layout().input_bytes());
    ASSERT_EQ(one.run(shot, output), qec::decode_status::ok);
    qec::predecoder_header header;
    std::memcpy(&header, output.data(), sizeof(header));
    EXPECT_EQ(header.num_events + header.input_events + header.matched, 0u);
    shot.pop_back();
    EXPECT_EQ(one.run(shot, output), qec::decode_status::buffer_too_small);
    EXPECT_EQ(one.fault(), nullptr);
  }
}

// Blocks that wait for others have an end.
TEST_F(LearnedPredecoders, RefuseAShotWhoseBlocksDoNotMeetAndAllAfterIt) {
  if (std::getenv("CUDAQ_TEST_STUCK_NETWORK") == nullptr)
    GTEST_SKIP() << "the kernel does not end: the warp that copies values runs ahead (docs/predecoding.md)";
  const sampled_memory memory(5, 5, 1);
  const auto network = memory.on_gpu(1, gpu::network_form::fused);
  const gpu::network_memory of_shot(network->job());
  gpu::mapped_block events(memory.model.layout.dense_words() * 8), output(memory.model.layout.bytes());
  std::ranges::copy(memory.shots.front(), events.host<std::uint8_t>());
  gpu::network_shot shot = of_shot.shot();
  shot.payload = events.device<std::uint64_t>();
  shot.output = output.device<std::uint8_t>();
  const std::uint32_t never = 0u - (1u << 30); // so many arrivals are missing
  CUDA_ASSERT_OK(cudaMemcpy(&shot.meeting->done[0].blocks, &never, sizeof(never), cudaMemcpyHostToDevice));
  gpu::own_stream stream("test");
  for (int k = 0; k < 2; ++k) {
    output.host<qec::predecoder_header>()->status = 0;
    CUDA_ASSERT_OK(gpu::launch_shot(network->job(), shot, true, stream.get()));
    cudaError_t state = cudaErrorNotReady;
    ASSERT_TRUE(eventually([&] { return (state = cudaStreamQuery(stream.get())) != cudaErrorNotReady; }));
    CUDA_ASSERT_OK(state);
    EXPECT_EQ(output.host<qec::predecoder_header>()->status, static_cast<int>(qec::decode_status::internal_error));
  }
}

// The dispatcher launches the graphs of four workers; bad requests are among the good ones.
TEST_F(LearnedPredecoders, AsWorkersOfAPipelineGiveTheSameBytes) {
  const sampled_memory memory(7, 7, 200);
  constexpr int kWorkers = 4;
  for (const gpu::network_form form : kForms) {
    const auto network = memory.on_gpu(kWorkers, form);
    const qec::predecoder_layout layout = network->job().layout;
    const std::size_t slot_size = (CUDAQ_RPC_HEADER_SIZE + layout.input_bytes() + 8 + 63) / 64 * 64;
    for (const gpu::staging how : {gpu::staging::mapped, gpu::staging::dma}) {
      std::deque<compared_outputs<gpu::learned_gpu_predecoder>> by_worker;
      std::vector<std::unique_ptr<gpu::learned_worker>> workers;
      for (int id = 0; id < kWorkers; ++id) {
        workers.push_back(std::make_unique<gpu::learned_worker>(network, how, slot_size));
        by_worker.push_back({std::make_unique<gpu::learned_gpu_predecoder>(network)});
      }
      expect_same_outputs(
          layout, by_worker, slot_size, 1500,
          [&](std::size_t worker, void *context) { return workers[worker]->resources(kDecode, context); },
          [&](std::uint64_t k) { return std::span(memory.shots[k % memory.shots.size()]); });
      for (const auto &with : by_worker)
        EXPECT_EQ(with.own->fault(), nullptr);
    }
  }
}

// The launches that it is compared with find room beside the blocks that stay.
TEST_F(LearnedPredecoders, OnResidentBlocksGiveTheSameBytesInEachStart) {
  const sampled_memory memory(5, 5, 200);
  constexpr int kWorkers = 2;
  const auto network = memory.on_gpu(2 * kWorkers, gpu::network_form::resident);
  const qec::predecoder_layout layout = network->job().layout;
  const std::size_t slot_size = (CUDAQ_RPC_HEADER_SIZE + layout.input_bytes() + 8 + 63) / 64 * 64;
  std::deque<compared_outputs<gpu::learned_gpu_predecoder>> by_worker;
  for (int id = 0; id < kWorkers; ++id)
    by_worker.push_back({std::make_unique<gpu::learned_gpu_predecoder>(network)});
  const auto resident = gpu::resident_networks(kWorkers, network, slot_size, test_device());
  for (int start = 0; start < 2; ++start)
    expect_same_outputs(
        layout, by_worker, slot_size, 1500,
        [&](std::size_t worker, void *context) {
          return resident->resources(static_cast<int>(worker), kDecode, context);
        },
        [&](std::uint64_t k) { return std::span(memory.shots[k % memory.shots.size()]); });
  for (const auto &with : by_worker)
    EXPECT_EQ(with.own->fault(), nullptr);
}

TEST_F(LearnedPredecoders, AnswerAsAnAiServiceWithTheResidual) {
  const sampled_memory memory(5, 5, 20);
  const auto network = memory.on_gpu();
  const std::size_t bytes = memory.model.layout.bytes();
  gpu::mapped_block mailbox(sizeof(void *)), frame(CUDAQ_RPC_HEADER_SIZE + bytes + 64);
  for (const bool device_launch : {false, true}) {
    pipe::ai_decoder_service service(gpu::learned_predecoder_engine(kWeights, memory.text, test_device()),
                                     gpu::cuda_service_device(test_device()), mailbox.device<void *>());
    service.capture_graph(device_launch);
    *mailbox.host<void *>() = frame.device<void>();
    gpu::learned_gpu_predecoder alone(network);
    std::vector<std::uint64_t> expected((bytes + 7) / 8);
    gpu::own_stream stream("test");
    for (const auto &shot : memory.shots) {
      const cudaq_rpc_header_t header{CUDAQ_RPC_MAGIC_REQUEST, kDecode, static_cast<std::uint32_t>(shot.size()), 7, 0};
      std::memcpy(frame.host<void>(), &header, sizeof(header));
      std::memcpy(frame.host<std::uint8_t>() + sizeof(header), shot.data(), shot.size());
      CUDA_ASSERT_OK(cudaGraphLaunch(service.get_executable_graph(), stream.get()));
      cudaError_t state = cudaErrorNotReady;
      ASSERT_TRUE(eventually([&] { return (state = cudaStreamQuery(stream.get())) != cudaErrorNotReady; }));
      CUDA_ASSERT_OK(state);
      cudaq_rpc_response_t answer;
      std::memcpy(&answer, frame.host<void>(), sizeof(answer));
      ASSERT_EQ(answer.status, 0);
      ASSERT_EQ(answer.result_len, bytes);
      ASSERT_EQ(alone.run(shot, expected), qec::decode_status::ok);
      qec::predecoder_header found;
      std::memcpy(&found, frame.host<std::uint8_t>() + sizeof(answer), sizeof(found));
      EXPECT_EQ(std::memcmp(frame.host<std::uint8_t>() + sizeof(answer), expected.data(),
                            memory.model.layout.events_offset() + 4 * found.num_events),
                0);
    }
  }
}

TEST_F(LearnedPredecoders, NeedATensorsMemoryAndAModelOfAMemory) {
  const sampled_memory memory(3, 2, 0);
  const auto engine = gpu::make_learned_engine(memory.on_gpu());
  EXPECT_THROW((void)engine->enqueue(nullptr), std::runtime_error);
  EXPECT_EQ(engine->tensors()[2].size_bytes(), std::size_t{3} * 4 * 4 * 3 * 4);
  EXPECT_THROW((void)gpu::load_device_network(kWeights, qec::decoder_model("error(0.1) D0")), std::runtime_error);
  EXPECT_THROW((void)gpu::load_device_network("absent", memory.errors), std::runtime_error);
  EXPECT_THROW((void)memory.on_gpu(1000, gpu::network_form::resident), std::runtime_error) << "no room for 1000 shots";
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Stages for pipeline workers, tested without a GPU: with the CUDA runtime of the tests.
#pragma once

#include "unittests/qec/pipeline/pipeline_rig.h"
#include "unittests/support/fake_cuda/fake_cuda.h"

#include <functional>

namespace cudaq::qec::realtime::test {

namespace fake_cuda = cudaq::realtime::test::fake_cuda;

constexpr int kWorkers = 8;

/// Threads that play a device wait with it. They sleep: tests share few cores.
inline void nap() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

/// A pipeline. Its stages add one to the word of a request, and the CPU stage answers with their
/// output.
struct adder_rig {
  explicit adder_rig(const std::function<gpu_worker_resources(int)> &stage, int workers = kWorkers, int buffers = 1)
      : pipeline(config(workers, buffers)) {
    pipeline.set_gpu_stage(stage);
    pipeline.set_cpu_stage([](const cpu_stage_context &c) {
      std::memcpy(c.response_buffer, c.gpu_output, c.gpu_output_size);
      return c.gpu_output_size;
    });
    pipeline.set_completion_handler([this](const completion &c) {
      std::uint64_t answer = 0;
      if (c.response_size == sizeof(answer))
        std::memcpy(&answer, c.response, sizeof(answer));
      right += c.success && answer == c.request_id + 1;
      ++completed;
    });
  }
  static pipeline_stage_config config(int workers, int buffers) {
    pipeline_stage_config c;
    c.num_workers = workers;
    c.buffers = buffers;
    c.num_slots = 16;
    c.slot_size = 256;
    c.memory = ring_memory::host;
    c.wait = wait_policy::spin_yield;
    c.grace_period_ns = 100'000'000;
    return c;
  }
  void send(std::uint64_t requests) {
    auto injector = pipeline.create_injector();
    for (std::uint64_t k = 0; k < requests; ++k)
      injector.submit(kFunction, &k, sizeof(k), k);
    EXPECT_TRUE(eventually([&] { return completed == requests; })) << pipeline.dump();
    EXPECT_EQ(right, requests);
    completed = right = 0;
  }
  std::string refusal() {
    try {
      pipeline.start();
    } catch (const std::exception &e) {
      return e.what();
    }
    return "";
  }
  std::atomic<std::uint64_t> completed{0}, right{0};
  realtime_pipeline pipeline;
};

inline double seconds(const std::function<void()> &call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

} // namespace cudaq::qec::realtime::test

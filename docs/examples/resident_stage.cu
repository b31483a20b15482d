// SPDX-License-Identifier: Apache-2.0
// A pipeline whose GPU stage stays on the GPU: a block for each worker takes requests without a launch. The stage
// counts the detection events of a request, and the CPU stage answers with their parity.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cudaq/qec/realtime/resident_kernel.cuh>
#include <cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h>
#include <stdexcept>

namespace gpu = cudaq::qec::realtime::gpu;
namespace rt = cudaq::qec::realtime::experimental;

constexpr std::uint32_t kFunction = cudaq::realtime::fnv1a_hash("count_events");
constexpr std::uint32_t kWords = 64; ///< of a request: 4096 detectors, one bit each
constexpr int kWorkers = 4;
constexpr std::uint64_t kRequests = 20000;

/// All threads of the block run it. A stage is a copy in the kernel's arguments, so it may hold device addresses and
/// plain values.
struct count_events {
  __device__ void operator()(const gpu::resident_request &r) const {
    __shared__ std::uint32_t events;
    if (threadIdx.x == 0)
      events = 0;
    __syncthreads();
    const auto *words = reinterpret_cast<const std::uint64_t *>(r.frame + CUDAQ_RPC_HEADER_SIZE);
    for (std::uint32_t i = threadIdx.x; i < kWords; i += blockDim.x)
      atomicAdd(&events, static_cast<std::uint32_t>(__popcll(words[i])));
    __syncthreads();
    if (threadIdx.x == 0)
      *reinterpret_cast<std::uint32_t *>(r.output) = events;
  }
};

/// Request k has the first k % 4096 of 4096 events.
static void fill(std::uint64_t (&words)[kWords], std::uint64_t k) {
  const std::uint64_t events = k % 4096;
  for (std::uint32_t i = 0; i < kWords; ++i)
    words[i] = i < events / 64 ? UINT64_MAX : i > events / 64 ? 0 : (std::uint64_t{1} << events % 64) - 1;
}

static int run() {
  gpu::resident_config config;
  config.num_workers = kWorkers;
  config.payload_bytes = kWords * sizeof(std::uint64_t);
  config.output_bytes = sizeof(std::uint32_t);
  gpu::resident_workers workers(config, gpu::resident_launch(count_events{}, 64));

  rt::pipeline_stage_config shape;
  shape.num_workers = kWorkers;
  shape.num_slots = 16;
  shape.slot_size = 1024;
  rt::realtime_pipeline pipeline(shape); // destroyed before the workers
  std::atomic<std::uint64_t> completed{0}, wrong{0};
  pipeline.set_gpu_stage([&](int id) { return workers.resources(id, kFunction, nullptr); });
  pipeline.set_cpu_stage([](const rt::cpu_stage_context &c) {
    std::uint32_t events = 0;
    std::memcpy(&events, c.gpu_output, sizeof(events));
    *static_cast<std::uint8_t *>(c.response_buffer) = events % 2;
    return std::size_t{1};
  });
  pipeline.set_completion_handler([&](const rt::completion &c) {
    const bool right =
        c.success && c.response_size == 1 && *static_cast<const std::uint8_t *>(c.response) == c.request_id % 2;
    wrong += right ? 0 : 1;
    ++completed;
  });
  pipeline.start();
  rt::ring_buffer_injector injector = pipeline.create_injector();
  for (std::uint64_t k = 0; k < kRequests; ++k) {
    std::uint64_t words[kWords];
    fill(words, k);
    injector.submit(kFunction, words, sizeof(words), k);
  }
  pipeline.stop(); // waits for all answers
  const rt::stop_report stopped = pipeline.last_stop();
  std::printf("%llu of %llu requests answered, %llu wrong\n%s\n", static_cast<unsigned long long>(completed.load()),
              static_cast<unsigned long long>(kRequests), static_cast<unsigned long long>(wrong.load()),
              workers.mailbox_info().reason);
  return completed == kRequests && wrong == 0 && stopped.drained ? 0 : 1;
}

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    const bool promised = std::getenv("CUDAQ_REQUIRE_GPU") != nullptr;
    std::printf("%s: no GPU\n", promised ? "failed" : "skipped");
    return promised ? 1 : 77;
  }
  try {
    return run();
  } catch (const std::exception &e) {
    std::printf("failed: %s\n", e.what());
    return 1;
  }
}

// SPDX-License-Identifier: Apache-2.0
// Resident workers whose blocks run on CPU threads.
#pragma once

#include "cudaq/qec/realtime/resident_mailbox.cuh"
#include "cudaq/qec/realtime/resident_workers.h"
#include "unittests/kernels/qec/adder_rig.h"

namespace cudaq::qec::realtime::test {

struct cpu_block {
  std::uint32_t thread() const { return 0; }
  void sync() const {}
  bool any(bool mine) const { return mine; }
  void idle() const { nap(); }
};

/// What the blocks of a launch share with the test.
struct blocks_of_a_test {
  std::atomic<int> alive{0}, launches{0}, loads{0};
  std::atomic<bool> hang{false};  ///< stages do not return
  std::atomic<bool> room{true};   ///< the device has room for the blocks
  std::atomic<bool> stuck{false}; ///< other kernels hold the device: a launch does not begin, nor end
  std::atomic<bool> quit{false};  ///< blocks end when they see a request
  std::atomic<int> served{0};
  cudaError_t launch_error = cudaSuccess;

  gpu::resident_launcher launcher() {
    return [this](const gpu::resident_mailboxes &boxes, unsigned blocks, cudaStream_t stream) {
      if (blocks == 0) {
        ++loads;
        return cudaSuccess;
      }
      ++launches;
      fake_cuda::launch(stream, [this, boxes, blocks] {
        while (stuck || (!room && boxes.flags[boxes.workers] == 0))
          nap();
        std::vector<std::thread> threads;
        for (unsigned w = 0; w < blocks && room; ++w)
          threads.emplace_back([this, boxes, w] {
            ++alive;
            if (quit) {
              cudaq::realtime::detail::store_release<std::uint32_t>(boxes.states[w].began, 1);
              while (boxes.flags[w] == 0 && boxes.flags[boxes.workers] == 0)
                nap();
              --alive;
              return;
            }
            gpu::serve_mailbox(cpu_block{}, boxes, w, [this](const gpu::resident_request &r) {
              std::uint64_t word = 0;
              std::memcpy(&word, r.frame + CUDAQ_RPC_HEADER_SIZE, sizeof(word));
              while (hang && word == UINT64_MAX)
                nap();
              ++word;
              ++served;
              std::memcpy(r.output, &word, sizeof(word));
            });
            --alive;
          });
        for (std::thread &t : threads)
          t.join();
      });
      return launch_error;
    };
  }
};

inline gpu::resident_config config_of(int workers) {
  gpu::resident_config c;
  c.num_workers = workers;
  c.payload_bytes = c.output_bytes = sizeof(std::uint64_t);
  c.memory_kind = CUDAQ_MEMORY_MAPPED;
  return c;
}

/// The workers of a pipeline. At its end no block runs, no call of the CUDA runtime was wrong and nothing is left.
class resident_adders {
public:
  static constexpr const char *kInUse = "worker 0 serves a pipeline already";

  resident_adders() = default;
  ~resident_adders() {
    blocks.hang = blocks.stuck = false;
    end();
    EXPECT_TRUE(eventually([&] { return blocks.alive == 0; }));
    EXPECT_EQ(fake_cuda::violations(), "");
    EXPECT_EQ(fake_cuda::clean_up(), kept);
  }
  resident_adders(const resident_adders &) = delete;
  resident_adders &operator=(const resident_adders &) = delete;

  void make(const gpu::resident_config &config = config_of(kWorkers)) {
    workers = std::make_unique<gpu::resident_workers>(config, blocks.launcher());
  }
  void make_with_input(int number, int device_id) {
    gpu::resident_config c = config_of(number);
    c.device_id = device_id;
    make(c);
  }
  void end() { workers.reset(); }
  void make_with_limit(std::uint64_t timeout_ns) {
    gpu::resident_config c = config_of(kWorkers);
    c.timeout_ns = timeout_ns;
    make(c);
  }
  gpu_worker_resources resources(int id) const { return workers->resources(id, kFunction, nullptr); }
  void hang(bool now) { blocks.hang = now; }

  blocks_of_a_test blocks;
  std::unique_ptr<gpu::resident_workers> workers;
  int kept = 0; ///< blocks of memory and streams that are kept on purpose
};

} // namespace cudaq::qec::realtime::test

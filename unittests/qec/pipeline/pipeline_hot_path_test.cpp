// SPDX-License-Identifier: Apache-2.0
// Between start and stop no thread allocates memory or locks a mutex: no injector, no worker, not the consumer, and no
// thread that completes a deferred request. This program replaces malloc and pthread_mutex_lock and counts the calls.
#include "unittests/qec/pipeline/pipeline_rig.h"
#include "unittests/support/counted_memory.h"

#include <array>

namespace cudaq::qec::realtime::test {
namespace {

enum class mode { notified, poll, gpu_only, deferred };

constexpr std::size_t kSlots = 4;

/// Echoes requests. Its own code allocates nothing.
class quiet_pipeline {
public:
  explicit quiet_pipeline(mode how) : how_(how), pipeline(config()) {
    pipeline.set_gpu_stage([this](int id) { return resources(id); });
    if (how_ != mode::gpu_only)
      pipeline.set_cpu_stage([this](const cpu_stage_context &c) { return answer(c); });
    pipeline.set_completion_handler([this](const completion &c) {
      good += c.success && c.response_size == 64;
      if (allocates)
        delete new std::vector<int>(10);
      ++done;
    });
    if (how_ == mode::deferred)
      completer_ = std::thread([this] { complete_all(); });
    pipeline.start();
  }
  ~quiet_pipeline() {
    pipeline.stop();
    ends_ = true;
    if (completer_.joinable())
      completer_.join();
  }
  void send(ring_buffer_injector &to, std::uint64_t k) {
    const std::array<std::uint8_t, 64> payload{};
    if (k % 2 == 0 || !to.try_submit(kFunction, payload.data(), payload.size(), k))
      to.submit(kFunction, payload.data(), payload.size(), k);
  }
  /// Sends the requests [from, to), more than the ring holds, and waits for their completions.
  void traffic(ring_buffer_injector &injector, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t k = from; k < to; ++k)
      send(injector, k);
    EXPECT_TRUE(eventually([&] { return done == to; }));
  }

private:
  static pipeline_stage_config config() { return pipeline_rig::small(2, kSlots); }
  gpu_worker_resources resources(int id) {
    gpu_worker_resources r;
    r.function_id = kFunction;
    r.host_stage_data = &outputs_[static_cast<std::size_t>(id)];
    r.host_stage_fn = [](void *output, host_stage_call *call) {
      std::memcpy(output, call->payload, call->payload_size);
      std::memmove(call->response_buffer, output, call->payload_size);
      call->response_size = call->payload_size;
      return 0;
    };
    if (how_ == mode::notified || how_ == mode::deferred) {
      r.gpu_output = r.host_stage_data;
      r.gpu_output_size = 64;
    }
    return r;
  }
  std::size_t answer(const cpu_stage_context &c) {
    if (how_ == mode::deferred) {
      open_[static_cast<std::size_t>(c.origin_slot)] = c.generation + 1;
      return DEFERRED_COMPLETION;
    }
    return how_ == mode::poll && ++polls_ % 3 != 0 ? 0 : 64;
  }
  void complete_all() {
    for (std::size_t slot = 0; !ends_; slot = (slot + 1) % kSlots) {
      const std::uint64_t open = open_[slot].exchange(0);
      if (open == 0)
        std::this_thread::yield();
      else if (slot % 2 == 0)
        pipeline.complete_deferred(static_cast<int>(slot), 64);
      else
        EXPECT_TRUE(pipeline.complete_deferred(static_cast<int>(slot), open - 1, 64, 0));
    }
  }

  const mode how_;
  std::array<std::array<std::uint8_t, 64>, 2> outputs_{};
  std::array<std::atomic<std::uint64_t>, kSlots> open_{};
  std::atomic<std::uint64_t> polls_{0};
  std::atomic<bool> ends_{false};
  std::thread completer_;

public:
  std::atomic<std::uint64_t> done{0}, good{0};
  std::atomic<bool> allocates{false};
  realtime_pipeline pipeline;
};

class PipelineHotPath : public testing::TestWithParam<mode> {
protected:
  void SetUp() override {
    if (cudaq::realtime::test::kSanitized)
      GTEST_SKIP() << "sanitizers replace the same functions";
  }
};

TEST_P(PipelineHotPath, NeitherAllocatesNorLocks) {
  constexpr std::uint64_t kRequests = 3000;
  quiet_pipeline p(GetParam());
  ring_buffer_injector injector = p.pipeline.create_injector();
  p.traffic(injector, 0, 100);
  counting = true;
  p.traffic(injector, 100, kRequests);
  counting = false;
  EXPECT_EQ(allocations.exchange(0), 0u);
  EXPECT_EQ(locks.exchange(0), 0u);
  EXPECT_EQ(p.good, kRequests);
}

TEST_P(PipelineHotPath, CountersSeeThePipelinesThreads) {
  quiet_pipeline p(GetParam());
  ring_buffer_injector injector = p.pipeline.create_injector();
  p.allocates = true;
  counting = true;
  p.traffic(injector, 0, 10);
  counting = false;
  EXPECT_GE(allocations.exchange(0), 20u);
  locks = 0;
}

std::string name_of(const testing::TestParamInfo<mode> &i) {
  static constexpr std::array<const char *, 4> kNames = {"Notified", "Poll", "GpuOnly", "Deferred"};
  return kNames[static_cast<std::size_t>(i.param)];
}
INSTANTIATE_TEST_SUITE_P(Modes, PipelineHotPath,
                         testing::Values(mode::notified, mode::poll, mode::gpu_only, mode::deferred), name_of);

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The largest and the smallest values of the configuration: durations, counts and sizes.
#include "unittests/qec/pipeline/foreign_ring.h"

#include <climits>
#include <ctime>
#include <fstream>

namespace cudaq::qec::realtime::test {
namespace {

/// The grace period is the only duration in the configuration. Clock and period together overflow from some 290 years
/// on.
class PipelineGracePeriod : public testing::TestWithParam<std::uint64_t> {
protected:
  static pipeline_stage_config config() {
    pipeline_stage_config c = pipeline_rig::small(1, 8);
    c.grace_period_ns = GetParam();
    return c;
  }
};

// Known failure 44.
TEST_P(PipelineGracePeriod, WaitsForAllSubmittedRequests) {
  pipeline_rig rig(config(), 8);
  rig.pipeline->set_cpu_stage([](const cpu_stage_context &c) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return pipeline_rig::echo(c);
  });
  rig.run_all(); // most requests are still in the ring when stop begins
  CUDAQ_EXPECT_ALL_GOOD(rig);
  EXPECT_TRUE(rig.pipeline->last_stop().drained) << rig.pipeline->last_stop().text;
}

TEST_P(PipelineGracePeriod, WaitsForDeferredRequestsOfAnExternalRing) {
  foreign_ring foreign(8, true);
  pipeline_stage_config with_ring = config();
  with_ring.external_ringbuffer = &foreign.ring;
  pipeline_rig rig(with_ring);
  std::atomic<int> deferred{0};
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    pipeline_rig::echo(c);
    ++deferred;
    return DEFERRED_COMPLETION;
  });
  std::atomic<int> good{0};
  rig.pipeline->set_completion_handler([&](const completion &c) { good += c.success; });
  rig.pipeline->start();
  for (std::uint64_t k = 0; k < 3; ++k)
    ASSERT_TRUE(foreign.send(k));
  ASSERT_TRUE(eventually([&] { return deferred == 3; }));
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200)); // stop has begun
    for (int slot = 0; slot < 3; ++slot)
      rig.pipeline->complete_deferred(slot, 8 + static_cast<std::size_t>(slot));
  });
  rig.pipeline->stop();
  late.join();
  EXPECT_EQ(good, 3);
  EXPECT_TRUE(rig.pipeline->last_stop().drained) << rig.pipeline->last_stop().text;
  for (std::uint64_t k = 0; k < 3; ++k)
    EXPECT_TRUE(foreign.receive(k));
}

INSTANTIATE_TEST_SUITE_P(Boundaries, PipelineGracePeriod,
                         testing::Values(std::uint64_t{1} << 62, INT64_MAX - 1, INT64_MAX, std::uint64_t{1} << 63,
                                         UINT64_MAX));

/// Peak of the process's resident memory, in KiB.
std::uint64_t peak_memory_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      std::uint64_t kib = 0;
      status >> kib;
      return kib;
    }
  return 0;
}

// Known failure 50.
TEST(PipelineLimits, CountsBeyondTheirLimitAreRefusedAtOnceAndTakeNoMemory) {
  constexpr int kMaxSlots = 1 << 24; // as of the C API
  foreign_ring foreign(8, true);
  const std::uint64_t before = peak_memory_kib();
  ASSERT_NE(before, 0u);
  const std::clock_t begin = std::clock(); // processor time
  const auto expect_refused = [&](const char *text, auto change) {
    for (const bool external : {false, true}) {
      pipeline_stage_config c = pipeline_rig::small();
      c.external_ringbuffer = external ? &foreign.ring : nullptr;
      change(c);
      try {
        const realtime_pipeline p(c);
        ADD_FAILURE() << "accepted: " << text;
      } catch (const std::invalid_argument &e) {
        EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
      } catch (const std::exception &e) {
        ADD_FAILURE() << text << ": not std::invalid_argument: " << e.what();
      }
    }
  };
  expect_refused("num_slots is 100000000, it must be 1 to 16777216", [](auto &c) { c.num_slots = 100'000'000; });
  expect_refused("num_slots is 16777217", [](auto &c) { c.num_slots = kMaxSlots + 1; });
  expect_refused("num_slots is 2147483647", [](auto &c) { c.num_slots = INT_MAX; });
  expect_refused("num_slots is -2147483648", [](auto &c) { c.num_slots = INT_MIN; });
  expect_refused("num_workers is 2147483647", [](auto &c) { c.num_workers = INT_MAX; });
  expect_refused("num_workers is -2147483648", [](auto &c) { c.num_workers = INT_MIN; });
  expect_refused("slot_size is 18446744073709551615", [](auto &c) { c.slot_size = SIZE_MAX; });
  expect_refused("slot_size is 2147483648", [](auto &c) { c.slot_size = std::size_t{1} << 31; });
  EXPECT_LT(std::clock() - begin, 2 * CLOCKS_PER_SEC) << "10^8 slots took 13 s";
  EXPECT_LT(peak_memory_kib() - before, 64u * 1024) << "10^8 slots took 6 GB";
}

TEST(PipelineLimits, ARingThatDoesNotFitIntoMemoryIsRefusedBeforeAnythingElseIsAllocated) {
  pipeline_stage_config c = pipeline_rig::small();
  c.num_slots = 1 << 24;
  c.slot_size = std::size_t{1} << 30; // 2^54 bytes: more than an address space
  const std::uint64_t before = peak_memory_kib();
  EXPECT_THROW(realtime_pipeline{c}, std::runtime_error);
  EXPECT_LT(peak_memory_kib() - before, 64u * 1024) << "the records of the slots take 1 GB";
}

} // namespace
} // namespace cudaq::qec::realtime::test

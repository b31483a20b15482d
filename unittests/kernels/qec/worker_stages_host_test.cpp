// SPDX-License-Identifier: Apache-2.0
// What graphs of a worker's own thread and resident workers have in common, without a GPU.
#include "unittests/kernels/qec/graph_adders.h"
#include "unittests/kernels/qec/resident_adders.h"

namespace cudaq::qec::realtime::test {
namespace {

template <class Stages>
class WorkerStagesOnHost : public testing::Test {
protected:
  adder_rig pipeline() {
    return adder_rig([this](int id) { return stages.resources(id); });
  }
  Stages stages;
};

struct stage_names {
  template <class Stages>
  static std::string GetName(int) {
    return std::is_same_v<Stages, graph_adders> ? "Graphs" : "Resident";
  }
};
using both_stages = testing::Types<graph_adders, resident_adders>;
TYPED_TEST_SUITE(WorkerStagesOnHost, both_stages, stage_names);

TYPED_TEST(WorkerStagesOnHost, AStageThatHangsIsReportedAfterItsTimeLimitAndAwaitedByTheNextStop) {
  this->stages.make_with_limit(2'000'000'000);
  adder_rig r = this->pipeline();
  ASSERT_EQ(r.refusal(), "");
  this->stages.hang(true);
  auto injector = r.pipeline.create_injector();
  const std::uint64_t hangs = UINT64_MAX;
  injector.submit(kFunction, &hangs, sizeof(hangs), 1);
  EXPECT_TRUE(eventually([&] { return r.pipeline.stats().dispatched == 1; }));
  const double took = seconds([&] { r.pipeline.stop(); });
  EXPECT_LT(took, 14) << "the grace period, then the limit: 2.1 s on a free machine, 8 times 16 s";
  EXPECT_NE(r.pipeline.last_stop().text.find("GPU stages of 1 workers have not ended"), std::string::npos)
      << r.pipeline.last_stop().text;
  this->stages.hang(false);
  r.pipeline.stop();
  EXPECT_TRUE(r.pipeline.last_stop().drained) << r.pipeline.last_stop().text;
}

// Known failure 44.
TYPED_TEST(WorkerStagesOnHost, AHugeTimeLimitWaitsForTheStage) {
  for (const std::uint64_t limit :
       {std::uint64_t{1} << 62, std::uint64_t{INT64_MAX}, std::uint64_t{INT64_MAX} + 1, UINT64_MAX}) {
    TypeParam own;
    own.make_with_limit(limit);
    adder_rig r([&](int id) { return own.resources(id); });
    ASSERT_EQ(r.refusal(), "") << limit;
    own.hang(true);
    auto injector = r.pipeline.create_injector();
    const std::uint64_t hangs = UINT64_MAX;
    injector.submit(kFunction, &hangs, sizeof(hangs), 1);
    EXPECT_TRUE(eventually([&] { return r.pipeline.stats().dispatched == 1; }));
    std::atomic<bool> ends{false};
    std::thread opener([&] { // 300 ms after the call of stop(); the grace period takes 100 ms of them
      EXPECT_TRUE(eventually([&] { return ends.load(); }));
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      own.hang(false);
    });
    const auto begin = std::chrono::steady_clock::now();
    ends = true;
    r.pipeline.stop();
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(250)) << "it did not wait";
    opener.join();
    EXPECT_EQ(r.pipeline.last_stop().text.find("have not ended"), std::string::npos)
        << limit << ": " << r.pipeline.last_stop().text;
  }
}

TYPED_TEST(WorkerStagesOnHost, AWorkerInUseIsRefusedASecondTime) {
  this->stages.make();
  adder_rig first = this->pipeline(), second = this->pipeline();
  ASSERT_EQ(first.refusal(), "");
  const std::string text = second.refusal();
  EXPECT_NE(text.find(TypeParam::kInUse), std::string::npos) << text;
  if constexpr (std::is_same_v<TypeParam, resident_adders>) {
    EXPECT_EQ(this->stages.blocks.alive, kWorkers) << "the first pipeline's blocks";
  }
  first.send(100);
  first.pipeline.stop();
  ASSERT_EQ(second.refusal(), "");
  second.send(100);
  second.pipeline.stop();
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// What a pipeline does when its GPU stage lets it down, the same for all engines: graphs of the dispatcher, and
// resident workers.
#include "unittests/gpu/qec/pipeline_gpu_graphs.h"
#include "unittests/gpu/qec/resident_rig.h"

namespace cudaq::realtime::test {
namespace {

/// A pipeline whose engine does not end the stage of request 0 in time.
class stuck_engine {
public:
  virtual ~stuck_engine() = default;
  virtual pipe::realtime_pipeline &pipeline() = 0;
  virtual std::span<const std::uint8_t> request_that_hangs() = 0;
  /// What another worker serves in the meantime; empty if there is none.
  virtual std::span<const std::uint8_t> good_request() { return {}; }
  virtual void let_go() {}
  virtual const seen_by_request &seen() const = 0;
  virtual const char *report() const { return ""; } ///< is in the report of the first stop
};

/// One graph that runs for 4 s.
class stuck_graph final : public stuck_engine {
public:
  stuck_graph() : p_(config()) { with_.wire(p_); }
  pipe::realtime_pipeline &pipeline() override { return p_; }
  std::span<const std::uint8_t> request_that_hangs() override { return with_.bytes(0); }
  const seen_by_request &seen() const override { return with_.seen; }

private:
  static pipe::pipeline_stage_config config() {
    pipe::pipeline_stage_config c = gpu_pipeline(1, 4, kSlot);
    c.grace_period_ns = 200'000'000;
    return c;
  }
  copying with_{1, 2, gpu::staging::mapped, 4'000'000'000};
  pipe::realtime_pipeline p_;
};

/// Two blocks, of which one waits for a word.
class stuck_resident final : public stuck_engine {
public:
  stuck_resident() : p_(config()) { wire_resident(p_, workers_, seen_); }
  pipe::realtime_pipeline &pipeline() override { return p_; }
  std::span<const std::uint8_t> request_that_hangs() override { return bytes_of(waits_); }
  std::span<const std::uint8_t> good_request() override { return bytes_of(good_); }
  void let_go() override { *release_.host<volatile int>() = 1; }
  const seen_by_request &seen() const override { return seen_; }
  const char *report() const override { return "have not ended"; }

private:
  static pipe::pipeline_stage_config config() {
    pipe::pipeline_stage_config c = gpu_pipeline(2, 4, 256);
    c.grace_period_ns = 100'000'000;
    return c;
  }
  static gpu::resident_config slow() {
    gpu::resident_config c = resident_config_of(2);
    c.timeout_ns = 100'000'000;
    return c;
  }
  const std::uint64_t waits_ = std::uint64_t{1} << 32, good_ = 1;
  gpu::mapped_block release_{sizeof(int)};
  gpu::resident_workers workers_{slow(), launch_add_one(release_.device<int>(), 32)};
  seen_by_request seen_{2};
  pipe::realtime_pipeline p_;
};

/// After a fault CUDA memory cannot be freed, so nothing is destroyed.
struct faulty_engine {
  std::unique_ptr<pipe::realtime_pipeline> pipeline;
  std::unique_ptr<seen_by_request> seen = std::make_unique<seen_by_request>(4);
  std::uint64_t good = 0, traps = 0;
  bool stop_reports = false; ///< the stop's report names the device's error
};

faulty_engine &faulty_graphs() {
  auto &graphs = *new task_graphs(2, true);
  auto &e = *new faulty_engine{std::make_unique<pipe::realtime_pipeline>(gpu_pipeline(2, 8, 256))};
  e.good = 1;
  e.traps = kTrapWord;
  e.stop_reports = true;
  e.pipeline->set_gpu_stage([&graphs](int id) { return graphs.resources(id); });
  e.pipeline->set_cpu_stage([](const pipe::cpu_stage_context &) -> std::size_t { return 1; });
  e.pipeline->set_completion_handler([&e](const pipe::completion &c) { e.seen->record(c, true); });
  return e;
}

faulty_engine &faulty_resident() {
  auto &release = *new gpu::mapped_block(sizeof(int));
  auto &workers = *new gpu::resident_workers(resident_config_of(2), launch_add_one(release.device<int>(), 32));
  auto &e = *new faulty_engine{std::make_unique<pipe::realtime_pipeline>(gpu_pipeline(2, 8, 256))};
  e.traps = kTrap;
  wire_resident(*e.pipeline, workers, *e.seen);
  return e;
}

struct engine_on_gpu {
  const char *name;
  std::unique_ptr<stuck_engine> (*stuck)();
  faulty_engine &(*faulty)();
};
void PrintTo(const engine_on_gpu &e, std::ostream *out) { *out << e.name; }

class PipelineEnginesOnGpu : public gpu_test, public ::testing::WithParamInterface<engine_on_gpu> {};

TEST_P(PipelineEnginesOnGpu, AStageThatDoesNotEndIsReportedAndAwaitedByTheNextStop) {
  const std::unique_ptr<stuck_engine> engine = GetParam().stuck();
  pipe::realtime_pipeline &p = engine->pipeline();
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  auto injector = p.create_injector();
  const auto hangs = engine->request_that_hangs(), good = engine->good_request();
  ASSERT_TRUE(submit(injector, hangs.data(), hangs.size(), 0));
  if (!good.empty()) {
    ASSERT_TRUE(submit(injector, good.data(), good.size(), 1));
    ASSERT_TRUE(eventually([&] { return engine->seen().all == 1; })) << "the other worker goes on";
  }
  expect_stop(p, std::chrono::seconds(3));
  EXPECT_FALSE(p.last_stop().drained);
  EXPECT_NE(p.last_stop().text.find(engine->report()), std::string::npos) << p.last_stop().text;
  EXPECT_THROW(p.start(), std::logic_error) << "the stage still uses its memory";
  engine->let_go();
  if (!good.empty()) { // the stage can end at once, so one stop is enough
    expect_stop(p);
    EXPECT_TRUE(p.last_stop().drained) << p.last_stop().text;
    EXPECT_EQ(engine->seen().all, 2u);
  }
  EXPECT_TRUE(eventually([&] {
    p.stop();
    try {
      p.start();
    } catch (const std::logic_error &) {
      return false;
    }
    return true;
  })) << p.dump();
  EXPECT_THROW(submit(injector, nullptr, hangs.size(), 1), std::invalid_argument);
  expect_stop(p, std::chrono::seconds(10));
}

// Known failure 59.
TEST_P(PipelineEnginesOnGpu, AFaultOfTheDeviceFailsCompletionsAndNothingHangs) {
  faulty_engine &engine = GetParam().faulty();
  pipe::realtime_pipeline &p = *engine.pipeline;
  const seen_by_request &seen = *engine.seen;
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  auto injector = p.create_injector();
  ASSERT_TRUE(submit(injector, &engine.good, sizeof(engine.good), 0));
  ASSERT_TRUE(eventually([&] { return seen.all == 1; }));
  std::uint64_t sent = 1;
  while (sent < 4 && injector.try_submit(kDecode, &engine.traps, sizeof(engine.traps), sent)) // refused after the fault
    ++sent;
  EXPECT_TRUE(eventually([&] { return seen.all == sent; })) << p.dump();
  if (engine.stop_reports) {
    EXPECT_FALSE(injector.try_submit(kDecode, &engine.traps, sizeof(engine.traps), sent)) << "the device has failed";
  }
  expect_stop(p);
  engine.seen->times.resize(sent);
  seen.expect_each_once(sent - 1);
  EXPECT_NE(seen.last_error, 0);
  if (engine.stop_reports) {
    EXPECT_FALSE(p.last_stop().drained) << "the report names the device's error";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Engines, PipelineEnginesOnGpu,
    ::testing::Values(
        engine_on_gpu{"Graphs", []() -> std::unique_ptr<stuck_engine> { return std::make_unique<stuck_graph>(); },
                      faulty_graphs},
        engine_on_gpu{"Resident", []() -> std::unique_ptr<stuck_engine> { return std::make_unique<stuck_resident>(); },
                      faulty_resident}),
    [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test

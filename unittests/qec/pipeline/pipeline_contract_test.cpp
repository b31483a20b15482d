// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/pipeline/pipeline_rig.h"

#include <stdexcept>

namespace cudaq::qec::realtime::test {
namespace {

TEST(PipelineContract, DefaultsAreAsDocumented) {
  const pipeline_stage_config c;
  EXPECT_EQ(c.num_workers, 8);
  EXPECT_EQ(c.num_slots, 32);
  EXPECT_EQ(c.slot_size, 16384u);
  EXPECT_EQ(c.cores.dispatcher, -1);
  EXPECT_EQ(c.cores.consumer, -1);
  EXPECT_EQ(c.cores.worker_base, -1);
  EXPECT_EQ(c.external_ringbuffer, nullptr);
  EXPECT_EQ(c.grace_period_ns, 5 * kSecond);
  const gpu_worker_resources r;
  EXPECT_EQ(r.graph_exec, nullptr);
  EXPECT_EQ(r.stream, nullptr);
  EXPECT_EQ(r.pre_launch_fn, nullptr);
  EXPECT_EQ(r.post_launch_fn, nullptr);
  EXPECT_EQ(r.function_id, 0u);
  EXPECT_EQ(r.user_context, nullptr);
  EXPECT_EQ(r.gpu_output, nullptr);
  EXPECT_EQ(r.ready_flag, nullptr);
  EXPECT_EQ(DEFERRED_COMPLETION, SIZE_MAX);
}

TEST(PipelineContract, ConstructorNamesTheFieldThatCannotBe) {
  const auto refused = [](auto change) -> std::string {
    pipeline_stage_config c = pipeline_rig::small();
    change(c);
    try {
      const realtime_pipeline p(c);
    } catch (const std::invalid_argument &e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refused([](auto &) {}), "accepted");
  EXPECT_EQ(refused([](auto &c) { c.num_workers = 64; }), "accepted");
  EXPECT_NE(refused([](auto &c) { c.num_workers = 0; }).find("num_workers is 0"), std::string::npos);
  EXPECT_NE(refused([](auto &c) { c.num_workers = 65; }).find("num_workers is 65"), std::string::npos);
  EXPECT_NE(refused([](auto &c) { c.num_slots = 0; }).find("num_slots is 0"), std::string::npos);
  EXPECT_NE(refused([](auto &c) { c.num_slots = -1; }).find("num_slots is -1"), std::string::npos);
  EXPECT_NE(refused([](auto &c) { c.slot_size = 23; }).find("slot_size is 23"), std::string::npos);
}

TEST(PipelineContract, StartWithoutAGpuStageIsALogicError) {
  realtime_pipeline p(pipeline_rig::small());
  p.set_cpu_stage([](const cpu_stage_context &) { return std::size_t{1}; });
  EXPECT_THROW(p.start(), std::logic_error);
}

TEST(PipelineContract, WhatTheFactoryThrowsReachesTheCallerOfStart) {
  pipeline_rig rig(pipeline_rig::small(2), 20);
  rig.pipeline->set_gpu_stage([&](int id) -> gpu_worker_resources {
    if (id == 1)
      throw std::domain_error("no second engine");
    return rig.resources(id);
  });
  EXPECT_THROW(rig.pipeline->start(), std::domain_error);
  rig.pipeline->set_gpu_stage([&](int id) { return rig.resources(id); }); // allowed: the pipeline does not run
  rig.run_all();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineContract, TheFactoryCannotChangeWhatIsBeingStarted) {
  pipeline_rig rig(pipeline_rig::small(1), 5);
  int refused = 0;
  rig.pipeline->set_gpu_stage([&](int id) {
    const auto try_to = [&](auto &&change) {
      try {
        change(*rig.pipeline);
      } catch (const std::logic_error &) {
        ++refused;
      }
    };
    try_to([](realtime_pipeline &p) { p.start(); });
    try_to([](realtime_pipeline &p) { p.stop(); });
    try_to([](realtime_pipeline &p) { p.set_gpu_stage({}); });
    try_to([](realtime_pipeline &p) { p.set_cpu_stage({}); });
    try_to([](realtime_pipeline &p) { p.set_completion_handler({}); });
    return rig.resources(id);
  });
  rig.pipeline->start();
  EXPECT_EQ(refused, 5);
  rig.submit_all();
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineContract, FactoryIsCalledOncePerWorkerAndStart) {
  pipeline_rig rig(pipeline_rig::small(3));
  std::vector<int> ids;
  rig.pipeline->set_gpu_stage([&](int id) {
    ids.push_back(id);
    return rig.resources(id);
  });
  rig.pipeline->start();
  rig.pipeline->stop();
  EXPECT_EQ(ids, (std::vector<int>{0, 1, 2}));
  rig.pipeline->start();
  rig.pipeline->stop();
  EXPECT_EQ(ids, (std::vector<int>{0, 1, 2, 0, 1, 2}));
}

TEST(PipelineContract, NothingIsConfiguredWhileItRuns) {
  pipeline_rig rig(pipeline_rig::small());
  rig.pipeline->start();
  EXPECT_THROW(rig.pipeline->start(), std::logic_error);
  EXPECT_THROW(rig.pipeline->set_gpu_stage({}), std::logic_error);
  EXPECT_THROW(rig.pipeline->set_cpu_stage({}), std::logic_error);
  EXPECT_THROW(rig.pipeline->set_completion_handler({}), std::logic_error);
  rig.pipeline->stop();
  rig.pipeline->stop();
  rig.pipeline->set_completion_handler({});
  rig.pipeline->start();
  rig.pipeline->stop();
}

TEST(PipelineContract, PayloadsThatDoNotFitAreRefusedAndTakeNoSlot) {
  pipeline_rig rig(pipeline_rig::small(1, 2, 64), 1);
  ring_buffer_injector injector = rig.pipeline->create_injector();
  const std::vector<std::uint8_t> big(41);
  EXPECT_THROW(injector.try_submit(kFunction, big.data(), 41, 7), std::invalid_argument);
  EXPECT_THROW(injector.submit(kFunction, nullptr, 1, 7), std::invalid_argument);
  EXPECT_TRUE(injector.try_submit(kFunction, big.data(), 40, 7));
  EXPECT_EQ(rig.pipeline->stats().submitted, 1u);
}

TEST(PipelineContract, InjectorsMove) {
  pipeline_rig rig(pipeline_rig::small(), 2);
  ring_buffer_injector first = rig.pipeline->create_injector();
  rig.submit(first, 0);
  ring_buffer_injector second(std::move(first));
  ring_buffer_injector third = rig.pipeline->create_injector();
  third = std::move(second);
  rig.submit(third, 1);
  rig.pipeline->start();
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST(PipelineContract, BasesAreKnownBeforeStart) {
  pipeline_rig rig(pipeline_rig::small());
  EXPECT_NE(rig.pipeline->ringbuffer_bases().rx_data_host, nullptr);
  EXPECT_EQ(rig.pipeline->ringbuffer_bases().rx_data_dev, nullptr) << "plain memory";
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/pipeline/foreign_ring.h"

#include <climits>
#include <mutex>
#include <queue>
#include <sched.h>

namespace cudaq::qec::realtime::test {
namespace {

void use_poll_mode(pipeline_rig &rig) {
  rig.change_stage([&](gpu_worker_resources &r, int) { r.gpu_output = nullptr; });
}

TEST(PipelineModes, PollModeDoesNotTakeAHeaderThatAGraphMayHaveWritten) {
  pipeline_rig rig(pipeline_rig::small(1));
  use_poll_mode(rig);
  std::atomic<int> polls{0};
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) -> std::size_t {
    const cudaq_rpc_response_t header{CUDAQ_RPC_MAGIC_RESPONSE, 5, 0, 0, 0};
    std::memcpy(static_cast<std::uint8_t *>(c.response_buffer) - sizeof(header), &header, sizeof(header));
    return ++polls < 3 ? 0 : FRAMED_RESPONSE;
  });
  std::atomic<int> status{0};
  rig.pipeline->set_completion_handler([&](const completion &c) { status = c.status; });
  ring_buffer_injector injector = rig.start();
  rig.submit(injector, 0);
  EXPECT_TRUE(eventually([&] { return status == 5; }));
  EXPECT_EQ(polls, 3);
}

/// Sets ready flags after a delay, on another thread: it stands in for the GPU.
class later {
public:
  explicit later(std::chrono::microseconds delay) : thread_([this, delay] { run(delay); }) {}
  ~later() {
    ends_ = true;
    thread_.join();
  }
  void finish(int *flag) {
    const std::lock_guard<std::mutex> lock(mutex_);
    flags_.push(flag);
  }

private:
  void run(std::chrono::microseconds delay) {
    while (!ends_) {
      std::this_thread::sleep_for(delay);
      const std::lock_guard<std::mutex> lock(mutex_);
      if (flags_.empty())
        continue;
      std::atomic_ref<int>(*flags_.front()).store(1, std::memory_order_release);
      flags_.pop();
    }
  }
  std::mutex mutex_;
  std::queue<int *> flags_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

struct later_worker {
  copy_worker *copy;
  later *gpu;
  static int launch(void *self, host_stage_call *call) {
    auto &w = *static_cast<later_worker *>(self);
    EXPECT_EQ(std::atomic_ref<int>(w.copy->ready).load(), 0) << "a launch while the last output is in use";
    copy_worker::copy(w.copy, call);
    w.gpu->finish(&w.copy->ready);
    return 0;
  }
};

class PipelineModesWithBuffers : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Buffers, PipelineModesWithBuffers, testing::Values(1, 2, 4));

TEST_P(PipelineModesWithBuffers, ReadyFlagIsClaimedOncePerRequest) {
  later gpu(std::chrono::microseconds(20));
  pipeline_stage_config config = pipeline_rig::small(3, 16);
  config.buffers = GetParam();
  pipeline_rig rig(config, 300);
  std::deque<later_worker> launchers;
  rig.change_stage([&](gpu_worker_resources &r, int id) {
    copy_worker &w = rig.workers[static_cast<std::size_t>(id)];
    r.host_stage_data = &launchers.emplace_back(later_worker{&w, &gpu});
    r.host_stage_fn = &later_worker::launch;
    r.ready_flag = &w.ready;
  });
  rig.pipeline->set_cpu_stage([](const cpu_stage_context &c) {
    auto &w = *static_cast<copy_worker *>(c.user_context);
    EXPECT_EQ(c.gpu_output, w.output.data());
    EXPECT_EQ(c.gpu_output_size, w.output.size());
    EXPECT_EQ(std::atomic_ref<int>(w.ready).load(), 2) << "processing";
    return pipeline_rig::echo(c);
  });
  rig.run_all();
  CUDAQ_EXPECT_ALL_GOOD(rig);
  for (copy_worker &w : rig.workers)
    EXPECT_EQ(w.ready, 0);
}

// The device addresses of this ring differ from the host addresses. This test never accesses them.
TEST(PipelineModes, HooksOfAHostStageGetTheDevicesAddressOfTheSlot) {
  foreign_ring foreign(4, true);
  auto *const device = reinterpret_cast<std::uint8_t *>(std::uintptr_t{1} << 40);
  foreign.ring.rx_data = device;
  pipeline_stage_config config = pipeline_rig::small(1, 4);
  config.external_ringbuffer = &foreign.ring;
  pipeline_rig rig(config);
  std::vector<void *> slots;
  rig.change_stage([&](gpu_worker_resources &r, int) {
    r.pre_launch_data = r.post_launch_data = &slots;
    r.pre_launch_fn = r.post_launch_fn = [](void *to, void *slot, cudaStream_t) {
      static_cast<std::vector<void *> *>(to)->push_back(slot);
    };
  });
  rig.pipeline->start();
  for (std::uint64_t k = 0; k < 5; ++k) {
    ASSERT_TRUE(foreign.send(k));
    ASSERT_TRUE(eventually([&] { return foreign.receive(k); }));
    ASSERT_TRUE(eventually([&] { return foreign.is_free(k); }));
  }
  rig.pipeline->stop();
  ASSERT_EQ(slots.size(), 10u);
  for (std::size_t k = 0; k < 10; ++k)
    EXPECT_EQ(slots[k], device + k / 2 % 4 * foreign.ring.rx_stride_sz) << k;
}

TEST(PipelineModes, ThreadsRunWhereTheyArePinned) {
  const int core = sched_getcpu();
  ASSERT_GE(core, 0);
  pipeline_stage_config config = pipeline_rig::small(1);
  config.cores = {core, core, core};
  pipeline_rig rig(config, 20);
  std::atomic<int> elsewhere{0};
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    elsewhere += sched_getcpu() != core;
    return pipeline_rig::echo(c);
  });
  rig.pipeline->start();
  for (const char *name : {"cudaq-dispatch", "qec-consumer", "qec-worker-0"}) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    ASSERT_EQ(sched_getaffinity(thread_named(name), sizeof(cores), &cores), 0) << name;
    EXPECT_TRUE(CPU_COUNT(&cores) == 1 && CPU_ISSET(static_cast<std::size_t>(core), &cores)) << name;
  }
  rig.submit_all();
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
  EXPECT_EQ(elsewhere, 0);
}

TEST(PipelineModes, ACoreThatDoesNotExistIsAnErrorOfStart) {
  for (int core_pinning::*which : {&core_pinning::dispatcher, &core_pinning::consumer, &core_pinning::worker_base})
    for (const int core : {1023, INT_MAX}) {
      pipeline_stage_config config = pipeline_rig::small(2);
      config.cores.*which = core;
      pipeline_rig rig(config);
      EXPECT_THROW(rig.pipeline->start(), std::runtime_error);
    }
}

/// A stage that lives on a device between requests, as the hooks see it.
struct device_stage {
  copy_worker *copy = nullptr;
  int begun = 0, ended = 0;
  bool ends = true;    ///< what the end hook says
  bool begins = true;  ///< false: the begin hook throws
  bool answers = true; ///< false: requests never become ready
  std::atomic<int> error{0};

  void put_into(gpu_worker_resources &r, copy_worker &with) {
    copy = &with;
    r.ready_flag = &with.ready;
    r.host_stage_data = this;
    r.host_stage_fn = [](void *self, host_stage_call *call) {
      auto &s = *static_cast<device_stage *>(self);
      EXPECT_GT(s.begun, s.ended);
      copy_worker::copy(s.copy, call);
      if (s.answers)
        std::atomic_ref<int>(s.copy->ready).store(1, std::memory_order_release);
      return 0;
    };
    r.stage_begin_fn = [](void *self) {
      auto &s = *static_cast<device_stage *>(self);
      if (!s.begins)
        throw std::runtime_error("no room on the device");
      ++s.begun;
    };
    r.stage_end_fn = [](void *self) {
      auto &s = *static_cast<device_stage *>(self);
      s.ended += s.ends;
      return s.ends;
    };
    r.stage_error_fn = [](void *self) { return static_cast<device_stage *>(self)->error.load(); };
  }
};

struct device_stages {
  device_stages(pipeline_rig &rig, std::size_t workers) : all(workers) {
    rig.change_stage([&rig, this](gpu_worker_resources &r, int id) {
      all[static_cast<std::size_t>(id)].put_into(r, rig.workers[static_cast<std::size_t>(id)]);
    });
  }
  std::deque<device_stage> all;
};

TEST(PipelineDeviceStages, BeginWithEachStartAndEndWithEachStop) {
  pipeline_rig rig(pipeline_rig::small(2), 50);
  device_stages stages(rig, 2);
  rig.run_all();
  CUDAQ_EXPECT_ALL_GOOD(rig);
  for (const device_stage &s : stages.all)
    EXPECT_TRUE(s.begun == 1 && s.ended == 1);
  rig.pipeline->start();
  rig.pipeline->stop();
  rig.pipeline->stop(); // does nothing
  for (const device_stage &s : stages.all)
    EXPECT_TRUE(s.begun == 2 && s.ended == 2);
}

TEST(PipelineDeviceStages, AStartWhoseStageDoesNotBeginEndsTheOnesThatHaveBegunAndThrows) {
  pipeline_rig rig(pipeline_rig::small(3));
  device_stages stages(rig, 3);
  stages.all[1].begins = false;
  EXPECT_THROW(rig.pipeline->start(), std::runtime_error);
  EXPECT_EQ(stages.all[0].begun, 1);
  EXPECT_EQ(stages.all[0].ended, 1);
  EXPECT_EQ(stages.all[1].ended, 0) << "its begin threw";
  EXPECT_EQ(stages.all[2].ended, 0) << "its begin was not called";
  stages.all[1].begins = true;
  rig.pipeline->start();
  rig.pipeline->stop();
  EXPECT_TRUE(rig.pipeline->last_stop().drained);
}

TEST(PipelineDeviceStages, AStageThatDoesNotEndAfterAFailedStartIsEndedByTheNextStop) {
  pipeline_rig rig(pipeline_rig::small(2));
  device_stages stages(rig, 2);
  stages.all[0].ends = false;
  stages.all[1].begins = false;
  EXPECT_THROW(rig.pipeline->start(), std::runtime_error);
  EXPECT_EQ(stages.all[0].begun, 1);
  EXPECT_THROW(rig.pipeline->start(), std::logic_error) << "the stage still uses its memory";
  rig.pipeline->stop();
  EXPECT_EQ(rig.pipeline->last_stop().stuck_threads, 1) << rig.pipeline->last_stop().text;
  stages.all[0].ends = true;
  rig.pipeline->stop();
  EXPECT_EQ(rig.pipeline->last_stop().stuck_threads, 0) << rig.pipeline->last_stop().text;
  EXPECT_EQ(stages.all[0].ended, 1);
  stages.all[1].begins = true;
  rig.pipeline->start();
  rig.pipeline->stop();
  EXPECT_TRUE(rig.pipeline->last_stop().drained) << rig.pipeline->last_stop().text;
}

TEST(PipelineDeviceStages, AStageThatDoesNotEndIsReportedAndEndedByTheNextStop) {
  pipeline_rig rig(pipeline_rig::small(2));
  device_stages stages(rig, 2);
  stages.all[0].ends = false;
  rig.pipeline->start();
  rig.pipeline->stop();
  EXPECT_EQ(rig.pipeline->last_stop().stuck_threads, 1);
  EXPECT_NE(rig.pipeline->last_stop().text.find("GPU stages of 1 workers have not ended"), std::string::npos)
      << rig.pipeline->last_stop().text;
  EXPECT_THROW(rig.pipeline->start(), std::logic_error);
  stages.all[0].ends = true;
  rig.pipeline->stop();
  EXPECT_TRUE(rig.pipeline->last_stop().drained) << rig.pipeline->last_stop().text;
  rig.pipeline->start();
  rig.pipeline->stop();
}

// Known failure 59.
TEST(PipelineDeviceStages, AStageThatHasFailedIsAnsweredWithItsError) {
  pipeline_rig rig(pipeline_rig::small(1));
  device_stages stages(rig, 1);
  stages.all[0].answers = false;
  std::atomic<int> status{0}, error{0}, completed{0};
  rig.pipeline->set_completion_handler([&](const completion &c) {
    status = c.status;
    error = c.cuda_error;
    EXPECT_FALSE(c.success);
    ++completed;
  });
  ring_buffer_injector injector = rig.start();
  rig.submit(injector, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(completed, 0) << "the stage may still answer";
  stages.all[0].error = 719;
  EXPECT_TRUE(eventually([&] { return completed == 1; }));
  EXPECT_EQ(status, CUDAQ_RPC_ERR_DEVICE_FAULT);
  EXPECT_EQ(error, 719);
  rig.pipeline->stop();
  EXPECT_TRUE(rig.pipeline->last_stop().drained) << rig.pipeline->last_stop().text;
}

TEST(PipelineDeviceStages, HooksThatStopThePipelineAreRefused) {
  pipeline_rig rig(pipeline_rig::small(1));
  static realtime_pipeline *pipeline = nullptr; // the hooks get the stage
  static int refused = 0;
  const auto stop = [] {
    try {
      pipeline->stop();
    } catch (const std::logic_error &) {
      ++refused;
    }
  };
  static const std::function<void()> try_stop = stop;
  rig.change_stage([](gpu_worker_resources &r, int) {
    r.stage_begin_fn = [](void *) { try_stop(); };
    r.stage_end_fn = [](void *) {
      try_stop();
      return true;
    };
  });
  pipeline = rig.pipeline.get();
  refused = 0;
  rig.pipeline->start();
  EXPECT_EQ(refused, 1);
  rig.pipeline->stop();
  EXPECT_EQ(refused, 2);
  EXPECT_TRUE(rig.pipeline->last_stop().drained);
}

TEST(PipelineDeviceStages, ExceptionsOfTheirHooksEndNothing) {
  pipeline_rig rig(pipeline_rig::small(1));
  static std::atomic<bool> throws;
  throws = true;
  device_stages stages(rig, 1);
  stages.all[0].answers = false;
  rig.change_stage([&](gpu_worker_resources &r, int) {
    stages.all[0].put_into(r, rig.workers[0]);
    r.stage_error_fn = [](void *) -> int { throw std::runtime_error("the device is gone"); };
    r.stage_end_fn = [](void *) {
      if (throws)
        throw std::runtime_error("the device is gone");
      return true;
    };
  });
  std::atomic<int> error{0};
  rig.pipeline->set_completion_handler([&](const completion &c) { error = c.cuda_error; });
  ring_buffer_injector injector = rig.start();
  rig.submit(injector, 0);
  EXPECT_TRUE(eventually([&] { return error == cudaErrorUnknown; }));
  rig.pipeline->stop();
  EXPECT_EQ(rig.pipeline->last_stop().stuck_threads, 1);
  throws = false;
  rig.pipeline->stop();
  EXPECT_TRUE(rig.pipeline->last_stop().drained) << rig.pipeline->last_stop().text;
}

TEST(PipelineDeviceStages, TheirHooksAreRefusedWithGraphsAndSharedFlagsAreRefused) {
  pipeline_rig rig(pipeline_rig::small(2));
  const auto refusal = [&](const std::function<void(gpu_worker_resources &)> &change) -> std::string {
    rig.change_stage([&](gpu_worker_resources &r, int) { change(r); });
    try {
      rig.pipeline->start();
    } catch (const std::invalid_argument &e) {
      return e.what();
    }
    rig.pipeline->stop();
    return "";
  };
  EXPECT_EQ(refusal([](gpu_worker_resources &r) {
              r.host_stage_fn = nullptr;
              r.graph_exec = reinterpret_cast<cudaGraphExec_t>(1);
              r.stage_end_fn = [](void *) { return true; };
            }),
            "pipeline: worker 0: stage_begin_fn, stage_end_fn and stage_error_fn are for host stages");
  static volatile int flag = 0;
  static const int output = 0;
  EXPECT_EQ(refusal([](gpu_worker_resources &r) {
              r.gpu_output = &output;
              r.gpu_output_size = sizeof(output);
              r.ready_flag = &flag;
            }),
            "pipeline: worker 1: its ready_flag is that of worker 0");
}

} // namespace
} // namespace cudaq::qec::realtime::test

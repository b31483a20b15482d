// SPDX-License-Identifier: Apache-2.0
// What pipelines of all kinds have in common: host stages and graphs, with and without a CPU stage, on their own and on
// external rings. unittests/gpu/qec tests the graphs on a GPU.
#include "unittests/qec/pipeline/any_rig.h"

#include <stdexcept>

namespace cudaq::qec::realtime::test {
namespace {

class PipelineKinds : public testing::TestWithParam<pipeline_kind> {};

/// Counts the calls of the hooks, and checks their slots.
struct counted_hooks {
  explicit counted_hooks(any_rig &of)
      : stride(of.config.slot_size), slots(static_cast<std::uintptr_t>(of.config.num_slots)) {
    // A fake graph worker has no device address of the ring and passes offsets.
    base = of.kind.graphs ? 0 : reinterpret_cast<std::uintptr_t>(of.pipeline().ringbuffer_bases().rx_data_host);
    of.pipeline().set_gpu_stage([this, &of](int id) {
      gpu_worker_resources r = of.resources(id);
      r.pre_launch_data = r.post_launch_data = this;
      r.pre_launch_fn = [](void *self, void *slot, cudaStream_t) {
        static_cast<counted_hooks *>(self)->see(slot, true);
      };
      r.post_launch_fn = [](void *self, void *slot, cudaStream_t) {
        static_cast<counted_hooks *>(self)->see(slot, false);
      };
      return r;
    });
  }
  void see(void *slot, bool is_before) {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(slot) - base;
    wrong += offset % stride != 0 || offset / stride >= slots;
    const int earlier = is_before ? before++ : after++;
    wrong += alone && earlier != (is_before ? after.load() : before.load() - 1);
  }

  std::uintptr_t base, stride, slots;
  bool alone = false; ///< there is one worker: its hooks come in turn
  std::atomic<int> before{0}, after{0}, wrong{0};
};

// Known failure 18.
TEST_P(PipelineKinds, EveryRequestIsAnsweredOnceAndTheHooksAreCalledAroundEachLaunch) {
  constexpr int kRequests = 300;
  for (const auto &[workers, slots] : {std::pair{1, 1}, {1, 8}, {3, 2}, {2, 33}, {64, 128}}) {
    SCOPED_TRACE(std::to_string(workers) + " workers, " + std::to_string(slots) + " slots");
    any_rig r(GetParam(), 20 * kSecond, workers, slots, kRequests);
    counted_hooks hooks(r);
    hooks.alone = workers == 1;
    r.pipeline().start();
    r.stream(kRequests);
    r.pipeline().stop();
    EXPECT_TRUE(r.pipeline().last_stop().drained) << r.pipeline().last_stop().text;
    EXPECT_EQ(hooks.before, kRequests);
    EXPECT_EQ(hooks.after, kRequests);
    EXPECT_EQ(hooks.wrong, 0);
    EXPECT_EQ(r.pipeline().stats().submitted, std::uint64_t{kRequests});
    EXPECT_EQ(r.pipeline().stats().completed, std::uint64_t{kRequests});
    EXPECT_EQ(r.pipeline().stats().dispatched, std::uint64_t{kRequests});
  }
}

TEST_P(PipelineKinds, PollModeAsksTheCpuStageUntilItHasAResult) {
  if (!GetParam().cpu_stage)
    GTEST_SKIP() << "there is no CPU stage to ask";
  any_rig r(GetParam(), 20 * kSecond, 2, 8, 500);
  r.pipeline().set_gpu_stage([&](int id) {
    gpu_worker_resources with = r.resources(id);
    with.gpu_output = nullptr;
    with.ready_flag = nullptr;
    if (!r.kind.graphs)
      with.host_stage_fn = [](void *self, host_stage_call *call) {
        auto &w = *static_cast<copy_worker *>(self);
        cudaq::realtime::detail::store_release(static_cast<volatile int &>(w.ready), 1);
        return copy_worker::copy(&w, call);
      };
    return with;
  });
  std::vector<int> polls(8); // by slot
  r.pipeline().set_cpu_stage([&](const cpu_stage_context &c) -> std::size_t {
    EXPECT_EQ(c.gpu_output, nullptr);
    EXPECT_EQ(c.gpu_output_size, 0u);
    auto &w = *static_cast<copy_worker *>(c.user_context);
    int &times = polls[static_cast<std::size_t>(c.origin_slot)];
    if (++times < 3 || !cudaq::realtime::detail::claim_word(static_cast<volatile int &>(w.ready), 1, 0))
      return 0;
    times = 0;
    return pipeline_rig::echo(c);
  });
  r.pipeline().start();
  r.stream(500);
  r.pipeline().stop();
}

// Known failure 20.
TEST_P(PipelineKinds, AStageThatFailsFailsItsRequestOnly) {
  constexpr std::size_t kRequests = 150;
  any_rig r(GetParam(), 20 * kSecond, 2, 4, kRequests);
  std::atomic<int> launches{0}, failed{0};
  if (r.kind.graphs)
    r.graphs->fake.launch_fails = [&](int) { return launches++ % 3 == 1; };
  else
    r.pipeline().set_gpu_stage([&](int id) {
      gpu_worker_resources with = r.resources(id);
      with.post_launch_data = &launches;
      with.post_launch_fn = [](void *count, void *, cudaStream_t) {
        if ((*static_cast<std::atomic<int> *>(count))++ % 3 == 1)
          throw std::runtime_error("stage");
      };
      return with;
    });
  r.pipeline().set_completion_handler([&](const completion &c) {
    failed += c.status == CUDAQ_RPC_ERR_LAUNCH_FAILED && !c.success;
    r.rig().record(c);
  });
  r.pipeline().start();
  for (std::size_t k = 0; k < kRequests; ++k) { // one at a time, so that every third one fails
    ASSERT_TRUE(eventually([&] { return r.submit(); }));
    r.expect_all_completed(k % 3 == 1 ? CUDAQ_RPC_ERR_LAUNCH_FAILED : 0);
    if (!r.kind.external) {
      EXPECT_EQ(r.rig().seen.good[k], k % 3 == 1 ? 0 : 1) << k;
    }
  }
  r.pipeline().stop();
  EXPECT_EQ(failed, kRequests / 3);
}

TEST_P(PipelineKinds, ResourcesThatContradictThemselvesAreRefused) {
  any_rig r(GetParam());
  const auto refused = [&](const char *why, auto change) {
    r.pipeline().set_gpu_stage([&](int id) {
      gpu_worker_resources with = r.resources(id);
      change(with, id);
      return with;
    });
    try {
      r.pipeline().start();
      ADD_FAILURE() << "started: " << why;
      r.pipeline().stop();
    } catch (const std::invalid_argument &e) {
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  };
  int flag = 0;
  const auto be_graph = [&](auto &with) {
    with.graph_exec = reinterpret_cast<cudaGraphExec_t>(&r);
    with.host_stage_fn = nullptr;
  };
  const auto be_host_stage = [](auto &with) {
    with.graph_exec = nullptr;
    with.host_stage_fn = &copy_worker::copy;
  };
  refused("both graph_exec and host_stage_fn are set", [&](auto &with, int) {
    be_graph(with);
    with.host_stage_fn = &copy_worker::copy;
  });
  refused("neither graph_exec and host_stage_fn is set", [](auto &with, int) {
    with.graph_exec = nullptr;
    with.host_stage_fn = nullptr;
  });
  refused("in one pipeline",
          [&](auto &with, int id) { (id == 0) == r.kind.graphs ? be_graph(with) : be_host_stage(with); });
  if (!r.kind.cpu_stage)
    return;
  refused("gpu_output is not", [&](auto &with, int) {
    with.gpu_output = nullptr;
    with.ready_flag = &flag;
  });
  if (r.kind.graphs)
    refused("ready_flag is not", [](auto &with, int) { with.ready_flag = nullptr; });
}

INSTANTIATE_TEST_SUITE_P(Kinds, PipelineKinds, testing::ValuesIn(kPipelineKinds),
                         [](const auto &i) { return i.param.name; });

/// A CPU stage that defers; on an external ring with both layouts.
class PipelineDeferringKinds : public testing::TestWithParam<pipeline_kind> {};

TEST_P(PipelineDeferringKinds, DeferredRequestsThatAreNotCompletedAreGivenUpByStop) {
  any_rig r(GetParam(), kSecond / 10, 1, 4, 4);
  r.defer_all();
  r.pipeline().start();
  for (int k = 0; k < 4; ++k)
    ASSERT_TRUE(eventually([&] { return r.submit(); }));
  ASSERT_TRUE(eventually([&] { return r.deferred == 4; }));
  r.pipeline().stop();
  r.expect_all_completed(CUDAQ_RPC_ERR_SHUTTING_DOWN);
  EXPECT_EQ(r.given_up, 4u);
  EXPECT_EQ(r.pipeline().last_stop().given_up, 4u);
  for (int slot = 0; slot < 4; ++slot) {
    EXPECT_FALSE(r.pipeline().complete_deferred(slot, r.generations[static_cast<std::size_t>(slot)], 0, 0));
    EXPECT_NO_THROW(r.pipeline().complete_deferred(slot)) << "a late decode thread gets no exception";
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, PipelineDeferringKinds,
                         testing::Values(kPipelineKinds[0], kPipelineKinds[2], kPipelineKinds[3], kPipelineKinds[5],
                                         pipeline_kind{"HostStagesTwoSides", false, true, true, true},
                                         pipeline_kind{"GraphsTwoSides", true, true, true, true}),
                         [](const auto &i) { return i.param.name; });

/// Completions that come from outside for a request that is not there, while a CPU stage runs. The stage of each
/// request reports its generation, echoes the request, and waits at the gate if it is closed.
class PipelineStrayCompletion : public testing::TestWithParam<pipeline_kind> {
protected:
  PipelineStrayCompletion() {
    r.pipeline().set_cpu_stage([this](const cpu_stage_context &c) {
      const std::size_t size = pipeline_rig::echo(c);
      std::uint64_t request = 0;
      std::memcpy(&request, c.gpu_output, sizeof(request));
      generation[request] = c.generation;
      entered = static_cast<int>(request);
      if (request == held) {
        EXPECT_TRUE(eventually([&] { return open.load(); }));
      }
      return size; // nothing is written after the wait: the slot may belong to the next request
    });
    r.pipeline().start();
  }
  ~PipelineStrayCompletion() override { open = true; }
  /// Submits request k, whose CPU stage does not return before `open` is set.
  void submit_held(std::uint64_t k) {
    held = k;
    open = false;
    ASSERT_TRUE(eventually([&] { return r.submit(); }));
    ASSERT_TRUE(eventually([&] { return entered == static_cast<int>(k); }));
  }

  static constexpr std::uint64_t kNone = UINT64_MAX;
  std::array<std::atomic<std::uint64_t>, 64> generation{};
  std::atomic<std::uint64_t> held{kNone};
  std::atomic<bool> open{true};
  std::atomic<int> entered{-1};
  any_rig r{GetParam()}; // four slots: request k uses slot k mod 4
};

TEST_P(PipelineStrayCompletion, ChangesNothingIfItsSlotHasNoRequestOrItsGenerationIsAnother) {
  r.serve(4);
  ASSERT_NO_FATAL_FAILURE(submit_held(4));
  realtime_pipeline &p = r.pipeline();
  for (int slot = 1; slot < 4; ++slot) { // their requests were completed
    const std::uint64_t old = generation[static_cast<std::size_t>(slot)];
    EXPECT_THROW(p.complete_deferred(slot), std::logic_error);
    EXPECT_THROW(p.complete_deferred(slot, 8), std::logic_error);
    EXPECT_FALSE(p.complete_deferred(slot, old, 8, 0));
    EXPECT_FALSE(p.complete_deferred(slot, old + 1, 8, 0)) << "a request that never was";
  }
  EXPECT_FALSE(p.complete_deferred(0, generation[0], 8, CUDAQ_RPC_ERR_DEVICE_FAULT)) << "the slot's last request";
  EXPECT_FALSE(p.complete_deferred(0, generation[4] + 1, 8, CUDAQ_RPC_ERR_DEVICE_FAULT));
  EXPECT_THROW(p.complete_deferred(4, 8), std::out_of_range);
  EXPECT_THROW(p.complete_deferred(-1, 8), std::out_of_range);
  EXPECT_EQ(r.rig().seen.all, 4u) << "the stage still runs";
  open = true;
  r.expect_all_completed();
  r.serve(8);
  p.stop();
  EXPECT_NE(p.dump().find(" 0 second answers"), std::string::npos) << p.dump();
}

/// docs/pipeline.md: without a generation a late completion answers the request that the slot has now. That is one
/// answer: the stage's own is discarded, and the slot's next request has its own.
TEST_P(PipelineStrayCompletion, WithoutAGenerationAnswersTheRequestWhoseStageRuns) {
  r.serve(4);
  ASSERT_NO_FATAL_FAILURE(submit_held(4));
  r.pipeline().complete_deferred(0, 8 + 4); // meant for request 0, which was answered
  r.expect_all_completed();
  EXPECT_THROW(r.pipeline().complete_deferred(0, 8 + 4), std::logic_error) << "answered";
  r.serve(4); // the other worker serves them; request 8 uses the slot again
  open = true;
  EXPECT_TRUE(eventually([&] { return r.pipeline().dump().find(" 1 second answers") != std::string::npos; }))
      << r.pipeline().dump();
  r.serve(8);
  r.pipeline().stop();
  r.expect_each_once();
  EXPECT_TRUE(r.pipeline().last_stop().drained) << r.pipeline().last_stop().text;
}

INSTANTIATE_TEST_SUITE_P(Kinds, PipelineStrayCompletion,
                         testing::Values(kPipelineKinds[0], kPipelineKinds[2], kPipelineKinds[3], kPipelineKinds[5]),
                         [](const auto &i) { return i.param.name; });

} // namespace
} // namespace cudaq::qec::realtime::test

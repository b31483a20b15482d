// SPDX-License-Identifier: Apache-2.0
// A callback of a pipeline that ends its thread instead of returning ends the process with its name.
#include "unittests/qec/pipeline/pipeline_rig.h"
#include "unittests/support/processes/process_signals.h"

namespace cudaq::qec::realtime::test {
namespace {

using cudaq::realtime::test::expect_end_of_process;

/// In the child: `prepare` sets the callback, and a request reaches it.
template <class Prepare>
auto serving(const Prepare &prepare) {
  return [&prepare] {
    pipeline_rig rig(pipeline_rig::small(1), 1);
    prepare(rig);
    rig.pipeline->start();
    rig.submit_all();
    (void)eventually([&] { return rig.pipeline->stats().completed == 1; });
  };
}

// Known failure 55.
TEST(PipelineCallbackReturnsDeathTest, OrTheStageIsNamedAtTheEndOfTheProcess) {
  const auto exits = [](pipeline_rig &rig) {
    rig.change_stage([](gpu_worker_resources &r, int) {
      r.host_stage_fn = [](void *, host_stage_call *) -> int { pthread_exit(nullptr); };
    });
  };
  expect_end_of_process(serving(exits), "the stage of function 0x[0-9a-f]+ has ended its thread");
}

TEST(PipelineCallbackReturnsDeathTest, OrTheCpuStageIsNamedAtTheEndOfTheProcess) {
  const auto exits = [](pipeline_rig &rig) {
    rig.pipeline->set_cpu_stage([](const cpu_stage_context &) -> std::size_t { pthread_exit(nullptr); });
  };
  expect_end_of_process(serving(exits), "the CPU stage of function 0x[0-9a-f]+ has ended its thread");
}

TEST(PipelineCallbackReturnsDeathTest, OrTheCompletionHandlerIsNamedAtTheEndOfTheProcess) {
  const auto exits = [](pipeline_rig &rig) {
    rig.pipeline->set_completion_handler([](const completion &) { pthread_exit(nullptr); });
  };
  expect_end_of_process(serving(exits), "the completion handler has ended its thread");
}

} // namespace
} // namespace cudaq::qec::realtime::test

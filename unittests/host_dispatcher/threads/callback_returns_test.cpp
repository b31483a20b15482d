// SPDX-License-Identifier: Apache-2.0
// A handler or a hook that ends its thread instead of returning ends the process with its name.
#include "unittests/host_dispatcher/fake_graphs.h"
#include "unittests/support/api_fixture.h"
#include "unittests/support/processes/process_signals.h"

#include <pthread.h>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kFn = 77;
constexpr char kHandler[] = "the handler of function 0x0000004d has ended its thread";

[[noreturn]] void exit_v1(const void *, void *, std::size_t) { pthread_exit(nullptr); }
cudaq_function_entry_t exits() {
  cudaq_function_entry_t entry = host_entry("", exit_v1);
  entry.function_id = kFn;
  return entry;
}

struct flavour {
  const char *name;
  std::uint32_t pool;
  bool v2;
  bool shared;
};
class CallbackReturnsDeathTest : public ::testing::TestWithParam<flavour> {};

// Known failure 55.
TEST_P(CallbackReturnsDeathTest, OrItsHandlerIsNamedAtTheEndOfTheProcess) {
  const flavour &f = GetParam();
  expect_end_of_process(
      [&f] {
        cudaq_dispatcher_config_t config = host_config({});
        config.shared_ring_mode = f.shared;
        bench b({}, f.v2 ? std::vector<cudaq_function_entry_t>{} : std::vector{exits()}, config);
        b.options.handler_pool_size = f.pool;
        if (f.v2)
          b.on(kFn, [](cudaq_host_call_t &) -> std::int32_t { pthread_exit(nullptr); });
        b.start();
        (void)b.client.call(kFn, {}, 1);
      },
      kHandler);
}

INSTANTIATE_TEST_SUITE_P(Paths, CallbackReturnsDeathTest,
                         ::testing::Values(flavour{"Inline", 0, false, false}, flavour{"InlineV2", 0, true, false},
                                           flavour{"Pool", 2, false, false}, flavour{"SharedPoolV2", 1, true, true}),
                         [](const auto &tested) { return std::string(tested.param.name); });

// Known failure 55.
TEST(CallbackReturnsAnywhereDeathTest, AlsoOnTheCallersThread) {
  expect_end_of_process(
      [] {
        host_ring ring({4, 64, false});
        cudaq_function_entry_t entry = exits();
        volatile int shutdown = 0;
        std::uint64_t processed = 0;
        HostDispatcherConfig config = loop_over(ring.ring);
        config.num_slots = 4;
        config.function_table = &entry;
        config.function_table_count = 1;
        config.shutdown_flag = &shutdown;
        config.stats_counter = &processed;
        ring_client(ring).send(kFn, {}, 1);
        (void)host_dispatcher_loop(config);
      },
      kHandler);
}

// A handler enables the cancellation that the library has disabled on its thread.
TEST(CallbackReturnsAnywhereDeathTest, AlsoIfItsThreadIsCancelled) {
  expect_end_of_process(
      [] {
        bench b;
        b.on(kFn, [](cudaq_host_call_t &) -> std::int32_t {
          pthread_cancel(pthread_self());
          pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
          pthread_testcancel();
          return 0;
        });
        b.start();
        (void)b.client.call(kFn, {}, 1);
      },
      kHandler);
}

class HookReturnsDeathTest : public two_graphs {
protected:
  HookReturnsDeathTest() : two_graphs(CUDAQ_WORKER_LIBRARY_PUBLISHES) {}
};

// Known failure 55.
TEST_F(HookReturnsDeathTest, OrItsFunctionIsNamedAtTheEndOfTheProcess) {
  const auto hook = [](void *, void *, cudaStream_t) { pthread_exit(nullptr); };
  for (const bool before : {true, false}) {
    (before ? plan.workers[0].pre_launch_fn : plan.workers[0].post_launch_fn) = hook;
    expect_end_of_process(
        [&] {
          graph_rig rig(plan);
          rig.send(0, 1, 5, 1);
          (void)eventually([&] { return rig.answered(0); });
        },
        "a launch hook of function 0x00000001 has ended its thread");
    plan.workers[0].pre_launch_fn = nullptr;
  }
}

} // namespace
} // namespace cudaq::realtime::test

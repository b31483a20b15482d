// SPDX-License-Identifier: Apache-2.0
// Runs of a dispatcher on the device path whose kernel CPU threads play: what a thread sees that reads state and
// counters all the time (unittests/api/state_observer_test.cpp for this path), the blocks that a dump names, a launch
// function that ends its thread, and the hooks of a transport that refuse, or return frames of no use.
#include "cudaq/realtime/detail/loop/hook_transport.h"
#include "unittests/fault_injection/device_run.h"
#include "unittests/support/processes/process_signals.h"
#include "unittests/support/state_watch.h"

namespace cudaq::realtime::test {
namespace {

class DeviceStateObserver : public device_run_test, public ::testing::WithParamInterface<device_run_shape> {
protected:
  void SetUp() override {
    device_run_test::SetUp();
    if (IsSkipped())
      return;
    run = std::make_unique<device_run>(GetParam());
    watch = std::make_unique<state_watch>(*run);
  }
  void TearDown() override {
    watch.reset();
    run.reset();
    device_run_test::TearDown();
  }
  void start() {
    ASSERT_EQ(run->start(), CUDAQ_OK) << cudaq_last_error_message();
    ASSERT_TRUE(watch->sees(CUDAQ_DISPATCHER_RUNNING));
  }
  void start_and_get_stuck() {
    ASSERT_NO_FATAL_FAILURE(start());
    slot = run->client.send(device_run::kFn, {}, 1);
    ASSERT_TRUE(eventually([&] { return run->closed.occupied(); }));
  }

  std::unique_ptr<device_run> run;
  std::unique_ptr<state_watch> watch;
  std::uint32_t slot = 0;
};

// Known failure 48.
TEST_P(DeviceStateObserver, SeesLegalStepsWhileRunsStartAndStop) {
  run->closed.open();
  watch->restarts = true;
  for (std::uint32_t round = 0; round < 20; ++round) {
    ASSERT_NO_FATAL_FAILURE(start());
    EXPECT_EQ(run->client.call(device_run::kFn, {}, round).header.status, 0);
    if (round % 2 != 0)
      store_release(run->shutdown, 1); // races with stop
    CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(run->get));
    ASSERT_TRUE(watch->sees(CUDAQ_DISPATCHER_STOPPED));
  }
  std::uint64_t processed = 0;
  CUDAQ_EXPECT_OK(cudaq_dispatcher_get_processed(run->get, &processed));
  EXPECT_EQ(processed, 20u);
}

TEST_P(DeviceStateObserver, SeesStoppingFromAStopThatTimesOutUntilOneSucceeds) {
  ASSERT_NO_FATAL_FAILURE(start_and_get_stuck());
  EXPECT_EQ(cudaq_dispatcher_stop_timeout(run->get, ms(50)), CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(run->state(), CUDAQ_DISPATCHER_STOPPING);
  EXPECT_EQ(cudaq_dispatcher_start(run->get), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"stopping", "stop it first"}));
  EXPECT_EQ(cudaq_dispatcher_stop_timeout(run->get, 0), CUDAQ_ERR_TIMEOUT);
  ASSERT_TRUE(watch->sees(CUDAQ_DISPATCHER_STOPPING));
  run->closed.open();
  EXPECT_EQ(run->client.collect(slot).header.status, 0);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(run->get));
  ASSERT_TRUE(watch->sees(CUDAQ_DISPATCHER_STOPPED));
  const std::vector<transition> expected = {{CUDAQ_DISPATCHER_WIRED, CUDAQ_DISPATCHER_RUNNING},
                                            {CUDAQ_DISPATCHER_RUNNING, CUDAQ_DISPATCHER_STOPPING},
                                            {CUDAQ_DISPATCHER_STOPPING, CUDAQ_DISPATCHER_STOPPED}};
  EXPECT_EQ(watch->seen(), expected);
}

TEST_P(DeviceStateObserver, SeesNoStoppedAfterTheCallersFlagBeforeTheHandlerIsBack) {
  ASSERT_NO_FATAL_FAILURE(start_and_get_stuck());
  store_release(run->shutdown, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_NE(run->state(), CUDAQ_DISPATCHER_STOPPED);
  run->closed.open();
  EXPECT_TRUE(watch->sees(CUDAQ_DISPATCHER_STOPPED)) << "no call of stop is needed";
  EXPECT_EQ(run->client.collect(slot).header.status, 0);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(run->get));
}

TEST_P(DeviceStateObserver, SeesNothingOfAStartThatFails) {
  run->launch_fails = true;
  for (int n = 0; n < 5; ++n)
    EXPECT_EQ(run->start(), CUDAQ_ERR_CUDA);
  EXPECT_TRUE(watch->seen().empty());
  run->launch_fails = false;
  run->closed.open();
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_EQ(run->client.call(device_run::kFn, {}).header.status, 0);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(run->get));
  ASSERT_TRUE(watch->sees(CUDAQ_DISPATCHER_STOPPED));
}

TEST_P(DeviceStateObserver, SeesFailedWhenTheDeviceIsLostUntilTheNextRun) {
  run->closed.open();
  watch->restarts = true;
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_EQ(run->client.call(device_run::kFn, {}).header.status, 0);
  fake_cuda::lose_device(cudaErrorLaunchFailure);
  EXPECT_TRUE(watch->sees(CUDAQ_DISPATCHER_FAILED));
  store_release(run->shutdown, 1); // what plays the kernel ends
  EXPECT_TRUE(eventually(fake_cuda::idle));
  EXPECT_EQ(cudaq_dispatcher_stop(run->get), CUDAQ_ERR_CUDA);
  fake_cuda::lose_device(cudaSuccess);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(run->get));
  ASSERT_TRUE(watch->sees(CUDAQ_DISPATCHER_STOPPED));
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_EQ(run->client.call(device_run::kFn, {}).header.status, 0);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(run->get));
}

INSTANTIATE_TEST_SUITE_P(Flavours, DeviceStateObserver,
                         ::testing::Values(device_run_shape{"Fifo"},
                                           device_run_shape{"Any", CUDAQ_ORDERING_ANY, 1, 64, {64, 256, false}}),
                         [](const auto &tested) { return std::string(tested.param.name); });

// cudaq_dispatcher_dump_state of a dispatcher that runs; unittests/api/idle_blocks_test.cpp has the lines for all
// kernels.
class IdleBlocks : public device_run_test {
protected:
  /// The dump of a run that has answered a request; after it, the dump of the run that has ended says the same.
  static std::string dump_of(const device_run_shape &shape) {
    device_run run(shape);
    run.closed.open();
    EXPECT_EQ(run.dump().find("not launched"), std::string::npos) << "it has not started";
    EXPECT_EQ(run.start(), CUDAQ_OK) << cudaq_last_error_message();
    EXPECT_EQ(run.client.call(device_run::kFn, {1}).header.status, 0);
    const std::string text = run.dump();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(run.get));
    EXPECT_EQ(text.find("not launched") == std::string::npos, run.dump().find("not launched") == std::string::npos);
    return text;
  }
  static bool has_line(const std::string &text, const std::string &begin) {
    return text.find("\n" + begin) != std::string::npos;
  }
};

// Known failure 72.
TEST_F(IdleBlocks, DumpStateNamesTheBlocksOfAFifoRun) {
  const std::string text = dump_of({"", CUDAQ_ORDERING_FIFO, 8, 32});
  EXPECT_TRUE(has_line(text, "7 of 8 blocks are not launched: ordering FIFO")) << text;
}

TEST_F(IdleBlocks, DumpStateNamesTheWarpsOfAnAnyRun) {
  const std::string text = dump_of({"", CUDAQ_ORDERING_ANY, 8, 32, {64, 256, false}});
  EXPECT_TRUE(has_line(text, "6 of 8 warps are not launched: a ring of 64 slots keeps 2 busy")) << text;
}

TEST_F(IdleBlocks, DumpStateSaysNothingWhenAllBlocksAreUsed) {
  for (const device_run_shape &all_used :
       {device_run_shape{}, device_run_shape{"", CUDAQ_ORDERING_ANY, 2, 32, {64, 256, false}}}) {
    const std::string text = dump_of(all_used);
    EXPECT_EQ(text.find("not launched"), std::string::npos) << text;
  }
}

class LaunchReturnsDeathTest : public device_run_test {};

TEST_F(LaunchReturnsDeathTest, OrTheLaunchFunctionIsNamedAtTheEndOfTheProcess) {
  expect_end_of_process(
      [] {
        device_run run({"Fifo"});
        run.launch_exits = true;
        (void)run.start();
      },
      "the launch function has ended its thread");
}

constexpr std::uint32_t kFrame = 128;

/// transport_ctx. One request: then the hooks wait for the shutdown flag.
struct script {
  bool refuses = false;
  void *request = nullptr, *response = nullptr;
  std::atomic<std::uint32_t> published{0};
};
struct session {
  script *from;
  volatile int *shutdown;
  bool taken;
};
struct scripted {
  static void *attach(void *storage, void *ctx, volatile int *shutdown) {
    auto *const from = static_cast<script *>(ctx);
    return from->refuses ? nullptr : new (storage) session{from, shutdown, false};
  }
  static bool rx_poll(void *at, void **request, void **response) {
    auto &s = *static_cast<session *>(at);
    if (!s.taken) {
      s.taken = true;
      *request = s.from->request, *response = s.from->response;
      return true;
    }
    while (load_relaxed(*s.shutdown) == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return false;
  }
  static void tx_publish(void *at, void *) { ++static_cast<session *>(at)->from->published; }
};

void launch(void *ctx, size_t tx_stride, cudaq_function_entry_t *, size_t, volatile int *, uint64_t *,
            cudaStream_t stream) {
  auto *const state = static_cast<cudaq_dispatch_launch_state_t *>(cudaq_dispatch_launch_state());
  state->taken = state->resident_blocks = 1;
  fake_cuda::launch(stream, [ctx, params = state->params, size = static_cast<std::uint32_t>(tx_stride)] {
    using transport = hook_transport<yielding_thread_group, scripted>;
    group_memory memory;
    memory.lay_out(size, false);
    transport::shared_state shared;
    run_group<false>(params, 0, 1, memory, transport(shared, ctx, params.caller_shutdown, size));
  });
}

class DispatcherOverHooks : public ::testing::Test {
protected:
  void SetUp() override {
    if ((cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_DEVICE_PATH) == 0)
      GTEST_SKIP() << "this library was built without the CUDA runtime";
    words = static_cast<std::uint64_t *>(fake_cuda::allocate(2 * sizeof(std::uint64_t), cudaMemoryTypeHost));
    words[0] = words[1] = 0;
    write_request(frames[0].data(), {CUDAQ_RPC_MAGIC_REQUEST, 9, 0, 42, 0});
    from.request = frames[0].data(), from.response = frames[1].data();
    cudaq_dispatcher_config_t config{};
    config.kernel_type = CUDAQ_KERNEL_UNIFIED;
    config.slot_size = kFrame;
    CUDAQ_ASSERT_OK(cudaq_dispatch_manager_create(&manager));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_create(manager, &config, &d));
    const cudaq_function_table_t table{nullptr, 0};
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_function_table(d, &table));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(d, reinterpret_cast<volatile int *>(words), words + 1));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_unified_launch_upstream(d, launch, &from));
    cudaq_dispatcher_options_t options = default_options();
    options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(d, &options));
  }
  void TearDown() override {
    if (d == nullptr)
      return;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(d));
    CUDAQ_EXPECT_OK(cudaq_dispatch_manager_destroy(manager));
    fake_cuda::release(words);
    EXPECT_EQ(fake_cuda::violations(), "");
    EXPECT_EQ(fake_cuda::clean_up(), 0);
  }
  cudaq_dispatcher_state_t state() const {
    cudaq_dispatcher_state_t s{};
    CUDAQ_EXPECT_OK(cudaq_dispatcher_get_state(d, &s));
    return s;
  }
  void expect_serves() {
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(d));
    EXPECT_TRUE(eventually([&] { return from.published == 1; }));
    EXPECT_EQ(read_header<response>(frames[1].data()).request_id, 42u);
    std::uint64_t processed = 0;
    EXPECT_TRUE(
        eventually([&] { return cudaq_dispatcher_get_processed(d, &processed) == CUDAQ_OK && processed == 1; }));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(d));
    EXPECT_EQ(state(), CUDAQ_DISPATCHER_STOPPED);
  }

  struct alignas(16) frame {
    std::uint8_t bytes[kFrame] = {};
    std::uint8_t *data() { return bytes; }
  };
  frame frames[2];
  script from;
  std::uint64_t *words = nullptr;
  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *d = nullptr;
};

TEST_F(DispatcherOverHooks, CountsWhileTheHooksWait) { expect_serves(); }

TEST_F(DispatcherOverHooks, AnAttachThatRefusesIsAnErrorOfStart) {
  from.refuses = true;
  EXPECT_EQ(cudaq_dispatcher_start(d), CUDAQ_ERR_INTERNAL);
  EXPECT_TRUE(error_names({"cudaq_dev_transport_attach returned NULL", "without device hooks"}));
  EXPECT_EQ(state(), CUDAQ_DISPATCHER_WIRED);
  from.refuses = false;
  expect_serves();
}

TEST_F(DispatcherOverHooks, AFrameOfNoUseEndsTheRunWithAFault) {
  from.response = from.request;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(d));
  EXPECT_TRUE(eventually([&] { return state() == CUDAQ_DISPATCHER_FAILED; }));
  EXPECT_EQ(cudaq_dispatcher_stop(d), CUDAQ_ERR_INTERNAL);
  EXPECT_TRUE(error_names({"cudaq_dev_rx_poll", "the same for request and response"}));
  EXPECT_EQ(from.published, 0u);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(d)); // the fault was returned once
  from.response = frames[1].data();
  expect_serves();
}

} // namespace
} // namespace cudaq::realtime::test

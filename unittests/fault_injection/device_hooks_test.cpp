// SPDX-License-Identifier: Apache-2.0
// What a dispatcher does when the hooks of a transport refuse, or return frames of no use. A CPU thread plays the
// unified kernel over hooks.
#include "cudaq/realtime/detail/kernel_abi/launch_state.h"
#include "cudaq/realtime/detail/loop/hook_transport.h"
#include "unittests/loop/loop_host.h"
#include "unittests/support/api_fixture.h"
#include "unittests/support/fake_cuda/fake_cuda.h"

namespace cudaq::realtime::test {
namespace {

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

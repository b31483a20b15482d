// SPDX-License-Identifier: Apache-2.0
// A file that is compiled for the upstream interface: the three names with two forms are upstream's.
#define CUDAQ_REALTIME_UPSTREAM_INTERFACE
#include "unittests/support/api_fixture.h"

#include <atomic>
#include <type_traits>

namespace cudaq::realtime::test {
namespace {

static_assert(std::is_same_v<cudaq_unified_launch_fn_t, cudaq_unified_launch_upstream_fn_t>);
static_assert(CUDAQ_DISPATCH_STATUS_TRIGGER_GRAPH == 0x12A6E5);
static_assert(std::is_same_v<decltype(cudaq_create_dispatch_graph_regular),
                             decltype(cudaq_create_dispatch_graph_regular_upstream)>);

class UpstreamLoop : public ::testing::Test {
protected:
  UpstreamLoop() {
    ctx.ringbuffer = ring.ring;
    ctx.config.num_slots = 4; // dispatch_path 0, as in programs that leave it out
    ctx.config.slot_size = 64;
    ctx.function_table = {&entry, 1};
    ctx.shutdown_flag = &shutdown;
    ctx.stats_counter = &stats;
  }
  /// Runs the loop, which must return, and expects `words` in the error text.
  void refused(const std::vector<std::string> &words) {
    const int before = shutdown.load();
    cudaq_host_dispatcher_loop(&ctx);
    EXPECT_TRUE(error_names(words));
    EXPECT_EQ(shutdown.load(), before);
  }
  host_ring ring{{4, 64, false}};
  cudaq_function_entry_t entry = host_entry("reverse", reverse_handler);
  std::atomic<int> shutdown{0};
  std::uint64_t stats = 3;
  cudaq_host_dispatch_loop_ctx_t ctx{};
};

// Known failure 65.
TEST_F(UpstreamLoop, ServesHostCallsUntilTheFlagIsSet) {
  std::thread loop([&] { cudaq_host_dispatcher_loop(&ctx); });
  ring_client client(ring);
  for (std::uint32_t id = 0; id < 20; ++id)
    EXPECT_EQ(client.call(fnv1a_hash("reverse"), {1, 2, 3}, id).result, (std::vector<std::uint8_t>{3, 2, 1}));
  shutdown.store(1);
  loop.join();
  EXPECT_EQ(stats, 23u);
}

// The existing loop reads neither: a program of it may leave them out.
TEST_F(UpstreamLoop, NeedsNoStrideOfRequestsAndNoKindOfKernel) {
  ctx.ringbuffer.rx_stride_sz = 0;
  ctx.ringbuffer.rx_flags = ctx.ringbuffer.tx_flags = nullptr;
  ctx.config.kernel_type = CUDAQ_KERNEL_COOPERATIVE;
  for (const std::uint32_t slot_size : {64u, 0u}) { // without it: the stride of the answers
    ctx.config.slot_size = slot_size;
    shutdown.store(0);
    std::string why;
    std::thread loop([&] {
      cudaq_host_dispatcher_loop(&ctx);
      why = cudaq_last_error_message();
    });
    ring_client client(ring);
    for (std::uint32_t id = 0; id < 4; ++id)
      EXPECT_EQ(client.call(fnv1a_hash("reverse"), {1, 2, 3}, id).result, (std::vector<std::uint8_t>{3, 2, 1})) << why;
    shutdown.store(1);
    loop.join();
  }
}

TEST_F(UpstreamLoop, ReturnsAndNamesWhatItRefuses) {
  cudaq_host_dispatcher_loop(nullptr);
  EXPECT_TRUE(error_names({"cudaq_host_dispatcher_loop", "ctx is NULL"}));
  cudaq_host_dispatch_worker_t worker{};
  ctx.num_workers = 1;
  refused({"ctx->workers is NULL", "num_workers is 1"});
  ctx.workers = &worker;
  refused({"workers[0].graph_exec is NULL"});
  ctx.skip_stream_sweep = true;
  refused({"ctx->idle_mask is NULL", "skip_stream_sweep"});
  ctx.num_workers = 65;
  refused({"num_workers is 65", "64"});
  ctx.num_workers = 0;
  ctx.io_ctxs_host = &worker;
  refused({"io_ctxs_dev"});
  ctx.io_ctxs_host = nullptr;
  ctx.config.num_slots = 0;
  refused({"num_slots is 0"});
  ctx.shutdown_flag = nullptr;
  cudaq_host_dispatcher_loop(&ctx);
  EXPECT_TRUE(error_names({"shutdown_flag is NULL"}));
}

TEST_F(UpstreamLoop, TheNameIsTheFunctionOfTheMacro) {
  void (*const loop)(const cudaq_host_dispatch_loop_ctx_t *) = cudaq_host_dispatcher_loop;
  EXPECT_EQ(loop, cudaq_host_dispatcher_loop_upstream);
  EXPECT_NE(reinterpret_cast<void *>(&cudaq_dispatcher_set_unified_launch),
            reinterpret_cast<void *>(&cudaq_dispatcher_set_unified_launch_spec));
  EXPECT_NE(reinterpret_cast<void *>(&cudaq_dispatcher_set_mailbox),
            reinterpret_cast<void *>(&cudaq_dispatcher_set_mailbox_spec));
}

void launches_nothing_upstream(void *, size_t, cudaq_function_entry_t *, size_t, volatile int *, uint64_t *,
                               cudaStream_t) {}

class UpstreamUnified : public ::testing::Test {
protected:
  void SetUp() override {
    if ((cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_DEVICE_PATH) == 0)
      GTEST_SKIP() << "this build has no device path";
    make(256);
  }
  void TearDown() override {
    if (d != nullptr) {
      CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(d));
    }
    d = nullptr;
  }
  void make(std::uint32_t slot_size) {
    TearDown();
    cudaq_dispatcher_config_t config{};
    config.kernel_type = CUDAQ_KERNEL_UNIFIED;
    config.slot_size = slot_size;
    CUDAQ_ASSERT_OK(cudaq_dispatcher_create(manager.get, &config, &d));
    const cudaq_function_table_t table{&entry, 1};
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_function_table(d, &table));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(d, &flag, &stats));
  }
  cudaq_dispatcher_state_t state() const {
    cudaq_dispatcher_state_t s{};
    CUDAQ_EXPECT_OK(cudaq_dispatcher_get_state(d, &s));
    return s;
  }
  manager_handle manager;
  cudaq_function_entry_t entry{};
  volatile int flag = 0;
  std::uint64_t stats = 0, transport = 0;
  cudaq_dispatcher_t *d = nullptr;
};

// Known failure 65.
TEST_F(UpstreamUnified, ANullLauncherCompilesAndIsRefusedByStart) {
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_unified_launch(d, NULL, &transport));
  EXPECT_EQ(state(), CUDAQ_DISPATCHER_CREATED);
  EXPECT_EQ(cudaq_dispatcher_start(d), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"cudaq_dispatcher_set_unified_launch with a launch_fn"}));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_unified_launch(d, nullptr, &transport));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_unified_launch(d, launches_nothing_upstream, &transport));
  EXPECT_EQ(state(), CUDAQ_DISPATCHER_WIRED);
}

TEST_F(UpstreamUnified, NeedsAContextAndASlotSize) {
  EXPECT_EQ(cudaq_dispatcher_set_unified_launch(d, launches_nothing_upstream, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"transport_ctx is NULL"}));
  EXPECT_EQ(cudaq_dispatcher_set_unified_launch(nullptr, launches_nothing_upstream, &transport), CUDAQ_ERR_INVALID_ARG);
  make(0);
  EXPECT_EQ(cudaq_dispatcher_set_unified_launch(d, launches_nothing_upstream, &transport), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"slot_size is 0", "tx_stride_sz"}));
}

TEST_F(UpstreamUnified, TheLastCallOfEitherFormCounts) {
  const auto launches_nothing_spec = [](void *, cudaq_function_entry_t *, size_t, volatile int *, uint64_t *,
                                        cudaStream_t) {};
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_unified_launch(d, launches_nothing_upstream, &transport));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_unified_launch(d, nullptr, &transport));
  EXPECT_EQ(state(), CUDAQ_DISPATCHER_CREATED);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_unified_launch_spec(d, launches_nothing_spec, nullptr));
  EXPECT_EQ(state(), CUDAQ_DISPATCHER_WIRED);
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// A dispatcher with a CPU dataplane: wiring, refusals, and how a run ends.
#include "unittests/api/dataplane/dataplane_fixture.h"
#include "unittests/support/processes/process_signals.h"

namespace cudaq::realtime::test {
namespace {

bool error_contains(const char *text) {
  return std::string(cudaq_last_error_message()).find(text) != std::string::npos;
}

TEST(CpuDataplaneEnd, StopAnswersWhatIsOpen) {
  dataplane_bench b({4, 64, false});
  b.options.grace_period_ns = 50'000'000;
  b.on(1, [](cudaq_host_call_t &) { return CUDAQ_HOST_CALL_DEFERRED; });
  b.start();
  for (std::uint32_t id = 1; id <= 3; ++id)
    b.provider.send(1, {}, id);
  ASSERT_TRUE(eventually([&] { return b.view.stats().dispatched == 3; }));
  CUDAQ_EXPECT_OK(stop_again(b.view.get, 50'000'000));
  for (std::uint32_t id = 1; id <= 3; ++id)
    EXPECT_EQ(b.provider.collect(id).header.status, CUDAQ_RPC_ERR_SHUTTING_DOWN);
  EXPECT_EQ(b.provider.slots_with_the_loop(), 0u);
}

TEST(CpuDataplaneEnd, StopWaitsForThePool) {
  dataplane_bench b({8, 64, false});
  b.options.handler_pool_size = 2;
  b.on(kIncrement, [](cudaq_host_call_t &call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return increment(call);
  });
  b.start();
  for (std::uint32_t id = 0; id < 8; ++id)
    b.provider.send(kIncrement, {1}, id);
  ASSERT_TRUE(eventually([&] { return b.provider.waiting() == 0; }));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.view.get));
  for (std::uint32_t id = 0; id < 8; ++id)
    EXPECT_EQ(b.provider.collect(id).header.status, CUDAQ_RPC_OK);
}

TEST(CpuDataplane, IsServedWithoutANumberOfSlots) {
  for (const bool in_place : {false, true}) {
    const ring_shape shape{4, 64, in_place};
    fake_provider provider(shape, true), other(shape, true);
    manager_handle manager;
    cudaq_dispatcher_config_t config = unified_config(shape);
    config.num_slots = config.slot_size = 0;
    dispatcher_view view[2];
    volatile int shutdown[2] = {0, 0};
    std::uint64_t processed[2] = {0, 0};
    for (int k = 0; k < 2; ++k) {
      CUDAQ_ASSERT_OK(cudaq_dispatcher_create(manager.get, &config, &view[k].get));
      CUDAQ_ASSERT_OK(cudaq_dispatcher_set_cpu_dataplane(view[k].get, k == 0 ? &provider.plane : &other.plane));
      CUDAQ_ASSERT_OK(cudaq_dispatcher_set_control(view[k].get, &shutdown[k], &processed[k]));
      CUDAQ_ASSERT_OK(cudaq_dispatcher_set_host_handler_v2(
          view[k].get, kIncrement, [](cudaq_host_call_t *call, void *) { return increment(*call); }, nullptr, nullptr));
      CUDAQ_ASSERT_OK(cudaq_dispatcher_start(view[k].get));
    }
    for (std::uint32_t id = 0; id < 12; ++id) {
      provider.send(kIncrement, {1}, id);
      other.send(kIncrement, {2}, id);
      EXPECT_EQ(provider.collect(id).result, std::vector<std::uint8_t>{2});
      EXPECT_EQ(other.collect(id).result, std::vector<std::uint8_t>{3});
    }
    for (dispatcher_view &one : view) {
      CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(one.get));
      CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(one.get));
    }
  }
}

TEST(CpuDataplaneEnd, FramesThatWereNotTakenStayWithTheProvider) {
  dataplane_bench b;
  b.on(kIncrement, increment);
  b.start();
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.view.get));
  b.provider.send(kIncrement, {1}, 5);
  EXPECT_EQ(b.provider.waiting(), 1u);
  b.start();
  EXPECT_EQ(b.provider.collect(5).result, std::vector<std::uint8_t>{2});
}

// After the caller's flag no other thread may send, so the loop's thread waits for the deferred answers.
TEST(CpuDataplaneEnd, DeferredAnswersLeaveAfterTheCallersFlag) {
  dataplane_bench b({4, 64, false});
  cudaq_host_job_t job{};
  b.on(1, [&](cudaq_host_call_t &call) {
    job = call.job;
    return CUDAQ_HOST_CALL_DEFERRED;
  });
  b.start();
  b.provider.send(1, {}, 1);
  ASSERT_TRUE(eventually([&] { return b.view.stats().dispatched == 1; }));
  detail::store_release(b.shutdown, 1);
  ASSERT_TRUE(eventually([&] { return b.view.state() == CUDAQ_DISPATCHER_STOPPING; }));
  CUDAQ_EXPECT_OK(cudaq_host_complete_deferred(b.view.get, &job, 33, 0));
  EXPECT_EQ(b.provider.collect(1).header.status, 33);
  EXPECT_TRUE(eventually([&] { return b.view.state() == CUDAQ_DISPATCHER_STOPPED; }));
}

TEST(CpuDataplaneEndDeathTest, AFunctionThatDoesNotReturnIsNamedAtTheEndOfTheProcess) {
  for (const bool throws : {false, true})
    for (const bool poll : {true, false})
      expect_end_of_process(
          [=] {
            dataplane_bench b({4, 64, false});
            b.on(kIncrement, increment);
            b.start();
            (poll ? b.provider.in_poll : b.provider.in_publish) = throws ? misstep::throws : misstep::ends_thread;
            (void)b.provider.call(kIncrement, {3}, 3);
          },
          std::string(poll ? "rx_poll" : "tx_publish") + " of the dataplane has " + (throws ? "thrown" : "ended"));
}

TEST(CpuDataplaneWiring, IsRefusedWithAReason) {
  manager_handle manager;
  fake_provider provider;
  const auto refused = [&](const cudaq_dispatcher_config_t &config, const void *plane, cudaq_status_t status,
                           const char *text) {
    cudaq_dispatcher_t *d = nullptr;
    CUDAQ_ASSERT_OK(cudaq_dispatcher_create(manager.get, &config, &d));
    EXPECT_EQ(cudaq_dispatcher_set_cpu_dataplane(d, plane), status);
    EXPECT_TRUE(error_contains(text)) << cudaq_last_error_message();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(d));
  };
  const cudaq_dispatcher_config_t good = unified_config({});
  refused(host_config({}), &provider.plane, CUDAQ_ERR_UNSUPPORTED, "a CPU dataplane needs 2 (unified)");
  refused(good, nullptr, CUDAQ_ERR_INVALID_ARG, "cpu_dataplane is NULL");
  cudaq_cpu_dataplane_t plane = provider.plane;
  plane.rx_poll = nullptr;
  refused(good, &plane, CUDAQ_ERR_INVALID_ARG, "cpu_dataplane->rx_poll is NULL");
  plane = provider.plane;
  plane.tx_publish = nullptr;
  refused(good, &plane, CUDAQ_ERR_INVALID_ARG, "cpu_dataplane->tx_publish is NULL");
  plane = provider.plane;
  plane.ring.rx_data_host = nullptr;
  refused(good, &plane, CUDAQ_ERR_INVALID_ARG, "rx_data_host");
  plane = provider.plane;
  plane.ring.rx_stride_sz = 16;
  refused(good, &plane, CUDAQ_ERR_INVALID_ARG, "rx_stride_sz");
  EXPECT_EQ(cudaq_dispatcher_set_cpu_dataplane(nullptr, &plane), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(cudaq_dispatcher_set_max_result_bytes(nullptr, 1), CUDAQ_ERR_INVALID_ARG);
}

TEST(CpuDataplaneWiring, ConfigurationsThatCannotBeServedAreRefused) {
  manager_handle manager;
  cudaq_dispatcher_t *d = nullptr;
  cudaq_dispatcher_config_t config = unified_config({});
  config.shared_ring_mode = 1;
  EXPECT_EQ(cudaq_dispatcher_create(manager.get, &config, &d), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_TRUE(error_contains("a dataplane has one loop")) << cudaq_last_error_message();
  config = unified_config({});
  config.num_slots = (1u << 24) + 1;
  EXPECT_EQ(cudaq_dispatcher_create(manager.get, &config, &d), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_contains("config->num_slots is 16777217")) << cudaq_last_error_message();
}

// 4096 slots are kept for a dataplane whose number is not named.
TEST(CpuDataplaneWiring, OfAnyNamedNumberOfSlotsIsRefusedIfItsArraysOverlap) {
  for (const std::uint32_t slots : {0u, 4095u, 4096u, 4097u}) {
    fake_provider provider({4097, 64, false});
    manager_handle manager;
    cudaq_dispatcher_config_t config = unified_config({4097, 64, false});
    config.num_slots = slots;
    dispatcher_view view;
    CUDAQ_ASSERT_OK(cudaq_dispatcher_create(manager.get, &config, &view.get));
    cudaq_cpu_dataplane_t plane = provider.plane;
    plane.ring.tx_data_host = plane.ring.rx_data_host + std::size_t{4094} * 64;
    const cudaq_status_t status = cudaq_dispatcher_set_cpu_dataplane(view.get, &plane);
    EXPECT_EQ(status, slots == 0 ? CUDAQ_OK : CUDAQ_ERR_INVALID_ARG) << slots;
    EXPECT_TRUE(slots == 0 || error_contains("rx_data_host and tx_data_host overlap")) << cudaq_last_error_message();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(view.get));
  }
}

TEST(CpuDataplaneWiring, TakesThePlaceOfTheRing) {
  manager_handle manager;
  host_ring ring;
  fake_provider provider;
  cudaq_dispatcher_t *d = nullptr;
  volatile int shutdown = 0;
  std::uint64_t processed = 0;
  cudaq_function_entry_t entry = host_entry("reverse", reverse_handler);
  const cudaq_function_table_t table{&entry, 1};
  const cudaq_dispatcher_config_t config = unified_config({});
  CUDAQ_ASSERT_OK(cudaq_dispatcher_create(manager.get, &config, &d));
  EXPECT_EQ(cudaq_dispatcher_set_ringbuffer(d, &ring.ring), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_TRUE(error_contains("cudaq_dispatcher_set_cpu_dataplane")) << cudaq_last_error_message();
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_function_table(d, &table));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(d, &shutdown, &processed));
  EXPECT_EQ(cudaq_dispatcher_start(d), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_contains("cudaq_dispatcher_set_cpu_dataplane was not called")) << cudaq_last_error_message();
  { // it is copied
    const cudaq_cpu_dataplane_t plane = provider.plane;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_cpu_dataplane(d, &plane));
  }
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(d));
  EXPECT_EQ(cudaq_dispatcher_set_cpu_dataplane(d, &provider.plane), CUDAQ_ERR_STATE);
  EXPECT_EQ(provider.call(entry.function_id, {1, 2}, 1).result, (std::vector<std::uint8_t>{2, 1}));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(d));
}

TEST(CpuDataplaneWiring, MayBeReplacedBetweenRuns) {
  dataplane_bench b({512, 64, false});
  fake_provider other({512, 64, false});
  b.on(kIncrement, increment);
  b.start();
  EXPECT_EQ(b.provider.call(kIncrement, {1}, 1).result, std::vector<std::uint8_t>{2});
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.view.get));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_cpu_dataplane(b.view.get, &other.plane));
  std::vector<std::uint64_t> reused(1024, ~std::uint64_t{0}); // the memory of freed flags would be this
  EXPECT_EQ(b.view.dump().find("slot 0: rx"), std::string::npos) << reused.back();
  b.start();
  EXPECT_EQ(other.call(kIncrement, {2}, 2).result, std::vector<std::uint8_t>{3});
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.view.get));
}

TEST(CpuDataplaneWiring, TwoDispatchersDoNotServeOneProvider) {
  dataplane_bench b;
  b.on(kIncrement, increment);
  b.start();
  cudaq_dispatcher_t *second = nullptr;
  volatile int shutdown = 0;
  std::uint64_t processed = 0;
  cudaq_function_entry_t entry = host_entry("reverse", reverse_handler);
  const cudaq_function_table_t table{&entry, 1};
  const cudaq_dispatcher_config_t config = unified_config({});
  CUDAQ_ASSERT_OK(cudaq_dispatcher_create(b.manager.get, &config, &second));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_cpu_dataplane(second, &b.provider.plane));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_function_table(second, &table));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(second, &shutdown, &processed));
  EXPECT_EQ(cudaq_dispatcher_start(second), CUDAQ_ERR_STATE);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(second));
  EXPECT_EQ(b.provider.call(kIncrement, {1}, 1).result, std::vector<std::uint8_t>{2});
}

} // namespace
} // namespace cudaq::realtime::test

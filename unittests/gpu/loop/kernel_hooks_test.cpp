// SPDX-License-Identifier: Apache-2.0
// The unified kernel over device hooks. The hooks are those of the example, over a ring; the program is linked with
// them.
#include "docs/examples/transport/ring_hooks.h"
#include "unittests/gpu/support/checked_device_functions.h"

namespace cudaq::realtime::test {
namespace {

inline constexpr kernel_kind kHooks{"Hooks", CUDAQ_KERNEL_UNIFIED, 1, 32};

/// A ring, the hooks' context on the device, a dispatcher, a client.
struct hooked_session {
  explicit hooked_session(const ring_shape &shape, cudaq_memory_kind_t memory = CUDAQ_MEMORY_MAPPED,
                          std::vector<cudaq_function_entry_t> entries = {}, bool names_launch_fn = true)
      : ring(shape, memory), context(std::vector<example::ring_hooks_context>{{ring.ring, shape.num_slots, 0}}) {
    gpu_setup setup = setup_of(kHooks, ring);
    setup.entries = std::move(entries);
    setup.transport_ctx = context.get;
    setup.names_launch_fn = names_launch_fn;
    dispatcher = std::make_unique<gpu_dispatcher>(manager.get, setup);
    client = std::make_unique<gpu_client>(ring.ring, shape.num_slots);
  }
  manager_handle manager;
  host_ring ring;
  device_array<example::ring_hooks_context> context;
  std::unique_ptr<gpu_dispatcher> dispatcher;
  std::unique_ptr<gpu_client> client;
};

class HooksLoad : public gpu_test, public ::testing::WithParamInterface<ring_shape> {};

// Known failure 2.
TEST_P(HooksLoad, LosesDoublesTearsAndReordersNothing) {
  const ring_shape shape = GetParam();
  const std::uint32_t messages = messages_or(shape.slot_size > 8192 ? 100 : 20000);
  checked_device_functions functions(3, messages);
  hooked_session s(shape, CUDAQ_MEMORY_MAPPED, checked_device_functions::table(kHooks, 0, 3));
  s.dispatcher->options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  traffic_plan plan;
  for (std::uint32_t k = 0; k < 3; ++k)
    plan.functions.push_back(functions.function(k));
  plan.messages = messages;
  plan.unknown_of_100 = 2;
  traffic load(s.ring, plan);
  load.run();
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(s.dispatcher->get));
  functions.collect();
  load.expect_clean();
  const cudaq_dispatcher_stats_t stats = s.dispatcher->stats();
  EXPECT_EQ(stats.received, messages);
  EXPECT_EQ(stats.responded, messages);
  EXPECT_EQ(stats.in_flight, 0u);
  EXPECT_EQ(s.dispatcher->processed(), messages);
}

INSTANTIATE_TEST_SUITE_P(Shapes, HooksLoad,
                         ::testing::Values(ring_shape{1, 64}, ring_shape{3, 72}, ring_shape{64, 256},
                                           ring_shape{32, 4096}, ring_shape{8, 8192}, ring_shape{4, 32768}),
                         [](const auto &tested) {
                           return std::to_string(tested.param.num_slots) + "x" + std::to_string(tested.param.slot_size);
                         });

class KernelHooks : public gpu_test, public ::testing::WithParamInterface<cudaq_memory_kind_t> {};

TEST_P(KernelHooks, AnswersEveryLengthAndPassesOnTheStatus) {
  hooked_session s({4, 512}, GetParam());
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  for (std::uint32_t bytes = 0; bytes <= 488; bytes += bytes < 80 ? 1 : 51)
    ASSERT_NO_FATAL_FAILURE(expect_serves(*s.client, bytes, bytes));
  EXPECT_EQ(s.client->call(id_of(handler::own_status), bytes_of(std::int32_t{9})).header.status, 9);
  const std::uint32_t slot = s.client->put(gpu_client::header(id_of(handler::reverse), 489, 1), some_bytes(488, 1));
  EXPECT_EQ(s.client->collect(slot).header.status, CUDAQ_RPC_ERR_BAD_ARG_LEN);
  EXPECT_EQ(s.client->call(id_of(handler::claims_too_much), {}).header.status, CUDAQ_RPC_ERR_RESULT_TOO_LARGE);
  const answer seen = s.client->call(id_of(handler::describe), some_bytes(64, 1));
  const auto view = value_of<handler_view>(seen.result);
  EXPECT_EQ(view.arg_len, 64u);
  EXPECT_EQ(view.max_result_len, 488u);
  EXPECT_EQ(view.threads, 1u);
  EXPECT_EQ(view.overlap, 0u);
}

// Known failure 13.
TEST_P(KernelHooks, CountsWhatItDropsWhileItWaits) {
  hooked_session s({4, 256}, GetParam());
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  const std::uint32_t unknown = s.client->put(gpu_client::header(kUnknownId, 16, 1), some_bytes(16, 1));
  cudaq_rpc_header_t bad = gpu_client::header(id_of(handler::reverse), 16, 2);
  bad.magic ^= 1;
  const std::uint32_t wrong = s.client->put(bad, some_bytes(16, 2));
  for (const std::uint32_t slot : {unknown, wrong}) { // the frame comes back, and is no response
    ASSERT_TRUE(eventually([&] { return s.client->slots->tx_flag(slot) != 0; }));
    s.client->slots->clear(slot);
  }
  ASSERT_NO_FATAL_FAILURE(expect_serves(*s.client, 3));
  EXPECT_TRUE(eventually([&] { return s.dispatcher->processed() == 3; }, kOneSecond));
  const cudaq_dispatcher_stats_t stats = s.dispatcher->stats();
  EXPECT_EQ(stats.dropped_unknown_function, 1u);
  EXPECT_EQ(stats.dropped_bad_magic, 1u);
  EXPECT_EQ(stats.responded, 1u);
  EXPECT_EQ(stats.in_flight, 0u);
  EXPECT_EQ(stats.busy_slots, 0u);
}

// Known failure 1.
TEST_P(KernelHooks, StopsWhileItWaitsAndGoesOnAfterTheNextStart) {
  hooked_session s({4, 256}, GetParam());
  for (std::uint32_t round = 0; round < 7; ++round) {
    ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
    ASSERT_NO_FATAL_FAILURE(expect_serves(*s.client, round));
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 2 == 0 ? 0 : 20));
    ASSERT_NO_FATAL_FAILURE(expect_serves(*s.client, round)); // after a long wait, too
    if (round % 3 == 0) {
      s.dispatcher->raise_callers_flag();
      EXPECT_TRUE(eventually([&] { return s.dispatcher->state() == CUDAQ_DISPATCHER_STOPPED; }, kOneSecond));
    }
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(s.dispatcher->get));
  }
  EXPECT_EQ(s.dispatcher->processed(), 14u);
}

INSTANTIATE_TEST_SUITE_P(Memory, KernelHooks, ::testing::Values(CUDAQ_MEMORY_MAPPED, CUDAQ_MEMORY_DEVICE),
                         [](const auto &tested) {
                           return std::string(tested.param == CUDAQ_MEMORY_DEVICE ? "Device" : "Mapped");
                         });

struct KernelHooksAlone : gpu_test {};

// Known failure 1.
TEST_F(KernelHooksAlone, AStopUnderLoadAnswersOrLeavesEveryRequest) {
  hooked_session s({64, 256});
  std::uint64_t answered = 0;
  for (std::uint32_t round = 0; round < 20; ++round) {
    ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
    std::vector<std::uint32_t> sent;
    for (std::uint32_t id = 0; id < 64; ++id)
      sent.push_back(s.client->send(id_of(handler::reverse), some_bytes(16, id), id));
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(s.dispatcher->get));
    ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
    for (std::uint32_t id = 0; id < 64; ++id)
      EXPECT_EQ(s.client->collect(sent[id]).header.request_id, id);
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(s.dispatcher->get));
    answered += 64;
    EXPECT_EQ(s.dispatcher->stats().responded, answered);
  }
}

TEST_F(KernelHooksAlone, TheLibraryFindsTheLinkedKernel) {
  hooked_session s({4, 256}, CUDAQ_MEMORY_MAPPED, {}, false);
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  ASSERT_NO_FATAL_FAILURE(expect_serves(*s.client, 1));
}

TEST_F(KernelHooksAlone, AnAttachThatRefusesIsAnErrorOfStart) {
  hooked_session s({4, 256});
  const example::ring_hooks_context good = s.context.download()[0];
  s.context.upload({{good.ring, 0, 0}});
  const call_result started = s.dispatcher->start();
  EXPECT_EQ(started.status, CUDAQ_ERR_INTERNAL);
  EXPECT_NE(started.text.find("cudaq_dev_transport_attach returned NULL"), std::string::npos) << started.text;
  s.context.upload({good});
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  ASSERT_NO_FATAL_FAILURE(expect_serves(*s.client, 1));
}

TEST_F(KernelHooksAlone, AFrameThatIsRequestAndResponseEndsTheKernelWithAFault) {
  hooked_session s({4, 256, true}); // in place
  s.dispatcher->fault_expected = true;
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  s.client->send(id_of(handler::reverse), some_bytes(16, 1), 1);
  EXPECT_TRUE(eventually([&] { return s.dispatcher->state() == CUDAQ_DISPATCHER_FAILED; }));
  const call_result stopped = CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatcher_stop(s.dispatcher->get));
  EXPECT_EQ(stopped.status, CUDAQ_ERR_INTERNAL);
  EXPECT_NE(stopped.text.find("cudaq_dev_rx_poll"), std::string::npos) << stopped.text;
}

TEST_F(KernelHooksAlone, ASlotSizeOfNoUseIsAnErrorOfStart) {
  hooked_session s({4, 256});
  cudaq_dispatcher_config_t config{};
  config.device_id = test_device();
  config.kernel_type = CUDAQ_KERNEL_UNIFIED;
  config.slot_size = 28;
  cudaq_dispatcher_t *d = nullptr;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_create(s.manager.get, &config, &d));
  const std::vector<cudaq_function_entry_t> entries = all_handlers(kHooks);
  const device_array<cudaq_function_entry_t> table_dev(entries);
  const cudaq_function_table_t table{table_dev.get, static_cast<std::uint32_t>(entries.size())};
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_function_table(d, &table));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(d, mapped_word<int>(), mapped_word<std::uint64_t>()));
  CUDAQ_EXPECT_OK(
      cudaq_dispatcher_set_unified_launch_upstream(d, cudaq_launch_unified_dispatch_device_upstream, s.context.get));
  const call_result started = CUDAQ_RESULT_WITHIN(kStartLimit, cudaq_dispatcher_start(d));
  EXPECT_NE(started.status, CUDAQ_OK);
  EXPECT_NE(started.text.find("tx_stride_sz (config->slot_size) is 28"), std::string::npos) << started.text;
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_destroy(d));
}

} // namespace
} // namespace cudaq::realtime::test

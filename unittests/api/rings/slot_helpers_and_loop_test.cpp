// SPDX-License-Identifier: Apache-2.0
// The sizes and values that the slot helpers check, and the dispatcher loop on the caller's own thread.
#include "unittests/support/api_fixture.h"

namespace cudaq::realtime::test {
namespace {

// Known failure 8.
TEST(SlotHelperRules, PayloadMustFitAndNothingWrapsIn32Bits) {
  host_ring ring({2, 64, false});
  const std::vector<std::uint8_t> payload(64, 1);
  CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring.ring, 0, 1, payload.data(), 40, 1, 1));
  for (const std::uint32_t length : {41u, 64u, 0x7FFFFFFFu, 0xFFFFFFE8u, 0xFFFFFFE9u, 0xFFFFFFFFu}) {
    EXPECT_EQ(cudaq_host_ringbuffer_write_rpc_request(&ring.ring, 0, 1, payload.data(), length, 1, 1),
              CUDAQ_ERR_INVALID_ARG);
    EXPECT_TRUE(error_names({"payload_len is " + std::to_string(length), "64"}));
  }
  CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring.ring, 0, 1, nullptr, 0, 1, 1));
  EXPECT_EQ(load_acquire(ring.ring.rx_flags_host[0]), 0u) << "writing must not signal";
}

TEST(SlotHelperRules, RefuseViewsThatTheDispatcherWouldRefuse) {
  host_ring memory({2, 64, false});
  const auto refused = [&](const char *word, auto &&spoil) {
    cudaq_ringbuffer_t ring = memory.ring;
    spoil(ring);
    cudaq_rpc_response_t header;
    const void *result = nullptr;
    EXPECT_EQ(cudaq_host_ringbuffer_write_rpc_request(&ring, 0, 1, nullptr, 0, 1, 1), CUDAQ_ERR_INVALID_ARG) << word;
    EXPECT_TRUE(error_names({word}));
    EXPECT_EQ(cudaq_host_ringbuffer_read_rpc_response(&ring, 0, &header, &result), CUDAQ_ERR_INVALID_ARG) << word;
  };
  refused("rx_flags_host", [](auto &r) { r.rx_flags_host = nullptr; });
  refused("tx_flags_host", [](auto &r) { r.tx_flags_host = nullptr; });
  refused("rx_data_host", [](auto &r) { r.rx_data_host = nullptr; });
  refused("tx_data_host", [](auto &r) {
    r.tx_data = r.rx_data_host + 8;
    r.tx_data_host = nullptr;
  });
  refused("the same array", [](auto &r) { r.rx_flags_host = r.tx_flags_host; });
  const auto off = [](auto *&pointer) {
    pointer =
        reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(reinterpret_cast<std::uintptr_t>(pointer) + 4);
  };
  refused("rx_flags_host", [&](auto &r) { off(r.rx_flags_host); });
  refused("tx_flags_host", [&](auto &r) { off(r.tx_flags_host); });
  refused("rx_data_host", [&](auto &r) { off(r.rx_data_host); });
  refused("tx_data_host", [&](auto &r) { off(r.tx_data_host); });
  refused("rx_stride_sz is 60", [](auto &r) { r.rx_stride_sz = 60; });
  refused("tx_stride_sz 60", [](auto &r) { r.tx_stride_sz = 60; });
  refused("rx_stride_sz is 16", [](auto &r) { r.rx_stride_sz = 16; });
  refused("tx_stride_sz 16", [](auto &r) { r.tx_stride_sz = 16; });
}

TEST(SlotHelperRules, TakeEachFormOfARingInPlace) {
  host_ring memory({2, 64, true});
  for (std::uint8_t *const data : {memory.ring.rx_data_host, static_cast<std::uint8_t *>(nullptr)})
    for (const std::size_t stride : {std::size_t{64}, std::size_t{0}, std::size_t{60}}) { // not used in place
      cudaq_ringbuffer_t ring = memory.ring;
      ring.tx_data_host = data;
      ring.tx_stride_sz = stride;
      CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring, 1, 1, nullptr, 0, 1, 1));
      const cudaq_rpc_response_t frame{CUDAQ_RPC_MAGIC_RESPONSE, 0, 40, 7, 0};
      std::memcpy(ring.rx_data_host + 64, &frame, sizeof(frame));
      cudaq_rpc_response_t header{};
      const void *result = nullptr;
      CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_read_rpc_response(&ring, 1, &header, &result));
      EXPECT_EQ(header.request_id, 7u);
      EXPECT_EQ(result, ring.rx_data_host + 64 + CUDAQ_RPC_HEADER_SIZE);
    }
}

// With a stride shorter than a header, reading the last slot's header would reach beyond the end of the array.
TEST(SlotHelperRules, StrideBelowTheHeaderIsRefused) {
  host_ring memory({2, 64, false});
  cudaq_rpc_response_t header;
  const void *result = nullptr;
  cudaq_ringbuffer_t ring = memory.ring;
  ring.tx_stride_sz = ring.rx_stride_sz = 16;
  EXPECT_EQ(cudaq_host_ringbuffer_write_rpc_request(&ring, 0, 1, nullptr, 0, 1, 1), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(cudaq_host_ringbuffer_read_rpc_response(&ring, 1, &header, &result), CUDAQ_ERR_INVALID_ARG);
}

TEST(SlotHelperRules, FramesThatAreNoResponseAreNotHandedOut) {
  host_ring ring({1, 64, false});
  cudaq_rpc_response_t header{};
  const void *result = nullptr;
  EXPECT_EQ(cudaq_host_ringbuffer_read_rpc_response(&ring.ring, 0, &header, &result), CUDAQ_ERR_INTERNAL);
  EXPECT_TRUE(error_names({"magic is 0x00000000"}));
  for (const std::uint32_t length : {41u, 0xFFFFFFE8u, 0xFFFFFFFFu}) {
    const cudaq_rpc_response_t frame{CUDAQ_RPC_MAGIC_RESPONSE, 0, length, 0, 0};
    std::memcpy(ring.ring.tx_data_host, &frame, sizeof(frame));
    EXPECT_EQ(cudaq_host_ringbuffer_read_rpc_response(&ring.ring, 0, &header, &result), CUDAQ_ERR_INTERNAL);
    EXPECT_TRUE(error_names({"result_len is " + std::to_string(length)}));
  }
  EXPECT_EQ(result, nullptr);
}

TEST(SlotHelperRules, PollDistinguishesSentinelsFromAddresses) {
  host_ring ring({1, 64, false});
  volatile std::uint64_t &tx = ring.ring.tx_flags_host[0];
  const auto poll = [&](std::uint64_t flag, int &error) {
    store_release(tx, flag);
    return cudaq_host_ringbuffer_poll_tx_flag(&ring.ring, 0, &error);
  };
  int error = 7;
  EXPECT_EQ(poll(0, error), CUDAQ_TX_EMPTY);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(poll(CUDAQ_TX_FLAG_IN_FLIGHT, error), CUDAQ_TX_IN_FLIGHT);
  EXPECT_EQ(poll(0xDEAD0000000002BCull, error), CUDAQ_TX_ERROR);
  EXPECT_EQ(error, 700);
  EXPECT_EQ(poll(0xDEAD000000000000ull, error), CUDAQ_TX_ERROR);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(poll(0x00007F0000001000ull, error), CUDAQ_TX_READY);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(poll(1, error), CUDAQ_TX_READY);
  EXPECT_EQ(cudaq_host_ringbuffer_slot_available(&ring.ring, 0), 0);
  cudaq_host_ringbuffer_clear_slot(&ring.ring, 0);
  EXPECT_EQ(cudaq_host_ringbuffer_slot_available(&ring.ring, 0), 1);
}

class OwnThreadLoop : public ::testing::TestWithParam<bool> {
protected:
  cudaq_status_t run() {
    if (GetParam()) {
      HostDispatcherConfig c = loop_over(ring.ring);
      c.num_slots = config.num_slots;
      c.slot_size = config.slot_size;
      c.function_table = &entry;
      c.function_table_count = 1;
      c.shutdown_flag = &flag;
      c.stats_counter = &stats;
      c.options = &options;
      return host_dispatcher_loop(c);
    }
    const cudaq_function_table_t table{&entry, 1};
    return cudaq_host_dispatcher_loop(&config, &ring.ring, &table, nullptr, 0, &options, &flag, &stats);
  }
  host_ring ring{{4, 64, false}};
  cudaq_dispatcher_config_t config = host_config({4, 64, false});
  cudaq_function_entry_t entry = host_entry("reverse", reverse_handler);
  cudaq_dispatcher_options_t options = default_options();
  volatile int flag = 0;
  std::uint64_t stats = 3;
};

TEST_P(OwnThreadLoop, ServesUntilTheFlagIsSet) {
  for (const std::uint32_t pool : {0u, 2u}) {
    options.handler_pool_size = pool;
    store_release(flag, 0);
    const std::uint64_t before = stats;
    cudaq_status_t status = CUDAQ_ERR_INTERNAL;
    std::thread loop([&] { status = run(); });
    ring_client client(ring);
    for (std::uint32_t id = 0; id < 20; ++id)
      EXPECT_EQ(client.call(fnv1a_hash("reverse"), {1, 2, 3}, id).result, (std::vector<std::uint8_t>{3, 2, 1}));
    store_release(flag, 1);
    loop.join();
    EXPECT_EQ(status, CUDAQ_OK);
    EXPECT_EQ(stats, before + 20);
  }
}

TEST_P(OwnThreadLoop, ReturnsAtOnceIfTheFlagIsSetAlready) {
  flag = 1;
  CUDAQ_EXPECT_OK(run()); // else it would serve on, and the test would not end
}

TEST_P(OwnThreadLoop, RefusesWhatADispatcherRefuses) {
  if (!GetParam()) {
    const cudaq_function_table_t table{&entry, 1};
    cudaq_host_worker_t worker{};
    worker.struct_size = sizeof(worker);
    worker.graph_exec = reinterpret_cast<cudaGraphExec_t>(&worker);
    worker.completion = CUDAQ_WORKER_CALLER_PUBLISHES;
    EXPECT_EQ(cudaq_host_dispatcher_loop(&config, &ring.ring, &table, &worker, 1, &options, &flag, &stats),
              CUDAQ_ERR_UNSUPPORTED);
    EXPECT_TRUE(error_names({"workers[0].completion is 2"}));
    config.shared_ring_mode = 1;
    EXPECT_EQ(run(), CUDAQ_ERR_UNSUPPORTED);
    config.shared_ring_mode = 0;
  }
  options.struct_size = 1;
  EXPECT_EQ(run(), CUDAQ_ERR_INVALID_ARG);
  options = default_options();
  options.ordering = 9;
  EXPECT_EQ(run(), CUDAQ_ERR_INVALID_ARG);
  options = default_options();
  entry.handler.host_fn = nullptr;
  EXPECT_EQ(run(), CUDAQ_ERR_INVALID_ARG);
  config.num_slots = 0;
  EXPECT_EQ(run(), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"num_slots is 0"}));
}

INSTANTIATE_TEST_SUITE_P(Form, OwnThreadLoop, ::testing::Bool(),
                         [](const auto &tested) { return tested.param ? "Cxx" : "C"; });

} // namespace
} // namespace cudaq::realtime::test

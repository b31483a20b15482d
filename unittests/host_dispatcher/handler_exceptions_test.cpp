// SPDX-License-Identifier: Apache-2.0
// Handlers that throw, on every path.
#include "cudaq/realtime/detail/base/flag_word.h"
#include "unittests/host_dispatcher/traffic.h"

#include <stdexcept>

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  bool in_place;
  std::uint32_t pool;
  bool shared;
  bool skip_markers;
};

class HandlerException : public ::testing::TestWithParam<flavour> {};

[[noreturn]] void throw_something(std::uint32_t which) {
  if (which % 3 == 0)
    throw std::runtime_error("odd parity");
  if (which % 3 == 1)
    throw 42;
  struct not_an_exception {};
  throw not_an_exception{};
}

void v1_throws_on_request(const void *rx_slot, void *tx_slot, std::size_t slot_size) {
  std::uint8_t kind = 0;
  std::memcpy(&kind, static_cast<const std::uint8_t *>(rx_slot) + CUDAQ_RPC_HEADER_SIZE, 1);
  if (kind != 0) {
    reverse_handler(rx_slot, tx_slot, slot_size); // the good frame must be replaced after the throw
    throw_something(kind);
  }
  reverse_handler(rx_slot, tx_slot, slot_size);
}

std::int32_t v2_throws_on_request(cudaq_host_call_t *call, void *) {
  const auto *payload = static_cast<const std::uint8_t *>(call->payload);
  std::memcpy(call->result, payload, call->payload_len);
  call->result_len = call->payload_len;
  if (payload[0] != 0)
    throw_something(payload[0]);
  return 0;
}

// Known failure 17.
TEST_P(HandlerException, BecomesAStatusAndTheNextRequestIsServed) {
  const flavour &f = GetParam();
  host_ring ring({4, 64, f.in_place});
  manager_handle manager;
  cudaq_dispatcher_config_t config = host_config(ring.shape());
  config.shared_ring_mode = f.shared;
  config.skip_tx_markers = f.skip_markers;
  host_dispatcher_handle dispatcher(manager.get, ring, {host_entry("v1", v1_throws_on_request)}, config);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_host_handler_v2(dispatcher.get, 2, v2_throws_on_request, nullptr, nullptr));
  cudaq_dispatcher_options_t options = default_options();
  options.handler_pool_size = f.pool;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(dispatcher.get, &options));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher.get));
  ring_client client(ring);
  std::uint32_t thrown = 0;
  for (std::uint32_t id = 0; id < 120; ++id) {
    const auto kind = static_cast<std::uint8_t>(id % 4);
    const answer got = client.call(id % 8 < 4 ? fnv1a_hash("v1") : 2, {kind, 9}, id, id);
    ASSERT_EQ(got.header.request_id, id);
    ASSERT_EQ(got.header.ptp_timestamp, id);
    ASSERT_EQ(got.header.status, kind ? CUDAQ_RPC_ERR_HANDLER_THREW : 0);
    ASSERT_EQ(got.result.size(), kind ? 0u : 2u);
    thrown += kind != 0;
  }
  const cudaq_dispatcher_stats_t stats = dispatcher.stats();
  EXPECT_EQ(stats.protocol_errors[CUDAQ_RPC_ERROR_INDEX(CUDAQ_RPC_ERR_HANDLER_THREW)], thrown);
  EXPECT_EQ(stats.responded, 120u);
  EXPECT_EQ(stats.busy_slots, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Paths, HandlerException,
    ::testing::Values(flavour{"Inline", false, 0, false, false}, flavour{"InlineInPlace", true, 0, false, true},
                      flavour{"Pool", false, 2, false, false}, flavour{"PoolInPlaceNoMarkers", true, 2, false, true},
                      flavour{"Shared", false, 0, true, false}, flavour{"SharedPool", true, 1, true, false}),
    [](const auto &tested) { return std::string(tested.param.name); });

// Known failure 17.
TEST(HandlerExceptionInLoop, LeavesTheLoopOnACallersThread) {
  host_ring ring({4, 64, false});
  cudaq_function_entry_t entry = host_entry("v1", v1_throws_on_request);
  volatile int shutdown = 0;
  std::uint64_t processed = 0;
  HostDispatcherConfig config = loop_over(ring.ring);
  config.num_slots = 4;
  config.function_table = &entry;
  config.function_table_count = 1;
  config.shutdown_flag = &shutdown;
  config.stats_counter = &processed;
  cudaq_status_t status = CUDAQ_ERR_INTERNAL;
  std::thread loop([&] { status = host_dispatcher_loop(config); });
  ring_client client(ring);
  EXPECT_EQ(client.call(fnv1a_hash("v1"), {1}, 1).header.status, CUDAQ_RPC_ERR_HANDLER_THREW);
  EXPECT_EQ(client.call(fnv1a_hash("v1"), {0}, 2).header.status, 0);
  detail::store_release(shutdown, 1);
  loop.join();
  EXPECT_EQ(status, CUDAQ_OK);
  EXPECT_EQ(processed, 2u);
}

} // namespace
} // namespace cudaq::realtime::test

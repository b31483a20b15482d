// SPDX-License-Identifier: Apache-2.0
#include "unittests/support/host_fixture.h"

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  ring_shape shape;
  std::uint32_t pool;
  std::uint32_t ordering;
  std::uint32_t wait;
  bool skip_markers;
};

class HostDispatcherRoundTrip : public ::testing::TestWithParam<flavour> {};

TEST_P(HostDispatcherRoundTrip, AnswersEveryRequestWithItsOwnIdTimestampAndPayload) {
  const flavour &f = GetParam();
  host_ring ring(f.shape);
  manager_handle manager;
  cudaq_dispatcher_config_t config = host_config(f.shape);
  config.skip_tx_markers = f.skip_markers;
  host_dispatcher_handle dispatcher(manager.get, ring, {host_entry("reverse", reverse_handler)}, config);
  cudaq_dispatcher_options_t options = default_options();
  options.handler_pool_size = f.pool;
  options.ordering = f.ordering;
  options.wait_policy = f.wait;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(dispatcher.get, &options));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher.get));
  ring_client client(ring);
  const std::uint32_t requests = 5 * f.shape.num_slots + 3;
  for (std::uint32_t id = 0; id < requests; ++id) {
    std::vector<std::uint8_t> payload(id % (f.shape.slot_size - 23));
    for (std::size_t i = 0; i < payload.size(); ++i)
      payload[i] = static_cast<std::uint8_t>(id * 31 + i);
    const answer got = client.call(fnv1a_hash("reverse"), payload, id, 1000000007ull * id);
    ASSERT_EQ(got.tx, CUDAQ_TX_READY);
    ASSERT_EQ(got.header.status, 0) << cudaq_rpc_status_string(got.header.status);
    ASSERT_EQ(got.header.request_id, id);
    ASSERT_EQ(got.header.ptp_timestamp, 1000000007ull * id);
    ASSERT_EQ(got.result, std::vector<std::uint8_t>(payload.rbegin(), payload.rend()));
  }
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(dispatcher.get));
  const cudaq_dispatcher_stats_t stats = dispatcher.stats();
  EXPECT_EQ(stats.dispatched, requests);
  EXPECT_EQ(stats.responded, requests);
  EXPECT_EQ(stats.in_flight, 0u);
  EXPECT_EQ(stats.cursor_jumps, 0u);
  EXPECT_EQ(dispatcher.processed, requests);
}

INSTANTIATE_TEST_SUITE_P(
    Flavours, HostDispatcherRoundTrip,
    ::testing::Values(flavour{"OneSlot", {1, 64, false}, 0, 0, CUDAQ_WAIT_SPIN_YIELD, false},
                      flavour{"InPlaceOneSlot", {1, 64, true}, 0, 0, CUDAQ_WAIT_SPIN_YIELD, false},
                      flavour{"Separate", {8, 256, false}, 0, 0, CUDAQ_WAIT_SPIN, false},
                      flavour{"InPlace", {8, 256, true}, 0, 0, CUDAQ_WAIT_BLOCK, false},
                      flavour{"Pool", {8, 256, false}, 3, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_SPIN_YIELD, false},
                      flavour{"PoolInPlaceNoMarkers", {8, 256, true}, 2, CUDAQ_ORDERING_ANY, CUDAQ_WAIT_BLOCK, true},
                      flavour{"PoolOneSlotMarkers", {1, 64, true}, 2, CUDAQ_ORDERING_ANY, CUDAQ_WAIT_SPIN_YIELD, false},
                      flavour{"PoolNoMarkers", {2, 1024, false}, 2, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_SPIN_YIELD, true},
                      flavour{"ManySlots", {1024, 72, false}, 0, 0, CUDAQ_WAIT_SPIN_YIELD, false}),
    [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test

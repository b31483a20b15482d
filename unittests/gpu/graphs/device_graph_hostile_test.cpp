// SPDX-License-Identifier: Apache-2.0
// The graph scheduler with a peer that overwrites everything in the ring at any time.
#include "unittests/gpu/graphs/device_graph_dispatcher.h"
#include "unittests/support/hostile_peer.h"

namespace cudaq::realtime::test {
namespace {

class DeviceGraphHostile : public device_graph_test {};

// Known failure 58.
TEST_F(DeviceGraphHostile, GetsNothingPastTheChecksAndGoodRequestsAreServedAfterIt) {
  manager_handle manager;
  const host_ring ring({16, 256, false}, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs({graph_of(100), graph_of(101), call_of(1)}, 256, 1000);
  graph_dispatcher dispatcher(manager.get, ring, graphs);
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  hostile_peer peer(ring.ring, ring.shape(), {{100, 101, 1}});
  peer.attack_until([&] { return dispatcher.stats().dispatched >= 100 && dispatcher.stats().launches >= 20; });
  CUDAQ_EXPECT_OK_WITHIN(kDeadline, cudaq_dispatcher_stop(dispatcher.get));
  peer.stop();
  handler_watch watch; // what the graphs and the device call themselves have counted
  for (const checked_record &record : graphs.records())
    watch.calls += record.calls;
  expect_accounts(dispatcher.stats(), watch, peer.writes());

  reinitialise(ring.ring, ring.shape());
  const graph_set fresh({graph_of(100), graph_of(101), call_of(1)}, 256, 1000); // the records of the others are full
  graph_dispatcher again(manager.get, ring, fresh);
  ASSERT_NO_FATAL_FAILURE(again.expect_start());
  graph_traffic load(ring, fresh);
  load.run(300, 16, [](std::uint32_t m) { return m % 3; });
  CUDAQ_EXPECT_OK_WITHIN(kDeadline, cudaq_dispatcher_stop(again.get));
  load.expect_clean();
}

} // namespace
} // namespace cudaq::realtime::test

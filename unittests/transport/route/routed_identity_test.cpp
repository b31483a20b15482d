// SPDX-License-Identifier: Apache-2.0
// What a node sees of a request's frame: by id and time its decoders know a repeated request.
#include "unittests/transport/route/route_world.h"

namespace cudaq::realtime::detail::test {
namespace {

/// The header of a request that a node has received and not begun.
cudaq_rpc_header_t received_by(simulated_node &node, sim_time now) {
  node.receive(now);
  std::uint32_t slot = 0;
  cudaq_rpc_header_t header{};
  EXPECT_TRUE(node.sessions->take(slot));
  std::memcpy(&header, node.ring.rx_data_host + slot * node.ring.rx_stride_sz, sizeof header);
  node.taken.push_back(slot);
  return header;
}

cudaq_rpc_header_t routed(route_world &world, std::uint32_t request_id, std::uint64_t time) {
  const std::uint32_t entry = world.submit(kAdd, 0, request_id, time);
  const cudaq_rpc_header_t header = received_by(*world.nodes[0], world.now);
  world.settle();
  EXPECT_EQ(world.status(entry), 0);
  return header;
}

TEST(RoutedRequest, HasTheIdAndTheTimeOfItsRequester) {
  route_world world(1);
  world.settle();
  for (int again = 0; again < 2; ++again) { // also of a request that is sent twice
    const cudaq_rpc_header_t header = routed(world, 0xFFFFFFF0u, 77);
    EXPECT_EQ(header.request_id, 0xFFFFFFF0u);
    EXPECT_EQ(header.ptp_timestamp, 77u);
  }
}

/// With a number of the node's own, a repetition would be another request for the decoder.
TEST(RoutedRequest, WithoutAnIdHasTheSameBytesEachTimeItIsSent) {
  route_world world(1);
  world.settle();
  for (int again = 0; again < 2; ++again) {
    const cudaq_rpc_header_t header = routed(world, 0, 77);
    EXPECT_EQ(header.request_id, 0u);
    EXPECT_EQ(header.ptp_timestamp, 77u);
  }
}

} // namespace
} // namespace cudaq::realtime::detail::test

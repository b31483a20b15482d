// SPDX-License-Identifier: Apache-2.0
// include/cudaq/realtime/detail/loop/dispatch_loop.cuh, run by CPU threads on the rings that the host dispatcher also
// serves. A group has one thread: one group with FIFO ordering, several with ANY.
#include "unittests/loop/loop_host.h"

namespace cudaq::realtime::test {
namespace {

// Known failure 1.
TEST(DeviceLoopStop, TheCallersOwnFlagEndsIt) {
  host_ring ring({4, 64, false});
  loop_host host(ring, 1);
  host.start<false>();
  ASSERT_TRUE(eventually([&] { return load_relaxed(host.reports[0].heartbeat) >= 3; })) << "no heartbeat while idle";
  store_release(host.caller_word, 1);
  host.join();
}

/// Handlers known at compile time answer like those of a table.
struct echo_handler {
  static constexpr std::uint32_t function_id = 7;
  static int call(const void *in, void *out, std::uint32_t arg_len, std::uint32_t, std::uint32_t *result_len) {
    std::memcpy(out, in, arg_len);
    *result_len = arg_len;
    return 5;
  }
};

TEST(DeviceLoopTurn, ServesAHandlerThatIsKnownAtCompileTimeAndRefusesOthers) {
  host_ring ring({2, 64, false});
  loop_host host(ring, 1);
  const static_handler_set<echo_handler> handlers;
  no_helpers<yielding_thread_group> helpers;
  loop_workspace workspace{};
  std::vector<word16> memory(8);
  workspace.in = reinterpret_cast<std::uint8_t *>(memory.data());
  workspace.out = workspace.in + 64;
  workspace.staging_bytes = 64;
  loop<static_handler_set<echo_handler>, false> served(host.params, 0, workspace, own_transport(host.params.ring, 0),
                                                       handlers, helpers);
  ring_client client(ring);
  EXPECT_EQ(served.turn(), 0u);
  client.send(7, {1, 2, 3}, 42, 9);
  EXPECT_EQ(served.turn(), 1u);
  const answer known = client.collect(0);
  EXPECT_EQ(known.header.status, 5);
  EXPECT_EQ(known.header.request_id, 42u);
  EXPECT_EQ(known.header.ptp_timestamp, 9u);
  EXPECT_EQ(known.result, (std::vector<std::uint8_t>{1, 2, 3}));
  client.send(8, {}, 43);
  EXPECT_EQ(served.turn(), 1u);
  EXPECT_EQ(client.collect(1).header.status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// A request that is sent again through the router: the node's decoder knows it by the requester's id and time.
#include "unittests/tools/route/routed_servers.h"

namespace cudaq::realtime::tools::test {
namespace {

TEST(RouteRepeat, IsExecutedOnceByTheNode) {
  if (no_yaml())
    GTEST_SKIP() << "this build has no YAML parser";
  const scratch_folder folder;
  routed_servers servers(folder.path(), 1, "tcp");
  servers.start_router("lost_after_ms: 20000\nanswer_limit_ms: 20000\n");
  servers.wait_joined();
  detail::datagram_client_options options;
  options.port = servers.router_port();
  detail::datagram_client client;
  ASSERT_TRUE(client.open(options, detail::make_udp_wire(options.slot_size)).ok());
  const auto call = [&](std::uint32_t id, std::uint32_t function, const bytes &payload) {
    EXPECT_TRUE(client.send(id, function, payload, 1000 + id));
    const auto reply = client.receive_within(std::chrono::milliseconds(kLimitMs));
    return reply ? wire_answer{reply->header.status, id, {reply->result.begin(), reply->result.end()}} : wire_answer{};
  };
  const bytes read = joined(numbers({0, 4}), {1});
  ASSERT_EQ(call(1, kReset, numbers({0})).status, 0) << servers.errors();
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(call(2, kEnqueue, enqueue(1, 0b0110, 0)).status, 0) << again;
  for (int again = 0; again < 2; ++again) {
    const wire_answer got = call(3, kGet, read);
    EXPECT_EQ(got.status, 0);
    EXPECT_EQ(got.result, bytes{0b0110}) << again;
  }
  EXPECT_EQ(call(4, kGet, read).result, bytes{0}) << "another request";
}

} // namespace
} // namespace cudaq::realtime::tools::test

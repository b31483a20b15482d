// SPDX-License-Identifier: Apache-2.0
// After SIGTERM: corrections that were not read can be read, begun shots end, new ones are refused.
#include "unittests/tools/serve/serve_fixture.h"

namespace cudaq::realtime::tools::test {
namespace {

constexpr std::uint32_t kDescribe = 0xD546EA57;

bool server_ends(const wire_answer &described) {
  return described.status == 0 && described.result.size() == 48 && described.result[40] == 1;
}

/// Until the server says that it ends.
bool waits_for_the_end(socket_peer &peer) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimitMs);
  while (std::chrono::steady_clock::now() < limit)
    if (server_ends(peer.call(kDescribe, numbers({6, 1}))))
      return true;
  return false;
}

TEST_F(Serve, GivesOutFinishedCorrectionsAfterTheSignalAndThenEnds) {
  running_program server(arguments({"--read-limit", "60", "--end-limit", "60"}), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  ASSERT_EQ(peer.call(kReset, numbers({6})).status, 0);
  ASSERT_EQ(peer.call(kEnqueue, enqueue(1, 0b0110)).status, 0);
  ASSERT_EQ(peer.call(kEnqueue, joined(numbers({6, 2, 0, 2}), {1})).status, 0); // half a shot
  ASSERT_FALSE(server_ends(peer.call(kDescribe, numbers({6, 1}))));
  server.signal(SIGTERM);
  ASSERT_TRUE(waits_for_the_end(peer));
  const wire_answer first = peer.call(kGet, get());
  EXPECT_EQ(first.status, 0);
  EXPECT_EQ(first.result, bytes{0b0110});
  EXPECT_EQ(peer.call(kEnqueue, joined(numbers({6, 3, 0, 2}), {0})).status, 0) << "the other half";
  EXPECT_EQ(peer.call(kEnqueue, enqueue(4, 0b1111)).status, 4) << "another shot";
  EXPECT_EQ(peer.call(kOneShot, {1}).status, -4);
  const wire_answer second = peer.call(kGet, get());
  EXPECT_EQ(second.status, 0);
  EXPECT_EQ(second.result, bytes{0b0001});
  EXPECT_EQ(server.wait(), 0) << "everything was read\n" << read_file(err());
}

TEST_F(Serve, WaitsForARequesterThatReadsLate) {
  running_program server(arguments({"--read-limit", "60", "--end-limit", "60"}), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  ASSERT_EQ(peer.call(kEnqueue, enqueue(1, 0b0110)).status, 0);
  server.signal(SIGTERM);
  ASSERT_TRUE(waits_for_the_end(peer));
  std::this_thread::sleep_for(std::chrono::milliseconds(600)); // a server that does not wait has ended by then
  const wire_answer read = peer.call(kGet, get());
  EXPECT_EQ(read.status, 0) << read_file(err());
  EXPECT_EQ(read.result, bytes{0b0110});
  EXPECT_EQ(server.wait(), 0) << read_file(err());
}

TEST_F(Serve, EndsAfterTheReadLimitIfNoRequesterReads) {
  running_program server(arguments({"--read-limit", "0.2", "--end-limit", "1000"}), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  ASSERT_EQ(peer.call(kEnqueue, enqueue(1, 0b0110)).status, 0);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << read_file(err());
}

} // namespace
} // namespace cudaq::realtime::tools::test

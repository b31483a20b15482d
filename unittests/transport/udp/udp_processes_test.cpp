// SPDX-License-Identifier: Apache-2.0
// A client and a server in two processes. The parameter is the provider's shape.
#include "lib/transport/udp/udp_wire.h"
#include "unittests/support/program_paths.h"
#include "unittests/support/sanitized.h"
#include "unittests/transport/datagram/datagram_server_process.h"
#include "unittests/transport/datagram/datagram_traffic.h"
#include "unittests/transport/datagram/killed_client.h"
#include "unittests/transport/datagram/lossy_relay.h"
#include "unittests/transport/datagram/unused_udp_port.h"

#include <set>

namespace cudaq::realtime::test {
namespace {

using namespace std::chrono_literals;

struct UdpProcesses : ::testing::TestWithParam<const char *> {
  static std::vector<std::string> with(std::vector<std::string> options) {
    if (*GetParam() != '\0')
      options.push_back(GetParam());
    return options;
  }
  static void open(detail::datagram_client &client, std::uint32_t port, std::uint32_t window = 32,
                   std::chrono::nanoseconds retry_after = 0ns) {
    detail::datagram_client_options options;
    options.port = port;
    options.window = window;
    options.retry_after = retry_after;
    ASSERT_EQ(client.open(options, detail::make_udp_wire(options.slot_size)).text(), "");
  }
};
INSTANTIATE_TEST_SUITE_P(Shapes, UdpProcesses, ::testing::Values("", "--unified"),
                         [](const auto &shape) { return *shape.param == '\0' ? "Ring" : "Unified"; });

TEST_P(UdpProcesses, IncrementAString) {
  datagram_server_process server(CUDAQ_UDP_PROVIDER, with({}));
  udp_peer peer(server.port());
  peer.send(request_bytes(kIncrement, 7, {'H', 'A', 'L'}, 256, 1234));
  const auto answer = peer.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->size(), 256u);
  EXPECT_EQ(response_header(*answer).request_id, 7u);
  EXPECT_EQ(response_header(*answer).ptp_timestamp, 1234u);
  EXPECT_EQ(result_of(*answer), bytes({'I', 'B', 'M'}));
  EXPECT_EQ(count_in(server.stop(), "count"), 1u);
}

TEST_P(UdpProcesses, ServeABurstAcrossTheWrapFromClientsThatReuseIds) {
  datagram_server_process server(CUDAQ_UDP_PROVIDER, with({"--num-slots=4"}));
  udp_peer peer(server.port());
  for (int n = 0; n < 50; ++n) // the ids of a client of the existing wire: always 0
    peer.send(request_bytes(kIncrement, 0, {static_cast<std::uint8_t>(n)}, 256));
  std::multiset<std::uint8_t> results;
  for (int n = 0; n < 50; ++n) {
    const auto answer = peer.receive();
    ASSERT_TRUE(answer) << n;
    results.insert(result_of(*answer).at(0));
  }
  for (int n = 0; n < 50; ++n)
    EXPECT_EQ(results.count(static_cast<std::uint8_t>(n + 1)), 1u);
  EXPECT_EQ(count_in(server.stop(), "count"), 50u);
}

TEST_P(UdpProcesses, SurviveGarbageUnknownFunctionsAndStrangers) {
  datagram_server_process server(CUDAQ_UDP_PROVIDER, with({"--num-slots=2"}));
  udp_peer peer(server.port()), stranger(server.port());
  std::mt19937 random(5);
  for (int n = 0; n < 200; ++n) {
    bytes garbage(random() % 400);
    for (std::uint8_t &byte : garbage)
      byte = static_cast<std::uint8_t>(random());
    stranger.send(garbage);
    stranger.send(request_bytes(static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(n), {1, 2, 3}));
    peer.send(request_bytes(kIncrement, static_cast<std::uint32_t>(n), {static_cast<std::uint8_t>(n)}));
    const auto answer = peer.receive();
    ASSERT_TRUE(answer) << n;
    EXPECT_EQ(response_header(*answer).request_id, static_cast<std::uint32_t>(n));
    EXPECT_EQ(result_of(*answer), bytes({static_cast<std::uint8_t>(n + 1)}));
  }
  EXPECT_FALSE(stranger.arrived());
  const std::string last = server.stop();
  EXPECT_EQ(count_in(last, "count"), 400u) << "200 answered, 200 dropped";
  EXPECT_EQ(count_in(last, "magic") + count_in(last, "short") + count_in(last, "long"), 200u) << last;
}

TEST_P(UdpProcesses, AnswerEachOfManyPeers) {
  datagram_server_process server(CUDAQ_UDP_PROVIDER, with({"--num-slots=16"}));
  std::vector<std::unique_ptr<udp_peer>> peers;
  for (int n = 0; n < 10; ++n)
    peers.push_back(std::make_unique<udp_peer>(server.port()));
  for (std::uint8_t round = 0; round < 20; ++round) {
    for (std::uint8_t n = 0; n < peers.size(); ++n)
      peers[n]->send(request_bytes(kIncrement, round, {n, round}));
    for (std::uint8_t n = 0; n < peers.size(); ++n) {
      const auto answer = peers[n]->receive();
      ASSERT_TRUE(answer);
      EXPECT_EQ(response_header(*answer).request_id, round);
      EXPECT_EQ(result_of(*answer), bytes({static_cast<std::uint8_t>(n + 1), static_cast<std::uint8_t>(round + 1)}));
    }
  }
}

TEST_P(UdpProcesses, ServeAPeerThatVanishesAndReturns) {
  datagram_server_process server(CUDAQ_UDP_PROVIDER, with({"--replay-window=64", "--max-peers=4"}));
  std::uint32_t port = 0;
  for (std::uint32_t life = 0; life < 5; ++life) {
    udp_peer peer(server.port(), port); // the same port each time
    port = peer.port();
    for (std::uint32_t n = 0; n < 4; ++n) // the peer vanishes before the answers come
      peer.send(request_bytes(kIncrement, life * 10 + n, {1}));
  }
  udp_peer peer(server.port(), port);
  ASSERT_TRUE(eventually([&] {
    peer.send(request_bytes(kIncrement, 100, {41}));
    for (auto answer = peer.receive(50ms); answer; answer = peer.receive(50ms))
      if (response_header(*answer).request_id == 100)
        return result_of(*answer) == bytes({42});
    return false;
  }));
}

TEST_P(UdpProcesses, RecoverWhenTheServerIsKilled) {
  const auto start = [port = std::to_string(unused_udp_port())] {
    return std::make_unique<datagram_server_process>(CUDAQ_UDP_PROVIDER, with({"--replay-window=256", "--port", port}));
  };
  auto server = start();
  detail::datagram_client client;
  open(client, server->port(), 16, 20ms);
  std::uint64_t next = 1;
  const std::uint64_t lives = campaign_kills(4);
  for (std::uint64_t life = 0; life < lives; ++life) {
    const traffic_result before = send_messages(client, next, 100);
    EXPECT_EQ(before.answered, 100u);
    EXPECT_EQ(before.wrong + before.executed_twice, 0u);
    next += 100;
    for (unsigned n = 0; n < 8; ++n) // in flight when it dies
      client.send(static_cast<std::uint32_t>(next + n), kRecord, payload_of(next + n), next + n);
    server->kill9();
    server = start();
    for (int n = 0; n < 8; ++n) { // the answer of either server
      const auto reply = client.receive_within(kDeadline);
      ASSERT_TRUE(reply) << n;
      record_answer answer{};
      ASSERT_EQ(reply->result.size(), sizeof(answer));
      std::memcpy(&answer, reply->result.data(), sizeof(answer));
      EXPECT_EQ(answer.checksum, checksum_of(payload_of(answer.number)));
      EXPECT_EQ(answer.executions, 1u);
    }
    next += 8;
  }
  EXPECT_EQ(count_in(server->stop(), "twice"), 0u);
}

TEST_P(UdpProcesses, ServeOthersWhenClientsAreKilled) {
  datagram_server_process server(CUDAQ_UDP_PROVIDER, with({"--replay-window=64", "--max-peers=4096"}));
  const std::uint64_t kills = campaign_kills(4);
  for (std::uint64_t life = 1; life <= kills; ++life) {
    detail::datagram_client victim;
    open(victim, server.port(), 8, 20ms);
    kill_while_it_sends(victim, life << 20, life % 10 * 500us);
  }
  detail::datagram_client client;
  open(client, server.port(), 8, 20ms);
  const traffic_result result = send_messages(client, (kills + 1) << 20, 100);
  EXPECT_EQ(result.answered, 100u);
  EXPECT_EQ(result.wrong + result.executed_twice, 0u);
  EXPECT_EQ(count_in(server.stop(), "twice"), 0u);
}

TEST_P(UdpProcesses, AnswerManyMessagesWithoutAFault) {
  const std::uint64_t messages = campaign_messages(kSanitized ? 10000 : 100000);
  datagram_server_process server(CUDAQ_UDP_PROVIDER, with({"--num-slots=64", "--slot-size=128"}));
  detail::datagram_client client;
  detail::datagram_client_options options;
  options.port = server.port();
  options.slot_size = 128;
  ASSERT_EQ(client.open(options, detail::make_udp_wire(options.slot_size)).text(), "");
  const traffic_result result = send_messages(client, 0, messages);
  EXPECT_EQ(result.answered, messages);
  EXPECT_EQ(result.wrong, 0u);
  EXPECT_EQ(result.executed_twice, 0u);
  EXPECT_EQ(client.unexpected(), 0u);
  const std::string last = server.stop();
  EXPECT_EQ(count_in(last, "count"), messages);
  EXPECT_EQ(count_in(last, "different"), messages);
}

TEST_P(UdpProcesses, ExecuteEachMessageOnceOverALossyNetwork) {
  const std::uint64_t messages = campaign_messages(kSanitized ? 4000 : 20000);
  datagram_server_process server(CUDAQ_UDP_PROVIDER, with({"--num-slots=32", "--replay-window=1024"}));
  lossy_relay relay(server.port(), {}, 20261123);
  detail::datagram_client client;
  open(client, relay.port(), 32, 10ms);
  const traffic_result result = send_messages(client, 0xFFFFFF00u, messages); // ids wrap around
  EXPECT_EQ(result.answered, messages);
  EXPECT_EQ(result.wrong, 0u);
  EXPECT_EQ(result.executed_twice, 0u);
  EXPECT_GT(client.repeated(), 0u);
  const std::string last = server.stop();
  EXPECT_EQ(count_in(last, "different"), messages);
  EXPECT_EQ(count_in(last, "twice"), 0u);
  EXPECT_GT(count_in(last, "replays") + count_in(last, "duplicates"), 0u);
  std::printf("%s  relay: lost=%llu repeated=%llu delayed=%llu client: repeated=%llu unexpected=%llu\n", last.c_str(),
              static_cast<unsigned long long>(relay.lost()), static_cast<unsigned long long>(relay.repeated()),
              static_cast<unsigned long long>(relay.delayed()), static_cast<unsigned long long>(client.repeated()),
              static_cast<unsigned long long>(client.unexpected()));
}

TEST(UdpProcess, ReportsThroughTheLoaderWhyItWasRefused) {
  const std::string program = std::string(CUDAQ_DATAGRAM_SERVER) + " " + CUDAQ_UDP_PROVIDER + " --slot-size 5 2>&1";
  FILE *const output = popen(program.c_str(), "r");
  ASSERT_NE(output, nullptr);
  std::string text(2000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), output));
  EXPECT_NE(pclose(output), 0);
  EXPECT_NE(text.find("--slot-size '5'"), std::string::npos) << text;
  EXPECT_NE(text.find("from 24"), std::string::npos) << text;
}

TEST_P(UdpProcesses, AnswerAfterTheNetworkWasDown) {
  datagram_server_process server(CUDAQ_UDP_PROVIDER, with({"--replay-window=64"}));
  lossy_relay relay(server.port(), {0, 0, 0}, 1);
  detail::datagram_client client;
  open(client, relay.port(), 8, 10ms);
  ASSERT_EQ(send_messages(client, 1, 10).answered, 10u);
  relay.set(1); // all is lost
  for (std::uint64_t n = 20; n < 24; ++n)
    EXPECT_TRUE(client.send(static_cast<std::uint32_t>(n), kRecord, payload_of(n), n));
  EXPECT_FALSE(client.receive_within(60ms));
  relay.set(0);
  for (int n = 0; n < 4; ++n)
    EXPECT_TRUE(client.receive_within(kDeadline));
  EXPECT_EQ(client.num_open(), 0u);
  EXPECT_EQ(count_in(server.stop(), "twice"), 0u);
}

TEST_P(UdpProcesses, AnswerOthersBeforeASlowRequest) {
  datagram_server_process server(CUDAQ_UDP_PROVIDER, with({"--num-slots=8"}));
  udp_peer slow(server.port()), quick(server.port());
  slow.send(request_bytes(kHold, 1, {}));
  for (std::uint32_t n = 0; n < 6; ++n) {
    quick.send(request_bytes(kIncrement, n, {1}));
    ASSERT_TRUE(quick.receive()) << n;
  }
  EXPECT_FALSE(slow.arrived());
  quick.send(request_bytes(kOpen, 6, {}));
  ASSERT_TRUE(quick.receive());
  const auto answer = slow.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(response_header(*answer).request_id, 1u);
  EXPECT_EQ(response_header(*answer).status, 0) << "it was not held until the other message";
}

} // namespace
} // namespace cudaq::realtime::test

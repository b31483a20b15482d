// SPDX-License-Identifier: Apache-2.0
// A requester and a server in two processes. The parameter is the provider's shape.
#include "unittests/support/program_paths.h"
#include "unittests/support/sanitized.h"
#include "unittests/transport/datagram/datagram_server_process.h"
#include "unittests/transport/datagram/datagram_traffic.h"
#include "unittests/transport/datagram/killed_client.h"
#include "unittests/transport/datagram/unused_udp_port.h"
#include "unittests/transport/roce/roce_requester.h"

#include <algorithm>
#include <arpa/inet.h>
#include <set>

namespace cudaq::realtime::test {
namespace {

using namespace std::chrono_literals;

struct RoceProcesses : ::testing::TestWithParam<const char *> {
  /// Answers go to the port of the request: both sides have one address here.
  static std::vector<std::string> with(std::vector<std::string> options) {
    options.insert(options.end(), {"--port=0", "--peer-port=0"});
    if (*GetParam() != '\0')
      options.push_back(GetParam());
    return options;
  }
  static void expect_sum(const std::string &line) {
    EXPECT_EQ(count_in(line, "packets"), count_in(line, "messages") + count_in(line, "parts") +
                                             count_in(line, "unfit") + count_in(line, "sequence"))
        << line;
    EXPECT_EQ(count_in(line, "messages"), count_in(line, "received")) << line;
  }
};
INSTANTIATE_TEST_SUITE_P(Shapes, RoceProcesses, ::testing::Values("", "--unified"),
                         [](const auto &shape) { return *shape.param == '\0' ? "Ring" : "Unified"; });

TEST_P(RoceProcesses, IncrementAStringOfAnyNumberOfPackets) {
  datagram_server_process server(CUDAQ_ROCE_PROVIDER, with({"--slot-size=1000", "--mtu=256", "--num-slots=3"}));
  EXPECT_EQ(value_of(server.endpoint, "qp"), "0x11");
  EXPECT_EQ(value_of(server.endpoint, "mtu"), "256");
  roce_requester requester(1000, 3, 256);
  ASSERT_EQ(requester.open(server.port()), "");
  for (std::uint32_t size = 0; size <= 976; size += 61) {
    bytes text(size), incremented(size);
    for (std::size_t i = 0; i < size; ++i) {
      text[i] = static_cast<std::uint8_t>(i + size);
      incremented[i] = static_cast<std::uint8_t>(text[i] + 1);
    }
    ASSERT_TRUE(requester.client.send(size, kIncrement, text, 1234));
    const auto reply = requester.client.receive_within(kDeadline);
    ASSERT_TRUE(reply) << size;
    EXPECT_EQ(reply->header.request_id, size);
    EXPECT_EQ(reply->header.ptp_timestamp, 1234u);
    EXPECT_EQ(bytes(reply->result.begin(), reply->result.end()), incremented);
  }
  EXPECT_EQ(requester.counters->packets_lost.value(), 0u);
  EXPECT_EQ(requester.counters->packets.value(), 4u * requester.counters->messages.value()) << "1000 bytes each";
  const std::string last = server.stop();
  expect_sum(last);
  EXPECT_EQ(count_in(last, "count"), 17u);
  EXPECT_EQ(count_in(last, "partly"), 0u) << "the system leaves the identification 0";
  EXPECT_GT(count_in(last, "parts"), 0u);
}

/// The UDP packets that arrive at one address. Not those of the whole machine: they could fill the socket.
class packet_capture {
public:
  explicit packet_capture(const std::string &address)
      : fd_(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    inet_pton(AF_INET, address.c_str(), &at.sin_addr);
    works_ = fd_ >= 0 && bind(fd_, reinterpret_cast<const sockaddr *>(&at), sizeof at) == 0;
  }
  ~packet_capture() { close(fd_); }
  packet_capture(const packet_capture &) = delete;
  packet_capture &operator=(const packet_capture &) = delete;
  bool works() const { return works_; }
  /// With the IP header. Empty: there is none.
  bytes next() const {
    bytes packet(2000);
    const ssize_t n = ::recv(fd_, packet.data(), packet.size(), 0);
    packet.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return packet;
  }

private:
  const int fd_;
  bool works_ = false;
};

/// The ICRC covers the identification, and the receiver takes it to be 0.
TEST(RoceProcess, SpeaksOnThePortOfRoceWithIdentificationZero) {
  // Addresses of this machine that no other test has.
  const std::string net = "127." + std::to_string(1 + getpid() % 200) + "." + std::to_string(getpid() / 200 % 250);
  const std::string here = net + ".1", there = net + ".2";
  datagram_server_process server(CUDAQ_ROCE_PROVIDER, {"--bind", there});
  ASSERT_EQ(server.port(), 4791u);
  const packet_capture to_server(there), to_client(here);
  roce_requester requester;
  requester.options.address = there;
  requester.options.own_address = here;
  requester.options.own_port = 4791;
  ASSERT_EQ(requester.open(server.port()), "");
  ASSERT_TRUE(requester.client.send(3, kIncrement, bytes{41}));
  const auto reply = requester.client.receive_within(kDeadline);
  ASSERT_TRUE(reply);
  EXPECT_EQ(bytes(reply->result.begin(), reply->result.end()), bytes({42}));
  if (!to_server.works() || !to_client.works())
    GTEST_SKIP() << "this process may not capture packets: the identification was not looked at";
  for (const packet_capture *const capture : {&to_server, &to_client}) {
    const bytes packet = capture->next();
    ASSERT_GE(packet.size(), 28u) << "the request and its answer";
    EXPECT_EQ(packet[4] << 8 | packet[5], 0) << "identification";
    EXPECT_EQ(packet[6] << 8 | packet[7], 0x4000) << "do not fragment";
    EXPECT_TRUE(capture->next().empty()) << "one packet each";
  }
}

TEST_P(RoceProcesses, SurviveGarbageAndWrongPackets) {
  datagram_server_process server(CUDAQ_ROCE_PROVIDER, with({"--num-slots=4"}));
  roce_requester requester(256, 4);
  ASSERT_EQ(requester.open(server.port()), "");
  udp_peer stranger(server.port());
  std::mt19937 random(5);
  for (std::uint32_t n = 0; n < 200; ++n) {
    bytes garbage(random() % 400);
    for (std::uint8_t &byte : garbage)
      byte = static_cast<std::uint8_t>(random());
    stranger.send(garbage);
    if (garbage.size() > 12) { // a packet of the server's queue pair, but with a wrong ICRC
      const bytes header = {0x24, 0, 0xFF, 0xFF, 0, 0, 0, detail::kServerQp, 0, 0, 0, 1};
      std::copy(header.begin(), header.end(), garbage.begin());
      garbage.resize(garbage.size() / 4 * 4);
      stranger.send(garbage);
    }
    ASSERT_TRUE(requester.client.send(n, kIncrement, bytes{static_cast<std::uint8_t>(n)}));
    const auto reply = requester.client.receive_within(kDeadline);
    ASSERT_TRUE(reply) << n;
    EXPECT_EQ(reply->result[0], static_cast<std::uint8_t>(n + 1));
  }
  EXPECT_FALSE(stranger.arrived());
  const std::string last = server.stop();
  expect_sum(last);
  EXPECT_EQ(count_in(last, "count"), 200u);
  EXPECT_GT(count_in(last, "icrc"), 150u) << last;
}

TEST_P(RoceProcesses, ServeABurstAcrossTheWrap) {
  datagram_server_process server(CUDAQ_ROCE_PROVIDER, with({"--num-slots=4"}));
  roce_requester requester(256, 4); // it writes pages 0, 1, 2, 3, 0, ... without looking at answers
  requester.options.window = 64;
  ASSERT_EQ(requester.open(server.port()), "");
  for (std::uint32_t n = 0; n < 50; ++n)
    ASSERT_TRUE(requester.client.send(n, kIncrement, bytes{static_cast<std::uint8_t>(n)}));
  std::set<std::uint32_t> answered;
  for (std::uint32_t n = 0; n < 50; ++n) {
    const auto reply = requester.client.receive_within(kDeadline);
    ASSERT_TRUE(reply) << n;
    EXPECT_EQ(reply->result[0], static_cast<std::uint8_t>(reply->header.request_id + 1));
    answered.insert(reply->header.request_id);
  }
  EXPECT_EQ(answered.size(), 50u);
  EXPECT_EQ(count_in(server.stop(), "count"), 50u);
}

/// Frames in packets that are right, but for what a test puts into them.
class raw_requester {
public:
  explicit raw_requester(std::uint32_t port, std::uint32_t page = 256) {
    detail::roce_wire_options options;
    options.server = false;
    options.slot_size = page;
    options.num_slots = 4;
    options.own_qp = detail::kRequesterQp;
    options.peer_qp = detail::kServerQp;
    detail::udp_address own;
    EXPECT_EQ(detail::udp_address_of("server", "127.0.0.1", port, server_).text(), "");
    EXPECT_EQ(detail::udp_address_of("own", "127.0.0.1", 0, own).text(), "");
    EXPECT_EQ(socket_.open(own, 0).text(), "");
    wire_ = detail::make_roce_wire(options, std::make_shared<detail::roce_counters>());
    EXPECT_EQ(wire_->prepare(socket_).text(), "");
    sender_ = wire_->make_sender();
  }
  void send(bytes frame) {
    sender_->add(server_, frame);
    EXPECT_EQ(sender_->flush(socket_).done, 1u);
  }

private:
  detail::udp_address server_;
  detail::udp_socket socket_;
  std::unique_ptr<detail::datagram_wire> wire_;
  std::unique_ptr<detail::frame_sender> sender_;
};

TEST_P(RoceProcesses, AnswerNeitherBadFramesNorUnknownFunctions) {
  datagram_server_process server(CUDAQ_ROCE_PROVIDER, with({"--num-slots=4"}));
  roce_requester requester(256, 4);
  ASSERT_EQ(requester.open(server.port()), "");
  raw_requester raw(server.port()), longer(server.port(), 512);
  bytes bad = request_bytes(kIncrement, 1, {1}, 64);
  bad[0] ^= 1;
  for (std::uint32_t n = 0; n < 20; ++n) {
    raw.send(bad);
    raw.send(bytes(8));                                          // shorter than a header
    longer.send(request_bytes(kIncrement, n, {1}, 400));         // longer than a slot
    ASSERT_TRUE(requester.client.send(2 * n, 0x0BAD, bytes{1})); // an unknown function
    ASSERT_TRUE(requester.client.send(2 * n + 1, kIncrement, bytes{static_cast<std::uint8_t>(n)}));
    const auto reply = requester.client.receive_within(kDeadline);
    ASSERT_TRUE(reply) << n;
    EXPECT_EQ(reply->header.request_id, 2 * n + 1) << "and no answer to the unknown function";
    requester.client.give_up(2 * n);
  }
  const std::string last = server.stop();
  EXPECT_EQ(count_in(last, "magic"), 20u) << last;
  EXPECT_EQ(count_in(last, "short"), 20u) << last;
  EXPECT_EQ(count_in(last, "unfit"), 20u) << last;
  EXPECT_EQ(count_in(last, "count"), 40u) << "20 answered, 20 of an unknown function dropped";
}

TEST_P(RoceProcesses, RecoverWhenTheServerIsKilled) {
  std::vector<std::string> options = with({"--replay-window=256"});
  std::replace(options.begin(), options.end(), std::string("--port=0"), "--port=" + std::to_string(unused_udp_port()));
  auto server = std::make_unique<datagram_server_process>(CUDAQ_ROCE_PROVIDER, options);
  roce_requester requester;
  requester.options.retry_after = 20ms;
  ASSERT_EQ(requester.open(server->port()), "");
  std::uint64_t next = 1;
  for (std::uint64_t life = 0; life < campaign_kills(3); ++life) {
    const traffic_result before = send_messages(requester.client, next, 100);
    EXPECT_EQ(before.answered, 100u);
    EXPECT_EQ(before.wrong + before.executed_twice, 0u);
    next += 100;
    for (unsigned n = 0; n < 8; ++n) // in flight when it dies
      requester.client.send(static_cast<std::uint32_t>(next + n), kRecord, payload_of(next + n), next + n);
    server->kill9();
    server = std::make_unique<datagram_server_process>(CUDAQ_ROCE_PROVIDER, options);
    for (int n = 0; n < 8; ++n) { // the answer of either server
      const auto reply = requester.client.receive_within(kDeadline);
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

TEST_P(RoceProcesses, ServeOthersWhenRequestersAreKilled) {
  datagram_server_process server(CUDAQ_ROCE_PROVIDER,
                                 with({"--mtu=256", "--slot-size=600", "--replay-window=64", "--max-peers=512"}));
  const std::uint64_t kills = campaign_kills(4);
  for (std::uint64_t life = 1; life <= kills; ++life) {
    roce_requester victim(600, 8, 256);
    victim.options.window = 8;
    victim.options.retry_after = 20ms;
    ASSERT_EQ(victim.open(server.port()), "");
    kill_while_it_sends(victim.client, life << 20, life % 10 * 500us);
  }
  roce_requester requester(600, 8, 256);
  requester.options.window = 8;
  requester.options.retry_after = 20ms;
  ASSERT_EQ(requester.open(server.port()), "");
  const traffic_result result = send_messages(requester.client, (kills + 1) << 20, 100, 60); // two packets each
  EXPECT_EQ(result.answered, 100u);
  EXPECT_EQ(result.wrong + result.executed_twice, 0u);
  EXPECT_EQ(count_in(server.stop(), "twice"), 0u);
}

TEST_P(RoceProcesses, ServeARequesterThatStartsAgain) {
  datagram_server_process server(CUDAQ_ROCE_PROVIDER, with({"--mtu=256", "--slot-size=600"}));
  std::uint32_t port = 0;
  for (std::uint32_t life = 0; life < 4; ++life) { // the same port each time, and packet numbers from 0 again
    roce_requester requester(600, 8, 256);
    requester.options.own_port = port;
    ASSERT_EQ(requester.open(server.port()), "");
    port = requester.client.socket().port();
    EXPECT_EQ(send_messages(requester.client, life * 100, 20, 60).wrong, 0u);
    requester.client.send(life * 100 + 50, kRecord, payload_of(life * 100 + 50), 0); // its answer is lost
  }
  EXPECT_EQ(count_in(server.stop(), "twice"), 0u);
}

TEST_P(RoceProcesses, AnswerManyMessagesWithoutAFault) {
  const std::uint64_t messages = campaign_messages(kSanitized ? 10000 : 50000);
  datagram_server_process server(CUDAQ_ROCE_PROVIDER, with({"--num-slots=64", "--slot-size=128"}));
  roce_requester requester(128, 64);
  ASSERT_EQ(requester.open(server.port()), "");
  const traffic_result result = send_messages(requester.client, 0, messages);
  EXPECT_EQ(result.answered, messages);
  EXPECT_EQ(result.wrong + result.executed_twice, 0u);
  EXPECT_EQ(requester.client.unexpected(), 0u);
  const std::string last = server.stop();
  expect_sum(last);
  EXPECT_EQ(count_in(last, "different"), messages);
  EXPECT_EQ(count_in(last, "lost") + count_in(last, "unfit") + count_in(last, "sequence"), 0u) << last;
}

TEST_P(RoceProcesses, ExecuteEachMessageOnceOverALossyNetwork) {
  const std::uint64_t messages = campaign_messages(kSanitized ? 3000 : 10000);
  datagram_server_process server(CUDAQ_ROCE_PROVIDER,
                                 with({"--num-slots=32", "--slot-size=600", "--mtu=256", "--replay-window=1024"}));
  lossy_relay relay(server.port(), {}, 20261124, seal_anew);
  roce_requester requester(600, 32, 256);
  requester.options.retry_after = 10ms;
  ASSERT_EQ(requester.open(relay.port()), "");
  const traffic_result result = send_messages(requester.client, 0xFFFFFF00u, messages, 60); // two packets each
  EXPECT_EQ(result.answered, messages);
  EXPECT_EQ(result.wrong, 0u);
  EXPECT_EQ(result.executed_twice, 0u);
  EXPECT_GT(requester.client.repeated(), 0u);
  const std::string last = server.stop();
  expect_sum(last);
  EXPECT_EQ(count_in(last, "different"), messages);
  EXPECT_EQ(count_in(last, "twice"), 0u);
  EXPECT_GT(count_in(last, "broken"), 0u) << "messages of which one packet was lost";
  EXPECT_EQ(count_in(last, "icrc"), 0u);
  EXPECT_EQ(requester.counters->dropped_icrc.value(), 0u);
  std::printf("%s  relay: lost=%llu repeated=%llu delayed=%llu client: repeated=%llu broken answers=%llu\n",
              last.c_str(), static_cast<unsigned long long>(relay.lost()),
              static_cast<unsigned long long>(relay.repeated()), static_cast<unsigned long long>(relay.delayed()),
              static_cast<unsigned long long>(requester.client.repeated()),
              static_cast<unsigned long long>(requester.counters->messages_broken.value()));
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// What each provider promises, with a client and a server in two processes. The parameter is a provider and its shape.
// What only one provider has is tested in its folder.
#include "unittests/support/sanitized.h"
#include "unittests/transport/datagram/datagram_server_process.h"
#include "unittests/transport/datagram/unused_udp_port.h"
#include "unittests/transport/provider/provider_caller.h"

#include <set>

namespace cudaq::realtime::test {
namespace {

using namespace std::chrono_literals;

enum class kind { udp, roce, shm };
struct provider {
  const char *name;
  kind of;
  const char *library;
  const char *shape;
};
void PrintTo(const provider &p, std::ostream *out) { *out << p.name; }
std::string name_of(const ::testing::TestParamInfo<provider> &info) { return info.param.name; }

const provider kUdpRing{"UdpRing", kind::udp, CUDAQ_UDP_PROVIDER, ""},
    kUdpUnified{"UdpUnified", kind::udp, CUDAQ_UDP_PROVIDER, "--unified"},
    kRoceRing{"RoceRing", kind::roce, CUDAQ_ROCE_PROVIDER, ""},
    kRoceUnified{"RoceUnified", kind::roce, CUDAQ_ROCE_PROVIDER, "--unified"},
    kShmRing{"ShmRing", kind::shm, CUDAQ_SHM_PROVIDER, ""},
    kShmUnified{"ShmUnified", kind::shm, CUDAQ_SHM_PROVIDER, "--unified"};

/// Slots of a server and its clients. Over RoCE a slot may take several packets.
struct geometry {
  std::uint32_t slot_size = 256, num_slots = 8, mtu = 4096;
};

class ProviderProcesses : public ::testing::TestWithParam<provider> {
protected:
  ~ProviderProcesses() override { // a server of shm that is killed leaves them
    for (const char *suffix : {".sock", ".lock"})
      ::unlink(("/dev/shm/cudaq-realtime-" + name + suffix).c_str());
  }
  static bool roce() { return GetParam().of == kind::roce; }
  static bool shm() { return GetParam().of == kind::shm; }
  /// Of datagrams: `options`, and the port; 0: any.
  std::unique_ptr<datagram_server_process> serve(const geometry &g, std::vector<std::string> options = {},
                                                 std::uint32_t port = 0) const {
    if (shm())
      options = {"--name=" + name};
    const auto add = [&options](const char *option, std::uint32_t value) {
      options.push_back(option + std::to_string(value));
    };
    add("--slot-size=", g.slot_size);
    add("--num-slots=", g.num_slots);
    if (!shm())
      add("--port=", port);
    if (roce()) {
      add("--mtu=", g.mtu);
      add("--peer-port=", 0); // answers go to the port of the request: both sides have one address here
    }
    if (*GetParam().shape != '\0')
      options.emplace_back(GetParam().shape);
    return std::make_unique<datagram_server_process>(GetParam().library, options);
  }
  /// Of providers over datagrams.
  static std::unique_ptr<datagram_caller> datagrams(const geometry &g, std::uint32_t port, std::uint32_t window,
                                                    std::chrono::nanoseconds retry_after = 0ns,
                                                    std::uint32_t own_port = 0) {
    auto made = std::make_unique<datagram_caller>(g.slot_size, g.num_slots, g.mtu);
    made->requester.options.window = window;
    made->requester.options.retry_after = retry_after;
    made->requester.options.own_port = own_port;
    made->open(roce(), port);
    return made;
  }
  std::unique_ptr<provider_caller> call(const geometry &g, const datagram_server_process &server,
                                        std::uint32_t window = 32, std::chrono::nanoseconds retry_after = 0ns,
                                        std::uint32_t own_port = 0) const {
    if (shm())
      return std::make_unique<shm_caller>(name);
    return datagrams(g, server.port(), window, retry_after, own_port);
  }
  /// What the server counts adds up.
  static void expect_sums(const std::string &last) {
    if (!roce())
      return;
    EXPECT_EQ(count_in(last, "packets"), count_in(last, "messages") + count_in(last, "parts") +
                                             count_in(last, "unfit") + count_in(last, "sequence"))
        << last;
    EXPECT_EQ(count_in(last, "messages"), count_in(last, "received")) << last;
  }
  /// The next answer is that of kIncrement to this request.
  static void expect_incremented(provider_caller &client, std::uint32_t id, bytes text, std::uint64_t timestamp = 0) {
    const auto reply = client.receive_within(kDeadline);
    ASSERT_TRUE(reply) << id;
    EXPECT_EQ(reply->header.request_id, id);
    EXPECT_EQ(reply->header.status, 0);
    EXPECT_EQ(reply->header.ptp_timestamp, timestamp);
    for (std::uint8_t &byte : text)
      ++byte;
    EXPECT_EQ(bytes(reply->result.begin(), reply->result.end()), text);
  }
  static void expect_answered(const traffic_result &result, std::uint64_t count) {
    EXPECT_EQ(result.answered, count);
    EXPECT_EQ(result.wrong, 0u);
    EXPECT_EQ(result.executed_twice, 0u);
  }

  const std::string name = "t" + std::to_string(::getpid()) + "-processes"; ///< of a server of shm
};
INSTANTIATE_TEST_SUITE_P(Provider, ProviderProcesses,
                         ::testing::Values(kUdpRing, kUdpUnified, kRoceRing, kRoceUnified, kShmRing, kShmUnified),
                         name_of);
/// Of those that serve several clients at a time: all but the one ring of shm.
struct ManyClients : ProviderProcesses {};
INSTANTIATE_TEST_SUITE_P(Provider, ManyClients,
                         ::testing::Values(kUdpRing, kUdpUnified, kRoceRing, kRoceUnified, kShmUnified), name_of);
/// Of those over a network, with strangers, losses, and clients that outlive their server.
struct DatagramProcesses : ProviderProcesses {};
INSTANTIATE_TEST_SUITE_P(Provider, DatagramProcesses, ::testing::Values(kUdpRing, kUdpUnified, kRoceRing, kRoceUnified),
                         name_of);

TEST_P(ProviderProcesses, IncrementAStringOfAnyLength) {
  const geometry g{1000, 3, 256}; // over RoCE four packets
  const auto server = serve(g);
  const auto client = call(g, *server);
  for (std::uint32_t size = 0; size <= 976; size += 61) {
    bytes text(size);
    for (std::size_t i = 0; i < size; ++i)
      text[i] = static_cast<std::uint8_t>(i + size);
    ASSERT_TRUE(client->send(size, kIncrement, text, 1234));
    ASSERT_NO_FATAL_FAILURE(expect_incremented(*client, size, text, 1234));
  }
  const detail::roce_counters &packets = client->packets();
  EXPECT_EQ(packets.packets_lost.value(), 0u);
  EXPECT_EQ(packets.packets.value(), 4 * packets.messages.value());
  const std::string last = server->stop();
  expect_sums(last);
  EXPECT_EQ(count_in(last, "count"), 17u);
  if (roce()) {
    EXPECT_EQ(value_of(server->endpoint, "qp"), "0x11");
    EXPECT_EQ(value_of(server->endpoint, "mtu"), "256");
    EXPECT_EQ(packets.messages.value(), 17u);
    EXPECT_EQ(count_in(last, "partly"), 0u) << "the system leaves the identification 0";
    EXPECT_GT(count_in(last, "parts"), 0u);
  }
}

TEST_P(ProviderProcesses, ServeABurstAcrossTheWrap) {
  const geometry g{256, 4};
  const auto server = serve(g);
  const auto client = call(g, *server, 64); // over RoCE it writes pages 0, 1, 2, 3, 0, ... without looking at answers
  for (std::uint32_t n = 0; n < 50; ++n)
    ASSERT_TRUE(client->send(n, kIncrement, bytes{static_cast<std::uint8_t>(n)}));
  std::set<std::uint32_t> answered;
  for (std::uint32_t n = 0; n < 50; ++n) {
    const auto reply = client->receive_within(kDeadline);
    ASSERT_TRUE(reply) << n;
    ASSERT_EQ(reply->result.size(), 1u);
    EXPECT_EQ(reply->result[0], static_cast<std::uint8_t>(reply->header.request_id + 1));
    answered.insert(reply->header.request_id);
  }
  EXPECT_EQ(answered.size(), 50u);
  EXPECT_EQ(count_in(server->stop(), "count"), 50u);
}

TEST_P(ProviderProcesses, ServeAClientThatVanishesAndReturns) {
  const geometry g{600, 8, 256};
  for (const bool replays : {false, true}) {
    const auto server = replays ? serve(g, {"--replay-window=64", "--max-peers=4"}) : serve(g);
    std::uint32_t port = 0;
    for (std::uint64_t life = 0; life < 5; ++life) { // the same port each time; over RoCE packet numbers from 0 again
      const auto client = call(g, *server, 32, 0ns, port);
      port = client->own_port();
      expect_answered(send_messages(*client, life * 100, 20, 60), 20);
      for (std::uint64_t n = life * 100 + 50; n < life * 100 + 54; ++n) // it vanishes before the answers come
        EXPECT_TRUE(client->send(static_cast<std::uint32_t>(n), kRecord, payload_of(n)));
    }
    EXPECT_EQ(count_in(server->stop(), "twice"), 0u);
  }
}

TEST_P(ProviderProcesses, ServeOthersWhenClientsAreKilled) {
  const geometry g{600, 8, 256};
  const auto server = serve(g, {"--replay-window=64", "--max-peers=512"});
  const std::uint64_t kills = campaign_kills(4);
  for (std::uint64_t life = 1; life <= kills; ++life)
    kill_while_it_sends([&] { return call(g, *server, 8, 20ms); }, life << 20, life % 10 * 500us);
  const auto client = call(g, *server, 8, 20ms);
  expect_answered(send_messages(*client, (kills + 1) << 20, 100, 60), 100); // over RoCE two packets each
  EXPECT_EQ(count_in(server->stop(), "twice"), 0u);
}

TEST_P(ProviderProcesses, AnswerManyMessagesWithoutAFault) {
  const std::uint64_t messages = campaign_messages(kSanitized ? 10000 : roce() || shm() ? 50000 : 100000);
  const geometry g{128, 64};
  const auto server = serve(g);
  const auto client = call(g, *server, 64);
  expect_answered(send_messages(*client, 0, messages), messages);
  EXPECT_EQ(client->unexpected(), 0u);
  const std::string last = server->stop();
  expect_sums(last);
  EXPECT_EQ(count_in(last, "count"), messages);
  EXPECT_EQ(count_in(last, "different"), messages);
  if (roce()) {
    EXPECT_EQ(count_in(last, "lost") + count_in(last, "unfit") + count_in(last, "sequence"), 0u) << last;
  }
}

TEST_P(ProviderProcesses, ReportThroughTheLoaderWhyTheyWereRefused) {
  const std::string program = std::string(CUDAQ_DATAGRAM_SERVER) + " " + GetParam().library + " --num-slots 0 2>&1";
  FILE *const output = popen(program.c_str(), "r");
  ASSERT_NE(output, nullptr);
  std::string text(2000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), output));
  EXPECT_NE(pclose(output), 0);
  EXPECT_NE(text.find("--num-slots '0'"), std::string::npos) << text;
  EXPECT_NE(text.find("from 1"), std::string::npos) << text;
}

TEST_P(ManyClients, AnswerEachOfManyPeers) {
  const geometry g{256, 16};
  const auto server = serve(g);
  std::vector<std::unique_ptr<provider_caller>> clients;
  for (int n = 0; n < (shm() ? 8 : 10); ++n) // as many as a server of shm has rings
    clients.push_back(call(g, *server));
  for (std::uint8_t round = 0; round < 20; ++round) {
    for (std::uint8_t n = 0; n < clients.size(); ++n)
      ASSERT_TRUE(clients[n]->send(round, kIncrement, bytes{n, round}));
    for (std::uint8_t n = 0; n < clients.size(); ++n)
      ASSERT_NO_FATAL_FAILURE(expect_incremented(*clients[n], round, {n, round}));
  }
}

TEST_P(ManyClients, AnswerOthersBeforeASlowRequest) {
  const geometry g;
  const auto server = serve(g);
  const auto slow = call(g, *server, 8), quick = call(g, *server, 8);
  ASSERT_TRUE(slow->send(1, kHold, {}));
  for (std::uint32_t n = 0; n < 6; ++n) {
    ASSERT_TRUE(quick->send(n, kIncrement, bytes{1}));
    ASSERT_NO_FATAL_FAILURE(expect_incremented(*quick, n, {1}));
  }
  EXPECT_FALSE(slow->receive());
  ASSERT_TRUE(quick->send(6, kOpen, {}));
  ASSERT_TRUE(quick->receive_within(kDeadline));
  const auto answer = slow->receive_within(kDeadline);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.request_id, 1u);
  EXPECT_EQ(answer->header.status, 0) << "it was not held until the other message";
}

TEST_P(DatagramProcesses, SurviveGarbageUnknownFunctionsAndStrangers) {
  const geometry g{256, 4};
  const auto server = serve(g);
  const auto client = call(g, *server);
  udp_peer stranger(server->port());
  std::mt19937 random(5);
  for (std::uint32_t n = 0; n < 200; ++n) {
    bytes garbage(random() % 400);
    for (std::uint8_t &byte : garbage)
      byte = static_cast<std::uint8_t>(random());
    stranger.send(garbage);
    if (!roce()) {
      stranger.send(request_bytes(static_cast<std::uint32_t>(random()), n, {1, 2, 3}));
    } else if (garbage.size() > 12) { // a packet of the server's queue pair, but with a wrong ICRC
      const bytes header = {0x24, 0, 0xFF, 0xFF, 0, 0, 0, detail::kServerQp, 0, 0, 0, 1};
      std::copy(header.begin(), header.end(), garbage.begin());
      garbage.resize(garbage.size() / 4 * 4);
      stranger.send(garbage);
    }
    const bytes text{static_cast<std::uint8_t>(n)};
    ASSERT_TRUE(client->send(n, kIncrement, text));
    ASSERT_NO_FATAL_FAILURE(expect_incremented(*client, n, text));
  }
  EXPECT_FALSE(stranger.arrived());
  const std::string last = server->stop();
  expect_sums(last);
  if (roce()) {
    EXPECT_EQ(count_in(last, "count"), 200u);
    EXPECT_GT(count_in(last, "icrc"), 150u) << last;
  } else {
    EXPECT_EQ(count_in(last, "count"), 400u) << "200 answered, 200 dropped";
    EXPECT_EQ(count_in(last, "magic") + count_in(last, "short") + count_in(last, "long"), 200u) << last;
  }
}

// Over RoCE its checksums are right, so each field is read.
TEST_P(DatagramProcesses, ServeAPeerBesideOneWhosePacketsHaveAnyFields) {
  const geometry g{256, 4};
  const auto server = serve(g);
  std::mt19937 random(20261129);
  const lossy_relay relay(server->port(), {0, 0, 0}, 1,
                          [&random](std::span<std::uint8_t> datagram, const relay_hop &, const relay_hop &to) {
                            for (auto n = 1 + random() % 3; n != 0; --n) { // headers more often than the rest
                              const std::size_t size =
                                  random() % 2 == 0 ? datagram.size() : std::min<std::size_t>(datagram.size(), 60);
                              datagram[random() % size] = static_cast<std::uint8_t>(random());
                            }
                            if (roce())
                              detail::seal_with_icrc({to.from, to.to}, datagram);
                          });
  const auto client = call(g, *server);
  for (std::uint32_t n = 0; n < 150; ++n) {
    const auto hostile = datagrams(g, relay.port(), 8);
    for (std::uint32_t id = 0; id < 4; ++id)
      EXPECT_TRUE(hostile->send(id, kIncrement, bytes(1 + (n + id) % 200)));
    const bytes text{static_cast<std::uint8_t>(n)};
    ASSERT_TRUE(client->send(n, kIncrement, text));
    ASSERT_NO_FATAL_FAILURE(expect_incremented(*client, n, text));
  }
  const std::string last = server->stop(); // while the relay still sends: the sums of counters need not agree
  EXPECT_GT(count_in(last, "count"), 150u) << last;
  if (roce()) {
    EXPECT_GT(count_in(last, "unfit") + count_in(last, "sequence"), 25u) << last;
    EXPECT_GE(count_in(last, "messages"), 150u) << last;
  }
}

TEST_P(DatagramProcesses, RecoverWhenTheServerIsKilled) {
  const geometry g;
  const std::uint32_t port = unused_udp_port();
  auto server = serve(g, {"--replay-window=256"}, port);
  const auto client = datagrams(g, port, 16, 20ms);
  std::uint64_t next = 1;
  for (std::uint64_t life = 0; life < campaign_kills(3); ++life) {
    expect_answered(send_messages(*client, next, 100), 100);
    next += 100;
    for (unsigned n = 0; n < 8; ++n) // in flight when it dies
      client->send(static_cast<std::uint32_t>(next + n), kRecord, payload_of(next + n), next + n);
    server->kill();
    server = serve(g, {"--replay-window=256"}, port);
    for (int n = 0; n < 8; ++n) { // the answer of either server
      const auto reply = client->receive_within(kDeadline);
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

TEST_P(DatagramProcesses, ExecuteEachMessageOnceOverALossyNetwork) {
  const std::uint64_t messages = campaign_messages(kSanitized ? 3000 : roce() ? 10000 : 20000);
  const geometry g{600, 32, 256};
  const auto server = serve(g, {"--replay-window=1024"});
  lossy_relay relay(server->port(), {}, 20261124, roce() ? seal_anew : relay_rewrite{});
  const auto client = datagrams(g, relay.port(), 32, 10ms);
  expect_answered(send_messages(*client, 0xFFFFFF00u, messages, 60), messages); // ids wrap around; RoCE: two packets
  EXPECT_GT(client->get().repeated(), 0u);
  const std::string last = server->stop();
  expect_sums(last);
  EXPECT_EQ(count_in(last, "different"), messages);
  EXPECT_EQ(count_in(last, "twice"), 0u);
  EXPECT_GT(count_in(last, "replays") + count_in(last, "duplicates"), 0u);
  const detail::roce_counters &packets = client->packets();
  if (roce()) {
    EXPECT_GT(count_in(last, "broken"), 0u) << "messages of which one packet was lost";
    EXPECT_EQ(count_in(last, "icrc") + packets.dropped_icrc.value(), 0u);
  }
  const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf("%s  relay: lost=%llu repeated=%llu delayed=%llu client: repeated=%llu unexpected=%llu broken=%llu\n",
              last.c_str(), number(relay.lost()), number(relay.repeated()), number(relay.delayed()),
              number(client->get().repeated()), number(client->unexpected()), number(packets.messages_broken.value()));
}

TEST_P(DatagramProcesses, AnswerAfterTheNetworkWasDown) {
  const geometry g;
  const auto server = serve(g, {"--replay-window=64"});
  lossy_relay relay(server->port(), {0, 0, 0}, 1, roce() ? seal_anew : relay_rewrite{});
  const auto client = datagrams(g, relay.port(), 8, 10ms);
  expect_answered(send_messages(*client, 1, 10), 10);
  relay.set(1); // all is lost
  for (std::uint64_t n = 20; n < 24; ++n)
    EXPECT_TRUE(client->send(static_cast<std::uint32_t>(n), kRecord, payload_of(n), n));
  EXPECT_FALSE(client->receive_within(60ms));
  relay.set(0);
  for (int n = 0; n < 4; ++n)
    EXPECT_TRUE(client->receive_within(kDeadline));
  EXPECT_EQ(client->get().num_open(), 0u);
  EXPECT_EQ(count_in(server->stop(), "twice"), 0u);
}

} // namespace
} // namespace cudaq::realtime::test

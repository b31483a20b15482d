// SPDX-License-Identifier: Apache-2.0
// What the wires of roce and udp add to the promises of provider_processes_test.cpp: packets, bad frames in good
// packets, and clients of the existing wire of udp, whose requests all have the id 0.
#include "unittests/support/program_paths.h"
#include "unittests/transport/datagram/datagram_server_process.h"
#include "unittests/transport/datagram/datagram_service.h"
#include "unittests/transport/roce/roce_requester.h"

#include <arpa/inet.h>
#include <set>

namespace cudaq::realtime::test {
namespace {

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

TEST(RoceProcess, AnswersNeitherBadFramesNorUnknownFunctions) {
  for (const std::vector<std::string> &shape : {std::vector<std::string>{}, {"--unified"}}) {
    std::vector<std::string> options{"--num-slots=4", "--port=0", "--peer-port=0"};
    options.insert(options.end(), shape.begin(), shape.end());
    datagram_server_process server(CUDAQ_ROCE_PROVIDER, options);
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
}

TEST(UdpReusedIds, EachRequestOfABurstIsAnsweredInADatagramOfASlotsSize) {
  for (const std::vector<std::string> &shape : {std::vector<std::string>{}, {"--unified"}}) {
    std::vector<std::string> options{"--num-slots=4"};
    options.insert(options.end(), shape.begin(), shape.end());
    datagram_server_process server(CUDAQ_UDP_PROVIDER, options);
    udp_peer peer(server.port());
    for (int n = 0; n < 50; ++n)
      peer.send(request_bytes(kIncrement, 0, {static_cast<std::uint8_t>(n)}, 256));
    std::multiset<std::uint8_t> results;
    for (int n = 0; n < 50; ++n) {
      const auto answer = peer.receive();
      ASSERT_TRUE(answer) << n;
      EXPECT_EQ(answer->size(), 256u);
      results.insert(result_of(*answer).at(0));
    }
    for (int n = 0; n < 50; ++n)
      EXPECT_EQ(results.count(static_cast<std::uint8_t>(n + 1)), 1u);
    EXPECT_EQ(count_in(server.stop(), "count"), 50u);
  }
}

} // namespace
} // namespace cudaq::realtime::test

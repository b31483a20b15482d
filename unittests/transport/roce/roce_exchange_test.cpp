// SPDX-License-Identifier: Apache-2.0
// What the wire of roce adds to the providers over datagrams: the golden packets of a sensor bridge from packet to
// slot, why a packet is dropped, and frames that the system refuses.
#include "lib/transport/datagram/datagram_exchange.h"
#include "lib/transport/roce/roce_options.h"
#include "unittests/transport/roce/roce_golden.h"
#include "unittests/transport/roce/roce_requester.h"

namespace cudaq::realtime::test {
namespace {

/// The provider's exchange, without threads: the test polls.
struct RoceExchange : ::testing::Test {
  void open(detail::roce_options options = {}) {
    options.common.provider = "roce";
    options.common.slot_size = options.wire.slot_size;
    options.common.num_slots = options.wire.num_slots = 4;
    memory.emplace(ring_shape{4, options.wire.slot_size, false});
    exchange.emplace(options.common, detail::make_roce_wire(options.wire, counters), memory->ring);
    ASSERT_EQ(exchange->open().text(), "");
    ASSERT_EQ(detail::udp_address_of("own", "127.0.0.1", 0, own).text(), "");
    peer.emplace();
    ASSERT_EQ(peer->open(own, 0).text(), "");
    own = peer->local();
    server = exchange->socket().local();
  }
  /// A packet of the peer; `sealed`: with its own path.
  void send(std::vector<std::uint8_t> datagram, bool sealed = true) {
    if (sealed)
      detail::seal_with_icrc({own, server}, datagram);
    ::sendto(peer->fd(), datagram.data(), datagram.size(), 0, server.get(), server.length);
  }
  /// Whether the next packet completes a request, which is then in slot 0.
  bool arrives() {
    std::uint32_t n = 0;
    EXPECT_TRUE(eventually([&] { return (n = exchange->receive(1)) != 0; }));
    return exchange->accept_received(0, 0);
  }

  std::shared_ptr<detail::roce_counters> counters = std::make_shared<detail::roce_counters>();
  std::optional<host_ring> memory;
  std::optional<detail::datagram_exchange> exchange;
  std::optional<detail::udp_socket> peer;
  detail::udp_address own, server;
};

TEST_F(RoceExchange, PutsAPageOfTheSensorBridgeIntoASlot) {
  open();
  const golden_packet begin = golden_packet_named("packets.txt", "bridge_begin");
  const golden_packet end = golden_packet_named("packets.txt", "bridge_end");
  // The page is a request of 188 bytes: a header, then bytes of the golden payload.
  std::vector<std::uint8_t> first = begin.datagram;
  const cudaq_rpc_header_t header = {CUDAQ_RPC_MAGIC_REQUEST, 5, 188 - CUDAQ_RPC_HEADER_SIZE, 77, 0};
  std::memcpy(first.data() + detail::kBthBytes + detail::kRethBytes, &header, sizeof(header));
  send(first);
  EXPECT_FALSE(arrives());
  send(end.datagram);
  ASSERT_TRUE(arrives());
  const std::uint8_t *const slot = memory->rx_slot(0);
  EXPECT_EQ(std::memcmp(slot, first.data() + 28, 128), 0);
  EXPECT_EQ(std::memcmp(slot + 128, end.datagram.data() + 32, 60), 0);
  for (std::size_t i = 188; i < 256; ++i)
    EXPECT_EQ(slot[i], 0) << i;
  EXPECT_EQ(counters->messages.value(), 1u);
  EXPECT_EQ(counters->parts.value(), 1u);
}

TEST_F(RoceExchange, CountsWhyItDropsAPacket) {
  open();
  const std::vector<std::uint8_t> good = golden_packet_named("packets.txt", "opcode_24").datagram;
  const auto with = [&good](std::size_t at, std::uint8_t value) {
    std::vector<std::uint8_t> changed = good;
    changed[at] = value;
    return changed;
  };
  const detail::roce_counters &c = *counters;
  const std::vector<std::pair<std::vector<std::uint8_t>, const detail::counter *>> cases = {
      {std::vector<std::uint8_t>(8), &c.dropped_short},
      {with(0, 0x04), &c.dropped_opcode},
      {with(1, 0x3F), &c.dropped_version},
      {with(2, 0x12), &c.dropped_pkey},
      {with(7, 0x12), &c.dropped_qp},
      {std::vector<std::uint8_t>(5000), &c.dropped_length},
      {with(0, 0x22), &c.dropped_sequence},
  };
  for (const auto &[datagram, reason] : cases) {
    send(datagram, datagram.size() == good.size());
    EXPECT_FALSE(arrives());
    EXPECT_EQ(reason->value(), 1u);
  }
  send(good, false); // sealed for other addresses
  EXPECT_FALSE(arrives());
  EXPECT_EQ(c.dropped_icrc.value(), 1u);
  EXPECT_EQ(c.packets.value(), cases.size() + 1);
  EXPECT_EQ(exchange->counters().received.value(), 0u);
}

TEST_F(RoceExchange, TreatsAnUnknownIdentificationAsItsPolicySays) {
  std::vector<std::uint8_t> datagram(detail::kBthBytes + CUDAQ_RPC_HEADER_SIZE + detail::kIcrcBytes);
  const cudaq_rpc_header_t header = {CUDAQ_RPC_MAGIC_REQUEST, 5, 0, 77, 0};
  datagram[0] = 0x24;
  datagram[2] = datagram[3] = 0xFF;
  datagram[7] = detail::kServerQp;
  std::memcpy(datagram.data() + detail::kBthBytes, &header, sizeof(header));
  for (const detail::icrc_policy policy :
       {detail::icrc_policy::check, detail::icrc_policy::full, detail::icrc_policy::off}) {
    counters = std::make_shared<detail::roce_counters>();
    exchange.reset();
    detail::roce_options options;
    options.wire.icrc = policy;
    open(options);
    // Identification 1 changes the ICRC of all packets of one length in the same way.
    const golden_packet zero = golden_packet_named("packets.txt", "routed");
    const golden_packet one = golden_packet_named("packets.txt", "identification_0001");
    ASSERT_EQ(zero.datagram.size(), datagram.size());
    detail::seal_with_icrc({own, server}, datagram);
    for (std::size_t i = datagram.size() - 4; i < datagram.size(); ++i)
      datagram[i] = static_cast<std::uint8_t>(datagram[i] ^ zero.datagram[i] ^ one.datagram[i]);
    send(datagram, false);
    EXPECT_EQ(arrives(), policy != detail::icrc_policy::full);
    EXPECT_EQ(counters->icrc_partly.value(), policy == detail::icrc_policy::off ? 0u : 1u);
    EXPECT_EQ(counters->icrc_unchecked.value(), policy == detail::icrc_policy::off ? 1u : 0u);
    EXPECT_EQ(counters->dropped_icrc.value(), policy == detail::icrc_policy::full ? 1u : 0u);
  }
}

TEST(RoceSender, CountsFramesThatTheSystemRefused) {
  detail::roce_wire_options options;
  options.slot_size = 1000, options.mtu = 256; // four packets a frame
  const auto wire = detail::make_roce_wire(options, std::make_shared<detail::roce_counters>());
  detail::udp_address own, no_receiver;
  ASSERT_EQ(detail::udp_address_of("own", "127.0.0.1", 0, own).text(), "");
  ASSERT_EQ(detail::udp_address_of("peer", "255.255.255.255", 4791, no_receiver).text(), "");
  detail::udp_socket socket;
  ASSERT_EQ(socket.open(own, 0).text(), "");
  ASSERT_EQ(wire->prepare(socket).text(), "");
  const auto sender = wire->make_sender();
  std::vector<std::uint8_t> frame(1000);
  for (const detail::udp_address &to : {socket.local(), no_receiver, socket.local(), socket.local()})
    sender->add(to, frame);
  const detail::frame_sender::result sent = sender->flush(socket);
  EXPECT_EQ(sent.done, 4u);
  EXPECT_EQ(sent.failed, 1u) << "a socket may not send to all addresses";
}

} // namespace
} // namespace cudaq::realtime::test

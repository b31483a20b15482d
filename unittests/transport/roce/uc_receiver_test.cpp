// SPDX-License-Identifier: Apache-2.0
// Messages out of packets: what is complete is delivered, and nothing else.
#include "lib/transport/roce/uc_receiver.h"

#include <algorithm>
#include <deque>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <set>

namespace cudaq::realtime::detail {
namespace {

using bytes = std::vector<std::uint8_t>;

struct UcReceiver : ::testing::Test {
  static constexpr std::uint32_t kMtu = 256, kPage = 600, kRkey = 0x77;

  /// The message that ends with the packet.
  std::optional<bytes> take(roce_packet packet, const bytes &payload, std::uint32_t peer = 0) {
    packet.payload = payload;
    const uc_receiver::message message = receiver.receive(peer, packet);
    return message.complete ? std::optional(bytes(message.bytes.begin(), message.bytes.end())) : std::nullopt;
  }
  std::optional<bytes> send(uc_opcode opcode, std::uint32_t psn, const bytes &payload, std::uint32_t peer = 0) {
    roce_packet packet;
    packet.opcode = opcode;
    packet.psn = psn;
    return take(packet, payload, peer);
  }
  std::optional<bytes> write(uc_opcode opcode, std::uint32_t psn, const bytes &payload, std::uint64_t address = 0,
                             std::uint32_t immediate = 0, std::optional<std::uint32_t> length = {}) {
    roce_packet packet;
    packet.opcode = opcode;
    packet.psn = psn;
    packet.rkey = kRkey;
    packet.address = address;
    packet.immediate = immediate;
    packet.length = length.value_or(static_cast<std::uint32_t>(payload.size()));
    return take(packet, payload);
  }
  static bytes run(std::size_t size, std::uint8_t first) {
    bytes all(size);
    for (std::size_t i = 0; i < size; ++i)
      all[i] = static_cast<std::uint8_t>(first + i);
    return all;
  }
  static bytes joined(std::initializer_list<bytes> parts) {
    bytes all;
    for (const bytes &part : parts)
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }
  /// Each packet of the test has one end.
  void TearDown() override {
    const roce_counters &c = counters;
    EXPECT_EQ(taken(), c.messages.value() + c.parts.value() + c.dropped_rkey.value() + c.dropped_address.value() +
                           c.dropped_length.value() + c.dropped_immediate.value() + c.dropped_sequence.value());
  }
  std::uint64_t taken() const { return expected_packets; }

  roce_counters counters;
  uc_receiver receiver{{kMtu, kPage, 4, kRkey}, 2, counters};
  std::uint64_t expected_packets = 0;
};

TEST_F(UcReceiver, DeliversASendOfAnyNumberOfPackets) {
  EXPECT_EQ(send(uc_opcode::send_only, 5, run(100, 1)), run(100, 1));
  EXPECT_EQ(send(uc_opcode::send_only_immediate, 6, {}), bytes());
  EXPECT_FALSE(send(uc_opcode::send_first, 7, run(kMtu, 1)));
  EXPECT_FALSE(send(uc_opcode::send_middle, 8, run(kMtu, 2)));
  EXPECT_EQ(send(uc_opcode::send_last, 9, run(88, 3)), joined({run(kMtu, 1), run(kMtu, 2), run(88, 3)}));
  EXPECT_EQ(counters.messages_broken.value(), 0u);
  EXPECT_EQ(counters.packets_lost.value(), 0u);
  expected_packets = 5;
}

TEST_F(UcReceiver, DropsTheRestOfAMessageAfterAGap) {
  EXPECT_FALSE(send(uc_opcode::send_first, 0xFFFFFE, run(kMtu, 1)));
  EXPECT_FALSE(send(uc_opcode::send_last, 0, run(10, 1))) << "0xFFFFFF is missing";
  EXPECT_EQ(counters.packets_lost.value(), 1u);
  EXPECT_EQ(counters.messages_broken.value(), 1u);
  EXPECT_FALSE(send(uc_opcode::send_first, 1, run(kMtu, 1)));
  EXPECT_FALSE(send(uc_opcode::send_middle, 3, run(kMtu, 1)));
  EXPECT_FALSE(send(uc_opcode::send_last, 4, run(10, 1))) << "in sequence, but the message is broken";
  EXPECT_EQ(counters.dropped_sequence.value(), 3u);
  EXPECT_EQ(send(uc_opcode::send_only, 9, run(3, 4)), run(3, 4)) << "the next message is not harmed";
  expected_packets = 6;
}

TEST_F(UcReceiver, GoesOnAfterALatePacketOfAMessage) {
  EXPECT_FALSE(send(uc_opcode::send_first, 5, run(kMtu, 1)));
  EXPECT_FALSE(send(uc_opcode::send_middle, 6, run(kMtu, 2)));
  EXPECT_FALSE(send(uc_opcode::send_middle, 6, run(kMtu, 9))) << "twice";
  EXPECT_EQ(send(uc_opcode::send_last, 7, run(8, 3)), joined({run(kMtu, 1), run(kMtu, 2), run(8, 3)}));
  EXPECT_EQ(counters.packets_late.value(), 1u);
  expected_packets = 4;
}

TEST_F(UcReceiver, RefusesWhatDoesNotFitTheOpcode) {
  EXPECT_FALSE(send(uc_opcode::send_first, 1, run(kMtu - 4, 1)));
  EXPECT_FALSE(send(uc_opcode::send_only, 2, run(kMtu + 4, 1)));
  EXPECT_FALSE(send(uc_opcode::send_first, 3, run(kMtu, 1)));
  EXPECT_FALSE(send(uc_opcode::send_last, 4, {}));
  EXPECT_FALSE(send(uc_opcode::send_first, 5, run(kMtu, 1)));
  EXPECT_FALSE(send(uc_opcode::send_middle, 6, run(kMtu, 1)));
  EXPECT_FALSE(send(uc_opcode::send_last, 7, run(kMtu, 1))) << "longer than a page";
  EXPECT_EQ(counters.dropped_length.value(), 4u);
  EXPECT_FALSE(send(uc_opcode::send_first, 8, run(kMtu, 1)));
  EXPECT_FALSE(write(uc_opcode::write_last, 9, run(10, 1)));
  EXPECT_EQ(counters.dropped_sequence.value(), 1u) << "a write does not go on with a send";
  expected_packets = 9;
}

TEST_F(UcReceiver, DeliversAPageOfSeveralWrites) {
  EXPECT_EQ(write(uc_opcode::write_only_immediate, 1, run(50, 1), 0, 0), run(50, 1));
  EXPECT_FALSE(write(uc_opcode::write_only, 2, run(200, 1), 2 * kPage));
  EXPECT_FALSE(write(uc_opcode::write_only, 3, run(200, 2), 2 * kPage + 200));
  EXPECT_EQ(write(uc_opcode::write_only_immediate, 4, run(20, 3), 2 * kPage + 400, 2 | 4 << 12),
            joined({run(200, 1), run(200, 2), run(20, 3)}));
  // The bytes between two writes are 0, not those of an earlier page.
  EXPECT_FALSE(write(uc_opcode::write_only, 5, run(100, 1), kPage));
  EXPECT_EQ(write(uc_opcode::write_only_immediate, 6, run(10, 2), kPage + 130, 1),
            joined({run(100, 1), bytes(30), run(10, 2)}));
  // An immediate alone.
  EXPECT_FALSE(write(uc_opcode::write_only, 7, run(100, 1), kPage));
  EXPECT_EQ(write(uc_opcode::write_only_immediate, 8, {}, 0, 1), run(100, 1));
  expected_packets = 8;
}

TEST_F(UcReceiver, DeliversAWriteOfSeveralPackets) {
  EXPECT_FALSE(write(uc_opcode::write_first, 1, run(kMtu, 1), 3 * kPage, 0, kPage));
  EXPECT_FALSE(write(uc_opcode::write_middle, 2, run(kMtu, 2)));
  EXPECT_EQ(write(uc_opcode::write_last_immediate, 3, run(kPage - 2 * kMtu, 3), 0, 3),
            joined({run(kMtu, 1), run(kMtu, 2), run(kPage - 2 * kMtu, 3)}));
  expected_packets = 3;
}

TEST_F(UcReceiver, NeverDeliversAPageWithAHole) {
  EXPECT_FALSE(write(uc_opcode::write_only, 1, run(200, 1), 0));
  EXPECT_FALSE(write(uc_opcode::write_only_immediate, 3, run(200, 3), 400, 0)) << "2 is lost";
  EXPECT_FALSE(write(uc_opcode::write_only_immediate, 4, run(200, 3), 400, 0)) << "the page has no begin";
  EXPECT_FALSE(write(uc_opcode::write_only, 5, run(200, 1), 0));
  EXPECT_FALSE(write(uc_opcode::write_only, 6, run(200, 2), kPage)) << "another page";
  EXPECT_FALSE(write(uc_opcode::write_only_immediate, 7, run(200, 3), 400, 0));
  EXPECT_FALSE(write(uc_opcode::write_only_immediate, 8, {}, 0, 0)) << "no page is open";
  EXPECT_FALSE(write(uc_opcode::write_first, 9, run(kMtu, 1), 0, 0, kPage));
  EXPECT_FALSE(write(uc_opcode::write_last_immediate, 10, run(10, 1), 0, 0)) << "the write is longer";
  EXPECT_EQ(counters.messages_broken.value(), 4u);
  expected_packets = 9;
}

TEST_F(UcReceiver, BreaksAnOpenPageAtASendThatDoesNotFollow) {
  EXPECT_FALSE(write(uc_opcode::write_only, 1, run(200, 1), 0));
  EXPECT_EQ(send(uc_opcode::send_only, 2, run(8, 1)), run(8, 1)) << "which leaves the page as it is";
  EXPECT_EQ(write(uc_opcode::write_only_immediate, 3, run(200, 2), 200, 0), joined({run(200, 1), run(200, 2)}));
  EXPECT_FALSE(write(uc_opcode::write_only, 4, run(200, 1), 0));
  EXPECT_EQ(send(uc_opcode::send_only, 6, run(8, 1)), run(8, 1)) << "5 is lost: perhaps of the page";
  EXPECT_FALSE(write(uc_opcode::write_only_immediate, 7, run(200, 3), 400, 0));
  EXPECT_FALSE(write(uc_opcode::write_only, 8, run(200, 1), 0));
  EXPECT_EQ(send(uc_opcode::send_only, 2, run(8, 1)), run(8, 1)) << "late";
  EXPECT_FALSE(write(uc_opcode::write_only_immediate, 3, run(200, 2), 200, 0)) << "of an earlier page";
  EXPECT_EQ(counters.messages_broken.value(), 2u);
  expected_packets = 9;
}

TEST_F(UcReceiver, RefusesAddressesRkeysAndImmediatesOfOtherPages) {
  for (const std::uint64_t address :
       {std::uint64_t{4} * kPage, std::uint64_t{kPage} - 9, ~std::uint64_t{0} - 5, ~std::uint64_t{0} / kPage * kPage}) {
    EXPECT_FALSE(write(uc_opcode::write_only_immediate, 0, run(10, 1), address));
    receiver.restart(0); // what precedes it is not what is tested
  }
  EXPECT_EQ(counters.dropped_address.value() + counters.dropped_sequence.value(), 4u);
  EXPECT_GE(counters.dropped_address.value(), 2u);
  roce_packet other_rkey;
  other_rkey.opcode = uc_opcode::write_only_immediate;
  other_rkey.rkey = kRkey + 1;
  other_rkey.length = 4;
  EXPECT_FALSE(take(other_rkey, run(4, 1)));
  EXPECT_EQ(counters.dropped_rkey.value(), 1u);
  EXPECT_FALSE(write(uc_opcode::write_only_immediate, 1, run(4, 1), kPage, 2));
  EXPECT_EQ(counters.dropped_immediate.value(), 1u);
  EXPECT_FALSE(write(uc_opcode::write_only_immediate, 2, run(4, 1), 0, 0, 5)) << "the length of RETH";
  EXPECT_FALSE(write(uc_opcode::write_first, 3, run(kMtu, 1), 0, 0, kMtu));
  EXPECT_EQ(counters.dropped_length.value(), 2u);
  expected_packets = 8;
}

TEST_F(UcReceiver, KeepsPeersApart) {
  EXPECT_FALSE(send(uc_opcode::send_first, 1, run(kMtu, 1), 0));
  EXPECT_FALSE(send(uc_opcode::send_first, 9, run(kMtu, 5), 1));
  EXPECT_EQ(send(uc_opcode::send_last, 10, run(4, 6), 1), joined({run(kMtu, 5), run(4, 6)}));
  EXPECT_EQ(send(uc_opcode::send_last, 2, run(4, 2), 0), joined({run(kMtu, 1), run(4, 2)}));
  EXPECT_FALSE(send(uc_opcode::send_first, 3, run(kMtu, 1), 0));
  receiver.restart(0);
  EXPECT_FALSE(send(uc_opcode::send_last, 4, run(4, 2), 0)) << "of another peer";
  expected_packets = 6;
}

// Random messages over a network that loses, repeats and reorders packets: each message that is delivered is, byte for
// byte, one that was sent.

constexpr std::uint32_t kMtu = 256, kPage = 600, kPages = 2;

struct sent_packet {
  roce_packet packet;
  bytes payload;
};

/// A requester that mixes SENDs, pages of several writes, and SENDs between the writes of a page.
class random_requester {
public:
  explicit random_requester(std::uint32_t seed) : random_(seed) {}

  /// Appends the packets of one message, perhaps with others between them.
  void message(std::deque<sent_packet> &to) {
    if (below(3) == 0)
      send(to);
    else
      page(to);
  }
  bool has_sent(const bytes &message) const { return sent_.count(message) != 0; }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_()) % n; }

private:
  bytes content(std::size_t size) {
    bytes all(size);
    for (std::uint8_t &byte : all)
      byte = static_cast<std::uint8_t>(random_());
    return all;
  }
  void packet(std::deque<sent_packet> &to, uc_opcode opcode, const bytes &payload, std::uint64_t address = 0,
              std::uint32_t length = 0, std::uint32_t immediate = 0) {
    roce_packet p;
    p.opcode = opcode;
    p.psn = psn_++;
    p.address = address, p.length = length, p.immediate = immediate;
    to.push_back({p, payload});
  }
  void send(std::deque<sent_packet> &to) {
    const bytes all = content(8 + below(kPage - 8));
    sent_.insert(all);
    std::size_t at = 0;
    do {
      const std::size_t size = std::min<std::size_t>(kMtu, all.size() - at);
      const bool first = at == 0, last = at + size == all.size();
      packet(
          to,
          first ? (last ? uc_opcode::send_only : uc_opcode::send_first)
                : (last ? uc_opcode::send_last : uc_opcode::send_middle),
          bytes(all.begin() + static_cast<std::ptrdiff_t>(at), all.begin() + static_cast<std::ptrdiff_t>(at + size)));
      at += size;
    } while (at < all.size());
  }
  void page(std::deque<sent_packet> &to) {
    const std::uint32_t number = below(kPages);
    const bytes all = content(8 + below(kPage - 8));
    sent_.insert(all);
    const std::uint32_t step = 100 + below(kMtu - 100);
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t size = std::min<std::size_t>(step, all.size() - at);
      const bool last = at + size == all.size();
      packet(to, last ? uc_opcode::write_only_immediate : uc_opcode::write_only,
             bytes(all.begin() + static_cast<std::ptrdiff_t>(at), all.begin() + static_cast<std::ptrdiff_t>(at + size)),
             std::uint64_t{number} * kPage + at, static_cast<std::uint32_t>(size), last ? number : 0);
      at += size;
      if (!last && below(4) == 0) { // it leaves the page as it is
        const bytes between = content(8 + below(100));
        sent_.insert(between);
        packet(to, uc_opcode::send_only, between);
      }
    }
  }

  std::mt19937 random_;
  std::uint32_t psn_ = 0;
  std::set<bytes> sent_;
};

TEST(UcReceiverOverALossyNetwork, DeliversOnlyWhatWasSent) {
  std::uint64_t delivered = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    roce_counters counters;
    uc_receiver receiver({kMtu, kPage, kPages, 0}, 1, counters);
    random_requester requester(seed);
    std::deque<sent_packet> sent, network;
    for (int i = 0; i < 500; ++i)
      requester.message(sent);
    const auto arrive = [&](const sent_packet &p) {
      roce_packet packet = p.packet;
      packet.payload = p.payload;
      const uc_receiver::message message = receiver.receive(0, packet);
      if (!message.complete)
        return;
      ++delivered;
      EXPECT_TRUE(requester.has_sent(bytes(message.bytes.begin(), message.bytes.end())))
          << "seed " << seed << ", PSN " << packet.psn;
    };
    for (const sent_packet &p : sent) {
      const std::uint32_t fate = requester.below(20);
      if (fate != 0) // otherwise lost
        network.push_back(p);
      if (fate == 1)
        network.push_back(p); // twice
      if (network.size() > 1 && fate == 2)
        std::swap(network[network.size() - 1], network[requester.below(static_cast<std::uint32_t>(network.size()))]);
      while (network.size() > 8) {
        arrive(network.front());
        network.pop_front();
      }
    }
    for (const sent_packet &p : network)
      arrive(p);
  }
  EXPECT_GT(delivered, 5000u); // of 20000
}

} // namespace
} // namespace cudaq::realtime::detail

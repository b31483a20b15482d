// SPDX-License-Identifier: Apache-2.0
// Random messages over a network that loses, repeats and reorders packets: each message that is delivered is, byte for
// byte, one that was sent.
#include "lib/transport/roce/uc_receiver.h"

#include <algorithm>
#include <deque>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace cudaq::realtime::detail {
namespace {

using bytes = std::vector<std::uint8_t>;
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

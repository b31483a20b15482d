// SPDX-License-Identifier: Apache-2.0
// Packets of RoCEv2 through the parser, the ICRC and the receiver of messages. A sender makes messages; the input says
// which of their packets arrive, in any order and any number of times, and what else arrives. Each message that is
// delivered is one that was sent; each packet has one end.
#include "lib/transport/roce/roce_icrc.h"
#include "lib/transport/roce/uc_receiver.h"
#include "unittests/fuzz/fuzz_input.h"

#include <vector>

namespace {

using namespace cudaq::realtime::detail;
using cudaq::realtime::test::fuzz_input;
using cudaq::realtime::test::require;

constexpr std::uint32_t kMtu = 256, kPage = 700, kPages = 3, kRkey = 7;
constexpr std::uint32_t kSender = 0, kStranger = 1; ///< peers
constexpr std::size_t kMaxPackets = 200;

class checked_receiver {
public:
  /// A message of this size: a SEND, a write of several packets, or a page of several writes.
  void send(std::uint8_t shape, std::uint32_t size) {
    if (packets_.size() > kMaxPackets)
      return;
    const std::uint32_t page = shape / 3 % kPages;
    const bool with_immediate = (shape & 0x40) != 0;
    sent_.emplace_back(size);
    std::vector<std::uint8_t> &content = sent_.back();
    for (std::uint8_t &byte : content)
      byte = static_cast<std::uint8_t>(random_ = random_ * 1664525u + 1013904223u, random_ >> 24);
    std::uint32_t at = 0;
    do {
      const std::uint32_t part = std::min(kMtu, size - at);
      const bool first = at == 0, last = at + part == size;
      roce_packet packet;
      packet.psn = psn_++ & k24Bits;
      packet.rkey = kRkey;
      packet.immediate = page;
      packet.address = std::uint64_t{page} * kPage + at;
      packet.payload = std::span(content).subspan(at, part);
      if (shape % 3 == 0) {
        packet.opcode = first ? (last ? (with_immediate ? uc_opcode::send_only_immediate : uc_opcode::send_only)
                                      : uc_opcode::send_first)
                              : (last ? (with_immediate ? uc_opcode::send_last_immediate : uc_opcode::send_last)
                                      : uc_opcode::send_middle);
      } else if (shape % 3 == 1) {
        packet.length = size;
        packet.opcode = first ? (last ? uc_opcode::write_only_immediate : uc_opcode::write_first)
                              : (last ? uc_opcode::write_last_immediate : uc_opcode::write_middle);
      } else {
        packet.length = part;
        packet.opcode = last ? uc_opcode::write_only_immediate : uc_opcode::write_only;
      }
      store(packet);
      at += part;
    } while (at < size);
  }
  /// One of the packets arrives, as it was sent or with some byte changed.
  void arrive(std::uint8_t which, std::uint8_t changed_at, std::uint8_t change) {
    if (packets_.empty())
      return;
    std::vector<std::uint8_t> datagram = packets_[which % packets_.size()];
    datagram[changed_at % datagram.size()] ^= change;
    const bool passes = check_icrc(path_, datagram) == icrc_finding::verified;
    const bool same = change == 0 || changed_at % datagram.size() == 4; // a switch may change byte 4
    require(passes == same, "the ICRC finds a byte that was changed");
    if (passes)
      deliver(kSender, datagram, true);
  }
  void arrive_from_a_stranger(std::span<const std::uint8_t> bytes) {
    deliver(kStranger, {bytes.begin(), bytes.end()}, false);
  }
  void skip(std::uint32_t numbers) { psn_ += numbers; }

private:
  void store(const roce_packet &packet) {
    std::vector<std::uint8_t> datagram(kMaxHeaderBytes + packet.payload.size() + 3 + kIcrcBytes);
    datagram.resize(write_roce_packet(packet, datagram.data()));
    seal_with_icrc(path_, datagram);
    packets_.push_back(datagram);
  }
  void deliver(std::uint32_t peer, const std::vector<std::uint8_t> &datagram, bool must_be_good) {
    roce_packet packet;
    const packet_finding finding = read_roce_packet(datagram, packet);
    require(!must_be_good || finding == packet_finding::good, "what is written can be read");
    if (finding != packet_finding::good)
      return;
    check_icrc(path_, datagram);
    ++taken_;
    const uc_receiver::message message = receiver_.receive(peer, packet);
    const roce_counters &c = counters_;
    require(taken_ == c.messages.value() + c.parts.value() + c.dropped_rkey.value() + c.dropped_address.value() +
                          c.dropped_length.value() + c.dropped_immediate.value() + c.dropped_sequence.value(),
            "each packet has one end");
    if (!message.complete)
      return;
    require(message.bytes.size() <= kPage, "a message fits into a slot");
    bool known = peer != kSender;
    for (const std::vector<std::uint8_t> &content : sent_)
      known = known || std::equal(content.begin(), content.end(), message.bytes.begin(), message.bytes.end());
    require(known, "each message that is delivered was sent");
  }

  roce_path path_;
  roce_counters counters_;
  uc_receiver receiver_{{kMtu, kPage, kPages, kRkey}, 2, counters_};
  std::vector<std::vector<std::uint8_t>> sent_, packets_;
  std::uint32_t psn_ = 0xFFFFF0, random_ = 1;
  std::uint64_t taken_ = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  fuzz_input input(data, size);
  checked_receiver receiver;
  while (!input.empty()) {
    const auto step = input.take<std::uint8_t>();
    switch (step & 3) {
    case 0:
      receiver.send(input.take<std::uint8_t>(), 1 + input.take<std::uint16_t>() % kPage);
      break;
    case 1: {
      const auto which = input.take<std::uint8_t>();
      receiver.arrive(which, 0, 0);
      break;
    }
    case 2: {
      const auto which = input.take<std::uint8_t>(), at = input.take<std::uint8_t>();
      receiver.arrive(which, at, input.take<std::uint8_t>());
      break;
    }
    default:
      if ((step & 4) != 0)
        receiver.skip(step >> 3);
      else
        receiver.arrive_from_a_stranger(input.bytes(input.take<std::uint8_t>()));
    }
  }
  return 0;
}

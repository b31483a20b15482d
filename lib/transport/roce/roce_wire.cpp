// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/roce_wire.h"

#include "lib/transport/datagram/peer_table.h"
#include "lib/transport/datagram/udp_socket.h"
#include "lib/transport/roce/roce_icrc.h"
#include "lib/transport/roce/uc_receiver.h"

#include <algorithm>

namespace cudaq::realtime::detail {
namespace {

/// A requester takes answers of any size: so it knows the server's.
constexpr std::uint32_t kLargestAnswer = 65536;

/// The state that the receiver and the senders of a wire share.
struct roce_connections {
  roce_connections(const roce_wire_options &o, roce_counters &c)
      : options(o), counters(c), peers(o.max_peers, o.peer_timeout), psn_to_send(o.max_peers),
        messages(
            {o.mtu, o.server ? o.slot_size : std::max(o.slot_size, kLargestAnswer), o.server ? o.num_slots : 0, o.rkey},
            o.max_peers, c) {}

  /// The number of a peer, which exists from now on; kNoPeer: there are too many.
  std::uint32_t peer(const udp_address &address, peer_table::time now) {
    const auto [place, is_new] = peers.find_or_add(address, now);
    if (is_new && place != peer_table::kNoPeer) {
      messages.restart(place);
      psn_to_send[place] = 0;
    }
    return place;
  }

  const roce_wire_options options;
  roce_counters &counters;
  udp_address own;
  peer_table peers;
  std::vector<std::uint32_t> psn_to_send; ///< of each peer
  uc_receiver messages;
};

class roce_receiver final : public frame_receiver {
public:
  explicit roce_receiver(roce_connections &shared)
      : shared_(shared), packets_(std::size_t{kUdpBatch} * kLargestPacket) {
    for (std::uint32_t i = 0; i < kUdpBatch; ++i)
      parts_[i] = {packets_.data() + std::size_t{i} * kLargestPacket, kLargestPacket};
  }
  int receive(const udp_socket &socket, std::uint32_t max_count) override {
    now_ = std::chrono::steady_clock::now();
    return batch_.receive(socket, max_count);
  }
  received_frame frame(std::uint32_t i) override {
    shared_.counters.packets.bump();
    roce_packet packet;
    if (counter *const reason = reason_to_drop(i, packet)) {
      reason->bump();
      return {};
    }
    const std::uint32_t peer = shared_.peer(batch_.from(i), now_);
    if (peer == peer_table::kNoPeer) {
      shared_.counters.dropped_peers.bump();
      return {};
    }
    const uc_receiver::message message = shared_.messages.receive(peer, packet);
    return message.complete ? received_frame{&batch_.from(i), message.bytes, false} : received_frame{};
  }
  std::uint32_t dropped_by_system() override { return batch_.dropped_by_system(); }

private:
  counter *reason_to_drop(std::uint32_t i, roce_packet &packet) {
    roce_counters &c = shared_.counters;
    if (batch_.cut(i))
      return &c.dropped_length;
    switch (read_roce_packet(batch_.bytes(i), packet)) {
    case packet_finding::too_short:
      return &c.dropped_short;
    case packet_finding::opcode:
      return &c.dropped_opcode;
    case packet_finding::version:
      return &c.dropped_version;
    case packet_finding::padding:
      return &c.dropped_padding;
    case packet_finding::good:
      break;
    }
    if (packet.qp != shared_.options.own_qp)
      return &c.dropped_qp;
    if (packet.pkey != kDefaultPkey)
      return &c.dropped_pkey;
    return icrc_passes(i) ? nullptr : &c.dropped_icrc;
  }
  bool icrc_passes(std::uint32_t i) {
    roce_counters &c = shared_.counters;
    if (shared_.options.icrc == icrc_policy::off) {
      c.icrc_unchecked.bump();
      return true;
    }
    switch (check_icrc({batch_.from(i), shared_.own}, batch_.bytes(i))) {
    case icrc_finding::verified:
      return true;
    case icrc_finding::partly:
      c.icrc_partly.bump();
      return shared_.options.icrc == icrc_policy::check;
    case icrc_finding::wrong:
      break;
    }
    return false;
  }

  roce_connections &shared_;
  std::vector<std::uint8_t> packets_;
  std::array<iovec, kUdpBatch> parts_{}; ///< not the targets of the frames: a packet does not begin with its frame
  receive_batch batch_{parts_};
  peer_table::time now_{};
};

/// Each frame becomes the packets of one message, or of one page.
class roce_sender final : public frame_sender {
public:
  explicit roce_sender(roce_connections &shared)
      : shared_(shared), packets_of_frame_((shared.options.slot_size + shared.options.mtu - 1) / shared.options.mtu),
        packet_room_(kMaxHeaderBytes + std::min(shared.options.mtu, shared.options.slot_size) + 3 + kIcrcBytes),
        packets_(std::size_t{kUdpBatch} * packets_of_frame_ * packet_room_), padded_(shared.options.slot_size),
        messages_(std::size_t{kUdpBatch} * packets_of_frame_), parts_(messages_.size()), to_(messages_.size()) {}
  roce_sender(const roce_sender &) = delete;
  roce_sender &operator=(const roce_sender &) = delete;

  std::uint32_t count() const override { return count_; }
  void add(const udp_address &to, std::span<std::uint8_t> frame) override { frames_[count_++] = {to, frame}; }
  result flush(const udp_socket &socket) override {
    const peer_table::time now = std::chrono::steady_clock::now();
    num_packets_ = 0;
    for (std::uint32_t i = 0; i < count_; ++i) {
      make_packets(frames_[i], now);
      frames_[i].packets_until = num_packets_;
    }
    const result sent = send_messages(socket, {messages_.data(), num_packets_});
    // If only part of a frame was sent, it is rebuilt with new PSNs; the peer drops the packets that it has already.
    result r;
    for (std::uint32_t packet = 0; r.done < count_ && frames_[r.done].packets_until <= sent.done; ++r.done) {
      bool refused = false;
      for (; packet < frames_[r.done].packets_until; ++packet)
        refused = refused || messages_[packet].msg_len == 0;
      r.failed += refused ? 1 : 0;
    }
    count_ = 0;
    return r;
  }

private:
  struct queued_frame {
    udp_address to;
    std::span<std::uint8_t> bytes;
    std::uint32_t packets_until = 0; ///< the packets of all frames up to this one
  };

  void make_packets(const queued_frame &frame, peer_table::time now) {
    const roce_wire_options &o = shared_.options;
    const std::uint32_t peer = shared_.peer(frame.to, now);
    std::uint32_t unknown_peer = 0;
    std::uint32_t &psn = peer == peer_table::kNoPeer ? unknown_peer : shared_.psn_to_send[peer];
    udp_address to = frame.to;
    if (o.peer_port != 0)
      to.set_port(static_cast<std::uint16_t>(o.peer_port));
    std::span<const std::uint8_t> left = frame.bytes;
    if (o.server) { // an answer has always the size of a slot
      const auto rest = std::copy(left.begin(), left.end(), padded_.begin());
      std::fill(rest, padded_.end(), std::uint8_t{0});
      left = padded_;
    }
    const std::size_t whole = left.size();
    do {
      roce_packet packet;
      packet.qp = o.peer_qp;
      packet.psn = psn;
      packet.payload = left.first(std::min<std::size_t>(left.size(), o.mtu));
      const bool first = left.size() == whole, last = left.size() == packet.payload.size();
      left = left.subspan(packet.payload.size());
      if (o.server) {
        packet.opcode = first ? (last ? uc_opcode::send_only : uc_opcode::send_first)
                              : (last ? uc_opcode::send_last : uc_opcode::send_middle);
      } else { // each packet is a write of its own
        packet.opcode = last ? uc_opcode::write_only_immediate : uc_opcode::write_only;
        packet.address = std::uint64_t{page_} * o.slot_size + (whole - left.size() - packet.payload.size());
        packet.rkey = o.rkey;
        packet.length = static_cast<std::uint32_t>(packet.payload.size());
        packet.immediate = page_ | psn << 12;
      }
      psn = (psn + 1) & k24Bits;
      queue(packet, to);
    } while (!left.empty());
    page_ = (page_ + 1) % o.num_slots;
  }
  void queue(const roce_packet &packet, const udp_address &to) {
    std::uint8_t *const bytes = packets_.data() + std::size_t{num_packets_} * packet_room_;
    const std::size_t length = write_roce_packet(packet, bytes);
    seal_with_icrc({shared_.own, to}, {bytes, length});
    to_[num_packets_] = to;
    parts_[num_packets_] = {bytes, length};
    msghdr &header = messages_[num_packets_].msg_hdr;
    header.msg_name = &to_[num_packets_].bytes;
    header.msg_namelen = to.length;
    header.msg_iov = &parts_[num_packets_];
    header.msg_iovlen = 1;
    messages_[num_packets_].msg_len = 0; // the system sets it when it sends the packet
    ++num_packets_;
  }

  roce_connections &shared_;
  const std::uint32_t packets_of_frame_;
  const std::size_t packet_room_;
  std::vector<std::uint8_t> packets_, padded_;
  std::vector<mmsghdr> messages_;
  std::vector<iovec> parts_;
  std::vector<udp_address> to_;
  std::array<queued_frame, kUdpBatch> frames_{};
  std::uint32_t count_ = 0, num_packets_ = 0;
  std::uint32_t page_ = 0; ///< that a requester writes next
};

class roce_wire final : public datagram_wire {
public:
  roce_wire(const roce_wire_options &options, std::shared_ptr<roce_counters> counters)
      : counters_(std::move(counters)), shared_(options, *counters_) {}

  expected<> prepare(udp_socket &socket) override {
    shared_.own = socket.local();
    // The ICRC covers the address, and over IPv6 other fields. No address at all stands for any of the machine.
    if (!shared_.own.is_v4() || shared_.own.v4() == htonl(INADDR_ANY))
      return make_reason(CUDAQ_ERR_INVALID_ARG, "RoCE packets are sealed with the address: one IPv4 address of this "
                                                "machine is accepted, not IPv6 and not 0.0.0.0");
    return socket.do_not_fragment();
  }
  std::unique_ptr<frame_receiver> make_receiver() override { return std::make_unique<roce_receiver>(shared_); }
  std::unique_ptr<frame_sender> make_sender() override { return std::make_unique<roce_sender>(shared_); }

private:
  const std::shared_ptr<roce_counters> counters_;
  roce_connections shared_;
};

} // namespace

std::unique_ptr<datagram_wire> make_roce_wire(const roce_wire_options &options,
                                              std::shared_ptr<roce_counters> counters) {
  return std::make_unique<roce_wire>(options, std::move(counters));
}

std::unique_ptr<datagram_wire> make_roce_requester_wire(const roce_server_memory &server, std::uint32_t mtu) {
  roce_wire_options wire;
  wire.server = false;
  wire.slot_size = server.page_bytes;
  wire.num_slots = server.pages;
  wire.mtu = mtu;
  wire.own_qp = kRequesterQp;
  wire.peer_qp = server.qp;
  wire.rkey = server.rkey;
  return make_roce_wire(wire, std::make_shared<roce_counters>());
}

} // namespace cudaq::realtime::detail

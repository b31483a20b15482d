// SPDX-License-Identifier: Apache-2.0
// The client's side: any answers to the requests of a datagram_client, as `emulate` receives them. Over UDP a made-up
// wire hands the frames over; over RoCE the packets travel on the loopback interface, some of them lost or changed. A
// model says for each frame what becomes of it: an answer is delivered if it belongs to a request that is open, once,
// and as it was sent; all others are counted.
#include "lib/transport/datagram/datagram_client.h"
#include "lib/transport/roce/roce_icrc.h"
#include "lib/transport/roce/roce_packet.h"
#include "lib/transport/roce/roce_wire.h"
#include "unittests/fuzz/fuzz_input.h"

#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace {

using namespace cudaq::realtime::detail;
using cudaq::realtime::test::fuzz_input;
using cudaq::realtime::test::require;
using bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kSlot = 600, kMtu = 256, kWindow = 4; ///< an answer over RoCE has three packets
constexpr std::uint32_t kHeader = CUDAQ_RPC_HEADER_SIZE;

struct arrived_frame {
  udp_address from;
  bytes content;
  bool whole = true; ///< false: datagrams that made no frame
};

/// Hands over what the queue has. Its requests go nowhere.
class made_up_wire final : public datagram_wire {
public:
  explicit made_up_wire(std::deque<arrived_frame> &queue) : queue_(queue) {}
  expected<> prepare(udp_socket &) override { return {}; }
  std::unique_ptr<frame_receiver> make_receiver() override { return std::make_unique<receiver>(queue_); }
  std::unique_ptr<frame_sender> make_sender() override { return std::make_unique<sender>(); }

private:
  class receiver final : public frame_receiver {
  public:
    explicit receiver(std::deque<arrived_frame> &queue) : queue_(queue) {}
    int receive(const udp_socket &, std::uint32_t) override {
      if (queue_.empty())
        return 0;
      now_ = std::move(queue_.front());
      queue_.pop_front();
      return 1;
    }
    received_frame frame(std::uint32_t) override {
      return now_.whole ? received_frame{&now_.from, now_.content, false} : received_frame{};
    }
    std::uint32_t dropped_by_system() override { return 0; }

  private:
    std::deque<arrived_frame> &queue_;
    arrived_frame now_;
  };
  class sender final : public frame_sender {
  public:
    std::uint32_t count() const override { return count_; }
    void add(const udp_address &, std::span<std::uint8_t>) override { ++count_; }
    result flush(const udp_socket &) override { return {std::exchange(count_, 0), 0}; }

  private:
    std::uint32_t count_ = 0;
  };
  std::deque<arrived_frame> &queue_;
};

udp_socket &loopback_socket(int which) { // they stay open: a fuzzer runs many inputs
  static udp_socket sockets[2];
  static const bool opened = [] {
    udp_address local;
    require(udp_address_of("own", "127.0.0.1", 0, local).ok(), "there is a loopback address");
    for (udp_socket &socket : sockets)
      require(socket.open(local, 0).ok() && socket.do_not_fragment().ok(), "a socket of the test opens");
    return true;
  }();
  require(opened, "the sockets of the test are open");
  return sockets[which];
}

class checked_client {
public:
  checked_client(bool roce, bool repeats) : roce_(roce), repeats_(repeats) {
    datagram_client_options options;
    options.port = loopback_socket(0).port();
    options.slot_size = kSlot;
    options.window = kWindow;
    options.retry_after = std::chrono::hours(repeats ? 1 : 0);
    std::unique_ptr<datagram_wire> wire = std::make_unique<made_up_wire>(queue_);
    if (roce) {
      roce_wire_options of;
      of.server = false;
      of.slot_size = kSlot;
      of.mtu = kMtu;
      of.own_qp = kRequesterQp;
      of.peer_qp = kServerQp;
      of.icrc = icrc_policy::full; // a changed byte is always found
      wire = make_roce_wire(of, counters_);
    }
    require(client_.open(options, std::move(wire)).ok(), "the client opens");
  }

  void send(std::uint32_t id, std::span<const std::uint8_t> payload) {
    const bool free = open_.count(id % kWindow) == 0;
    require(client_.send(id, 7, payload) == free, "a request is sent if its place is free");
    if (free)
      open_[id % kWindow] = id;
    check_counts();
  }
  void give_up(std::uint32_t id) {
    if (const auto at = open_.find(id % kWindow); at != open_.end() && at->second == id)
      open_.erase(at);
    client_.give_up(id);
    check_counts();
  }
  /// The id of an open request, if there is one.
  std::uint32_t some_id(std::uint32_t which) const {
    if (open_.empty())
      return which;
    return std::next(open_.begin(), static_cast<std::ptrdiff_t>(which % open_.size()))->second;
  }

  /// `harm`: 0: arrives as it is; else, over RoCE, one of its packets is lost or changed; over UDP it makes no frame.
  void arrive(const bytes &content, bool from_server, std::uint32_t harm) {
    bool delivered = harm == 0;
    if (roce_)
      delivered = send_packets(content, loopback_socket(from_server ? 0 : 1), harm);
    else
      queue_.push_back({loopback_socket(from_server ? 0 : 1).local(), content, delivered});
    const auto reply = client_.receive();
    const bool expected = delivered && expect(content, from_server);
    require(reply.has_value() == expected, "an answer is delivered if it belongs to an open request");
    if (expected) {
      cudaq_rpc_response_t header;
      std::memcpy(&header, content.data(), sizeof(header));
      require(std::memcmp(&header, &reply->header, sizeof(header)) == 0, "the header is the one that was sent");
      require(reply->result.size() == header.result_len &&
                  std::equal(reply->result.begin(), reply->result.end(), content.begin() + kHeader),
              "the result is the one that was sent");
      require(reply->attempts == 1, "the request was sent once");
      open_.erase(header.request_id % kWindow);
    }
    require(!client_.receive(), "there is nothing more");
    check_counts();
  }
  /// Any bytes as a datagram of a stranger.
  void disturb(std::span<const std::uint8_t> datagram) {
    if (!roce_)
      return arrive({datagram.begin(), datagram.end()}, false, 0);
    transmit(loopback_socket(1), datagram);
    require(!client_.receive(), "what has no right ICRC is not delivered");
  }

private:
  /// Counts what is passed over. True: it must be delivered.
  bool expect(const bytes &content, bool from_server) {
    cudaq_rpc_response_t header{};
    if (content.size() == kSlot)
      std::memcpy(&header, content.data(), sizeof(header));
    const auto at = open_.find(header.request_id % kWindow);
    const bool answers = content.size() == kSlot && from_server && header.magic == CUDAQ_RPC_MAGIC_RESPONSE &&
                         header.result_len <= kSlot - kHeader && at != open_.end() && at->second == header.request_id;
    unexpected_ += answers ? 0 : 1;
    const bool is_busy = answers && header.status == CUDAQ_RPC_ERR_BUSY;
    busy_ += is_busy ? 1 : 0;
    return answers && !(is_busy && repeats_);
  }
  void check_counts() const {
    require(client_.num_open() == open_.size(), "the open requests are counted");
    require(client_.unexpected() == unexpected_, "each other frame is counted");
    require(client_.busy() == busy_, "BUSY is counted");
  }
  void transmit(const udp_socket &from, std::span<const std::uint8_t> datagram) const {
    const udp_address to = client_.socket().local();
    ::sendto(from.fd(), datagram.data(), datagram.size(), MSG_DONTWAIT, to.get(), to.length);
  }
  /// False: not all of them arrive as they are.
  bool send_packets(const bytes &content, const udp_socket &from, std::uint32_t harm) {
    std::span<const std::uint8_t> left = content;
    const std::size_t packets = std::max<std::size_t>((content.size() + kMtu - 1) / kMtu, 1);
    for (std::size_t n = 0; n < packets; ++n) {
      roce_packet packet;
      packet.qp = kRequesterQp;
      packet.psn = psn_++ & k24Bits;
      packet.payload = left.first(std::min<std::size_t>(left.size(), kMtu));
      left = left.subspan(packet.payload.size());
      packet.opcode = packets == 1       ? uc_opcode::send_only
                      : n == 0           ? uc_opcode::send_first
                      : n == packets - 1 ? uc_opcode::send_last
                                         : uc_opcode::send_middle;
      bytes datagram(kMaxHeaderBytes + packet.payload.size() + 3 + kIcrcBytes);
      datagram.resize(write_roce_packet(packet, datagram.data()));
      seal_with_icrc({from.local(), client_.socket().local()}, datagram);
      if (harm != 0 && n == harm % packets) {
        if (harm % 2 == 0)
          continue; // lost
        const std::size_t at = harm / 4 % datagram.size();
        datagram[at == 4 ? 5 : at] ^= 0x55; // a switch may change byte 4
      }
      transmit(from, datagram);
    }
    return harm == 0;
  }

  const bool roce_, repeats_;
  std::deque<arrived_frame> queue_;
  std::shared_ptr<roce_counters> counters_ = std::make_shared<roce_counters>();
  datagram_client client_;
  std::map<std::uint32_t, std::uint32_t> open_; ///< ids by place
  std::uint64_t unexpected_ = 0, busy_ = 0;
  std::uint32_t psn_ = 0xFFFFF0;
};

/// A frame as a server sends it, some of its fields from the input.
bytes answer_of(fuzz_input &input, std::uint32_t id) {
  const auto shape = input.take<std::uint8_t>();
  cudaq_rpc_response_t header{CUDAQ_RPC_MAGIC_RESPONSE, 0, input.take<std::uint8_t>(), id, 9};
  if ((shape & 1) != 0)
    header.status = (shape & 2) != 0 ? CUDAQ_RPC_ERR_BUSY : input.take<std::int32_t>();
  if ((shape & 4) != 0)
    header.result_len = kSlot - kHeader - 2 + (shape >> 5 & 3); // around the end of the slot
  if ((shape & 8) != 0)
    header.request_id += static_cast<std::uint32_t>(input.take<std::int8_t>());
  if ((shape & 16) != 0)
    header.magic = input.take<std::uint32_t>();
  bytes frame(kSlot);
  std::memcpy(frame.data(), &header, sizeof(header));
  const auto content = input.bytes(shape >> 4);
  std::copy(content.begin(), content.end(), frame.begin() + kHeader);
  return frame;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  fuzz_input input(data, size);
  const auto shape = input.take<std::uint8_t>();
  checked_client client((shape & 1) != 0, (shape & 2) != 0);
  while (!input.empty()) {
    const auto step = input.take<std::uint8_t>();
    switch (step & 7) {
    case 0:
    case 1: {
      const auto near_wrap = static_cast<std::uint32_t>(input.take<std::int8_t>());
      client.send(near_wrap, input.bytes(step >> 4));
      break;
    }
    case 2:
    case 3:
      client.arrive(answer_of(input, client.some_id(step >> 4)), (step & 8) == 0, 0);
      break;
    case 4: {
      const bytes frame = answer_of(input, client.some_id(step >> 4));
      client.arrive(frame, true, 1 + input.take<std::uint16_t>());
      break;
    }
    case 5: { // another length
      bytes frame = answer_of(input, client.some_id(step >> 4));
      frame.resize(input.take<std::uint16_t>() % (2 * kSlot));
      client.arrive(frame, true, 0);
      break;
    }
    case 6:
      client.give_up(client.some_id(step >> 3));
      break;
    default:
      client.disturb(input.bytes(step >> 3));
    }
  }
  return 0;
}

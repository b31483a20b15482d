// SPDX-License-Identifier: Apache-2.0
#include "contrib/fpga_player/frame_port.h"

#include "lib/transport/datagram/udp_socket.h"
#include "lib/transport/roce/roce_packet.h"
#include "lib/transport/roce/roce_wire.h"
#include "lib/transport/udp/udp_wire.h"
#include "tools/common/api_objects.h"

#include <fmt/format.h>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

void require(const detail::expected<> &result, const frame_destination &to) {
  if (result.failed())
    throw api_error(fmt::format("{} {}:{}: {}", to.transport, to.address, to.port, result.text()));
}

std::unique_ptr<detail::datagram_wire> wire_of(const frame_destination &to) {
  if (to.transport == "udp")
    return detail::make_udp_wire(to.page_bytes);
  return detail::make_roce_requester_wire({to.page_bytes, to.pages, to.qp, to.rkey}, to.mtu);
}

class datagram_port final : public frame_port {
public:
  explicit datagram_port(const frame_destination &to)
      : roce_(to.transport == "roce"), wire_(wire_of(to)), incoming_(wire_->make_receiver()),
        outgoing_(wire_->make_sender()), answer_(to.page_bytes) {
    require(detail::udp_address_of("address", to.address, to.port, server_), to);
    detail::udp_address own;
    if (to.own_address.empty())
      require(detail::own_address_towards(server_, own), to);
    else
      require(detail::udp_address_of("own address", to.own_address, 0, own), to);
    // Answers come to the port of RoCE, unless the server has it on the same address.
    if (roce_ && own.v4() != server_.v4())
      own.set_port(detail::kRocePort);
    require(socket_.open(own, 0), to);
    require(wire_->prepare(socket_), to);
    incoming_->set_target(0, answer_.data(), answer_.size());
  }

  bool send(std::span<std::uint8_t> frame) override {
    outgoing_->add(server_, frame);
    return outgoing_->flush(socket_).done == 1; // refused is the same as lost: a server may start later
  }
  std::span<const std::uint8_t> receive() override {
    while (incoming_->receive(socket_, 1) > 0) {
      const detail::received_frame frame = incoming_->frame(0);
      if (frame.from != nullptr && !frame.cut && is_server(*frame.from))
        return frame.bytes;
    }
    return {};
  }

private:
  bool is_server(detail::udp_address from) const {
    if (roce_) // its packets come from any port
      from.set_port(server_.port());
    return from == server_;
  }

  const bool roce_;
  detail::udp_address server_;
  detail::udp_socket socket_;
  const std::unique_ptr<detail::datagram_wire> wire_;
  const std::unique_ptr<detail::frame_receiver> incoming_;
  const std::unique_ptr<detail::frame_sender> outgoing_;
  std::vector<std::uint8_t> answer_;
};

} // namespace

std::unique_ptr<frame_port> open_frame_port(const frame_destination &to) { return std::make_unique<datagram_port>(to); }

} // namespace cudaq::realtime::tools

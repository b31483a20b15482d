// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/session/wire_requests.h"
#include "lib/transport/datagram/datagram_client.h"
#include "lib/transport/datagram/udp_socket.h"
#include "lib/transport/roce/roce_wire.h"
#include "lib/transport/udp/udp_wire.h"
#include "tools/common/api_objects.h"
#include "tools/common/clock.h"
#include "tools/emulate/links.h"

#include <utility>

namespace cudaq::realtime::tools {
namespace {

constexpr int kRocePort = 4791;
constexpr std::uint64_t kQuietNs = 250'000'000; ///< without an answer: then the server is probed
/// Of a query's datagram: as long as the shorter answer, which is longer than the query.
constexpr std::uint32_t kQueryBytes = CUDAQ_RPC_HEADER_SIZE + qec::kModelFactsBytes;
static_assert(sizeof(cudaq_qec_describe_decoder_t) <= qec::kModelFactsBytes);

class datagram_link final : public link {
public:
  /// `query_wire`: the wire of smaller datagrams for accept_any_size, or NULL.
  datagram_link(const detail::datagram_client_options &options, std::unique_ptr<detail::datagram_wire> wire,
                std::string where, std::unique_ptr<detail::datagram_wire> query_wire = nullptr)
      : query_wire_(std::move(query_wire)), where_(std::move(where)) {
    if (const detail::expected<> result = client_.open(options, std::move(wire)); result.failed())
      throw api_error(where_ + ": " + result.text());
  }

  bool send(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
            std::uint64_t timestamp) override {
    return client_.send(id, function_id, payload, timestamp);
  }
  std::optional<link_answer> receive() override {
    client_.repeat_due();
    const std::optional<detail::datagram_reply> reply = client_.receive();
    answered_ = answered_ || reply.has_value();
    return reply ? std::optional(link_answer{reply->header, reply->result}) : std::nullopt;
  }
  void give_up(std::uint32_t id) override { client_.give_up(id); }
  /// A server that ends with requests in its queue sends nothing, and the system reports only what is sent to it later.
  bool alive() override {
    const std::uint64_t now = now_ns();
    if (std::exchange(answered_, false)) {
      quiet_since_ns_ = now;
    } else if (now - quiet_since_ns_ > kQuietNs) {
      quiet_since_ns_ = now;
      client_.probe();
    }
    return !client_.refused();
  }
  std::string end_text() const override { return where_ + ": no server listens there"; }
  void accept_any_size(bool any) override {
    if (query_wire_ != nullptr)
      client_.query_through(any ? query_wire_.get() : nullptr);
  }
  link_counters counters() const override { return {client_.repeated(), client_.unexpected(), client_.other_size()}; }
  std::string describe() const override { return where_; }

private:
  const std::unique_ptr<detail::datagram_wire> query_wire_; ///< outlives the client
  detail::datagram_client client_;
  std::string where_;
  bool answered_ = false; ///< an answer since the last alive()
  std::uint64_t quiet_since_ns_ = now_ns();
};

detail::datagram_client_options client_options(const emulate_options &o, std::uint32_t window,
                                               std::size_t payload_bytes) {
  if (payload_bytes + CUDAQ_RPC_HEADER_SIZE > o.slot_size)
    throw usage_error(fmt::format("--slot-size is {}: a request of these shots needs {} bytes, here and on the server",
                                  o.slot_size, payload_bytes + CUDAQ_RPC_HEADER_SIZE));
  detail::udp_address server;
  if (const detail::expected<> result =
          detail::udp_address_of("--address", o.address, static_cast<std::uint32_t>(o.port), server);
      result.failed())
    throw usage_error(result.text());
  detail::datagram_client_options chosen;
  chosen.address = o.address;
  chosen.port = static_cast<std::uint32_t>(o.port);
  chosen.slot_size = o.slot_size;
  chosen.window = window;
  chosen.retry_after = std::chrono::nanoseconds(static_cast<std::int64_t>(o.retry_ms * 1e6));
  chosen.retry_for = std::chrono::seconds(CUDAQ_QEC_REPEAT_SECONDS);
  return chosen;
}

/// Answers come to the port of RoCE, unless the server has it on the same address.
std::uint32_t own_roce_port(const emulate_options &o) {
  detail::udp_address server, own;
  detail::expected<> result = detail::udp_address_of("--address", o.address, kRocePort, server);
  if (result.ok() && o.own_address.empty()) {
    if (result = detail::own_address_towards(server, own); result.failed())
      throw api_error(result.text()); // the system knows no way there
  } else if (result.ok()) {
    result = detail::udp_address_of("--own-address", o.own_address, 0, own);
  }
  if (result.failed())
    throw usage_error(result.text());
  own.set_port(kRocePort);
  return own == server ? 0 : kRocePort;
}

} // namespace

std::unique_ptr<link> make_udp_link(const emulate_options &o, std::uint32_t window, std::size_t payload_bytes) {
  if (o.port == 0)
    throw usage_error("--port is missing: the UDP port of the server, which it prints when it is ready");
  detail::datagram_client_options chosen = client_options(o, window, payload_bytes);
  chosen.reports_refusals = true;
  return std::make_unique<datagram_link>(chosen, detail::make_udp_wire(o.slot_size),
                                         fmt::format("udp {}:{}, {} bytes a datagram", o.address, o.port, o.slot_size),
                                         detail::make_udp_wire(kQueryBytes));
}

std::unique_ptr<link> make_roce_link(const emulate_options &o, std::uint32_t window, std::size_t payload_bytes) {
  detail::datagram_client_options chosen = client_options(o, window, payload_bytes);
  if (o.port == 0)
    chosen.port = kRocePort;
  chosen.own_address = o.own_address;
  chosen.own_port = own_roce_port(o);
  chosen.from_any_port = true;
  return std::make_unique<datagram_link>(chosen,
                                         detail::make_roce_requester_wire({o.slot_size, o.pages, o.qp, o.rkey}, o.mtu),
                                         fmt::format("roce {}:{}, queue pair {:#x}, {} pages of {} bytes", o.address,
                                                     chosen.port, o.qp, o.pages, o.slot_size));
}

} // namespace cudaq::realtime::tools

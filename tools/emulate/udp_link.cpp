// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/datagram_client.h"
#include "lib/transport/udp/udp_wire.h"
#include "tools/emulate/links.h"
#include "tools/services/api_objects.h"

namespace cudaq::realtime::tools {
namespace {

class udp_link final : public link {
public:
  udp_link(const emulate_options &o, std::uint32_t window) {
    detail::datagram_client_options chosen;
    chosen.address = o.address;
    chosen.port = static_cast<std::uint32_t>(o.port);
    chosen.slot_size = o.slot_size;
    chosen.window = window;
    chosen.retry_after = std::chrono::nanoseconds(static_cast<std::int64_t>(o.retry_ms * 1e6));
    if (const detail::status_or_reason refused = client_.open(chosen, detail::make_udp_wire(o.slot_size)))
      throw api_error("udp: " + refused.text);
    where_ = fmt::format("udp {}:{}, {} bytes a datagram", o.address, o.port, o.slot_size);
  }

  bool send(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
            std::uint64_t timestamp) override {
    return client_.send(id, function_id, payload, timestamp);
  }
  std::optional<link_answer> receive() override {
    client_.repeat_due();
    const std::optional<detail::datagram_reply> reply = client_.receive();
    return reply ? std::optional(link_answer{reply->header, reply->result}) : std::nullopt;
  }
  void give_up(std::uint32_t id) override { client_.give_up(id); }
  bool alive() override { return true; } // not known
  link_counters counters() const override { return {client_.repeated(), client_.unexpected()}; }
  std::string describe() const override { return where_; }

private:
  detail::datagram_client client_;
  std::string where_;
};

} // namespace

std::unique_ptr<link> make_udp_link(const emulate_options &o, std::uint32_t window, std::size_t payload_bytes) {
  if (o.port == 0)
    throw usage_error("--port is missing: the UDP port of the server, which it prints when it is ready");
  if (payload_bytes + CUDAQ_RPC_HEADER_SIZE > o.slot_size)
    throw usage_error(fmt::format("--slot-size is {}: a request of these shots needs {} bytes, here and on the server",
                                  o.slot_size, payload_bytes + CUDAQ_RPC_HEADER_SIZE));
  return std::make_unique<udp_link>(o, window);
}

} // namespace cudaq::realtime::tools

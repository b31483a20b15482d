// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/ucx_request.h"

#include "lib/transport/route/request_router.h"
#include "tools/common/clock.h"
#include "tools/services/ucx_library.h"

#include <optional>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kNode = 0, kEntry = 0; // the only ones

class ucx_request final : public one_request, private detail::router_port {
public:
  ucx_request(std::uint32_t port, std::uint32_t max_payload_bytes)
      : link_(ucx_library("the self-test").make_link(link_options(port, max_payload_bytes))),
        router_(table(), limits(), static_cast<detail::router_port &>(*this)) {}
  ~ucx_request() override {
    router_.send_bye();
    link_->flush(kFlushNs);
    router_.leave(now());
  }
  ucx_request(const ucx_request &) = delete;
  ucx_request &operator=(const ucx_request &) = delete;

  bool connect() override {
    move();
    return router_.state(kNode) == detail::node_state::joined;
  }
  bool send() override {
    router_.submit(kEntry, kLoopbackFunction, kLoopbackPayload, 0, now());
    return router_.counters(kNode).forwarded.value() == 1;
  }
  bool receive(std::vector<std::uint8_t> &result) override {
    move();
    if (result_)
      result = *result_;
    return result_.has_value();
  }
  std::string carrier() override { return link_->carrier(kNode); }

private:
  static constexpr std::uint64_t kFlushNs = 200'000'000;

  static detail::ucx_link_options link_options(std::uint32_t port, std::uint32_t max_payload_bytes) {
    detail::ucx_link_options o;
    o.nodes = {{"127.0.0.1", port}};
    o.max_bytes = max_payload_bytes + static_cast<std::uint32_t>(detail::kRouteHeaderBytes);
    return o;
  }
  static detail::route_table table() {
    detail::route_function function;
    function.function_id = kLoopbackFunction;
    function.by_key = false;
    function.node = kNode;
    detail::route_table t;
    t.num_nodes = 1;
    t.functions = {function};
    return t;
  }
  static detail::router_limits limits() {
    detail::router_limits l;
    l.num_entries = 1;
    l.lost_after = std::chrono::seconds(10); // the self-test has its own limit
    return l;
  }
  static detail::request_router::time now() { return std::chrono::nanoseconds(now_ns()); }

  void move() {
    link_->progress(on_message_, on_failure_);
    router_.tick(now());
  }

  bool connect(std::uint32_t node) override { return link_->connect(node); }
  void disconnect(std::uint32_t node) override { link_->disconnect(node); }
  void send(std::uint32_t node, const detail::route_header &header, std::span<const std::uint8_t> payload) override {
    link_->send(node, header, payload);
  }
  // The router answers by itself, with an empty result, if the node is lost. That is no answer of the node.
  void answer(std::uint32_t, std::int32_t status, std::span<const std::uint8_t> result) override {
    if (status == 0)
      result_.emplace(result.begin(), result.end());
  }
  void state_changed(std::uint32_t, detail::node_state) override {}

  // Members, because the link also calls them in flush().
  const detail::node_link::message_receiver on_message_ = [this](std::optional<std::uint32_t> from,
                                                                 std::span<const std::uint8_t> message) {
    router_.received(from, message, now());
  };
  const detail::node_link::failure_receiver on_failure_ = [this](std::uint32_t node) {
    router_.connection_failed(node, now());
  };
  std::unique_ptr<detail::node_link> link_;
  std::optional<std::vector<std::uint8_t>> result_;
  detail::request_router router_;
};

} // namespace

std::unique_ptr<one_request> make_ucx_request(std::uint32_t port, std::uint32_t max_payload_bytes) {
  return std::make_unique<ucx_request>(port, max_payload_bytes);
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// The router's link over UCX, and what UCX says of the machine. `route` and `doctor` take them from the provider's
// library at run time: so only this library needs UCX.
#include "lib/transport/ucx/ucx_link.h"

#include "lib/transport/ucx/ucx_worker.h"

#include <algorithm>
#include <cstring>

namespace cudaq::realtime::detail {
namespace {

class ucx_link final : public node_link {
public:
  expected<> open(const ucx_link_options &options) {
    options_ = options;
    connections_.assign(options.nodes.size(), 0);
    ucx_settings settings;
    settings.tls = options.tls;
    settings.max_bytes = options.max_bytes;
    settings.loopback = std::all_of(options.nodes.begin(), options.nodes.end(),
                                    [](const auto &node) { return node.address.starts_with("127."); });
    return worker_.open(
        settings, {[this](std::uint64_t id, std::span<const std::uint8_t> bytes) { (*message_)(node_of(id), bytes); },
                   [](std::uint64_t) {}, [this](std::uint64_t id) { failed(id); }});
  }

  bool connect(std::uint32_t node) override {
    connections_[node] = worker_.connect(options_.nodes[node].address, options_.nodes[node].port);
    return connections_[node] != 0;
  }
  void disconnect(std::uint32_t node) override {
    worker_.close(connections_[node]);
    connections_[node] = 0;
  }
  void send(std::uint32_t node, const route_header &header, std::span<const std::uint8_t> payload) override {
    worker_.send(connections_[node], {reinterpret_cast<const std::uint8_t *>(&header), sizeof header}, payload, true);
  }
  std::uint32_t progress(const message_receiver &message, const failure_receiver &failure) override {
    message_ = &message;
    failure_ = &failure;
    return worker_.progress();
  }
  bool flush(std::uint64_t limit_ns) override { return worker_.flush(limit_ns); }
  std::string carrier(std::uint32_t node) override { return worker_.carrier(connections_[node]); }

private:
  /// None: the message names no connection, or its connection is closed.
  std::optional<std::uint32_t> node_of(std::uint64_t id) const {
    const auto found = std::find(connections_.begin(), connections_.end(), id);
    if (id == 0 || found == connections_.end())
      return {};
    return static_cast<std::uint32_t>(found - connections_.begin());
  }
  void failed(std::uint64_t id) {
    if (const std::optional<std::uint32_t> node = node_of(id)) {
      connections_[*node] = 0;
      (*failure_)(*node);
    }
  }

  ucx_link_options options_;
  std::vector<std::uint64_t> connections_; ///< by node; 0: none
  const message_receiver *message_ = nullptr;
  const failure_receiver *failure_ = nullptr;
  ucx_worker worker_;
};

/// Runs a call of the program. True: it has succeeded; else `reason` has the text.
template <class Call>
bool call_of_program(std::uint32_t version, char *reason, std::size_t reason_bytes, Call &&call) {
  std::string text;
  try {
    if (version == kUcxLinkVersion) {
      const expected<> result = call();
      if (result.ok())
        return true;
      text = result.text();
    } else {
      text = "the library is of another version than the program";
    }
  } catch (const std::exception &e) {
    text = e.what();
  }
  const std::size_t bytes = std::min(text.size(), reason_bytes - 1);
  std::memcpy(reason, text.data(), bytes);
  reason[bytes] = '\0';
  return false;
}

} // namespace
} // namespace cudaq::realtime::detail

extern "C" {

CUDAQ_REALTIME_API cudaq::realtime::detail::node_link *
cudaq_ucx_make_link(std::uint32_t version, const cudaq::realtime::detail::ucx_link_options *options, char *reason,
                    std::size_t reason_bytes) {
  using namespace cudaq::realtime::detail;
  std::unique_ptr<ucx_link> made;
  return call_of_program(version, reason, reason_bytes,
                         [&] {
                           made = std::make_unique<ucx_link>();
                           return made->open(*options);
                         })
             ? made.release()
             : nullptr;
}

CUDAQ_REALTIME_API bool cudaq_ucx_describe(std::uint32_t version, cudaq::realtime::detail::ucx_description *out,
                                           char *reason, std::size_t reason_bytes) {
  using namespace cudaq::realtime::detail;
  return call_of_program(version, reason, reason_bytes, [&]() -> expected<> {
    ucx_worker worker;
    if (expected<> result = worker.open({}, {}); result.failed())
      return result;
    *out = {ucx_worker::version(), worker.resources()};
    return {};
  });
}

} // extern "C"

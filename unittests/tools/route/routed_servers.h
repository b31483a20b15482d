// SPDX-License-Identifier: Apache-2.0
// A router with its nodes as processes, and a control system that checks every answer.
#pragma once

#include "lib/transport/datagram/datagram_client.h"
#include "lib/transport/udp/udp_wire.h"
#include "unittests/tools/serve/serve_fixture.h"

#include <arpa/inet.h>
#include <map>
#include <memory>
#include <optional>
#include <random>

namespace cudaq::realtime::tools::test {

inline constexpr std::int32_t kNotReadyStatus = 4, kBusyStatus = 5, kDroppedStatus = 6;
inline constexpr std::uint32_t kStreamsPerNode = 4;

/// The number after `key` in a line of key=value words.
inline int number_in(const std::string &line, const std::string &key) {
  const std::size_t at = line.find(" " + key + "=");
  return at == std::string::npos ? -1 : std::stoi(line.substr(at + key.size() + 2));
}

/// A TCP port of the loopback address for a node. No other program gets it while the node is not there: the system
/// gives it to no other socket, but a listener of UCX may use it, too.
class reserved_port {
public:
  reserved_port() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    sockaddr_in address{};
    socklen_t size = sizeof address;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr *>(&address), sizeof address), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr *>(&address), &size), 0);
    number_ = ntohs(address.sin_port);
  }
  ~reserved_port() { close(fd_); }
  reserved_port(const reserved_port &) = delete;
  reserved_port &operator=(const reserved_port &) = delete;
  int number() const { return number_; }

private:
  const int fd_;
  int number_ = 0;
};

/// Decoder ids k, k + nodes, ... belong to node k. Decoder id's answer to detector d is observable (d + id) % 4.
class routed_servers {
public:
  /// `silence_ms`: after that a node gives up a router that has sent nothing.
  routed_servers(const std::filesystem::path &folder, std::uint32_t nodes, std::string tls,
                 std::uint32_t silence_ms = 5000)
      : folder_(folder), tls_(std::move(tls)), silence_ms_(silence_ms), ports_(nodes), nodes_(nodes) {
    for (std::uint32_t node = 0; node < nodes; ++node) {
      std::string text = "decoders:\n";
      for (std::uint32_t k = 0; k < kStreamsPerNode; ++k) {
        const std::uint32_t id = node + k * nodes;
        text += "  - id: " + std::to_string(id) + "\n    type: lookup\n    dem: |\n" + model(id);
      }
      write(folder_ / (name(node) + ".yaml"), text);
      start(node);
      const std::string ready = nodes_[node]->line();
      EXPECT_TRUE(ready.starts_with("QEC_DECODING_SERVER_READY ")) << ready << errors();
    }
  }

  static std::string name(std::uint32_t node) { return "node" + std::to_string(node); }
  running_program &node(std::uint32_t number) { return *nodes_[number]; }
  int port(std::uint32_t number) const { return ports_[number].number(); }
  std::uint32_t count() const { return static_cast<std::uint32_t>(nodes_.size()); }
  std::string errors() const { return read_file(folder_ / "stderr"); }

  /// Does not wait until it serves.
  void start(std::uint32_t node) {
    nodes_[node] = std::make_unique<running_program>(
        std::vector<std::string>{"serve", "--config", folder_ / (name(node) + ".yaml"), "--transport", "ucx", "--wait",
                                 "block", "--end-limit", "100", "--", "--port=" + std::to_string(port(node)),
                                 "--tls=" + tls_, "--silence-ms=" + std::to_string(silence_ms_)},
        folder_ / "stderr");
  }
  void kill(std::uint32_t node) { nodes_[node].reset(); }

  std::string config(const std::string &more = "") const {
    std::string text = "nodes:\n";
    for (std::uint32_t node = 0; node < count(); ++node) {
      text += "  - {name: " + name(node) + ", port: " + std::to_string(port(node)) + ", decoders: [";
      for (std::uint32_t k = 0; k < kStreamsPerNode; ++k)
        text += (k == 0 ? "" : ", ") + std::to_string(node + k * count());
      text += "]}\n";
    }
    return text + "functions:\n  - {name: qec_decode, node: node0}\ntls: '" + tls_ + "'\n" + more;
  }
  void start_router(const std::string &more = "") {
    write(folder_ / "route.yaml", config(more));
    router_ = std::make_unique<running_program>(
        std::vector<std::string>{"route", "--config", folder_ / "route.yaml", "--transport", "udp", "--counters",
                                 folder_ / "counters", "--", "--port=0", "--num-slots=128", "--unified"},
        folder_ / "stderr");
    const std::string ready = router_->line();
    ASSERT_TRUE(ready.starts_with("CUDAQ_REALTIME_ROUTER_READY ")) << ready << errors();
    router_port_ = number_in(ready, "port");
  }
  /// Waits until every node has joined; returns what carries their messages.
  std::map<std::string, std::string> wait_joined() {
    std::map<std::string, std::string> carriers;
    while (carriers.size() < count()) {
      const std::string line = router_->line();
      if (line.empty())
        break;
      const std::size_t at = line.find(" state=joined carrier=");
      if (at != std::string::npos)
        carriers[line.substr(std::string("CUDAQ_REALTIME_ROUTER_NODE name=").size(), at - 32)] = line.substr(at + 22);
    }
    EXPECT_EQ(carriers.size(), count()) << errors();
    return carriers;
  }
  running_program &router() { return *router_; }
  std::uint32_t router_port() const { return static_cast<std::uint32_t>(router_port_); }

private:
  const std::filesystem::path folder_;
  const std::string tls_;
  const std::uint32_t silence_ms_;
  std::vector<reserved_port> ports_;
  std::vector<std::unique_ptr<running_program>> nodes_;
  std::unique_ptr<running_program> router_;
  int router_port_ = 0;
};

/// Sends shots to all streams, each as enqueue and get_corrections without waiting in between; resets a stream after
/// every status that is not 0. Requests are sent once.
class checked_streams {
public:
  checked_streams(std::uint32_t port, std::uint32_t streams, std::uint32_t seed) : streams_(streams), random_(seed) {
    detail::datagram_client_options options;
    options.port = port;
    options.window = 1u << 16; // a stopped node holds a request while the ids go on
    options.receive_buffer = 1u << 20;
    const auto result = client_.open(options, detail::make_udp_wire(options.slot_size));
    EXPECT_TRUE(result.ok()) << result.text();
  }

  /// One look: sends to each stream that waits for nothing, and takes the answers.
  void turn() {
    if (!paused_)
      for (std::uint32_t id = 0; id < streams_.size(); ++id)
        if (streams_[id].open == 0 && std::chrono::steady_clock::now() >= streams_[id].not_before)
          begin(id);
    for (auto reply = client_.receive_within(std::chrono::milliseconds(1)); reply; reply = client_.receive())
      take(*reply);
  }
  void run_for(std::chrono::milliseconds time) {
    run_until([] { return false; }, time);
  }
  /// False: `done` did not hold before the limit.
  template <class Done>
  bool run_until(Done &&done, std::chrono::milliseconds limit = std::chrono::milliseconds(kLimitMs)) {
    for (const auto end = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < end; turn())
      if (done())
        return true;
    return done();
  }
  /// Sends nothing more, and waits for the answers.
  void finish() {
    paused_ = true;
    EXPECT_TRUE(run_until([this] { return open_.empty(); })) << open_.size() << " requests have no answer";
    EXPECT_EQ(client_.unexpected(), 0u) << "answers that are too many";
  }
  /// Every stream has decoded `shots` more. False: not before the limit.
  bool all_decode(std::uint64_t shots) {
    std::vector<std::uint64_t> wanted;
    for (const stream &s : streams_)
      wanted.push_back(s.good + shots);
    return run_until([&] {
      bool all = true;
      for (std::uint32_t id = 0; id < streams_.size(); ++id)
        all = all && streams_[id].good >= wanted[id];
      return all;
    });
  }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t answers(std::int32_t status) const {
    const auto found = by_status_.find(status);
    return found == by_status_.end() ? 0 : found->second;
  }
  std::chrono::nanoseconds longest() const { return longest_; }

private:
  struct stream {
    std::uint32_t open = 0;
    bool needs_reset = false, failed = false;
    std::uint64_t counter = 1, good = 0;
    std::uint8_t bits = 0;
    std::optional<bytes> corrections; ///< of the shot whose answers are awaited
    std::chrono::steady_clock::time_point not_before{};
  };
  struct open_request {
    std::uint32_t id = 0, function = 0;
    std::chrono::steady_clock::time_point since{};
  };

  void send(std::uint32_t id, std::uint32_t function, const bytes &payload) {
    std::uint32_t number = next_id_++;
    for (int tries = 0; !client_.send(number, function, payload); number = next_id_++)
      ASSERT_LT(++tries, 1000) << "a stopped node holds a request at this place of the window, but not at so many";
    ++sent_;
    open_[number] = {id, function, std::chrono::steady_clock::now()};
    ++streams_[id].open;
  }
  void begin(std::uint32_t id) {
    stream &s = streams_[id];
    s.failed = false;
    s.corrections.reset();
    if (s.needs_reset)
      return send(id, kReset, numbers({id}));
    s.bits = static_cast<std::uint8_t>(random_() & 15);
    send(id, kEnqueue, joined(numbers({id, s.counter++, 0, 4}), {s.bits}));
    send(id, kGet, joined(numbers({id, 4}), {1}));
  }
  void take(const detail::datagram_reply &reply) {
    const auto found = open_.find(reply.header.request_id);
    ASSERT_NE(found, open_.end()) << "a second answer";
    const open_request request = found->second;
    open_.erase(found);
    stream &s = streams_[request.id];
    --s.open;
    ++by_status_[reply.header.status];
    longest_ = std::max<std::chrono::nanoseconds>(longest_, std::chrono::steady_clock::now() - request.since);
    if (reply.header.status != 0) {
      ASSERT_TRUE((reply.header.status >= kNotReadyStatus && reply.header.status <= kDroppedStatus) ||
                  reply.header.status == CUDAQ_RPC_ERR_SHUTTING_DOWN) // of a node that ends
          << reply.header.status;
      s.failed = s.needs_reset = true;
      s.not_before = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    } else if (request.function == kReset) {
      s.needs_reset = false;
    } else if (request.function == kGet) {
      s.corrections.emplace(reply.result.begin(), reply.result.end());
    }
    // Only now: the answers may come in another order, and after an enqueue that was refused there is nothing to read.
    if (s.open == 0 && s.corrections && !s.failed) {
      std::uint8_t expected = 0;
      for (unsigned d = 0; d < 4; ++d)
        expected = static_cast<std::uint8_t>(expected | (s.bits >> d & 1) << (d + request.id) % 4);
      ASSERT_EQ(*s.corrections, bytes{expected}) << "decoder " << request.id;
      ++s.good;
    }
  }

  detail::datagram_client client_;
  std::vector<stream> streams_;
  std::map<std::uint32_t, open_request> open_;
  std::map<std::int32_t, std::uint64_t> by_status_;
  std::mt19937 random_;
  std::uint32_t next_id_ = 0;
  std::uint64_t sent_ = 0;
  std::chrono::nanoseconds longest_{0};
  bool paused_ = false;
};

} // namespace cudaq::realtime::tools::test

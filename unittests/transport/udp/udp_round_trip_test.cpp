// SPDX-License-Identifier: Apache-2.0
// The round trip of a request over loopback, beside that of a plain socket which sends back what it receives. Cases and
// floor alternate. The test checks answers, not times: it prints the figures. CUDAQ_UDP_EXCHANGES sets the exchanges of
// each case, and then all threads spin, each on a core of its own. CUDAQ_UDP_JSON is a file for the figures.
#include "cudaq/realtime/daemon/bridge/bridge_interface.h"
#include "unittests/support/figures_file.h"
#include "unittests/support/program_paths.h"
#include "unittests/support/provider_dispatcher.h"
#include "unittests/transport/datagram/udp_peer.h"
#include "unittests/transport/provider_library.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <sched.h>
#include <thread>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kDatagram = 64;
constexpr int kRounds = 10;
constexpr std::uint32_t kEcho = fnv1a_hash("echo");

/// Whether this run measures, and where its threads run.
struct plan {
  const char *setting = std::getenv("CUDAQ_UDP_EXCHANGES");
  bool measures = setting != nullptr;
  int exchanges = measures ? std::atoi(setting) : 200;
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  bool pinned = measures && cores >= 2;
  bool has_ring = !measures || cores >= 3; ///< three threads that spin need three cores
  int apart = cores >= 8 ? 2 : 1;          ///< the next physical core, on machines with two threads a core
  int client_core = 0, server_core = apart, provider_core = 2 * apart;
};

/// While it lives, the calling thread runs on a core. Threads that start meanwhile would inherit that.
class pinned_thread {
public:
  pinned_thread(const plan &p, int core) {
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (p.pinned)
      sched_setaffinity(0, sizeof(set), &set);
  }
  ~pinned_thread() { sched_setaffinity(0, sizeof(before_), &before_); }
  pinned_thread(const pinned_thread &) = delete;
  pinned_thread &operator=(const pinned_thread &) = delete;

private:
  cpu_set_t before_;
};

/// The least that can answer a datagram: one thread, one receive, one send.
class plain_echo {
public:
  explicit plain_echo(const plan &p) {
    detail::udp_address local;
    EXPECT_EQ(detail::udp_address_of("own", "127.0.0.1", 0, local).text(), "");
    EXPECT_EQ(socket_.open(local, 0).text(), "");
    thread_ = std::thread([this, p] {
      const pinned_thread here(p, p.server_core);
      std::uint8_t datagram[kDatagram];
      while (!stop_.load(std::memory_order_relaxed)) {
        detail::udp_address from;
        from.length = sizeof(from.bytes);
        const ssize_t n = ::recvfrom(socket_.fd(), datagram, sizeof(datagram), MSG_DONTWAIT, from.get(), &from.length);
        if (n >= 0)
          ::sendto(socket_.fd(), datagram, static_cast<std::size_t>(n), 0, from.get(), from.length);
        else if (!p.measures)
          std::this_thread::yield();
      }
    });
  }
  ~plain_echo() {
    stop_.store(true);
    thread_.join();
  }
  plain_echo(const plain_echo &) = delete;
  plain_echo &operator=(const plain_echo &) = delete;
  std::uint32_t port() const { return socket_.port(); }

private:
  detail::udp_socket socket_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

std::int32_t echo(cudaq_host_call_t *call, void *) {
  std::memcpy(call->result, call->payload, call->payload_len);
  call->result_len = call->payload_len;
  return 0;
}

/// A dispatcher that serves the provider, in this process.
class served {
public:
  served(const plan &p, bool unified) {
    std::vector<std::string> words = {"--slot-size", std::to_string(kDatagram)};
    if (unified)
      words.push_back("--unified");
    else if (p.measures)
      words.insert(words.end(), {"--busy-poll-us", "1000000000"});
    if (!unified && p.pinned)
      words.insert(words.end(), {"--core", std::to_string(p.provider_core)});
    std::vector<char *> argv;
    for (std::string &word : words)
      argv.push_back(word.data());
    cudaq_dispatcher_options_t options = default_options();
    options.wait_policy = p.measures ? CUDAQ_WAIT_SPIN : CUDAQ_WAIT_SPIN_YIELD;
    options.dispatcher_core = p.pinned ? p.server_core : CUDAQ_CORE_ANY;
    CUDAQ_EXPECT_OK(
        cudaq_bridge_create_from_library(&bridge_, CUDAQ_UDP_PROVIDER, static_cast<int>(argv.size()), argv.data()));
    cudaq_ringbuffer_t ring{};
    cudaq_cpu_dataplane_t plane{};
    CUDAQ_EXPECT_OK(unified ? cudaq_bridge_get_cpu_dataplane(bridge_, &plane)
                            : cudaq_bridge_get_transport_context(bridge_, RING_BUFFER, &ring));
    dispatcher_.emplace(host_config({8, kDatagram, false}), ring, unified ? &plane : nullptr, function_v2(kEcho, echo),
                        options);
    CUDAQ_EXPECT_OK(cudaq_bridge_connect(bridge_));
    CUDAQ_EXPECT_OK(cudaq_bridge_launch(bridge_));
  }
  ~served() {
    dispatcher_.reset();
    CUDAQ_EXPECT_OK(cudaq_bridge_disconnect(bridge_));
    CUDAQ_EXPECT_OK(cudaq_bridge_destroy(bridge_));
  }
  served(const served &) = delete;
  served &operator=(const served &) = delete;
  std::uint32_t port() const {
    char line[256] = "";
    CUDAQ_EXPECT_OK(cudaq_bridge_get_endpoint_info(bridge_, line, sizeof(line)));
    return static_cast<std::uint32_t>(std::stoul(value_of(line, "port")));
  }

private:
  cudaq_realtime_bridge_handle_t bridge_ = nullptr;
  std::optional<provider_dispatcher> dispatcher_;
};

struct figures {
  std::vector<double> us;
  double percentile(double share) {
    std::sort(us.begin(), us.end());
    return us.empty() ? 0 : us[static_cast<std::size_t>(share * static_cast<double>(us.size() - 1))];
  }
};

/// Exchanges datagrams one by one; the first tenth is not counted. False: no answer within the deadline.
bool exchange(std::uint32_t port, const plan &p, figures &out) {
  detail::udp_address any, server;
  detail::udp_socket socket;
  if (detail::udp_address_of("own", "127.0.0.1", 0, any).failed() ||
      detail::udp_address_of("to", "127.0.0.1", port, server).failed() || socket.open(any, 0).failed() ||
      socket.connect(server).failed())
    return false;
  const int count = p.exchanges / kRounds;
  const pinned_thread here(p, p.client_core);
  for (int n = -count / 10 - 1; n < count; ++n) {
    const bytes request = request_bytes(kEcho, static_cast<std::uint32_t>(n), bytes(40, 1), kDatagram);
    std::uint8_t answer[kDatagram + 1];
    const auto begin = std::chrono::steady_clock::now();
    ::send(socket.fd(), request.data(), request.size(), 0);
    ssize_t length = -1;
    for (std::uint32_t polls = 1; length < 0; ++polls) {
      length = ::recv(socket.fd(), answer, sizeof(answer), MSG_DONTWAIT);
      if (!p.measures && polls % 16 == 0)
        std::this_thread::yield();
      if (polls % 65536 == 0 && std::chrono::steady_clock::now() - begin > kDeadline)
        return false;
    }
    const auto end = std::chrono::steady_clock::now();
    if (length != kDatagram || std::memcmp(answer + 12, request.data() + 12, 4) != 0)
      return false;
    if (n >= 0)
      out.us.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
  }
  return true;
}

template <class Server, class... Arguments>
void measure(const plan &p, figures &out, Arguments... arguments) {
  const Server server(p, arguments...);
  EXPECT_TRUE(exchange(server.port(), p, out));
}

TEST(UdpRoundTrip, IsPrintedBesideThatOfAPlainSocket) {
  const plan p;
  figures floor, unified, ring;
  for (int round = 0; round < kRounds; ++round) {
    measure<plain_echo>(p, floor);
    measure<served>(p, unified, true);
    if (p.has_ring)
      measure<served>(p, ring, false);
  }
  figures_file file;
  const auto print = [&](const char *name, figures &f) {
    file.add(name, {{"exchanges", static_cast<double>(f.us.size())},
                    {"min_us", f.percentile(0)},
                    {"p50_us", f.percentile(0.5)},
                    {"p99_us", f.percentile(0.99)},
                    {"p99.9_us", f.percentile(0.999)},
                    {"max_us", f.percentile(1)},
                    {"p50_over_floor", f.percentile(0.5) / floor.percentile(0.5)}});
    std::printf("%-12s %7zu exchanges of %u bytes: p50 %8.2f us, p99 %8.2f us, %5.2f times the floor's p50\n", name,
                f.us.size(), kDatagram, f.percentile(0.5), f.percentile(0.99),
                f.percentile(0.5) / floor.percentile(0.5));
  };
  print("plain socket", floor);
  print("unified", unified);
  if (p.has_ring)
    print("ring", ring);
  if (const char *const path = std::getenv("CUDAQ_UDP_JSON"); path != nullptr) {
    EXPECT_TRUE(file.write(path, "CUDAQ_UDP_EXCHANGES=" + std::to_string(p.exchanges) + " udp_round_trip_test"))
        << path << " cannot be written";
  }
}

} // namespace
} // namespace cudaq::realtime::test

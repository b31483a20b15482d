// SPDX-License-Identifier: Apache-2.0
// Figures of docs/scale.md: what the router costs for each request, and rates and round trips against the number of
// nodes, on one machine. Usage: route_figures REQUESTS [ROUNDS] [--json FILE]. Each line names what it measures; the
// file has the same figures. The requests are reset_decoder (8 bytes), so that decoding takes no time. core_us: time on
// the cores of all threads of the server, or of the router, for each request; other programs disturb it less than the
// other figures.
//
//   rules      request_router alone: submit, and the node's answer, without network. Floor: the two messages copied
//   direct     a server over udp, without a router: the floor of the next lines
//   routed     route over udp, and 1 to 8 servers over UCX; one request at a time, and 64 at a time over all streams
#include "lib/transport/route/request_router.h"
#include "unittests/support/figures_file.h"
#include "unittests/tools/route/routed_servers.h"

#include <fmt/core.h>

namespace cudaq::realtime::tools::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// The figures of all rounds.
struct measured_rounds {
  realtime::test::figures_file file;
  int round = 0;
  void add(const std::string &row, realtime::test::figures_file::numbers values) {
    file.add(fmt::format("{} round={}", row, round), std::move(values));
  }
};

double ns_each(clock::duration time, std::uint64_t count) {
  return std::chrono::duration<double, std::nano>(time).count() / static_cast<double>(count);
}

class silent_port final : public detail::router_port {
public:
  bool connect(std::uint32_t) override { return true; }
  void disconnect(std::uint32_t) override {}
  void send(std::uint32_t, const detail::route_header &header, std::span<const std::uint8_t> payload) override {
    std::memcpy(message, &header, sizeof header);
    if (!payload.empty())
      std::memcpy(message + sizeof header, payload.data(), payload.size());
  }
  void answer(std::uint32_t, std::int32_t, std::span<const std::uint8_t>) override { ++answers; }
  void state_changed(std::uint32_t, detail::node_state) override {}
  detail::route_header sent() const {
    detail::route_header header;
    std::memcpy(static_cast<void *>(&header), message, sizeof header);
    return header;
  }
  std::uint8_t message[256] = {};
  std::uint64_t answers = 0;
};

template <class Header>
std::span<const std::uint8_t> bytes_of(const Header &header) {
  return {reinterpret_cast<const std::uint8_t *>(&header), sizeof header};
}

void measure_rules(measured_rounds &all, std::uint64_t requests, std::uint32_t keys) {
  silent_port port;
  detail::route_table table;
  table.num_nodes = 1;
  table.functions = {{kEnqueue, true, 0, false, true}, {kGet, true, 0, false, true}, {kReset, true, 0, true, true}};
  for (std::uint32_t key = 0; key < keys; ++key)
    table.keys.push_back({key, 0});
  detail::router_limits limits;
  limits.num_entries = 1;
  detail::request_router router(table, limits, port);
  detail::request_router::time now{1s};
  router.tick(now);
  detail::route_header reply = port.sent();
  reply.kind = detail::route_kind::welcome;
  reply.slot = 16;
  reply.function_id = 200;
  reply.status = 1;
  router.received({}, bytes_of(reply), now);
  double least = 1e9, least_floor = 1e9; // of blocks in turn: other programs disturb only some
  constexpr std::uint64_t kBlock = 1000;
  std::uint8_t in[256] = {};
  for (std::uint64_t block = 0; block < requests / kBlock + 1; ++block) {
    const auto begin = clock::now();
    for (std::uint64_t n = 0; n < kBlock; ++n) {
      const std::uint64_t key = (block * kBlock + n) * 7919 % keys;
      router.submit(0, kReset, bytes_of(key), 0, now += 1us);
      reply = port.sent();
      reply.kind = detail::route_kind::answer;
      reply.length = 0;
      router.received({}, bytes_of(reply), now);
      router.tick(now);
    }
    const auto middle = clock::now();
    for (std::uint64_t n = 0; n < kBlock; ++n) {
      const std::uint64_t key = (block * kBlock + n) * 7919 % keys;
      std::memcpy(in, &reply, sizeof reply);
      std::memcpy(in + sizeof reply, &key, sizeof key);
      asm volatile("" : : "r"(in) : "memory");
      std::memcpy(static_cast<void *>(&reply), in, sizeof reply);
    }
    least = std::min(least, ns_each(middle - begin, kBlock));
    least_floor = std::min(least_floor, ns_each(clock::now() - middle, kBlock));
  }
  fmt::print("rules keys={} ns={:.0f} floor_ns={:.1f} answers={}\n", keys, least, least_floor, port.answers);
  all.add(fmt::format("rules keys={}", keys), {{"ns", least}, {"floor_ns", least_floor}});
}

/// Nanoseconds that all threads of a process have had on a core.
std::uint64_t core_ns(pid_t pid) {
  std::uint64_t sum = 0;
  for (const auto &task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::uint64_t ns = 0;
    std::ifstream(task.path() / "schedstat") >> ns;
    sum += ns;
  }
  return sum;
}

/// `open`: requests at the same time, spread over the streams.
void measure_requests(measured_rounds &all, const std::string &what, std::uint32_t port, std::uint32_t streams,
                      std::uint64_t requests, std::uint32_t open, pid_t server) {
  detail::datagram_client client;
  detail::datagram_client_options options;
  options.port = port;
  options.window = 1024;
  options.receive_buffer = 1u << 20;
  if (const auto result = client.open(options, detail::make_udp_wire(options.slot_size)); result.failed())
    throw std::runtime_error(result.text());
  std::vector<clock::time_point> since(1024);
  std::vector<double> took;
  std::uint32_t next = 0, in_flight = 0;
  std::uint64_t bad = 0;
  const std::uint64_t core_before = core_ns(server);
  const auto begin = clock::now();
  while (took.size() < requests) {
    for (; in_flight < open && next < requests; ++in_flight, ++next) {
      since[next % 1024] = clock::now();
      if (!client.send(next, kReset, numbers({next % streams})))
        throw std::runtime_error("the window is full");
    }
    auto reply = client.receive();
    if (clock::now() - begin > 120s)
      throw std::runtime_error("answers are missing");
    if (!reply)
      continue;
    took.push_back(ns_each(clock::now() - since[reply->header.request_id % 1024], 1) * 1e-3);
    bad += reply->header.status == 0 ? 0 : 1;
    --in_flight;
  }
  const double seconds = ns_each(clock::now() - begin, 1) * 1e-9;
  const double core = static_cast<double>(core_ns(server) - core_before) / static_cast<double>(requests);
  std::sort(took.begin(), took.end());
  fmt::print("{} open={} per_second={:.0f} p50_us={:.1f} p99_us={:.1f} core_us={:.2f} bad={}\n", what, open,
             static_cast<double>(requests) / seconds, took[took.size() / 2], took[took.size() * 99 / 100], core * 1e-3,
             bad);
  std::fflush(stdout);
  all.add(fmt::format("{} open={}", what, open), {{"per_second", static_cast<double>(requests) / seconds},
                                                  {"p50_us", took[took.size() / 2]},
                                                  {"p99_us", took[took.size() * 99 / 100]},
                                                  {"core_us", core * 1e-3},
                                                  {"bad", static_cast<double>(bad)}});
}

void measure_direct(measured_rounds &all, const std::filesystem::path &folder, std::uint64_t requests) {
  std::string text = "decoders:\n";
  for (int id = 0; id < 4; ++id)
    text += "  - id: " + std::to_string(id) + "\n    type: lookup\n    dem: |\n" + model(0);
  write(folder / "direct.yaml", text);
  running_program server({"serve", "--config", folder / "direct.yaml", "--transport", "udp", "--wait", "block", "--",
                          "--port=0", "--num-slots=128", "--unified"},
                         folder / "stderr");
  const auto port = static_cast<std::uint32_t>(number_in(server.line(), "port"));
  for (const std::uint32_t open : {1u, 64u})
    measure_requests(all, "direct", port, 4, requests, open, server.pid());
}

void measure_routed(measured_rounds &all, const std::filesystem::path &folder, std::uint32_t nodes,
                    const std::string &tls, std::uint64_t requests) {
  routed_servers servers(folder, nodes, tls);
  servers.start_router("lost_after_ms: 30000\nanswer_limit_ms: 60000\n");
  const std::string carrier = servers.wait_joined().begin()->second;
  for (const std::uint32_t open : {1u, 64u})
    measure_requests(all, fmt::format("routed carrier={} nodes={}", carrier, nodes), servers.router_port(),
                     nodes * kStreamsPerNode, requests, open, servers.router().pid());
}

} // namespace
} // namespace cudaq::realtime::tools::test

int main(int argc, char **argv) {
  using namespace cudaq::realtime::tools::test;
  std::vector<std::string> words(argv + 1, argv + argc);
  std::string json;
  if (const auto at = std::find(words.begin(), words.end(), "--json"); at != words.end()) {
    if (at + 1 == words.end()) {
      fmt::print(stderr, "--json: a file is missing\n");
      return 2;
    }
    json = at[1];
    words.erase(at, at + 2);
  }
  const std::uint64_t requests = !words.empty() ? std::stoull(words[0]) : 20000;
  const int rounds = words.size() > 1 ? std::stoi(words[1]) : 1;
  measured_rounds all;
  for (int round = 0; round < rounds; ++round) {
    all.round = round;
    const scratch_folder folder;
    for (const std::uint32_t keys : {16u, 1000u})
      measure_rules(all, requests * 10, keys);
    measure_direct(all, folder.path(), requests);
    for (const char *const tls : {"posix,tcp", "tcp"})
      for (const std::uint32_t nodes : {1u, 2u, 4u, 8u})
        measure_routed(all, folder.path(), nodes, tls, requests);
  }
  if (!json.empty() && !all.file.write(json, fmt::format("route_figures {} {}", requests, rounds))) {
    fmt::print(stderr, "--json {}: it cannot be written\n", json);
    return 3;
  }
}

// SPDX-License-Identifier: Apache-2.0
// The live counters, and readers that do not behave.
#include "lib/base/runner.h"
#include "lib/transport/roce/roce_icrc.h"
#include "lib/transport/roce/roce_packet.h"
#include "lib/transport/roce/roce_wire.h"
#include "tools/common/clock.h"
#include "tools/top/counters_reader.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/helper_thread.h"
#include "unittests/tools/serve/serve_fixture.h"

#include <algorithm>
#include <arpa/inet.h>
#include <atomic>
#include <deque>
#include <nlohmann/json.hpp>
#include <regex>

namespace cudaq::realtime::tools::test {
namespace {

/// A connection to 127.0.0.1, closed at the end.
class tcp_reader {
public:
  explicit tcp_reader(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in remote{};
    remote.sin_family = AF_INET;
    remote.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    remote.sin_port = htons(static_cast<std::uint16_t>(port));
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr *>(&remote), sizeof remote), 0);
  }
  ~tcp_reader() { close(fd_); }
  tcp_reader(const tcp_reader &) = delete;
  tcp_reader &operator=(const tcp_reader &) = delete;
  void send_text(const std::string &text) const { (void)send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  std::string page(const std::string &path = "/metrics") const {
    send_text("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return read_all(fd_);
  }

private:
  const int fd_;
};

/// The page over a new connection. The server gives up a reader whose head has not come 200 ms after its connection:
/// a test that had no core for so long asks again.
std::string page_at(int port, const std::string &path = "/metrics") {
  std::string page;
  for (int k = 0; k < 100 && page.empty(); ++k)
    page = tcp_reader(port).page(path);
  return page;
}

int prometheus_port(const std::string &ready) {
  const std::size_t at = ready.find("prometheus_port=");
  return at == std::string::npos ? 0 : std::stoi(ready.substr(at + 16));
}

// Known failure 35.
TEST_F(Serve, ShowsItsCounters) {
  const std::string path = (folder_.path() / "counters").string(), report = (folder_.path() / "report").string();
  const double before = unix_seconds();
  running_program server(arguments({"--counters", path, "--prometheus-port", "0", "--json", report}), err());
  const int port = prometheus_port(server.line());
  ASSERT_NE(port, 0) << read_file(err());
  socket_peer peer(socket());
  ASSERT_EQ(peer.call(kEnqueue, joined(enqueue(0, 1), {0, 0, 0})).status, 0);
  const std::string text = counters_at(path);
  for (const char *counter : {"requests", "padded"})
    EXPECT_TRUE(contains(text, "\ncudaq_decoder_" + std::string(counter) + "_total{decoder=\"6\"} 1\n")) << text;
  EXPECT_TRUE(contains(text, "\ncudaq_decoder_answers_total{decoder=\"6\",status=\"ok\"} 1\n")) << text;
  for (const char *status : {"invalid_decoder", "bad_request", "internal", "not_ready", "busy", "syndromes_dropped"})
    EXPECT_TRUE(contains(text, "cudaq_decoder_answers_total{decoder=\"6\",status=\"" + std::string(status) + "\"} 0\n"))
        << text;
  const server_counters all = parse_counters(text);
  ASSERT_NE(all.version, "") << text;
  EXPECT_EQ(run_program("--version").out, "cudaq-realtime " + all.version + "\n") << text;
  EXPECT_GT(all.start_time, before - 0.001) << "in milliseconds";
  EXPECT_LT(all.start_time, unix_seconds());
  const std::string page = page_at(port);
  EXPECT_TRUE(page.starts_with("HTTP/1.1 200 OK\r\n")) << page;
  EXPECT_TRUE(contains(page, "cudaq_decoder_shots_total{decoder=\"6\"} 1\n")) << page;
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(path)) << "the socket is removed";
  EXPECT_EQ(nlohmann::json::parse(read_file(report)).at("decoders").at(0).at("padded"), 1);
}

TEST_F(Serve, ShowsTheDetectorsOfItsDecoders) {
  const std::string path = (folder_.path() / "counters").string();
  running_program server(arguments({"--counters", path, "--prometheus-port", "0"}), err());
  const int port = prometheus_port(server.line());
  ASSERT_NE(port, 0) << read_file(err());
  EXPECT_TRUE(contains(counters_at(path), "\ncudaq_decoder_detectors_beyond_5_sigma{decoder=\"6\"} 0\n"));
  socket_peer peer(socket());
  for (std::uint64_t k = 0; k < 300; ++k)
    ASSERT_EQ(peer.call(kEnqueue, enqueue(k, 1)).status, 0);
  const std::string text = counters_at(path);
  EXPECT_TRUE(contains(text, "\ncudaq_decoder_detector_shots{decoder=\"6\"} 300\n")) << text;
  EXPECT_TRUE(contains(text, "\ncudaq_decoder_worst_detector{decoder=\"6\",rank=\"1\"} 0\n")) << text;
  EXPECT_TRUE(contains(text, "\ncudaq_decoder_worst_detector_rate{decoder=\"6\",rank=\"1\"} 1\n")) << text;
  EXPECT_FALSE(contains(text, "rank=\"6\"")) << "the page does not grow with the detectors";
  EXPECT_NO_THROW((void)parse_counters(text)) << "top reads it";
  const std::string all = page_at(port, "/detectors.json");
  const nlohmann::json page = nlohmann::json::parse(all.substr(std::min(all.find('{'), all.size())), nullptr, false);
  ASSERT_FALSE(page.is_discarded()) << all;
  const nlohmann::json &decoder = page.at("decoders").at(0);
  EXPECT_EQ(decoder.at("id"), 6);
  EXPECT_EQ(decoder.at("detectors").size(), decoder.at("num_detectors"));
  EXPECT_EQ(decoder.at("detectors").at(0).at("rate"), 1);
  EXPECT_EQ(decoder.at("worst").at(0).at("detector"), 0);
  EXPECT_TRUE(contains(page_at(port, "/detectors"), "<h2>Decoder 6</h2>"));
}

TEST_F(Serve, ShowsTheStagesOfItsRequests) {
  const std::string path = (folder_.path() / "counters").string();
  running_program server(arguments({"--counters", path}), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  EXPECT_FALSE(contains(counters_at(path), "cudaq_decoder_stage_seconds_count")) << "no request was answered";
  socket_peer peer(socket());
  ASSERT_EQ(peer.call(kEnqueue, enqueue(0, 1)).status, 0);
  const std::string counted = "\ncudaq_decoder_stage_seconds_count{decoder=\"6\",stage=\"decoded\"} 1\n";
  std::string text; // a request is counted after its answer has left
  ASSERT_TRUE(detail::wait_until(detail::steady_clock::now() + std::chrono::seconds(60), [&] {
    text = counters_at(path);
    return contains(text, counted);
  })) << text;
  const server_counters all = parse_counters(text);
  const auto decoder = std::ranges::find(all.decoders, 6u, &counted_decoder::id);
  ASSERT_NE(decoder, all.decoders.end());
  std::vector<std::string> names;
  for (const counted_stage &stage : decoder->stages) {
    names.push_back(stage.name);
    if (stage.name == "whole")
      continue;
    ASSERT_EQ(stage.buckets.size(), 118u) << "16 ns to 8.6 s, and the last one";
    EXPECT_TRUE(std::ranges::is_sorted(stage.buckets));
    EXPECT_EQ(stage.buckets.back().second, 1u);
    // The first bound with a count is the one above the only time.
    const auto first = std::ranges::find(stage.buckets, 1u, &std::pair<double, std::uint64_t>::second);
    EXPECT_GT(first->first, stage.worst_ns) << stage.name;
    EXPECT_LE(first->first, std::max(16.0, stage.worst_ns * 1.25) + 1e-3) << stage.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"accepted", "queued", "taken", "decoded", "answered", "whole"}));
}

TEST_F(Serve, ShowsTheStagesOfItsRequestsInABrowser) {
  running_program server(arguments({"--prometheus-port", "0"}), err());
  const int port = prometheus_port(server.line());
  ASSERT_NE(port, 0) << read_file(err());
  EXPECT_TRUE(contains(page_at(port, "/times"), "1 decoder has answered no request so far."));
  socket_peer peer(socket());
  for (std::uint64_t k = 0; k < 30; ++k)
    ASSERT_EQ(peer.call(kEnqueue, enqueue(k, 1)).status, 0);
  std::string page; // a request is counted after its answer has left
  ASSERT_TRUE(detail::wait_until(detail::steady_clock::now() + std::chrono::seconds(60), [&] {
    page = page_at(port, "/times");
    return contains(page, "<tr><td>whole</td><td>30</td>");
  })) << page;
  EXPECT_TRUE(contains(page, "\r\nContent-Type: text/html; charset=utf-8\r\n")) << page;
  EXPECT_TRUE(contains(page, "<h2>Decoder 6: lookup")) << page;
  EXPECT_TRUE(contains(page_at(port, "/streams"), "No decoder of this server takes streams."));
}

TEST_F(Serve, HasAPageOfStreamsThatReadsItsCounters) {
  write(yaml(), "decoders:\n  - id: 4\n    type: sliding-window:inner=bp-osd,commit=3,buffer=3\n    stream: true\n"
                "    dem_file: " +
                    std::string(CUDAQ_TEST_DATA) + "/surface_loop_d3_p0.004.dem\n");
  running_program server(arguments({"--prometheus-port", "0"}), err());
  const int port = prometheus_port(server.line());
  ASSERT_NE(port, 0) << read_file(err());
  const std::string page = page_at(port, "/streams"), counters = page_at(port);
  EXPECT_TRUE(contains(page, "const decoders = ['4',];")) << page;
  EXPECT_TRUE(counters.ends_with("# EOF\n")) << "the script reads whole pages only";
  std::smatch list;
  ASSERT_TRUE(std::regex_search(page, list, std::regex("const counters = \\[([^\\]]*)\\]"))) << page;
  const std::string listed = list[1];
  const std::regex name("'([a-z_]+)'");
  std::size_t names = 0;
  for (std::sregex_iterator n(listed.begin(), listed.end(), name), end; n != end; ++n, ++names)
    EXPECT_TRUE(contains(counters, "\ncudaq_decoder_" + (*n)[1].str() + "{decoder=\"4\"} 0\n")) << n->str();
  EXPECT_EQ(names, 5u) << listed;
}

TEST_F(Serve, IsNotHeldUpBySlowReaders) {
  running_program server(arguments({"--prometheus-port", "0"}), err());
  const int port = prometheus_port(server.line());
  ASSERT_NE(port, 0) << read_file(err());
  // Each of them sends a byte of a head that has no end, far more often than any time limit.
  std::deque<tcp_reader> slow;
  for (int k = 0; k < 4; ++k)
    slow.emplace_back(port);
  std::atomic<bool> done = false;
  helper_thread trickle(
      [&] {
        for (; !done; std::this_thread::sleep_for(std::chrono::milliseconds(20)))
          for (const tcp_reader &reader : slow)
            reader.send_text("x");
      },
      [&] { done = true; });
  server.signal(SIGHUP);
  EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_APPLIED");
  EXPECT_TRUE(contains(page_at(port), "cudaq_server_processed_total 0\n"));
  const tcp_reader silent(port);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << read_file(err());
  done = true;
  trickle.join();
}

TEST_F(Serve, TakesTheSocketOfAKilledServerOnly) {
  const auto path = folder_.path() / "counters";
  {
    running_program killed(arguments({"--counters", path}), err());
    ASSERT_NE(killed.line(), "") << read_file(err());
  }
  ASSERT_TRUE(std::filesystem::is_socket(path));
  std::filesystem::remove(socket()); // the provider's
  running_program server(arguments({"--counters", path}), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  const auto expect_refused = [&](const std::filesystem::path &counters, int status, const std::string &text) {
    running_program second({"serve", "--config", yaml(), "--transport", CUDAQ_TEST_SOCKET_PROVIDER, "--counters",
                            counters, "--", "--socket=" + (folder_.path() / "second.sock").string()},
                           folder_.path() / "second");
    EXPECT_EQ(second.wait(), status);
    EXPECT_TRUE(contains(read_file(folder_.path() / "second"), "--counters " + counters.string() + ": " + text));
  };
  expect_refused(path, 3, "a program listens there");
  EXPECT_TRUE(contains(counters_at(path), "cudaq_server_processed_total 0\n"));
  const auto file = folder_.path() / "file";
  write(file, "text");
  expect_refused(file, 2, "it is a file that is no socket");
  EXPECT_EQ(read_file(file), "text");
}

// What a transport counts is shown by the server: datagrams and packets that are good, short, twice, or broken.

bytes request_frame(std::uint32_t number) {
  const cudaq_rpc_header_t header = {CUDAQ_RPC_MAGIC_REQUEST, kOneShot, 1, number, 0};
  bytes frame(sizeof header + 1);
  std::memcpy(frame.data(), &header, sizeof header);
  frame.back() = 1; // detector 0
  return frame;
}

detail::udp_address loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  detail::udp_address out;
  std::memcpy(&out.bytes, &address, sizeof address);
  out.length = sizeof address;
  return out;
}

/// Its datagrams have identification 0, because the socket is not connected.
class datagram_sender {
public:
  explicit datagram_sender(const std::string &ready)
      : to_(loopback(static_cast<std::uint16_t>(std::stoi(ready.substr(ready.find("port=") + 5))))),
        fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const int never_in_parts = IP_PMTUDISC_DO;
    EXPECT_EQ(setsockopt(fd_, IPPROTO_IP, IP_MTU_DISCOVER, &never_in_parts, sizeof never_in_parts), 0);
    detail::udp_address own = loopback(0);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr *>(&own.bytes), own.length), 0);
    socklen_t size = sizeof own.bytes;
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr *>(&own.bytes), &size), 0);
    path_ = {own, to_};
  }
  ~datagram_sender() { close(fd_); }
  datagram_sender(const datagram_sender &) = delete;
  datagram_sender &operator=(const datagram_sender &) = delete;

  void send(const bytes &datagram) const {
    EXPECT_EQ(
        sendto(fd_, datagram.data(), datagram.size(), 0, reinterpret_cast<const sockaddr *>(&to_.bytes), to_.length),
        static_cast<ssize_t>(datagram.size()));
  }
  bool answered() const {
    char datagram[65536];
    pollfd readable{fd_, POLLIN, 0};
    return poll(&readable, 1, kLimitMs) > 0 && recv(fd_, datagram, sizeof datagram, 0) >= 24;
  }
  const detail::roce_path &path() const { return path_; }

private:
  const detail::udp_address to_;
  const int fd_;
  detail::roce_path path_;
};

struct ServeTransport : Serve {
  std::string counters_path() const { return (folder_.path() / "counters").string(); }
  std::vector<std::string> over(const std::string &transport, const std::vector<std::string> &options) const {
    std::vector<std::string> all{"serve",      "--config",      yaml(), "--transport", transport,
                                 "--counters", counters_path(), "--",   "--port=0"};
    all.insert(all.end(), options.begin(), options.end());
    return all;
  }
  /// `lines` without the prefix: family, labels after the transport, value. An answer may arrive before it is counted.
  void expect_lines(const std::string &transport, const std::vector<std::string> &lines) const {
    std::string missing, text;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimitMs);
    do {
      text = counters_at(counters_path());
      missing.clear();
      for (const std::string &line : lines) {
        const std::size_t at = line.find_first_of(", ");
        const std::string whole = "\ncudaq_transport_" + line.substr(0, at) + "{transport=\"" + transport + "\"" +
                                  line.substr(at, line.rfind(' ') - at) + "}" + line.substr(line.rfind(' ')) + "\n";
        if (!contains(text, whole))
          missing += whole;
      }
    } while (!missing.empty() && std::chrono::steady_clock::now() < limit);
    EXPECT_EQ(missing, "") << text;
    EXPECT_TRUE(text.ends_with("# EOF\n"));
  }
};

TEST_F(ServeTransport, ShowsItsTransportsCountersOverUdp) {
  running_program server(over("udp", {"--replay-window=16"}), err());
  const datagram_sender sender(server.line());
  sender.send(request_frame(1));
  ASSERT_TRUE(sender.answered()) << read_file(err());
  sender.send(request_frame(1));
  ASSERT_TRUE(sender.answered()) << "from the replay window";
  sender.send(bytes(10, 1));                                                 // short
  sender.send(bytes(23, 2));                                                 // short
  sender.send(bytes(24, 3));                                                 // without the magic number
  const bytes whole = request_frame(2), cut(whole.begin(), whole.end() - 1); // its payload is missing
  sender.send(cut);
  ASSERT_TRUE(sender.answered()) << "BAD_ARG_LEN";
  sender.send(request_frame(3));
  ASSERT_TRUE(sender.answered());
  expect_lines("udp", {"received_total 7", "accepted_total 2", "sent_total 4", "dropped_total,reason=\"short\" 2",
                       "dropped_total,reason=\"magic\" 1", "dropped_total,reason=\"long\" 0",
                       "refused_total,reason=\"truncated\" 1", "refused_total,reason=\"busy\" 0", "replayed_total 1",
                       "unanswered_total 0", "errors_total,reason=\"send\" 0", "peers 1"});
  EXPECT_FALSE(contains(counters_at(counters_path()), "cudaq_transport_packets_total"));
  const program_result top = run_program("top --count 1 --interval 0.1 --counters " + counters_path());
  for (const char *const line : {"transport dropped, short            0                2\n",
                                 "transport dropped, magic            0                1\n",
                                 "transport refused, truncated            0                1\n"})
    EXPECT_TRUE(contains(top.out, line)) << line << top.out << top.err;
  server.until([&] { return contains(read_file(err()), "clients: "); });
  EXPECT_TRUE(std::regex_search(
      read_file(err()),
      std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z cudaq-realtime: clients: 1 came, 0 went; 1 now; )"
                 R"(the newest: 127\.0\.0\.1:\d+\n)")))
      << read_file(err());
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  const std::string log = read_file(err());
  std::uint64_t dropped = 0; // the first of them may have had a line of its own
  const std::regex line(
      "Z cudaq-realtime: messages that were not taken: ([0-9]+) dropped because they are no requests\n");
  for (std::sregex_iterator one(log.begin(), log.end(), line), end; one != end; ++one)
    dropped += std::stoull((*one)[1]);
  EXPECT_EQ(dropped, 3u) << log;
}

/// A SEND of one packet, whose last four bytes make `finding` of it.
bytes packet_with(std::uint32_t psn, const bytes &frame, const detail::roce_path &path, detail::icrc_finding finding) {
  detail::roce_packet packet;
  packet.qp = detail::kServerQp;
  packet.psn = psn;
  packet.payload = frame;
  bytes datagram(detail::kMaxHeaderBytes + frame.size() + 3 + detail::kIcrcBytes);
  datagram.resize(detail::write_roce_packet(packet, datagram.data()));
  detail::seal_with_icrc(path, datagram);
  // 1 in 32768 ends belongs to another identification of the IPv4 header; most belong to none.
  for (std::uint32_t end = 0; end < 10'000'000 && detail::check_icrc(path, datagram) != finding; ++end)
    std::memcpy(datagram.data() + datagram.size() - sizeof end, &end, sizeof end);
  EXPECT_EQ(detail::check_icrc(path, datagram), finding);
  return datagram;
}

TEST_F(ServeTransport, ShowsItsTransportsCountersOverRoce) {
  using detail::icrc_finding;
  running_program server(over("roce", {"--replay-window=16", "--peer-port=0"}), err());
  const datagram_sender sender(server.line());
  const auto packet = [&](std::uint32_t psn, std::uint32_t request, icrc_finding finding) {
    return packet_with(psn, request_frame(request), sender.path(), finding);
  };
  const bytes first = packet(1, 1, icrc_finding::verified);
  sender.send(first);
  ASSERT_TRUE(sender.answered()) << read_file(err());
  sender.send(first); // late, and the request is a duplicate
  ASSERT_TRUE(sender.answered()) << "from the replay window";
  sender.send(bytes(8, 1)); // short
  for (const std::uint32_t psn : {2u, 3u, 4u})
    sender.send(packet(psn, 2, icrc_finding::wrong));
  sender.send(packet(5, 3, icrc_finding::partly)); // the numbers 2 to 4 were not taken
  ASSERT_TRUE(sender.answered());
  sender.send(packet(6, 4, icrc_finding::verified));
  ASSERT_TRUE(sender.answered());
  expect_lines("roce", {"packets_total 8", "packets_ending_message_total 4", "packets_inside_message_total 0",
                        "packets_dropped_total,reason=\"short\" 1", "packets_dropped_total,reason=\"icrc\" 3",
                        "packets_dropped_total,reason=\"rkey\" 0", "packets_not_verified_total,icrc=\"unverified\" 1",
                        "packets_not_verified_total,icrc=\"off\" 0", "packets_late_total 1", "packets_lost_total 3",
                        "received_total 4", "accepted_total 3", "replayed_total 1", "sent_total 4",
                        "dropped_total,reason=\"short\" 0", "peers 1"});
}

} // namespace
} // namespace cudaq::realtime::tools::test

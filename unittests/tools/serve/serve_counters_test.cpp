// SPDX-License-Identifier: Apache-2.0
// The live counters, and readers that do not behave.
#include "lib/base/runner.h"
#include "tools/top/counters_reader.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/helper_thread.h"
#include "unittests/tools/serve/serve_fixture.h"

#include <algorithm>
#include <arpa/inet.h>
#include <atomic>
#include <deque>
#include <nlohmann/json.hpp>

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
  const std::string path = (folder_.path() / "counters").string();
  running_program server(arguments({"--counters", path, "--prometheus-port", "0"}), err());
  const int port = prometheus_port(server.line());
  ASSERT_NE(port, 0) << read_file(err());
  socket_peer peer(socket());
  ASSERT_EQ(peer.call(kEnqueue, enqueue(0, 1)).status, 0);
  const std::string text = counters_at(path);
  EXPECT_TRUE(contains(text, "\ncudaq_decoder_requests_total{decoder=\"6\"} 1\n")) << text;
  EXPECT_TRUE(contains(text, "\ncudaq_decoder_answers_total{decoder=\"6\",status=\"ok\"} 1\n")) << text;
  for (const char *status : {"invalid_decoder", "bad_request", "internal", "not_ready", "busy", "syndromes_dropped"})
    EXPECT_TRUE(contains(text, "cudaq_decoder_answers_total{decoder=\"6\",status=\"" + std::string(status) + "\"} 0\n"))
        << text;
  const std::string page = page_at(port);
  EXPECT_TRUE(page.starts_with("HTTP/1.1 200 OK\r\n")) << page;
  EXPECT_TRUE(contains(page, "cudaq_decoder_shots_total{decoder=\"6\"} 1\n")) << page;
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(path)) << "the socket is removed";
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

} // namespace
} // namespace cudaq::realtime::tools::test

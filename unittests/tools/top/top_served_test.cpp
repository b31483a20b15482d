// SPDX-License-Identifier: Apache-2.0
// `top` beside a running server.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/json_schema.h"
#include "unittests/tools/common/run_on_terminal.h"
#include "unittests/tools/serve/serve_fixture.h"

#include <cstring>
#include <regex>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace cudaq::realtime::tools::test {
namespace {

class Top : public Serve {
protected:
  std::string counters() const { return (folder_.path() / "counters").string(); }
  /// False: the program has ended, or shows nothing.
  static bool shows_an_interval(running_program &top) {
    for (std::string line = top.line(); !line.empty(); line = top.line())
      if (contains(line, "requests/s"))
        return true;
    return false;
  }
};

TEST_F(Top, ReportsTheRequestsOfEachInterval) {
  running_program server(arguments({"--counters", counters()}), err());
  ASSERT_TRUE(contains(server.line(), "READY")) << read_file(err());
  const auto out = folder_.path() / "top.json";
  running_program top({"top", "--counters", counters(), "--interval", "0.5", "--count", "3", "--json", out}, err());
  socket_peer peer(socket());
  std::uint64_t sent = 0;
  ASSERT_TRUE(shows_an_interval(top)) << read_file(err());
  for (; top.runs() || sent < 200; ++sent) // in the intervals after the first, until the last reading
    ASSERT_EQ(peer.call(kEnqueue, enqueue(sent, 1)).status, 0);
  EXPECT_EQ(top.wait(), 0) << read_file(err());
  const auto report = nlohmann::json::parse(read_file(out));
  const json_schema schema(nlohmann::json::parse(read_file(CUDAQ_REPORT_SCHEMA)));
  for (const std::string &problem : schema.problems_of(report))
    ADD_FAILURE() << problem;
  ASSERT_EQ(report.at("samples").size(), 3u);
  std::uint64_t seen = 0, answers = 0;
  for (const auto &sample : report.at("samples")) {
    ASSERT_EQ(sample.at("decoders").size(), 1u);
    const auto &decoder = sample.at("decoders").at(0);
    EXPECT_EQ(decoder.at("id"), 6);
    seen += decoder.at("requests").get<std::uint64_t>();
    const auto answered = decoder.at("latency_ns").at("count").get<std::uint64_t>(); // not read at the same time
    answers += answered;
    if (answered != 0) {
      EXPECT_GT(decoder.at("latency_ns").at("p99").get<double>(), 0);
      EXPECT_GE(decoder.at("latency_ns").at("p99"), decoder.at("latency_ns").at("p50"));
    }
  }
  EXPECT_GT(seen, 0u);
  EXPECT_LE(seen, sent);
  EXPECT_GT(answers, 0u);
  EXPECT_LE(answers, sent);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(Top, ClearsATerminalBeforeEachReadingAndNothingElse) {
  running_program server(arguments({"--counters", counters()}), err());
  ASSERT_TRUE(contains(server.line(), "READY")) << read_file(err());
  const std::vector<std::string> words{"top", "--counters", counters(), "--interval", "0.1", "--count", "3"};
  const std::string home_and_clear = "\x1b[H\x1b[J", escape = "\x1b[";
  const auto starts_of = [](const std::string &part, const std::string &text) {
    std::vector<std::size_t> all;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      all.push_back(at);
    return all;
  };
  const terminal_result shown = run_on_terminal(words, {{"TERM", "xterm"}, {"NO_COLOR", ""}});
  EXPECT_EQ(shown.exit_code, 0) << shown.text;
  const std::vector<std::size_t> cleared = starts_of(home_and_clear, shown.text);
  const std::vector<std::size_t> readings = starts_of("requests/s, ", shown.text);
  ASSERT_EQ(cleared.size(), 3u) << shown.text;
  ASSERT_EQ(readings.size(), 3u) << shown.text;
  for (std::size_t n = 0; n < 3; ++n) {
    EXPECT_LT(cleared[n], readings[n]);
    EXPECT_TRUE(n == 0 || readings[n - 1] < cleared[n]) << "one reading after each";
  }

  const terminal_result dumb = run_on_terminal(words, {{"TERM", "dumb"}});
  EXPECT_EQ(starts_of("requests/s, ", dumb.text).size(), 3u) << dumb.text;
  EXPECT_FALSE(contains(dumb.text, escape)) << dumb.text;
  const program_result piped = run_program("top --interval 0.1 --count 3 --counters " + counters());
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_EQ(starts_of("requests/s, ", piped.out).size(), 3u) << piped.out;
  EXPECT_FALSE(contains(piped.out, escape)) << piped.out;
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(Top, EndsByAKeyAndShowsClockServerAndKeys) {
  running_program server(arguments({"--counters", counters()}), err());
  ASSERT_TRUE(contains(server.line(), "READY")) << read_file(err());
  const terminal_result shown = run_on_terminal({"top", "--counters", counters(), "--interval", "0.1"},
                                                {{"TERM", "xterm"}}, {"(q: end, space: read now)", "q"});
  EXPECT_EQ(shown.exit_code, 0) << shown.text;
  const std::regex header("20[0-9][0-9]-[0-9-]+ [0-9:]+  " + counters() + "  .q: end");
  EXPECT_TRUE(std::regex_search(shown.text, header)) << shown.text;
  const program_result piped = run_program("top --interval 0.1 --count 1 --counters " + counters());
  EXPECT_TRUE(contains(piped.out, "  " + counters() + "\n")) << piped.out;
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(Top, EndsByCtrlCWithItsReport) {
  running_program server(arguments({"--counters", counters()}), err());
  ASSERT_TRUE(contains(server.line(), "READY")) << read_file(err());
  const auto out = folder_.path() / "top.json";
  running_program top({"top", "--counters", counters(), "--interval", "0.1", "--count", "100000", "--json", out},
                      err());
  ASSERT_TRUE(shows_an_interval(top)) << read_file(err());
  top.signal(SIGINT);
  EXPECT_EQ(top.wait(), 130) << read_file(err());
  const auto report = nlohmann::json::parse(read_file(out));
  EXPECT_EQ(report.at("interrupted"), true);
  EXPECT_GE(report.at("samples").size(), 1u);
}

TEST_F(Top, SaysWhenTheServerHasEnded) {
  running_program server(arguments({"--counters", counters()}), err());
  ASSERT_TRUE(contains(server.line(), "READY")) << read_file(err());
  running_program top({"top", "--counters", counters(), "--interval", "0.1"}, folder_.path() / "top_err");
  ASSERT_TRUE(shows_an_interval(top)) << read_file(err());
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_NE(top.wait(), 0);
  EXPECT_TRUE(contains(read_file(folder_.path() / "top_err"), counters())) << read_file(folder_.path() / "top_err");
}

/// A socket that accepts connections and sends nothing.
class silent_listener {
public:
  silent_listener(const std::string &path, int backlog) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sun_family = AF_UNIX;
    std::strncpy(address_.sun_path, path.c_str(), sizeof address_.sun_path - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr *>(&address_), sizeof address_), 0);
    EXPECT_EQ(listen(fd_, backlog), 0);
  }
  ~silent_listener() {
    for (const int fd : clients_)
      close(fd);
    close(fd_);
  }
  silent_listener(const silent_listener &) = delete;
  silent_listener &operator=(const silent_listener &) = delete;
  /// Connects until no more connections are accepted.
  void fill() {
    for (bool full = false; !full && clients_.size() < 100;) {
      clients_.push_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      full = connect(clients_.back(), reinterpret_cast<const sockaddr *>(&address_), sizeof address_) != 0;
    }
  }

private:
  int fd_;
  sockaddr_un address_{};
  std::vector<int> clients_;
};

TEST_F(Top, CtrlCBeforeTheFirstReadingIsAReportToo) {
  for (const bool full : {false, true}) {
    silent_listener listener(counters() + (full ? "_full" : ""), 1);
    if (full)
      listener.fill();
    const auto out = folder_.path() / "top.json";
    running_program top({"top", "--counters", counters() + (full ? "_full" : ""), "--count", "3", "--json", out},
                        err());
    top.until([&] { return top.catches(SIGINT); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    top.signal(SIGINT);
    EXPECT_EQ(top.wait(), 130) << read_file(err());
    const auto report = nlohmann::json::parse(read_file(out));
    EXPECT_EQ(report.at("interrupted"), true);
    EXPECT_EQ(report.at("error"), "interrupted after 0 of 3 readings");
    EXPECT_EQ(report.at("samples").size(), 0u);
  }
}

TEST_F(Top, EndsWhenItsOutputIsClosed) {
  running_program server(arguments({"--counters", counters()}), err());
  ASSERT_TRUE(contains(server.line(), "READY")) << read_file(err());
  const std::string command = kWithLimit + std::string(CUDAQ_TOOL_PATH) + " top --interval 0.05 --counters " +
                              counters() + " >/dev/full 2>/dev/null";
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(Top, CountsTheWinsOfARaceFromTheLastExchange) {
  const std::string race = "decoders:\n  - id: 6\n    type: race:bp-osd|relay-bp\n    dem: |\n" + model(0);
  write(yaml(), race);
  running_program server(arguments({"--counters", counters()}), err());
  ASSERT_TRUE(contains(server.line(), "READY")) << read_file(err());
  socket_peer peer(socket());
  for (int shot = 0; shot < 5; ++shot)
    ASSERT_EQ(peer.call(kOneShot, {0b0100}).status, 0);
  const std::string command = "top --interval 0.1 --count 1 --counters " + counters();
  const auto wins = [&] {
    const auto total = run_program(command + " --json").json().at("samples").at(0).at("decoders").at(0).at("total");
    EXPECT_EQ(total.at("shots"), 5) << "since the start";
    int sum = 0;
    for (const auto &count : total.at("race_wins"))
      sum += count.get<int>();
    return sum;
  };
  EXPECT_EQ(wins(), 5);
  server.signal(SIGHUP);
  EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_APPLIED") << read_file(err());
  EXPECT_EQ(wins(), 0);
  const program_result text = run_program(command);
  EXPECT_TRUE(contains(text.out, "race         won     since exchange  member\n")) << text.out;
}

TEST_F(Top, RefusesAPathWithoutAServer) {
  write(folder_.path() / "file", "");
  for (const std::string &path :
       {std::string("/nonexistent/socket"), (folder_.path() / "file").string(), std::string(200, 'x')}) {
    const program_result r = run_program("top --count 1 --counters " + path);
    EXPECT_EQ(r.exit_code, path.size() == 200 ? 2 : 3) << path;
    EXPECT_TRUE(contains(r.err, "--counters " + path)) << r.err;
  }
  const program_result endless = run_program("top --json --counters /nonexistent/socket");
  EXPECT_EQ(endless.exit_code, 2);
}

} // namespace
} // namespace cudaq::realtime::tools::test

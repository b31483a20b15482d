// SPDX-License-Identifier: Apache-2.0
// How the server ends: what it still answers, what signals do, and decoders that do not end.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/json_schema.h"
#include "unittests/tools/serve/serve_fixture.h"

#include <sys/stat.h>

namespace cudaq::realtime::tools::test {
namespace {

// Known failure 35.
TEST_F(Serve, DrainsRequestsThatItHasTaken) {
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  ASSERT_EQ(peer.call(kReset, numbers({6})).status, 0); // connected
  for (std::uint64_t counter = 0; counter < 6; ++counter)
    peer.send_frame(kEnqueue, enqueue(counter, 1));
  server.signal(SIGTERM);
  // Those before the drain are served, the others refused; all that came into the ring are answered, in order.
  bool draining = false;
  for (std::uint32_t k = 0; k < 6; ++k) {
    const wire_answer answer = peer.receive();
    if (answer.status == -9999)
      break; // it was still in the socket when the provider stopped
    EXPECT_EQ(answer.request_id, k + 2);
    EXPECT_EQ(answer.status, draining || answer.status != 0 ? 4 : 0);
    draining = draining || answer.status == 4;
  }
  EXPECT_EQ(server.wait(), 0) << read_file(err());
}

TEST_F(Serve, NotifiesItsServiceManager) {
  const notified_socket manager((folder_.path() / "notify").string());
  running_program server(arguments(), err(), manager.path());
  EXPECT_TRUE(manager.next().starts_with("READY=1\n")) << read_file(err());
  server.signal(SIGHUP);
  EXPECT_TRUE(manager.next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
  EXPECT_EQ(manager.next(), "READY=1");
  server.signal(SIGTERM);
  EXPECT_EQ(manager.next(), "STOPPING=1");
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(Serve, EndsAfterTheTimeoutAndReportsInJson) {
  const auto report = folder_.path() / "report.json";
  running_program server(arguments({"--timeout", "0.2", "--json", report}), err());
  EXPECT_EQ(server.wait(), 0) << read_file(err());
  const auto j = nlohmann::json::parse(read_file(report));
  EXPECT_EQ(json_schema(nlohmann::json::parse(read_file(CUDAQ_REPORT_SCHEMA))).problems_of(j),
            std::vector<std::string>{});
  EXPECT_EQ(j.at("command"), "serve");
  EXPECT_EQ(j.at("ok"), true);
  EXPECT_EQ(j.at("decoders").at(0).at("id"), 6);
}

TEST_F(Serve, TakesTwoSignalsInSuccessionAsOne) {
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  server.signal(SIGTERM); // as timeout(1) does
  server.signal(SIGTERM);
  EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_RING decoder=6 dispatched=0");
  EXPECT_EQ(server.wait(), 0) << "signal " << server.ended_by() << "\n" << read_file(err());
}

TEST_F(Serve, EndsDuringAReloadThatWaitsForTheEndOfAShot) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    const notified_socket manager((folder_.path() / ("notify" + std::to_string(attempt))).string());
    running_program server(arguments(), err(), manager.path());
    ASSERT_NE(server.line(), "") << read_file(err());
    EXPECT_TRUE(manager.next().starts_with("READY=1\n")) << read_file(err());
    socket_peer peer(socket());
    ASSERT_EQ(peer.call(kEnqueue, joined(numbers({6, 0, 0, 2}), {1})).status, 0); // the first half of a shot
    server.signal(SIGHUP);
    EXPECT_TRUE(manager.next().starts_with("RELOADING=1\n"));
    server.signal(SIGTERM);
    EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_BUSY");
    EXPECT_EQ(server.wait(), 0) << read_file(err());
    if (contains(read_file(err()), "a decoder was inside a shot, and the server ends"))
      return;
    std::filesystem::remove(socket()); // else this test slept for 5 s between two signals
  }
  FAIL() << read_file(err());
}

/// The decoder of these does not end a shot in which detector 3 fires.
class ServeStuck : public Serve {
protected:
  std::unique_ptr<running_program> start(unsigned queue_length, const std::string &notify_socket = "",
                                         const char *end_limit = "1", const char *option = "--num-slots=8") const {
    const std::string name = std::to_string(queue_length);
    const auto path = [&](const char *end) { return (folder_.path() / (name + end)).string(); };
    write(path(".yaml"), "decoders:\n  - id: 6\n    type: " + std::string(CUDAQ_TEST_STUCK_DECODER) +
                             "\n    queue_length: " + name + "\n    dem: |\n" + model(0));
    auto server = std::make_unique<running_program>(
        std::vector<std::string>{"serve", "--config", path(".yaml"), "--transport", CUDAQ_TEST_FIXED_SLOTS_PROVIDER,
                                 "--counters", path(".counters"), "--end-limit", end_limit, "--wait", "block", "--",
                                 "--socket=" + path(".sock"), option},
        err(), notify_socket);
    EXPECT_NE(server->line(), "") << read_file(err());
    socket_peer peer(path(".sock"));
    EXPECT_EQ(peer.call(kOneShot, {1}).status, 0);
    peer.send_frame(kOneShot, {0b1000});
    const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimitMs);
    while (!contains(counters_at(path(".counters")), "cudaq_decoder_requests_total{decoder=\"6\"} 2\n")) {
      if (std::chrono::steady_clock::now() > limit)
        throw std::runtime_error("the request did not arrive");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return server;
  }
};

TEST_F(ServeStuck, ReportsADecoderThatDoesNotEnd) {
  const auto without_queue = start(0), with_queue = start(4);
  without_queue->signal(SIGTERM);
  with_queue->signal(SIGTERM);
  for (running_program *server : {without_queue.get(), with_queue.get()}) {
    EXPECT_EQ(server->line(), "QEC_DECODING_SERVER_RING decoder=6 dispatched=2");
    EXPECT_TRUE(server->line().starts_with("CUDAQ_REALTIME_SERVER_PROCESSED count="));
    EXPECT_EQ(server->wait(), 1) << "signal " << server->ended_by() << "\n" << read_file(err());
  }
  EXPECT_TRUE(contains(read_file(err()), "Z cudaq-realtime: decoder 6 did not end; 1 request has no answer\n"))
      << read_file(err());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "0.counters"));
}

TEST_F(ServeStuck, CountsWhateverTheTransportDoesAtTheEnd) {
  const auto server = start(4, "", "0.2", "--hang");
  server->signal(SIGTERM);
  EXPECT_EQ(server->line(), "QEC_DECODING_SERVER_RING decoder=6 dispatched=2") << read_file(err());
  EXPECT_EQ(server->wait(), 1);
}

TEST_F(ServeStuck, IgnoresARepetitionAfterTheFirstSignalWasRead) {
  using namespace std::chrono_literals;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const notified_socket manager((folder_.path() / ("notify" + std::to_string(attempt))).string());
    const auto server = start(0, manager.path(), "100");
    EXPECT_TRUE(manager.next().starts_with("READY=1\n"));
    const auto begin = std::chrono::steady_clock::now();
    server->signal(SIGTERM);
    EXPECT_EQ(manager.next(), "STOPPING=1");
    std::this_thread::sleep_for(250ms);
    server->signal(SIGTERM);
    const bool in_time = std::chrono::steady_clock::now() - begin < 450ms;
    std::this_thread::sleep_for(50ms);
    if (in_time) { // else the machine was too busy, and the second signal was a second wish
      EXPECT_TRUE(server->runs());
      return;
    }
    std::filesystem::remove(folder_.path() / "0.sock");
  }
}

TEST_F(ServeStuck, EndsAtOnceAtTheSecondSignal) {
  const notified_socket manager((folder_.path() / "notify").string());
  const auto server = start(0, manager.path(), "100");
  EXPECT_TRUE(manager.next().starts_with("READY=1\n"));
  server->signal(SIGTERM);
  EXPECT_EQ(manager.next(), "STOPPING=1");
  std::this_thread::sleep_for(std::chrono::milliseconds(600)); // not a repetition of the first
  server->signal(SIGTERM);
  EXPECT_EQ(server->wait(), -1);
  EXPECT_EQ(server->ended_by(), SIGTERM);
  EXPECT_EQ(server->line(), "") << "without a report";
}

/// The decoder hangs in a function of its plug-in.
class ServeHanging : public Serve {
protected:
  std::filesystem::path mark() const { return folder_.path() / "mark"; }
  void write_hanging(const std::string &function) const {
    write(yaml(), "decoders:\n  - id: 6\n    type: " + std::string(CUDAQ_TEST_STUCK_DECODER) + "\n    dem: |\n" +
                      model(0) + "    decoder_custom_args: {hang: " + function + ", mark: " + mark().string() + "}\n");
  }
  bool hangs() const {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimitMs);
    while (!std::filesystem::exists(mark()) && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return std::filesystem::exists(mark());
  }
};

TEST_F(ServeHanging, EndsAtOnceWhileADecoderIsMadeForTheStart) {
  write_hanging("create");
  const auto report = folder_.path() / "report.json";
  running_program server(arguments({"--json", report}), err());
  ASSERT_TRUE(hangs()) << read_file(err());
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << "signal " << server.ended_by();
  EXPECT_TRUE(contains(read_file(err()), "the end came while --config")) << read_file(err());
  EXPECT_EQ(json_schema(nlohmann::json::parse(read_file(CUDAQ_REPORT_SCHEMA)))
                .problems_of(nlohmann::json::parse(read_file(report))),
            std::vector<std::string>{});
}

TEST_F(ServeHanging, EndsACheckWhileADecoderIsMade) {
  write_hanging("create");
  running_program check({"serve", "--check", yaml()}, err());
  ASSERT_TRUE(hangs()) << read_file(err());
  check.signal(SIGTERM);
  EXPECT_EQ(check.wait(), 130) << "signal " << check.ended_by();
  EXPECT_TRUE(contains(read_file(err()), "interrupted after 0 decoders")) << read_file(err());
}

TEST_F(ServeHanging, ServesAndEndsWhileADecoderIsMadeOrFreedInAReload) {
  for (const bool in_create : {true, false}) {
    SCOPED_TRACE(in_create);
    std::filesystem::remove(mark());
    if (in_create)
      write(yaml(), config(0));
    else
      write_hanging("destroy");
    running_program server(arguments(), err());
    ASSERT_NE(server.line(), "") << read_file(err());
    if (in_create)
      write_hanging("create");
    else
      write(yaml(), config(0));
    server.signal(SIGHUP);
    ASSERT_TRUE(hangs()) << read_file(err());
    {
      socket_peer peer(socket());
      EXPECT_EQ(peer.call(kEnqueue, enqueue(0, 1)).status, 0);
    }
    server.signal(SIGTERM);
    EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_BUSY");
    EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_RING decoder=6 dispatched=1");
    EXPECT_EQ(server.wait(), 0) << "signal " << server.ended_by() << "\n" << read_file(err());
    std::filesystem::remove(socket());
  }
}

// All decoders of the server end with it, so the line must say whose fault it is.
TEST_F(ServeHanging, APlugInThatEndsItsThreadIsNamedAtTheEndOfTheProcess) {
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  write_hanging("exit");
  server.signal(SIGHUP);
  server.wait();
  EXPECT_EQ(server.ended_by(), SIGABRT);
  EXPECT_TRUE(contains(read_file(err()), "decoder plug-in: create has ended its thread")) << read_file(err());
}

TEST_F(ServeHanging, EndsAtTheLimitOrTheSecondSignalWhileADecoderIsFreed) {
  write_hanging("destroy");
  for (const bool second : {true, false}) {
    SCOPED_TRACE(second);
    std::filesystem::remove(mark());
    running_program server(arguments({"--end-limit", second ? "100" : "1"}), err());
    ASSERT_NE(server.line(), "") << read_file(err());
    server.signal(SIGTERM);
    ASSERT_TRUE(hangs()) << read_file(err());
    EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_RING decoder=6 dispatched=0") << "before a decoder is freed";
    if (second) {
      std::this_thread::sleep_for(std::chrono::milliseconds(600)); // not a repetition of the first
      server.signal(SIGTERM);
    }
    EXPECT_EQ(server.wait(), second ? -1 : 1) << read_file(err());
    EXPECT_EQ(server.ended_by(), second ? SIGTERM : 0);
    std::filesystem::remove(socket());
  }
  EXPECT_TRUE(contains(read_file(err()), "the end took longer than its limit")) << read_file(err());
}

TEST_F(Serve, RefusesFilesThatMayBlock) {
  const std::string fifo = (folder_.path() / "fifo").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((fifo + ".so").c_str(), 0600), 0);
  const auto model_file = folder_.path() / "model.yaml", plugin = folder_.path() / "plugin.yaml";
  write(model_file, "decoders:\n  - {id: 6, type: lookup, dem_file: fifo}\n");
  write(plugin, "decoders:\n  - {id: 6, type: " + fifo + ".so, dem: 'error(0.1) D0 L0'}\n");
  for (const std::string &path : {fifo, std::string("/dev/zero"), model_file.string(), plugin.string()}) {
    const program_result run = run_program("serve --transport udp --config " + path);
    EXPECT_EQ(run.exit_code, 2) << path;
    EXPECT_TRUE(contains(run.err, "not a regular file")) << run.err;
  }
}

// After SIGTERM: corrections that were not read can be read, begun shots end, new ones are refused.

constexpr std::uint32_t kDescribe = 0xD546EA57;

bool server_ends(const wire_answer &described) {
  return described.status == 0 && described.result.size() == 48 && described.result[40] == 1;
}

/// Until the server says that it ends.
bool waits_for_the_end(socket_peer &peer) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimitMs);
  while (std::chrono::steady_clock::now() < limit)
    if (server_ends(peer.call(kDescribe, numbers({6, 1}))))
      return true;
  return false;
}

TEST_F(Serve, GivesOutFinishedCorrectionsAfterTheSignalAndThenEnds) {
  running_program server(arguments({"--read-limit", "60", "--end-limit", "60"}), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  ASSERT_EQ(peer.call(kReset, numbers({6})).status, 0);
  ASSERT_EQ(peer.call(kEnqueue, enqueue(1, 0b0110)).status, 0);
  ASSERT_EQ(peer.call(kEnqueue, joined(numbers({6, 2, 0, 2}), {1})).status, 0); // half a shot
  ASSERT_FALSE(server_ends(peer.call(kDescribe, numbers({6, 1}))));
  server.signal(SIGTERM);
  ASSERT_TRUE(waits_for_the_end(peer));
  const wire_answer first = peer.call(kGet, get());
  EXPECT_EQ(first.status, 0);
  EXPECT_EQ(first.result, bytes{0b0110});
  EXPECT_EQ(peer.call(kEnqueue, joined(numbers({6, 3, 0, 2}), {0})).status, 0) << "the other half";
  EXPECT_EQ(peer.call(kEnqueue, enqueue(4, 0b1111)).status, 4) << "another shot";
  EXPECT_EQ(peer.call(kOneShot, {1}).status, -4);
  const wire_answer second = peer.call(kGet, get());
  EXPECT_EQ(second.status, 0);
  EXPECT_EQ(second.result, bytes{0b0001});
  EXPECT_EQ(server.wait(), 0) << "everything was read\n" << read_file(err());
}

TEST_F(Serve, WaitsForARequesterThatReadsLate) {
  running_program server(arguments({"--read-limit", "60", "--end-limit", "60"}), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  ASSERT_EQ(peer.call(kEnqueue, enqueue(1, 0b0110)).status, 0);
  server.signal(SIGTERM);
  ASSERT_TRUE(waits_for_the_end(peer));
  std::this_thread::sleep_for(std::chrono::milliseconds(600)); // a server that does not wait has ended by then
  const wire_answer read = peer.call(kGet, get());
  EXPECT_EQ(read.status, 0) << read_file(err());
  EXPECT_EQ(read.result, bytes{0b0110});
  EXPECT_EQ(server.wait(), 0) << read_file(err());
}

TEST_F(Serve, EndsAfterTheReadLimitIfNoRequesterReads) {
  running_program server(arguments({"--read-limit", "0.2", "--end-limit", "1000"}), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  ASSERT_EQ(peer.call(kEnqueue, enqueue(1, 0b0110)).status, 0);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << read_file(err());
}

} // namespace
} // namespace cudaq::realtime::tools::test

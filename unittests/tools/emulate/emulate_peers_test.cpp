// SPDX-License-Identifier: Apache-2.0
// `emulate` beside servers that were started without standard streams, are stopped, are not there, or have another
// model.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/closed_streams.h"
#include "unittests/tools/common/two_terminals.h"
#include "unittests/tools/serve/serve_fixture.h"

#include <sstream>

namespace cudaq::realtime::tools::test {
namespace {

class EmulatePeers : public testing::Test {
protected:
  void SetUp() override {
    if (no_yaml())
      GTEST_SKIP() << "this build has no YAML parser, so no server";
    write(yaml(), std::string("decoders: [{id: 0, type: lookup, dem_file: ") + CUDAQ_TEST_DATA +
                      "/surface_z_d3_p0.005.dem}]\n");
  }
  std::filesystem::path yaml() const { return scratch_.path() / "decoders.yaml"; }
  std::string err() const { return read_file(scratch_.path() / "err"); }
  /// One of our own providers, with words of its options.
  std::unique_ptr<running_program> serve(const std::string &transport, const std::string &options) const {
    std::vector<std::string> words{
        "serve", "--config", yaml(), "--transport", transport == "shm" ? CUDAQ_SHM_PROVIDER : CUDAQ_UDP_PROVIDER, "--"};
    std::istringstream more(options);
    for (std::string word; more >> word;)
      words.push_back(word);
    return std::make_unique<running_program>(words, scratch_.path() / "err");
  }
  /// The client's options that name the server of this READY line.
  std::string where(const std::string &transport, const std::string &ready) const {
    const std::size_t port = ready.find("port=");
    return " --transport " + transport +
           (transport == "shm" ? " --name " + name_
                               : " --port " + ready.substr(port + 5, ready.find(' ', port) - port - 5));
  }

  const scratch_folder scratch_;
  const std::string name_ = "emulate-peers-" + std::to_string(getpid());
};

TEST_F(EmulatePeers, AServerWithoutStandardStreamsLosesNothing) {
  for (unsigned streams = 0; streams < 8; ++streams) {
    const std::string counters = scratch_.path() / "counters", json = scratch_.path() / "served.json",
                      shape = streams % 2 == 0 ? " --unified" : "";
    running_program server({"-c", std::string("exec '") + CUDAQ_TOOL_PATH + "' serve --end-limit 100 --counters '" +
                                      counters + "' --config '" + yaml().string() + "' --json '" + json +
                                      "' --transport '" + CUDAQ_SHM_PROVIDER + "' -- --name=" + name_ + shape +
                                      closed(streams)},
                           scratch_.path() / "err", "", "/bin/sh");
    const program_result r =
        run_program("emulate --json --timeout 100 --config d3 --shots 300 --decoder-ids 0 --protocol server "
                    "--transport shm --name " +
                    name_);
    EXPECT_EQ(r.exit_code, 0) << closed(streams) << "\n" << r.err << err();
    const std::string top = std::string("'") + CUDAQ_TOOL_PATH + "' top --count 1 --interval 0.05 --counters '" +
                            counters + "' >/dev/null" + closed(streams);
    EXPECT_EQ(std::system(top.c_str()), 0) << top;
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0) << closed(streams);
    EXPECT_EQ(nlohmann::json::parse(read_file(json), nullptr, false).value("ok", false), true) << read_file(json);
  }
}

TEST_F(EmulatePeers, AServerThatIsStoppedEndsTheRunAfterTheTimeout) {
  for (const auto &[transport, options] :
       {std::pair{"shm", "--name=" + name_}, std::pair{"shm", "--unified --num-slots=4 --name=" + name_},
        std::pair{"udp", std::string("--port=0")}}) {
    const auto server = serve(transport, options);
    const std::string ready = server->line(), json = scratch_.path() / "run.json";
    std::istringstream words("emulate --timeout 0.3 --config d3 --duration 3600 --json " + json +
                             where(transport, ready));
    running_program client(std::vector<std::string>(std::istream_iterator<std::string>(words), {}),
                           scratch_.path() / "client.err");
    client.until([&] { return client.catches(SIGTERM); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    server->signal(SIGSTOP);
    EXPECT_EQ(client.wait(), 1) << transport << options << read_file(scratch_.path() / "client.err");
    EXPECT_EQ(nlohmann::json::parse(read_file(json), nullptr, false).value("stalled", false), true) << transport;
    server->signal(SIGCONT);
    server->signal(SIGTERM);
    EXPECT_EQ(server->wait(), 0);
  }
}

TEST_F(EmulatePeers, AnAddressWhereNoServerListensIsNamed) {
  const std::uint32_t port = unused_udp_port();
  const program_result r = run_program("emulate --timeout 40 --config d3 --port " + std::to_string(port));
  EXPECT_EQ(r.exit_code, 3) << r.err;
  EXPECT_TRUE(contains(r.err, "udp 127.0.0.1:" + std::to_string(port))) << r.err;
  EXPECT_TRUE(contains(r.err, "no server listens there")) << r.err;
}

TEST_F(EmulatePeers, AServerWithAnotherModelIsNamedWithBothModels) {
  for (const auto &[transport, options] :
       {std::pair{"shm", "--name=" + name_}, std::pair{"udp", std::string("--port=0")},
        std::pair{"udp", std::string("--port=0 --slot-size=512")}}) {
    const auto server = serve(transport, options);
    const std::string to = where(transport, server->line());
    const program_result r = run_program("emulate --config d13 --shots 10" + to);
    EXPECT_EQ(r.exit_code, 2) << r.err;
    EXPECT_TRUE(contains(r.err, "the server has another model than the shots: 24 detectors, 1 observable")) << r.err;
    EXPECT_TRUE(contains(r.err, "surface_z_d13_p0.005 has 2184 detectors, 1 observable")) << r.err;
    if (!contains(options, "512")) { // else the sizes of the slots differ
      const auto noise = run_program("emulate --json --config d3 --noise 0.003 --shots 10" + to).json();
      EXPECT_EQ(noise.value("server_has_other_model", false), true) << noise.dump(2);
    }
    server->signal(SIGTERM);
    EXPECT_EQ(server->wait(), 0) << err();
  }
}

// `emulate` with repeats beside a server that is killed and started again, and beside none.

class EmulateRestart : public Serve {
protected:
  std::unique_ptr<running_program> serve(const std::string &port) const {
    return std::make_unique<running_program>(std::vector<std::string>{"serve", "--config", yaml(), "--counters",
                                                                      counters(), "--transport", CUDAQ_UDP_PROVIDER,
                                                                      "--", "--port", port},
                                             err());
  }
  std::string counters() const { return folder_.path() / "counters"; }
  /// The server has had 50 requests for decoder 0. False: not before the limit.
  bool has_served() const {
    const std::string name = "\ncudaq_decoder_requests_total{decoder=\"0\"} ";
    const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimitMs);
    while (std::chrono::steady_clock::now() < limit) {
      const std::string text = counters_at(counters());
      if (const std::size_t at = text.find(name);
          at != std::string::npos && std::stoi(text.substr(at + name.size())) > 50)
        return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }
};

TEST_F(EmulateRestart, SaysThatTheServerWasRestarted) {
  write(yaml(),
        std::string("decoders: [{id: 0, type: lookup, dem_file: ") + CUDAQ_TEST_DATA + "/surface_z_d3_p0.005.dem}]\n");
  const std::string port = std::to_string(unused_udp_port());
  auto server = serve(port);
  ASSERT_NE(server->line(), "") << read_file(err());
  const std::string json = folder_.path() / "run.json";
  running_program client({"emulate", "--transport", "udp", "--port", port, "--protocol", "server", "--config", "d3",
                          "--duration", "3600", "--rate", "500", "--retry-ms", "20", "--timeout", "120", "--json",
                          json},
                         folder_.path() / "client.err");
  ASSERT_TRUE(has_served()) << read_file(folder_.path() / "client.err");
  client.signal(SIGSTOP); // it gives up after 3 s of refusals, and a server starts slower than that on a busy machine
  server->signal(SIGKILL);
  server->wait();
  server = serve(port);
  ASSERT_NE(server->line(), "") << read_file(err());
  client.signal(SIGCONT);
  EXPECT_TRUE(has_served()) << read_file(folder_.path() / "client.err");
  client.signal(SIGTERM);
  client.wait();
  const auto report = nlohmann::json::parse(read_file(json), nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << read_file(folder_.path() / "client.err");
  EXPECT_GT(report.at("error_statuses"), 0) << report.dump(2);
  EXPECT_EQ(report.at("mismatches"), 0) << "no correction was made from two halves";
  EXPECT_TRUE(contains(report.at("notes").dump(), "the server was restarted")) << report.dump(2);
}

TEST_F(EmulateRestart, DoesNotRepeatForTheWholeTimeoutToAPortWhereNothingListens) {
  const std::uint32_t port = unused_udp_port();
  const auto begin = std::chrono::steady_clock::now();
  const program_result r =
      run_program("emulate --timeout 600 --retry-ms 20 --config d3 --port " + std::to_string(port));
  EXPECT_TRUE(r.exit_code == 3 || r.exit_code == 1) << r.exit_code << r.err;
  EXPECT_TRUE(contains(r.err, "no server listens there")) << r.err;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(250));
}

} // namespace
} // namespace cudaq::realtime::tools::test

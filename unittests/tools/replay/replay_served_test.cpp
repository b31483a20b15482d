// SPDX-License-Identifier: Apache-2.0
// `serve --record`, and `replay` of its file: shown, with the decoders in its process, and to a server.
#include "unittests/tools/common/two_terminals.h"

#include <csignal>

namespace cudaq::realtime::tools::test {
namespace {

class Replay : public testing::Test {
protected:
  void SetUp() override {
    if (contains(run_program("serve --config /dev/null").err, "no YAML parser"))
      GTEST_SKIP() << "this build has no YAML parser, so no server";
    write_config("");
  }
  void write_config(const std::string &more, const std::string &model = "surface_z_d3_p0.005") {
    std::ofstream(config()) << "decoders:\n  - id: 0\n    type: lookup\n    dem_file: " << CUDAQ_TEST_DATA << "/"
                            << model << ".dem\n"
                            << more;
  }
  std::string config() const { return scratch_.path() / "decoders.yaml"; }
  std::string file() const { return scratch_.path() / "recording"; }
  std::string log() const { return read_file(scratch_.path() / "serve.err"); }
  std::unique_ptr<running_program> serve(const std::vector<std::string> &more) {
    std::vector<std::string> words = {"serve", "--config", config(), "--transport", CUDAQ_UDP_PROVIDER};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "--port=0", "--unified"});
    auto server = std::make_unique<running_program>(words, scratch_.path() / "serve.err");
    port_ = value_in(server->line(), "port");
    return server;
  }
  void play_shots(const std::string &options) const {
    (void)run_good_program("emulate --json --timeout 30 --transport udp --port " + port_ +
                           " --config d3 --decoder lookup " + options);
  }
  nlohmann::json good(const std::string &arguments) const {
    auto report = run_good_program("replay " + arguments + " --json");
    EXPECT_EQ(json_schema(nlohmann::json::parse(read_file(CUDAQ_REPORT_SCHEMA))).problems_of(report),
              std::vector<std::string>{});
    return report;
  }

  scratch_folder scratch_;
  std::string port_;
};

TEST_F(Replay, OfAServerThatWasKilledIsBitEqual) {
  {
    const auto server = serve({"--record", file() + ":1000"});
    ASSERT_NE(port_, "") << log();
    play_shots("--shots 200 --protocol server --decoder-ids 0");
    play_shots("--shots 100");
    server->signal(SIGKILL);
    (void)server->wait();
  }
  const auto shown = good(file());
  EXPECT_EQ(shown.at("recording").at("places"), 1024);
  EXPECT_GE(shown.at("recording").at("requests"), 500);
  const auto here = good(file() + " --config " + config());
  EXPECT_GE(here.at("equal"), 500);
  EXPECT_EQ(here.at("different"), 0);
  const auto server = serve({"--record", file()});
  ASSERT_NE(port_, "") << log();
  const auto there = good(file() + ".1 --transport udp --port " + port_);
  EXPECT_EQ(there.at("equal"), here.at("equal"));
  EXPECT_EQ(there.at("different"), 0);
  server->signal(SIGTERM);
  EXPECT_EQ(server->wait(), 0) << log();
  EXPECT_GE(good(file()).at("recording").at("requests"), 500) << "the replay was recorded, too";
}

TEST_F(Replay, FindsAnotherModel) {
  {
    const auto server = serve({"--record", file()});
    ASSERT_NE(port_, "") << log();
    play_shots("--shots 300");
    server->signal(SIGTERM);
    EXPECT_EQ(server->wait(), 0) << log();
  }
  // The observable is never flipped.
  std::string model = read_file(std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.005.dem");
  for (std::size_t at = model.find(" L0"); at != std::string::npos; at = model.find(" L0"))
    model.erase(at, 3);
  std::ofstream(scratch_.path() / "other.dem") << model << "logical_observable L0\n";
  std::ofstream(config()) << "decoders: [{id: 0, type: lookup, dem_file: other.dem}]\n";
  const program_result r = run_program("replay " + file() + " --config " + config() + " --json");
  EXPECT_EQ(r.exit_code, 1) << r.out << r.err;
  const auto report = r.json();
  EXPECT_GT(report.at("different"), 0);
  EXPECT_TRUE(contains(report.at("error").get<std::string>(), "answers differ"));
  EXPECT_EQ(report.at("differences").at(0).at("verdict"), "other bits");
}

TEST_F(Replay, RecordsAsTheConfigurationSays) {
  write_config("record: {file: recording, requests: 3}\n");
  const auto server = serve({});
  ASSERT_NE(port_, "") << log();
  play_shots("--shots 10");
  EXPECT_EQ(good(file()).at("recording").at("requests"), 4) << "of a server that runs";
  write_config("record: {file: recording, requests: 30}\n");
  server->signal(SIGHUP);
  EXPECT_EQ(server->line(), "QEC_DECODING_SERVER_CONFIG_REJECTED old_config_active");
  EXPECT_TRUE(contains(log(), "record: it is fixed")) << log();
  server->signal(SIGTERM);
  EXPECT_EQ(server->wait(), 0) << log();
}

TEST_F(Replay, SaysWhichSectionsTheCommandLineReplaces) {
  write_config("record: {file: other}\nrealtime: {priority: 1}\n");
  const auto server = serve({"--record", file(), "--realtime", "pool_cores: []"});
  ASSERT_NE(port_, "") << log();
  const std::string text = "the section of the configuration is not used";
  EXPECT_TRUE(contains(log(), "record: " + text) && contains(log(), "realtime: " + text)) << log();
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "other"));
  server->signal(SIGTERM);
  EXPECT_EQ(server->wait(), 0) << log();
}

TEST_F(Replay, RefusesWhatItCannotUse) {
  const auto refused = [&](const std::string &arguments, const char *text, int status = 2) {
    const program_result r = run_program(arguments);
    EXPECT_EQ(r.exit_code, status) << arguments << r.out << r.err;
    EXPECT_TRUE(contains(r.err, text)) << arguments << "\n" << r.err;
  };
  refused("replay", "FILE");
  refused("replay " + scratch_.path().string() + "/none", "cannot be opened");
  refused("replay " + config(), "no recording");
  refused("replay x --config a --transport udp", "excludes");
  refused("replay x --as-recorded", "no effect");
  refused("replay x --transport shm --port 5", "no effect with --transport shm");
  refused("replay x --qp 5", "no effect with no --transport");
  const std::string serve = "serve --config " + config() + " --transport " + CUDAQ_UDP_PROVIDER + " --record ";
  refused(serve + file() + ":0", "accepted: 1 to 16777216");
  refused(serve + file() + ":99999999999999999999", "accepted: 1 to 16777216");
  refused(serve + ":5", "the name of the file is missing");
  std::ofstream(file()) << "my thesis";
  refused(serve + file() + " -- --port=0", "no recording");
  EXPECT_EQ(read_file(file()), "my thesis");
  write_config("record: {requests: 5}\n");
  refused("serve --check " + config(), "record.file: the field is missing");
  write_config("record: {file: \"\"}\n");
  refused("serve --check " + config(), "record.file: it is empty");
}

} // namespace
} // namespace cudaq::realtime::tools::test

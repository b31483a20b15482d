// SPDX-License-Identifier: Apache-2.0
// The two terminals of the README: `serve` in one process, `emulate` in another, every answer against the recorded
// predictions.
#include "unittests/tools/common/json_schema.h"
#include "unittests/tools/serve/served_program.h"
#include "unittests/tools/trace/trace_events.h"
#include "unittests/transport/roce/roce_requester.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

struct shape {
  const char *name, *transport, *library, *options;
};
void PrintTo(const shape &s, std::ostream *out) { *out << s.name; }

std::string value_in(const std::string &line, const std::string &key) {
  const std::size_t at = line.find(" " + key + "=");
  return at == std::string::npos ? "" : line.substr(at + key.size() + 2, line.find(' ', at + 1) - at - key.size() - 2);
}

class TwoTerminals : public testing::TestWithParam<shape> {
protected:
  void SetUp() override {
    if (contains(run_program("serve --config /dev/null").err, "no YAML parser"))
      GTEST_SKIP() << "this build has no YAML parser, so no server";
    const auto config = scratch_.path() / "decoders.yaml";
    std::ofstream(config) << "decoders:\n  - id: 0\n    type: pymatching\n    dem_file: " << CUDAQ_TEST_DATA
                          << "/surface_z_d3_p0.005.dem\n  - id: 1\n    type: pymatching\n    dem_file: "
                          << CUDAQ_TEST_DATA << "/surface_z_d3_p0.005.dem\n";
    name_ = "emulate-test-" + std::to_string(getpid());
    std::vector<std::string> arguments = {"serve",       "--config",         config.string(),
                                          "--transport", GetParam().library, "--"};
    std::istringstream options(GetParam().options);
    for (std::string option; options >> option;)
      arguments.push_back(option == "--name=" ? option + name_ : option);
    server_ = std::make_unique<running_program>(arguments, scratch_.path() / "serve.err");
    const std::string ready = server_->line();
    if (contains(read_file(scratch_.path() / "serve.err"), "PyMatching"))
      GTEST_SKIP() << "this build has no PyMatching";
    ASSERT_TRUE(contains(ready, "QEC_DECODING_SERVER_READY")) << ready << read_file(scratch_.path() / "serve.err");
    port_ = value_in(ready, "port");
  }

  std::string where() const {
    return std::string(GetParam().transport) == "shm" ? "--name " + name_ : "--port " + port_;
  }
  nlohmann::json emulate(const std::string &options) const {
    auto report = run_good_program("emulate --json --timeout 30 --config d3 --transport " +
                                   std::string(GetParam().transport) + " " + where() + " " + options);
    EXPECT_EQ(json_schema(nlohmann::json::parse(read_file(CUDAQ_REPORT_SCHEMA))).problems_of(report),
              std::vector<std::string>{});
    return report;
  }

  scratch_folder scratch_;
  std::string name_, port_;
  std::unique_ptr<running_program> server_;
};

TEST_P(TwoTerminals, GiveTheRecordedPredictions) {
  const auto once = emulate("--shots 3000");
  ASSERT_FALSE(once.is_discarded());
  EXPECT_EQ(once.at("shots_answered"), 3000);
  EXPECT_EQ(once.at("mismatches"), 0);
  EXPECT_EQ(once.at("lost"), 0);
  for (int run = 0; run < 2; ++run) { // the second one finds decoders with a state
    const auto streams = emulate("--shots 250 --protocol server --decoder-ids 0,1");
    ASSERT_FALSE(streams.is_discarded());
    EXPECT_EQ(streams.at("requests"), 502);
    EXPECT_EQ(streams.at("mismatches"), 0);
  }
  server_->signal(SIGTERM);
  std::string last;
  for (std::string line; !(line = server_->line()).empty();)
    last = line;
  EXPECT_EQ(last, "CUDAQ_REALTIME_SERVER_PROCESSED count=4004");
  EXPECT_EQ(server_->wait(), 0);
}

TEST_P(TwoTerminals, Row69_PlayForATimeAndAtARate) {
  const std::string file = scratch_.path() / "trace.json";
  const auto report = emulate("--duration 0.3 --rate 100 --trace " + file);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_GE(report.at("shots").get<int>(), 1);
  EXPECT_LE(report.at("shots").get<int>(), 31) << "a shot each 10 ms";
  EXPECT_EQ(report.at("shots_answered"), report.at("shots"));
  const checked_trace trace(read_file(file));
  EXPECT_EQ(trace.requests(1, "request", "slot").size(), report.at("requests").get<std::size_t>());
  EXPECT_EQ(trace.requests(1, "send", "client").size(), report.at("requests").get<std::size_t>());
}

TEST_P(TwoTerminals, SayWhenTheServerIsGone) {
  server_->signal(SIGKILL);
  server_->wait();
  const program_result r =
      run_program("emulate --timeout 0.3 --config d3 --transport " + std::string(GetParam().transport) + " " + where());
  EXPECT_NE(r.exit_code, 0);
  EXPECT_FALSE(r.err.empty());
}

INSTANTIATE_TEST_SUITE_P(Shapes, TwoTerminals,
                         testing::Values(shape{"UdpRing", "udp", CUDAQ_UDP_PROVIDER, "--port=0"},
                                         shape{"UdpUnified", "udp", CUDAQ_UDP_PROVIDER, "--port=0 --unified"},
                                         shape{"RoceRing", "roce", CUDAQ_ROCE_PROVIDER, "--port=0 --peer-port=0"},
                                         shape{"RoceUnified", "roce", CUDAQ_ROCE_PROVIDER,
                                               "--port=0 --peer-port=0 --unified"},
                                         shape{"ShmUnified", "shm", CUDAQ_SHM_PROVIDER, "--name= --unified"}),
                         [](const auto &one) { return std::string(one.param.name); });

// Enqueue must not be executed twice: the server's replay window is larger than the ids that are open together.
using LossyLink = TwoTerminals;
TEST_P(LossyLink, IsMadeGoodByRepeats) {
  const auto server = static_cast<std::uint32_t>(std::stoul(port_));
  for (const char *options : {"--shots 1500", "--shots 300 --protocol server --decoder-ids 0,1"}) {
    realtime::test::relay_rewrite rewrite;
    if (std::string(GetParam().transport) == "roce")
      rewrite = realtime::test::seal_anew;
    realtime::test::lossy_relay relay(server, {0.02, 0.01, 0.01}, 7, rewrite); // a new peer, whose ids begin again
    port_ = std::to_string(relay.port());
    const auto j = emulate(std::string(options) + " --retry-ms 20");
    ASSERT_FALSE(j.is_discarded());
    EXPECT_EQ(j.at("shots_answered"), j.at("shots"));
    EXPECT_EQ(j.at("mismatches"), 0);
    EXPECT_EQ(j.at("lost"), 0);
    EXPECT_GT(relay.lost(), 0u);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Shapes, LossyLink,
    testing::Values(shape{"UdpRing", "udp", CUDAQ_UDP_PROVIDER, "--port=0 --replay-window=256"},
                    shape{"UdpUnified", "udp", CUDAQ_UDP_PROVIDER, "--port=0 --replay-window=256 --unified"},
                    shape{"RoceRing", "roce", CUDAQ_ROCE_PROVIDER, "--port=0 --peer-port=0 --replay-window=256"}),
    [](const auto &one) { return std::string(one.param.name); });

TEST(Emulate, RefusesWhatItCannotUse) {
  EXPECT_EQ(run_program("emulate --transport udp").exit_code, 2) << "no port";
  EXPECT_EQ(run_program("emulate --transport shm").exit_code, 2) << "no name";
  EXPECT_EQ(run_program("emulate --transport pigeon").exit_code, 2);
  const program_result small = run_program("emulate --transport udp --port 9 --slot-size 24 --config d3");
  EXPECT_EQ(small.exit_code, 2);
  EXPECT_TRUE(contains(small.err, "--slot-size is 24: a request of these shots needs 27 bytes")) << small.err;
}

} // namespace
} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
// The two terminals of the README: `serve` in one process, `emulate` in another, every answer against the recorded
// predictions.
#include "unittests/tools/common/two_terminals.h"
#include "unittests/tools/trace/trace_events.h"
#include "unittests/transport/roce/roce_requester.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <iterator>
#include <regex>
#include <sstream>

namespace cudaq::realtime::tools::test {
namespace {

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
  const int processed = std::atoi(value_in(last, "count").c_str());
  const int leave = std::string(GetParam().name) == "ShmRing" ? 3 : 0; // frames that free the ring of a client
  EXPECT_GE(processed, 4004) << last;
  EXPECT_LE(processed, 4014 + leave)
      << "5 queries each for model and name, and none after one without an answer in time";
  EXPECT_EQ(server_->wait(), 0);
}

// Known failure 69.
TEST_P(TwoTerminals, PlayForATimeAndAtARate) {
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

TEST_P(TwoTerminals, SayWhenTheServerHasEnded) {
  server_->signal(SIGKILL);
  server_->wait();
  const program_result r =
      run_program("emulate --timeout 0.3 --config d3 --transport " + std::string(GetParam().transport) + " " + where());
  EXPECT_NE(r.exit_code, 0);
  EXPECT_FALSE(r.err.empty());
}

TEST_P(TwoTerminals, NameTheDecodersOfTheServerIfOneIsUnknown) {
  const program_result r = run_program("emulate --protocol server --decoder-ids 7 --config d3 --transport " +
                                       std::string(GetParam().transport) + " " + where());
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_NE(r.err.find("the server has no decoder 7; of the ids 0 to 31 it has 0, 1: give --decoder-ids"),
            std::string::npos)
      << r.err;
}

INSTANTIATE_TEST_SUITE_P(Shapes, TwoTerminals,
                         testing::Values(shape{"UdpRing", "udp", CUDAQ_UDP_PROVIDER, "--port=0"},
                                         shape{"UdpUnified", "udp", CUDAQ_UDP_PROVIDER, "--port=0 --unified"},
                                         shape{"RoceRing", "roce", CUDAQ_ROCE_PROVIDER, "--port=0 --peer-port=0"},
                                         shape{"RoceUnified", "roce", CUDAQ_ROCE_PROVIDER,
                                               "--port=0 --peer-port=0 --unified"},
                                         shape{"ShmRing", "shm", CUDAQ_SHM_PROVIDER, "--name="},
                                         shape{"ShmUnified", "shm", CUDAQ_SHM_PROVIDER, "--name= --unified"}),
                         [](const auto &one) { return std::string(one.param.name); });

// Enqueue and reads that clear must not be executed twice: the server knows repeated requests, with and without a
// replay window of the transport.
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
                    shape{"UdpWithoutAWindow", "udp", CUDAQ_UDP_PROVIDER, "--port=0"},
                    shape{"UdpUnifiedWithoutAWindow", "udp", CUDAQ_UDP_PROVIDER, "--port=0 --unified"},
                    shape{"RoceRing", "roce", CUDAQ_ROCE_PROVIDER, "--port=0 --peer-port=0 --replay-window=256"},
                    shape{"RoceWithoutAWindow", "roce", CUDAQ_ROCE_PROVIDER, "--port=0 --peer-port=0"}),
    [](const auto &one) { return std::string(one.param.name); });

// Without a second terminal: the server is a dispatcher of the same process.
TEST(EmulatedRing, GivesTheRecordedPredictions) {
  const program_result first = run_program("emulate --json --timeout 30 --config d3 --transport ring --shots 3000 "
                                           "--decoder pymatching");
  if (first.exit_code == 2 && contains(first.err, "PyMatching"))
    GTEST_SKIP() << "this build has no PyMatching";
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const nlohmann::json j = first.json();
  EXPECT_EQ(json_schema(nlohmann::json::parse(read_file(CUDAQ_REPORT_SCHEMA))).problems_of(j),
            std::vector<std::string>{});
  EXPECT_EQ(j.at("shots_answered"), 3000);
  EXPECT_EQ(j.at("mismatches"), 0);
  EXPECT_EQ(j.at("lost"), 0);
  EXPECT_TRUE(contains(j.at("link").get<std::string>(), "decoder pymatching")) << j.at("link");
}

TEST(EmulatedRing, ReportsAWrongAnswer) {
  const scratch_folder scratch;
  const std::string dem = scratch.path() / "own.dem", in = scratch.path() / "own.01",
                    right = scratch.path() / "right.01", wrong = scratch.path() / "wrong.01";
  std::ofstream(dem) << "error(0.1) D0 L0\nerror(0.1) D1\n";
  std::ofstream(in) << "10\n01\n11\n";
  std::ofstream(right) << "1\n0\n1\n";
  std::ofstream(wrong) << "1\n1\n1\n";
  const std::string own = "emulate --json --timeout 30 --transport ring --decoder lookup --shots 3 --window 2 --dem " +
                          dem + " --in " + in + " --predictions ";
  const program_result good = run_program(own + right);
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.json().at("mismatches"), 0);
  const program_result bad = run_program(own + wrong);
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_EQ(bad.json().at("mismatches"), 1);
}

TEST(EmulatedRing, RefusesOptionsOfAServer) {
  const auto refused = [](const std::string &options, const std::string &text) {
    const program_result r = run_program("emulate --transport " + options);
    EXPECT_EQ(r.exit_code, 2) << options;
    EXPECT_TRUE(contains(r.err, text)) << r.err;
  };
  for (const char *option : {"--port 5000", "--bridge-ip 127.0.0.1", "--name x", "--retry-ms 5", "--slot-size 512",
                             "--page-size 512", "--qp 3"})
    refused(std::string("ring ") + option, "it has no effect with --transport ring");
  refused("ring --protocol server", "serves `decode` only");
  refused("ring --config d13 --decoder lookup", "no decoder for");
}

using SampledShots = TwoTerminals;
TEST_P(SampledShots, FailAsOftenAsInABenchOfTheSameDecoderAndSeed) {
#ifndef CUDAQ_BENCH_PATH
  GTEST_SKIP() << "this build has no benchmarks";
#else
  const std::string dem = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.005.dem";
  const auto bench = run_good_program("decoding --json --decoder pymatching --predecoder passthrough --failures 0 "
                                      "--shots 5000 --seed 77 --dem " +
                                          dem,
                                      CUDAQ_BENCH_PATH);
  ASSERT_FALSE(bench.is_discarded());
  const std::uint64_t failures = bench.at("cases").at(0).at("failures");
  EXPECT_GT(failures, 20u);
  const std::string where = "emulate --json --timeout 30 --transport udp --port " + port_ + " --sample --shots 5000";
  const auto own = run_good_program(where + " --seed 77 --dem " + dem);
  const auto named = run_good_program(where + " --seed 77 --config d3 --noise 0.005");
  const auto other = run_good_program(where + " --seed 78 --dem " + dem);
  ASSERT_FALSE(own.is_discarded() || named.is_discarded() || other.is_discarded());
  EXPECT_EQ(own.at("logical_errors"), failures);
  EXPECT_EQ(named.at("logical_errors"), failures) << "the same model";
  EXPECT_NE(other.at("logical_errors"), failures) << "other shots";
  EXPECT_EQ(own.at("mismatches"), nullptr) << "the right answers are not known";
  const double rate = own.at("logical_error_rate"), low = own.at("logical_error_interval_95").at(0),
               high = own.at("logical_error_interval_95").at(1);
  EXPECT_DOUBLE_EQ(rate, static_cast<double>(failures) / 5000);
  EXPECT_LT(low, rate);
  EXPECT_GT(high, rate);
#endif
}
TEST_P(SampledShots, AreRefusedWithWhatWouldReplaceThem) {
  const std::string where = "emulate --transport udp --port " + port_ + " --sample ";
  EXPECT_EQ(run_program(where + "--in x --dem y").exit_code, 2);
  EXPECT_TRUE(contains(run_program(where + "--dem /nowhere").err, "--dem /nowhere: cannot be read"));
  const program_result many = run_program(where + "--config d13 --shots 100000000");
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_TRUE(contains(many.err, "--shots 100000000: sampled shots are kept in memory")) << many.err;
}
INSTANTIATE_TEST_SUITE_P(Shapes, SampledShots, testing::Values(shape{"UdpRing", "udp", CUDAQ_UDP_PROVIDER, "--port=0"}),
                         [](const auto &one) { return std::string(one.param.name); });

using Times = TwoTerminals;
TEST_P(Times, OfEachRequestAreInTheFileOfIla) {
  const auto file = scratch_.path() / "times.csv";
  const auto j = emulate("--shots 300 --ila " + file.string());
  ASSERT_FALSE(j.is_discarded());
  std::ifstream lines(file);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "request_id,send_ns,answer_ns,round_trip_ns,status");
  std::uint64_t count = 0, least = UINT64_MAX;
  for (unsigned long long id = 0, sent = 0, answered = 0, trip = 0, status = 0; std::getline(lines, line); ++count) {
    ASSERT_EQ(std::sscanf(line.c_str(), "%llu,%llu,%llu,%llu,%llu", &id, &sent, &answered, &trip, &status), 5) << line;
    EXPECT_LT(id, 300u);
    EXPECT_EQ(answered - sent, trip);
    EXPECT_EQ(status, 0u);
    least = std::min<std::uint64_t>(least, trip);
  }
  EXPECT_EQ(count, 300u);
  EXPECT_EQ(j.at("round_trip_ns").at("min"), least);
  const program_result refused = run_program("emulate --transport udp --port 9 --ila /nowhere/times.csv");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err, "--ila")) << refused.err;
}
INSTANTIATE_TEST_SUITE_P(Shapes, Times,
                         testing::Values(shape{"UdpRing", "udp", CUDAQ_UDP_PROVIDER, "--port=0"},
                                         shape{"ShmUnified", "shm", CUDAQ_SHM_PROVIDER, "--name= --unified"}),
                         [](const auto &one) { return std::string(one.param.name); });

// Requests that the network loses, and that are not repeated, are in no histogram; page and JSON count them.
using Reports = TwoTerminals;
TEST_P(Reports, AsAPageAndAsHistogramsHaveEachAnswerAndEachLoss) {
  realtime::test::lossy_relay relay(static_cast<std::uint32_t>(std::stoul(port_)), {0.002, 0, 0}, 3); // loses the 438th
  const std::filesystem::path json = scratch_.path() / "run.json", html = scratch_.path() / "run.html",
                              prefix = scratch_.path() / "run";
  const program_result r =
      run_program("emulate --timeout 3 --config d3 --shots 300 --transport udp --port " + std::to_string(relay.port()) +
                  " --json " + json.string() + " --html " + html.string() + " --hgrm " + prefix.string());
  EXPECT_EQ(r.exit_code, 1) << "what is lost is a failed check\n" << r.err;
  const auto j = nlohmann::json::parse(read_file(json));
  const std::uint64_t answered = j.at("shots_answered"), lost = j.at("lost");
  EXPECT_GT(lost, 0u);
  EXPECT_GT(answered, 0u);
  EXPECT_EQ(answered + lost, 300u);
  EXPECT_EQ(j.at("mismatches"), 0);

  const std::string page = read_file(html), link = j.at("link");
  for (const std::string &part : std::vector<std::string>{
           "<title>Emulated control system: " + link, "<h1>Emulated control system: " + link, "<h2>Logical errors",
           "<h2>Latency histogram", "<h2>Latency percentiles", "<h2>Timeline", "round trip of a request",
           "shot, since due",
           "300 played, " + std::to_string(answered) + " answered; 300 requests, " + std::to_string(lost) + " lost"})
    EXPECT_TRUE(contains(page, part)) << part;
  EXPECT_FALSE(contains(page, "Good: every check passed"));
  static const std::regex title(R"(class="title"[^>]*>[^<]+<)"), unit(R"(>[0-9.]+ (ns|us|ms|s)<)");
  std::size_t plots = 0;
  for (std::size_t at = page.find("<svg"); at != std::string::npos; at = page.find("<svg", at + 1), ++plots) {
    const std::string plot = page.substr(at, page.find("</svg>", at) - at);
    EXPECT_GE(std::distance(std::sregex_iterator(plot.begin(), plot.end(), title), std::sregex_iterator()), 2)
        << "an axis has no title: " << plot.substr(0, 200);
    if (contains(plot, "aria-label=\"latency")) {
      EXPECT_TRUE(std::regex_search(plot, unit)) << "no unit: " << plot.substr(0, 200);
    }
  }
  EXPECT_EQ(plots, 4u);

  std::istringstream lines(read_file(prefix.string() + ".round_trip.hgrm"));
  std::uint64_t max_answered = 0;
  bool total = false;
  for (std::string line; std::getline(lines, line);) {
    double value = 0, fraction = 0;
    unsigned long long count = 0;
    if (std::sscanf(line.c_str(), " %lf %lf %llu", &value, &fraction, &count) == 3)
      max_answered = std::max<std::uint64_t>(max_answered, count);
    total = total || contains(line, "Total count = " + std::to_string(answered) + "]");
  }
  EXPECT_EQ(max_answered, answered);
  EXPECT_TRUE(total) << read_file(prefix.string() + ".round_trip.hgrm");
}
INSTANTIATE_TEST_SUITE_P(Shapes, Reports,
                         testing::Values(shape{"UdpUnified", "udp", CUDAQ_UDP_PROVIDER, "--port=0 --unified"}),
                         [](const auto &one) { return std::string(one.param.name); });

TEST(Emulate, RefusesWhatItCannotUse) {
  EXPECT_EQ(run_program("emulate --transport udp").exit_code, 2) << "no port";
  EXPECT_EQ(run_program("emulate --transport shm").exit_code, 2) << "no name";
  EXPECT_EQ(run_program("emulate --transport pigeon").exit_code, 2);
  for (const std::string option : {"--name x", "--qp 3", "--protocol server --window 2"})
    EXPECT_TRUE(contains(run_program("emulate --transport udp --port 9 " + option).err, "it has no effect with"));
  EXPECT_TRUE(contains(run_program("emulate --port 9 --protocol server --decoder-ids 1,1").err, "is listed twice"));
  EXPECT_EQ(run_program("emulate --port 9 --address nonsense --config d3").exit_code, 2);
  const program_result small = run_program("emulate --transport udp --port 9 --slot-size 24 --config d3");
  EXPECT_EQ(small.exit_code, 2);
  EXPECT_TRUE(contains(small.err, "--slot-size is 24: a request of these shots needs 27 bytes")) << small.err;
}

} // namespace
} // namespace cudaq::realtime::tools::test

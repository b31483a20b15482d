// SPDX-License-Identifier: Apache-2.0
// What emulate says if options, decoders and other requesters do not fit together.
#include "unittests/tools/common/two_terminals.h"

namespace cudaq::realtime::tools::test {
namespace {

class EmulateTexts : public TwoTerminals {
protected:
  static std::string dem() { return std::string(CUDAQ_TEST_DATA) + "/surface_loop_d3_p0.004.dem"; }
  std::string decoders() const override {
    return "decoders:\n  - id: 0\n    type: pymatching\n    dem_file: " + std::string(CUDAQ_TEST_DATA) +
           "/surface_z_d3_p0.005.dem\n  - id: 4\n    type: sliding-window:inner=pymatching,commit=3,buffer=3\n    "
           "stream: true\n    dem_file: " +
           dem() + "\n";
  }
  void expect_refused(const std::string &options, const std::string &text) const {
    const program_result r = run_program(command(options));
    EXPECT_EQ(r.exit_code, 2) << r.err;
    EXPECT_TRUE(contains(r.err, text)) << r.err;
  }
};

TEST_P(EmulateTexts, SayThatDecoderIdsNeedTheProtocolOfTheServer) {
  expect_refused("--decoder-ids 4 --config d3", "--decoder-ids: it needs --protocol server, or --rounds");
}

TEST_P(EmulateTexts, SayWhichKindOfDecoderTheServerHas) {
  expect_refused("--decoder-ids 0 --rounds 100 --dem " + dem(),
                 "decoder 0 of the server decodes shots, not streams: its configuration needs `stream: true`");
  expect_refused("--decoder-ids 4 --protocol server --config d3",
                 "decoder 4 of the server decodes a stream, not shots: play to it with --rounds");
}

TEST_P(EmulateTexts, HaveNoTimeWhereNothingWasMeasured) {
  const std::string options = "--decoder-ids 4 --rounds 1 --dem " + dem(); // its only frame is that of the tail
  const auto report = play(options);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("tail_ns").at("count"), 1);
  EXPECT_GT(report.at("tail_ns").at("max").get<double>(), 0);
  for (const char *const times : {"lag_ns", "window_ns"}) {
    EXPECT_EQ(report.at(times).at("count"), 0);
    for (const char *const what : {"min", "mean", "p50", "p99.9", "max"})
      EXPECT_TRUE(report.at(times).at(what).is_null()) << times << " " << what;
  }
  EXPECT_TRUE(report.at("lag_rounds").is_null());
  const program_result text = run_program("emulate --transport udp --port " + port_ + " " + options);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  for (const char *const line : {"\nlag           -\n", "\nlag, rounds   -\n", "\nwindow        -\n"})
    EXPECT_TRUE(contains(text.out, line)) << text.out;
}

TEST_P(EmulateTexts, SayThatAStreamMayHaveASecondRequester) {
  const std::vector<std::string> arguments = {"emulate",       "--transport", "udp",     "--port",    port_,
                                              "--decoder-ids", "4",           "--dem",   dem(),       "--cycle-us",
                                              "200",           "--rounds",    "1000000", "--timeout", "30"};
  running_program first(arguments, scratch_.path() / "first");
  const std::string none = "\ncudaq_decoder_rounds_committed_total{decoder=\"4\"} 0\n";
  first.until([&] { return !contains(counters_at(counters()), none); });
  running_program second(arguments, scratch_.path() / "second");
  for (running_program *const player : {&first, &second})
    EXPECT_EQ(player->wait(), 1);
  for (const char *const err : {"first", "second"}) {
    const std::string text = read_file(scratch_.path() / err);
    EXPECT_TRUE(contains(text, "another requester uses the decoder")) << err << ": " << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, EmulateTexts, testing::Values(shape{"UdpRing", "udp", CUDAQ_UDP_PROVIDER, "--port=0"}),
                         [](const auto &one) { return std::string(one.param.name); });

} // namespace
} // namespace cudaq::realtime::tools::test

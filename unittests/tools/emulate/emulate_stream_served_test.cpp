// SPDX-License-Identifier: Apache-2.0
// Endless experiments: `serve` with a stream in one process, `emulate --rounds` in another.
#include "unittests/tools/common/helper_thread.h"
#include "unittests/tools/common/two_terminals.h"

#include <thread>

namespace cudaq::realtime::tools::test {
namespace {

const std::string kWindows = "inner=pymatching,commit=3,buffer=3";

class StreamTerminals : public TwoTerminals {
protected:
  std::string decoders() const override {
    return "decoders:\n  - id: 4\n    type: sliding-window:" + kWindows + "\n    stream: true\n    dem_file: " + dem() +
           "\n";
  }
  static std::string dem() { return std::string(CUDAQ_TEST_DATA) + "/surface_loop_d3_p0.004.dem"; }
  static std::string stream(const std::string &options) {
    return "--decoder-ids 4 --dem " + dem() + " --decoder sliding-window:" + kWindows + " " + options;
  }
};

TEST_P(StreamTerminals, GiveTheFramesOfTheSameWindows) {
  const auto report = play(stream("--rounds 2000 --cycle-us 5 --shots 3 --seed 2"));
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("shots_answered"), 3);
  EXPECT_EQ(report.at("mismatches"), 0);
  EXPECT_EQ(report.at("lost"), 0);
  const auto rounds = report.at("rounds_per_experiment").get<std::uint64_t>();
  EXPECT_GE(rounds, 2000U);
  EXPECT_LE(rounds, 2001U) << "a repetition has two rounds";
  EXPECT_EQ(report.at("rounds"), 3 * rounds);
  EXPECT_GE(report.at("frames").get<int>(), 6) << "on a machine whose cores are busy, at least two of each experiment";
  EXPECT_EQ(report.at("tail_ns").at("count"), 3);
  EXPECT_EQ(report.at("pace_kept"), report.at("pace_ratio") >= 1 / 1.01 && report.at("pace_worst_rounds") <= 100);
  EXPECT_GE(report.at("lag_ns").at("min").get<double>(), 3 * 5000) << "of the buffer";
  const std::string page = counters_at(counters());
  EXPECT_TRUE(contains(page, "\ncudaq_decoder_rounds_pushed_total{decoder=\"4\"} " + std::to_string(3 * rounds) + "\n"))
      << page;
  EXPECT_TRUE(
      contains(page, "\ncudaq_decoder_rounds_committed_total{decoder=\"4\"} " + std::to_string(3 * rounds) + "\n"));
  EXPECT_TRUE(contains(page, "\ncudaq_decoder_lag_rounds{decoder=\"4\"} 0\n"));
  EXPECT_TRUE(contains(page, "\ncudaq_decoder_tail_seconds_count{decoder=\"4\"} 3\n"));
}

TEST_P(StreamTerminals, PlayAsFastAsPossible) {
  const auto report = play(stream("--rounds 20000 --cycle-us 0"));
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("shots_answered"), 1);
  EXPECT_EQ(report.at("mismatches"), 0);
}

TEST_P(StreamTerminals, LoseNothingWhenTheServerReloadsInTheMiddleOfAStream) {
  helper_thread reloads([this] {
    for (int k = 0; k < 5; ++k) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      server_->signal(SIGHUP);
      std::string line = server_->line(); // roce has other lines before it
      while (!line.empty() && !line.starts_with("QEC_DECODING_SERVER_CONFIG_"))
        line = server_->line();
      EXPECT_EQ(line, "QEC_DECODING_SERVER_CONFIG_APPLIED") << "it does not wait for the end of the stream";
    }
  });
  const auto report = play(stream("--rounds 4000 --cycle-us 50 --shots 2"));
  reloads.join();
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("shots_answered"), 2);
  EXPECT_EQ(report.at("mismatches"), 0);
  EXPECT_EQ(report.at("error_statuses"), 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, StreamTerminals,
                         testing::Values(shape{"UdpRing", "udp", CUDAQ_UDP_PROVIDER, "--port=0"},
                                         shape{"UdpUnified", "udp", CUDAQ_UDP_PROVIDER, "--port=0 --unified"},
                                         shape{"RoceRing", "roce", CUDAQ_ROCE_PROVIDER, "--port=0 --peer-port=0"},
                                         shape{"ShmUnified", "shm", CUDAQ_SHM_PROVIDER, "--name= --unified"}),
                         [](const auto &one) { return std::string(one.param.name); });

/// The server has workers, so its windows are parallel.
class WorkerTerminals : public StreamTerminals {
protected:
  std::string decoders() const override { return "stream_workers: 2\n" + StreamTerminals::decoders(); }
};

TEST_P(WorkerTerminals, GiveTheFramesOfParallelWindowsAtEachPace) {
  for (const char *pace : {"--cycle-us 20 --rounds 2000 --shots 2", "--cycle-us 0 --rounds 20000 --shots 2"}) {
    const auto report = play(stream("--workers 2 " + std::string(pace)));
    ASSERT_FALSE(report.is_discarded());
    EXPECT_TRUE(contains(report.at("windows"), "; parallel, 2 workers")) << report.at("windows");
    EXPECT_EQ(report.at("shots_answered"), 2);
    EXPECT_EQ(report.at("mismatches"), 0);
    EXPECT_EQ(report.at("error_statuses"), 0);
    EXPECT_EQ(report.at("busy"), 0) << "a full queue of the workers holds requests up";
  }
  const auto with_mode = play("--decoder-ids 4 --dem " + dem() + " --decoder sliding-window:" + kWindows +
                              ",mode=parallel --rounds 2000 --cycle-us 20");
  ASSERT_FALSE(with_mode.is_discarded());
  EXPECT_EQ(with_mode.at("mismatches"), 0) << "without workers here";
}

INSTANTIATE_TEST_SUITE_P(Shapes, WorkerTerminals,
                         testing::Values(shape{"UdpUnified", "udp", CUDAQ_UDP_PROVIDER, "--port=0 --unified"},
                                         shape{"ShmUnified", "shm", CUDAQ_SHM_PROVIDER, "--name= --unified"}),
                         [](const auto &one) { return std::string(one.param.name); });

// What emulate says if options, decoders and other requesters do not fit together.

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

TEST_P(EmulateTexts, SayWhatDoesNotFitTheDecodersOfTheServer) {
  const std::string stream = "--decoder-ids 4 --rounds 100 --dem " + dem();
  expect_refused("--decoder-ids 4 --rounds 100 --dem " + std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.005.dem",
                 "the model has no loop (repeat)");
  expect_refused("--decoder-ids 4 --rounds 100", "--dem is missing");
  expect_refused("--decoder-ids 4,5 --rounds 100 --dem " + dem(), "--rounds plays to one decoder");
  expect_refused(stream + " --rate 5", "it has no effect with --rounds");
  expect_refused(stream + " --decoder no-such", "unknown decoder \"no-such\"");
  for (const char *of_streams : {"--cycle-us 5", "--workers 5"})
    expect_refused(of_streams, "it has no effect with a run without --rounds");
  expect_refused("--decoder-ids 4 --config d3", "--decoder-ids: it needs --protocol server, or --rounds");
  expect_refused("--decoder-ids 0 --rounds 100 --dem " + dem(),
                 "decoder 0 of the server decodes shots, not streams: its configuration needs `stream: true`");
  expect_refused("--decoder-ids 4 --protocol server --config d3",
                 "decoder 4 of the server decodes a stream, not shots: play to it with --rounds");
}

TEST_P(EmulateTexts, SayThatOtherWindowsHereMayBeTheReasonOfOtherFrames) {
  const program_result r = run_program(command("--decoder-ids 4 --dem " + dem() +
                                               " --decoder sliding-window:inner=pymatching,commit=4,buffer=3 --rounds "
                                               "400 --cycle-us 50"));
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_TRUE(contains(r.err, "give --decoder as the server has it")) << r.err;
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

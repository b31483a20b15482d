// SPDX-License-Identifier: Apache-2.0
// Ctrl-C ends a measurement with the report of what was done.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/interrupted_program.h"

#include <fstream>
#include <sys/ioctl.h>
#include <sys/stat.h>

namespace cudaq::realtime::tools::test {
namespace {

// Known failure 69.
TEST(Interrupted, LatencyReportsTheRoundsThatItHasDone) {
  const auto report = report_after(SIGINT, {"latency", "--exchanges", "10000000", "--repeats", "10000"});
  ASSERT_TRUE(report.contains("cases"));
  for (const auto &c : report.at("cases")) {
    EXPECT_GT(c.at("exchanges").get<std::uint64_t>(), 0u) << c.at("name");
    EXPECT_EQ(c.at("round_p50_ns").size(), report.at("cases").at(0).at("round_p50_ns").size()) << c.at("name");
    EXPECT_LT(c.at("round_p50_ns").size(), 10000u);
    EXPECT_EQ(c.at("wrong"), 0);
  }
}

TEST(Interrupted, PipelineReportsTheShotsThatItHasSent) {
  const std::string model = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto report = report_after(signal, {"pipeline", "--dem", model + ".dem", "--in", model + ".dets.b8",
                                              "--obs_in", model + ".obs.b8", "--decoder", "lookup", "--shots",
                                              "100000000", "--rate", "40", "--workers", "1"});
    ASSERT_TRUE(report.contains("submitted")) << report;
    if (report.at("completed") != 0) { // on a busy machine the signal may come before the first shot
      EXPECT_GT(report.at("latency_since_due_ns").at("min"), 0) << "no shot is sent before it is due";
    }
    EXPECT_LT(report.at("submitted").get<std::uint64_t>(), 100000000u);
    EXPECT_EQ(report.at("submitted"), report.at("completed"));
  }
}

TEST(Interrupted, DemoAndEmulateNameNoPartOfARunAsTheWhole) {
  const std::string model = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  const std::vector<std::string> shots{"--dem",  model + ".dem", "--in",      model + ".dets.b8", "--decoder",
                                       "lookup", "--shots",      "100000000", "--rate",           "1000"};
  for (const std::vector<std::string> &words :
       {std::vector<std::string>{"demo"}, std::vector<std::string>{"emulate", "--transport", "ring"}}) {
    const scratch_folder scratch;
    std::vector<std::string> arguments = words;
    arguments.insert(arguments.end(), shots.begin(), shots.end());
    arguments.insert(arguments.end(), {"--html", scratch.path() / "page.html"});
    std::string text;
    const auto report = report_after(SIGTERM, arguments, &text);
    const std::string error = report.value("error", "");
    EXPECT_TRUE(error.ends_with(" of 100000000 shots")) << error;
    EXPECT_TRUE(contains(text, error)) << text;
    EXPECT_FALSE(contains(text, "ok: every shot")) << text;
    EXPECT_TRUE(contains(read_file(scratch.path() / "page.html"), "Not complete: " + error));
  }
}

// The plug-in sleeps a second in each shot with detector 4.
TEST(Interrupted, DecodeEndsSoonInABatchOfSlowShots) {
  const scratch_folder scratch;
  const auto path = [&](const char *name) { return (scratch.path() / name).string(); };
  std::string model, shots;
  for (const char *detector : {"0", "1", "2", "3", "4"})
    model += std::string("error(0.1) D") + detector + " L0\n";
  for (int shot = 0; shot < 1000; ++shot)
    shots += "00001\n";
  std::ofstream(path("slow.dem")) << model;
  std::ofstream(path("shots.01")) << shots;
  for (const char *threads : {"1", "2"}) {
    const auto report = report_after(SIGTERM, {"decode", "--dem", path("slow.dem"), "--in", path("shots.01"), "--out",
                                               path("out.01"), "--threads", threads, "--decoder",
                                               std::string(CUDAQ_TEST_EARLY_PLUGIN) + ":deadline_us=1000000000"});
    const auto decoded = report.value("shots", std::size_t{1000});
    EXPECT_LT(decoded, 1000u);
    EXPECT_EQ(read_file(path("out.01")).size(), 2 * decoded) << "each shot that is counted has its line";
  }
}

// The input is a pipe that stays open: the program waits for shots when the signal comes.
TEST(Interrupted, DecodeWritesThePredictionsOfTheShotsThatItHasRead) {
  const scratch_folder scratch;
  const std::string model = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  const std::string shots = read_file(model + ".dets.b8").substr(0, 3 * 700), all = scratch.path() / "all";
  const std::string in = scratch.path() / "in", answers = scratch.path() / "answers", out = scratch.path() / "json";
  const std::string decode = "decode --out_format b8 --dem " + model + ".dem --in " + model + ".dets.b8 --out " + all;
  ASSERT_EQ(run_program(decode).exit_code, 0);
  ASSERT_EQ(mkfifo(in.c_str(), 0600), 0);
  const int fifo = open(in.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(write(fifo, shots.data(), shots.size()), static_cast<ssize_t>(shots.size()));
  running_program program({"decode", "--dem", model + ".dem", "--in", in, "--in_format", "b8", "--out", answers,
                           "--out_format", "b8", "--json", out},
                          scratch.path() / "err");
  int unread = 1;
  program.until([&] { return ioctl(fifo, FIONREAD, &unread) == 0 && unread == 0; });
  EXPECT_EQ(unread, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(), 130) << read_file(scratch.path() / "err");
  close(fifo);
  const auto report = nlohmann::json::parse(read_file(out), nullptr, false);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("interrupted"), true);
  EXPECT_EQ(report.at("error"), "interrupted after " + std::to_string(report.at("shots").get<int>()) + " shots");
  const std::string written = read_file(answers);
  EXPECT_EQ(report.at("shots"), written.size()) << "a prediction has one byte";
  EXPECT_LE(written.size(), 700u);
  EXPECT_EQ(written, read_file(all).substr(0, written.size()));
}

// The input is a pipe that stays open: frames come as soon as their rounds are final.
TEST(Interrupted, AStreamHasWrittenItsFramesAndReportsItsRounds) {
  const scratch_folder scratch;
  const std::string in = scratch.path() / "in", out = scratch.path() / "json", err = scratch.path() / "err";
  const std::string model = scratch.path() / "loop.dem";
  std::ofstream(model) << "repeat 5 {\ndetector(0) D0\nerror(0.1) D0 L0\nshift_detectors(1) 1\n}\n";
  ASSERT_EQ(mkfifo(in.c_str(), 0600), 0);
  const int fifo = open(in.c_str(), O_RDWR | O_CLOEXEC);
  running_program program({"decode", "--stream", "--decoder", "lookup", "--dem", model, "--in", in, "--commit", "2",
                           "--buffer", "1", "--json", out},
                          err);
  ASSERT_EQ(write(fifo, "1\n0\n0\n", 6), 6);
  EXPECT_EQ(program.line(), "2 1") << read_file(err);
  ASSERT_EQ(write(fifo, "10", 2), 2);
  EXPECT_EQ(program.line(), "4 0") << read_file(err);
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(), 130) << read_file(err);
  close(fifo);
  const auto report = nlohmann::json::parse(read_file(out), nullptr, false);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("error"), "interrupted after 5 rounds");
  EXPECT_EQ(report.at("interrupted"), true);
  EXPECT_EQ(report.at("rounds"), 5);
  EXPECT_EQ(report.at("frames"), 2);
  EXPECT_EQ(report.at("shots"), 0);
}

// The input is a pipe without a writer: the program opens it, and waits, before its first request.
TEST(Interrupted, BeforeTheFirstRequestItLeavesNoFile) {
  const std::string model = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003.dem";
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    const scratch_folder scratch;
    const std::string in = scratch.path() / "in", err = scratch.path() / "err";
    ASSERT_EQ(mkfifo(in.c_str(), 0600), 0);
    std::ofstream(scratch.path() / "kept.html") << "kept";
    running_program program({"pipeline", "--dem", model, "--in", in, "--in_format", "b8", "--json",
                             scratch.path() / "new.json", "--trace", scratch.path() / "new.trace", "--html",
                             scratch.path() / "kept.html"},
                            err);
    // It waits for the input as soon as the test can open the other end without waiting.
    int writer = -1;
    program.until([&] { return (writer = open(in.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0; });
    ASSERT_GE(writer, 0) << read_file(err);
    program.signal(signal);
    EXPECT_EQ(program.wait(), -1) << "signal " << signal;
    EXPECT_EQ(program.ended_by(), signal);
    close(writer);
    EXPECT_EQ(read_file(scratch.path() / "kept.html"), "kept") << "signal " << signal;
    const int unnamed = open(scratch.path().c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (unnamed < 0)
      GTEST_SKIP() << "this file system has only files with names";
    close(unnamed);
    EXPECT_FALSE(std::filesystem::exists(scratch.path() / "new.json")) << "signal " << signal;
    EXPECT_FALSE(std::filesystem::exists(scratch.path() / "new.trace")) << "signal " << signal;
  }
}

// What an interrupted run prints: once for each reader, and nothing between answers.

class InterruptedText : public testing::Test {
protected:
  /// Shots of a pipe that stays open, with one shot in it. Returns what is on stdout at the end, after a signal.
  std::string out_of_decode(std::vector<std::string> more, const std::string &err) const {
    const std::string in = scratch_.path() / "in", model = scratch_.path() / "m.dem";
    std::ofstream(model) << "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\n";
    std::filesystem::remove(in);
    EXPECT_EQ(mkfifo(in.c_str(), 0600), 0);
    const int fifo = open(in.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(write(fifo, "\x01", 1), 1);
    std::vector<std::string> arguments{"decode", "--decoder", "lookup", "--in_format", "b8", "--dem",
                                       model,    "--in",      in};
    arguments.insert(arguments.end(), more.begin(), more.end());
    running_program program(arguments, err);
    int unread = 1;
    program.until([&] { return program.catches(SIGINT) && ioctl(fifo, FIONREAD, &unread) == 0 && unread == 0; });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    program.signal(SIGINT);
    EXPECT_EQ(program.wait(), 130);
    close(fifo);
    return program.rest();
  }
  static std::size_t count_of(const std::string &text, const std::string &part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++count;
    return count;
  }
  const scratch_folder scratch_;
  const std::string text_ = "interrupted after 1 shot\n";
};

TEST_F(InterruptedText, IsNotBetweenAnswers) {
  const std::string err = scratch_.path() / "err";
  EXPECT_EQ(out_of_decode({}, err), "1\n") << "the answer of one shot";
  EXPECT_EQ(count_of(read_file(err), text_), 1U) << read_file(err);
}

TEST_F(InterruptedText, IsInEachOfTwoFiles) {
  const std::string err = scratch_.path() / "err";
  const std::string out = out_of_decode({"--out", "/dev/null"}, err);
  EXPECT_EQ(count_of(out, text_), 1U) << out;
  EXPECT_EQ(count_of(read_file(err), text_), 1U) << read_file(err);
}

TEST_F(InterruptedText, IsOnceInAFileOfBothStreams) {
  const std::string all = out_of_decode({"--out", "/dev/null"}, "/dev/stdout");
  EXPECT_EQ(count_of(all, text_), 1U) << all;
  EXPECT_EQ(count_of(all, "decoded         1 shot of an input with more"), 1U) << all;
}

} // namespace
} // namespace cudaq::realtime::tools::test

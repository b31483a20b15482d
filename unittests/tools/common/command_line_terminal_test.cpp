// SPDX-License-Identifier: Apache-2.0
// What the program writes to a terminal, and to nothing else: progress and colour.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/helper_thread.h"
#include "unittests/tools/common/run_on_terminal.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::tools::test {
namespace {

constexpr const char *kRemoveLine = "\r\x1b[K";
const std::map<std::string, std::string> kColourTerminal{{"TERM", "xterm"}, {"NO_COLOR", ""}};

std::string model() { return std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003"; }

/// A run of 1.5 s: progress is shown after the first second.
struct long_run {
  const char *name;
  std::vector<std::string> arguments;
  std::string text; ///< in its progress
  bool can_run() const { return run_program("demo --help").exit_code == 0; }
};

void PrintTo(const long_run &run, std::ostream *out) { *out << run.name; }

std::vector<long_run> long_runs() {
  return {{"Pipeline",
           {"pipeline", "--dem", model() + ".dem", "--in", model() + ".dets.b8", "--decoder", "lookup", "--rate", "20",
            "--shots", "30", "--workers", "1"},
           "of 30 shots"},
          {"Demo", {"demo", "--config", "d3", "--decoder", "lookup", "--rate", "50", "--duration", "5"}, "pass: "}};
}

class TerminalRun : public testing::TestWithParam<long_run> {};

// Known failure 69.
TEST_P(TerminalRun, OfMoreThanASecondShowsItsProgress) {
  if (!GetParam().can_run())
    GTEST_SKIP() << "no decoders in this build";
  const terminal_result r = run_on_terminal(GetParam().arguments, kColourTerminal);
  EXPECT_EQ(r.exit_code, 0) << r.text;
  for (const std::string &part : {GetParam().text, std::string(" %, "), std::string("/s, "), std::string(" left")})
    EXPECT_TRUE(contains(r.text, part)) << part << "\n" << r.text;
  const std::size_t removed = r.text.rfind(kRemoveLine);
  ASSERT_NE(removed, std::string::npos) << "the line stays";
  EXPECT_EQ(r.text.find(" left", removed), std::string::npos) << "the last line is removed";
}

INSTANTIATE_TEST_SUITE_P(Runs, TerminalRun, testing::ValuesIn(long_runs()),
                         [](const auto &tested) { return std::string(tested.param.name); });

TEST(Terminal, DecodeShowsTheTotalOfAFile) {
  if (run_program("decode --help").exit_code != 0)
    GTEST_SKIP() << "no decoders in this build";
  const scratch_folder folder;
  const std::string pipe = (folder.path() / "observables.b8").string(), in = (folder.path() / "shots.b8").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string detections, observables; // of several batches
  for (int i = 0; i < 3; ++i) {
    detections += read_file(model() + ".dets.b8");
    observables += read_file(model() + ".obs.b8");
  }
  std::ofstream(in) << detections;
  std::atomic<bool> has_written = false;
  helper_thread slow(
      [&] { // holds the run up for more than a second, at half of its shots
        const std::size_t half = observables.size() / 2;
        std::ofstream out(pipe);
        out << observables.substr(0, half) << std::flush;
        std::this_thread::sleep_for(std::chrono::milliseconds(2500));
        out << observables.substr(half) << std::flush;
        has_written = true;
      },
      [&] { // reads in place of a run that did not begin, or has ended early
        const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        for (char bytes[4096]; !has_written; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
          while (read(reader, bytes, sizeof bytes) > 0)
            continue;
        close(reader);
      });
  const terminal_result r = run_on_terminal(
      {"decode", "--dem", model() + ".dem", "--in", in, "--obs_in", pipe, "--out", "/dev/null", "--decoder", "lookup"},
      kColourTerminal);
  slow.join();
  EXPECT_EQ(r.exit_code, 0) << r.text;
  EXPECT_TRUE(contains(r.text, " of " + std::to_string(observables.size()) + " shots, ")) << r.text;
  EXPECT_TRUE(contains(r.text, " s left")) << r.text;
}

TEST(Terminal, AFileGetsNoProgress) {
  for (const long_run &run : long_runs()) {
    if (!run.can_run())
      continue;
    std::string arguments;
    for (const std::string &word : run.arguments)
      arguments += word + " ";
    const program_result r = run_program(arguments);
    EXPECT_EQ(r.exit_code, 0) << arguments << r.err;
    EXPECT_EQ(r.err, "") << arguments;
    EXPECT_FALSE(contains(r.out, " left")) << arguments;
  }
}

TEST(Terminal, ColourNeedsATerminalThatWantsIt) {
  const auto text = [](const std::map<std::string, std::string> &environment) {
    return run_on_terminal({"doctor"}, environment).text;
  };
  const std::string green = "\x1b[32m", escape = "\x1b[";
  EXPECT_TRUE(contains(text(kColourTerminal), green + "good"));
  for (const std::map<std::string, std::string> &environment :
       {std::map<std::string, std::string>{{"TERM", "xterm"}, {"NO_COLOR", "1"}},
        std::map<std::string, std::string>{{"TERM", "dumb"}, {"NO_COLOR", ""}},
        std::map<std::string, std::string>{{"TERM", ""}, {"NO_COLOR", ""}}}) {
    const std::string plain = text(environment);
    EXPECT_FALSE(contains(plain, escape)) << plain;
    EXPECT_TRUE(contains(plain, "good ")) << "the word says it without the colour";
  }
  EXPECT_FALSE(contains(run_program("doctor").out, escape)) << "a file";
}

TEST(Terminal, OtherThanAsciiNeedsALocale) {
  const auto text = [](const char *locale) {
    return run_on_terminal({"latency", "--quick"}, {{"LC_ALL", locale}}).text;
  };
  const auto is_ascii = [](const std::string &all) {
    return std::ranges::all_of(all, [](char c) { return static_cast<unsigned char>(c) < 128; });
  };
  EXPECT_TRUE(is_ascii(text("C")));
  EXPECT_FALSE(is_ascii(text("C.UTF-8"))) << "the bars have eighths of a character";
}

} // namespace
} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
// What the program writes to a terminal, and to nothing else: progress and colour.
#include "unittests/tools/common/run_on_terminal.h"

#include <algorithm>

namespace cudaq::realtime::tools::test {
namespace {

constexpr const char *kRemoveLine = "\r\x1b[K";
const std::map<std::string, std::string> kColourTerminal{{"TERM", "xterm"}, {"NO_COLOR", ""}};

std::string model() { return std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003"; }

/// Runs of about three seconds, with what their progress must have.
struct progress_case {
  std::vector<std::string> arguments;
  std::string text;
};

std::vector<progress_case> long_runs() {
  std::vector<progress_case> all;
  if (run_program("demo --help").exit_code != 0)
    return all; // no decoders in this build
  all.push_back({{"pipeline", "--dem", model() + ".dem", "--in", model() + ".dets.b8", "--decoder", "lookup", "--rate",
                  "20", "--shots", "60", "--workers", "1"},
                 "of 60 shots"});
  all.push_back({{"demo", "--config", "d3", "--decoder", "lookup", "--rate", "50", "--duration", "3"}, "pass: "});
  return all;
}

// Known failure 69.
TEST(Terminal, ARunOfMoreThanASecondShowsItsProgress) {
  for (const progress_case &run : long_runs()) {
    const terminal_result r = run_on_terminal(run.arguments, kColourTerminal);
    EXPECT_EQ(r.exit_code, 0) << r.text;
    for (const std::string &part : std::vector<std::string>{run.text, " %, ", "/s, ", " left"})
      EXPECT_TRUE(contains(r.text, part)) << run.arguments[0] << ": " << part << "\n" << r.text;
    const std::size_t removed = r.text.rfind(kRemoveLine);
    ASSERT_NE(removed, std::string::npos) << run.arguments[0] << ": the line stays";
    EXPECT_EQ(r.text.find(" left", removed), std::string::npos) << "the last line is removed";
  }
}

TEST(Terminal, AFileGetsNoProgress) {
  for (const progress_case &run : long_runs()) {
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

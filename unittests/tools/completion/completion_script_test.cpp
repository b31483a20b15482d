// SPDX-License-Identifier: Apache-2.0
// The completion scripts, run by their shells. A shell that is not installed is skipped.
#include "unittests/tools/common/run_program.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <sstream>

namespace cudaq::realtime::tools::test {
namespace {

using offered_words = std::vector<std::string>;

bool installed(const std::string &shell) {
  return std::system(("command -v " + shell + " >/dev/null 2>&1").c_str()) == 0;
}

offered_words sorted_lines(const std::string &text) {
  offered_words all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (!line.empty())
      all.push_back(line);
  std::ranges::sort(all);
  return all;
}

bool has(const offered_words &all, const std::string &line) { return std::ranges::find(all, line) != all.end(); }

class CompletionScript : public testing::Test {
protected:
  /// Writes the script, runs `text` in the shell, in a folder with the files `report.json` and `two words`, and
  /// returns what it printed. `text` may use $script.
  offered_words run(const std::string &shell, const std::string &options, const std::string &text) const {
    const auto script = folder_.path() / "script", body = folder_.path() / "body", out = folder_.path() / "out";
    const program_result made = run_program("completion " + shell);
    EXPECT_EQ(made.exit_code, 0) << made.err;
    std::ofstream(script) << made.out;
    std::ofstream(body) << text;
    const auto work = folder_.path() / "work";
    create_directories(work);
    std::ofstream(work / "report.json") << "{}";
    std::ofstream(work / "two words") << "";
    const std::string command = "cd '" + work.string() + "' && script='" + script.string() + "' timeout 300 " + shell +
                                options + " '" + body.string() + "' >'" + out.string() + "' 2>&1";
    EXPECT_EQ(std::system(("export script='" + script.string() + "'; " + command).c_str()), 0) << read_file(out);
    return sorted_lines(read_file(out));
  }

  /// What bash offers for these words; the last one is being typed.
  offered_words in_bash(const std::string &words) const {
    return run("bash", " --norc",
               "set -u\nsource \"$script\"\nCOMP_WORDS=(cudaq-realtime " + words +
                   ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_cudaq_realtime\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
  }
  offered_words in_fish(const std::string &words) const {
    return run("fish", " --no-config", "source $script\ncomplete -C 'cudaq-realtime " + words + "'\n");
  }

private:
  scratch_folder folder_;
};

TEST_F(CompletionScript, OffersSubcommandsInBash) {
  const offered_words all = in_bash("''");
  for (const char *word : {"latency", "doctor", "help", "completion", "--version"})
    EXPECT_TRUE(has(all, word)) << word;
  EXPECT_EQ(in_bash("lat"), offered_words{"latency"});
  EXPECT_EQ(in_bash("help lat"), offered_words{"latency"});
  EXPECT_EQ(in_bash("completion z"), offered_words{"zsh"});
}

TEST_F(CompletionScript, OffersOptionsAndValuesInBash) {
  EXPECT_EQ(in_bash("latency --exch"), offered_words{"--exchanges"});
  EXPECT_EQ(in_bash("latency --roo"), offered_words{}) << "an option of another subcommand";
  EXPECT_EQ(in_bash("doctor --transport ''"), (offered_words{"cpu_roce", "gpu-roce", "roce", "shm", "ucx", "udp"}));
  EXPECT_EQ(in_bash("doctor --transport = u"), (offered_words{"ucx", "udp"})) << "bash divides --transport=u";
  EXPECT_EQ(in_bash("doctor --transport ="), (offered_words{"cpu_roce", "gpu-roce", "roce", "shm", "ucx", "udp"}));
  EXPECT_EQ(in_bash("latency --slots ''"), offered_words{}) << "a number";
}

TEST_F(CompletionScript, OffersFilesInBash) {
  EXPECT_EQ(in_bash("latency --json ''"), (offered_words{"report.json", "two words"}));
  EXPECT_EQ(in_bash("latency --json --qui"), offered_words{"--quick"}) << "the value of --json may be missing";
  EXPECT_EQ(in_bash("latency --json latency --qui"), offered_words{"--quick"})
      << "a file with the name of a subcommand";
}

TEST_F(CompletionScript, OffersTheSameInFish) {
  if (!installed("fish"))
    GTEST_SKIP() << "fish is not installed";
  const offered_words all = in_fish("");
  EXPECT_TRUE(std::ranges::any_of(all, [](const std::string &line) { return line.starts_with("latency\t"); }));
  ASSERT_EQ(in_fish("latency --exch").size(), 1u);
  EXPECT_TRUE(in_fish("latency --exch")[0].starts_with("--exchanges\t"));
  const offered_words values = in_fish("doctor --transport ");
  ASSERT_EQ(values.size(), 6u);
  EXPECT_TRUE(values[0].starts_with("cpu_roce"));
  EXPECT_EQ(in_fish("latency --roo"), offered_words{});
}

TEST_F(CompletionScript, OffersTheSameInZsh) {
  if (!installed("zsh"))
    GTEST_SKIP() << "zsh is not installed";
  // Zsh completes only in a terminal, so these functions print what its own ones would get.
  const auto offered = [&](const std::string &function) {
    return run("zsh", " -f",
               "compdef() { print -l -- compdef $@ }\n_arguments() { print -rl -- $@ }\nsource $script\n" + function);
  };
  EXPECT_TRUE(has(offered(""), "compdef"));
  EXPECT_TRUE(has(offered("_cudaq-realtime-latency"), "--quick[4000 exchanges in 2 repetitions]"));
  const offered_words doctor = offered("_cudaq-realtime-doctor");
  EXPECT_TRUE(has(doctor,
                  "--transport=[also what this transport needs; or whether a provider of your own, by its path, can be "
                  "served]:TEXT:(udp roce shm cpu_roce gpu-roce ucx)"));
  EXPECT_TRUE(std::ranges::any_of(doctor, [](const std::string &line) {
    return line.starts_with("--json=[") && line.ends_with("]::\\[FILE\\]:_files");
  }));
}

} // namespace
} // namespace cudaq::realtime::tools::test

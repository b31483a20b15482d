// SPDX-License-Identifier: Apache-2.0
// The man pages that the build writes: all subcommands and options, and no mistake in roff.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>
#include <sstream>

namespace cudaq::realtime::tools::test {
namespace {

/// A name as roff prints it in the source: with escaped dashes.
std::string in_roff(const std::string &name) {
  std::string text;
  for (const char c : name)
    text += c == '-' ? std::string("\\-") : std::string(1, c);
  return text;
}

void expect_all_options(const nlohmann::json &command, const std::filesystem::path &folder) {
  std::string name = "cudaq-realtime" + (command.at("name") == "" ? "" : "-" + command.at("name").get<std::string>());
  std::replace(name.begin(), name.end(), ' ', '-');
  const std::string page = read_file(folder / (name + ".1"));
  EXPECT_TRUE(contains(page, ".SH NAME\n" + in_roff(name) + " \\- ")) << name;
  for (const auto &option : command.at("options"))
    if (!option.at("argument").get<bool>()) {
      EXPECT_TRUE(contains(page, "\\fB" + in_roff(option.at("names").at(0)) + "\\fR")) << name << option;
    }
  for (const auto &below : command.at("subcommands"))
    expect_all_options(below, folder);
}

program_result write_pages(const std::filesystem::path &folder) {
  return run_program(folder.string(), CUDAQ_MAN_PAGES_PATH);
}

TEST(ManPages, HaveEverySubcommandAndOption) {
  const scratch_folder folder;
  ASSERT_EQ(write_pages(folder.path()).exit_code, 0);
  expect_all_options(run_good_program("help --json").at("help"), folder.path());
}

TEST(ManPages, AreReadByGroffWithoutWarnings) {
  if (std::system("command -v groff >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "groff is not installed";
  const scratch_folder folder;
  ASSERT_EQ(write_pages(folder.path()).exit_code, 0);
  for (const auto &page : std::filesystem::directory_iterator(folder.path())) {
    const auto warnings = folder.path() / "warnings";
    const std::string command =
        "groff -man -ww -z -Tascii '" + page.path().string() + "' 2>'" + warnings.string() + "' </dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << page.path();
    EXPECT_EQ(read_file(warnings), "") << page.path();
    std::filesystem::remove(warnings);
  }
}

TEST(ManPages, FitIntoATerminalOf80Columns) {
  if (std::system("command -v groff >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "groff is not installed";
  const scratch_folder folder;
  ASSERT_EQ(write_pages(folder.path()).exit_code, 0);
#ifdef CUDAQ_BENCH_MAN_PAGES_PATH
  ASSERT_EQ(run_program(folder.path().string(), CUDAQ_BENCH_MAN_PAGES_PATH).exit_code, 0);
#endif
  int pages = 0;
  const scratch_folder results;
  const auto shown = results.path() / "shown";
  for (const auto &page : std::filesystem::directory_iterator(folder.path())) {
    const std::string command =
        "groff -man -Tascii -P-cbou '" + page.path().string() + "' >'" + shown.string() + "' </dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << page.path();
    std::istringstream lines(read_file(shown));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), 80U) << page.path().filename() << ": " << line;
    ++pages;
  }
  EXPECT_GT(pages, 10);
}

TEST(ManPages, AreThoseOfTheirSubcommandAndAlwaysTheSame) {
  const scratch_folder first, second;
  ASSERT_EQ(write_pages(first.path()).exit_code, 0);
  ASSERT_EQ(write_pages(second.path()).exit_code, 0);
  const std::string page = read_file(first.path() / "cudaq-realtime-doctor.1");
  EXPECT_TRUE(contains(page, ".TH CUDAQ\\-REALTIME\\-DOCTOR 1 \"\"")) << page;
  EXPECT_EQ(page, read_file(second.path() / "cudaq-realtime-doctor.1"));
}

TEST(ManPages, GoIntoAFolderThatExists) {
  const program_result r = write_pages("/nonexistent");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(contains(r.err, "FOLDER: cannot write /nonexistent/cudaq-realtime.1")) << r.err;
}

} // namespace
} // namespace cudaq::realtime::tools::test

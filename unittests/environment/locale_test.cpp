// SPDX-License-Identifier: Apache-2.0
// A program may set any locale. Numbers in models, shot files and options have a point in all of them.
#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/shot_file.h"
#include "unittests/support/program_paths.h"

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <locale>

namespace cudaq::realtime::test {
namespace {

namespace fs = std::filesystem;

/// A locale with a decimal comma, made for the test in a folder of its own: few machines have one installed.
class comma_locale {
public:
  comma_locale() {
    std::string folder = (fs::temp_directory_path() / "cudaq-locale-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr)
      return;
    folder_ = folder;
    std::ofstream(folder_ / "source")
        << "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n";
    const std::string make = "cd '" + folder + "' && localedef -c -i ./source -f ANSI_X3.4-1968 ./xx_YY >made 2>&1";
    // It warns of categories that are missing, and may return 1 for that.
    if (std::system(make.c_str()) == -1)
      return;
    setenv("LOCPATH", folder.c_str(), 1);
    setenv("LC_NUMERIC", "xx_YY", 1);
    made_ = std::setlocale(LC_NUMERIC, "") != nullptr && std::localeconv()->decimal_point == std::string(",");
  }
  ~comma_locale() {
    std::setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    unsetenv("LC_NUMERIC");
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  comma_locale(const comma_locale &) = delete;
  comma_locale &operator=(const comma_locale &) = delete;
  bool made() const { return made_; }

private:
  fs::path folder_;
  bool made_ = false;
};

void expect_points() {
  const auto model = qec::realtime::parse_dem("error(0.25) D0 L0\nerror(1.5e-1) D1000\n");
  ASSERT_TRUE(model.ok()) << model.text();
  EXPECT_EQ(model->components[0].probability, 0.25);
  EXPECT_EQ(model->components[1].probability, 0.15);
  EXPECT_EQ(model->num_detectors, 1001u);
  EXPECT_FALSE(qec::realtime::parse_dem("error(0,25) D0").ok());

  qec::realtime::shot_files files;
  files.meta = "format=1\ndistance=3\nrounds=2\nnoise=0.25\nshots=0\nnum_detectors=1000\nnum_observables=1\n"
               "offline_logical_errors=0\n";
  const auto set = qec::realtime::make_shot_set("set", files);
  ASSERT_TRUE(set.ok()) << set.text();
  EXPECT_EQ(set->noise, 0.25);
  EXPECT_EQ(set->num_detectors, 1000u);
}

TEST(Locale, OfTheCLibraryChangesNoParser) {
  const comma_locale german;
  if (!german.made())
    GTEST_SKIP() << "localedef cannot make a locale here (Debian: libc-bin)";
  expect_points();
}

struct german_digits : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Locale, OfCxxStreamsChangesNoParserAndNoErrorText) {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new german_digits));
  expect_points();
  EXPECT_EQ(
      qec::realtime::parse_dem("\nerror(0.1) D1048576").text(),
      "line 2: the index of D1048576 is too large: a shot has at most 1048576 detectors; a model with a loop decodes "
      "as a stream of any length (decode --stream)");
  std::locale::global(before);
}

#if defined(CUDAQ_TOOL_PATH)
TEST(Locale, ChangesNoOptionOfTheProgram) {
  const comma_locale german; // the program inherits the environment
  if (!german.made())
    GTEST_SKIP() << "localedef cannot make a locale here (Debian: libc-bin)";
  const auto refusal = [](const std::string &arguments) {
    std::FILE *const output =
        popen(("timeout 300 '" + std::string(CUDAQ_TOOL_PATH) + "' " + arguments + " 2>&1").c_str(), "r");
    std::string text;
    for (int c; (c = std::fgetc(output)) != EOF;)
      text += static_cast<char>(c);
    pclose(output);
    return text;
  };
  const std::string point =
      refusal("demo --timeout 7.5 --data /nonexistent"); // the options are accepted, the folder not
  EXPECT_NE(point.find("/nonexistent: no such folder"), std::string::npos) << point;
  const std::string comma = refusal("demo --timeout 7,5 --data /nonexistent");
  EXPECT_NE(comma.find("--timeout"), std::string::npos) << comma;
}
#endif

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The pages of `decode --html` say what was measured, and whether anything was checked.
#include "unittests/tools/decode/decode_test_support.h"

#include <regex>

namespace cudaq::realtime::tools::test {
namespace {

class DecodePages : public decode_files_test {
protected:
  [[nodiscard]] std::string page_of(const std::string &options) const {
    const std::string page = (scratch_.path() / "page.html").string();
    const program_result r = run_program("decode --decoder lookup --out /dev/null " + options + " --html " + page);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return read_file(page);
  }
  /// The green result of a page.
  static constexpr const char *kGood = "<p class=\"result good\">Good: every check passed";
};

TEST_F(DecodePages, ARunWithoutObservablesAndPredictionsCheckedNothing) {
  const std::string set = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  const std::string data = "--dem " + set + ".dem --in " + set + ".dets.b8";
  const std::string page = page_of(data);
  EXPECT_TRUE(contains(page, "<p class=\"result \">Nothing was checked: the shots came without"));
  EXPECT_FALSE(contains(page, "Good:"));
  EXPECT_TRUE(contains(page_of(data + " --obs_in " + set + ".obs.b8"), kGood));
}

TEST_F(DecodePages, OfStreamsHaveTheDecodeTimeOfWindows) {
  const std::string model = file("m.dem", "repeat 9 {\ndetector(0) D0\nerror(0.1) D0 D1 L0\nerror(0.1) D0\n"
                                          "shift_detectors(1) 1\n}\ndetector(0) D0\nerror(0.1) D0\n");
  const std::string data =
      "--stream --commit 2 --buffer 2 --dem " + model + " --in " + file("s.01", "0\n0\n0\n0\n0\n0\n0\n0\n0\n0\n");
  const std::string page = page_of(data);
  for (const char *title : {">decode time (logarithmic)<", ">windows (logarithmic)<", "<th>windows</th>",
                            "Nothing was checked: the stream came without observables (--obs_in)"})
    EXPECT_TRUE(contains(page, title)) << title;
  for (const char *word : {"latency", "requests", "Good:"})
    EXPECT_FALSE(contains(page.substr(0, page.find("All figures")), word)) << word;
  EXPECT_TRUE(contains(page_of(data + " --obs_in " + file("o.01", "0\n")), kGood));
}

TEST_F(DecodePages, TheHelpPromisesPlotsOfStreamsOnly) {
  const std::string help = std::regex_replace(run_program("decode --help").out, std::regex("\\s+"), " ");
  EXPECT_TRUE(contains(help, "report as one HTML page, into FILE; with plots of the windows if --stream")) << help;
}

} // namespace
} // namespace cudaq::realtime::tools::test

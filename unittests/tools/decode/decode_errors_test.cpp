// SPDX-License-Identifier: Apache-2.0
// `cudaq-realtime decode --errors_out`: the errors of the corrections.
#include "unittests/support/program_paths.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

class DecodeErrors : public decode_files_test {
protected:
  void SetUp() override {
    file("model.dem", "error(0.1) D0 D1 D2 L0\nerror(0) D0\nerror(0.1) D0\nerror(0.1) D1 L1\n");
    file("shots.01", "111\n110\n000\n");
  }
  [[nodiscard]] program_result decode(const std::string &more) const {
    return run_program("decode --dem " + path("model.dem") + " --in " + path("shots.01") + " --out " + path("out.01") +
                       " " + more);
  }
};

TEST_F(DecodeErrors, AreWrittenInEachFormat) {
  for (const char *decoder : {"relay-bp", "bp-osd"}) {
    const program_result r =
        decode(std::string("--threads 2 --errors_out ") + path("errors.hits") + " --decoder " + decoder);
    ASSERT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(read_file(path("errors.hits")), "0\n2,3\n\n") << decoder;
    EXPECT_EQ(read_file(path("out.01")), "10\n01\n00\n") << decoder;
  }
  ASSERT_EQ(decode("--errors_out " + path("errors.01") + " --decoder bp-osd").exit_code, 0);
  EXPECT_EQ(read_file(path("errors.01")), "1000\n0011\n0000\n");
}

TEST_F(DecodeErrors, AreRefusedWithoutADecoderThatGivesThem) {
  EXPECT_TRUE(contains(decode("--errors_out " + path("e.01") + " --decoder lookup").err,
                       "--errors_out: lookup gives no errors of its correction; bp-osd and relay-bp do"));
  EXPECT_TRUE(contains(decode("--errors_out - --decoder bp-osd").err, "--errors_out: name a file of its own"));
  EXPECT_TRUE(
      contains(decode("--errors_out " + path("model.dem") + " --decoder bp-osd").err, "this is the file of --dem"));
}

TEST_F(DecodeErrors, AreRefusedInTheFileOfTheAnswersByAnotherName) {
  const std::string other_name = (scratch_.path() / "." / "out.01").string();
  const program_result r = decode("--errors_out " + other_name + " --decoder bp-osd");
  EXPECT_EQ(r.exit_code, 2) << r.err;
  EXPECT_TRUE(contains(r.err, "--errors_out " + other_name + ": this is the file of --out")) << r.err;
}

} // namespace
} // namespace cudaq::realtime::tools::test

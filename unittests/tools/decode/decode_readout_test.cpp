// SPDX-License-Identifier: Apache-2.0
// `cudaq-realtime decode --readout`: soft values of measurements, and flags of leakage.
#include "unittests/qec/model_text.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

namespace cudaq::realtime::tools::test {
namespace {

constexpr const char *kModelOfReadout = "error(0.1) D0\nerror(0.01) D0 L0\nerror(0.1) D1\n";

class DecodeReadout : public decode_files_test {
protected:
  void SetUp() override {
    file("model.dem", kModelOfReadout);
    file("shots.01", "10\n10\n00\n10\n");
    table("measurements 1\nflags 1\ngaussian 0 10 0 2 0.5\nmisread 0 0.001 0 0\nflag 0 2 1 0.4\n");
    file("soft.u8", "\x04\x0a\x0a\x04"); // of the fourth shot the flag is 2
    file("leakage", std::string("\0\0\1\2", 4));
  }
  void table(const std::string &lines) const {
    file("readout.txt", cudaq::qec::realtime::test::head_of_text("cudaq-realtime-readout 1", kModelOfReadout) + lines);
  }
  [[nodiscard]] std::string run(const std::string &more, const std::string &decoder = "bp-osd") const {
    return "decode --dem " + path("model.dem") + " --in " + path("shots.01") + " --out " + path("out.01") +
           " --decoder '" + decoder + "' --readout " + path("readout.txt") + " " + more;
  }
  [[nodiscard]] std::string both() const {
    return "--soft " + path("soft.u8") + " --soft_kind u8 --leakage " + path("leakage");
  }
  void expect_refused(const std::string &more, const std::string &why, const std::string &decoder = "bp-osd") const {
    const program_result r = run_program(run(more, decoder));
    EXPECT_EQ(r.exit_code, 2) << why;
    EXPECT_TRUE(contains(r.err, why)) << r.err;
  }
};

TEST_F(DecodeReadout, ChangesTheAnswersOfEachShot) {
  for (const char *decoder : {"bp-osd", "relay-bp", "auto", "race:relay-bp|bp-osd"})
    for (const char *threads : {" --threads 1", " --threads 3"}) {
      const program_result r = run_program(run(both() + threads, decoder));
      ASSERT_EQ(r.exit_code, 0) << r.err;
      EXPECT_EQ(read_file(path("out.01")), "0\n1\n0\n1\n") << decoder << threads;
      EXPECT_TRUE(contains(r.out, "readout         of 4 shots by ")) << r.out;
    }
}

TEST_F(DecodeReadout, TakesEachKindOfValues) {
  const float values[] = {4, 10, 10, 4};
  std::string bytes(sizeof values, '\0');
  std::memcpy(bytes.data(), values, sizeof values);
  file("soft.f32", bytes);
  for (const char *more : {"--soft_kind f32", ""}) {
    const std::string files = "--soft " + path("soft.f32") + " --leakage " + path("leakage") + " ";
    ASSERT_EQ(run_program(run(files + more)).exit_code, 0);
    EXPECT_EQ(read_file(path("out.01")), "0\n1\n0\n1\n");
  }
  // One value of four bits is in a byte of its own: the bytes of u8 are those of u4.
  const std::string files = "--soft " + path("soft.u8") + " --leakage " + path("leakage");
  ASSERT_EQ(run_program(run(files + " --soft_kind u4")).exit_code, 0);
  EXPECT_EQ(read_file(path("out.01")), "0\n1\n0\n1\n");
}

TEST_F(DecodeReadout, MayComeFromAPipeAndWithAListOfEachShot) {
  file("flags.txt",
       cudaq::qec::realtime::test::head_of_text("cudaq-realtime-flags 1", kModelOfReadout) + "shot 0 1 0.4\n");
  const program_result r =
      run_program(run("--soft - --soft_kind u8 --leakage " + path("leakage") + " --flags " + path("flags.txt")),
                  CUDAQ_TOOL_PATH, path("soft.u8"));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(read_file(path("out.01")), "1\n1\n0\n1\n");
}

TEST_F(DecodeReadout, IsRefusedWithAReason) {
  expect_refused("", "--soft is missing: the table of --readout has soft values of measurements");
  expect_refused("--soft " + path("soft.u8") + " --soft_kind u8", "--leakage is missing: the table of --readout has");
  expect_refused("--soft_kind u5", "--soft_kind");
  expect_refused("--soft - --leakage -", "only one of them can be stdin");
  expect_refused(both(), "--readout: lookup does not take probabilities of a shot", "lookup");
  expect_refused(both() + " --predecoder local", "--readout, --predecoder local: a predecoder knows");
  expect_refused(both() + " --stream", "--readout");
  expect_refused("--leakage " + path("leakage") + " --soft " + path("none"), "none");
  file("leakage", std::string("\0\0\3\2", 4));
  expect_refused(both(), "shot 2: flag 0 has the value 3, accepted: 0, 1, 2\nshots decoded before that: 2");
  file("leakage", std::string("\0\0\1", 3));
  expect_refused(both(), "fewer");
  file("leakage", std::string("\0\0\1\2\0", 5));
  expect_refused(both(), "more shots than");
  table("measurements 1\ngaussian 0 10 0 2 0.5\nmisread 0 0.001 0 9\n");
  expect_refused(both(), "readout.txt: line 5: error 0: the calibration of measurement 0 is \"9\"");
  table("measurements 1\ngaussian 0 10 0 2 0.5\nmisread 0 0.001 0 0\n");
  expect_refused(both(), "the table of --readout has no flags of leakage");
  file("model.dem", std::string(kModelOfReadout) + "\n");
  expect_refused(both(), "readout.txt: line 2: the file is for the model");
  const program_result alone = run_program("decode --dem " + path("model.dem") + " --soft " + path("soft.u8"));
  EXPECT_NE(alone.exit_code, 0);
  EXPECT_TRUE(contains(alone.err, "--readout")) << alone.err;
}

} // namespace
} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/qec_test_support.h"
#include "unittests/support/scratch_folder.h"

#include <fstream>

namespace cudaq::qec::realtime::test {
namespace {

namespace fs = std::filesystem;

/// A small correct set in its own folder, for tests that damage it.
class ShotFile : public testing::Test {
protected:
  void SetUp() override {
    write("set.meta", kMeta);
    write("set.dem", "error(0.1) D9 L0\n");
    write("set.dets.b8", std::string("\x05\x02\x00\x00\xFF\x03", 6));
    write("set.obs.b8", std::string("\x01\x00\x01", 3));
    write("set.pred.b8", std::string("\x01\x01\x01", 3));
  }

  void write(const std::string &name, const std::string &content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  void replace_in_meta(const std::string &from, const std::string &to) {
    std::string text = kMeta;
    text.replace(text.find(from), from.size(), to);
    write("set.meta", text);
  }
  void expect_error(const std::string &file, const std::string &text) {
    const auto set = load_shot_set(folder_, "set");
    EXPECT_FALSE(set.ok());
    EXPECT_EQ(set.text(), (folder_ / file).string() + ": " + text);
  }

  static constexpr const char *kMeta = "# a comment\nformat=1\ndistance=3\nrounds=2\nnoise=0.25\nshots=3\n"
                                       "num_detectors=10\nnum_observables=1\noffline_logical_errors=1\n";
  const cudaq::realtime::test::scratch_folder scratch_;
  const fs::path folder_ = scratch_.path();
};

TEST_F(ShotFile, LoadsRowsAndNumbers) {
  const auto set = load_shot_set(folder_, "set");
  ASSERT_TRUE(set.ok()) << set.text();
  EXPECT_EQ(set->distance, 3U);
  EXPECT_EQ(set->rounds, 2U);
  EXPECT_EQ(set->noise, 0.25);
  EXPECT_EQ(set->offline_logical_errors, 1U);
  EXPECT_EQ(set->dem_text, "error(0.1) D9 L0\n");
  EXPECT_EQ(set->detection_row(0)[0], 5);
  EXPECT_EQ(set->detection_row(2)[1], 3);
  EXPECT_EQ(set->observable_row(2)[0], 1);
  EXPECT_EQ(set->prediction_row(1)[0], 1);
}

TEST_F(ShotFile, RefusesAMissingFile) {
  for (const char *name : {"set.dem", "set.dets.b8", "set.obs.b8", "set.pred.b8"}) {
    fs::rename(folder_ / name, folder_ / "aside");
    expect_error(name, "No such file or directory");
    fs::rename(folder_ / "aside", folder_ / name);
  }
}

// Known failure 68.
TEST_F(ShotFile, ASetWithoutAMetaHasItsSizesFromTheModel) {
  fs::remove(folder_ / "set.meta");
  auto set = load_shot_set(folder_, "set");
  ASSERT_TRUE(set.ok()) << set.text();
  EXPECT_EQ(set->shots, 3U);
  EXPECT_EQ(set->num_detectors, 10U);
  EXPECT_EQ(set->num_observables, 1U);
  EXPECT_EQ(set->offline_logical_errors, 1U);
  EXPECT_EQ(set->distance, 0U);
  EXPECT_EQ(list_shot_sets(folder_), std::vector<std::string>{"set"});

  fs::remove(folder_ / "set.obs.b8");
  set = load_shot_set(folder_, "set");
  ASSERT_TRUE(set.ok()) << set.text();
  EXPECT_FALSE(set->has_observables());
  EXPECT_TRUE(set->has_predictions());

  write("set.dets.b8", std::string(5, '\0'));
  expect_error("set.dets.b8", "has 5 bytes, expected 2 rows of 2");
  write("set.dem", "logical_observable L0\n");
  expect_error("set.dem", "the model has no detectors: a shot has at least one");
}

TEST_F(ShotFile, RefusesAMissingFolder) {
  EXPECT_FALSE(load_shot_set(folder_ / "none", "set").ok());
  EXPECT_TRUE(list_shot_sets(folder_ / "none").empty());
}

TEST_F(ShotFile, RefusesShortAndLongFiles) {
  write("set.dets.b8", std::string(5, '\0'));
  expect_error("set.dets.b8", "has 5 bytes, expected 3 rows of 2");
  write("set.dets.b8", std::string(6, '\0'));
  write("set.pred.b8", std::string(4, '\0'));
  expect_error("set.pred.b8", "has 4 bytes, expected 3 rows of 1");
}

TEST_F(ShotFile, RefusesBitsPastTheEndOfARow) {
  write("set.dets.b8", std::string("\x00\x00\x00\x04\x00\x00", 6));
  expect_error("set.dets.b8", "row 1 sets a bit past bit 9");
  write("set.dets.b8", std::string(6, '\0'));
  write("set.obs.b8", std::string("\x00\x00\x02", 3));
  expect_error("set.obs.b8", "row 2 sets a bit past bit 0");
}

TEST_F(ShotFile, RefusesABadMeta) {
  replace_in_meta("format=1", "format=2");
  expect_error("set.meta", "format is not 1, the only known format");
  replace_in_meta("shots=3", "shots");
  expect_error("set.meta", "line 6 is not key=value");
  replace_in_meta("shots=3\n", "");
  expect_error("set.meta", "has no key shots");
  replace_in_meta("shots=3", "shots=3x");
  expect_error("set.meta", "shots=3x is not a number");
  replace_in_meta("shots=3", "shots=-3");
  expect_error("set.meta", "shots=-3 is not a number");
  replace_in_meta("shots=3", "shots=99999999999");
  expect_error("set.meta", "shots is larger than 2^32");
  replace_in_meta("noise=0.25", "noise=nan");
  expect_error("set.meta", "noise=nan is not between 0 and 1");
  replace_in_meta("noise=0.25", "noise=1.5");
  expect_error("set.meta", "noise=1.5 is not between 0 and 1");
}

TEST_F(ShotFile, RefusesShotsWithoutDetectors) {
  // Empty files would match any number of shots, and a reader allocates memory for each shot.
  for (const char *name : {"set.dets.b8", "set.obs.b8", "set.pred.b8"})
    write(name, "");
  write("set.meta", "format=1\ndistance=3\nrounds=2\nnoise=0.25\nshots=4294967296\nnum_detectors=0\n"
                    "num_observables=0\noffline_logical_errors=0\n");
  expect_error("set.meta", "num_detectors is 0: a shot has at least one detector");
}

TEST(ShotFileCommitted, ListsAndLoadsEverySet) {
  std::vector<std::string> expected = committed_sets();
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(list_shot_sets(data_folder()), expected);
  for (const std::string &name : expected) {
    const auto set = load_shot_set(data_folder(), name);
    ASSERT_TRUE(set.ok()) << set.text();
    EXPECT_EQ(name, shot_set_name(set->distance, name.substr(name.find("_p") + 2)));
    EXPECT_EQ(set->rounds, set->distance);
    EXPECT_GE(set->shots, 400U);
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

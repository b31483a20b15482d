// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/model_sampler.h"
#include "unittests/qec/qec_test_support.h"
#include "unittests/support/scratch_folder.h"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <random>

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

using bytes = std::vector<std::uint8_t>;
using indices = std::vector<std::uint64_t>;

TEST(EventBits, UnpacksTheDocumentedExample) {
  indices events(10);
  const unpack_result good = unpack_events(bytes{0x05, 0x02}, 10, events);
  EXPECT_EQ(good.status, decode_status::ok);
  events.resize(good.count);
  EXPECT_EQ(events, (indices{0, 2, 9}));
  EXPECT_EQ(unpack_events(bytes{0x05, 0x04}, 10, events).status, decode_status::bad_detector_index);
}

TEST(EventBits, PackedAndUnpackedAgreeForEverySize) {
  std::mt19937 random(11);
  for (std::uint64_t size = 0; size <= 200; ++size)
    for (const unsigned one_in : {1U, 2U, 30U}) {
      indices events;
      for (std::uint64_t d = 0; d < size; ++d)
        if (random() % one_in == 0)
          events.push_back(d);
      bytes packed((size + 7) / 8, 0xFF);
      ASSERT_EQ(pack_events(events, size, packed), decode_status::ok);
      indices back(size);
      const unpack_result result = unpack_events(packed, size, back);
      ASSERT_EQ(result.status, decode_status::ok);
      back.resize(result.count);
      ASSERT_EQ(back, events) << "size " << size;
    }
}

TEST(EventBits, RefusesEverySingleBitPastTheLastDetector) {
  indices events(200);
  for (const std::uint64_t size : {0U, 1U, 7U, 8U, 24U, 63U, 64U, 65U, 120U})
    for (std::uint64_t bit = size; bit < 160; ++bit) {
      bytes packed(20);
      packed[bit / 8] = static_cast<std::uint8_t>(1U << (bit % 8));
      EXPECT_EQ(unpack_events(packed, size, events).status, decode_status::bad_detector_index) << size << " " << bit;
    }
}

TEST(EventBits, TakesZeroBytesPastTheLastDetector) {
  indices events(8);
  const unpack_result result = unpack_events(bytes{0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 8, events);
  EXPECT_EQ(result.status, decode_status::ok);
  EXPECT_EQ(result.count, 1U);
  EXPECT_EQ(events[0], 7U);
}

TEST(EventBits, RefusesShortBuffers) {
  indices events(2);
  bytes packed(1);
  EXPECT_EQ(unpack_events(bytes{0xFF}, 9, events).status, decode_status::buffer_too_small);
  EXPECT_EQ(unpack_events(bytes{0x07}, 8, events).status, decode_status::buffer_too_small);
  EXPECT_EQ(unpack_events(bytes{0x03}, 8, events).status, decode_status::ok);
  EXPECT_EQ(pack_events(indices{}, 9, packed), decode_status::buffer_too_small);
}

TEST(EventBits, PackRefusesBadAndRepeatedIndices) {
  bytes packed(2);
  EXPECT_EQ(pack_events(indices{9}, 9, packed), decode_status::bad_detector_index);
  EXPECT_EQ(pack_events(indices{3, 3}, 9, packed), decode_status::duplicate_detector_index);
}

/// How often each pair (detectors, observables) comes out.
std::map<std::pair<int, int>, int> counts(const char *dem, std::uint32_t errors, int shots) {
  const model_sampler sampler(*parse_dem(dem));
  std::mt19937_64 random(1);
  std::map<std::pair<int, int>, int> found;
  for (int i = 0; i < shots; ++i) {
    std::uint8_t shot = 0, observables = 0;
    if (errors == 0)
      sampler.sample(random, {&shot, 1}, {&observables, 1});
    else
      sampler.sample_exactly(errors, random, {&shot, 1}, {&observables, 1});
    ++found[{shot, observables}];
  }
  return found;
}

void expect_count(int count, int shots, double probability) {
  const double mean = shots * probability;
  EXPECT_NEAR(count, mean, 5 * std::sqrt(mean) + 1) << probability;
}

TEST(ModelSampler, EachErrorHappensWithItsProbability) {
  constexpr int kShots = 200000;
  auto found = counts("error(0.3) D0 L0\nerror(0.02) D1\nerror(0.001) D2 L1\nerror(1) D3\n", 0, kShots);
  expect_count(found[{8, 0}], kShots, 0.7 * 0.98 * 0.999);
  expect_count(found[{9, 1}], kShots, 0.3 * 0.98 * 0.999);
  expect_count(found[{10, 0}], kShots, 0.7 * 0.02 * 0.999);
  expect_count(found[{12, 2}], kShots, 0.7 * 0.98 * 0.001);
  expect_count(found[{11, 1}], kShots, 0.3 * 0.02 * 0.999);
}

TEST(ModelSampler, ComponentsOfADecomposedErrorHappenTogether) {
  constexpr int kShots = 100000;
  auto found = counts("repeat 2 {\nerror(0.1) D0 L0 ^ D1\nshift_detectors 2\n}\n", 0, kShots);
  EXPECT_EQ(found.size(), 4u);
  expect_count(found[{3, 1}], kShots, 0.09);
  expect_count(found[{12, 1}], kShots, 0.09);
  expect_count(found[{15, 0}], kShots, 0.01);
}

TEST(ModelSampler, ShotsOfAFixedWeightAreDistributedAsShotsThatHaveThatWeight) {
  constexpr int kShots = 100000;
  const char *dem = "error(0.5) D0\nerror(0.2) D1\nerror(0.1) D2\n"; // odds 1, 1/4, 1/9
  auto two = counts(dem, 2, kShots);
  const double sum = 1.0 / 4 + 1.0 / 9 + 1.0 / 36;
  EXPECT_EQ(two.size(), 3u);
  expect_count(two[{3, 0}], kShots, 1.0 / 4 / sum);
  expect_count(two[{5, 0}], kShots, 1.0 / 9 / sum);
  expect_count(two[{6, 0}], kShots, 1.0 / 36 / sum);
}

TEST(ModelSampler, AWeightThatCannotBeDrawnIsRefused) {
  EXPECT_FALSE(model_sampler(*parse_dem("error(0.5) D0\nerror(0.5) D1\n")).can_sample(3));
  EXPECT_FALSE(model_sampler(*parse_dem("detector D0\n")).can_sample(1));
  EXPECT_TRUE(model_sampler(*parse_dem("error(0.5) D0\nerror(0.5) D1\n")).can_sample(2));
}

} // namespace
} // namespace cudaq::qec::realtime::test

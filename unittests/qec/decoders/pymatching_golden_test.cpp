// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/qec_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

class PyMatchingGolden : public testing::TestWithParam<std::string> {};

TEST_P(PyMatchingGolden, EqualsPublishedPredictionsBitByBit) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const shot_set set = load_committed(GetParam());
  const auto matcher = make_or_throw("pymatching", set.dem_text);
  ASSERT_EQ(matcher->num_detectors(), set.num_detectors);
  ASSERT_EQ(matcher->num_observables(), set.num_observables);
  std::vector<std::uint64_t> events(set.num_detectors);
  std::vector<std::uint8_t> out(matcher->observable_bytes());
  std::uint64_t logical_errors = 0;
  for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
    const unpack_result unpacked = unpack_events(set.detection_row(shot), set.num_detectors, events);
    ASSERT_EQ(unpacked.status, decode_status::ok) << "shot " << shot;
    ASSERT_EQ(matcher->decode(std::span(events).first(unpacked.count), out), decode_status::ok) << "shot " << shot;
    const auto golden = set.prediction_row(shot);
    ASSERT_TRUE(std::equal(out.begin(), out.end(), golden.begin(), golden.end())) << "shot " << shot;
    const auto truth = set.observable_row(shot);
    logical_errors += !std::equal(out.begin(), out.end(), truth.begin(), truth.end());
  }
  EXPECT_EQ(logical_errors, set.offline_logical_errors);
}

INSTANTIATE_TEST_SUITE_P(AllSets, PyMatchingGolden, testing::ValuesIn(committed_sets()), kind_name);

TEST(PyMatching, NamesItsVersion) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  EXPECT_STRNE(pymatching_version(), "");
}

TEST(PyMatching, SaysHowToGetItWhereItIsMissing) {
  if (pymatching_available())
    GTEST_SKIP() << "PyMatching is built in, so its absence cannot be tested here";
  const decoder_result made = make_decoder("pymatching", "error(0.1) D0");
  EXPECT_FALSE(made);
  EXPECT_NE(made.error.find("CUDAQ_PYMATCHING_DIR"), std::string::npos) << made.error;
}

} // namespace
} // namespace cudaq::qec::realtime::test

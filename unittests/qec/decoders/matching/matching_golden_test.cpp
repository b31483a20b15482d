// SPDX-License-Identifier: Apache-2.0
// Matching, plain and correlated, against PyMatching's answers (tools/data/make_data.py).
#include "unittests/qec/qec_test_support.h"

#include <charconv>
#include <fstream>
#include <iterator>

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

// pymatching-correlated against the answers of the Python package (tools/data/make_data.py).

std::string bytes_of(const std::string &file) {
  std::ifstream in(data_folder() / file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The logical errors that the package made, as the set's .meta says.
std::uint64_t expected_errors(const std::string &set) {
  constexpr std::string_view kKey = "correlated_logical_errors=";
  const std::string meta = bytes_of(set + ".meta");
  const std::size_t at = meta.find(kKey);
  std::uint64_t value = 0;
  if (at == std::string::npos ||
      std::from_chars(meta.data() + at + kKey.size(), meta.data() + meta.size(), value).ec != std::errc{})
    throw std::runtime_error(set + ".meta does not say its correlated logical errors");
  return value;
}

class CorrelatedGolden : public testing::TestWithParam<std::string> {};

TEST_P(CorrelatedGolden, EqualsThePackagesAnswersBitByBit) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const shot_set set = load_committed(GetParam());
  const std::string golden = bytes_of(GetParam() + ".corr.b8");
  ASSERT_EQ(golden.size(), set.shots * set.observable_bytes());
  const auto matcher = make_or_throw("pymatching-correlated", set.dem_text);
  std::vector<std::uint8_t> out(matcher->observable_bytes());
  std::uint64_t logical_errors = 0;
  for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
    ASSERT_EQ(matcher->decode_bits(set.detection_row(shot), out), decode_status::ok) << "shot " << shot;
    ASSERT_EQ(out[0], static_cast<std::uint8_t>(golden[shot])) << "shot " << shot;
    logical_errors += out[0] != set.observable_row(shot)[0];
  }
  EXPECT_EQ(logical_errors, expected_errors(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(SetsWithDecomposedErrors, CorrelatedGolden,
                         testing::Values("surface_z_d3_p0.003", "surface_z_d3_p0.005", "surface_z_d5_p0.003",
                                         "surface_z_d5_p0.005"),
                         kind_name);

TEST(CorrelatedMatching, TakesTheLikelierOfTwoCorrectionsThatOneErrorExplains) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  // D0 and D1 fire most often from two errors, one of which flips L0. One rarer error fires all four detectors: if D2
  // and D3 fired too, it is the likeliest cause, and L0 did not flip. Plain matching does not know that.
  const char *const model = "error(0.015) D0 D1 ^ D2 D3\n"
                            "error(0.2) D0 L0\nerror(0.2) D1\n"
                            "error(0.001) D2\nerror(0.001) D3\n";
  const auto plain = make_or_throw("pymatching", model), correlated = make_or_throw("pymatching-correlated", model);
  EXPECT_EQ(decode(*plain, {0, 1, 2, 3}), (answer{decode_status::ok, {1}}));
  EXPECT_EQ(decode(*correlated, {0, 1, 2, 3}), (answer{decode_status::ok, {0}}));
  // The weights are as before after a correlated decode.
  EXPECT_EQ(decode(*correlated, {0, 1}), decode(*plain, {0, 1}));
}

TEST(CorrelatedMatching, IsUsableAfterAShotWithoutASolution) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto matcher = make_or_throw("pymatching-correlated", "error(0.1) D0 D1 L0 ^ D2 D3\nerror(0.1) D1 D2\n");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(decode(*matcher, {0}).status, decode_status::no_solution);
    EXPECT_EQ(decode(*matcher, {0, 1, 2, 3}), (answer{decode_status::ok, {1}}));
  }
}

TEST(CorrelatedMatching, RefusesWhatItsRuleDoesNotCover) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  for (const char *model :
       {"\nerror(0.6) D0 L0\n", "error(0.1) D0 D1\nerror(0.1) D0 D1 L0\n", "\nerror(0.1) D0 D1 D2"}) {
    const decoder_result made = make_decoder("pymatching-correlated", model);
    EXPECT_FALSE(made);
    EXPECT_NE(made.error.find("line 2"), std::string::npos) << made.error;
  }
}

TEST(CorrelatedMatching, NamesTheDecoderThatTakesProbabilitiesWithoutACorrelatedWeight) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  constexpr const char *kModel = "error(5e-324) D0 L0\nerror(0.1) D1\n";
  const decoder_result made = make_decoder("pymatching-correlated", kModel);
  EXPECT_FALSE(made);
  EXPECT_NE(made.error.find("no correlated weights; the decoder pymatching takes it"), std::string::npos) << made.error;
  EXPECT_EQ(decode(*make_or_throw("pymatching", kModel), {0, 1}), (answer{decode_status::ok, {1}}));
}

// The second pass of pymatching-correlated reads PyMatching's search graph only for more than 64 observables, and for
// edges and weights. Where it does, that graph must have the weights that the first pass has changed.

// D0 and D1 are matched over D4, which flips L0: this has less weight than the error between them. D2 and D3 show that
// this error happened: the first pass makes it the likelier way.
const std::string kManyWays = "error(0.01) D0 D1 ^ D2 D3\n"
                              "error(0.1) D0 D4 L0\nerror(0.1) D4 D1\n"
                              "error(0.001) D2\nerror(0.001) D3\n";
const std::vector<std::uint64_t> kAllFour{0, 1, 2, 3};

TEST(CorrelatedSearchGraph, HasTheNewWeightsForManyObservables) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto matcher = make_or_throw("pymatching-correlated", kManyWays + "logical_observable L64\n");
  EXPECT_EQ(decode(*matcher, kAllFour), (answer{decode_status::ok, std::vector<std::uint8_t>(9)}));
  EXPECT_EQ(decode(*make_or_throw("pymatching", kManyWays), kAllFour), (answer{decode_status::ok, {1}}));
}

TEST(CorrelatedSearchGraph, HasTheNewWeightsForEdges) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto matcher = make_or_throw("pymatching-correlated:edges=1", kManyWays);
  std::vector<correction_edge> edges(8);
  decode_details details{.edges = edges};
  std::vector<std::uint8_t> out(1);
  ASSERT_EQ(matcher->decode(kAllFour, out, details), decode_status::ok);
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(details.num_edges, 2U);
}

TEST(CorrelatedSearchGraph, HasTheOldWeightsForTheNextShot) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto matcher = make_or_throw("pymatching-correlated", kManyWays + "logical_observable L64\n");
  std::vector<std::uint8_t> over_d4(9);
  over_d4[0] = 1;
  for (int shot = 0; shot < 3; ++shot) {
    EXPECT_EQ(decode(*matcher, kAllFour), (answer{decode_status::ok, std::vector<std::uint8_t>(9)}));
    EXPECT_EQ(decode(*matcher, {0, 1}), (answer{decode_status::ok, over_d4}));
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The answer of the matching decoder belongs to a set of errors of least weight, also where several errors have the
// same detectors and different observables, and where errors are likelier than not.
#include "unittests/qec/every_error_set.h"

#include <algorithm>

namespace cudaq::qec::realtime::test {
namespace {

/// Up to four edges of three variants or more, on four detectors.
std::vector<random_error> random_multigraph(std::mt19937 &random) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, double> errors;
  for (int edge = 0; edge < 4; ++edge) {
    const std::uint64_t detectors = std::uint64_t{1} << (random() % 4) | std::uint64_t{1} << (random() % 4);
    for (int variant = 0; variant < 3; ++variant)
      errors[{detectors, random() % 8}] = std::uniform_real_distribution(0.02, 0.98)(random);
  }
  std::vector<random_error> result;
  for (const auto &[key, p] : errors)
    result.push_back({key.first, key.second, std::round(p * 1e6) / 1e6}); // as dem_of prints it
  std::shuffle(result.begin(), result.end(), random);
  return result;
}

// Known failure 42.
TEST(MatchingLeastWeight, IsReachedByVariantsOnBothSidesOfOneHalf) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  std::mt19937 random(42);
  for (int model = 0; model < 200 && !testing::Test::HasFailure(); ++model)
    expect_least("pymatching", random_multigraph(random));
}

TEST(MatchingLeastWeight, IsReachedByRandomGraphsLikelierThanNot) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  std::mt19937 random(5);
  for (int model = 0; model < 60 && !testing::Test::HasFailure(); ++model)
    expect_least("pymatching", random_model(random, 2, 0.95));
}

// Weights -2.2, 1.1 and 3.9. Without events the least set is the first and the second error, with both events it is the
// first alone.
TEST(MatchingLeastWeight, UsesTwoVariantsOfOneEdge) {
  for (const std::string &kind : decoder_kinds()) {
    const auto with = make_or_throw(kind, "error(0.9) D0 D1 L0\nerror(0.25) D0 D1 L1\nerror(0.02) D0 D1 L2\n");
    EXPECT_EQ(decode(*with, {}).observables, bits(3, {0, 1})) << kind;
    EXPECT_EQ(decode(*with, {0, 1}).observables, bits(3, {0})) << kind;
  }
}

TEST(MatchingLeastWeight, HoldsAboveSixtyFourObservables) {
  for (const std::string &kind : decoder_kinds()) {
    const auto with = make_or_throw(kind, "error(0.9) D0 D1 L0 L70\nerror(0.25) D0 D1 L1\nerror(0.1) D0 L69\n");
    EXPECT_EQ(decode(*with, {}).observables, bits(71, {0, 1, 70})) << kind;
    EXPECT_EQ(decode(*with, {0, 1}).observables, bits(71, {0, 70})) << kind;
    EXPECT_EQ(decode(*with, {1}).observables, bits(71, {0, 69, 70})) << kind;
  }
}

// Errors without detectors are in the least set if they are likelier than not. They merge, too: 0.6 twice is 0.48.
TEST(MatchingLeastWeight, FlipsObservablesOfLikelyErrorsWithoutDetectors) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto with = make_or_throw("pymatching", "error(0.1) D0\nerror(0.9) L0 L1\nerror(1) L1\nerror(0.4) L2\n"
                                                "error(0.6) L3\nerror(0.6) L3\nerror(1) L4\nerror(1) L4\n");
  EXPECT_EQ(decode(*with, {}).observables, bits(5, {0}));
  EXPECT_EQ(decode(*with, {0}).observables, bits(5, {0}));
}

// Known failure 43.
TEST(MatchingLeastWeight, KeepsErrorsAsRareAsTheSmallestDouble) {
  for (const std::string &kind : decoder_kinds()) {
    const auto with = make_or_throw(kind, "error(5e-324) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\n");
    EXPECT_EQ(decode(*with, {0}).observables, bits(1, {})) << kind;
    const auto alone = make_or_throw(kind, "error(5e-324) D0 L0\n");
    EXPECT_EQ(decode(*alone, {0}).observables, bits(1, {0})) << kind;
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

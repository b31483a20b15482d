// SPDX-License-Identifier: Apache-2.0
// The answer of the matching decoder belongs to a set of errors of least weight, also where several errors have the
// same detectors and different observables, and where errors are likelier than not.
#include "lib/qec/decoding/model_sampler.h"
#include "unittests/qec/every_error_set.h"
#include "unittests/qec/qec_test_support.h"

#include <algorithm>
#include <cmath>
#include <random>

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

// Matching leaves out the parts of a model that flip no observable, unless their edges or weight are wanted.

class MatchingParts : public testing::Test {
protected:
  void SetUp() override { CUDAQ_SKIP_WITHOUT_PYMATCHING(); }
};

/// D0 to D2: a line with a boundary that flips L0. D3 to D5: a triangle without a boundary. D6, D7: a line with one.
/// D8: no error flips it.
constexpr const char *kParts = "error(0.1) D0 L0\nerror(0.2) D0 D1\nerror(0.1) D1 D2\nerror(0.3) D2\n"
                               "error(0.1) D3 D4\nerror(0.1) D4 D5\nerror(0.1) D5 D3\nerror(0.1) D6 D7\nerror(0.2) D7\n"
                               "detector D8\n";

TEST_F(MatchingParts, EveryShotHasTheStatusAndObservablesOfAWholeMatching) {
  const auto with = make_or_throw("pymatching", kParts);
  for (std::uint64_t mask = 0; mask < 512; ++mask) {
    std::vector<std::uint64_t> events;
    for (std::uint64_t d = 0; d < 9; ++d)
      if ((mask >> d & 1) != 0)
        events.push_back(d);
    std::uint8_t whole = 0;
    decode_details details; // asks for the weight, so everything is matched
    const decode_status status = with->decode(events, {&whole, 1}, details);
    const answer quick = decode(*with, events);
    ASSERT_EQ(quick.status, status) << mask;
    ASSERT_EQ(quick.observables[0], whole) << mask;
    const bool triangle_is_odd = (mask >> 3 & 1) ^ (mask >> 4 & 1) ^ (mask >> 5 & 1);
    ASSERT_EQ(status == decode_status::ok, !triangle_is_odd && (mask >> 8 & 1) == 0) << mask;
  }
}

TEST_F(MatchingParts, ARefusedShotLeavesNothingForTheNext) {
  const auto with = make_or_throw("pymatching", kParts);
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(decode(*with, {3}).status, decode_status::no_solution);
    EXPECT_EQ(decode(*with, {3, 4}).status, decode_status::ok);
    EXPECT_EQ(decode(*with, {3, 4, 5, 0}).status, decode_status::no_solution);
    EXPECT_EQ(decode(*with, {0}), (answer{decode_status::ok, bits(1, {0})}));
  }
}

TEST_F(MatchingParts, TheWeightIsThatOfAllParts) {
  const auto with = make_or_throw("pymatching", kParts);
  std::uint8_t out = 0;
  decode_details details;
  ASSERT_EQ(with->decode(std::vector<std::uint64_t>{3, 4}, {&out, 1}, details), decode_status::ok);
  EXPECT_NEAR(details.weight, std::log(9.0), 0.01);
}

// Matching with more observables than a mask of 64 bits has, and with more than the wide mask has.

constexpr std::uint64_t kWidth = 8, kHeight = 8;

struct wide_error {
  double probability;
  std::vector<std::uint64_t> detectors, observables;
};

/// A grid of detectors with boundaries left and right. All weights differ, so there is one least matching. Some errors
/// are likelier than not: they flip observables without events.
std::vector<wide_error> grid(std::uint64_t num_observables, std::mt19937_64 &random) {
  std::vector<wide_error> errors;
  const auto add = [&](std::vector<std::uint64_t> detectors) {
    wide_error &one = errors.emplace_back();
    one.probability = std::uniform_real_distribution(0.01, 0.1)(random);
    if (random() % 64 == 0)
      one.probability = 1 - one.probability;
    one.detectors = std::move(detectors);
    for (std::uint64_t k = 0; k < num_observables; ++k)
      if (random() % 8 == 0)
        one.observables.push_back(k);
  };
  for (std::uint64_t row = 0; row < kHeight; ++row)
    for (std::uint64_t column = 0; column < kWidth; ++column) {
      const std::uint64_t d = row * kWidth + column;
      if (column == 0 || column + 1 == kWidth)
        add({d});
      if (column + 1 < kWidth)
        add({d, d + 1});
      if (row + 1 < kHeight)
        add({d, d + kWidth});
    }
  return errors;
}

/// The model with observables [begin, end) alone.
std::string text_with(const std::vector<wide_error> &errors, std::uint64_t begin, std::uint64_t end) {
  std::string text;
  for (const wide_error &one : errors) {
    text += "error(" + std::to_string(one.probability) + ")";
    for (const std::uint64_t d : one.detectors)
      text += " D" + std::to_string(d);
    for (const std::uint64_t k : one.observables)
      if (k >= begin && k < end)
        text += " L" + std::to_string(k - begin);
    text += '\n';
  }
  return text + "logical_observable L" + std::to_string(end - begin - 1) + '\n';
}

class ManyObservables : public testing::TestWithParam<std::uint64_t> {
protected:
  void SetUp() override { CUDAQ_SKIP_WITHOUT_PYMATCHING(); }
};

TEST_P(ManyObservables, HaveTheAnswersOfModelsWithSomeOfThemEach) {
  const std::uint64_t count = GetParam();
  std::mt19937_64 random(count);
  const std::vector<wide_error> errors = grid(count, random);
  const std::string text = text_with(errors, 0, count);
  const auto all = make_or_throw("pymatching", text);
  std::vector<std::unique_ptr<decoder>> parts;
  for (std::uint64_t begin = 0; begin < count; begin += 64)
    parts.push_back(make_or_throw("pymatching", text_with(errors, begin, std::min(begin + 64, count))));
  const auto model = parse_dem(text);
  ASSERT_TRUE(model.ok()) << model.text();
  const model_sampler sampler(*model);
  std::vector<std::uint8_t> shot(sampler.shot_bytes()), truth(sampler.observable_bytes()), out(all->observable_bytes());
  for (int k = 0; k < 300; ++k) {
    std::ranges::fill(shot, std::uint8_t{0});
    sampler.sample(random, shot, truth);
    decode_details details;
    ASSERT_EQ(k % 2 == 0 ? all->decode_bits(shot, out) : all->decode_bits(shot, out, details), decode_status::ok);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      std::vector<std::uint8_t> expected(parts[part]->observable_bytes());
      decode_details own;
      ASSERT_EQ(parts[part]->decode_bits(shot, expected, own), decode_status::ok);
      ASSERT_TRUE(std::ranges::equal(expected, std::span(out).subspan(part * 8, expected.size()))) << k << ' ' << part;
      if (k % 2 != 0) {
        EXPECT_NEAR(details.weight, own.weight, 1e-4);
      }
    }
  }
}

TEST_P(ManyObservables, AShotWithoutASolutionLeavesNothingForTheNext) {
  const std::uint64_t count = GetParam();
  // D0 and D1: one error, no boundary. D2: a boundary that flips the last observable.
  const auto with = make_or_throw("pymatching", "error(0.1) D0 D1 L0\nerror(0.1) D2 L" + std::to_string(count - 1));
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(decode(*with, {0, 2}), (answer{decode_status::no_solution, bits(count, {})}));
    EXPECT_EQ(decode(*with, {0, 1, 2}), (answer{decode_status::ok, bits(count, {0, count - 1})}));
    EXPECT_EQ(decode(*with, {2}), (answer{decode_status::ok, bits(count, {count - 1})}));
  }
}

TEST_P(ManyObservables, EdgesHaveTheObservablesOfTheAnswer) {
  const std::uint64_t count = GetParam();
  std::mt19937_64 random(count);
  const std::vector<wide_error> errors = grid(count, random);
  const auto with = make_or_throw("pymatching:edges=1", text_with(errors, 0, count));
  std::vector<correction_edge> edges(kWidth * kHeight);
  for (std::uint64_t d = 0; d < kWidth * kHeight; ++d) {
    std::vector<std::uint8_t> out(with->observable_bytes());
    decode_details details{.edges = edges};
    ASSERT_EQ(with->decode(std::vector{d}, out, details), decode_status::ok);
    EXPECT_EQ(decode(*with, {d}).observables, out) << d;
    EXPECT_NE(details.num_edges, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, ManyObservables, testing::Values(64, 65, 128, 129, 192, 200, 256, 257));

} // namespace
} // namespace cudaq::qec::realtime::test

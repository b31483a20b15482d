// SPDX-License-Identifier: Apache-2.0
// Matching with more observables than a mask of 64 bits has, and with more than the wide mask has.
#include "lib/qec/decoding/model_sampler.h"
#include "unittests/qec/qec_test_support.h"

#include <random>

namespace cudaq::qec::realtime::test {
namespace {

constexpr std::uint64_t kWidth = 8, kHeight = 8;

struct random_error {
  double probability;
  std::vector<std::uint64_t> detectors, observables;
};

/// A grid of detectors with boundaries left and right. All weights differ, so there is one least matching. Some errors
/// are likelier than not: they flip observables without events.
std::vector<random_error> grid(std::uint64_t num_observables, std::mt19937_64 &random) {
  std::vector<random_error> errors;
  const auto add = [&](std::vector<std::uint64_t> detectors) {
    random_error &one = errors.emplace_back();
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
std::string text_of(const std::vector<random_error> &errors, std::uint64_t begin, std::uint64_t end) {
  std::string text;
  for (const random_error &one : errors) {
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
  const std::vector<random_error> errors = grid(count, random);
  const std::string text = text_of(errors, 0, count);
  const auto all = make_or_throw("pymatching", text);
  std::vector<std::unique_ptr<decoder>> parts;
  for (std::uint64_t begin = 0; begin < count; begin += 64)
    parts.push_back(make_or_throw("pymatching", text_of(errors, begin, std::min(begin + 64, count))));
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
  const std::vector<random_error> errors = grid(count, random);
  const auto with = make_or_throw("pymatching:edges=1", text_of(errors, 0, count));
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

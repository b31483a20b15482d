// SPDX-License-Identifier: Apache-2.0
// Shots whose soft values are drawn: errors happen as often as the values say.
#include "lib/qec/decoders/readout/readout_sampler.h"
#include "unittests/qec/model_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace cudaq::qec::realtime::test {
namespace {

/// Each error flips a detector of its own. Error 0 is misread by measurement 0, with 0.0478 on average; error 2 is that
/// of flag 0.
constexpr const char *kModel = "error(0.0569) D0 L0\nerror(0.1) D1\nerror(0.001) D2\n";
constexpr const char *kLines = "measurements 2\nflags 1\ngaussian 0 1 -1 0.6 0.5\nmisread 0 0.01 0 0\nflag 0 2 2 0.5\n";
constexpr std::size_t kShots = 100000;

std::unique_ptr<readout_table> table_of(const std::string &lines) {
  readout_table_result read = read_readout_table(head_of_text("cudaq-realtime-readout 1", kModel) + lines, kModel);
  if (!read)
    throw std::runtime_error(read.error);
  return std::move(read.instance);
}

struct shot {
  decode_status status = decode_status::ok;
  std::uint8_t events = 0, observables = 0;
  std::vector<std::uint8_t> soft;
  bool operator==(const shot &) const = default;
};

/// The flag of each second shot is 2.
std::vector<shot> shots_of(const readout_table &table, soft_kind kind, std::uint64_t seed, std::size_t count = kShots) {
  auto sampler = readout_sampler::of(*parse_dem(kModel), table, kind);
  if (sampler.failed())
    throw std::runtime_error(sampler.text());
  std::mt19937_64 random(seed);
  std::vector<shot> shots(count);
  std::string fault;
  for (std::size_t k = 0; k < count; ++k) {
    shots[k].soft.resize(table.soft_bytes(kind));
    const std::uint8_t flags = k % 2 == 0 ? 0 : 2;
    shots[k].status =
        sampler->sample(random, {&flags, 1}, {{&shots[k].events, 1}, {&shots[k].observables, 1}, shots[k].soft}, fault);
  }
  return shots;
}

/// A count of independent shots is near what is expected.
void expect_near(double count, double expected, const char *what) {
  EXPECT_NEAR(count, expected, 5 * std::sqrt(expected) + 1) << what;
}

TEST(ReadoutSampler, ErrorsHappenAsOftenAsTheValuesOfTheShotSay) {
  const auto table = table_of(kLines);
  double sure = 0, sure_errors = 0, sure_expected = 0, unsure = 0, unsure_errors = 0, unsure_expected = 0;
  double errors = 0, others = 0, leaked = 0, unleaked = 0;
  std::size_t number = 0;
  for (const shot &one : shots_of(*table, soft_kind::f32, 1)) {
    ASSERT_EQ(one.status, decode_status::ok);
    EXPECT_EQ(one.observables, one.events & 1);
    float value = 0, unused = 1;
    std::memcpy(&value, one.soft.data(), sizeof value);
    std::memcpy(&unused, one.soft.data() + sizeof value, sizeof unused);
    ASSERT_EQ(unused, 0) << "it misreads nothing";
    const double misread = 1 / (1 + std::exp(std::abs(2 * value / 0.36)));
    const bool is_error = (one.events & 1) != 0;
    (misread < 0.05 ? sure : unsure) += 1;
    (misread < 0.05 ? sure_errors : unsure_errors) += is_error;
    (misread < 0.05 ? sure_expected : unsure_expected) += merged_probability(0.01, misread);
    errors += is_error;
    others += one.events >> 1 & 1;
    (number++ % 2 == 0 ? unleaked : leaked) += one.events >> 2 & 1;
  }
  expect_near(sure_errors, sure_expected, "sure");
  expect_near(unsure_errors, unsure_expected, "unsure");
  EXPECT_GT(unsure_errors / unsure, 10 * sure_errors / sure);
  expect_near(errors, 0.0569 * kShots, "the average is that of the model");
  expect_near(others, 0.1 * kShots, "not in the table");
  expect_near(unleaked, 0.001 * kShots / 2, "the flag is 0");
  expect_near(leaked, 0.5 * kShots / 2, "the flag is 2");
}

TEST(ReadoutSampler, RoundsToTheLevelsOfAKindAndRepeatsItselfBySeed) {
  const auto table = table_of("measurements 2\nflags 1\ngaussian 0 12 3 2 0.25\nmisread 0 0.01 1 0\n");
  double ones = 0;
  for (const shot &one : shots_of(*table, soft_kind::u4, 2))
    ones += one.soft[0] >> 4 < 7.5;
  EXPECT_EQ(shots_of(*table, soft_kind::u8, 3, 10), shots_of(*table, soft_kind::u8, 3, 10));
  EXPECT_NE(shots_of(*table, soft_kind::u8, 3, 10), shots_of(*table, soft_kind::u8, 4, 10));
  // Of 12 and 3 each with standard deviation 2, 1.2 % are on the wrong side of 7.5.
  expect_near(ones, (0.25 * 0.988 + 0.75 * 0.012) * kShots, "share of 1");
}

TEST(ReadoutSampler, RefusesLevelsMeansOutsideTheKindAndWrongFlags) {
  const auto refusal = [](const std::string &lines, soft_kind kind) {
    return readout_sampler::of(*parse_dem(kModel), *table_of(lines), kind).text();
  };
  std::string levels = "measurements 1\nlevels 0";
  for (int k = 0; k < 16; ++k)
    levels += " " + std::to_string(k - 7.5);
  EXPECT_EQ(refusal(levels + "\nmisread 0 0.01 0 0\n", soft_kind::u4),
            "values of measurement 0 cannot be drawn: calibration 0 has levels, and does not say how often each of "
            "them comes; accepted: gaussian");
  EXPECT_EQ(refusal(kLines, soft_kind::u4),
            "values of measurement 0 cannot be drawn: calibration 0 has means that are not values of this kind; "
            "accepted: two numbers from 0 to 15, or the kind f32");
  const auto table = table_of(kLines);
  auto sampler = readout_sampler::of(*parse_dem(kModel), *table, soft_kind::f32);
  ASSERT_TRUE(sampler.ok()) << sampler.text();
  std::mt19937_64 random(1);
  std::uint8_t events = 0, observables = 0, soft[8] = {};
  const std::uint8_t flags = 3;
  std::string fault;
  EXPECT_EQ(sampler->sample(random, {&flags, 1}, {{&events, 1}, {&observables, 1}, soft}, fault),
            decode_status::bad_probability);
  EXPECT_EQ(fault, "flag 0 has the value 3, accepted: 0, 1, 2");
  EXPECT_EQ(events, 0);
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// What the readout of a shot says: soft values of measurements, and flags of leakage. The oracles are the densities of
// the two Gaussians, a decoder that is made for one shot alone, and every set of errors.
#include "lib/qec/decoders/readout/readout_content.h"
#include "lib/qec/decoders/readout/readout_sampler.h"
#include "unittests/qec/every_error_set.h"
#include "unittests/qec/model_text.h"
#include "unittests/qec/shot_lists.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <stdexcept>

namespace cudaq::qec::realtime::test {
namespace {

constexpr const char *kModel = "error(0.1) D0 L0\nerror(0.01) D0 D1\nerror(0.15) D1\nerror(1e-9) D0 D1 L0\n"
                               "error(1e-9) D1 D2\nerror(0.02) D2\n";
constexpr const char *kLines = "measurements 3\nflags 5\n# two kinds of readouts\ngaussian 0 1 -1 0.5 0.5\n"
                               "gaussian 1 40 200 30 0.25\nmisread 1 0.002 0 0 2 1\nmisread 2 0 1 1\n"
                               "flag 1 1 4 0.125\nflag 1 2 4 0.5 1 0.25\nflag 4 2 4 0.375 1 0.4\n";

std::string levels(std::size_t count, double step) {
  std::string text;
  for (std::size_t k = 0; k < count; ++k)
    text += " " + std::to_string((static_cast<double>(k) - static_cast<double>(count - 1) / 2) * step);
  return text;
}

std::unique_ptr<readout_table> table_of(const std::string &lines, const std::string &model = kModel) {
  readout_table_result read = read_readout_table(head_of_text("cudaq-realtime-readout 1", model) + lines, model);
  if (!read)
    throw std::runtime_error(read.error);
  return std::move(read.instance);
}

std::vector<std::uint8_t> bytes_of(const std::vector<float> &values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

struct listing {
  decode_status status = decode_status::ok;
  shot_list list;
  std::string fault;
};

listing list_of(const readout_table &table, const std::vector<std::uint8_t> &soft, soft_kind kind,
                const std::vector<std::uint8_t> &leakage = {}) {
  listing found;
  found.list = {{77, 0.5}}; // is replaced
  found.status = table.list_of({.soft = soft, .kind = kind, .leakage = leakage}, found.list, found.fault);
  return found;
}

double either(double a, double b) { return a + b - 2 * a * b; }

/// That the result was not the likelier one.
double misread(double v, double zero, double one, double sigma, double prior) {
  const double of_zero = (1 - prior) * std::exp(-(v - zero) * (v - zero) / (2 * sigma * sigma));
  const double of_one = prior * std::exp(-(v - one) * (v - one) / (2 * sigma * sigma));
  return std::min(of_zero, of_one) / (of_zero + of_one);
}

void expect_list(const listing &got, const shot_list &expected) {
  ASSERT_EQ(got.status, decode_status::ok) << got.fault;
  ASSERT_EQ(got.list.size(), expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    EXPECT_EQ(got.list[k].error, expected[k].error) << k;
    EXPECT_NEAR(got.list[k].probability, expected[k].probability, 1e-13) << k;
  }
}

TEST(Readout, GivesTheProbabilitiesThatFollowFromTheDensities) {
  const auto table = table_of(kLines);
  ASSERT_EQ(table->num_measurements(), 3U);
  ASSERT_EQ(table->num_flags(), 5U);
  EXPECT_EQ(table->max_errors(), 3U);
  for (const float first : {0.0F, 0.25F, -1.0F, 4.0F})
    for (const float second : {120.0F, 130.5F, 40.0F})
      expect_list(list_of(*table, bytes_of({first, second, 99}), soft_kind::f32, {0, 0}),
                  {{1, either(0.002, either(misread(static_cast<double>(first), 1, -1, 0.5, 0.5),
                                            misread(99, 40, 200, 30, 0.25)))},
                   {2, misread(static_cast<double>(second), 40, 200, 30, 0.25)}});
}

TEST(Readout, TakesNothingAndCertaintyExactly) {
  const auto table = table_of("measurements 2\ngaussian 0 1 -1 0.5 0.5\nmisread 1 0 0 0\nmisread 2 0.25 1 0\n");
  expect_list(list_of(*table, bytes_of({0, 0}), soft_kind::f32), {{1, 0.5}, {2, 0.5}});
  const float largest = std::numeric_limits<float>::max();
  const listing certain = list_of(*table, bytes_of({largest, -largest}), soft_kind::f32);
  ASSERT_EQ(certain.status, decode_status::ok);
  EXPECT_EQ(certain.list[0].probability, 0);
  EXPECT_EQ(certain.list[1].probability, 0.25);
}

TEST(Readout, OfBytesIsThatOfTheirNumbers) {
  const auto table = table_of(kLines);
  const listing of_floats = list_of(*table, bytes_of({1, 14, 9}), soft_kind::f32, {0, 0});
  expect_list(list_of(*table, {1, 14, 9}, soft_kind::u8, {0, 0}), of_floats.list);
  expect_list(list_of(*table, {0xE1, 0x09}, soft_kind::u4, {0, 0}), of_floats.list); // the first in the low half
}

TEST(Readout, TakesLevelsOfATable) {
  const struct {
    std::size_t count;
    soft_kind kind;
    std::vector<std::uint8_t> values;
    double level; // of measurement 1
  } cases[] = {{16, soft_kind::u4, {0xE1}, 14}, {256, soft_kind::u8, {1, 200}, 200}};
  for (const auto &[count, kind, values, level] : cases) {
    const auto table = table_of("measurements 2\nlevels 0" + levels(count, 0.1) + "\nmisread 1 0.125 1 0\n");
    const double ratio = (level - static_cast<double>(count - 1) / 2) * 0.1;
    const listing got = list_of(*table, values, kind);
    ASSERT_EQ(got.status, decode_status::ok) << got.fault;
    EXPECT_NEAR(got.list[0].probability, either(0.125, 1 / (1 + std::exp(std::abs(ratio)))), 1e-6);
    for (const soft_kind other : {soft_kind::f32, soft_kind::u8, soft_kind::u4})
      if (other != kind) {
        const listing refused = list_of(*table, std::vector<std::uint8_t>(table->soft_bytes(other)), other);
        EXPECT_EQ(refused.status, decode_status::not_supported);
        EXPECT_NE(refused.fault.find("measurement 1 has a table of " + std::to_string(count)), std::string::npos);
        EXPECT_TRUE(refused.list.empty());
      }
  }
}

TEST(Readout, OfLeakageGivesTheErrorsOfItsValue) {
  const auto table = table_of("flags 5\nflag 1 1 4 0.125\nflag 1 2 4 0.5 1 0.25\nflag 4 0 0 0.01\nflag 4 2 4 0.375\n");
  expect_list(list_of(*table, {}, soft_kind::f32, {0x00, 0}), {{0, 0.01}});
  expect_list(list_of(*table, {}, soft_kind::f32, {0x04, 1}), {{4, 0.125}});
  expect_list(list_of(*table, {}, soft_kind::f32, {0x08, 1}), {{4, 0.5}, {1, 0.25}});
  expect_list(list_of(*table, {}, soft_kind::f32, {0x04, 2}), {{4, 0.375}}); // the larger one
  expect_list(list_of(*table, {}, soft_kind::f32, {0xA2, 1}), {});           // flags 0, 2, 3 say nothing
}

TEST(Readout, OfLeakageReplacesTheRestOfAMisreadError) {
  const auto table = table_of(kLines);
  const double first = misread(0.1F, 1, -1, 0.5, 0.5), third = misread(99, 40, 200, 30, 0.25);
  expect_list(list_of(*table, bytes_of({0.1F, 40, 99}), soft_kind::f32, {0x08, 2}),
              {{1, either(0.4, either(first, third))}, {2, misread(40, 40, 200, 30, 0.25)}, {4, 0.5}});
}

TEST(Readout, IsRefusedWithTheValueThatIsWrong) {
  const auto table = table_of(kLines);
  const std::vector<std::uint8_t> none{0, 0};
  const auto floats = [](float middle) { return bytes_of({0, middle, 0}); };
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const struct {
    std::vector<std::uint8_t> soft;
    soft_kind kind;
    std::vector<std::uint8_t> leakage;
    decode_status status;
    std::string why;
  } cases[] = {
      {{}, soft_kind::f32, none, decode_status::buffer_too_small, "soft values: 0 bytes, accepted: 12 for 3"},
      {floats(0), soft_kind::u8, none, decode_status::buffer_too_small, "soft values: 12 bytes, accepted: 3 for 3"},
      {{1, 2, 3}, soft_kind::u4, none, decode_status::buffer_too_small, "soft values: 3 bytes, accepted: 2 for 3"},
      {floats(0), soft_kind::f32, {}, decode_status::buffer_too_small, "flags: 0 bytes, accepted: 2 for 5"},
      {floats(nan), soft_kind::f32, none, decode_status::bad_probability, "of measurement 1 is not finite"},
      {floats(-infinity), soft_kind::f32, none, decode_status::bad_probability, "of measurement 1 is not finite"},
      {{1, 0x11}, soft_kind::u4, none, decode_status::bad_probability, "unused half of the last byte"},
      {floats(0), soft_kind::f32, {0, 4}, decode_status::bad_probability, "unused bits of the last byte of flags"},
      {floats(0), soft_kind::f32, {0x0C, 0}, decode_status::bad_probability, "flag 1 has the value 3"},
      {floats(0), static_cast<soft_kind>(3), none, decode_status::not_supported, "none of f32, u8, u4"}};
  for (const auto &one : cases) {
    const listing got = list_of(*table, one.soft, one.kind, one.leakage);
    EXPECT_EQ(got.status, one.status) << one.why;
    EXPECT_NE(got.fault.find(one.why), std::string::npos) << got.fault;
    EXPECT_TRUE(got.list.empty()) << one.why;
  }
}

class ReadoutFile : public testing::Test {
protected:
  static void expect_refusal(const std::string &text, const std::string &why, const std::string &model = kModel) {
    const readout_table_result table = read_readout_table(text, model);
    ASSERT_FALSE(table) << text;
    EXPECT_NE(table.error.find(why), std::string::npos) << table.error;
  }
  static void expect_refused_lines(const std::string &lines, const std::string &why) {
    expect_refusal(head_of_text("cudaq-realtime-readout 1", kModel) + lines, why);
  }
};

TEST_F(ReadoutFile, IsRefusedWithTheLineThatIsWrong) {
  const std::string counts = "measurements 3\nflags 2\n", gaussian = counts + "gaussian 0 1 -1 0.5 0.5\n";
  expect_refusal("", "line 1: the file has no line \"cudaq-realtime-readout 1\"");
  expect_refusal("cudaq-realtime-heralds 1\n", "line 1: the first line is \"cudaq-realtime-heralds 1\"");
  expect_refusal("cudaq-realtime-readout 1\nmodel 00000001\n", "line 2: the file is for the model 00000001");
  expect_refusal("cudaq-realtime-readout 1\n", "line", "not a model");
  expect_refused_lines("", "line 2: the file has neither measurements nor flags");
  expect_refused_lines("measurements 0\n", "line 3: the line is \"measurements 0\"");
  expect_refused_lines("measurements 1048577\n", "from 1 to 1048576");
  expect_refused_lines("flags 3 4\n", "line 3: the line is \"flags 3 4\"");
  expect_refused_lines("flags 3\nflags 3\n", "line 4: flags are in an earlier line, too");
  expect_refused_lines("soft 3\n", "line 3: the line begins with \"soft\", accepted: measurements");
  expect_refused_lines(counts + "gaussian 1 1 -1 0.5 0.5\n", "the calibration is \"1\", accepted: the next number, 0");
  expect_refused_lines(counts + "gaussian 0 1 -1 0 0.5\n", "calibration 0 is no Gaussian");
  expect_refused_lines(counts + "gaussian 0 1 -1 0.5 1\n", "calibration 0 is no Gaussian");
  expect_refused_lines(counts + "gaussian 0 1 -1 0.5\n", "calibration 0 is no Gaussian");
  expect_refused_lines(counts + "gaussian 0 1 1 0.5 0.5\n", "the means of calibration 0 are equal");
  expect_refused_lines(counts + "gaussian 0 1e300 -1 1e-300 0.5\n", "too far apart for its standard deviation");
  expect_refused_lines(counts + "gaussian 0 nan -1 0.5 0.5\n", "calibration 0 has \"nan\", accepted: finite numbers");
  expect_refused_lines(counts + "levels 0" + levels(17, 1) + "\n", "calibration 0 has 17 levels, accepted: 16 or 256");
  expect_refused_lines(gaussian + "misread 1 0.5 3 0\n", "error 1: the measurement is \"3\", and a shot has 3");
  expect_refused_lines(gaussian + "misread 1 0.5 2 1\n", "the calibration of measurement 2 is \"1\", and there are 1");
  expect_refused_lines(gaussian + "misread 1 0.5 2\n", "the calibration of measurement 2 is \"\"");
  expect_refused_lines(gaussian + "misread 1 0.5\n", "error 1 has no measurement");
  expect_refused_lines(gaussian + "misread 1 1.5 2 0\n", "the probability of error 1 is \"1.5\"");
  expect_refused_lines(gaussian + "misread 6 0.5 2 0\n", "line 6: error 6 is not one of the model, which has 6");
  expect_refused_lines(gaussian + "misread 1 0 2 0\nmisread 1 0 1 0\n", "error 1 is in an earlier line misread, too");
  expect_refused_lines(gaussian + "misread 1 0 2 0\nmisread 2 0 2 0\n", "measurement 2 is listed twice");
  expect_refused_lines(gaussian + "flag 0 2 1 0.5\nmisread 1 0 2 0\n", "a line misread comes after a line flag");
  expect_refused_lines("flag 0 2 1 0.5\n", "line 3: the line begins with \"flag 0 2\", accepted: a flag below 0");
  expect_refused_lines(counts + "flag 2 2 1 0.5\n", "accepted: a flag below 2");
  expect_refused_lines(counts + "flag 1 3 1 0.5\n", "and its value 0, 1 or 2");
  expect_refused_lines(counts + "flag 1 2 1 0.5\nflag 1 2 2 0.5\n",
                       "line 6: flag 1 2 comes after a higher one or twice");
  expect_refused_lines(counts + "flag 1 2 1 0.5\nflag 0 2 2 0.5\n", "flags and their values ascend");
  expect_refused_lines(counts + "flag 1 2 1 0.5 1 0.25\n", "error 1 is listed twice");
  const std::string with_zero = "error(0) D0\nerror(0.1) D0\n";
  expect_refusal(head_of_text("cudaq-realtime-readout 1", with_zero) + "flags 1\nflag 0 2 0 0.5\n",
                 "error 0 has the probability 0 in the model", with_zero);
}

// Shots whose soft values are drawn: errors happen as often as the values say.

/// Each error flips a detector of its own. Error 0 is misread by measurement 0, with 0.0478 on average; error 2 is that
/// of flag 0.
constexpr const char *kSampledModel = "error(0.0569) D0 L0\nerror(0.1) D1\nerror(0.001) D2\n";
constexpr const char *kSampledLines =
    "measurements 2\nflags 1\ngaussian 0 1 -1 0.6 0.5\nmisread 0 0.01 0 0\nflag 0 2 2 0.5\n";
constexpr std::size_t kShots = 100000;

std::unique_ptr<readout_table> sampled_table(const std::string &lines) {
  readout_table_result read =
      read_readout_table(head_of_text("cudaq-realtime-readout 1", kSampledModel) + lines, kSampledModel);
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
  auto sampler = readout_sampler::of(*parse_dem(kSampledModel), table, kind);
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
  const auto table = sampled_table(kSampledLines);
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
  const auto table = sampled_table("measurements 2\nflags 1\ngaussian 0 12 3 2 0.25\nmisread 0 0.01 1 0\n");
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
    return readout_sampler::of(*parse_dem(kSampledModel), *sampled_table(lines), kind).text();
  };
  std::string levels = "measurements 1\nlevels 0";
  for (int k = 0; k < 16; ++k)
    levels += " " + std::to_string(k - 7.5);
  EXPECT_EQ(refusal(levels + "\nmisread 0 0.01 0 0\n", soft_kind::u4),
            "values of measurement 0 cannot be drawn: calibration 0 has levels, and does not say how often each of "
            "them comes; accepted: gaussian");
  EXPECT_EQ(refusal(kSampledLines, soft_kind::u4),
            "values of measurement 0 cannot be drawn: calibration 0 has a mean that no value of this kind has; "
            "accepted: 0 to 15, or the kind f32");
  const auto table = sampled_table(kSampledLines);
  auto sampler = readout_sampler::of(*parse_dem(kSampledModel), *table, soft_kind::f32);
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

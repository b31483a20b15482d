// SPDX-License-Identifier: Apache-2.0
// What the readout of a shot says: soft values of measurements, and flags of leakage. The oracles are the densities of
// the two Gaussians, a decoder that is made for one shot alone, and every set of errors.
#include "lib/qec/decoders/readout/readout_content.h"
#include "unittests/qec/every_error_set.h"
#include "unittests/qec/model_text.h"
#include "unittests/qec/shot_lists.h"

#include <cmath>
#include <cstring>
#include <limits>

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
  const auto table = table_of("measurements 3\ngaussian 0 12 3 2 0.5\ngaussian 1 4 15 2.5 0.25\n"
                              "misread 1 0.002 0 0 2 1\nmisread 2 0 1 1\n");
  const listing of_floats = list_of(*table, bytes_of({1, 14, 9}), soft_kind::f32);
  expect_list(list_of(*table, {1, 14, 9}, soft_kind::u8), of_floats.list);
  expect_list(list_of(*table, {0xE1, 0x09}, soft_kind::u4), of_floats.list); // the first in the low half
}

TEST(Readout, OfGaussiansTakesBytesIfItsMeansAreSuchNumbers) {
  const struct {
    const char *means;
    bool takes_u8, takes_u4;
  } cases[] = {{"1 -1", false, false},       {"0.8 0.2", false, false}, {"-0.6 10", false, false},
               {"0 255.6", false, false},    {"0 1", true, true},       {"-0.3 15.4", true, true},
               {"127.6 128.3", true, false}, {"255 0", true, false},    {"15 3", true, true},
               {"16 3", true, false}};
  for (const auto &[means, takes_u8, takes_u4] : cases) {
    const auto table = table_of("measurements 1\ngaussian 0 " + std::string(means) + " 0.5 0.5\nmisread 1 0.1 0 0\n");
    EXPECT_EQ(list_of(*table, bytes_of({0.5}), soft_kind::f32).status, decode_status::ok) << means;
    EXPECT_EQ(list_of(*table, {1}, soft_kind::u8).status, takes_u8 ? decode_status::ok : decode_status::not_supported)
        << means;
    EXPECT_EQ(list_of(*table, {1}, soft_kind::u4).status, takes_u4 ? decode_status::ok : decode_status::not_supported)
        << means;
  }
  EXPECT_EQ(
      list_of(*table_of("measurements 1\ngaussian 0 0.8 -1.1 0.55 0.5\nmisread 1 0.1 0 0\n"), {1}, soft_kind::u8).fault,
      "measurement 0 has Gaussians with the means 0.8 and -1.1, so its values are not in the kind u8, numbers from "
      "0 to 255; accepted: f32 in the unit of the means, or a table of levels");
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

// Of a surface code, each third error is a measurement's, some of them of two measurements; each seventh a flag's.
TEST(Readout, AnswersAsADecoderThatIsMadeForTheShotAlone) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  for (const char *name : {"surface_z_d3_p0.005", "surface_z_d5_p0.005"}) {
    const shot_set set = load_committed(name);
    const detector_error_model model = parse_or_throw(set.dem_text);
    std::vector<std::uint64_t> all;
    for (const dem_component &c : model.components)
      if (all.empty() || all.back() != c.mechanism)
        all.push_back(c.mechanism);
    std::string misreads, flags;
    std::uint64_t measurements = 0, num_flags = 0;
    for (const std::uint64_t error : all) {
      if (error % 3 == 0) {
        misreads += "misread " + std::to_string(error) + " 0.0015";
        for (std::uint64_t k = 0; k < 1 + error % 2; ++k)
          misreads += " " + std::to_string(measurements++) + " 0";
        misreads += "\n";
      }
      if (error % 7 == 0)
        flags += "flag " + std::to_string(num_flags++) + " 2 " + std::to_string(error) + " 0.5\n";
    }
    const auto table = table_of("measurements " + std::to_string(measurements) + "\nflags " +
                                    std::to_string(num_flags) + "\ngaussian 0 1 -1 0.6 0.5\n" + misreads + flags,
                                set.dem_text);
    const auto tested = make_or_throw("pymatching", set.dem_text);
    std::mt19937 random(5);
    std::normal_distribution<float> noise(0, 0.6F);
    for (std::uint64_t shot = 0; shot < 16; ++shot) {
      std::vector<std::uint64_t> events;
      for (std::uint64_t d = 0; d < model.num_detectors; ++d)
        if ((set.detection_row(shot * 7)[d / 8] >> d % 8 & 1) != 0)
          events.push_back(d);
      std::vector<float> values(measurements);
      for (float &value : values)
        value = (random() % 2 == 0 ? 1 : -1) + noise(random);
      std::vector<std::uint8_t> leakage(table->leakage_bytes());
      for (std::uint64_t k = 0; k < num_flags; ++k)
        leakage[k / 4] |= static_cast<std::uint8_t>((random() % 20 == 0 ? 2U : 0U) << 2 * (k % 4));
      const listing made = list_of(*table, bytes_of(values), soft_kind::f32, leakage);
      ASSERT_EQ(made.status, decode_status::ok) << made.fault;
      // One error more gives its weights the same scale.
      const auto alone =
          make_or_throw("pymatching", model_of_shot(model, made.list, 1e-9) + "error(9.999999717180685e-10) D" +
                                          std::to_string(model.num_detectors) + " D" +
                                          std::to_string(model.num_detectors + 1) + "\n");
      const weighed_answer got = weigh(*tested, events, made.list), expected = weigh(*alone, events);
      EXPECT_EQ(got.found, expected.found) << name << " shot " << shot;
      EXPECT_NEAR(got.weight, expected.weight, 1e-9) << name << " shot " << shot;
    }
  }
}

// A repetition code of distance 3 with two rounds and a last one: data errors, and each measurement that two detectors
// share, or one.
TEST(Readout, GivesTheLeastWeightOfAllSetsOfErrors) {
  std::vector<random_error> errors;
  std::string lines = "measurements 4\ngaussian 0 1 -1 0.7 0.5\n";
  for (unsigned round = 0; round < 3; ++round)
    for (unsigned qubit = 0; qubit < 3; ++qubit) {
      const unsigned left = qubit == 0 ? 0 : 1U << (2 * round + qubit - 1),
                     right = qubit == 2 ? 0 : 1U << (2 * round + qubit);
      errors.push_back({left | right, qubit == 0 ? 1U : 0U, 0.05 + 0.01 * qubit + 0.02 * round});
    }
  for (unsigned measurement = 0; measurement < 4; ++measurement) {
    lines += "misread " + std::to_string(errors.size()) + " 0.01 " + std::to_string(measurement) + " 0\n";
    errors.push_back({std::uint64_t{1} << measurement | std::uint64_t{1} << (measurement + 2), 0, 0.06});
  }
  const std::string model = dem_of(errors);
  const auto table = table_of(lines, model);
  for (const char *kind : {"pymatching", "bp-osd"}) {
    if (kind[0] == 'p' && !pymatching_available())
      continue;
    const auto tested = make_or_throw(kind, model);
    std::mt19937 random(9);
    std::normal_distribution<float> noise(0, 0.7F);
    for (int shot = 0; shot < 12; ++shot) {
      std::vector<float> values(4);
      for (float &value : values)
        value = 1 + noise(random);
      std::vector<random_error> of_shot = errors;
      for (std::size_t k = 0; k < 4; ++k)
        of_shot[9 + k].probability = either(0.01, misread(static_cast<double>(values[k]), 1, -1, 0.7, 0.5));
      const listing made = list_of(*table, bytes_of(values), soft_kind::f32);
      for (const auto &[syndrome, of_observables] : try_every_set(of_shot)) {
        double least = std::numeric_limits<double>::infinity();
        for (const auto &[observables, weight] : of_observables)
          least = std::min(least, weight);
        const weighed_answer got = weigh(*tested, indices_of(syndrome), made.list);
        ASSERT_EQ(got.found.status, decode_status::ok);
        if (kind[0] == 'p') { // bp-osd is not exact
          EXPECT_NEAR(of_observables.at(got.found.observables[0]), least, 1e-4) << syndrome;
        }
      }
    }
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

} // namespace
} // namespace cudaq::qec::realtime::test

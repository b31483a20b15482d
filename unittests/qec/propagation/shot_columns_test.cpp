// SPDX-License-Identifier: Apache-2.0
// Shots that replace probabilities, with belief propagation. The oracle is a decoder that is made for one shot alone,
// from a model that has the probabilities of the shot.
#include "unittests/qec/every_error_set.h"
#include "unittests/qec/propagation/bp_osd_test_support.h"
#include "unittests/qec/shot_lists.h"

#include <cmath>

namespace cudaq::qec::realtime::test {
namespace {

class ShotColumns : public testing::TestWithParam<std::string> {};

/// The answer of a shot, its weight and its errors.
struct full_answer {
  answer found;
  double weight;
  std::vector<std::uint64_t> errors;
};
full_answer decode_fully(decoder &with, const std::vector<std::uint64_t> &events, const shot_list &list = {}) {
  std::vector<std::uint64_t> errors(with.num_errors());
  decode_details details{.errors = errors};
  std::vector<std::uint8_t> out(with.observable_bytes(), 0xEE);
  const decode_status status = with.decode(events, out, list, &details);
  errors.resize(details.num_errors);
  return {{status, out}, details.weight, errors};
}

void expect_equal(const full_answer &got, const full_answer &expected, const std::string &what) {
  EXPECT_EQ(got.found, expected.found) << what;
  EXPECT_EQ(got.errors, expected.errors) << what;
  if (std::isnan(expected.weight))
    EXPECT_TRUE(std::isnan(got.weight)) << what;
  else
    EXPECT_NEAR(got.weight, expected.weight, 1e-9) << what;
}

std::vector<std::uint64_t> random_events(std::uint64_t detectors, std::mt19937 &random) {
  std::vector<std::uint64_t> events;
  for (std::uint64_t d = 0; d < detectors; ++d)
    if (random() % 5 == 0)
      events.push_back(d);
  return events;
}

/// Shots of one model, each also by a decoder for it alone, and shots without a list between them.
void expect_as_alone(const std::string &kind, const std::string &dem, std::mt19937 &random) {
  const detector_error_model model = parse_or_throw(dem);
  const auto tested = make_or_throw(kind, dem), untouched = make_or_throw(kind, dem);
  for (int shot = 0; shot < 8; ++shot) {
    const shot_list list = random_list(model, shot % 2 == 0 ? 0.4 : 0.05, 1, random);
    const auto alone = make_or_throw(kind, model_of_shot(model, list, tested->smallest_probability()));
    for (int k = 0; k < 3; ++k) {
      const std::vector<std::uint64_t> events = random_events(model.num_detectors, random);
      const std::string what = "shot " + std::to_string(shot);
      full_answer expected = decode_fully(*alone, events);
      // The text of the model of the shot has no instruction without an effect, so its errors have other numbers.
      std::vector<std::uint64_t> number;
      for (const dem_component &c : model.components)
        if (number.empty() || number.back() != c.mechanism)
          number.push_back(c.mechanism);
      for (std::uint64_t &error : expected.errors)
        error = number[error];
      expect_equal(decode_fully(*tested, events, list), expected, what);
      EXPECT_EQ(decode(*tested, events, list), expected.found) << what << " without details";
      expect_equal(decode_fully(*tested, events), decode_fully(*untouched, events), what + ", the model again");
    }
  }
}

TEST_P(ShotColumns, AnswerAsADecoderThatIsMadeForTheShotAlone) {
  std::mt19937 random(3);
  expect_as_alone(GetParam(), load_committed("surface_z_d3_p0.005").dem_text, random);
}

TEST_P(ShotColumns, AnswerAsADecoderForTheShotAloneOnAnyModel) {
  // Errors of any number of detectors, also of none, equal ones, and above 1/2.
  std::mt19937 random(4);
  for (int k = 0; k < 12; ++k) {
    const std::string once = dem_of(random_model(random, 4, 0.9));
    expect_as_alone(GetParam(), once + "error(0.3) L1\nerror(0)\nerror(0.02) L1\n" + once, random);
  }
}

TEST_P(ShotColumns, GiveTheWeightThatTheErrorsOfTheAnswerHaveInTheShot) {
  std::mt19937 random(5);
  const std::string dem = dem_of(random_model(random, 3, 0.4));
  const detector_error_model model = parse_or_throw(dem);
  const auto tested = make_or_throw(GetParam(), dem);
  for (int shot = 0; shot < 60; ++shot) {
    const shot_list list = random_list(model, 0.5, 1, random);
    const full_answer got = decode_fully(*tested, random_events(model.num_detectors, random), list);
    if (got.found.status != decode_status::ok)
      continue;
    double weight = 0;
    for (const std::uint64_t error : got.errors) {
      double p = model.components[error].probability; // one component each
      for (const error_probability &one : list)
        if (one.error == error)
          p = std::clamp(one.probability, tested->smallest_probability(), 1 - tested->smallest_probability());
      weight += std::log((1 - p) / p);
    }
    EXPECT_NEAR(got.weight, weight, 1e-6) << "shot " << shot;
  }
}

TEST_P(ShotColumns, RefuseAListThatIsWrongAndDecodeTheNextShot) {
  const auto tested = make_or_throw(GetParam(), "error(0.1) D0 L0\nerror(0) D0\nerror(0.2) D0\nerror(1) D1\n");
  const struct {
    shot_list list;
    const char *text;
  } wrong[] = {{{{4, 0.1}}, "not one of the model"},
               {{{0, 0.1}, {0, 0.2}}, "listed twice"},
               {{{2, 2}}, "not from 0 to 1"},
               {{{1, 0.1}}, "probability 0 in the model"},
               {{{3, 0.1}}, "certain in the model"}};
  for (const auto &[list, text] : wrong) {
    EXPECT_EQ(decode(*tested, {0, 1}, list), (answer{decode_status::bad_probability, {0}})) << text;
    EXPECT_NE(std::string(tested->fault()).find(text), std::string::npos) << tested->fault();
    EXPECT_EQ(decode(*tested, {0, 1}), (answer{decode_status::ok, {0}}));
    EXPECT_STREQ(tested->fault(), "");
    EXPECT_EQ(decode(*tested, {0, 1}, shot_list{{0, 0.4}}), (answer{decode_status::ok, {1}}));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShotColumns,
                         testing::Values("relay-bp", "relay-bp:precision=double", "relay-bp:ensemble=2", "bp-osd",
                                         "bp-osd:osd_order=0", "bp-osd:method=product_sum",
                                         "bp-osd:smallest_probability=1e-4"),
                         [](const testing::TestParamInfo<std::string> &tested) {
                           return "kind" + std::to_string(tested.index);
                         });

TEST(ShotColumnsOfARace, AreTakenByEachMember) {
  const auto tested = make_or_throw("race:relay-bp|bp-osd,mode=best", "error(0.1) D0 L0\nerror(0.2) D0\n");
  for (int k = 0; k < 20; ++k) {
    EXPECT_EQ(decode(*tested, {0}), (answer{decode_status::ok, {0}}));
    EXPECT_EQ(decode(*tested, {0}, shot_list{{0, 0.4}}), (answer{decode_status::ok, {1}}));
  }
  EXPECT_EQ(decode(*tested, {0}, shot_list{{7, 0.4}}).status, decode_status::bad_probability);
  EXPECT_NE(std::string(tested->fault()).find("error 7"), std::string::npos) << tested->fault();
  EXPECT_EQ(tested->member_faults(), 0U);
  EXPECT_EQ(decode(*tested, {0}), (answer{decode_status::ok, {0}}));
}

// The errors of a correction, of decoders whose errors flip any number of detectors.

class CorrectionErrors : public testing::TestWithParam<std::string> {
protected:
  /// The events and observables of these errors, added mod 2, and their weight.
  struct effect {
    std::vector<std::uint64_t> events;
    std::vector<std::uint8_t> observables;
    double weight = 0;
  };
  static effect effect_of(const detector_error_model &model, std::span<const std::uint64_t> errors) {
    std::vector<int> detectors(model.num_detectors);
    effect sum{{}, std::vector<std::uint8_t>((model.num_observables + 7) / 8)};
    for (const std::uint64_t error : errors) {
      double p = 0;
      for (const dem_component &part : model.components)
        if (part.mechanism == error) {
          p = part.probability;
          for (const std::uint64_t d : model.detectors_of(part))
            detectors[d] ^= 1;
          flip_bits(model.observables_of(part), sum.observables);
        }
      EXPECT_GT(p, 0) << "error " << error;
      sum.weight += p < 1 ? std::log((1 - p) / p) : 0;
    }
    for (std::uint64_t d = 0; d < detectors.size(); ++d)
      if (detectors[d] != 0)
        sum.events.push_back(d);
    return sum;
  }

  /// Decodes and compares; returns the errors.
  std::vector<std::uint64_t> check(decoder &with, const detector_error_model &model,
                                   const std::vector<std::uint64_t> &events, bool has_merged = false) {
    std::vector<std::uint64_t> room(with.num_errors());
    std::vector<std::uint8_t> out(with.observable_bytes(), 0xEE);
    decode_details details{.errors = room};
    EXPECT_EQ(with.decode(events, out, details), decode_status::ok);
    const auto errors = std::span(room).first(details.num_errors);
    EXPECT_TRUE(std::ranges::is_sorted(errors, std::less_equal{}) && errors.size() <= room.size());
    const effect sum = effect_of(model, errors);
    EXPECT_EQ(sum.events, events);
    EXPECT_EQ(sum.observables, out);
    if (!has_merged) {
      EXPECT_NEAR(details.weight, sum.weight, 1e-6);
    }
    return {errors.begin(), errors.end()};
  }
};

TEST_P(CorrectionErrors, CauseTheEventsAndFlipTheObservables) {
  for (const char *name : {"bicycle_72_r6_p0.003", "color_d5_p0.003", "surface_d3_p0.01"}) {
    SCOPED_TRACE(name);
    const oracle_set set(name);
    const auto model = parse_dem(set.dem_text);
    const auto with = make_or_throw(GetParam(), set.dem_text);
    EXPECT_EQ(with->num_errors(), model->num_errors);
    for (const auto &events : set.shots)
      static_cast<void>(check(*with, *model, events, true));
  }
}

TEST_P(CorrectionErrors, CountUnrolledInstructionsAlsoThoseWithoutAnEffect) {
  const char *text = "error(0) D7\nrepeat 3 {\nerror(0.1)\nerror(0.1) D0 D1 ^ D2 L0\nshift_detectors 3\n}\n";
  const auto with = make_or_throw(GetParam(), text);
  EXPECT_EQ(with->num_errors(), 7U);
  EXPECT_EQ(check(*with, *parse_dem(text), {3, 4, 5}), (std::vector<std::uint64_t>{4}));
}

TEST_P(CorrectionErrors, OfEqualOnesTheLikeliestIsGiven) {
  const char *text = "error(0.1) D0 L0\nerror(0.2) D0 L0\nerror(0.15) D0 L0\n";
  EXPECT_EQ(check(*make_or_throw(GetParam(), text), *parse_dem(text), {0}, true), (std::vector<std::uint64_t>{1}));
}

TEST_P(CorrectionErrors, ThatAreLikelierThanNotAreListedUnlessTheirColumnMeansTheirAbsence) {
  const char *text = "error(0.9) D0 L0\nerror(0.1) D1 L1\nerror(1) D2\nerror(0.8) L2\n";
  const auto with = make_or_throw(GetParam(), text);
  const auto model = parse_dem(text);
  EXPECT_EQ(check(*with, *model, {0, 2}), (std::vector<std::uint64_t>{0, 2, 3}));
  EXPECT_EQ(check(*with, *model, {2}), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(check(*with, *model, {0, 1, 2}), (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

TEST_P(CorrectionErrors, NeedRoomAndADecoderThatGivesThem) {
  const auto with = make_or_throw(GetParam(), "error(0.1) D0 L0\nerror(0.1) D1\n");
  std::uint64_t room = 0;
  std::uint8_t out = 0xEE;
  decode_details details{.errors = {&room, 1}};
  EXPECT_EQ(with->decode(std::vector<std::uint64_t>{0, 1}, {&out, 1}, details), decode_status::buffer_too_small);
  EXPECT_EQ(details.num_errors, 0U);
  EXPECT_EQ(out, 0);
  const auto table = make_or_throw("lookup", "error(0.1) D0 L0\n");
  EXPECT_FALSE(table->gives_errors());
  EXPECT_EQ(table->decode(std::vector<std::uint64_t>{0}, {&out, 1}, details), decode_status::not_supported);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CorrectionErrors, testing::Values("relay-bp", "bp-osd"), kind_name);

} // namespace
} // namespace cudaq::qec::realtime::test

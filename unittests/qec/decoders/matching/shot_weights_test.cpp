// SPDX-License-Identifier: Apache-2.0
// Shots that replace probabilities, with matching. The oracle is a decoder that is made for one shot alone: its model
// has the probabilities of the shot, and one error more, of the smallest probability, between two detectors that never
// fire, so that its weights have the same scale.
#include "lib/qec/decoders/matching/quick_log.h"
#include "unittests/qec/every_error_set.h"
#include "unittests/qec/shot_lists.h"

#include <cmath>
#include <limits>

namespace cudaq::qec::realtime::test {
namespace {

constexpr double kSmallest = 1e-9; // the default

std::string model_at_scale(const detector_error_model &model, const shot_list &list) {
  const std::string first = std::to_string(model.num_detectors), second = std::to_string(model.num_detectors + 1);
  // 1 - (1 - 1e-9) is a little less, by a rounding, so the error of probability 1 - 1e-9 has the largest weight.
  return model_of_shot(model, list, kSmallest) + "error(9.999999717180685e-10) D" + first + " D" + second + "\n";
}

class ShotWeights : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override { CUDAQ_SKIP_WITHOUT_PYMATCHING(); }
  /// Correlated matching knows no probabilities above 1/2.
  [[nodiscard]] double highest() const { return GetParam().find("correlated") != std::string::npos ? 0.5 : 1; }
};

TEST_P(ShotWeights, AnswerAsADecoderThatIsMadeForTheShotAlone) {
  for (const char *name : {"surface_z_d3_p0.005", "surface_z_d5_p0.005"}) {
    const shot_set set = load_committed(name);
    const detector_error_model model = parse_or_throw(set.dem_text);
    const auto tested = make_or_throw(GetParam(), set.dem_text);
    std::mt19937 random(7);
    for (std::uint64_t shot = 0; shot < 24; ++shot) {
      const auto row = set.detection_row(shot * 7);
      std::vector<std::uint64_t> events;
      for (std::uint64_t d = 0; d < model.num_detectors; ++d)
        if ((row[d / 8] >> d % 8 & 1) != 0)
          events.push_back(d);
      const shot_list list = random_list(model, shot % 3 == 0 ? 0.5 : 0.03, highest(), random);
      const auto alone = make_or_throw(GetParam(), model_at_scale(model, list));
      const weighed_answer got = weigh(*tested, events, list), expected = weigh(*alone, events);
      EXPECT_EQ(got.found, expected.found) << name << " shot " << shot;
      EXPECT_NEAR(got.weight, expected.weight, 1e-9) << name << " shot " << shot;
      EXPECT_EQ(decode(*tested, events, list), decode(*alone, events)) << name << " shot " << shot;
    }
  }
}

TEST_P(ShotWeights, LeaveTheModelAsItWas) {
  const shot_set set = load_committed("surface_z_d3_p0.005");
  const detector_error_model model = parse_or_throw(set.dem_text);
  const auto tested = make_or_throw(GetParam(), set.dem_text), untouched = make_or_throw(GetParam(), set.dem_text);
  const auto of_model = make_or_throw(GetParam(), set.dem_text);
  const shot_list none_changed{{0, model.components.front().probability}};
  std::mt19937 random(8);
  for (std::uint64_t shot = 0; shot < 50; ++shot) {
    std::vector<std::uint64_t> events;
    for (std::uint64_t d = 0; d < model.num_detectors; ++d)
      if (random() % 4 == 0)
        events.push_back(d);
    const weighed_answer before = weigh(*of_model, events, none_changed); // it never had another list
    (void)decode(*tested, events, random_list(model, 0.3, highest(), random));
    const weighed_answer after = weigh(*tested, events, none_changed), fixed = weigh(*tested, events);
    EXPECT_EQ(before.found, after.found) << "shot " << shot;
    EXPECT_EQ(before.weight, after.weight) << "shot " << shot;
    EXPECT_EQ(fixed.found, decode(*untouched, events)) << "shot " << shot;
    EXPECT_EQ(fixed.weight, weigh(*untouched, events).weight) << "shot " << shot;
  }
}

TEST_P(ShotWeights, GiveEdgesThatCauseTheEvents) {
  const shot_set set = load_committed("surface_z_d3_p0.005");
  const detector_error_model model = parse_or_throw(set.dem_text);
  const auto tested = make_or_throw(GetParam() + ":edges=1", set.dem_text);
  std::vector<correction_edge> edges(model.num_detectors * 4);
  std::mt19937 random(9);
  for (int shot = 0; shot < 50; ++shot) {
    std::vector<std::uint64_t> events;
    for (std::uint64_t d = 0; d < model.num_detectors; ++d)
      if (random() % 4 == 0)
        events.push_back(d);
    const shot_list list = random_list(model, 0.3, highest(), random);
    decode_details details{.edges = edges};
    std::vector<std::uint8_t> out(tested->observable_bytes());
    ASSERT_EQ(tested->decode(events, out, list, &details), decode_status::ok);
    std::vector<std::uint64_t> odd(model.num_detectors);
    for (std::size_t k = 0; k < details.num_edges; ++k) {
      odd[edges[k].first] ^= 1;
      if (edges[k].second != kBoundary)
        odd[edges[k].second] ^= 1;
    }
    for (const std::uint64_t event : events)
      odd[event] ^= 1;
    EXPECT_EQ(std::ranges::count(odd, 1U), 0) << "shot " << shot;
    EXPECT_NEAR(details.weight, weigh(*tested, events, list).weight, 1e-4) << "shot " << shot;
  }
}

TEST_P(ShotWeights, RefuseAListThatIsWrongAndDecodeTheNextShot) {
  const auto tested = make_or_throw(GetParam(), "error(0.01) D0 L0\nerror(0) D1\nerror(0.2) D0 D1\nerror(0.1) D1\n");
  const struct {
    shot_list list;
    const char *text;
  } wrong[] = {{{{4, 0.1}}, "error 4"},
               {{{UINT64_MAX, 0.1}}, "not one of the model"},
               {{{0, 0.1}, {2, 0.1}, {0, 0.2}}, "listed twice"},
               {{{0, -0.1}}, "not from 0 to 1"},
               {{{0, 1.5}}, "not from 0 to 1"},
               {{{0, std::numeric_limits<double>::quiet_NaN()}}, "not from 0 to 1"},
               {{{1, 0.1}}, "probability 0 in the model"}};
  for (const auto &[list, text] : wrong) {
    EXPECT_EQ(decode(*tested, {0}, list), (answer{decode_status::bad_probability, {0}})) << text;
    EXPECT_NE(std::string(tested->fault()).find(text), std::string::npos) << tested->fault();
    EXPECT_NE(decode_status_text(decode_status::bad_probability, tested->fault()).find(text), std::string::npos);
    EXPECT_EQ(decode(*tested, {0}), (answer{decode_status::ok, {0}}));
    EXPECT_EQ(decode(*tested, {0}, shot_list{{0, 0.4}}), (answer{decode_status::ok, {1}}));
    EXPECT_STREQ(tested->fault(), "");
  }
}

TEST_P(ShotWeights, AreUsableAfterAShotWithoutASolution) {
  const auto tested = make_or_throw(GetParam(), "error(0.1) D0 D1 L0\nerror(0.05) D0 D2\nerror(0.05) D1 D2\n");
  const shot_list list{{0, 0.001}};
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(decode(*tested, {0}, list).status, decode_status::no_solution);
    EXPECT_EQ(decode(*tested, {0, 1}, list), (answer{decode_status::ok, {0}}));
    EXPECT_EQ(decode(*tested, {0, 1}), (answer{decode_status::ok, {1}}));
  }
}

TEST_P(ShotWeights, CountSmallerProbabilitiesAsTheDeclaredOne) {
  const char *const model = "error(0.001) D0 L0\nerror(0.001) D0 D1\nerror(0.01) D1\n";
  for (const double smallest : {1e-12, 1e-6}) {
    const auto tested =
        make_or_throw(GetParam() + ":smallest_probability=" + std::to_string(smallest * 1e12) + "e-12", model);
    EXPECT_DOUBLE_EQ(tested->smallest_probability(), smallest);
    const double expected = std::log((1 - smallest) / smallest);
    EXPECT_NEAR(weigh(*tested, {0}, {{0, 0.0}, {1, 0.0}}).weight, expected, 1e-5 * expected);
    EXPECT_EQ(decode(*tested, {0}, shot_list{{0, 0.0}}), (answer{decode_status::ok, {0}}));
  }
  EXPECT_FALSE(make_decoder(GetParam() + ":smallest_probability=0.5", model));
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShotWeights, testing::Values("pymatching", "pymatching-correlated"), kind_name);

TEST(ShotWeightsOfMatching, AreThoseOfTheLeastOfAllSetsOfErrors) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  // Also probabilities above 1/2, errors with equal detectors and different observables, and without detectors.
  std::mt19937 random(11);
  for (int k = 0; k < 40; ++k) {
    std::vector<random_error> errors = random_model(random, 2, 0.95);
    if (k % 2 == 0)
      errors[random() % errors.size()].detectors = 0;
    const auto tested = make_or_throw("pymatching", dem_of(errors));
    for (int shot = 0; shot < 4; ++shot) {
      std::vector<random_error> of_shot = errors;
      shot_list list;
      for (std::size_t e = 0; e < errors.size(); ++e)
        if (random() % 3 == 0 && errors[e].detectors + errors[e].observables != 0) {
          of_shot[e].probability = std::uniform_real_distribution(0.01, 0.97)(random);
          list.push_back({e, of_shot[e].probability});
        }
      expect_least_of(*tested, of_shot, list);
    }
    expect_least_of(*tested, errors);
  }
}

TEST(ShotWeightsOfMatching, AreTakenWithMoreObservablesThanAMaskHas) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  for (const char *last : {"L70", "L300"}) { // with and without wide masks
    const std::string name(last), model = "error(0.1) D0 " + name + "\nerror(0.1) D0 D1 L3\nerror(0.01) D1\n";
    const auto tested = make_or_throw("pymatching", model);
    const std::uint64_t number = tested->num_observables();
    EXPECT_EQ(decode(*tested, {0}).observables, bits(number, {number - 1}));
    EXPECT_EQ(decode(*tested, {0}, shot_list{{0, 1e-5}}).observables, bits(number, {3}));
    EXPECT_EQ(decode(*tested, {0}).observables, bits(number, {number - 1}));
  }
}

TEST(ShotWeightsOfMatching, RefuseAProbabilityAboveOneHalfWhereTheyAreCorrelated) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto tested = make_or_throw("pymatching-correlated", "error(0.1) D0 L0 ^ D1\nerror(0.1) D1\n");
  EXPECT_EQ(decode(*tested, {0}, shot_list{{0, 0.5}}).status, decode_status::ok);
  EXPECT_EQ(decode(*tested, {0}, shot_list{{0, 0.51}}).status, decode_status::bad_probability);
  EXPECT_NE(std::string(tested->fault()).find("above 1/2"), std::string::npos) << tested->fault();
}

// By the model errors 1 and 2 are likelier than error 0, whose components have their detectors. With 1/2 for error 0
// the edges would flip L0, but no set of errors that causes D0 alone does.
TEST(ShotWeightsOfMatching, RefuseAnErrorBesideComponentsThatFlipOtherObservables) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const char *const model = "error(0.001) D0 L0 ^ D1 L0\nerror(0.01) D0\nerror(0.01) D1\nerror(0.01) D2 L0\n";
  const auto tested = make_or_throw("pymatching", model), whole = make_or_throw("bp-osd", model);
  for (const std::uint64_t error : {0U, 1U, 2U}) {
    EXPECT_EQ(decode(*tested, {0}, shot_list{{error, 0.5}}), (answer{decode_status::bad_probability, {0}})) << error;
    EXPECT_NE(std::string(tested->fault()).find("a component of a split error"), std::string::npos) << tested->fault();
    EXPECT_EQ(decode(*whole, {0}, shot_list{{error, 0.5}}), (answer{decode_status::ok, {0}})) << error;
  }
  EXPECT_EQ(decode(*tested, {0, 2}, shot_list{{3, 0.5}}), (answer{decode_status::ok, {1}}));
}

TEST(ShotWeightsOfMatching, RefuseAnErrorBesideOneThatHasAComponentTwice) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const char *const model = "error(0.1) D0 L0 ^ D0 L0 ^ D1\nerror(0.1) D0 L0\nerror(0.1) D1\nerror(0.1) D2\n";
  const auto tested = make_or_throw("pymatching-correlated", model);
  for (const std::uint64_t error : {0U, 1U, 2U}) {
    EXPECT_EQ(decode(*tested, {0}, shot_list{{error, 0.2}}).status, decode_status::bad_probability) << error;
    EXPECT_NE(std::string(tested->fault()).find("a component twice"), std::string::npos) << tested->fault();
  }
  EXPECT_EQ(decode(*tested, {0}, shot_list{{3, 0.2}}).status, decode_status::ok);
  EXPECT_EQ(decode(*make_or_throw("pymatching", model), {0}, shot_list{{0, 0.2}}).status, decode_status::ok);
}

TEST(QuickLog, IsTheLogarithmToTenDigits) {
  const quick_log log;
  std::mt19937_64 random(3);
  for (int k = 0; k < 100000; ++k) {
    const double of = std::exp(std::uniform_real_distribution(-700.0, 700.0)(random));
    ASSERT_NEAR(log(of), std::log(of), 1e-10) << of;
  }
  for (const double of : {1.0, std::nextafter(1.0, 0.0), std::nextafter(1.0, 2.0), 2.0, 2 + 1.0 / 64})
    EXPECT_NEAR(log(of), std::log(of), 1e-10) << of;
}

// 50000 edges: the product decides the integers of most of them, and the sum those next to the middle of two integers,
// of probabilities near to 0 and 1, and of edges with many errors. The weight of a shot is the sum of these integers.
TEST(ShotWeightsOfMatching, AreBitByBitThoseOfASumOfAllErrorsOfAnEdge) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  constexpr std::uint64_t kEdges = 1000;
  std::mt19937 random(12);
  const double largest = std::max(log_odds(kSmallest), -log_odds(1 - kSmallest));
  const double unit = 16777215 / largest; // half of PyMatching's integers, all of which are even
  const auto draw = [&] {
    const double p = std::pow(10, std::uniform_real_distribution(-9.0, -0.31)(random));
    const double middle = (std::floor(log_odds(p) * unit) + 0.5) / unit; // of two integers
    switch (random() % 8) {
    case 0:
      return 1 - p;
    case 1:
      return 0.5;
    case 2:
      return 1 / (1 + std::exp(middle));
    default:
      return p;
    }
  };
  std::vector<std::uint64_t> events;
  std::string text;
  for (std::uint64_t edge = 0; edge < kEdges; ++edge) {
    events.push_back(edge);
    for (std::uint32_t k = edge % 100 == 0 ? 70 : 1 + random() % 4; k != 0; --k)
      text += "error(" + std::to_string(0.9 * draw() + 1e-6) + ") D" + std::to_string(edge) + " L0\n";
  }
  const detector_error_model model = parse_or_throw(text);
  const auto tested = make_or_throw("pymatching", text);
  for (int shot = 0; shot < 50; ++shot) {
    shot_list list;
    for (std::uint64_t error = 0; error < model.num_errors; ++error)
      if (random() % 2 == 0)
        list.push_back({error, draw()});
    const auto alone = make_or_throw("pymatching", model_at_scale(model, list));
    const weighed_answer got = weigh(*tested, events, list), expected = weigh(*alone, events);
    EXPECT_EQ(got.found, expected.found) << "shot " << shot;
    EXPECT_EQ(got.weight, expected.weight) << "shot " << shot;
  }
}

TEST(ShotWeightsOfMatching, AreGivenAsAList) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  std::string model;
  for (int k = 0; k < 17; ++k)
    model += "error(0.1) D0 D1 L0\n";
  model += "error(0.2) D2 D3\nerror(0.001) D2 D3 L0\n";
  const auto with = make_or_throw("pymatching", model);
  const std::vector<std::uint64_t> events{2, 3};
  std::vector<std::uint8_t> observables(1);
  const std::vector<error_probability> list{{17, 0.5}, {18, 0.25}};
  const decode_status status = with->decode(events, observables, list);
  EXPECT_EQ(status, decode_status::ok);
  EXPECT_EQ(observables[0], 0);
  EXPECT_EQ(with->decode(events, observables, shot_list{{17, 0.01}, {18, 0.25}}), decode_status::ok);
  EXPECT_EQ(observables[0], 1);
}

TEST(ShotProbabilities, AreRefusedByADecoderThatHasNoUseForThem) {
  for (const char *kind : {"lookup", "pymatching:predecoder=local"}) {
    if (*kind == 'p' && !pymatching_available())
      continue;
    const auto tested = make_or_throw(kind, "error(0.1) D0 L0\nerror(0.2) D0\n");
    ASSERT_NE(tested->refuses_probabilities(), nullptr) << kind;
    EXPECT_EQ(decode(*tested, {0}, shot_list{{0, 0.4}}), (answer{decode_status::not_supported, {0}})) << kind;
    EXPECT_EQ(decode(*tested, {0}), (answer{decode_status::ok, {0}})) << kind;
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Gaps: how much heavier the lightest correction with another observable is. docs/decoders/confidence.md
#include "unittests/qec/every_error_set.h"

#include <array>
#include <limits>

namespace cudaq::qec::realtime::test {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-3; ///< of integers in the place of weights, of both corrections

struct answer_with_gaps {
  answer found;
  std::vector<double> gaps;
  double weight;
};

answer_with_gaps decode_with_gaps(decoder &with, const std::vector<std::uint64_t> &events,
                                  shot_probabilities list = {}) {
  answer_with_gaps got{{decode_status::ok, std::vector<std::uint8_t>(with.observable_bytes(), 0xEE)},
                       std::vector<double>(static_cast<std::size_t>(with.num_observables()), -1),
                       0};
  decode_details details{.gaps = got.gaps};
  got.found.status = with.decode(events, got.found.observables, list, &details);
  got.weight = details.weight;
  return got;
}

/// Least weights with the observable as in `flipped`, and with its other value.
std::pair<double, double> both_weights(const std::map<std::uint64_t, double> &least, std::uint64_t flipped,
                                       std::size_t observable) {
  std::pair<double, double> both{kInfinite, kInfinite};
  for (const auto &[observables, weight] : least) {
    double &of = ((observables ^ flipped) >> observable & 1) == 0 ? both.first : both.second;
    of = std::min(of, weight);
  }
  return both;
}

/// For every syndrome: answers and weights are those of `plain`, and the gaps those of all sets of errors.
void expect_exact_gaps(decoder &with, decoder &plain, const std::vector<random_error> &errors,
                       shot_probabilities list = {}) {
  const weights least = try_every_set(errors);
  for (std::uint64_t syndrome = 0; syndrome < std::uint64_t{1} << with.num_detectors(); ++syndrome) {
    const auto got = decode_with_gaps(with, indices_of(syndrome), list);
    ASSERT_EQ(got.found, decode(plain, indices_of(syndrome), list)) << dem_of(errors) << "syndrome " << syndrome;
    if (!std::isnan(got.weight)) { // a part that flips no observable is not decoded
      std::vector<std::uint8_t> out(plain.observable_bytes());
      decode_details details;
      ASSERT_EQ(plain.decode(indices_of(syndrome), out, list, &details), decode_status::ok);
      ASSERT_NEAR(got.weight, details.weight, kRounding) << dem_of(errors) << "syndrome " << syndrome;
    }
    for (std::size_t k = 0; k < got.gaps.size(); ++k) {
      if (got.found.status != decode_status::ok) {
        ASSERT_TRUE(std::isnan(got.gaps[k]));
        continue;
      }
      const auto [same, other] = both_weights(least.at(syndrome), got.found.observables[0], k);
      ASSERT_GE(got.gaps[k], 0);
      ASSERT_EQ(got.gaps[k] == kInfinite, other == kInfinite) << dem_of(errors) << "syndrome " << syndrome << " L" << k;
      if (other != kInfinite) {
        ASSERT_NEAR(got.gaps[k], other - same, kRounding) << dem_of(errors) << "syndrome " << syndrome << " L" << k;
      }
    }
  }
}

/// Edges between detectors flip an observable if their ends differ in a random bit of it, so it can be a detector;
/// errors with one detector or none flip any. Two parts, so that the errors of one may flip nothing.
std::vector<random_error> random_forcible_model(std::mt19937 &random, double max_probability) {
  constexpr std::uint64_t kDetectors = 6;
  std::array<std::uint64_t, kDetectors> side{};
  for (std::uint64_t &of : side)
    of = random() % 4;
  const bool quiet = random() % 2 == 0; // the second part flips nothing
  std::map<std::pair<std::uint64_t, std::uint64_t>, double> errors;
  errors[{std::uint64_t{1} << (kDetectors - 1), 2}] = 0.125; // all detectors are there
  while (errors.size() < 12) {
    const std::uint64_t part = random() % 2 * 3, a = part + random() % 3, b = part + random() % 3;
    const bool is_quiet = quiet && part != 0;
    std::uint64_t detectors = std::uint64_t{1} << a, observables = is_quiet ? 0 : random() % 4;
    if (a != b && random() % 3 != 0) {
      detectors |= std::uint64_t{1} << b;
      observables = is_quiet ? 0 : side[a] ^ side[b];
    } else if (random() % 8 == 0) {
      detectors = 0;
    }
    errors[{detectors, observables}] = std::uniform_real_distribution(0.01, max_probability)(random);
  }
  std::vector<random_error> result;
  for (const auto &[key, p] : errors)
    result.push_back({key.first, key.second, std::round(p * 1e6) / 1e6}); // as dem_of prints it
  std::shuffle(result.begin(), result.end(), random);
  return result;
}

TEST(Confidence, GapsOfMatchingAreThoseOfAllSetsOfErrors) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  std::mt19937 random(44);
  for (const double highest : {0.4, 0.95}) // above 1/2 weights are negative
    for (int model = 0; model < 40 && !HasFailure(); ++model) {
      const auto errors = random_forcible_model(random, highest);
      const std::string dem = dem_of(errors);
      expect_exact_gaps(*make_or_throw("pymatching:confidence=1", dem), *make_or_throw("pymatching", dem), errors);
    }
}

// Equal weights of both values: the answer is the one that matching takes.
TEST(Confidence, AnswersOfTiesAreThoseOfADecodeWithoutGaps) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  std::mt19937 random(47);
  for (int model = 0; model < 40 && !HasFailure(); ++model) {
    auto errors = random_forcible_model(random, 0.4);
    for (random_error &one : errors)
      one.probability = 0.125;
    const std::string dem = dem_of(errors);
    expect_exact_gaps(*make_or_throw("pymatching:confidence=1", dem), *make_or_throw("pymatching", dem), errors);
  }
}

TEST(Confidence, GapsOfAShotWithProbabilitiesAreThoseOfItsErrors) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  std::mt19937 random(45);
  for (int model = 0; model < 20 && !HasFailure(); ++model) {
    auto errors = random_forcible_model(random, 0.4);
    const std::string dem = dem_of(errors);
    const auto with = make_or_throw("pymatching:confidence=1", dem);
    std::vector<error_probability> list;
    for (int k = 0; k < 3; ++k) {
      const std::size_t at = 4 * static_cast<std::size_t>(k) + random() % 4;
      errors[at].probability = k == 0 ? 0.5 : std::uniform_real_distribution(0.01, 0.9)(random);
      list.push_back({at, errors[at].probability});
    }
    const auto plain = make_or_throw("pymatching", dem);
    expect_exact_gaps(*with, *plain, errors, list);
    // The next shot has the probabilities of the model again.
    const auto before = make_or_throw("pymatching:confidence=1", dem);
    ASSERT_EQ(decode_with_gaps(*with, {1}).gaps, decode_with_gaps(*before, {1}).gaps);
  }
}

TEST(Confidence, GapOfEverySyndromeOfDistanceThreeIsTheDifferenceOfLeastWeights) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const shot_set set = load_committed(shot_set_name(3, "0.005"));
  const auto with = make_or_throw("pymatching:confidence=1", set.dem_text);
  const relaxed_weights exact(*parse_dem(set.dem_text));
  ASSERT_EQ(exact.detectors.size(), 16U);
  for (std::uint64_t row = 0; row < 1U << 16; row += 5) {
    std::vector<std::uint64_t> events;
    for (const std::uint64_t bit : indices_of(row))
      events.push_back(exact.detectors[bit]);
    const auto [without, flipped] = exact.of(row);
    const auto got = decode_with_gaps(*with, events);
    ASSERT_NEAR(got.gaps[0], std::abs(without - flipped), kRounding) << "row " << row;
  }
}

// Shots with a list are decoded by a matcher, others by distances of events. Here the list says what the model says.
TEST(Confidence, IsTheSameFromDistancesAndFromTheMatcher) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const struct {
    unsigned distance;
    std::uint64_t shots;
    std::size_t more_than; ///< events has a shot; half of them matter for the observable
  } kSets[] = {{5, 600, 12}, {13, 20, 150}};
  for (const auto &[distance, shots, more_than] : kSets) {
    const shot_set set = load_committed(shot_set_name(distance, "0.005"));
    const auto with = make_or_throw("pymatching:confidence=1", set.dem_text);
    const std::vector<error_probability> list{{0, (*parse_dem(set.dem_text)).components[0].probability}};
    std::vector<std::uint64_t> events(set.num_detectors);
    std::size_t max_events = 0;
    for (std::uint64_t shot = 0; shot < std::min<std::uint64_t>(set.shots, shots); ++shot) {
      const std::size_t count = unpack_events(set.detection_row(shot), set.num_detectors, events).count;
      const std::vector<std::uint64_t> fired(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(count));
      const auto near = decode_with_gaps(*with, fired), of_matcher = decode_with_gaps(*with, fired, list);
      ASSERT_EQ(near.found.status, decode_status::ok);
      ASSERT_NEAR(near.gaps[0], of_matcher.gaps[0], kRounding) << "d " << distance << " shot " << shot;
      max_events = std::max(max_events, count);
    }
    EXPECT_GT(max_events, more_than);
  }
}

// A part of this model flips no observable: the gap comes from the other one, the edges and the weight from both.
TEST(Confidence, EdgesAndGapsComeTogether) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const shot_set set = load_committed(shot_set_name(5, "0.005"));
  const auto with = make_or_throw("pymatching:confidence=1,edges=1", set.dem_text);
  const auto plain = make_or_throw("pymatching:edges=1", set.dem_text);
  std::vector<correction_edge> edges(set.num_detectors), expected(set.num_detectors);
  std::vector<std::uint8_t> out(1), plain_out(1);
  for (std::uint64_t shot = 0; shot < 200; ++shot) {
    double gap = -1;
    decode_details details{.edges = edges, .gaps = {&gap, 1}}, plain_details{.edges = expected};
    ASSERT_EQ(with->decode_bits(set.detection_row(shot), out, details), decode_status::ok);
    ASSERT_EQ(plain->decode_bits(set.detection_row(shot), plain_out, plain_details), decode_status::ok);
    EXPECT_EQ(out, plain_out);
    EXPECT_EQ(details.num_edges, plain_details.num_edges);
    EXPECT_EQ(details.weight, plain_details.weight);
    double alone = -1;
    decode_details of_gap{.gaps = {&alone, 1}};
    ASSERT_EQ(with->decode_bits(set.detection_row(shot), out, of_gap), decode_status::ok);
    EXPECT_NEAR(gap, alone, kRounding);
    EXPECT_TRUE(std::isnan(of_gap.weight));
  }
}

TEST(Confidence, MatchingRefusesAnObservableThatErrorsLeadAround) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const std::string ring = "error(0.1) D0 D1\nerror(0.1) D1 D2\nerror(0.1) D0 D2 L0\n";
  const decoder_result made = make_decoder("pymatching:confidence=1", ring);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error.find("line 3: with the component D0 D2 errors lead from a detector back to it and flip L0"),
            std::string::npos)
      << made.error;
  EXPECT_NE(made.error.find("bp-osd gives an approximate gap"), std::string::npos) << made.error;
  // Around this ring L0 is flipped twice: the events decide it.
  const auto twice =
      make_or_throw("pymatching:confidence=1", "error(0.1) D0 D1 L0\nerror(0.1) D1 D2\nerror(0.1) D0 D2 L0\n");
  EXPECT_EQ(decode_with_gaps(*twice, {0, 1}).gaps[0], kInfinite);
}

TEST(Confidence, OfAnObservableThatTheEventsDecideIsInfinite) {
  // D0 D1 L0 is the only way to D0: with any events L0 is flipped or not. L1 is flipped by no error.
  const char *dem = "error(0.1) D0 D1 L0\nerror(0.2) D1\nlogical_observable L1\n";
  for (const std::string kind : {"pymatching", "bp-osd", "relay-bp"}) {
    if (kind == "pymatching" && !pymatching_available())
      continue;
    const auto with = make_or_throw(kind + ":confidence=1", dem);
    const auto got = decode_with_gaps(*with, {0, 1});
    ASSERT_EQ(got.found, (answer{decode_status::ok, bits(2, {0})})) << kind;
    EXPECT_EQ(got.gaps[1], kInfinite) << kind;
    if (kind != "relay-bp") { // which does not know when there is no solution
      EXPECT_EQ(got.gaps[0], kInfinite) << kind;
    }
  }
}

// One error, or another one: the difference of their weights is the gap of each decoder.
TEST(Confidence, OfTwoErrorsIsTheDifferenceOfTheirWeights) {
  const double gap = std::log(0.99 / 0.01) - std::log(0.9 / 0.1);
  for (const std::string kind : {"pymatching", "bp-osd", "relay-bp"}) {
    if (kind == "pymatching" && !pymatching_available())
      continue;
    const auto with = make_or_throw(kind + ":confidence=1", "error(0.1) D0\nerror(0.01) D0 L0\nerror(0.2) D1\n");
    const auto got = decode_with_gaps(*with, {0});
    ASSERT_EQ(got.found, (answer{decode_status::ok, bits(1, {})})) << kind;
    EXPECT_NEAR(got.gaps[0], gap, kRounding) << kind;
    // Another probability in this shot turns the answer.
    const std::vector<error_probability> list{{1, 0.4}};
    const auto turned = decode_with_gaps(*with, {0}, list);
    ASSERT_EQ(turned.found, (answer{decode_status::ok, bits(1, {0})})) << kind;
    EXPECT_NEAR(turned.gaps[0], std::log(0.9 / 0.1) - std::log(0.6 / 0.4), kRounding) << kind;
    EXPECT_NEAR(decode_with_gaps(*with, {0}).gaps[0], gap, kRounding) << kind;
  }
}

// The other decode may find no least weight, so the gap is at least the exact one minus that of the answer.
TEST(Confidence, OfBpOsdIsNotBelowTheExactGapOfALeastAnswer) {
  std::mt19937 random(46);
  int exact = 0, all = 0;
  for (int model = 0; model < 15 && !HasFailure(); ++model) {
    const auto errors = random_model(random, 4, 0.3);
    const std::string dem = dem_of(errors);
    const auto with = make_or_throw("bp-osd:confidence=1", dem), plain = make_or_throw("bp-osd", dem);
    const weights least = try_every_set(errors);
    for (const auto &[syndrome, of] : least) {
      const auto got = decode_with_gaps(*with, indices_of(syndrome));
      ASSERT_EQ(got.found, decode(*plain, indices_of(syndrome)));
      for (std::size_t k = 0; k < got.gaps.size(); ++k) {
        const auto [same, other] = both_weights(of, got.found.observables[0], k);
        ASSERT_GE(got.gaps[k], 0);
        EXPECT_EQ(got.gaps[k] == kInfinite, other == kInfinite) << dem << "syndrome " << syndrome << " L" << k;
        if (other == kInfinite)
          continue;
        EXPECT_GE(got.gaps[k], other - got.weight - kRounding) << dem << "syndrome " << syndrome << " L" << k;
        ++all;
        exact += std::abs(got.gaps[k] - (other - same)) < kRounding;
      }
    }
  }
  EXPECT_GT(exact, all * 9 / 10) << "of " << all;
}

TEST(Confidence, AreRefusedWithAReasonByDecodersWithoutThem) {
  const char *dem = "error(0.1) D0 L0\n";
  for (const std::string &kind : all_decoder_kinds()) { // without the setting
    const auto with = make_or_throw(kind, dem);
    ASSERT_NE(with->refuses_gaps(), nullptr) << kind;
    EXPECT_NE(std::string_view(with->refuses_gaps()).find("confidence=1"), std::string_view::npos) << kind;
    const auto got = decode_with_gaps(*with, {0});
    EXPECT_EQ(got.found, (answer{decode_status::not_supported, bits(1, {})})) << kind;
    EXPECT_TRUE(std::isnan(got.gaps[0])) << kind;
    EXPECT_EQ(decode(*with, {0}).status, decode_status::ok) << kind;
  }
  for (const std::string name : {"lookup:confidence=1", "relay-bp:confidence=2", "race:relay-bp|bp-osd,confidence=1"})
    EXPECT_NE(make_decoder(name, dem).error.find("confidence"), std::string::npos) << name;
  if (pymatching_available()) {
    EXPECT_NE(make_decoder("pymatching-correlated:confidence=1", dem).error.find("confidence"), std::string::npos);
  }
  for (const std::string name :
       {"race:relay-bp(confidence=1)|bp-osd(confidence=1)", "bp-osd:confidence=1,predecoder=passthrough"})
    EXPECT_NE(make_or_throw(name, dem)->refuses_gaps(), nullptr) << name;
}

TEST(Confidence, OfMoreObservablesThanDecodersAreMadeForIsRefused) {
  std::string dem;
  for (int k = 0; k < 65; ++k)
    dem += "error(0.1) D0 L" + std::to_string(k) + "\n";
  EXPECT_NE(make_decoder("bp-osd:confidence=1", dem).error.find("at most 64"), std::string::npos);
}

TEST(Confidence, NeedsRoomForEachGap) {
  const auto with = make_or_throw("bp-osd:confidence=1", "error(0.1) D0 L0\nerror(0.1) D0 L1\n");
  std::vector<std::uint8_t> out{0xEE};
  double gap = -1;
  decode_details details{.gaps = {&gap, 1}};
  const std::vector<std::uint64_t> events{0};
  EXPECT_EQ(with->decode(events, out, details), decode_status::buffer_too_small);
  EXPECT_TRUE(std::isnan(gap));
  const std::vector<std::uint8_t> rows{1, 0};
  std::vector<std::uint8_t> answers(2);
  std::vector<double> gaps(3, -1);
  EXPECT_EQ(with->decode_batch(2, rows, answers, {}, gaps), decode_status::buffer_too_small);
  EXPECT_EQ(gaps, std::vector<double>(3, -1)) << "nothing is written";
}

TEST(Confidence, ABatchHasTheGapsOfItsShots) {
  const auto with = make_or_throw("bp-osd:confidence=1", "error(0.1) D0 L0\nerror(0.2) D0 L1\nerror(0.3) D1\n");
  const std::vector<std::uint8_t> rows{0, 1, 8, 3}; // the third has a bit that is no detector
  std::vector<std::uint8_t> answers(4);
  std::vector<decode_status> statuses(4);
  std::vector<double> gaps(9, -1);
  EXPECT_EQ(with->decode_batch(4, rows, answers, statuses, gaps), decode_status::bad_detector_index);
  for (std::size_t shot = 0; shot < 4; ++shot) {
    std::vector<std::uint64_t> events = indices_of(rows[shot]);
    const auto alone = decode_with_gaps(*with, events);
    EXPECT_EQ(statuses[shot], alone.found.status);
    for (std::size_t k = 0; k < 2; ++k)
      EXPECT_TRUE(gaps[2 * shot + k] == alone.gaps[k] || (std::isnan(alone.gaps[k]) && std::isnan(gaps[2 * shot + k])))
          << "shot " << shot << " L" << k;
  }
  EXPECT_EQ(gaps[8], -1);
}

TEST(Confidence, OfADecodeThatWasEndedIsNotKnown) {
  const shot_set set = load_committed(shot_set_name(5, "0.005"));
  const auto with = make_or_throw("bp-osd:confidence=1", set.dem_text);
  std::vector<std::uint8_t> out(1);
  std::uint64_t shot = 0;
  while (set.detection_row(shot)[0] == 0)
    ++shot;
  double gap = -1;
  std::uint32_t word = 1;
  decode_details cancelled{.control = {.cancel = &word}, .gaps = {&gap, 1}};
  EXPECT_EQ(with->decode_bits(set.detection_row(shot), out, cancelled), decode_status::cancelled);
  EXPECT_TRUE(std::isnan(gap));
  gap = -1;
  decode_details late{.control = {.deadline_ns = 1}, .gaps = {&gap, 1}};
  EXPECT_EQ(with->decode_bits(set.detection_row(shot), out, late), decode_status::deadline);
  EXPECT_TRUE(std::isnan(gap));
  gap = -1;
  decode_details none{.gaps = {&gap, 1}};
  ASSERT_EQ(with->decode_bits(set.detection_row(shot), out, none), decode_status::ok);
  EXPECT_GE(gap, 0);
}

// Without events no iteration is needed; the deadline ends the search for the other value only.
TEST(Confidence, ADeadlineInTheSearchOfTheOtherValueLeavesTheAnswer) {
  const shot_set set = load_committed(shot_set_name(5, "0.005"));
  const auto with = make_or_throw("bp-osd:confidence=1", set.dem_text);
  std::vector<std::uint8_t> out(1, 0xEE);
  double gap = -1;
  decode_details late{.control = {.deadline_ns = 1}, .gaps = {&gap, 1}};
  const std::vector<std::uint64_t> events;
  EXPECT_EQ(with->decode(events, out, late), decode_status::ok);
  EXPECT_EQ(out[0], 0);
  EXPECT_TRUE(std::isnan(gap)) << gap;
  EXPECT_TRUE(late.has_solution);
}

} // namespace
} // namespace cudaq::qec::realtime::test

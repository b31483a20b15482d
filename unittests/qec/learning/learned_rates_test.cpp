// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/learning/learning_test_support.h"

#include <cmath>

namespace cudaq::qec::realtime::test {
namespace {

/// How the learned rates lie beside the true ones.
struct agreement {
  double covered = 0, rms_sigmas = 0, median_bias = 0;
};

agreement compare(const learned_rates &rates, const detector_error_model &truth) {
  std::vector<double> ratios;
  agreement found;
  double squares = 0;
  std::size_t of_truth = 0;
  for (const learned_rate &one : rates.errors) {
    while (truth.components[of_truth].mechanism != one.mechanism)
      ++of_truth;
    const double p = truth.components[of_truth].probability;
    found.covered += one.low <= p && p <= one.high ? 1 : 0;
    squares += (one.rate - p) * (one.rate - p) / (one.sigma * one.sigma);
    ratios.push_back(one.rate / p);
  }
  const auto count = static_cast<double>(ratios.size());
  std::ranges::sort(ratios);
  found.covered /= count;
  found.rms_sigmas = std::sqrt(squares / count);
  found.median_bias = ratios[ratios.size() / 2] - 1;
  return found;
}

TEST(LearnedRates, OfTwoDetectorsAreTheKnownClosedForm) {
  const detector_error_model model = model_of("error(0.1) D0 D1\nerror(0.1) D0\nerror(0.1) D1\n");
  event_counts counts(sets_of(model));
  const std::size_t times[] = {90000, 5000, 3000, 8000}; // of the shots 00, 01, 10, 11
  for (std::uint8_t shot = 0; shot < 4; ++shot)
    for (std::size_t k = 0; k < times[shot]; ++k)
      ASSERT_EQ(counts.add({&shot, 1}), decode_status::ok);
  counts.flush();
  const double n = 106000, x0 = 13000 / n, x1 = 11000 / n, x01 = 8000 / n;
  const double pair = 0.5 - std::sqrt(0.25 - (x01 - x0 * x1) / (1 - 2 * x0 - 2 * x1 + 4 * x01));
  const auto rates = learn_or_throw(model, counts, {.prior_sigma = 100});
  ASSERT_EQ(rates.errors.size(), 3u);
  EXPECT_NEAR(rates.errors[0].rate, pair, 2e-5);
  EXPECT_NEAR(rates.errors[1].rate, (x0 - pair) / (1 - 2 * pair), 2e-5); // what remains for the boundary
  EXPECT_NEAR(rates.errors[2].rate, (x1 - pair) / (1 - 2 * pair), 2e-5);
}

TEST(LearnedRates, HoldTheTruthInTheirIntervalsFromRatesThatAreWrongByAFactorOfTwo) {
  const detector_error_model truth = surface_code();
  const learned_rates rates = learn_or_throw(with_factors(truth, half_or_double), counts_of(truth, 400000, 7));
  const agreement found = compare(rates, truth);
  EXPECT_GT(found.covered, 0.90);
  EXPECT_LT(found.rms_sigmas, 1.2);
  EXPECT_GT(found.rms_sigmas, 0.8); // and the intervals are not too wide
  EXPECT_LT(std::abs(found.median_bias), 0.02);
  EXPECT_TRUE(rates.refusals.empty()) << rates.refusals.front();
}

TEST(LearnedRates, KeepTheModelsOwnWhereTheDataSayLittle) {
  const detector_error_model model = surface_code();
  const learned_rates rates = learn_or_throw(model, counts_of(model, 50, 1), {.prior_sigma = 0.1});
  for (const learned_rate &one : rates.errors) {
    EXPECT_NEAR(one.rate, one.model, 0.3 * one.model);
    EXPECT_GT(one.sigma, 0);
  }
  EXPECT_LT(std::ranges::count(rates.errors, true, &learned_rate::resolved), 5);
}

TEST(LearnedRates, AreBelowOneHalfAndAboveZeroForEachData) {
  const detector_error_model model = surface_code();
  event_counts counts(sets_of(model));
  std::mt19937_64 random(1);
  for (int k = 0; k < 3000; ++k) { // noise, which no rates explain
    shot_bytes shot(3);
    for (std::uint8_t &byte : shot)
      byte = static_cast<std::uint8_t>(random());
    ASSERT_EQ(counts.add(shot), decode_status::ok);
  }
  counts.flush();
  const learned_rates rates = learn_or_throw(model, counts);
  for (const learned_rate &one : rates.errors) {
    EXPECT_GT(one.rate, 0);
    EXPECT_LT(one.rate, 0.5);
    EXPECT_LE(one.low, one.high);
  }
  EXPECT_FALSE(rates.refusals.empty());
}

TEST(LearnedRates, OfTiedErrorsShareOneFactorWithASmallerSigma) {
  const detector_error_model truth = surface_code();
  const detector_error_model model = with_factors(truth, [](auto &, auto &c) { return c.mechanism < 100 ? 0.5 : 2; });
  learning_options options;
  options.tied.resize(2);
  for (const dem_component &component : model.components)
    if (auto &group = options.tied[component.mechanism < 100 ? 0 : 1];
        group.empty() || group.back() != component.mechanism)
      group.push_back(component.mechanism);
  const event_counts counts = counts_of(truth, 100000, 3);
  const learned_rates tied = learn_or_throw(model, counts, options), alone = learn_or_throw(model, counts);
  const agreement found = compare(tied, truth);
  EXPECT_LT(found.rms_sigmas, 3); // of two factors only
  EXPECT_LT(std::abs(found.median_bias), 0.05);
  for (std::size_t k = 0; k < tied.errors.size(); ++k) {
    EXPECT_LT(tied.errors[k].sigma, alone.errors[k].sigma);
  }
}

TEST(LearnedRates, OfTwoGroupsThatFlipTheSameDetectorsAreSolvedTogether) {
  // {0, 1} happens by both groups; alone neither of its two errors could be distinguished from the other one.
  const detector_error_model truth =
      model_of("error(0.02) D0 D1\nerror(0.01) D0 D1\nerror(0.02) D1 D2\nerror(0.01) D2 D3\n");
  const detector_error_model model =
      with_factors(truth, [](auto &, auto &c) { return c.mechanism % 2 == 0 ? 2 : 0.5; });
  const learned_rates rates = learn_or_throw(model, counts_of(truth, 200000, 5), {.tied = {{0, 2}, {1, 3}}});
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_NEAR(rates.errors[k].rate, truth.components[k].probability, 4 * rates.errors[k].sigma);
    EXPECT_LT(rates.errors[k].sigma, 0.05 * rates.errors[k].rate);
  }
}

TEST(LearnedRates, OfALineInALoopAreThoseOfAllItsRounds) {
  const std::string text = "repeat 20 {\nerror(0.01) D0\nerror(0.02) D0 D1\nshift_detectors 1\n}\nerror(0.01) D0\n";
  const detector_error_model truth = model_of(text);
  const detector_error_model model = with_factors(truth, [](auto &, auto &c) { return c.line == 2 ? 2 : 0.5; });
  const learned_rates rates = learn_or_throw(model, counts_of(truth, 50000, 2));
  EXPECT_EQ(compare(rates, truth).covered, 1); // of three factors
  EXPECT_LT(rates.errors[0].sigma, 0.05 * rates.errors[0].rate);
}

TEST(LearnedRates, OfAnErrorWithTooManyDetectorsStayUnlessTheyAreTied) {
  const std::string text = "error(0.02) D0 D1 D2 D3 D4 D5 D6\nerror(0.02) D0 D1\nerror(0.03) D6\n";
  const detector_error_model truth = model_of(text);
  const detector_error_model model = with_factors(truth, [](auto &, auto &c) { return c.mechanism == 1 ? 1 : 0.5; });
  const event_counts counts = counts_of(truth, 200000, 9);
  EXPECT_NEAR(learn_or_throw(model, counts).errors[0].rate, 0.01, 0.0005);
  const learned_rates tied = learn_or_throw(model, counts, {.tied = {{0, 2}}});
  EXPECT_FALSE(learn_or_throw(model, counts).errors[0].resolved);
  EXPECT_TRUE(tied.errors[0].resolved);
  EXPECT_NEAR(tied.errors[0].rate, 0.02, 4 * tied.errors[0].sigma);
}

TEST(LearnedRates, OfManyErrorsInOneWithTooManyDetectorsAreThoseOfTheShots) {
  std::string text = "error(0.02) D0 D1 D2 D3 D4 D5 D6\nerror(0.02) D0\nerror(0.02) D6\n";
  for (int d = 0; d < 6; ++d)
    text += "error(0.02) D" + std::to_string(d) + " D" + std::to_string(d + 1) + "\n";
  const detector_error_model model = model_of(text);
  const learned_rates rates = learn_or_throw(model, counts_of(model, 100000, 4));
  EXPECT_TRUE(rates.refusals.empty()) << rates.refusals.front();
  for (const learned_rate &one : rates.errors) {
    EXPECT_NEAR(one.rate, 0.02, one.mechanism == 0 ? 0.0005 : 5 * one.sigma) << one.mechanism;
  }
}

TEST(LearnedRates, OfAnErrorThatTheModelHardlyHasAreThoseOfTheShots) {
  const std::string ends = "error(0.05) D0\nerror(0.05) D1\n";
  const event_counts counts = counts_of(model_of(ends + "error(0.01) D0 D1\n"), 200000, 6);
  const learned_rate pair = learn_or_throw(model_of(ends + "error(1e-5) D0 D1\n"), counts).errors[2];
  EXPECT_LT(pair.low, 0.01);
  EXPECT_GT(pair.high, 0.01);
  EXPECT_LT(pair.high, 2 * pair.low);
  // Also where the prior expects it to be close to the model's.
  const learned_rate sure =
      learn_or_throw(model_of(ends + "error(0.002) D0 D1\n"), counts, {.prior_sigma = 0.05}).errors[2];
  EXPECT_LT(sure.low, pair.low);
  EXPECT_GT(sure.low, 0.007);
  EXPECT_LT(sure.high, pair.high);
  EXPECT_GT(sure.high, 1.02 * sure.low);
}

TEST(LearnedRates, OfDetectorsThatExcludeEachOtherHaveAWideInterval) {
  const detector_error_model model = model_of("error(0.05) D0\nerror(0.05) D1\nerror(0.01) D0 D1\n");
  event_counts counts(sets_of(model)); // no error of a model makes such shots
  for (std::size_t k = 0; k < 100000; ++k) {
    const auto shot = static_cast<std::uint8_t>(k % 20 == 0 ? 1 : k % 20 == 10 ? 2 : 0);
    ASSERT_EQ(counts.add({&shot, 1}), decode_status::ok);
  }
  counts.flush();
  const learned_rate pair = learn_or_throw(model, counts).errors[2];
  EXPECT_GT(pair.low, 0);
  EXPECT_LT(pair.high, 0.001);
  EXPECT_GT(pair.high, 2 * pair.low);
}

TEST(LearnedRates, OfTheSmallestProbabilitiesAreNumbers) {
  for (const char *probability : {"4e-324", "1e-310", "1e-300", "1e-20"}) {
    const detector_error_model model = model_of("error(" + std::string(probability) + ") D0\nerror(0.1) D1\n");
    event_counts quiet(sets_of(model));
    const std::uint8_t shot = 0;
    for (int k = 0; k < 2000; ++k)
      ASSERT_EQ(quiet.add({&shot, 1}), decode_status::ok);
    quiet.flush();
    const learned_rate rare = learn_or_throw(model, quiet).errors[0];
    EXPECT_GT(rare.rate, 0) << probability;
    EXPECT_LE(rare.rate, 1e-12) << probability;
    EXPECT_TRUE(std::isfinite(rare.sigma + rare.low + rare.high)) << probability;
  }
}

TEST(LearnedRates, AreRefusedForOtherModelsNoShotsAndUnknownErrors) {
  const detector_error_model model = model_of("error(0.1) D0 D1\nerror(0.1) D1\n");
  const event_counts none(sets_of(model)), some = counts_of(model, 10, 1);
  EXPECT_EQ(learn_rates(model, none).text(), "no shots were counted");
  EXPECT_EQ(learn_rates(model_of("error(0.1) D0 D2\n"), some).text(), "the counts are those of another model");
  EXPECT_EQ(learn_rates(model, some, {.tied = {{0, 2}}}).text(),
            "error 2 of a group of tied errors is not in the model, or has no effect");
  EXPECT_EQ(learn_rates(model, some, {.tied = {{std::uint64_t{1} << 32}}}).text(),
            "error 4294967296 of a group of tied errors is not in the model, or has no effect");
  EXPECT_EQ(learn_rates(model, some, {.prior_sigma = 0}).text(), "the prior has sigma 0, accepted: a number above 0");
  const detector_error_model erased = model_of("error(0.5) D0 D1\nerror(0.1) D1\n");
  EXPECT_EQ(learn_rates(erased, counts_of(erased, 10, 1)).text(),
            "line 1: the error has probability 0.5; rates are learned of errors of at most 0.4");
}

TEST(LearnableSets, AreRefusedBeforeTheFirstShot) {
  const auto refusal = [](const std::string &model, tied_errors ties = {}) {
    return learnable_sets(model_of(model), {.tied = std::move(ties)}).text();
  };
  EXPECT_EQ(refusal("error(0.1) D0\nerror(0.41) D1\n"),
            "line 2: the error has probability 0.41; rates are learned of errors of at most 0.4");
  EXPECT_EQ(refusal("error(0.1) D0\n", {{1}}),
            "error 1 of a group of tied errors is not in the model, or has no effect");
  EXPECT_EQ(refusal("error(0.1) L0\n"), "the model has no detectors");
  const std::string loop = "repeat 3 {\nerror(0.01) D0\nerror(0.02) D0 D1\nshift_detectors 1\n}\nerror(0.01) D0\n";
  EXPECT_EQ(refusal(loop, {{0, 1}, {4, 5}}),
            "errors 0 and 4 are in two groups of tied errors, but both are of line 2, which a loop repeats: they have "
            "one rate; tie them in one group");
  EXPECT_TRUE(learnable_sets(model_of(loop), {.tied = {{0, 2, 6}, {1, 3}}}).ok());
}

TEST(DetectorRates, AreThoseOfTheShotsBesideTheModels) {
  const detector_error_model model = model_of("error(0.1) D0 D1\nerror(0.2) D1\n");
  const auto rates = rates_of_detectors(model, counts_of(model, 100000, 4));
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_NEAR(rates[0].model, 0.1, 1e-12);
  EXPECT_NEAR(rates[1].model, 0.1 * 0.8 + 0.9 * 0.2, 1e-12);
  for (const detector_rate &one : rates) {
    EXPECT_NEAR(one.now, one.model, 0.005);
    EXPECT_NEAR(one.sigmas, (one.now - one.model) / std::sqrt(one.model * (1 - one.model) / 100000), 1e-9);
    EXPECT_LT(std::abs(one.sigmas), 5);
  }
}

/// Rates of these lines; the errors of a text have one line each.
learned_rates rates_of_lines(const std::vector<std::pair<std::uint64_t, double>> &lines) {
  learned_rates rates;
  for (const auto &[line, rate] : lines)
    rates.errors.push_back({.line = line, .rate = rate});
  return rates;
}

TEST(LearnedText, ReplacesTheProbabilitiesAndNothingElse) {
  const std::string text = "# error(1) D0\n"
                           "detector(1, 2) D0\n"
                           "  error[a (tag) ERROR(3)](0.25) D0 L0 # error(0.5)\n"
                           "repeat[x{y] 3 {  ERROR( 1e-1 ) D0 ^ D1\r\n"
                           "shift_detectors(0, 1) 1\n"
                           "} error(0) D9\n"
                           "error(0.5) D0";
  ASSERT_TRUE(parse_dem(text).ok()) << parse_dem(text).text();
  EXPECT_EQ(text_with(text, rates_of_lines({{3, 0.75}, {4, 1.0 / 3}, {7, 1e-12}})),
            "# error(1) D0\n"
            "detector(1, 2) D0\n"
            "  error[a (tag) ERROR(3)](0.75) D0 L0 # error(0.5)\n"
            "repeat[x{y] 3 {  ERROR(0.3333333333333333) D0 ^ D1\r\n"
            "shift_detectors(0, 1) 1\n"
            "} error(0) D9\n"
            "error(1e-12) D0");
}

TEST(LearnedText, HasTheLearnedModelAfterItIsReadAgain) {
  for (const char *name : {"surface_z_d3_p0.005", "surface_z_d5_p0.003"}) {
    const std::string text = load_committed(name).dem_text;
    const detector_error_model model = model_of(text);
    const learned_rates rates = learn_or_throw(model, counts_of(model, 3000, 1));
    const detector_error_model read = model_of(text_with(text, rates)), made = model_with(model, rates);
    ASSERT_EQ(read.components.size(), made.components.size());
    std::size_t differ = 0;
    for (std::size_t k = 0; k < read.components.size(); ++k) {
      ASSERT_EQ(read.components[k].probability, made.components[k].probability);
      differ += read.components[k].probability != model.components[k].probability ? 1 : 0;
    }
    EXPECT_GT(differ, read.components.size() / 2);
    EXPECT_EQ(read.targets, model.targets);
  }
}

TEST(LearnedText, ChangesEachComponentOfADecomposedError) {
  const detector_error_model model = model_of("error(0) D0\nerror(0.1) D0 ^ D1\nerror(0.2) D1\n");
  learned_rates rates;
  rates.errors = {{.mechanism = 1, .rate = 0.3}, {.mechanism = 2, .rate = 0.4}};
  const detector_error_model changed = model_with(model, rates);
  ASSERT_EQ(changed.components.size(), 3u);
  EXPECT_EQ(changed.components[0].probability, 0.3);
  EXPECT_EQ(changed.components[1].probability, 0.3);
  EXPECT_EQ(changed.components[2].probability, 0.4);
}

TEST(TiedFile, HasGroupsOfErrors) {
  const auto groups =
      parse_tied("cudaq-realtime-tied 1\nmodel 00000abc\n# text\ntie cx 3 4\n\ntie measure 7\ntie cx 1\n", 0xabc);
  ASSERT_TRUE(groups.ok()) << groups.text();
  EXPECT_EQ(*groups, (std::vector<std::vector<std::uint64_t>>{{3, 4, 1}, {7}}));
}

TEST(TiedFile, IsRefusedWithTheLineThatIsWrong) {
  const std::string head = "cudaq-realtime-tied 1\nmodel 00000abc\n";
  const auto text = [](const std::string &file) { return parse_tied(file, 0xabc).text(); };
  EXPECT_EQ(text(head + "bind a 1\n"),
            "line 3: the line begins with \"bind\", accepted: tie, a name, and numbers of errors");
  EXPECT_EQ(text(head + "tie\n"), "line 3: the line begins with \"tie\", accepted: tie, a name, and numbers of errors");
  EXPECT_EQ(text(head + "tie a 1 x\n"), "line 3: \"x\" is not the number of an error");
  EXPECT_EQ(text(head + "tie a -1\n"), "line 3: \"-1\" is not the number of an error");
  EXPECT_EQ(text(head + "tie a 1\ntie b 2 1\n"), "line 4: error 1 is in group \"a\" already");
  EXPECT_NE(text("cudaq-realtime-tied 1\nmodel 00000abd\n").find("line 2: "), std::string::npos);
  EXPECT_NE(text("").find("line 1: "), std::string::npos);
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// How a model becomes columns, and what bp-osd refuses.
#include "unittests/qec/propagation/bp_osd_test_support.h"

#include <sstream>

namespace cudaq::qec::realtime::test {
namespace {

std::vector<std::uint32_t> checks_of(const tanner_graph &graph, std::uint32_t column) {
  const auto checks = graph.checks_of(column);
  return {checks.begin(), checks.end()};
}

TEST(BpOsdColumns, AddTheComponentsOfAnInstructionMod2) {
  const tanner_graph graph = graph_or_throw("error(0.1) D0 D1 L0 ^ D1 D2 L0 L1\n");
  ASSERT_EQ(graph.num_columns(), 1U);
  EXPECT_EQ(graph.num_checks, 2U); // no error flips D1
  EXPECT_EQ(graph.check_of, (std::vector<std::uint32_t>{0, kNoCheck, 1}));
  EXPECT_EQ(checks_of(graph, 0), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(graph.observables_of(0).size(), 1U);
  EXPECT_EQ(graph.observables_of(0)[0], 1U);
}

TEST(BpOsdColumns, MergeEqualErrorsAndKeepDifferentObservablesApart) {
  const tanner_graph graph =
      graph_or_throw("error(0.1) D0 D1\nerror(0.2) D1 D0\nerror(0.3) D0 D1 L0\nerror(0) D0\nerror(0.1) L0\n");
  ASSERT_EQ(graph.num_columns(), 2U);
  EXPECT_DOUBLE_EQ(graph.probability[0], 0.1 * 0.8 + 0.2 * 0.9);
  EXPECT_DOUBLE_EQ(graph.probability[1], 0.3);
}

TEST(BpOsdColumns, KeepInstructionsOfALoopApart) {
  const tanner_graph graph = graph_or_throw("repeat 3 {\nerror(0.1) D0 ^ D1\nshift_detectors 1\n}\n");
  EXPECT_EQ(graph.num_columns(), 3U);
  EXPECT_EQ(graph.num_checks, 4U);
}

TEST(BpOsdColumns, CountErrorsLikelierThanNotAsPresent) {
  const tanner_graph graph = graph_or_throw("error(0.9) D0 D1 L0\nerror(1) D1 L1\nerror(0.7) L2\n");
  ASSERT_EQ(graph.num_columns(), 1U);
  EXPECT_DOUBLE_EQ(graph.probability[0], 1 - 0.9);
  EXPECT_EQ(graph.certain_checks, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(graph.certain_observables, (std::vector<std::uint64_t>{0, 1, 2}));
}

TEST(BpOsdDecoder, IsUsedAsTheManualShows) {
  const char *dem_text = "error(0.1) D0 D1 D2 L0\n"; // docs/decoders/bp_osd.md quotes the next lines
  auto made = make_decoder("bp-osd:max_iterations=100,osd_order=0", dem_text);
  ASSERT_TRUE(made) << made.error;
  EXPECT_EQ(decode(*made.instance, {0, 1, 2}), (answer{decode_status::ok, bits(1, {0})}));
}

TEST(BpOsdDecoder, TakesErrorsThatAreCertain) {
  const auto with = make_or_throw("bp-osd", "error(1) D0 L0\nerror(0.1) D1 L1\n");
  EXPECT_EQ(decode(*with, {}).status, decode_status::no_solution);
  EXPECT_EQ(decode(*with, {0}), (answer{decode_status::ok, bits(2, {0})}));
  EXPECT_EQ(decode(*with, {0, 1}), (answer{decode_status::ok, bits(2, {0, 1})}));
}

TEST(BpOsdDecoder, TakesProbabilitiesAtTheEndsOfTheirRange) {
  for (const char *name : {"bp-osd:scaling=1", "bp-osd:method=product_sum"}) {
    const auto with =
        make_or_throw(name, "error(5e-320) D0 L0\nerror(0.5) D0 D1\nerror(0.9999999999999999) D1 D2 L1\n");
    EXPECT_EQ(decode(*with, {0, 2}), (answer{decode_status::ok, bits(2, {1})}));
    EXPECT_EQ(decode(*with, {0}), (answer{decode_status::ok, bits(2, {0})}));
  }
}

TEST(BpOsdDecoder, TakesHyperedgesThatMatchingRefuses) {
  const char *dem = "error(0.1) D0 D1 D2 L0\nerror(0.01) D0\nerror(0.01) D1\nerror(0.01) D2\n";
  EXPECT_EQ(decode(*make_or_throw("bp-osd", dem), {0, 1, 2}), (answer{decode_status::ok, bits(1, {0})}));
  EXPECT_EQ(decode(*make_or_throw("bp-osd", dem), {1}), (answer{decode_status::ok, bits(1, {})}));
  const std::string error = make_decoder("pymatching", dem).error;
  EXPECT_EQ(error.find("the decoder bp-osd takes such models") != std::string::npos, pymatching_available()) << error;
}

TEST(BpOsdDecoder, IsNamedByALookupDecoderThatIsTooSmall) {
  const std::string error = make_decoder("lookup", oracle_set("color_d5_p0.003").dem_text).error;
  EXPECT_NE(error.find("the decoder bp-osd takes such models"), std::string::npos) << error;
}

TEST(BpOsdDecoder, ServesMoreThan64Observables) {
  const auto with = make_or_throw("bp-osd", "error(0.1) D0 D1 L69\nerror(0.1) D1 D2 L3\nerror(0.1) D2 D0\n");
  EXPECT_EQ(decode(*with, {0}), (answer{decode_status::no_solution, bits(70, {})}));
  EXPECT_EQ(decode(*with, {0, 1}), (answer{decode_status::ok, bits(70, {69})}));
  EXPECT_EQ(decode(*with, {1, 2}), (answer{decode_status::ok, bits(70, {3})}));
}

TEST(BpOsdDecoder, RefusesTooManyDetectorsWithTheirNumber) {
  std::string dem;
  for (int d = 0; d <= 8192; ++d)
    dem += "error(0.1) D" + std::to_string(d) + "\n";
  const decoder_result made = make_decoder("bp-osd", dem);
  EXPECT_FALSE(made);
  EXPECT_NE(made.error.find("8193 detectors; this decoder takes at most 8192"), std::string::npos) << made.error;
  EXPECT_NE(made.error.find("decodes with pymatching"), std::string::npos) << made.error;
  EXPECT_TRUE(make_decoder("bp-osd", "error(0.1) D100000 L0\n")) << "only detectors that an error flips count";
}

TEST(BpOsdDecoder, RefusesOptionsOutOfRangeByName) {
  for (const std::string bad : {"max_iterations=0", "max_iterations=1000001", "scaling=1.5", "scaling=nan",
                                "scaling=-1", "osd_order=65", "osd_order=", "method=sum", "posterior=mean"}) {
    const decoder_result made = make_decoder("bp-osd:" + bad, "error(0.1) D0");
    EXPECT_FALSE(made);
    EXPECT_NE(made.error.find(bad + ": expected"), std::string::npos) << made.error;
  }
}

// bp-osd against the ldpc package, whose answers tools/data/bp_osd/make_bp_osd_data.py wrote.
//
// The answers need not be equal in every shot: ldpc computes with doubles, and many columns have the same score but for
// rounding. The last step of both is exact, so every correction must cause the events.

bp_osd_options options_of(const std::string &setting) {
  std::istringstream in(setting);
  std::string method;
  bp_osd_options options;
  in >> method >> options.max_iterations >> options.scaling >> options.osd_order;
  options.sums_posteriors = false; // as ldpc
  options.method = method == "min_sum" ? bp_method::min_sum : bp_method::product_sum;
  return options;
}

class BpOsdGolden : public testing::TestWithParam<std::string> {
protected:
  /// Compares one setting. A weight is equal within the digits of the file.
  void compare(const std::string &number) {
    bp_osd solver(graph_or_throw(set_.dem_text), options_of(set_.values.at("setting." + number)));
    std::istringstream observables(set_.values.at("observables." + number));
    std::istringstream weights(set_.values.at("weight." + number));
    std::size_t same_observables = 0;
    std::size_t same_weight = 0;
    std::size_t lighter = 0; // one or two errors, where ldpc has a heavier set
    double ours = 0;
    double theirs = 0;
    for (const auto &events : set_.shots) {
      ASSERT_EQ(solver.solve(events), decode_status::ok);
      ASSERT_EQ(events_of(solver), events);
      std::uint64_t expected = 0;
      double weight = 0;
      ASSERT_TRUE(observables >> std::hex >> expected);
      ASSERT_TRUE(weights >> weight);
      if (solver.correction().size() <= 2 && weight_of(solver) < weight - 2e-3) {
        ++lighter;
        continue;
      }
      same_observables += observables_of(solver) == expected;
      same_weight += std::abs(weight_of(solver) - weight) < 2e-3;
      ours += weight_of(solver);
      theirs += weight;
    }
    SCOPED_TRACE(set_.values.at("setting." + number));
    const std::size_t compared = set_.shots.size() - lighter;
    RecordProperty("lighter_" + number, static_cast<int>(lighter));
    RecordProperty("different_observables_" + number, static_cast<int>(compared - same_observables));
    RecordProperty("different_weights_" + number, static_cast<int>(compared - same_weight));
    EXPECT_LE(5 * lighter, set_.shots.size());
    EXPECT_GE(100 * same_observables, 98 * compared);
    EXPECT_GE(100 * same_weight, 97 * compared);
    EXPECT_NEAR(ours / theirs, 1, 0.01) << "sum of all weights";
  }

  const oracle_set set_{GetParam()};
};

TEST_P(BpOsdGolden, MinSumWithOsd0AgreesWithLdpc) { compare("0"); }
TEST_P(BpOsdGolden, AdaptiveMinSumWithCombinationSweepAgreesWithLdpc) { compare("1"); }
TEST_P(BpOsdGolden, ProductSumWithOsd0AgreesWithLdpc) { compare("2"); }

INSTANTIATE_TEST_SUITE_P(Sets, BpOsdGolden,
                         testing::Values("repetition_d5_p0.02", "surface_d3_p0.01", "color_d3_p0.01", "color_d5_p0.003",
                                         "bicycle_72_capacity_p0.04", "bicycle_72_r6_p0.003"),
                         kind_name);

// Which posteriors order the columns for ordered statistics.

constexpr std::uint32_t kIterations = 6;

/// A bicycle code, and its shots that do not converge within kIterations.
struct hard_shots {
  hard_shots() {
    relay_bp solver(graph, options(kIterations, false));
    for (const auto &events : set.shots)
      if (syndrome.set_events(events) && solver.solve(syndrome.bytes()) == decode_status::not_converged)
        syndromes.emplace_back(syndrome.bytes().begin(), syndrome.bytes().end());
  }
  static relay_bp_options options(std::uint32_t iterations, bool sums) {
    relay_bp_options o;
    o.pre_iter = iterations;
    o.num_sets = 0;
    o.sums_posteriors = sums;
    return o;
  }

  const oracle_set set{"bicycle_72_r6_p0.003"};
  const tanner_graph graph = graph_or_throw(set.dem_text);
  graph_syndrome syndrome{graph};
  std::vector<std::vector<std::uint8_t>> syndromes;
};

TEST(BpOsdPosterior, OfMinSumIsTheLastOneOrTheSumOfThoseOfAllIterations) {
  const hard_shots hard;
  ASSERT_GT(hard.syndromes.size(), 20U);
  relay_bp sums(hard.graph, hard_shots::options(kIterations, true));
  std::vector<std::unique_ptr<relay_bp>> shorter; // after 1, 2, ... iterations
  for (std::uint32_t k = 1; k <= kIterations; ++k)
    shorter.push_back(std::make_unique<relay_bp>(hard.graph, hard_shots::options(k, false)));
  std::vector<double> sum(hard.graph.num_columns()), last(sum.size());
  for (const auto &syndrome : hard.syndromes) {
    std::vector<float> expected(sum.size());
    for (const auto &with : shorter) {
      ASSERT_EQ(with->solve(syndrome), decode_status::not_converged);
      with->posteriors(last);
      for (std::size_t column = 0; column < last.size(); ++column)
        expected[column] += static_cast<float>(last[column]);
    }
    ASSERT_EQ(sums.solve(syndrome), decode_status::not_converged);
    sums.posteriors(sum);
    ASSERT_EQ(std::vector<float>(sum.begin(), sum.end()), expected);
  }
}

TEST(BpOsdPosterior, OfProductSumIsTheLastOneOrTheSumOfThoseOfAllIterations) {
  const hard_shots hard;
  product_sum sums(hard.graph, kIterations, true);
  std::size_t compared = 0;
  for (const auto &syndrome : hard.syndromes) {
    stop_check stop;
    if (sums.run(syndrome, stop) != decode_status::not_converged)
      continue;
    std::vector<double> expected(hard.graph.num_columns());
    for (std::uint32_t k = 1; k <= kIterations; ++k) {
      product_sum shorter(hard.graph, k, false);
      ASSERT_EQ(shorter.run(syndrome, stop), decode_status::not_converged);
      for (std::size_t column = 0; column < expected.size(); ++column)
        expected[column] -= shorter.score()[column] / (shorter.score()[column] - 1);
    }
    ASSERT_EQ(std::vector<double>(sums.score().begin(), sums.score().end()), expected);
    ++compared;
  }
  EXPECT_GT(compared, 20U);
}

class BpOsdPosteriorOf : public testing::TestWithParam<bp_method> {};

TEST_P(BpOsdPosteriorOf, AllIterationsFindsLighterSetsThanThatOfTheLastOne) {
  for (const char *name : {"bicycle_72_r6_p0.003", "color_d5_p0.003"}) {
    const oracle_set set(name);
    bp_osd_options options{GetParam()};
    bp_osd sums(graph_or_throw(set.dem_text), options);
    options.sums_posteriors = false;
    bp_osd last(graph_or_throw(set.dem_text), options);
    double weight_of_sums = 0, weight_of_last = 0;
    std::size_t lighter = 0, heavier = 0;
    for (const auto &events : set.shots) {
      ASSERT_EQ(sums.solve(events), decode_status::ok);
      ASSERT_EQ(last.solve(events), decode_status::ok);
      ASSERT_EQ(events_of(sums), events);
      ASSERT_EQ(sums.used_ordered_statistics(), last.used_ordered_statistics());
      weight_of_sums += weight_of(sums);
      weight_of_last += weight_of(last);
      lighter += weight_of(sums) < weight_of(last) - 1e-3;
      heavier += weight_of(sums) > weight_of(last) + 1e-3;
    }
    EXPECT_LT(weight_of_sums, weight_of_last) << name;
    EXPECT_GT(lighter, 2 * heavier) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, BpOsdPosteriorOf, testing::Values(bp_method::min_sum, bp_method::product_sum),
                         [](const auto &of) { return of.param == bp_method::min_sum ? "MinSum" : "ProductSum"; });

TEST(BpOsdPosterior, IsChosenByASetting) {
  const oracle_set set("color_d5_p0.003");
  const auto sums = make_or_throw("bp-osd", set.dem_text), same = make_or_throw("bp-osd:posterior=sum", set.dem_text),
             last = make_or_throw("bp-osd:posterior=last", set.dem_text);
  std::size_t different = 0;
  for (const auto &events : set.shots) {
    const answer given = decode(*sums, events);
    ASSERT_EQ(decode(*same, events), given);
    different += decode(*last, events) != given;
  }
  EXPECT_GT(different, 0U);
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// bp-osd against exact answers, on models that are small enough for them.
#include "unittests/qec/every_error_set.h"
#include "unittests/qec/propagation/bp_osd_test_support.h"

#include <random>

namespace cudaq::qec::realtime::test {
namespace {

std::vector<bp_osd_options> all_settings() {
  return {{}, {bp_method::min_sum, 1, 1, 0}, {bp_method::min_sum, 30, 0.625, 0}, {bp_method::product_sum, 30, 1, 4}};
}

/// Lines of errors with up to 4 of 7 detectors.
std::vector<std::string> random_lines(std::mt19937 &random) {
  std::vector<std::string> lines;
  for (int k = 0; k < 11; ++k) {
    std::string targets;
    const std::uint64_t detectors = 1 + random() % 127;
    int count = 0;
    for (int d = 0; d < 7; ++d)
      if ((detectors >> d & 1U) != 0 && count++ < 4)
        targets += " D" + std::to_string(d);
    for (int o = 0; o < 2; ++o)
      if (random() % 3 == 0)
        targets += " L" + std::to_string(o);
    lines.push_back("error(" + std::to_string(std::uniform_real_distribution(0.01, 0.4)(random)) + ")" + targets +
                    "\n");
  }
  lines.push_back("detector D6\n");
  return lines;
}

std::string joined(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line;
  return text;
}

/// The least weight of each syndrome of checks, by trying every set of at most `most` columns.
std::map<std::uint64_t, double> least_weights(const tanner_graph &graph, int max_weight = 64) {
  std::map<std::uint64_t, double> least;
  for (std::uint64_t set = 0; set < std::uint64_t{1} << graph.num_columns(); ++set) {
    if (std::popcount(set) > max_weight)
      continue;
    std::uint64_t syndrome = 0;
    double weight = 0;
    for (std::uint32_t column = 0; column < graph.num_columns(); ++column) {
      if ((set >> column & 1U) == 0)
        continue;
      for (const std::uint32_t check : graph.checks_of(column))
        syndrome ^= std::uint64_t{1} << check;
      const double p = graph.probability[column];
      weight += std::log((1 - p) / p);
    }
    const auto [at, is_new] = least.try_emplace(syndrome, weight);
    at->second = std::min(at->second, weight);
  }
  return least;
}

TEST(BpOsdExactness, SolvesExactlyTheSyndromesThatHaveASolution) {
  std::mt19937 random(11);
  std::size_t syndromes = 0;
  std::size_t least_found = 0;
  for (int model = 0; model < 12; ++model) {
    const std::string dem = joined(random_lines(random));
    const auto lookup = make_or_throw("lookup", dem);
    for (const bp_osd_options &options : all_settings()) {
      bp_osd solver(graph_or_throw(dem), options);
      const auto least = least_weights(solver.graph());
      for (std::uint64_t mask = 0; mask < 128; ++mask) {
        const auto events = indices_of(mask);
        const decode_status status = solver.solve(events);
        ASSERT_EQ(status, decode(*lookup, events).status) << dem << "syndrome " << mask;
        if (status != decode_status::ok)
          continue;
        ASSERT_EQ(events_of(solver), events) << dem;
        std::uint64_t syndrome = 0;
        for (const std::uint64_t event : events)
          syndrome |= std::uint64_t{1} << solver.graph().check_of[event];
        ASSERT_GE(weight_of(solver), least.at(syndrome) - 1e-9) << dem << "syndrome " << mask;
        ++syndromes;
        least_found += weight_of(solver) < least.at(syndrome) + 1e-5;
      }
    }
  }
  RecordProperty("least_weight_percent", static_cast<int>(100 * least_found / syndromes));
  EXPECT_GT(10 * least_found, 6 * syndromes);
}

TEST(BpOsdExactness, CorrectsEachSingleErrorOfTheBicycleCode) {
  const oracle_set set("bicycle_72_r6_p0.003"); // distance 6: one error is never mistaken for another
  bp_osd solver(graph_or_throw(set.dem_text), {});
  const tanner_graph &graph = solver.graph();
  for (std::uint32_t column = 0; column < graph.num_columns(); ++column) {
    const auto checks = graph.checks_of(column); // every detector of this model is a check of the same number
    const std::vector<std::uint64_t> events(checks.begin(), checks.end());
    ASSERT_EQ(solver.solve(events), decode_status::ok);
    std::uint64_t expected = 0;
    for (const std::uint64_t k : graph.observables_of(column))
      expected |= std::uint64_t{1} << k;
    EXPECT_EQ(observables_of(solver), expected) << "column " << column;
  }
}

TEST(BpOsdExactness, CorrectsEachSingleErrorOfTheColourCodeAsTheLookupDecoderDoes) {
  const oracle_set set("color_d3_p0.01");
  const tanner_graph graph = graph_or_throw(set.dem_text);
  const auto lookup = make_or_throw("lookup", set.dem_text);
  const auto with = make_or_throw("bp-osd", set.dem_text);
  std::uint32_t same = 0;
  for (std::uint32_t column = 0; column < graph.num_columns(); ++column) {
    const auto checks = graph.checks_of(column);
    const std::vector<std::uint64_t> events(checks.begin(), checks.end());
    same += decode(*with, events) == decode(*lookup, events);
  }
  EXPECT_EQ(same, graph.num_columns());
}

TEST(BpOsdExactness, AgreesWithTheLookupDecoderOnNearlyAllShots) {
  const oracle_set set("color_d3_p0.01");
  const auto lookup = make_or_throw("lookup", set.dem_text);
  const auto with = make_or_throw("bp-osd", set.dem_text);
  std::size_t same = 0;
  for (const auto &events : set.shots)
    same += decode(*with, events) == decode(*lookup, events);
  EXPECT_GE(100 * same, 97 * set.shots.size());
}

TEST(BpOsdExactness, CombinationSweepNeverHasMoreWeightThanOsd0) {
  const oracle_set set("bicycle_72_r6_p0.003");
  bp_osd plain(graph_or_throw(set.dem_text), {bp_method::min_sum, 5, 0, 0});
  bp_osd sweep(graph_or_throw(set.dem_text), {bp_method::min_sum, 5, 0, 10});
  std::size_t better = 0;
  for (const auto &events : set.shots) {
    ASSERT_EQ(plain.solve(events), decode_status::ok);
    ASSERT_EQ(sweep.solve(events), decode_status::ok);
    ASSERT_EQ(events_of(sweep), events);
    ASSERT_LE(weight_of(sweep), weight_of(plain) + 1e-3);
    better += weight_of(sweep) < weight_of(plain) - 1e-3;
  }
  EXPECT_GT(better, 0U);
}

TEST(BpOsdExactness, AnswerDependsNeitherOnTheOrderOfTheModelNorOnEarlierShots) {
  std::mt19937 random(12);
  for (int model = 0; model < 20; ++model) {
    auto lines = random_lines(random);
    const auto one = make_or_throw("bp-osd", joined(lines));
    std::shuffle(lines.begin(), lines.end(), random);
    const auto other = make_or_throw("bp-osd", joined(lines));
    for (std::uint64_t mask = 0; mask < 128; ++mask)
      EXPECT_EQ(decode(*one, indices_of(mask)), decode(*other, indices_of(mask)));
    for (std::uint64_t mask = 128; mask-- > 0;)
      EXPECT_EQ(decode(*one, indices_of(mask)), decode(*make_or_throw("bp-osd", joined(lines)), indices_of(mask)));
  }
}

TEST(BpOsdExactness, AnswersWithTheLightestPairIfNothingIsLighter) {
  std::mt19937 random(13);
  for (int model = 0; model < 20; ++model) {
    const std::string dem = joined(random_lines(random));
    for (const bp_osd_options &options : all_settings()) {
      bp_osd solver(graph_or_throw(dem), options);
      const auto least = least_weights(solver.graph(), 2);
      for (const auto &[syndrome, weight] : least) {
        if (syndrome == 0)
          continue;
        ASSERT_EQ(solver.solve(indices_of(syndrome)), decode_status::ok); // each of the 7 detectors is a check
        EXPECT_LE(weight_of(solver), weight + 1e-9) << dem << "syndrome " << syndrome;
      }
    }
  }
}

// The two errors of weight 24.5 between D3 and D5 are likelier than the three of weight 25.9. The first messages of
// min-sum are scaled down, so it converges to the three.
TEST(BpOsdExactness, AnswersWithALighterPairIfProbabilitiesSpanOrdersOfMagnitude) {
  const char *const dem = "error(0.089126504667) D0\n"
                          "error(0.188019135256) D1 D2\n"
                          "error(3.82559717329e-06) D3\n"
                          "error(8.56248203864e-06) D3 D4\n"
                          "error(2.68919155989e-06) D4 D5\n"
                          "error(0.000874275527075) D5 D6\n"
                          "error(0.00162350370593) D6 L0\n";
  for (const bp_osd_options &options : all_settings()) {
    bp_osd solver(graph_or_throw(dem), options);
    ASSERT_EQ(solver.solve(indices_of(0b101000)), decode_status::ok);
    EXPECT_EQ(solver.correction().size(), 2U);
    EXPECT_EQ(events_of(solver), indices_of(0b101000));
    EXPECT_EQ(observables_of(solver), 0U);
  }
}

// Belief propagation converges to two errors for one of the seven.
TEST(BpOsd, CorrectsEachSingleErrorOfTheSteaneCode) {
  std::string dem;
  for (int qubit = 1; qubit <= 7; ++qubit) {
    dem += "error(0.05)";
    for (int check = 0; check < 3; ++check)
      if ((qubit >> check & 1) != 0)
        dem += " D" + std::to_string(check);
    dem += " L" + std::to_string(qubit) + "\n";
  }
  for (const char *name : {"bp-osd", "bp-osd:osd_order=0", "bp-osd:method=product_sum", "bp-osd:max_iterations=3"}) {
    const auto with = make_or_throw(name, dem);
    for (std::uint64_t qubit = 1; qubit <= 7; ++qubit) {
      std::vector<std::uint64_t> events;
      for (std::uint64_t check = 0; check < 3; ++check)
        if ((qubit >> check & 1) != 0)
          events.push_back(check);
      EXPECT_EQ(decode(*with, events), (answer{decode_status::ok, bits(8, {qubit})})) << name;
    }
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

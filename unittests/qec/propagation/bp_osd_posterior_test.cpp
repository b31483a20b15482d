// SPDX-License-Identifier: Apache-2.0
// Which posteriors order the columns for ordered statistics.
#include "unittests/qec/propagation/bp_osd_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

constexpr std::uint32_t kIterations = 6;

/// A bicycle code, and its shots that do not converge within kIterations.
struct hard_shots {
  hard_shots() {
    relay_bp solver(graph, options(kIterations, false));
    for (const auto &events : set.shots)
      if (syndrome.take(events) && solver.solve(syndrome.bytes()) == decode_status::not_converged)
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

// SPDX-License-Identifier: Apache-2.0
// bp-osd against the ldpc package, whose answers tools/data/bp_osd/make_bp_osd_data.py wrote.
//
// The answers need not be equal in every shot: ldpc computes with doubles, and many columns have the same score but for
// rounding. The last step of both is exact, so every correction must cause the events.
#include "unittests/qec/propagation/bp_osd_test_support.h"

#include <sstream>

namespace cudaq::qec::realtime::test {
namespace {

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

} // namespace
} // namespace cudaq::qec::realtime::test

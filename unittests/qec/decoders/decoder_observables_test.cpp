// SPDX-License-Identifier: Apache-2.0
// Field note 33: observables at the edges of the mask widths, and parallel edges.
#include "unittests/qec/qec_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

constexpr std::uint64_t kLinks = 5; // per chain: 5 detectors and 5 observables, small enough for a table

/// Chains of kLinks errors; one end of each chain is at the boundary. Only error k flips observable k. Every syndrome
/// of a chain has one solution.
struct chains {
  std::string dem;
  std::vector<std::vector<std::uint64_t>> events_of; ///< per error
};

chains make_chains(std::uint64_t num_observables) {
  chains made;
  for (std::uint64_t begin = 0; begin < num_observables; begin += kLinks) {
    const std::uint64_t links = std::min(kLinks, num_observables - begin);
    for (std::uint64_t k = 0; k < links; ++k) {
      std::vector<std::uint64_t> events{begin + k};
      if (k > 0)
        events.push_back(begin + k - 1);
      made.dem += "error(0.01)";
      for (const std::uint64_t d : events)
        made.dem += " D" + std::to_string(d);
      made.dem += " L" + std::to_string(begin + k) + "\n";
      made.events_of.push_back(events);
    }
  }
  return made;
}

class DecoderObservables : public testing::TestWithParam<std::string> {};

// Known failure 33.
TEST_P(DecoderObservables, EachOfManyObservablesComesBackInItsOwnBit) {
  for (const std::uint64_t num_observables : {1U, 31U, 32U, 33U, 64U, 65U}) {
    const chains made = make_chains(num_observables);
    const auto with = make_or_throw(GetParam(), made.dem);
    ASSERT_EQ(with->num_observables(), num_observables);
    for (std::uint64_t k = 0; k < num_observables; ++k)
      EXPECT_EQ(decode(*with, made.events_of[k]), (answer{decode_status::ok, bits(num_observables, {k})}))
          << k << " of " << num_observables;
  }
}

TEST_P(DecoderObservables, SeveralObservablesAtOnceAllComeBack) {
  for (const std::uint64_t num_observables : {31U, 32U, 33U, 64U, 65U}) {
    const chains made = make_chains(num_observables);
    const auto with = make_or_throw(GetParam(), made.dem);
    std::vector<std::uint64_t> events;
    std::vector<std::uint64_t> flipped;
    for (std::uint64_t k = 0; k < num_observables; k += kLinks) { // one error of every chain
      const std::uint64_t error = std::min(k + k / kLinks % kLinks, num_observables - 1);
      events.insert(events.end(), made.events_of[error].begin(), made.events_of[error].end());
      flipped.push_back(error);
    }
    EXPECT_EQ(decode(*with, events), (answer{decode_status::ok, bits(num_observables, flipped)}));
    EXPECT_EQ(decode(*with, {}), (answer{decode_status::ok, bits(num_observables, {})}));
  }
}

TEST_P(DecoderObservables, ParallelEdgesMergeAsIndependentErrors) {
  // D0 and D1 fire. Either one edge of p = 0.1 explains it, or two errors at the boundary of p = 0.2 each, one with L0.
  // Log-odds: 2.2 for the edge, 2.8 for the two errors, so the decoder chooses the edge.
  const std::string boundary = "error(0.2) D0 L0\nerror(0.2) D1\n";
  EXPECT_EQ(decode(*make_or_throw(GetParam(), boundary + "error(0.1) D0 D1\n"), {0, 1}).observables, bits(1, {}));
  // At p = 0.04 (log-odds 3.2) it chooses the two errors. Two parallel edges merge to 0.0768 (2.5) and are chosen.
  EXPECT_EQ(decode(*make_or_throw(GetParam(), boundary + "error(0.04) D0 D1\n"), {0, 1}).observables, bits(1, {0}));
  EXPECT_EQ(decode(*make_or_throw(GetParam(), boundary + "error(0.04) D0 D1\nerror(0.04) D1 D0\n"), {0, 1}).observables,
            bits(1, {}));
}

TEST_P(DecoderObservables, ParallelBoundaryEdgesKeepTheirObservable) {
  const std::string dem = "error(0.01) D0 L1\nerror(0.01) D0 L1\nerror(0.01) D0 D1\nerror(0.01) D1 L0\n";
  const auto with = make_or_throw(GetParam(), dem);
  EXPECT_EQ(decode(*with, {0}).observables, bits(2, {1}));
  EXPECT_EQ(decode(*with, {1}).observables, bits(2, {0}));
}

TEST_P(DecoderObservables, ParallelEdgesTakeTheLikeliestObservables) {
  // Only codes of distance 2 or less have such errors. Both orders, at the boundary and between two detectors.
  for (const char *dem : {"error(0.01) D0 L0\nerror(0.1) D0 L1\n", "error(0.1) D0 L1\nerror(0.01) D0 L0\n"})
    EXPECT_EQ(decode(*make_or_throw(GetParam(), dem), {0}).observables, bits(2, {1})) << dem;
  for (const char *dem : {"error(0.02) D0 D1 L0\nerror(0.01) D0 D1\nerror(0.02) D0 D1 L0",
                          "error(0.02) D1 D0\nerror(0.03) D0 D1 L0\nerror(0.001) D0 D1"})
    EXPECT_EQ(decode(*make_or_throw(GetParam(), dem), {0, 1}).observables, bits(1, {0})) << dem;
}

INSTANTIATE_TEST_SUITE_P(Kinds, DecoderObservables, testing::ValuesIn(decoder_kinds()), kind_name);

} // namespace
} // namespace cudaq::qec::realtime::test

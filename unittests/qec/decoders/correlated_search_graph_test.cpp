// SPDX-License-Identifier: Apache-2.0
// The second pass of pymatching-correlated reads PyMatching's search graph only for more than 64 observables, and for
// edges and weights. Where it does, that graph must have the weights that the first pass has changed.
#include "unittests/qec/qec_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

// D0 and D1 are matched over D4, which flips L0: this has less weight than the error between them. D2 and D3 show that
// this error happened: the first pass makes it the likelier way.
const std::string kModel = "error(0.01) D0 D1 ^ D2 D3\n"
                           "error(0.1) D0 D4 L0\nerror(0.1) D4 D1\n"
                           "error(0.001) D2\nerror(0.001) D3\n";
const std::vector<std::uint64_t> kEvents{0, 1, 2, 3};

TEST(CorrelatedSearchGraph, IsNotNeededForAMaskOfObservables) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto plain = make_or_throw("pymatching", kModel), correlated = make_or_throw("pymatching-correlated", kModel);
  EXPECT_EQ(decode(*plain, kEvents), (answer{decode_status::ok, {1}}));
  EXPECT_EQ(decode(*correlated, kEvents), (answer{decode_status::ok, {0}}));
}

TEST(CorrelatedSearchGraph, HasTheNewWeightsForManyObservables) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto matcher = make_or_throw("pymatching-correlated", kModel + "logical_observable L64\n");
  EXPECT_EQ(decode(*matcher, kEvents), (answer{decode_status::ok, std::vector<std::uint8_t>(9)}));
}

TEST(CorrelatedSearchGraph, HasTheNewWeightsForEdges) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto matcher = make_or_throw("pymatching-correlated:edges=1", kModel);
  std::vector<correction_edge> edges(8);
  decode_details details{.edges = edges};
  std::vector<std::uint8_t> out(1);
  ASSERT_EQ(matcher->decode(kEvents, out, details), decode_status::ok);
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(details.num_edges, 2U);
}

TEST(CorrelatedSearchGraph, HasTheOldWeightsForTheNextShot) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto matcher = make_or_throw("pymatching-correlated", kModel + "logical_observable L64\n");
  std::vector<std::uint8_t> over_d4(9);
  over_d4[0] = 1;
  for (int shot = 0; shot < 3; ++shot) {
    EXPECT_EQ(decode(*matcher, kEvents), (answer{decode_status::ok, std::vector<std::uint8_t>(9)}));
    EXPECT_EQ(decode(*matcher, {0, 1}), (answer{decode_status::ok, over_d4}));
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Matching leaves out the parts of a model that flip no observable, unless their edges or weight are wanted.
#include "unittests/qec/qec_test_support.h"

#include <cmath>

namespace cudaq::qec::realtime::test {
namespace {

class MatchingParts : public testing::Test {
protected:
  void SetUp() override { CUDAQ_SKIP_WITHOUT_PYMATCHING(); }
};

/// D0 to D2: a line with a boundary that flips L0. D3 to D5: a triangle without a boundary. D6, D7: a line with one.
/// D8: no error flips it.
constexpr const char *kParts = "error(0.1) D0 L0\nerror(0.2) D0 D1\nerror(0.1) D1 D2\nerror(0.3) D2\n"
                               "error(0.1) D3 D4\nerror(0.1) D4 D5\nerror(0.1) D5 D3\nerror(0.1) D6 D7\nerror(0.2) D7\n"
                               "detector D8\n";

TEST_F(MatchingParts, EveryShotHasTheStatusAndObservablesOfAWholeMatching) {
  const auto with = make_or_throw("pymatching", kParts);
  for (std::uint64_t mask = 0; mask < 512; ++mask) {
    std::vector<std::uint64_t> events;
    for (std::uint64_t d = 0; d < 9; ++d)
      if ((mask >> d & 1) != 0)
        events.push_back(d);
    std::uint8_t whole = 0;
    decode_details details; // asks for the weight, so everything is matched
    const decode_status status = with->decode(events, {&whole, 1}, details);
    const answer quick = decode(*with, events);
    ASSERT_EQ(quick.status, status) << mask;
    ASSERT_EQ(quick.observables[0], whole) << mask;
    const bool triangle_is_odd = (mask >> 3 & 1) ^ (mask >> 4 & 1) ^ (mask >> 5 & 1);
    ASSERT_EQ(status == decode_status::ok, !triangle_is_odd && (mask >> 8 & 1) == 0) << mask;
  }
}

TEST_F(MatchingParts, ARefusedShotLeavesNothingForTheNext) {
  const auto with = make_or_throw("pymatching", kParts);
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(decode(*with, {3}).status, decode_status::no_solution);
    EXPECT_EQ(decode(*with, {3, 4}).status, decode_status::ok);
    EXPECT_EQ(decode(*with, {3, 4, 5, 0}).status, decode_status::no_solution);
    EXPECT_EQ(decode(*with, {0}), (answer{decode_status::ok, bits(1, {0})}));
  }
}

TEST_F(MatchingParts, TheWeightIsThatOfAllParts) {
  const auto with = make_or_throw("pymatching", kParts);
  std::uint8_t out = 0;
  decode_details details;
  ASSERT_EQ(with->decode(std::vector<std::uint64_t>{3, 4}, {&out, 1}, details), decode_status::ok);
  EXPECT_NEAR(details.weight, std::log(9.0), 0.01);
}

} // namespace
} // namespace cudaq::qec::realtime::test

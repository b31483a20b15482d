// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/split_errors/connected_parts.h"
#include "unittests/qec/qec_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

connected_parts parts_of(std::string_view dem, bool by_component) { return {*parse_dem(dem), by_component}; }

TEST(ConnectedParts, ArePartsOfTheModelWithWhatTheyFlip) {
  const connected_parts all = parts_of("error(0.1) D0 D1 L0\nerror(0.1) D2 D4\nerror(0.1) D4\nerror(0.1) D5 D6\n"
                                       "detector D7\n",
                                       true);
  EXPECT_EQ(all.part_of, (std::vector<std::uint32_t>{0, 0, 1, 2, 1, 3, 3, 4}));
  ASSERT_EQ(all.parts.size(), 5U);
  EXPECT_TRUE(all.parts[0].flips_observables && !all.parts[0].has_boundary);
  EXPECT_TRUE(!all.parts[1].flips_observables && all.parts[1].has_boundary);
  EXPECT_FALSE(all.parts[2].flips_observables || all.parts[2].has_boundary) << "a detector that no error flips";
  EXPECT_FALSE(all.parts[3].flips_observables || all.parts[3].has_boundary);
}

TEST(ConnectedParts, ComponentsOfAnErrorJoinPartsOnlyWhereTheyBelongTogether) {
  const std::string dem = "error(0.1) D0 D1 L0 ^ D2 D3\nerror(0.1) D3 ^ L1\n";
  EXPECT_EQ(parts_of(dem, true).part_of, (std::vector<std::uint32_t>{0, 0, 1, 1}));
  EXPECT_FALSE(parts_of(dem, true).parts[1].flips_observables) << "component_errors() moves them before";
  EXPECT_EQ(parts_of(dem, false).part_of, (std::vector<std::uint32_t>{0, 0, 0, 0}));
  EXPECT_TRUE(parts_of(dem, false).parts[0].flips_observables);
}

} // namespace
} // namespace cudaq::qec::realtime::test

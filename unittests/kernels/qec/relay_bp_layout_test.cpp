// SPDX-License-Identifier: Apache-2.0
// How a Tanner graph is spread over the blocks of a cluster: the slots for the pairs that the blocks send each other.
#include "kernels/qec/relay_bp/relay_bp_layout.h"
#include "unittests/qec/propagation/bp_osd_test_support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace cudaq::qec::realtime::gpu {
namespace {

constexpr std::size_t kBlockBytes = 232448; ///< shared memory of a block of sm_90

struct bicycle {
  const tanner_graph graph = test::graph_or_throw(test::oracle_set("bicycle_72_r6_p0.003").dem_text);
  relay_layout cut_into(std::uint32_t parts) const {
    relay_layout layout(graph, {}, {kBlockBytes, parts});
    EXPECT_EQ(layout.variant(), relay_variant::cluster);
    EXPECT_EQ(layout.job().parts, parts);
    return layout;
  }
};

/// What a part has, found in the arrays of all parts.
struct part_view {
  std::span<const relay_cut> cuts;
  std::span<const std::uint16_t> sends_to;
  std::span<const relay_check> checks;
};
std::vector<part_view> parts_of(const relay_layout &layout) {
  std::vector<part_view> parts;
  std::size_t cut = 0, slot = 0, lane = 0;
  for (std::uint32_t p = 0; p < layout.job().parts; ++p) {
    const relay_part &has = layout.job().part[p];
    parts.push_back({std::span(layout.cuts).subspan(cut, has.num_cuts),
                     std::span(layout.sends_to).subspan(slot, has.num_slots),
                     std::span(layout.checks).subspan(lane, has.num_check_lanes)});
    cut += has.num_cuts, slot += has.num_slots, lane += has.num_check_lanes;
  }
  EXPECT_EQ(cut, layout.cuts.size());
  EXPECT_EQ(slot, layout.sends_to.size());
  EXPECT_EQ(lane, layout.checks.size());
  return parts;
}

class RelayBpParts : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Parts, RelayBpParts, testing::Values(2U, 4U, 8U));

// All parts send a pair that says from whom it is and of which check, and each reads what it expects.
TEST_P(RelayBpParts, EachSlotGetsThePairThatItsOwnerReadsThere) {
  const relay_layout layout = bicycle().cut_into(GetParam());
  const std::vector<part_view> parts = parts_of(layout);
  struct pair {
    std::uint32_t from = UINT32_MAX, number = UINT32_MAX;
  };
  std::vector<std::vector<pair>> slots;
  for (const part_view &part : parts) {
    EXPECT_LE(part.sends_to.size(), layout.job().max_slots);
    slots.emplace_back(part.sends_to.size());
  }
  for (std::uint32_t p = 0; p < parts.size(); ++p)
    for (const relay_cut &cut : parts[p].cuts) {
      std::uint32_t slot = cut.first_slot;
      for (std::uint32_t to = 0; to < parts.size(); ++to)
        if ((cut.others >> to & 1) != 0) {
          ASSERT_LT(slot, parts[p].sends_to.size());
          const std::uint16_t there = parts[p].sends_to[slot++];
          ASSERT_LT(there, slots[to].size());
          ASSERT_EQ(slots[to][there].from, UINT32_MAX) << "two parts write to one slot";
          slots[to][there] = {p, cut.number};
        }
      ASSERT_EQ(slot, cut.first_slot + cut.num_others);
    }
  for (std::uint32_t p = 0; p < parts.size(); ++p) {
    std::size_t read = 0;
    for (const relay_cut &cut : parts[p].cuts) {
      std::set<std::uint32_t> from;
      for (std::uint32_t k = 0; k < cut.num_others; ++k, ++read) {
        const pair &found = slots[p][cut.first_slot + k];
        EXPECT_EQ(found.number, cut.number);
        EXPECT_NE(cut.others >> found.from & 1, 0) << found.from;
        from.insert(found.from);
      }
      EXPECT_EQ(from.size(), cut.num_others) << "one pair of each other part";
      EXPECT_EQ(cut.others >> p & 1, 0) << "its own pair has no slot";
    }
    EXPECT_EQ(read, slots[p].size()) << "slots that the part does not read";
  }
}

TEST_P(RelayBpParts, ACheckIsCutWhereSeveralPartsHaveMessagesOfIt) {
  const bicycle b;
  const relay_layout layout = b.cut_into(GetParam());
  const std::vector<part_view> parts = parts_of(layout);
  std::size_t rows = 0, alone = 0;
  std::vector<std::size_t> rows_of_cut(layout.job().num_cut);
  for (const part_view &part : parts) {
    std::vector<std::size_t> lanes(part.cuts.size());
    for (const relay_check &check : part.checks) {
      rows += check.rows;
      if (check.cut == relay_check::kNotCut) {
        alone += check.rows;
      } else {
        ASSERT_LT(check.cut, part.cuts.size());
        ++lanes[check.cut];
        rows_of_cut[part.cuts[check.cut].number] += check.rows;
      }
    }
    EXPECT_TRUE(std::ranges::all_of(lanes, [](std::size_t n) { return n == kClusterCheckLanes; }));
  }
  EXPECT_EQ(rows, b.graph.checks.size()) << "each message is in one part";
  // All messages of a check together: those of the graph, whatever the order of the checks.
  std::vector<std::size_t> degree(b.graph.num_checks);
  for (const std::uint32_t check : b.graph.checks)
    ++degree[check];
  std::ranges::sort(degree);
  std::ranges::sort(rows_of_cut);
  EXPECT_TRUE(std::ranges::includes(degree, rows_of_cut));
  EXPECT_GT(rows_of_cut.size(), 0U);
  EXPECT_GT(alone, 0U);
}

TEST(RelayBpLayout, MoreBlocksNeedLessMemoryEach) {
  const bicycle b;
  std::size_t before = SIZE_MAX;
  for (const std::uint32_t parts : {1U, 2U, 4U, 8U}) {
    const std::size_t bytes = relay_memory_bytes(b.cut_into(parts).job(), relay_variant::cluster);
    EXPECT_LT(bytes, before) << parts << " blocks";
    before = bytes;
  }
}

TEST(RelayBpLayout, KeepsWhatFitsInSharedMemory) {
  const bicycle b;
  for (const std::uint32_t parts : {1U, 2U, 4U, 8U}) {
    const relay_job job = b.cut_into(parts).job();
    const auto variant_with = [&](std::size_t bytes) {
      const relay_layout layout(b.graph, {}, {bytes, parts});
      EXPECT_EQ(layout.job().parts, is_cluster(layout.variant()) ? parts : 1U);
      EXPECT_EQ(layout.short_places.empty(), has_messages_in_device(layout.variant()));
      return layout.variant();
    };
    const std::size_t all = relay_memory_bytes(job, relay_variant::cluster),
                      messages = relay_memory_bytes(job, relay_variant::cluster_shared),
                      least = relay_memory_bytes(job, relay_variant::cluster_device);
    EXPECT_EQ(variant_with(all), relay_variant::cluster);
    if (parts == 1) {
      EXPECT_EQ(variant_with(all - 8), relay_variant::registers) << "one block alone has a variant without parts";
      EXPECT_EQ(variant_with(least), relay_variant::device);
      continue;
    }
    EXPECT_EQ(variant_with(all - 8), relay_variant::cluster_shared);
    EXPECT_EQ(variant_with(messages), relay_variant::cluster_shared);
    EXPECT_EQ(variant_with(messages - 8), relay_variant::cluster_device);
    EXPECT_EQ(variant_with(least), relay_variant::cluster_device);
    EXPECT_EQ(variant_with(least - 8), relay_variant::device);
  }
}

} // namespace
} // namespace cudaq::qec::realtime::gpu

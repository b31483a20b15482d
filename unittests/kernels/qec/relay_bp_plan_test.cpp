// SPDX-License-Identifier: Apache-2.0
// Blocks of a chain of relay-bp on a GPU that other decoders use, too.
#include "kernels/qec/relay_bp/relay_bp_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace cudaq::qec::realtime::gpu {
namespace {

using blocks_list = std::vector<std::uint32_t>;

/// 132 multiprocessors in groups of 16 and 18.
const std::vector<std::uint32_t> kGroups{16, 16, 16, 16, 16, 16, 18, 18};

relay_gpu gpu_of(const std::vector<std::uint32_t> &groups) {
  relay_gpu gpu{"a GPU", 0, {}, {}};
  for (const std::uint32_t multiprocessors : groups) {
    gpu.multiprocessors += multiprocessors;
    for (std::size_t k = 0; k < kRelaySizes; ++k)
      gpu.max_chains.of_size[k] += multiprocessors >> k;
  }
  return gpu;
}

TEST(RelayPlan, TakesTheMostBlocksThatLeaveHalfOfAGpuThatIsFree) {
  const relay_gpu gpu = gpu_of(kGroups);
  EXPECT_EQ(*relay_blocks_to_try(gpu, 1, 0), (blocks_list{8, 4, 2, 1}));
  EXPECT_EQ(*relay_blocks_to_try(gpu, 8, 0), (blocks_list{8, 4, 2, 1}));
  EXPECT_EQ(*relay_blocks_to_try(gpu, 9, 0), (blocks_list{4, 2, 1}));
  EXPECT_EQ(*relay_blocks_to_try(gpu, 16, 0), (blocks_list{4, 2, 1}));
  EXPECT_EQ(*relay_blocks_to_try(gpu, 64, 0), blocks_list{1});
  EXPECT_EQ(*relay_blocks_to_try(gpu, 132, 0), blocks_list{1});
  EXPECT_EQ(*relay_blocks_to_try(gpu, 8, 4), blocks_list{4}) << "what the user wants";
}

TEST(RelayPlan, TakesFewerBlocksBesideOtherDecoders) {
  relay_gpu gpu = gpu_of(kGroups);
  gpu.taken.add(16, 4); // 64 multiprocessors
  EXPECT_EQ(*relay_blocks_to_try(gpu, 1, 0), (blocks_list{4, 2, 1})) << "the 16 may be in all groups";
  gpu.taken.add(60, 1);
  EXPECT_EQ(*relay_blocks_to_try(gpu, 8, 0), blocks_list{1});
  gpu.taken.remove(16, 4);
  gpu.taken.remove(60, 1);
  EXPECT_EQ(gpu.taken.blocks(), 0U);
  EXPECT_EQ(*relay_blocks_to_try(gpu, 1, 0), (blocks_list{8, 4, 2, 1}));
}

TEST(RelayPlan, RefusesWithTheNumbers) {
  relay_gpu gpu = gpu_of(kGroups);
  EXPECT_EQ(relay_blocks_to_try(gpu, 133, 0).text(), "ensemble is 133; a GPU has 132 multiprocessors, and each chain "
                                                     "needs one for each block");
  gpu.taken.add(16, 4);
  EXPECT_EQ(relay_blocks_to_try(gpu, 69, 0).text(),
            "ensemble is 69; a GPU has 132 multiprocessors, and each chain needs one for each block; other decoders of "
            "this process have taken 64");
  EXPECT_EQ(relay_blocks_to_try(gpu, 2, 8).text(),
            "ensemble is 2, blocks is 8; a GPU has 132 multiprocessors, and each chain needs one for each block; other "
            "decoders of this process have taken 64; there is room for 0 chain(s) of 8 neighbouring blocks");
  gpu.max_chains = {{132, 0, 0, 0}};
  EXPECT_EQ(relay_blocks_to_try(gpu, 1, 2).text(), "ensemble is 1, blocks is 2; a GPU has no clusters of so many "
                                                   "blocks");
  EXPECT_EQ(*relay_blocks_to_try(gpu, 1, 0), blocks_list{1});
}

// The promise of room_for, against a GPU that puts each chain into any group with room.
TEST(RelayPlan, HasRoomForWhatItPlansWhereverTheOthersAre) {
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  int planned = 0;
  for (int run = 0; run < 2000; ++run) {
    relay_gpu gpu = gpu_of(kGroups);
    std::vector<std::uint32_t> left = kGroups;
    for (std::uint32_t decoder = 0, decoders = 1 + below(6); decoder < decoders; ++decoder) {
      const auto plan = relay_blocks_to_try(gpu, 1 + below(20), below(2) == 0 ? 0 : 1U << below(4));
      if (plan.failed())
        continue;
      const std::uint32_t blocks = plan->front();
      for (std::uint32_t chain = 0, chains = gpu.room_for(blocks); chain < std::min(chains, 20U); ++chain) {
        std::vector<std::size_t> with_room;
        for (std::size_t g = 0; g < left.size(); ++g)
          if (left[g] >= blocks)
            with_room.push_back(g);
        ASSERT_FALSE(with_room.empty()) << "run " << run << ", chain " << chain << " of " << chains;
        left[with_room[random() % with_room.size()]] -= blocks;
        gpu.taken.add(1, blocks);
        ++planned;
      }
    }
  }
  EXPECT_GT(planned, 10000);
}

} // namespace
} // namespace cudaq::qec::realtime::gpu

// SPDX-License-Identifier: Apache-2.0
// What dump_state says about blocks of the configuration that no kernel of the library uses.
#include "lib/api/device_path/idle_blocks.h"
#include "unittests/support/host_fixture.h"

namespace cudaq::realtime::test {
namespace {

std::string line_for(std::uint32_t blocks, std::uint32_t threads, std::uint32_t ordering,
                     cudaq_kernel_type_t kernel = CUDAQ_KERNEL_REGULAR, std::uint32_t slots = 64,
                     cudaq_dispatch_mode_t mode = CUDAQ_DISPATCH_DEVICE_CALL) {
  cudaq_dispatcher_config_t config{};
  config.num_blocks = blocks;
  config.threads_per_block = threads;
  config.num_slots = slots;
  config.kernel_type = kernel;
  config.dispatch_mode = mode;
  cudaq_dispatcher_options_t options{};
  options.ordering = ordering;
  return detail::describe_idle_blocks(config, options);
}

// Known failure 72.
TEST(IdleBlocks, FifoNamesTheBlocksThatAreNotLaunched) {
  const std::string line = line_for(8, 32, CUDAQ_ORDERING_FIFO);
  EXPECT_EQ(line.rfind("7 of 8 blocks are not launched: ordering FIFO", 0), 0u) << line;
  EXPECT_EQ(line_for(0, 0, CUDAQ_ORDERING_FIFO), "");
  EXPECT_EQ(line_for(1, 256, CUDAQ_ORDERING_FIFO), "");
}

TEST(IdleBlocks, AnyNamesTheWarpsThatHaveNoSlots) {
  EXPECT_EQ(line_for(2, 32, CUDAQ_ORDERING_ANY), "");
  EXPECT_EQ(line_for(1, 64, CUDAQ_ORDERING_ANY), "");
  const std::string line = line_for(8, 32, CUDAQ_ORDERING_ANY);
  EXPECT_EQ(line.rfind("6 of 8 warps are not launched: a ring of 64 slots keeps 2 busy", 0), 0u) << line;
}

TEST(IdleBlocks, OtherKernelsSayItTooAndACooperativeOneUsesAll) {
  EXPECT_EQ(line_for(8, 128, CUDAQ_ORDERING_FIFO, CUDAQ_KERNEL_COOPERATIVE), "");
  EXPECT_EQ(line_for(4, 32, CUDAQ_ORDERING_FIFO, CUDAQ_KERNEL_UNIFIED, 0).rfind("3 of 4 blocks", 0), 0u);
  EXPECT_EQ(line_for(4, 32, CUDAQ_ORDERING_ANY, CUDAQ_KERNEL_REGULAR, 64, CUDAQ_DISPATCH_GRAPH_LAUNCH)
                .rfind("num_blocks 4 is not used", 0),
            0u);
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// cudaq_dispatcher_dump_state of a dispatcher that runs names the blocks that its kernel does not use.
// unittests/api/idle_blocks_test.cpp has the lines for all kernels.
#include "unittests/fault_injection/device_run.h"

namespace cudaq::realtime::test {
namespace {

class IdleBlocks : public device_run_test {
protected:
  /// The dump of a run that has answered a request; after it, the dump of the run that has ended says the same.
  static std::string dump_of(const device_run_shape &shape) {
    device_run run(shape);
    run.closed.open();
    EXPECT_EQ(run.dump().find("not launched"), std::string::npos) << "it has not started";
    EXPECT_EQ(run.start(), CUDAQ_OK) << cudaq_last_error_message();
    EXPECT_EQ(run.client.call(device_run::kFn, {1}).header.status, 0);
    const std::string text = run.dump();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(run.get));
    EXPECT_EQ(text.find("not launched") == std::string::npos, run.dump().find("not launched") == std::string::npos);
    return text;
  }
  static bool has_line(const std::string &text, const std::string &begin) {
    return text.find("\n" + begin) != std::string::npos;
  }
};

// Known failure 72.
TEST_F(IdleBlocks, DumpStateNamesTheBlocksOfAFifoRun) {
  const std::string text = dump_of({"", CUDAQ_ORDERING_FIFO, 8, 32});
  EXPECT_TRUE(has_line(text, "7 of 8 blocks are not launched: ordering FIFO")) << text;
}

TEST_F(IdleBlocks, DumpStateNamesTheWarpsOfAnAnyRun) {
  const std::string text = dump_of({"", CUDAQ_ORDERING_ANY, 8, 32, {64, 256, false}});
  EXPECT_TRUE(has_line(text, "6 of 8 warps are not launched: a ring of 64 slots keeps 2 busy")) << text;
}

TEST_F(IdleBlocks, DumpStateSaysNothingWhenAllBlocksAreUsed) {
  for (const device_run_shape &all_used :
       {device_run_shape{}, device_run_shape{"", CUDAQ_ORDERING_ANY, 2, 32, {64, 256, false}}}) {
    const std::string text = dump_of(all_used);
    EXPECT_EQ(text.find("not launched"), std::string::npos) << text;
  }
}

} // namespace
} // namespace cudaq::realtime::test

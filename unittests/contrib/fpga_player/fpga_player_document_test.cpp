// SPDX-License-Identifier: Apache-2.0
// docs/transport/fpga_player.md lists every option of cudaq-realtime-fpga-player, and no other option.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/documented_options.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

TEST(FpgaPlayerCommandLine, IsTheOneThatItsPageDescribes) {
  expect_options_of_page(CUDAQ_FPGA_PLAYER_PATH, CUDAQ_FPGA_PLAYER_PAGE);
}

} // namespace
} // namespace cudaq::realtime::tools::test

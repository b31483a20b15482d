// SPDX-License-Identifier: Apache-2.0
// docs/command_line.md lists every option of every subcommand, and no other option.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/documented_options.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

// Known failure 69.
TEST(CommandLine, IsTheOneThatItsPageDescribes) {
  if (run_program("demo --help").exit_code != 0)
    GTEST_SKIP() << "this build has no decoders, so no demo and no pipeline";
  expect_options_of_page(CUDAQ_TOOL_PATH, CUDAQ_COMMAND_LINE_PAGE);
}

} // namespace
} // namespace cudaq::realtime::tools::test

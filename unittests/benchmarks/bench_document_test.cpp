// SPDX-License-Identifier: Apache-2.0
// docs/guide/benchmarks.md lists every option of cudaq-realtime-bench, and no other option.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/documented_options.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

TEST(BenchCommandLine, IsTheOneThatItsPageDescribes) {
  if (run_program("decoding --help").exit_code != 0)
    GTEST_SKIP() << "this build has no decoders, so no `decoding` and no `pipeline`";
  expect_options_of_page(CUDAQ_TOOL_PATH, CUDAQ_BENCHMARKS_PAGE);
}

} // namespace
} // namespace cudaq::realtime::tools::test

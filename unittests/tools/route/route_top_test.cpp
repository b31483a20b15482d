// SPDX-License-Identifier: Apache-2.0
// `top` on the counters of a router that runs.
#include "unittests/tools/route/routed_servers.h"

namespace cudaq::realtime::tools::test {
namespace {

TEST(RouteTop, ShowsEachNodeWithItsState) {
  if (no_yaml())
    GTEST_SKIP() << "this build has no YAML parser";
  const scratch_folder folder;
  routed_servers servers(folder.path(), 2, "tcp");
  servers.start_router("lost_after_ms: 20000\n");
  ASSERT_EQ(servers.wait_joined().size(), 2U) << servers.errors();
  const auto report =
      run_good_program("top --interval 0.1 --count 1 --json --counters " + (folder.path() / "counters").string());
  ASSERT_FALSE(report.is_discarded());
  const auto &nodes = report.at("samples").at(0).at("nodes");
  ASSERT_EQ(nodes.size(), 2U);
  for (std::size_t n = 0; n < 2; ++n) {
    EXPECT_EQ(nodes.at(n).at("name"), routed_servers::name(static_cast<std::uint32_t>(n)));
    EXPECT_EQ(nodes.at(n).at("joined"), true);
  }
}

} // namespace
} // namespace cudaq::realtime::tools::test

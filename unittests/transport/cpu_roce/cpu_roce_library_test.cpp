// SPDX-License-Identifier: Apache-2.0
// The library of the provider, on a machine that need not have an RDMA adapter.
#include "unittests/support/program_paths.h"
#include "unittests/transport/datagram/datagram_provider_library.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::test {
namespace {

const datagram_provider_library &library() {
  static const datagram_provider_library loaded(CUDAQ_CPU_ROCE_PROVIDER);
  return loaded;
}

TEST(CpuRoceLibrary, SaysThatThereIsNoSuchAdapter) {
  ASSERT_NE(library().table, nullptr) << library().error;
  EXPECT_EQ(library().table->version, 2) << "a loader of version 2 refuses a higher one";
  EXPECT_EQ(library().table->set_function_table, nullptr);
  cudaq_realtime_bridge_handle_t handle = nullptr;
  EXPECT_NE(library().create({"--device=no_such_adapter"}, handle), CUDAQ_OK);
  EXPECT_EQ(handle, nullptr);
  EXPECT_NE(library().error_text().find("--device no_such_adapter"), std::string::npos) << library().error_text();
}

TEST(CpuRoceLibrary, HasNoCountsOfAnInstanceThatDoesNotExist) {
  ASSERT_NE(library().table, nullptr) << library().error;
  ASSERT_TRUE(library().counts_messages());
  cudaq_cpu_roce_statistics_t counts;
  EXPECT_EQ(library().messages("transport=cpu_roce", counts), CUDAQ_ERR_INVALID_ARG);
  EXPECT_NE(library().error_text().find("no instance has this line"), std::string::npos) << library().error_text();
}

} // namespace
} // namespace cudaq::realtime::test

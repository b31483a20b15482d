// SPDX-License-Identifier: Apache-2.0
// A server whose allocations fail. A program of its own: they fail in all of it.
#include "unittests/qec/server/server_test_support.h"
#include "unittests/support/counted_memory.h"

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

std::vector<decoder_setup> two_setups(unsigned shift) {
  std::vector<decoder_setup> setups;
  for (const std::uint64_t id : {1U, 2U})
    setups.push_back({{.id = id, .sequence = false}, unit_for(rotated_model(4, shift))});
  return setups;
}

TEST(ServerOutOfMemory, AReloadThatFailsLeavesAllOldModelsInUse) {
  if (cudaq::realtime::test::kSanitized)
    GTEST_SKIP() << "sanitizers interpose the same functions";
  decoding_server server(two_setups(0));
  constexpr int kEnough = 200;
  int failures = 0;
  for (bool is_applied = false; !is_applied && failures < kEnough;) {
    std::vector<decoder_setup> next = two_setups(1);
    const auto deadline = soon();
    fail_after = failures;
    try {
      is_applied = server.reload(std::move(next), deadline).outcome == reload_outcome::applied;
    } catch (const std::bad_alloc &) {
      ++failures;
    }
    fail_after = -1;
    for (const std::uint64_t id : {1U, 2U}) {
      ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(id, 0, "1000")), answered(server_status::ok));
      ASSERT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(id, 4, true)),
                answered(server_status::ok, is_applied ? "0100" : "1000"))
          << id << ", failure " << failures;
    }
  }
  EXPECT_GT(failures, 0);
  EXPECT_LT(failures, kEnough);
}

} // namespace

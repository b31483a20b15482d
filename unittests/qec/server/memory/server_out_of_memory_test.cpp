// SPDX-License-Identifier: Apache-2.0
// A server whose allocations fail. A program of its own: they fail in all of it.
#include "unittests/qec/server/readout/server_readout_support.h"
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

TEST(ServerOutOfMemory, OnlyTheTextAboutARefusedReadoutNeedsMemory) {
  if (cudaq::realtime::test::kSanitized)
    GTEST_SKIP() << "sanitizers interpose the same functions";
  unit_readout readout(readout_table_for());
  const bytes soft = soft_bytes_of({3, 7, 8}, soft_kind::u8), flags = flag_bytes_of({0, 0, 0, 0, 2}),
              wrong = flag_bytes_of({0, 0, 0, 0, 3});
  const auto take = [&](const bytes &leakage, bool without_memory) {
    fail_after = without_memory ? 0 : -1;
    const decode_status status = readout.make_list({.soft = soft, .kind = soft_kind::u8, .leakage = leakage});
    const bool has_failed = without_memory && fail_after == -1;
    fail_after = -1;
    return std::pair(status, has_failed);
  };
  for (int shot = 0; shot < 2; ++shot) {
    EXPECT_EQ(take(flags, true), std::pair(decode_status::ok, false)) << "the list has its memory since the start";
    EXPECT_FALSE(readout.list().empty());
    EXPECT_EQ(take(wrong, true), std::pair(decode_status::internal_error, true));
    EXPECT_STREQ(readout.fault(), "out of memory");
    EXPECT_TRUE(readout.list().empty());
    EXPECT_EQ(take(wrong, false), std::pair(decode_status::bad_probability, false));
    EXPECT_STREQ(readout.fault(), "flag 4 has the value 3, accepted: 0, 1, 2");
  }
}

} // namespace

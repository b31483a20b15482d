// SPDX-License-Identifier: Apache-2.0
// How a member of a shared ring ends, and what happens to its requests and memory.
#include "unittests/host_dispatcher/traffic.h"
#include "unittests/support/api_fixture.h"

#include <malloc.h>

namespace cudaq::realtime::test {
namespace {

cudaq_dispatcher_config_t shared_config(const ring_shape &shape) {
  cudaq_dispatcher_config_t config = host_config(shape);
  config.shared_ring_mode = 1;
  return config;
}

/// Starts a member as the default owner, which answers requests of unknown functions.
void start_default_owner(const host_dispatcher_handle &member) {
  cudaq_dispatcher_options_t options = default_options();
  options.default_owner = 1;
  options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(member.get, &options));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(member.get));
}

// Known failure 14.
TEST(SharedRingMemberEnd, EndedByItsOwnFlagLeavesItsRequestsToTheDefaultOwner) {
  const ring_shape shape{4, 128, false};
  host_ring ring(shape);
  manager_handle manager;
  host_dispatcher_handle ends(manager.get, ring, {host_entry("reverse", reverse_handler)}, shared_config(shape));
  host_dispatcher_handle stays(manager.get, ring, {host_entry("other", reverse_handler)}, shared_config(shape));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(ends.get));
  ASSERT_NO_FATAL_FAILURE(start_default_owner(stays));
  ring_client client(ring);
  EXPECT_EQ(client.call(fnv1a_hash("reverse"), {1, 2}, 1).result, (std::vector<std::uint8_t>{2, 1}));
  std::atomic_ref<int>(const_cast<int &>(ends.shutdown)).store(1);
  EXPECT_TRUE(eventually([&] { return ends.state() == CUDAQ_DISPATCHER_STOPPED; }));
  for (std::uint32_t id = 2; id < 12; ++id) // several laps, without a call of stop
    EXPECT_EQ(client.call(fnv1a_hash("reverse"), {1}, id).header.status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_start(ends.get));
  EXPECT_EQ(client.call(fnv1a_hash("reverse"), {3, 4}, 12).header.status, 0);
}

// Known failure 12.
TEST(SharedRingMemberEnd, WiredAnewManyTimesDoesNotGrow) {
  if (kSanitized)
    GTEST_SKIP() << "mallinfo2 does not count a sanitizer's allocator";
  const ring_shape shape{4096, 64, false};
  host_ring ring(shape);
  manager_handle manager;
  host_dispatcher_handle dispatcher(manager.get, ring, {host_entry("reverse", reverse_handler)}, shared_config(shape));
  const auto cycle = [&] {
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(dispatcher.get, &ring.ring));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_start(dispatcher.get));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(dispatcher.get));
  };
  cycle();
  const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  for (int i = 0; i < 100; ++i)
    cycle();
  EXPECT_LT(mallinfo2().uordblks + mallinfo2().hblkhd, before + 100000) << "a leaked job table alone takes 500 kB";
}

} // namespace
} // namespace cudaq::realtime::test

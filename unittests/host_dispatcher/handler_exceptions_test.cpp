// SPDX-License-Identifier: Apache-2.0
// A handler that throws on the thread of a caller. On the threads of a dispatcher: ErrorAnswers in unittests/api.
#include "cudaq/realtime/detail/base/flag_word.h"
#include "unittests/host_dispatcher/traffic.h"

namespace cudaq::realtime::test {
namespace {

void v1_throws_on_request(const void *rx_slot, void *tx_slot, std::size_t slot_size) {
  reverse_handler(rx_slot, tx_slot, slot_size); // the good frame must be replaced after the throw
  if (static_cast<const std::uint8_t *>(rx_slot)[CUDAQ_RPC_HEADER_SIZE] != 0)
    throw 42;
}

// Known failure 17.
TEST(HandlerExceptionInLoop, LeavesTheLoopOnACallersThread) {
  host_ring ring({4, 64, false});
  cudaq_function_entry_t entry = host_entry("v1", v1_throws_on_request);
  volatile int shutdown = 0;
  std::uint64_t processed = 0;
  HostDispatcherConfig config = loop_over(ring.ring);
  config.num_slots = 4;
  config.function_table = &entry;
  config.function_table_count = 1;
  config.shutdown_flag = &shutdown;
  config.stats_counter = &processed;
  cudaq_status_t status = CUDAQ_ERR_INTERNAL;
  std::thread loop([&] { status = host_dispatcher_loop(config); });
  ring_client client(ring);
  EXPECT_EQ(client.call(fnv1a_hash("v1"), {1}, 1).header.status, CUDAQ_RPC_ERR_HANDLER_THREW);
  EXPECT_EQ(client.call(fnv1a_hash("v1"), {0}, 2).header.status, 0);
  detail::store_release(shutdown, 1);
  loop.join();
  EXPECT_EQ(status, CUDAQ_OK);
  EXPECT_EQ(processed, 2u);
}

} // namespace
} // namespace cudaq::realtime::test

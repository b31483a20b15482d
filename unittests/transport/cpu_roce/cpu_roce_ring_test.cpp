// SPDX-License-Identifier: Apache-2.0
// The thread of the ring shape at its end, over the test double of an adapter. The test plays the dispatcher.
#include "unittests/transport/cpu_roce/cpu_roce_rig.h"

namespace cudaq::realtime::test {
namespace {

/// Ends the thread while a dispatcher is between the two stores of its answer: tx is set, rx is cleared 5 ms later.
/// True: the peer gets the answer.
bool answer_arrives_at_the_end() {
  exchange_rig rig;
  detail::cpu_roce_ring ring(rig.exchange);
  EXPECT_TRUE(ring.launch().ok());
  EXPECT_TRUE(rig.write(0, request_frame(7)));
  EXPECT_TRUE(eventually([&] { return detail::load_acquire(rig.exchange.rx_flag(0)) != 0; }));
  const cudaq_rpc_response_t header = {CUDAQ_RPC_MAGIC_RESPONSE, 0, 0, 7, 1007};
  std::memcpy(rig.memory.tx_slot(0), &header, sizeof(header));
  detail::store_release(rig.exchange.tx_flag(0), reinterpret_cast<std::uint64_t>(rig.memory.tx_slot(0)));
  std::thread control([&] { EXPECT_TRUE(ring.disconnect().ok()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  detail::store_release<std::uint64_t>(rig.exchange.rx_flag(0), 0);
  control.join();
  return rig.next_answer().request_id == 7;
}

TEST(CpuRoceRing, SendsAnAnswerAtItsEndWhoseRequestFlagIsStillSet) {
  bool arrived = false;
  for (int attempt = 0; attempt < 10 && !arrived; ++attempt) // the end takes 100 ms at most: a busy machine may be late
    arrived = answer_arrives_at_the_end();
  EXPECT_TRUE(arrived);
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The slots of an emulated control system, against a server that is the test.
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "tools/emulate/slot_link.h"

#include <array>
#include <gtest/gtest.h>

namespace cudaq::realtime::tools {
namespace {

class test_slots final : public slot_link {
public:
  test_slots() {
    ring.rx_flags_host = rx.data();
    ring.tx_flags_host = tx.data();
    ring.rx_data_host = requests.data();
    ring.tx_data_host = answers.data();
    ring.rx_stride_sz = ring.tx_stride_sz = 64;
    use_ring(ring, 2);
  }
  bool alive() override { return true; }
  std::string describe() const override { return "a test"; }
  bool sends(std::uint32_t id) { return send(id, 1, {}, 0); }

  cudaq_ringbuffer_t ring{};
  std::array<volatile std::uint64_t, 2> rx{}, tx{};
  alignas(64) std::array<std::uint8_t, 128> requests{}, answers{};
};

TEST(SlotLink, UsesTheSlotOfADroppedRequestAgainAfterItWasGivenUp) {
  test_slots slots;
  ASSERT_TRUE(slots.sends(0) && slots.sends(1));
  slots.rx[0] = 0; // the server drops it
  slots.give_up(0);
  EXPECT_TRUE(slots.sends(2));
  EXPECT_FALSE(slots.sends(3)) << "the next slot has a request";
}

TEST(SlotLink, LeavesTheSlotOfARequestThatMayStillBeAnsweredToTheServer) {
  test_slots slots;
  ASSERT_TRUE(slots.sends(0) && slots.sends(1));
  slots.give_up(0);
  EXPECT_FALSE(slots.sends(2)) << "the rx flag is set";
  slots.tx[0] = CUDAQ_TX_FLAG_IN_FLIGHT;
  slots.rx[0] = 0;
  EXPECT_FALSE(slots.sends(2)) << "it is in flight";
}

} // namespace
} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// White box: the router of a shared ring with members on a device. The test plays the device: it reads and writes the
// words of their inboxes.
#include "lib/api/back_end.h"
#include "lib/shared_ring/device_member.h"
#include "unittests/host_dispatcher/traffic.h"

namespace cudaq::realtime::test {
namespace {

using namespace detail;

constexpr ring_shape kShape{4, 128, false};

/// A member and its device. The device takes its requests in order, and answers when the test calls for it.
struct played_device {
  played_device(const std::shared_ptr<ring_router> &router, std::vector<std::uint32_t> ids, bool default_owner = false,
                bool answer_unknown = true, std::uint8_t mode = CUDAQ_DISPATCH_DEVICE_CALL)
      : slots(router->jobs()->num_slots), memory(ring_inbox::bytes(slots) / 8),
        inbox(ring_inbox::in(memory.data(), slots)) {
    std::vector<cudaq_function_entry_t> entries(ids.size());
    for (std::size_t e = 0; e < ids.size(); ++e) {
      entries[e].function_id = ids[e];
      entries[e].dispatch_mode = mode;
    }
    function_index index;
    EXPECT_EQ(index.build(entries.data(), static_cast<std::uint32_t>(entries.size())).what,
              function_index::problem::none);
    judge_rules rules;
    rules.served_modes = 1u << CUDAQ_DISPATCH_DEVICE_CALL;
    rules.answer_unknown = answer_unknown;
    member.prepare({router, index, rules, default_owner, memory.data(), 1});
  }
  /// Takes the next request of the inbox. Returns its slot, or -1.
  int take() {
    std::uint32_t slot = 0;
    if (!inbox.taken(position, sequence, slot))
      return -1;
    taken_as = sequence++;
    position = position + 1 == slots ? 0 : position + 1;
    return static_cast<int>(slot);
  }

  const std::uint32_t slots;
  std::vector<std::uint64_t> memory;
  ring_inbox inbox;
  device_member member;
  std::uint32_t position = 0;
  std::uint64_t sequence = 1, taken_as = 0;
};

class DeviceMember : public ::testing::Test {
protected:
  std::uint32_t route() {
    thread_counters counts;
    return router->route(32, by->member, counts);
  }
  /// Sends a request of function `id` and routes it.
  std::uint32_t send(std::uint32_t id) {
    const std::uint32_t slot = client.send(id, {}, ++sent);
    by = by != nullptr ? by : &device;
    route();
    return slot;
  }
  job_phase phase(std::uint32_t slot) const { return (*router->jobs())[slot].state.phase(); }
  void publish(int slot) const {
    write_response(view.tx_slot(static_cast<std::uint32_t>(slot)), {}, 0, 0);
    view.publish(static_cast<std::uint32_t>(slot));
  }
  void answer(played_device &d) const {
    const int slot = d.take();
    ASSERT_GE(slot, 0);
    publish(slot);
    d.inbox.post_answered(static_cast<std::uint32_t>(slot), d.taken_as);
  }

  host_ring ring{kShape};
  ring_client client{ring};
  const slot_ring view = view_of(ring.ring, host_config(kShape), ring_side::host);
  std::shared_ptr<ring_router> router = [this] {
    auto made = std::make_shared<ring_router>(std::make_shared<job_table>(kShape.num_slots, 1));
    made->jobs()->bind(view);
    return made;
  }();
  played_device device{router, {1, 2}};
  played_device *by = nullptr; ///< the member that routes
  std::uint32_t sent = 0;
};

// Known failure 14.
TEST_F(DeviceMember, IsRefusedAFunctionOrADefaultOwnershipThatAnotherHas) {
  ASSERT_TRUE(router->attach(device.member).ok());
  played_device same(router, {3, 2});
  const expected<> result = router->attach(same.member);
  EXPECT_EQ(result.status(), CUDAQ_ERR_INVALID_ARG);
  EXPECT_NE(result.text().find("function_id 0x00000002: another dispatcher"), std::string::npos) << result.text();
  router->begin_leaving(device.member);
  EXPECT_NE(router->attach(same.member).text().find("still stopping"), std::string::npos);
  router->remove(device.member);
  EXPECT_TRUE(router->attach(same.member).ok());
  played_device owner(router, {4}, true), second(router, {5}, true);
  EXPECT_TRUE(router->attach(owner.member).ok());
  EXPECT_NE(router->attach(second.member).text().find("default_owner"), std::string::npos);
}

TEST_F(DeviceMember, IsGivenItsRequestsInOrderAndNoOthers) {
  ASSERT_TRUE(router->attach(device.member).ok());
  const std::uint32_t own = send(2), foreign = send(9), next = send(1);
  EXPECT_EQ(device.take(), static_cast<int>(own));
  EXPECT_EQ(device.take(), static_cast<int>(next));
  EXPECT_EQ(device.take(), -1);
  EXPECT_EQ(phase(foreign), job_phase::parked);
}

// A slot belongs to the device until the device's word reports the answer, even if the slot is free or filled again.
TEST_F(DeviceMember, KeepsItsSlotUntilItHasReportedItsAnswerAndThenTheRefillIsSeen) {
  played_device other(router, {7});
  ASSERT_TRUE(router->attach(device.member).ok());
  ASSERT_TRUE(router->attach(other.member).ok());
  for (int lap = 0; lap < 10; ++lap) {
    const auto slot = static_cast<std::uint32_t>(lap % 2);
    client.set_next_slot(slot);
    router->jobs()->cursor.set(slot);
    ASSERT_EQ(send(1), slot);
    ASSERT_EQ(device.take(), static_cast<int>(slot));
    publish(static_cast<int>(slot));
    (void)client.collect(slot);
    client.set_next_slot(slot);
    router->jobs()->cursor.set(slot);
    client.send(7, {}, 0); // a new request in the same slot, for the other member
    EXPECT_EQ(route(), 0u);
    EXPECT_FALSE(router->jobs()->resync_cursor(job_table::kResyncSlots));
    EXPECT_EQ(other.take(), -1);
    device.inbox.post_answered(slot, device.taken_as);
    EXPECT_EQ(route(), 1u);
    ASSERT_NO_FATAL_FAILURE(answer(other));
    (void)client.collect(slot);
  }
}

TEST_F(DeviceMember, ThatLeavesGivesBackWhatItHasNotAnsweredAndNothingElse) {
  ASSERT_TRUE(router->attach(device.member).ok());
  for (int n = 0; n < 3; ++n)
    send(1);
  ASSERT_NO_FATAL_FAILURE(answer(device)); // answers slot 0; no router has read its word yet
  ASSERT_EQ(device.take(), 1);             // slot 1 is in a handler when the kernel ends
  router->begin_leaving(device.member);
  send(1);
  EXPECT_EQ(phase(3), job_phase::parked) << "a request for a leaving member stays in its slot";
  router->remove(device.member);
  EXPECT_EQ(phase(0), job_phase::open);
  for (const std::uint32_t slot : {1u, 2u, 3u})
    EXPECT_EQ(phase(slot), job_phase::parked);
  played_device back(router, {1});
  ASSERT_TRUE(router->attach(back.member).ok());
  for (const int slot : {1, 2, 3})
    EXPECT_EQ(back.take(), slot) << "oldest first";
  EXPECT_EQ(back.take(), -1);
}

// A fault after the answer was written and before the device reported it leaves a slot like this.
TEST_F(DeviceMember, AnAnswerThatIsOutStandsWhenItsDeviceHasEnded) {
  played_device owner(router, {7}, true);
  ASSERT_TRUE(router->attach(device.member).ok());
  ASSERT_TRUE(router->attach(owner.member).ok());
  const std::uint32_t slot = send(1);
  ASSERT_EQ(device.take(), static_cast<int>(slot));
  write_response(view.tx_slot(slot), {}, 5, 0);
  view.publish_tx(slot);
  router->begin_leaving(device.member);
  router->remove(device.member);
  EXPECT_EQ(owner.take(), -1);
  EXPECT_EQ(view.ready(slot), 0u);
  EXPECT_EQ(phase(slot), job_phase::open);
  EXPECT_EQ(client.collect(slot).header.status, 5);
}

// A member's table may contain functions that other members serve in their own mode.
TEST_F(DeviceMember, OwnsWhatItServesInItsModeOnly) {
  played_device other(router, {1}, false, true, CUDAQ_DISPATCH_HOST_CALL);
  ASSERT_TRUE(router->attach(other.member).ok()) << "its table holds function 1 in a mode that it does not serve";
  by = &other;
  const std::uint32_t unserved = send(1);
  EXPECT_EQ(other.take(), -1) << "a dispatcher that the manager does not know may serve it";
  ASSERT_TRUE(router->attach(device.member).ok());
  EXPECT_EQ(device.take(), static_cast<int>(unserved));
  const std::uint32_t served = send(1);
  EXPECT_EQ(device.take(), static_cast<int>(served));
  EXPECT_EQ(other.take(), -1);
}

TEST_F(DeviceMember, ThatIsTheDefaultOwnerRefusesWhatItsTableHasInAnotherMode) {
  played_device other(router, {1}, true, true, CUDAQ_DISPATCH_HOST_CALL);
  ASSERT_TRUE(router->attach(other.member).ok());
  by = &other;
  const std::uint32_t unserved = send(1);
  EXPECT_EQ(other.take(), static_cast<int>(unserved));
}

TEST_F(DeviceMember, ThatWasRemovedLeavesItsRequestsToTheDefaultOwner) {
  played_device owner(router, {7}, true);
  ASSERT_TRUE(router->attach(device.member).ok());
  ASSERT_TRUE(router->attach(owner.member).ok());
  send(1);
  EXPECT_EQ(owner.take(), -1);
  router->begin_leaving(device.member);
  send(2);
  EXPECT_EQ(owner.take(), -1) << "the leaving member may attach again";
  router->remove(device.member);
  EXPECT_EQ(owner.take(), 0);
  EXPECT_EQ(owner.take(), 1);
  by = &owner;
  send(2);
  EXPECT_EQ(owner.take(), 2);
}

// A dispatcher outside the manager answers slot 0, and the producer fills it again before the router looks.
TEST_F(DeviceMember, SeesASlotThatWasAnsweredOutsideAndFilledAgainInRingOrder) {
  played_device late(router, {5});
  ASSERT_TRUE(router->attach(device.member).ok());
  const std::uint32_t left = send(9);
  ASSERT_EQ(phase(left), job_phase::parked);
  publish(static_cast<int>(left));
  (void)client.collect(left);
  for (std::uint32_t n = 0; n < kShape.num_slots; ++n)
    client.send(5, {}, 100 + n);
  ASSERT_TRUE(router->attach(late.member).ok());
  EXPECT_EQ(late.take(), -1) << "the slot's request is younger than those of the slots before it";
  EXPECT_EQ(route(), kShape.num_slots);
  for (const int slot : {1, 2, 3, 0})
    EXPECT_EQ(late.take(), slot);
}

TEST_F(DeviceMember, DropsABadFrameInASlotThatWasAnsweredOutside) {
  ASSERT_TRUE(router->attach(device.member).ok());
  const std::uint32_t left = send(9);
  publish(static_cast<int>(left));
  (void)client.collect(left);
  client.set_next_slot(left);
  router->jobs()->cursor.set(left);
  CUDAQ_ASSERT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring.ring, left, 1, nullptr, 0, 1, 0));
  ring.rx_slot(left)[0] ^= 1;
  cudaq_host_ringbuffer_signal_slot(&ring.ring, left);
  EXPECT_EQ(route(), 1u);
  EXPECT_TRUE(view.free_for_producer(left));
  EXPECT_EQ(device.take(), -1);
}

// The host thread that routes drops such requests. A kernel never gets them.
TEST_F(DeviceMember, SeesNeitherBadFramesNorUnknownIdsThatAreDropped) {
  played_device owner(router, {7}, true, false);
  ASSERT_TRUE(router->attach(device.member).ok());
  ASSERT_TRUE(router->attach(owner.member).ok());
  send(1);
  CUDAQ_ASSERT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring.ring, 1, 1, nullptr, 0, 1, 0));
  ring.rx_slot(1)[0] ^= 1;
  cudaq_host_ringbuffer_signal_slot(&ring.ring, 1);
  client.set_next_slot(2);
  send(9);
  EXPECT_EQ(device.take(), 0);
  EXPECT_EQ(device.take(), -1);
  EXPECT_EQ(owner.take(), -1);
  EXPECT_TRUE(view.free_for_producer(1) && view.free_for_producer(2));
  EXPECT_EQ(owner.member.counts().dropped_unknown_function.value(), 1u);
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// A second owner of a ring or of a control word is refused, as far as the library can know it.
#include "cudaq/realtime/detail/ring/ring_record.h"
#include "lib/api/ring_claims.h"
#include "unittests/host_dispatcher/traffic.h"
#include "unittests/support/api_fixture.h"

#include <array>

namespace cudaq::realtime::test {
namespace {

constexpr ring_shape kShape{8, 64, false};
const std::vector<cudaq_function_entry_t> kReverse{host_entry("reverse", reverse_handler)};

cudaq_status_t start(const host_dispatcher_handle &d) { return cudaq_dispatcher_start(d.get); }
cudaq_status_t stop(const host_dispatcher_handle &d) { return cudaq_dispatcher_stop(d.get); }

/// A dispatcher on a ring of the test.
std::unique_ptr<host_dispatcher_handle> make(const manager_handle &manager, const host_ring &ring,
                                             bool shared = false) {
  cudaq_dispatcher_config_t config = host_config(kShape);
  config.shared_ring_mode = shared;
  return std::make_unique<host_dispatcher_handle>(manager.get, ring,
                                                  shared ? std::vector<cudaq_function_entry_t>{} : kReverse, config);
}

// Two dispatchers that both serve a ring call the handlers more often than there are requests.
// Known failure 53.
TEST(RingOwners, ARingUnderTwoManagersIsRefused) {
  const host_ring ring(kShape);
  const manager_handle here, there;
  const auto first = make(here, ring), second = make(there, ring);
  CUDAQ_ASSERT_OK(start(*first));
  EXPECT_EQ(start(*second), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"another manager"}));
  ring_client client(ring);
  EXPECT_EQ(client.call(kReverse[0].function_id, {1, 2}).result, (std::vector<std::uint8_t>{2, 1}));
  CUDAQ_ASSERT_OK(stop(*first));
  CUDAQ_ASSERT_OK(start(*second));
  EXPECT_EQ(start(*first), CUDAQ_ERR_STATE);
  CUDAQ_ASSERT_OK(stop(*second));
  CUDAQ_ASSERT_OK(start(*first));
}

TEST(RingOwners, ASharedRingUnderTwoManagersIsRefusedUntilItsLastMemberStops) {
  const host_ring ring(kShape);
  const manager_handle here, there;
  const auto first = make_shared_host(here.get, ring), member = make(here, ring, true);
  const auto foreign = make_shared_host(there.get, ring);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_host_handler_v2(
      member->get, 1, [](cudaq_host_call_t *, void *) { return 0; }, nullptr, nullptr));
  CUDAQ_ASSERT_OK(start(*first));
  CUDAQ_ASSERT_OK(start(*member)); // members of one manager own the ring together
  EXPECT_EQ(start(*foreign), CUDAQ_ERR_STATE);
  CUDAQ_ASSERT_OK(stop(*first));
  EXPECT_EQ(start(*foreign), CUDAQ_ERR_STATE);
  CUDAQ_ASSERT_OK(stop(*member));
  CUDAQ_ASSERT_OK(start(*foreign));
}

TEST(RingOwners, OfTwoManagersThatStartAtTheSameTimeOneSucceeds) {
  const host_ring ring(kShape);
  const manager_handle managers[2];
  const std::array dispatchers{make(managers[0], ring), make(managers[1], ring)};
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> ready{0}, started{0}, refused{0};
    std::vector<std::thread> threads;
    for (const auto &d : dispatchers)
      threads.emplace_back([&] {
        ++ready;
        eventually([&] { return ready.load() == 2; });
        const cudaq_status_t status = start(*d);
        started += status == CUDAQ_OK;
        refused += status == CUDAQ_ERR_STATE;
      });
    for (std::thread &t : threads)
      t.join();
    ASSERT_EQ(started.load(), 1);
    ASSERT_EQ(refused.load(), 1);
    for (const auto &d : dispatchers)
      CUDAQ_ASSERT_OK(stop(*d));
  }
}

/// Memory for two rings of 8 slots. A test lets arrays of the two overlap.
struct two_rings {
  alignas(64) std::array<std::uint64_t, 4096> words{};
  cudaq_ringbuffer_t at(std::size_t first_word) {
    cudaq_ringbuffer_t r{};
    r.rx_flags_host = words.data() + first_word;
    r.tx_flags_host = words.data() + first_word + 8;
    r.rx_data_host = reinterpret_cast<std::uint8_t *>(words.data() + first_word + 16);
    r.tx_data_host = reinterpret_cast<std::uint8_t *>(words.data() + first_word + 16 + 64);
    r.rx_stride_sz = r.tx_stride_sz = 64;
    return r;
  }
};

TEST(RingOwners, OverlappingArraysOfTwoRingsAreRefusedAtStart) {
  two_rings memory;
  const manager_handle manager;
  const host_ring unused(kShape);
  const auto first = make(manager, unused), second = make(manager, unused);
  const cudaq_ringbuffer_t a = memory.at(0);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(first->get, &a));
  CUDAQ_ASSERT_OK(start(*first));
  const auto refused = [&](const char *mine, const char *theirs, const cudaq_ringbuffer_t &ring) {
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(second->get, &ring)); // known only at start: the first one may stop
    EXPECT_EQ(start(*second), CUDAQ_ERR_STATE) << mine << " over " << theirs;
    EXPECT_TRUE(error_names({mine, theirs, "another dispatcher"}));
  };
  cudaq_ringbuffer_t b = memory.at(1000);
  b.tx_flags_host = a.tx_flags_host + 7;
  refused("ringbuffer->tx_flags_host", "ringbuffer->tx_flags_host", b);
  b = memory.at(1000);
  b.rx_data_host = a.tx_data_host - 56; // the last slot of `a` begins before
  refused("ringbuffer->rx_data_host", "ringbuffer->rx_data_host", b);
  b = memory.at(1000);
  b.tx_data_host = a.rx_data_host;
  refused("ringbuffer->tx_data_host", "ringbuffer->rx_data_host", b);
  b = memory.at(1000);
  b.rx_flags_host = a.rx_flags_host + 1; // not the same ring: one slot further
  refused("ringbuffer->rx_flags_host", "ringbuffer->rx_flags_host", b);
  b = memory.at(1000);
  b.rx_data = a.rx_data_host + 64; // the device's view of the second ring
  refused("ringbuffer->rx_data", "ringbuffer->rx_data_host", b);
  b = memory.at(16 + 2 * 64); // directly after the first ring
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(second->get, &b));
  CUDAQ_EXPECT_OK(start(*second));
}

TEST(RingOwners, AStoppedDispatcherThatKeepsItsWiringBlocksNoOther) {
  two_rings memory;
  const manager_handle manager;
  const host_ring unused(kShape);
  const auto first = make(manager, unused), second = make(manager, unused);
  const cudaq_ringbuffer_t a = memory.at(0);
  cudaq_ringbuffer_t b = memory.at(1000);
  b.tx_data_host = a.tx_data_host;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(first->get, &a));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(second->get, &b));
  for (int round = 0; round < 3; ++round) {
    CUDAQ_ASSERT_OK(start(*first));
    EXPECT_EQ(start(*second), CUDAQ_ERR_STATE);
    CUDAQ_ASSERT_OK(stop(*first));
    CUDAQ_ASSERT_OK(start(*second));
    CUDAQ_ASSERT_OK(stop(*second));
  }
}

TEST(RingOwners, OneControlWordForTwoDispatchersIsRefused) {
  const host_ring ring(kShape), other_ring(kShape);
  const manager_handle manager;
  const auto first = make(manager, ring), second = make(manager, other_ring);
  CUDAQ_ASSERT_OK(start(*first));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_control(second->get, &first->shutdown, &second->processed));
  EXPECT_EQ(start(*second), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"shutdown_flag", "another dispatcher"}));
  EXPECT_EQ(load_acquire(first->shutdown), 0) << "the refused start has written the flag of the other";
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_control(second->get, &second->shutdown, &first->processed));
  EXPECT_EQ(start(*second), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"stats", "another dispatcher"}));
  auto *flag_in_counter = reinterpret_cast<volatile int *>(&first->processed);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_control(second->get, flag_in_counter, &second->processed));
  EXPECT_EQ(start(*second), CUDAQ_ERR_STATE);
  auto *counter_in_ring = reinterpret_cast<std::uint64_t *>(ring.ring.rx_data_host);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_control(second->get, &second->shutdown, counter_in_ring));
  EXPECT_EQ(start(*second), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"stats", "ringbuffer->rx_data_host"}));
  ring_client client(ring);
  EXPECT_EQ(client.call(kReverse[0].function_id, {7}).result, std::vector<std::uint8_t>{7});
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_control(second->get, &second->shutdown, &second->processed));
  CUDAQ_ASSERT_OK(start(*second));
}

/// Memory of a ring that the test destroys itself.
struct loose_ring {
  loose_ring() {
    cudaq_ringbuffer_options_t o;
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_options_init(&o, sizeof(o)));
    o.num_slots = kShape.num_slots;
    o.slot_size = kShape.slot_size;
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_create(&o, &memory, &ring));
  }
  void expect_kept() const {
    EXPECT_EQ(cudaq_ringbuffer_destroy(memory), CUDAQ_ERR_STATE);
    EXPECT_TRUE(error_names({"a dispatcher runs on the ring", "cudaq_dispatcher_stop"}));
  }
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
};

// A loop of the ring still reads its flags.
TEST(RingOwners, ARingIsNotDestroyedBeforeItsLastDispatcherStops) {
  const loose_ring r;
  const host_ring unused(kShape);
  const manager_handle manager;
  const auto alone = make(manager, unused), first = make_shared_host(manager.get, unused),
             second = make(manager, unused, true);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_host_handler_v2(
      second->get, 1, [](cudaq_host_call_t *, void *) { return 0; }, nullptr, nullptr));
  for (const cudaq_dispatcher_t *d : {alone->get, first->get, second->get})
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(const_cast<cudaq_dispatcher_t *>(d), &r.ring));
  CUDAQ_ASSERT_OK(start(*alone));
  r.expect_kept();
  r.expect_kept();
  EXPECT_EQ(alone->state(), CUDAQ_DISPATCHER_RUNNING);
  CUDAQ_ASSERT_OK(stop(*alone));
  CUDAQ_ASSERT_OK(start(*alone)); // the refused calls have changed nothing
  store_release(alone->shutdown, 1);
  EXPECT_TRUE(eventually([&] { return alone->state() == CUDAQ_DISPATCHER_STOPPED; }));
  r.expect_kept(); // its run is not finished yet
  CUDAQ_ASSERT_OK(stop(*alone));
  CUDAQ_ASSERT_OK(start(*first));
  CUDAQ_ASSERT_OK(start(*second));
  r.expect_kept();
  CUDAQ_ASSERT_OK(stop(*first));
  r.expect_kept();
  CUDAQ_ASSERT_OK(stop(*second));
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(r.memory));
}

TEST(RingOwners, AStopThatTimesOutKeepsTheRingAndTheNextOneReleasesIt) {
  const loose_ring r;
  gate closed;
  {
    bench b(kShape);
    b.on(kReverse[0].function_id, [&](cudaq_host_call_t &) {
      closed.pass();
      return 0;
    });
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(b.get(), &r.ring));
    b.start();
    CUDAQ_ASSERT_OK(cudaq_host_ringbuffer_write_rpc_request(&r.ring, 0, kReverse[0].function_id, nullptr, 0, 1, 0));
    cudaq_host_ringbuffer_signal_slot(&r.ring, 0);
    EXPECT_TRUE(eventually([&] { return closed.occupied(); }));
    EXPECT_EQ(cudaq_dispatcher_stop_timeout(b.get(), ms(20)), CUDAQ_ERR_TIMEOUT);
    r.expect_kept();
    closed.open();
    CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(r.memory));
  }
}

// White box: of a loop on the caller's thread that has left a graph there is no dispatcher that could be stopped.
TEST(RingOwners, ARingThatALoopHasLeftToAGraphStays) {
  const loose_ring r;
  const host_ring unused(kShape);
  const manager_handle manager;
  const auto other = make(manager, unused);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(other->get, &r.ring));
  detail::ring_claims claims;
  const detail::memory_claim claim(&r.ring, kShape.num_slots, nullptr, nullptr, nullptr);
  EXPECT_TRUE(claims.add(&r, claim).ok());
  r.expect_kept();
  claims.leave_to_a_graph();
  EXPECT_EQ(start(*other), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"a graph that a loop has left", "make another ring"}));
  EXPECT_EQ(cudaq_ringbuffer_destroy(r.memory), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"a graph that a loop has left", "its memory stays"}));
  detail::find_record(r.ring.rx_flags_host)->owner.store(0); // the graph has ended
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(r.memory));
}

// White box: only memory that the library has made has a record, wherever the flags lie.
TEST(RingOwners, ARecordIsFoundOnlyInARingOfTheLibrary) {
  using detail::find_record, detail::ring_record;
  const host_ring ring(kShape);
  const volatile std::uint64_t *const its_flags = ring.ring.rx_flags_host;
  ASSERT_NE(find_record(its_flags), nullptr);
  EXPECT_EQ(find_record(its_flags + 1), nullptr);
  EXPECT_EQ(find_record(nullptr), nullptr);
  EXPECT_EQ(find_record(ring.ring.tx_flags_host), nullptr);
  alignas(detail::kPageBytes) static std::array<std::uint8_t, 2 * detail::kPageBytes> foreign{};
  auto *const flags = reinterpret_cast<std::uint64_t *>(foreign.data() + detail::kFlagsOffsetInPage);
  EXPECT_EQ(find_record(flags), nullptr);
  auto *const record = reinterpret_cast<ring_record *>(flags) - 1;
  std::memcpy(static_cast<void *>(record), find_record(its_flags), sizeof(*record)); // a copy is another ring
  EXPECT_EQ(find_record(flags), nullptr);
  record->self = reinterpret_cast<std::uint64_t>(record);
  EXPECT_NE(find_record(flags), nullptr);
  record->self = 0;
  EXPECT_EQ(find_record(flags), nullptr);
}

// The tx flags of a ring with 512 slots would follow the rx flags at the offset that flags after a record have.
TEST(RingOwners, TheSecondFlagsNeverLookLikeFlagsAfterARecord) {
  for (const std::uint32_t slots : {496u, 512u, 1024u}) {
    const host_ring ring({slots, 64, false});
    EXPECT_NE(reinterpret_cast<std::uintptr_t>(ring.ring.tx_flags_host) % detail::kPageBytes,
              detail::kFlagsOffsetInPage);
  }
}

} // namespace
} // namespace cudaq::realtime::test

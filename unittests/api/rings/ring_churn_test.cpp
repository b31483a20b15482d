// SPDX-License-Identifier: Apache-2.0
// What a manager keeps of shared rings that come and go, and what a completion finds that names a job of such a ring.
#include "unittests/host_dispatcher/traffic.h"
#include "unittests/support/api_fixture.h"

#include <malloc.h>

namespace cudaq::realtime::test {
namespace {

constexpr ring_shape kShape{256, 64, false}; // the job records of a ring take 32 KB
constexpr std::size_t kLimit = 1u << 20;     // before, 32 KB for each of kRounds
/// CUDAQ_SOAK_MESSAGES set: a soak run.
const std::uint32_t kRounds = std::getenv("CUDAQ_SOAK_MESSAGES") != nullptr ? 10000 : kSanitized ? 50 : 500;

/// Allocated bytes. Under a sanitizer nothing is counted; then it checks the accesses.
std::size_t bytes_in_use() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

/// `rounds` times `body`. Returns by how many bytes the memory grows after a twentieth of the rounds.
template <class Body>
std::size_t growth(std::uint32_t rounds, Body &&body) {
  std::size_t begin = 0;
  for (std::uint32_t r = 0; r < rounds; ++r) {
    if (r == rounds / 20)
      begin = bytes_in_use();
    body(r);
  }
  const std::size_t end = bytes_in_use();
  return end > begin ? end - begin : 0;
}

void wire(const host_dispatcher_handle &d, const cudaq_ringbuffer_t &ring) {
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(d.get, &ring));
}
void start_and_stop(const host_dispatcher_handle &d) {
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(d.get));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(d.get));
}

/// One ring after the other, each at another address: the manager knows a ring by its address.
class many_rings {
public:
  cudaq_ringbuffer_t at(std::uint32_t number) {
    cudaq_ringbuffer_t r{};
    r.rx_flags_host = flags_.data() + number;
    r.tx_flags_host = flags_.data() + kRounds + kShape.num_slots + number;
    r.rx_data_host = data_.data();
    r.tx_data_host = data_.data() + data_.size() / 2;
    r.rx_stride_sz = r.tx_stride_sz = kShape.slot_size;
    return r;
  }

private:
  std::vector<std::uint64_t> flags_ = std::vector<std::uint64_t>(2 * (kRounds + kShape.num_slots));
  std::vector<std::uint8_t> data_ = std::vector<std::uint8_t>(std::size_t{2} * kShape.num_slots * kShape.slot_size);
};

class RingChurn : public ::testing::Test {
protected:
  manager_handle manager;
  host_ring ring{kShape};
  std::unique_ptr<host_dispatcher_handle> lives_on = make_shared_host(manager.get, ring); ///< keeps the manager in use
};

// Known failure 51.
TEST_F(RingChurn, RingsThatComeAndGoTakeNoMemory) {
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(lives_on->get));
  many_rings rings;
  EXPECT_LT(growth(kRounds,
                   [&](std::uint32_t r) {
                     const cudaq_ringbuffer_t fresh = rings.at(r);
                     const auto member = make_shared_host(manager.get, ring);
                     wire(*member, fresh);
                     CUDAQ_EXPECT_OK(cudaq_dispatcher_start(member->get));
                     CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&fresh, 0, 5, nullptr, 0, r, 0));
                     cudaq_host_ringbuffer_signal_slot(&fresh, 0);
                     EXPECT_TRUE(eventually(
                         [&] { return cudaq_host_ringbuffer_poll_tx_flag(&fresh, 0, nullptr) == CUDAQ_TX_READY; }));
                     CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(member->get));
                     cudaq_host_ringbuffer_clear_slot(&fresh, 0);
                   }),
            kLimit);
}

TEST_F(RingChurn, RewiresTakeNoMemory) {
  many_rings rings;
  const auto wanders = make_shared_host(manager.get, ring);
  EXPECT_LT(growth(kRounds,
                   [&](std::uint32_t r) {
                     wire(*wanders, rings.at(r));
                     start_and_stop(*wanders);
                   }),
            kLimit);
}

// A ring whose arrays change under the same rx flags: each start makes a new table, and the old one has no user.
TEST_F(RingChurn, AnotherGeometryOfTheSameRingTakesNoMemory) {
  const auto wanders = make_shared_host(manager.get, ring);
  EXPECT_LT(growth(kRounds,
                   [&](std::uint32_t r) {
                     cudaq_ringbuffer_t changed = ring.ring;
                     if (r % 2 == 0)
                       std::swap(changed.rx_data_host, changed.tx_data_host);
                     wire(*wanders, changed);
                     start_and_stop(*wanders);
                   }),
            kLimit);
}

/// A dispatcher on a shared ring whose handler has deferred one job. The stop has answered it.
struct with_late_job {
  explicit with_late_job(const manager_handle &manager, const host_ring &ring)
      : dispatcher(make_shared_host(manager.get, ring)) {
    cudaq_dispatcher_options_t options = default_options();
    options.grace_period_ns = 1;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(dispatcher->get, &options));
    const auto defer = [](cudaq_host_call_t *call, void *user) -> std::int32_t {
      auto &self = *static_cast<with_late_job *>(user);
      self.job = call->job;
      self.deferred.store(true);
      return CUDAQ_HOST_CALL_DEFERRED;
    };
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_host_handler_v2(dispatcher->get, 1, defer, this, nullptr));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_start(dispatcher->get));
    ring_client client(ring);
    const std::uint32_t slot = client.send(1, {}, 77);
    EXPECT_TRUE(eventually([this] { return deferred.load(); }));
    CUDAQ_EXPECT_OK(stop_again(dispatcher->get, 1));
    EXPECT_EQ(client.collect(slot).header.status, CUDAQ_RPC_ERR_SHUTTING_DOWN);
  }
  cudaq_status_t complete() const { return cudaq_host_complete_deferred(dispatcher->get, &job, 0, 0); }

  std::unique_ptr<host_dispatcher_handle> dispatcher;
  cudaq_host_job_t job{};
  std::atomic<bool> deferred{false};
};

TEST_F(RingChurn, ALateCompletionOfAFreedRingIsRefused) {
  auto old_ring = std::make_unique<host_ring>(kShape);
  const host_ring next(kShape);
  const with_late_job late(manager, *old_ring);
  EXPECT_EQ(late.complete(), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"request 77", "completed already"}));
  wire(*late.dispatcher, next.ring);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(late.dispatcher->get)); // the last member has left: the old table is freed
  old_ring.reset();
  EXPECT_EQ(late.complete(), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"request 77", "completed already"}));
}

TEST_F(RingChurn, ALateCompletionAfterARefusedStartOnAnotherRingIsRefused) {
  const host_ring old_ring(kShape), taken(kShape);
  const with_late_job late(manager, old_ring);
  cudaq_dispatcher_config_t config = host_config(kShape);
  const host_dispatcher_handle owner(manager.get, taken, {host_entry("reverse", reverse_handler)}, config);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(owner.get));
  wire(*late.dispatcher, taken.ring);
  EXPECT_EQ(cudaq_dispatcher_start(late.dispatcher->get), CUDAQ_ERR_STATE);
  EXPECT_EQ(late.complete(), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"request 77", "completed already", "another ring"}));
  (void)late.dispatcher->dump();
  (void)late.dispatcher->stats();
}

// For ThreadSanitizer and AddressSanitizer: completions and statistics while tables are replaced and freed.
TEST_F(RingChurn, LateCompletionsMeetRewires) {
  const host_ring rings[2] = {host_ring(kShape), host_ring(kShape)};
  const with_late_job late(manager, rings[0]);
  std::atomic<bool> end{false};
  std::atomic<std::uint64_t> calls{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      while (!end.load()) {
        if (t == 0)
          wrong += late.complete() != CUDAQ_ERR_STATE;
        else
          (void)late.dispatcher->stats();
        ++calls;
      }
    });
  const std::uint32_t rounds = load_size(300);
  for (std::uint32_t r = 0; r < rounds; ++r) {
    wire(*late.dispatcher, rings[(r + 1) % 2].ring);
    start_and_stop(*late.dispatcher);
  }
  EXPECT_TRUE(eventually([&] { return calls.load() > 100; }));
  end.store(true);
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(wrong.load(), 0u);
}

} // namespace
} // namespace cudaq::realtime::test

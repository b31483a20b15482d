// SPDX-License-Identifier: Apache-2.0
// What a host dispatcher's idle turns, its stop and its queues cost on a ring with many slots.
#include "lib/host_dispatcher/host_dispatcher.h"
#include "unittests/host_dispatcher/traffic.h"
#include "unittests/support/api_fixture.h"
#include "unittests/support/ring_fixture.h"

#include <malloc.h>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kFew = 64, kMany = kSanitized ? 1u << 17 : 1u << 20;

/// A host dispatcher without threads: the test calls its turns.
class turned_dispatcher {
public:
  explicit turned_dispatcher(std::uint32_t num_slots) : slots_(num_slots, 32, 32, true) {
    detail::host_setup setup;
    setup.jobs = std::make_shared<detail::job_table>(num_slots, 1);
    setup.jobs->bind(slots_.view);
    setup.table = {&entry_, 1};
    setup.options = default_options();
    setup.shutdown_flag = &shutdown_;
    setup.stats = &stats_;
    const detail::expected<> result = dispatcher_.prepare(std::move(setup));
    EXPECT_TRUE(result.ok()) << result.text();
  }
  void send(std::uint32_t slot) const {
    const cudaq_rpc_header_t header{CUDAQ_RPC_MAGIC_REQUEST, entry_.function_id, 0, slot, 0};
    std::memcpy(slots_.view.rx_slot(slot), &header, sizeof(header));
    slots_.view.signal(slot);
  }
  /// Idle turns until a request is served; 0: none was served in `limit` turns.
  std::uint64_t turns_until_served(std::uint64_t limit) {
    for (std::uint64_t turns = 1; turns <= limit; ++turns)
      if (dispatcher_.turn() != 0)
        return turns;
    return 0;
  }

private:
  guarded_slots slots_;
  cudaq_function_entry_t entry_ = host_entry("reverse", reverse_handler);
  volatile int shutdown_ = 0;
  std::uint64_t stats_ = 0;
  detail::host_dispatcher dispatcher_;
};

// A walk over the whole ring in turn 256 would serve the request at turn 257.
// Known failure 52.
TEST(IdleTurns, FindARequestOutOfOrderAfterBoundedWork) {
  turned_dispatcher dispatcher(1u << 16);
  constexpr std::uint32_t kSlot = 20000, kLooks = 2 * kSlot / detail::job_table::kResyncSlots;
  dispatcher.send(kSlot);
  const std::uint64_t turns = dispatcher.turns_until_served(256 * (kLooks + 10));
  EXPECT_GE(turns, 256u * (kLooks - 10)) << "a turn has looked at more slots than it may";
  EXPECT_NE(turns, 0u) << "not found in the bounded number of turns";
}

TEST(IdleTurns, FindARequestOfASmallRingInOneLook) {
  turned_dispatcher dispatcher(kFew);
  dispatcher.send(kFew - 1);
  EXPECT_LE(dispatcher.turns_until_served(1000), 257u);
}

/// The shortest time of a stop after some idleness, of several. The v2 handler makes the dispatcher track jobs.
double stop_ms(std::uint32_t num_slots) {
  bench b({num_slots, 32, true});
  b.on(7, [](cudaq_host_call_t &) { return 0; });
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    b.start();
    (void)b.client.call(7, {});
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    best = std::min(best, milliseconds([&] { CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get())); }));
  }
  return best;
}

// The factor is generous: a walk over the records of 2^20 slots costs hundreds of times a stop.
TEST(IdleTurns, StopTimeDoesNotGrowWithTheSlots) {
  double few = 0, many = 1e9;
  for (int run = 0; run < 5 && many >= 20 * few + 5; ++run) { // the machine may be busier in one half
    few = stop_ms(kFew);
    many = stop_ms(kMany);
  }
  EXPECT_LT(many, 20 * few + 5) << few << " ms with 64 slots";
}

/// The median latency of a request after idleness.
double request_ms(std::uint32_t num_slots) {
  bench b({num_slots, 32, true});
  b.on(7, [](cudaq_host_call_t &) { return 0; });
  b.start();
  std::vector<double> all;
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    all.push_back(milliseconds([&] { (void)b.client.call(7, {}); }));
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

// A request would have to wait for a walk over all slots, which takes 43 ms and more.
TEST(IdleTurns, LatencyAfterIdlenessDoesNotGrowWithTheSlots) {
  double few = 0, many = 1e9;
  for (int run = 0; run < 5 && many >= 20 * few + 5; ++run) { // the machine may be busier in one half
    few = request_ms(kFew);
    many = request_ms(kMany);
  }
  EXPECT_LT(many, 20 * few + 5) << few << " ms with 64 slots";
}

std::size_t bytes_in_use() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

// A word for each function and slot would be 4 GB here. Under a sanitizer mallinfo2 counts nothing; then the limit is
// the memory.
TEST(IdleTurns, QueuesTakeNoMemoryForSlotsThatAreNotInFlight) {
  detail::job_table jobs(kMany, 1);
  const std::size_t before = bytes_in_use();
  detail::work_queues queues;
  queues.reset(1000, jobs, detail::poppers::one_per_queue);
  EXPECT_LT(bytes_in_use() - before, std::size_t{1} << 20);
  queues.push(999, kMany - 1);
  detail::work_queues::item out;
  EXPECT_TRUE(queues.pop(0, out));
  EXPECT_EQ(out.slot, kMany - 1);
}

// has_jobs counts instead of looking at the records: all ways to open and close a job must count.
TEST(IdleTurns, StopKnowsWithoutAWalkThatNoJobIsOpen) {
  for (const std::uint32_t pool : {0u, 2u}) {
    bench b({8, 64, false});
    b.options.handler_pool_size = pool;
    b.options.grace_period_ns = ms(20);
    b.options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
    std::atomic<std::uint64_t> generation{0};
    cudaq_host_job_t open{};
    b.on(1, [](cudaq_host_call_t &) { return 0; });
    b.on(2, [&](cudaq_host_call_t &call) {
      open = call.job;
      generation.store(call.job.generation);
      return CUDAQ_HOST_CALL_DEFERRED;
    });
    b.start();
    (void)b.client.call(1, {});
    EXPECT_EQ(b.client.call(99, {}).header.status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION); // refused, without a job
    const std::uint32_t slot = b.client.send(2, {}, 5);
    ASSERT_TRUE(eventually([&] { return generation.load() != 0; }));
    CUDAQ_EXPECT_OK(cudaq_host_complete_deferred(b.get(), &open, 3, 0));
    EXPECT_EQ(b.client.collect(slot).header.status, 3);
    // No job is open: stop does not wait for the grace period and gives up no request.
    CUDAQ_EXPECT_OK(stop_again(b.get(), ms(20)));
    generation.store(0);
    b.start();
    const std::uint32_t late = b.client.send(2, {}, 6);
    ASSERT_TRUE(eventually([&] { return generation.load() != 0; }));
    CUDAQ_EXPECT_OK(stop_again(b.get(), ms(20)));
    EXPECT_EQ(b.client.collect(late).header.status, CUDAQ_RPC_ERR_SHUTTING_DOWN);
  }
}

} // namespace
} // namespace cudaq::realtime::test

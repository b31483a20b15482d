// SPDX-License-Identifier: Apache-2.0
// Host dispatchers whose peer overwrites everything in the ring at any time (docs/security.md).
// CUDAQ_HOSTILE_SECONDS=600 makes each attack that long.
#include "unittests/support/hostile_peer.h"

#include <deque>
#include <mutex>

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  bool in_place = false;
  bool payload_in_slot = false; ///< in place: the handler reads the slot, not a copy
  std::uint32_t pool = 0;
  bool v1 = false;
  bool defers = false;
  bool skip_markers = false;
  bool strict = false;
};
void PrintTo(const flavour &f, std::ostream *out) { *out << f.name; }

/// The handlers of a dispatcher on a guarded ring, and the thread that completes deferred jobs.
struct watched_handlers {
  explicit watched_handlers(const guarded_ring &of) : ring(of) { the_one = this; }
  ~watched_handlers() { the_one = nullptr; }

  struct function {
    watched_handlers *all;
    std::uint32_t id;
  };
  const guarded_ring &ring;
  handler_watch watch;
  bool defers = false;
  std::vector<std::unique_ptr<function>> functions;
  std::mutex mutex;
  std::deque<std::pair<cudaq_host_job_t, std::uint32_t>> jobs;
  static inline watched_handlers *the_one = nullptr; // v1 handlers have no argument for it

  std::uint8_t *rx(std::uint32_t slot) const { return ring.ring.rx_data_host + slot * ring.ring.rx_stride_sz; }
  std::uint8_t *tx(std::uint32_t slot) const { return ring.ring.tx_data_host + slot * ring.ring.tx_stride_sz; }
  bool in_ring(const void *p) const {
    const auto *at = static_cast<const std::uint8_t *>(p);
    return at >= rx(0) && at < rx(ring.shape.num_slots);
  }

  static std::int32_t serve(cudaq_host_call_t *call, void *user) {
    const auto &f = *static_cast<function *>(user);
    watched_handlers &h = *f.all;
    const std::uint32_t max_size = h.ring.shape.slot_size - CUDAQ_RPC_HEADER_SIZE;
    ++h.watch.calls;
    h.watch.expect(call->function_id == f.id);
    h.watch.expect(call->payload_len <= max_size && call->max_result_len == max_size);
    h.watch.expect(call->job.slot < h.ring.shape.num_slots);
    h.watch.expect(!h.in_ring(call->payload) || call->payload == h.rx(call->job.slot) + CUDAQ_RPC_HEADER_SIZE);
    h.watch.expect(call->result == h.tx(call->job.slot) + CUDAQ_RPC_HEADER_SIZE);
    handler_watch::use(call->payload, call->payload_len, call->result);
    if (h.defers && h.watch.calls % 2 == 0) {
      const std::lock_guard<std::mutex> lock(h.mutex);
      h.jobs.push_back({call->job, call->payload_len});
      return CUDAQ_HOST_CALL_DEFERRED;
    }
    call->result_len = call->payload_len;
    return 0;
  }
  /// A v1 handler gets only the slot. It reads the length once and checks it by itself.
  static void serve_v1(const void *rx_slot, void *tx_slot, std::size_t slot_size) {
    watched_handlers &h = *the_one;
    ++h.watch.calls;
    h.watch.expect(h.in_ring(rx_slot) && slot_size == h.ring.shape.slot_size);
    const auto *request = static_cast<const std::uint8_t *>(rx_slot);
    auto *answer = static_cast<std::uint8_t *>(tx_slot);
    const auto stated = static_cast<std::uint32_t>(peer_word(request + 8));
    const std::uint32_t max_size = static_cast<std::uint32_t>(slot_size) - CUDAQ_RPC_HEADER_SIZE;
    const std::uint32_t size = stated < max_size ? stated : max_size;
    handler_watch::use(request + CUDAQ_RPC_HEADER_SIZE, size, answer + CUDAQ_RPC_HEADER_SIZE);
    set_peer_word(answer + 8, size);
    set_peer_word(answer, CUDAQ_RPC_MAGIC_RESPONSE);
  }
  bool next_job(std::pair<cudaq_host_job_t, std::uint32_t> &job) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (jobs.empty())
      return false;
    job = jobs.front();
    jobs.pop_front();
    return true;
  }
};

const std::vector<std::uint32_t> kFunctions = {0x11, 0x22, 0x33};

/// A dispatcher on the guarded ring with watched handlers.
std::unique_ptr<host_dispatcher_handle> make_dispatcher(cudaq_dispatch_manager_t *manager, const host_ring &other,
                                                        const guarded_ring &ring, const flavour &f, bool shared,
                                                        watched_handlers &handlers,
                                                        const std::vector<std::uint32_t> &ids) {
  cudaq_dispatcher_config_t config = host_config(ring.shape);
  config.skip_tx_markers = f.skip_markers;
  config.shared_ring_mode = shared;
  std::vector<cudaq_function_entry_t> table;
  for (const std::uint32_t id : ids)
    if (f.v1) {
      table.push_back(host_entry("", &watched_handlers::serve_v1));
      table.back().function_id = id;
    }
  auto made = std::make_unique<host_dispatcher_handle>(manager, other, table, config);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(made->get, &ring.ring));
  for (const std::uint32_t id : ids)
    if (!f.v1) {
      handlers.functions.push_back(
          std::make_unique<watched_handlers::function>(watched_handlers::function{&handlers, id}));
      CUDAQ_EXPECT_OK(cudaq_dispatcher_set_host_handler_v2(made->get, id, &watched_handlers::serve,
                                                           handlers.functions.back().get(), nullptr));
    }
  cudaq_dispatcher_options_t options = default_options();
  options.handler_pool_size = f.pool;
  options.payload_in_slot = f.payload_in_slot;
  options.strict_flag_values = f.strict;
  options.grace_period_ns = 300u * 1000u * 1000u;
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(made->get, &options));
  return made;
}

/// The library itself copies the payload of an in-place ring, with plain loads: to a race detector, a peer that writes
/// the payload at that moment is a race. To the dispatcher it is data.
hostile_plan plan_for(const flavour &f) {
  hostile_plan plan{kFunctions};
  plan.payloads = !kRaceDetector || !f.in_place || f.payload_in_slot || f.v1;
  return plan;
}

/// A stop while the peer still attacks.
void expect_stop(const host_dispatcher_handle &dispatcher) {
  const auto begun = std::chrono::steady_clock::now();
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(dispatcher.get));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
}

class HostilePeer : public ::testing::TestWithParam<flavour> {};

// Known failure 58.
TEST_P(HostilePeer, GetsNothingPastTheChecksAndGoodRequestsAreServedAfterIt) {
  const flavour &f = GetParam();
  const guarded_ring ring({8, 256, f.in_place});
  const host_ring unused(ring.shape);
  watched_handlers handlers(ring);
  handlers.defers = f.defers;
  manager_handle manager;
  const auto dispatcher = make_dispatcher(manager.get, unused, ring, f, false, handlers, kFunctions);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher->get));
  std::atomic<bool> ends{false};
  std::thread completer([&] {
    for (std::pair<cudaq_host_job_t, std::uint32_t> job; !ends.load();)
      if (handlers.next_job(job))
        cudaq_host_complete_deferred(dispatcher->get, &job.first, 0, job.second);
      else
        std::this_thread::yield();
  });
  hostile_peer peer(ring.ring, ring.shape, plan_for(f));
  peer.attack_until([&] { return handlers.watch.calls >= 100; });
  expect_stop(*dispatcher);
  peer.stop();
  expect_accounts(dispatcher->stats(), handlers.watch, peer.writes());

  reinitialise(ring.ring, ring.shape);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(dispatcher->get, &ring.ring)); // the cursor is at slot 0 again
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher->get));
  expect_good_answers(ring.ring, ring.shape, kFunctions);
  ends = true;
  completer.join();
  expect_stop(*dispatcher);
  EXPECT_EQ(handlers.watch.violations, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Flavours, HostilePeer,
    ::testing::Values(flavour{"Inline"}, flavour{"InlineInPlace", true}, flavour{"InlineInPlaceSlot", true, true},
                      flavour{"InlineV1", false, false, 0, true}, flavour{"InlineV1InPlace", true, false, 0, true},
                      flavour{"InlineStrict", false, false, 0, false, false, false, true},
                      flavour{"Pool", false, false, 2},
                      flavour{"PoolWithoutMarkers", false, false, 2, false, false, true},
                      flavour{"PoolInPlace", true, true, 2}, flavour{"PoolV1", false, false, 2, true},
                      flavour{"Deferred", false, false, 0, false, true},
                      flavour{"DeferredPool", false, false, 2, false, true},
                      flavour{"DeferredPoolWithoutMarkersInPlace", true, true, 2, false, true, true}),
    [](const auto &tested) { return std::string(tested.param.name); });

// Known failure 58.
TEST(HostilePeerOfTwo, GetsNothingPastTheRouterOfASharedRing) {
  const guarded_ring ring({8, 256, false});
  const host_ring unused(ring.shape);
  watched_handlers handlers(ring);
  manager_handle manager;
  const auto inline_member = make_dispatcher(manager.get, unused, ring, {}, true, handlers, {0x11});
  flavour with_pool{};
  with_pool.pool = 2;
  const auto pool_member = make_dispatcher(manager.get, unused, ring, with_pool, true, handlers, {0x22, 0x33});
  cudaq_dispatcher_options_t options = default_options();
  options.default_owner = 1;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(inline_member->get, &options));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(inline_member->get));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(pool_member->get));
  hostile_plan plan{kFunctions};
  hostile_peer peer(ring.ring, ring.shape, plan);
  peer.attack_until([&] { return handlers.watch.calls >= 100; });
  expect_stop(*pool_member);
  expect_stop(*inline_member);
  peer.stop();
  const cudaq_dispatcher_stats_t first = inline_member->stats(), second = pool_member->stats();
  cudaq_dispatcher_stats_t both = first;
  both.received += second.received, both.responded += second.responded, both.in_flight += second.in_flight;
  both.dropped_bad_magic += second.dropped_bad_magic;
  both.dropped_unknown_function += second.dropped_unknown_function;
  both.dropped_flag_value += second.dropped_flag_value;
  expect_accounts(both, handlers.watch, peer.writes());

  reinitialise(ring.ring, ring.shape);
  for (const auto *d : {&inline_member, &pool_member})
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start((*d)->get));
  expect_good_answers(ring.ring, ring.shape, kFunctions);
  expect_stop(*pool_member);
  expect_stop(*inline_member);
}

} // namespace
} // namespace cudaq::realtime::test

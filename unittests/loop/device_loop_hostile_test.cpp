// SPDX-License-Identifier: Apache-2.0
// The loop of the device kernels, run by CPU threads, with a peer that overwrites everything in the ring.
#include "unittests/loop/cpu_kernel.h"
#include "unittests/support/hostile_peer.h"

namespace cudaq::realtime::test {
namespace {

handler_watch *watch = nullptr; // device handlers have no argument for it

/// A device handler. Before its payload lies the header of the loop's copy: the one that was judged.
template <std::uint32_t Id>
int watched(const void *in, void *out, std::uint32_t arg_len, std::uint32_t max_result_len, std::uint32_t *result_len) {
  request copied;
  std::memcpy(&copied, static_cast<const std::uint8_t *>(in) - CUDAQ_RPC_HEADER_SIZE, sizeof(copied));
  ++watch->calls;
  watch->expect(arg_len <= max_result_len);
  watch->expect(copied.magic == CUDAQ_RPC_MAGIC_REQUEST && copied.function_id == Id && copied.arg_len == arg_len);
  const std::uint32_t wanted = (arg_len & ~15u) + 8; // header and result are a whole number of 16-byte words
  *result_len = wanted < max_result_len ? wanted : max_result_len;
  handler_watch::use(in, arg_len, out);
  for (std::uint32_t at = arg_len & ~7u; at + 8 <= *result_len; at += 8)
    set_peer_word(static_cast<std::uint8_t *>(out) + at, at);
  return 0;
}

struct flavour {
  const char *name;
  ring_shape shape;
  std::uint32_t groups = 1;
  bool routed = false; ///< a shared ring: a thread of the member routes the requests to the loop
};
void PrintTo(const flavour &f, std::ostream *out) { *out << f.name; }

class HostileLoop : public ::testing::TestWithParam<flavour> {};

void count_report(const loop_report &r, cudaq_dispatcher_stats_t &all) {
  all.responded += r.responded;
  all.dropped_bad_magic += r.dropped_bad_magic;
  all.dropped_unknown_function += r.dropped_unknown_function;
  all.received += r.dispatched + r.refused + r.dropped_bad_magic + r.dropped_unknown_function;
}

constexpr DeviceRPCFunction kHandlers[] = {watched<1>, watched<2>, watched<3>};

/// Gives a loop the guarded ring and the handlers.
struct guarded_loop {
  explicit guarded_loop(const guarded_ring &of) : ring(of) {
    for (std::size_t i = 0; i < 3; ++i)
      handlers[i] = reinterpret_cast<std::uint64_t>(kHandlers[i]);
  }
  void prepare(loop_host &host) const {
    host.params.ring = view_of(ring.ring, host_config(ring.shape), ring_side::host);
    host.params.handlers = handlers;
  }
  const guarded_ring &ring;
  std::uint64_t handlers[3];
};

template <class End>
void expect_end(End &&end) {
  const auto begun = std::chrono::steady_clock::now();
  end();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
}

/// Serves the guarded ring with the loop while `body` runs. Returns the sum of the loop's reports.
template <class Body>
cudaq_dispatcher_stats_t serve(const guarded_ring &ring, std::uint32_t groups, Body &&body) {
  const guarded_loop loop(ring);
  const host_ring unused(ring.shape);
  loop_host host(unused, groups);
  loop.prepare(host);
  groups > 1 ? host.start<true>() : host.start<false>();
  body();
  expect_end([&] {
    store_release(host.library_word, std::uint32_t{1});
    host.join();
  });
  cudaq_dispatcher_stats_t all{};
  for (const loop_report &r : host.reports)
    count_report(r, all);
  return all;
}

/// The same on a shared ring whose only member is the loop. Adds what the router dropped.
template <class Body>
cudaq_dispatcher_stats_t serve_routed(const guarded_ring &ring, Body &&body) {
  const guarded_loop loop(ring);
  const host_ring unused(ring.shape);
  const manager_handle manager;
  cpu_kernel kernel(manager, unused, 1, true, 3);
  kernel.prepare = [&](loop_host &host) { loop.prepare(host); };
  const expected<> result = kernel.start();
  EXPECT_TRUE(result.ok()) << result.text();
  body();
  expect_end([&] { kernel.stop(); });
  const thread_counters &router = kernel.member.counts();
  cudaq_dispatcher_stats_t all{};
  all.dropped_bad_magic = router.dropped_bad_magic.value();
  all.dropped_unknown_function = router.dropped_unknown_function.value();
  all.dropped_flag_value = router.dropped_flag_value.value();
  all.received = router.dropped();
  count_report(kernel.report(), all);
  return all;
}

template <class Body>
cudaq_dispatcher_stats_t serve(const guarded_ring &ring, const flavour &f, Body &&body) {
  return f.routed ? serve_routed(ring, body) : serve(ring, f.groups, body);
}

// Known failure 58.
TEST_P(HostileLoop, GetsTheJudgedHeaderAndNothingPastTheChecks) {
  const flavour &f = GetParam();
  handler_watch seen;
  watch = &seen;
  const guarded_ring ring(f.shape);
  std::uint64_t writes = 0;
  std::unique_ptr<hostile_peer> peer;
  const cudaq_dispatcher_stats_t all = serve(ring, f, [&] {
    peer = std::make_unique<hostile_peer>(ring.ring, f.shape, hostile_plan{{1, 2, 3}});
    peer->attack_until([&] { return seen.calls >= 100; });
  }); // the peer still attacks while the loop ends
  peer->stop();
  writes = peer->writes();
  expect_accounts(all, seen, writes);

  reinitialise(ring.ring, f.shape);
  const cudaq_dispatcher_stats_t good = serve(ring, f, [&] {
    expect_good_answers(ring.ring, f.shape, {1, 2, 3}, 64, 8);
  });
  EXPECT_EQ(good.responded, 64u);
  EXPECT_EQ(seen.violations, 0u);
}

INSTANTIATE_TEST_SUITE_P(Flavours, HostileLoop,
                         ::testing::Values(flavour{"Wide", {8, 256, false}}, flavour{"Narrow", {8, 264, false}},
                                           flavour{"InPlace", {8, 256, true}}, flavour{"LongFrames", {4, 4096, false}},
                                           flavour{"ShortSlots", {16, 64, false}},
                                           flavour{"AnyTwoGroups", {16, 256, false}, 2},
                                           flavour{"AnyInPlace", {15, 64, true}, 2},
                                           flavour{"Routed", {8, 256, false}, 1, true},
                                           flavour{"RoutedInPlace", {15, 64, true}, 1, true}),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test

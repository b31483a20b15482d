// SPDX-License-Identifier: Apache-2.0
// Short requests do not wait for a slow graph, not even while a scheduler relaunches itself.
#include "unittests/gpu/graphs/device_graph_rig.h"

namespace cudaq::realtime::test {
namespace {

class DeviceGraphLatency : public device_graph_test {};

constexpr std::uint64_t kSlowNs = 5'000'000;

struct figures {
  std::uint64_t p50 = 0, p99 = 0, p999 = 0, p9999 = 0, max = 0;
  std::int64_t stalls = 0; ///< requests that took longer than half the time of a slow one
};

figures figures_of(std::vector<std::uint64_t> &ns) {
  return {percentile(ns, 0.5),   percentile(ns, 0.99),
          percentile(ns, 0.999), percentile(ns, 0.9999),
          percentile(ns, 1),     std::count_if(ns.begin(), ns.end(), [](std::uint64_t t) {
            return t > kSlowNs / 2; })};
}

/// Sends one short request after another and, with `slow`, one slow request after each thousand of them. The ring is so
/// large that the producer does not reach the slot of a slow request again while that request is under way.
figures run_short(std::uint32_t messages, bool slow, scheduler_options o) {
  const host_ring ring({16384, 128, false}, CUDAQ_MEMORY_MAPPED);
  graph_target quick, lazy;
  quick.function_id = 100;
  lazy.function_id = 101;
  lazy.task.wait_ns = kSlowNs;
  const graph_set graphs({quick, lazy}, 128, messages + 2000, o.publishes);
  graph_scheduler scheduler(ring, graphs, o);
  scheduler.start();
  graph_traffic load(ring, graphs);
  load.run(1000, 1, [](std::uint32_t) { return 0u; });
  load.latency_ns.resize(1);
  load.latency_ns[0].reserve(messages);
  std::vector<std::uint32_t> under_way;
  for (std::uint32_t m = 0; m < messages; ++m) {
    if (slow && m % 1000 == 999)
      under_way.push_back(load.put(1));
    if (!load.await(load.put(0)))
      break;
    if (!under_way.empty() && load.collect(under_way.front()))
      under_way.erase(under_way.begin());
  }
  for (const std::uint32_t slot : under_way)
    load.await(slot);
  scheduler.stop();
  load.expect_clean();
  return figures_of(load.latency_ns[0]);
}

void print(const char *what, const figures &f) {
  std::printf("%-28s p50 %llu p99 %llu p99.9 %llu p99.99 %llu max %llu ns, %lld stalls\n", what,
              static_cast<unsigned long long>(f.p50), static_cast<unsigned long long>(f.p99),
              static_cast<unsigned long long>(f.p999), static_cast<unsigned long long>(f.p9999),
              static_cast<unsigned long long>(f.max), static_cast<long long>(f.stalls));
}

// Issue 4, test 1: 10^6 short requests while a 5 ms graph runs.
void compare(scheduler_options o, const char *name) {
  const std::uint32_t messages = messages_or(100000);
  const figures without = run_short(messages, false, o), with = run_short(messages, true, o);
  print((std::string(name) + ", short only").c_str(), without);
  print((std::string(name) + ", with a 5 ms graph").c_str(), with);
  EXPECT_LT(with.p999, 2 * without.p999 + 20000) << "short requests wait for the slow graph";
  EXPECT_LT(with.p999, 100000u);
  // A slow request stalls at most one short request, because the client waits for each answer: one in a thousand stays
  // above p99.9. Of 100 slow requests one may stall a short request, when no other scheduler is running.
  EXPECT_LE(with.stalls, 1 + messages / 100000);
}

// Known failure 3.
TEST_F(DeviceGraphLatency, ShortRequestsPassASlowGraph) { compare({}, "forwarded"); }

// Four slow requests at a time: all but one wait for their graph, and an attempt to launch them fails. Blocks of short
// requests with and without slow ones alternate, so that both run under the same conditions. A block ends before its
// slow requests do.
TEST_F(DeviceGraphLatency, ABacklogOfAnotherFunctionCostsShortRequestsNothing) {
  constexpr std::uint32_t kBlock = 500;
  const std::uint32_t pairs = std::max(messages_or(100000) / (4 * kBlock), 5u), messages = 2 * pairs * kBlock;
  const host_ring ring({16384, 128, false}, CUDAQ_MEMORY_MAPPED);
  graph_target quick, lazy;
  quick.function_id = 100;
  lazy.function_id = 101;
  lazy.task.wait_ns = kSlowNs;
  const graph_set graphs({quick, lazy}, 128, messages + 4 * pairs + 2000);
  graph_scheduler scheduler(ring, graphs);
  scheduler.start();
  graph_traffic load(ring, graphs);
  load.run(1000, 1, [](std::uint32_t) { return 0u; });
  load.latency_ns.resize(1);
  std::vector<std::uint64_t> p50[2], p90[2]; // [0]: blocks without a backlog, [1]: with a backlog
  for (std::uint32_t block = 0; block < 2 * pairs; ++block) {
    std::vector<std::uint32_t> slow;
    for (std::uint32_t s = 0; s < 4 * (block % 2); ++s)
      slow.push_back(load.put(1));
    load.latency_ns[0].clear();
    for (std::uint32_t m = 0; m < kBlock; ++m)
      ASSERT_TRUE(load.await(load.put(0)));
    p50[block % 2].push_back(percentile(load.latency_ns[0], 0.5));
    p90[block % 2].push_back(percentile(load.latency_ns[0], 0.9));
    for (const std::uint32_t slot : slow)
      load.await(slot);
  }
  scheduler.stop();
  load.expect_clean();
  const auto median = [](const std::vector<std::uint64_t> &of) { return percentile(of, 0.5); };
  const std::uint64_t short_only = median(p50[0]), beside = median(p50[1]);
  std::printf("medians of %u blocks: short only %llu, with a backlog %llu ns\n", pairs,
              static_cast<unsigned long long>(short_only), static_cast<unsigned long long>(beside));
  EXPECT_LT(beside, short_only + short_only / 10);
  EXPECT_LT(median(p90[1]), 2 * median(p90[0]));
}

TEST_F(DeviceGraphLatency, ShortRequestsPassASlowGraphThatPublishes) {
  scheduler_options o;
  o.publishes = true;
  compare(o, "publishing");
}

} // namespace
} // namespace cudaq::realtime::test

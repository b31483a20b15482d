// SPDX-License-Identifier: Apache-2.0
// The histogram of the times from a request's flag to its answer.
#include "unittests/support/api_fixture.h"

#include <atomic>
#include <numeric>
#include <thread>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kQuick = 0x51, kSlow = 0x52;
constexpr std::uint64_t kSlowNs = 3'000'000;

cudaq_handler_times_t times_of(const bench &b, std::uint32_t function_id) {
  cudaq_handler_times_t times{};
  times.struct_size = sizeof(times);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_get_handler_times(b.get(), function_id, &times));
  return times;
}

void expect_consistent(const cudaq_handler_times_t &t) {
  EXPECT_EQ(std::accumulate(std::begin(t.buckets), std::end(t.buckets), std::uint64_t{0}), t.count);
  EXPECT_LE(t.p50_ns, t.p99_ns);
  EXPECT_LE(t.p99_ns, t.p999_ns);
  EXPECT_LE(t.p999_ns, t.max_ns);
}

void answer_frame(const void *, void *tx, std::size_t) {
  const cudaq_rpc_response_t frame{CUDAQ_RPC_MAGIC_RESPONSE, 0, 0, 0, 0};
  std::memcpy(tx, &frame, sizeof(frame));
}

/// How requests are answered.
struct flavour {
  const char *name;
  bool v1 = false; ///< no handler can defer: requests are answered in their turn, without a job
  bool deferred = false;
  std::uint32_t pool = 0;
  bool shared = false;
};

class HandlerTimes : public ::testing::TestWithParam<flavour> {
protected:
  static cudaq_dispatcher_config_t config() {
    cudaq_dispatcher_config_t c = host_config({});
    c.shared_ring_mode = GetParam().shared;
    return c;
  }
  static void sleep_for_slow() { std::this_thread::sleep_for(std::chrono::nanoseconds(kSlowNs)); }
  static void slow_frame(const void *rx, void *tx, std::size_t bytes) {
    sleep_for_slow();
    answer_frame(rx, tx, bytes);
  }
  static std::vector<cudaq_function_entry_t> table() {
    if (!GetParam().v1)
      return {};
    cudaq_function_entry_t quick = host_entry("", answer_frame), slow = host_entry("", slow_frame);
    quick.function_id = kQuick;
    slow.function_id = kSlow;
    return {quick, slow};
  }

  HandlerTimes() : b({}, table(), config()) {
    b.options.handler_pool_size = GetParam().pool;
    if (GetParam().v1)
      return;
    const auto handler = [this](std::uint64_t ns) {
      return [this, ns](cudaq_host_call_t &call) -> std::int32_t {
        if (!GetParam().deferred) {
          if (ns != 0)
            sleep_for_slow();
          return 0;
        }
        completers.emplace_back([this, ns, job = call.job] {
          if (ns != 0)
            sleep_for_slow();
          CUDAQ_EXPECT_OK(cudaq_host_complete_deferred(b.get(), &job, 0, 0));
        });
        return CUDAQ_HOST_CALL_DEFERRED;
      };
    };
    b.on(kQuick, handler(0));
    b.on(kSlow, handler(kSlowNs));
  }
  ~HandlerTimes() override { join(); }
  void join() {
    for (std::thread &t : completers)
      t.join();
    completers.clear();
  }
  void play(std::uint32_t function_id, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i)
      b.client.collect(b.client.send(function_id, {}, i));
  }

  std::vector<std::thread> completers; ///< started by handlers of one thread; or of a pool, one request at a time
  bench b;
};

TEST_P(HandlerTimes, CountEachRequestOfItsFunctionFromItsFlagToItsAnswer) {
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_handler_times(b.get(), 1));
  b.start();
  play(kQuick, 20);
  play(kSlow, 3);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
  join();
  const cudaq_handler_times_t quick = times_of(b, kQuick), slow = times_of(b, kSlow);
  EXPECT_EQ(quick.count, 20u);
  EXPECT_EQ(slow.count, 3u);
  EXPECT_GE(slow.p50_ns, kSlowNs);
  EXPECT_GE(slow.sum_ns, 3 * kSlowNs);
  EXPECT_GT(quick.sum_ns, 0u);
  EXPECT_LT(slow.max_ns, 60'000'000'000u); // a wrong moment of the flag gives hours
  EXPECT_LT(quick.max_ns, 60'000'000'000u);
  expect_consistent(quick);
  expect_consistent(slow);
  const std::string dump = b.dispatcher->dump();
  EXPECT_NE(dump.find("times of function 0x00000052: 3 answers"), std::string::npos) << dump;
}

TEST_P(HandlerTimes, AreOfThePresentRunAndOnlyIfItRecordsThem) {
  b.start();
  play(kQuick, 2);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
  cudaq_handler_times_t times{};
  times.struct_size = sizeof(times);
  EXPECT_EQ(cudaq_dispatcher_get_handler_times(b.get(), kQuick, &times), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"cudaq_dispatcher_set_handler_times"}));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_handler_times(b.get(), 1));
  for (std::uint32_t run = 1; run <= 2; ++run) {
    b.start();
    EXPECT_EQ(cudaq_dispatcher_set_handler_times(b.get(), 0), CUDAQ_ERR_STATE);
    play(kQuick, run);
    CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
    join();
    EXPECT_EQ(times_of(b, kQuick).count, run);
  }
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_handler_times(b.get(), 0));
  EXPECT_EQ(times_of(b, kQuick).count, 2u); // until the next start
  b.start();
  EXPECT_EQ(cudaq_dispatcher_get_handler_times(b.get(), kQuick, &times), CUDAQ_ERR_STATE);
}

TEST_P(HandlerTimes, CanBeReadWhileRequestsAreAnswered) {
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_handler_times(b.get(), 1));
  b.start();
  std::atomic<bool> ends{false};
  std::thread reader([&] {
    for (std::uint64_t last = 0; !ends.load();) {
      const cudaq_handler_times_t seen = times_of(b, kQuick);
      EXPECT_GE(seen.count, last);
      EXPECT_LE(seen.p999_ns, seen.max_ns);
      last = seen.count;
      std::this_thread::yield();
    }
  });
  play(kQuick, 300);
  ends.store(true);
  reader.join();
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
  EXPECT_EQ(times_of(b, kQuick).count, 300u);
}

INSTANTIATE_TEST_SUITE_P(Answered, HandlerTimes,
                         ::testing::Values(flavour{.name = "InTheirTurn", .v1 = true}, flavour{.name = "AsJobs"},
                                           flavour{.name = "ByAPool", .pool = 2},
                                           flavour{.name = "Deferred", .deferred = true},
                                           flavour{.name = "OnASharedRing", .shared = true}),
                         [](const auto &which) { return which.param.name; });

class HandlerTimesOfOneThread : public HandlerTimes {};

// A request that is taken at once after another one begins at the end of that one, and not before.
TEST_P(HandlerTimesOfOneThread, DoNotOverlap) {
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_handler_times(b.get(), 1));
  std::vector<std::uint32_t> slots;
  for (std::uint32_t i = 0; i < 8; ++i)
    slots.push_back(b.client.send(i % 2 == 0 ? kSlow : kQuick, {}, i));
  const auto begin = std::chrono::steady_clock::now();
  b.start(); // it finds all of them
  for (const std::uint32_t slot : slots)
    b.client.collect(slot);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
  const std::chrono::nanoseconds all = std::chrono::steady_clock::now() - begin;
  const cudaq_handler_times_t quick = times_of(b, kQuick), slow = times_of(b, kSlow);
  EXPECT_EQ(quick.count + slow.count, 8u);
  EXPECT_GE(slow.sum_ns, 4 * kSlowNs);
  // 1 % for the rate of the CPU's counter, which the start compares with the clock.
  EXPECT_LE(static_cast<double>(quick.sum_ns + slow.sum_ns), 1.01 * static_cast<double>(all.count()));
}

TEST_P(HandlerTimesOfOneThread, DoNotIncludeTheTimeWithoutARequest) {
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_handler_times(b.get(), 1));
  b.start();
  play(kQuick, 1);
  ASSERT_TRUE(eventually([&] { return times_of(b, kQuick).count == 1; }));
  const std::uint64_t before = times_of(b, kQuick).sum_ns;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto begin = std::chrono::steady_clock::now();
  play(kQuick, 1);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
  const std::chrono::nanoseconds all = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(static_cast<double>(times_of(b, kQuick).sum_ns - before), 1.01 * static_cast<double>(all.count()));
}

INSTANTIATE_TEST_SUITE_P(Answered, HandlerTimesOfOneThread,
                         ::testing::Values(flavour{.name = "InTheirTurn", .v1 = true}, flavour{.name = "AsJobs"}),
                         [](const auto &which) { return which.param.name; });

TEST(HandlerTimesOfRefusedRequests, AreNotCounted) {
  cudaq_function_entry_t quick = host_entry("", answer_frame);
  quick.function_id = kQuick;
  bench b({}, {quick});
  b.options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_handler_times(b.get(), 1));
  b.start();
  b.client.collect(b.client.send(kQuick, {}, 1)); // the refused one after it is answered in its turn, too
  EXPECT_EQ(b.client.collect(b.client.send(kSlow, {}, 2)).header.status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
  EXPECT_EQ(times_of(b, kQuick).count, 1u);
  cudaq_handler_times_t times{};
  times.struct_size = sizeof(times);
  EXPECT_EQ(cudaq_dispatcher_get_handler_times(b.get(), kSlow, &times), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"0x00000052"}));
}

TEST(HandlerTimesArguments, AreChecked) {
  bench b;
  EXPECT_EQ(cudaq_dispatcher_set_handler_times(nullptr, 1), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(cudaq_dispatcher_get_handler_times(b.get(), kQuick, nullptr), CUDAQ_ERR_INVALID_ARG);
  cudaq_handler_times_t times{};
  EXPECT_EQ(cudaq_dispatcher_get_handler_times(nullptr, kQuick, &times), CUDAQ_ERR_INVALID_ARG);
  for (const std::uint32_t size : {0u, 5u, static_cast<std::uint32_t>(sizeof(times)) + 4}) {
    times.struct_size = size;
    EXPECT_EQ(cudaq_dispatcher_get_handler_times(b.get(), kQuick, &times), CUDAQ_ERR_INVALID_ARG) << size;
    EXPECT_TRUE(error_names({"struct_size"}));
  }
}

TEST(HandlerTimesArguments, AreRefusedByTheDevicePath) {
  if ((cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_CUDA_MEMORY) == 0)
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  bench b;
  cudaq_dispatcher_config_t config{};
  config.num_blocks = 1;
  config.threads_per_block = 32;
  config.num_slots = 8;
  config.slot_size = 256;
  config.dispatch_path = CUDAQ_DISPATCH_PATH_DEVICE;
  config.dispatch_mode = CUDAQ_DISPATCH_DEVICE_CALL;
  cudaq_dispatcher_t *device = nullptr;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_create(b.manager.get, &config, &device));
  cudaq_handler_times_t times{};
  times.struct_size = sizeof(times);
  EXPECT_EQ(cudaq_dispatcher_set_handler_times(device, 1), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_EQ(cudaq_dispatcher_get_handler_times(device, kQuick, &times), CUDAQ_ERR_UNSUPPORTED);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(device));
}

} // namespace
} // namespace cudaq::realtime::test

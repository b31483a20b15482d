// SPDX-License-Identifier: Apache-2.0
// Start, stop and destroy many times, under traffic and while other threads read.
#include "cudaq/realtime/detail/base/shared_word.h"
#include "unittests/support/api_fixture.h"
#include "unittests/support/sanitized.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kFn = 77;

std::size_t entries_of(const char *folder) {
  std::size_t n = 0;
  if (DIR *dir = opendir(folder)) {
    while (readdir(dir) != nullptr)
      ++n;
    closedir(dir);
  }
  return n;
}

std::size_t heap_bytes() { return mallinfo2().uordblks; }

/// Sends requests in ring order and takes their answers, until it is destroyed.
class traffic {
public:
  traffic(const host_ring &ring, std::uint32_t function_id)
      : thread_([this, &ring, function_id] {
          const std::uint32_t slots = ring.shape().num_slots;
          std::uint32_t next = 0, oldest = 0, in_ring = 0;
          ring_client client(ring);
          while (!stop_.load()) {
            if (in_ring < slots && cudaq_host_ringbuffer_slot_available(&ring.ring, next) == 1) {
              cudaq_host_ringbuffer_write_rpc_request(&ring.ring, next, function_id, "12345678", 8, next, 0);
              cudaq_host_ringbuffer_signal_slot(&ring.ring, next);
              next = (next + 1) % slots;
              ++in_ring;
            }
            answer got;
            if (in_ring != 0 && client.try_collect(oldest, got)) {
              answered_.fetch_add(1);
              oldest = (oldest + 1) % slots;
              --in_ring;
            }
            std::this_thread::yield();
          }
        }) {}
  ~traffic() {
    stop_ = true;
    thread_.join();
  }
  std::uint64_t answered() const { return answered_.load(); }

private:
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> answered_{0};
  std::thread thread_;
};

constexpr int kCycles = kSanitized ? 200 : 1000;

class Restart : public ::testing::TestWithParam<std::uint32_t> {};

// Known failure 12.
TEST_P(Restart, ManyStartStopCyclesGrowNothing) {
  bench b;
  b.options.handler_pool_size = GetParam();
  b.on(kFn, [](cudaq_host_call_t &) { return 3; });
  const auto cycle = [&] {
    b.start();
    ASSERT_EQ(b.client.call(kFn, {1, 2, 3}).header.status, 3);
    CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
  };
  for (int i = 0; i < 20; ++i)
    cycle();
  const std::size_t threads = entries_of("/proc/self/task"), files = entries_of("/proc/self/fd"), heap = heap_bytes();
  for (int i = 0; i < kCycles && !HasFatalFailure(); ++i)
    cycle();
  EXPECT_TRUE(eventually([&] { return entries_of("/proc/self/task") <= threads; }));
  EXPECT_EQ(entries_of("/proc/self/fd"), files);
  EXPECT_LE(heap_bytes(), heap + 64 * 1024);
  EXPECT_EQ(b.dispatcher->processed, static_cast<std::uint64_t>(kCycles + 20));
  EXPECT_EQ(b.dispatcher->stats().responded, b.dispatcher->processed);
}

TEST_P(Restart, ManyCreateDestroyCyclesGrowNothing) {
  std::size_t heap = 0;
  for (int i = 0; i < kCycles / 2 + 20 && !HasFatalFailure(); ++i) {
    if (i == 20)
      heap = heap_bytes();
    bench b;
    b.options.handler_pool_size = GetParam();
    b.on(kFn, [](cudaq_host_call_t &) { return 3; });
    b.start();
    ASSERT_EQ(b.client.call(kFn, {}).header.status, 3);
  } // destroyed while it runs
  EXPECT_LE(heap_bytes(), heap + 64 * 1024);
}

TEST_P(Restart, DestroyWithoutStopUnderTrafficReturnsAndTouchesNothingAfterwards) {
  for (int i = 0; i < 20; ++i) {
    host_ring ring;
    traffic client(ring, fnv1a_hash("reverse"));
    {
      manager_handle manager;
      host_dispatcher_handle d(manager.get, ring, {host_entry("reverse", reverse_handler)}, host_config(ring.shape()));
      cudaq_dispatcher_options_t options = default_options();
      options.handler_pool_size = GetParam();
      CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(d.get, &options));
      CUDAQ_ASSERT_OK(cudaq_dispatcher_start(d.get));
      ASSERT_TRUE(eventually([&] { return client.answered() > 20; }));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pool, Restart, ::testing::Values(0u, 2u),
                         [](const auto &tested) { return tested.param == 0 ? "Inline" : "Pool"; });

// The payload is valid until the handler returns, even if the handler has answered before that.
TEST(Deferred, PayloadStaysValidUntilTheHandlerReturnsThoughTheAnswerIsOut) {
  for (const bool in_place : {false, true}) {
    bench b({1, 64, in_place});
    std::atomic<bool> refilled{false};
    std::string seen;
    b.on(kFn, [&](cudaq_host_call_t &call) {
      if (call.job.request_id == 1) {
        CUDAQ_EXPECT_OK(cudaq_host_complete_deferred(b.get(), &call.job, 0, 0));
        eventually([&] { return refilled.load(); }, std::chrono::seconds(1));
        seen.assign(static_cast<const char *>(call.payload), call.payload_len);
      }
      return CUDAQ_HOST_CALL_DEFERRED;
    });
    b.start();
    b.client.collect(b.client.send(kFn, {'o', 'l', 'd'}, 1));
    // This slot may become free only after the handler has returned. If it is free earlier, this payload replaces the
    // old one.
    b.client.send(kFn, {'n', 'e', 'w'}, 2);
    refilled = true;
    EXPECT_TRUE(eventually([&] { return b.dispatcher->stats().dispatched == 2; }));
    CUDAQ_EXPECT_OK(stop_again(b.get(), ms(50)));
    EXPECT_EQ(seen, "old") << (in_place ? "in place" : "separate");
  }
}

// A stopped shared ring is wired again with another stride and the same flags, while another thread reads.
// Known failure 12.
TEST(SharedRing, ReadersRunBesideRewiringToAnotherGeometry) {
  cudaq_dispatcher_config_t config = host_config({8, 0, false});
  config.shared_ring_mode = 1;
  bench b({8, 256, false}, {host_entry("reverse", reverse_handler)}, config);
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      b.dispatcher->stats();
      b.dispatcher->dump();
    }
  });
  cudaq_ringbuffer_t small = b.ring.ring;
  small.rx_stride_sz = small.tx_stride_sz = 128;
  for (int i = 0; i < 100; ++i) {
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(b.get(), i % 2 == 0 ? &small : &b.ring.ring));
    b.start();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
  }
  stop = true;
  reader.join();
}

// A ring that is wired again begins at slot 0. Requests that were left in it are forgotten.
TEST(SharedRing, RingThatIsClearedAndWiredAnewBeginsAtSlotZero) {
  cudaq_dispatcher_config_t config = host_config({8, 64, false});
  config.shared_ring_mode = 1;
  bench b({8, 64, false}, {}, config);
  std::vector<std::uint32_t> order;
  b.on(kFn, [&](cudaq_host_call_t &call) {
    order.push_back(call.job.request_id);
    return 0;
  });
  b.start();
  for (std::uint32_t id = 0; id < 3; ++id)
    b.client.call(kFn, {}, id);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
  order.clear();
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(b.get(), &b.ring.ring));
  b.client.set_next_slot(0);
  for (std::uint32_t id = 0; id < 8; ++id)
    b.client.send(kFn, {}, id);
  b.start();
  EXPECT_TRUE(eventually([&] { return b.dispatcher->stats().responded == 11; }));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
  EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(SharedRing, OrphanOfAnEarlierLifeDoesNotBlockTheSlotOfAClearedRing) {
  cudaq_dispatcher_config_t config = host_config({2, 64, false});
  config.shared_ring_mode = 1;
  bench b({2, 64, false}, {}, config);
  b.on(kFn, [](cudaq_host_call_t &) { return 4; });
  b.start();
  b.client.send(0xBAD, {}, 1); // no member serves it: left in place
  EXPECT_EQ(b.client.call(kFn, {}, 2).header.status, 4);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
  store_release(b.ring.ring.rx_flags_host[0], std::uint64_t{0}); // the requester clears the ring
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(b.get(), &b.ring.ring));
  b.client.set_next_slot(0);
  b.start();
  answer got;
  const std::uint32_t slot = b.client.send(kFn, {}, 3);
  EXPECT_TRUE(eventually([&] { return b.client.try_collect(slot, got); }, kDeadline)) << b.dispatcher->dump();
}

} // namespace
} // namespace cudaq::realtime::test

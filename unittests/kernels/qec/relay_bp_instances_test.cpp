// SPDX-License-Identifier: Apache-2.0
// When the memory and the room of decoders on a GPU become free.
#include "kernels/qec/relay_bp/relay_bp_instances.h"
#include "unittests/support/counted_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>

namespace cudaq::qec::realtime::gpu {
namespace {

/// Memory that calls `freed` when it is freed.
template <class Freed>
std::shared_ptr<void> memory_with(Freed freed) {
  return {nullptr, [freed](void *) { freed(); }};
}

TEST(RelayInstances, KeepTheirMemoryUntilTheLastOneHasEnded) {
  relay_instances all;
  int freed = 0;
  const auto memory = [&] { return memory_with([&freed] { ++freed; }); };
  for (int k = 0; k < 3; ++k)
    all.begin(0);
  all.begin(1);
  all.end(0, {memory()});
  all.end(0, {}); // its construction has failed
  EXPECT_EQ(freed, 0);
  all.end(1, {memory()});
  EXPECT_EQ(freed, 1) << "another device";
  all.end(0, {memory()});
  EXPECT_EQ(freed, 3);
}

TEST(RelayInstances, OneThatHasNotEndedKeepsItsRoomAndAllMemoryUntilItHas) {
  relay_instances all;
  relay_gpu gpu{"a GPU", 8, {}, {}};
  gpu.max_chains.add(8, 1);
  int freed = 0;
  bool has_ended = false;
  const auto memory = [&] { return memory_with([&freed] { ++freed; }); };
  all.begin(0);
  ASSERT_TRUE(all.take(0, gpu, 5, 1));
  all.end(0, {memory(), 5, 1, [&] { return has_ended; }});
  all.begin(0);
  EXPECT_FALSE(all.take(0, gpu, 5, 1));
  EXPECT_EQ(all.taken(0).blocks(), 5u);
  all.end(0, {memory()});
  EXPECT_EQ(freed, 0);
  has_ended = true;
  all.begin(0);
  EXPECT_EQ(all.taken(0).blocks(), 0u);
  EXPECT_TRUE(all.take(0, gpu, 5, 1));
  EXPECT_EQ(freed, 0) << "a constructor does not free: that could wait for other kernels";
  all.begin(0);
  all.end(0, {memory(), 0, 1}, false);
  EXPECT_EQ(freed, 0) << "nor one that fails";
  all.end(0, {memory(), 5, 1}, false);
  EXPECT_EQ(freed, 0) << "also if it is the last one";
  all.begin(0);
  all.end(0, {memory(), 0, 1});
  EXPECT_EQ(freed, 5);
  EXPECT_EQ(all.taken(0).blocks(), 0u);
}

TEST(RelayInstances, OneThatFoundNoRoomHoldsUpTheNextUntilItHasEnded) {
  relay_instances all;
  bool has_ended = false;
  all.begin(0);
  all.end(0, {nullptr, 0, 1, [&] { return has_ended; }}, false);
  all.begin(1);
  EXPECT_FALSE(all.waits_for_room(1)) << "another device";
  all.begin(0);
  EXPECT_TRUE(all.waits_for_room(0));
  has_ended = true;
  all.begin(0);
  EXPECT_FALSE(all.waits_for_room(0));
  all.end(0, {nullptr, 0, 1, [] { return false; }});
  EXPECT_FALSE(all.waits_for_room(0)) << "a decoder that was used, and whose blocks end later";
}

// An end cannot fail.
TEST(RelayInstances, EndWithoutAnAllocation) {
  constexpr int kMany = 40;
  relay_instances all;
  for (int k = 0; k < kMany; ++k)
    all.begin(0);
  std::vector<relay_instances::instance> ends(kMany);
  allocations = 0;
  counting = true;
  for (relay_instances::instance &one : ends)
    all.end(0, std::move(one));
  counting = false;
  EXPECT_EQ(allocations, 0u);
}

TEST(RelayInstances, ANewOneWaitsWhileMemoryIsFreed) {
  using namespace std::chrono_literals;
  relay_instances all;
  std::promise<void> frees;
  std::future<void> other;
  std::atomic<bool> begun{false};
  all.begin(0);
  all.end(0, {memory_with([&] {
            other = std::async(std::launch::async, [&] {
              frees.set_value();
              all.begin(0);
              begun = true;
            });
            frees.get_future().wait();
            std::this_thread::sleep_for(50ms);
            EXPECT_FALSE(begun) << "its kernel would hold up the free";
          })});
  other.wait();
  EXPECT_TRUE(begun);
}

} // namespace
} // namespace cudaq::qec::realtime::gpu

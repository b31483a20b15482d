// SPDX-License-Identifier: Apache-2.0
#include "lib/base/slot_queue.h"
#include "unittests/support/eventually.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::test {
namespace {

using detail::slot_queue;

/// A number on a page that cannot be written. A thread that stores to it waits in the fault handler until release().
class held_number {
public:
  held_number() : bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    page_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(page_, MAP_FAILED);
    waits_ = released_ = 0;
    struct sigaction ours {};
    ours.sa_handler = wait_in_fault;
    ours.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &ours, &before_);
  }
  ~held_number() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(page_, bytes_);
  }
  held_number(const held_number &) = delete;
  held_number &operator=(const held_number &) = delete;

  std::uint32_t &number() { return *static_cast<std::uint32_t *>(page_); }
  static bool has_waiting_thread() { return waits_ != 0; }
  void release() {
    EXPECT_EQ(mprotect(page_, bytes_, PROT_READ | PROT_WRITE), 0);
    released_ = 1;
  }

private:
  static void wait_in_fault(int) {
    waits_ = 1;
    for (int tenth_ms = 0; released_ == 0; ++tenth_ms) {
      if (tenth_ms > 300000)
        _exit(99);
      usleep(100);
    }
  }
  static inline std::atomic<int> waits_{0}, released_{0};
  std::size_t bytes_;
  void *page_ = nullptr;
  struct sigaction before_ {};
};

/// Two slots. Thread A is held in its pop, as if it had lost its core. Meanwhile the slot of another thread comes again
/// and again, as from a producer that skips a slot.
TEST(SlotQueue, APopThatIsHeldKeepsNoPlaceFromAPush) {
  slot_queue queue(2);
  queue.push(0);
  queue.push(1);
  held_number got;
  bool popped = false;
  std::thread a([&] { popped = queue.pop(got.number()); });
  EXPECT_TRUE(eventually([] { return held_number::has_waiting_thread(); }));
  std::uint32_t slot = 9;
  std::uint32_t in_turn[2] = {};
  for (std::uint32_t n = 0; n < 2; ++n)
    if (queue.pop(slot))
      ++in_turn[slot];
  EXPECT_EQ(in_turn[0] + in_turn[1], 2u);
  for (int lap = 0; lap < 5; ++lap) {
    queue.push(1);
    EXPECT_TRUE(queue.pop(slot)) << "lap " << lap;
    EXPECT_EQ(slot, 1u);
  }
  queue.push(0);
  got.release();
  a.join();
  EXPECT_TRUE(popped);
  EXPECT_EQ(got.number(), 0u);
  EXPECT_FALSE(queue.pop(slot));
  EXPECT_TRUE(queue.empty());
}

} // namespace
} // namespace cudaq::realtime::test

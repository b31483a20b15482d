// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <span>
#include <sys/mman.h>
#include <unistd.h>

namespace cudaq::realtime::test {

/// A page that holds a thread where the thread touches it: in the fault handler, until release(). One at a time.
class held_page {
public:
  /// protection: what a thread may do before release(): PROT_NONE or PROT_READ.
  explicit held_page(int protection, std::span<const std::uint8_t> bytes = {})
      : size_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    page_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(page_, MAP_FAILED);
    if (!bytes.empty())
      std::memcpy(page_, bytes.data(), bytes.size());
    waits_ = released_ = 0;
    struct sigaction ours {};
    ours.sa_handler = wait_in_fault;
    ours.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &ours, &before_);
    EXPECT_EQ(mprotect(page_, size_, protection), 0);
  }
  ~held_page() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(page_, size_);
  }
  held_page(const held_page &) = delete;
  held_page &operator=(const held_page &) = delete;

  void *data() const { return page_; }
  static bool has_waiting_thread() { return waits_ != 0; }
  void release() {
    EXPECT_EQ(mprotect(page_, size_, PROT_READ | PROT_WRITE), 0);
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
  std::size_t size_;
  void *page_ = nullptr;
  struct sigaction before_ {};
};

} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Makes a thread of the library wait at its next store to a given array of a ring: the page is write-protected, and the
// fault handler holds the thread until the test releases it. A race window of a few nanoseconds becomes certain.
#pragma once

#include "unittests/host_dispatcher/traffic.h"

#include <csignal>
#include <sys/mman.h>
#include <unistd.h>

namespace cudaq::realtime::test {

/// A ring whose four arrays each have their own page. At most one page of a process is paused at a time.
class page_ring {
public:
  explicit page_ring(std::uint32_t num_slots, std::uint32_t slot_size) {
    page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = 4 * page_;
    base_ =
        static_cast<std::uint8_t *>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(base_, MAP_FAILED);
    EXPECT_LE(num_slots * slot_size, page_);
    ring.rx_flags_host = reinterpret_cast<volatile std::uint64_t *>(base_);
    ring.tx_flags_host = reinterpret_cast<volatile std::uint64_t *>(base_ + page_);
    ring.rx_data_host = base_ + 2 * page_;
    ring.tx_data_host = base_ + 3 * page_;
    ring.rx_stride_sz = ring.tx_stride_sz = slot_size;
  }
  ~page_ring() {
    release();
    munmap(base_, bytes_);
  }
  page_ring(const page_ring &) = delete;
  page_ring &operator=(const page_ring &) = delete;

  /// The next thread that stores to `array` waits there until release().
  void pause(volatile void *array) {
    paused_.store(reinterpret_cast<std::uintptr_t>(array));
    held_.store(0);
    released_.store(0);
    struct sigaction ours {};
    ours.sa_sigaction = fault;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &ours, &before_);
    EXPECT_EQ(mprotect(const_cast<void *>(array), page_, PROT_READ), 0);
  }
  bool has_waiting_thread() const { return held_.load() != 0; }
  void release() {
    const std::uintptr_t page = paused_.exchange(0);
    if (page == 0)
      return;
    mprotect(reinterpret_cast<void *>(page), page_, PROT_READ | PROT_WRITE);
    released_.store(1);
    eventually([] { return held_.load() == 0; });
    sigaction(SIGSEGV, &before_, nullptr);
  }

  cudaq_ringbuffer_t ring{};

private:
  static void fault(int, siginfo_t *, void *) {
    held_.fetch_add(1);
    for (int tenth_ms = 0; released_.load() == 0; ++tenth_ms) {
      if (tenth_ms > 300000)
        _exit(99);
      usleep(100);
    }
    held_.fetch_sub(1);
  }

  static inline std::atomic<std::uintptr_t> paused_{0};
  static inline std::atomic<int> held_{0}, released_{0};
  std::size_t page_ = 0, bytes_ = 0;
  std::uint8_t *base_ = nullptr;
  struct sigaction before_ {};
};

} // namespace cudaq::realtime::test

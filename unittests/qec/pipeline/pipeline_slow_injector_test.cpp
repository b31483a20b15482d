// SPDX-License-Identifier: Apache-2.0
// An injector is held after it has taken its ticket and before it writes its slot. The flags show that slot as free.
#include "unittests/qec/pipeline/pipeline_rig.h"

#include <csignal>
#include <sys/mman.h>
#include <unistd.h>

namespace cudaq::qec::realtime::test {
namespace {

/// A payload on a page that cannot be read. A thread that copies it waits in the fault handler until release().
class held_payload {
public:
  explicit held_payload(const std::vector<std::uint8_t> &bytes)
      : size_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    page_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(page_, MAP_FAILED);
    std::memcpy(page_, bytes.data(), bytes.size());
    struct sigaction ours {};
    ours.sa_handler = wait_in_fault;
    ours.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &ours, &before_);
    EXPECT_EQ(mprotect(page_, size_, PROT_NONE), 0);
  }
  ~held_payload() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(page_, size_);
  }
  held_payload(const held_payload &) = delete;
  held_payload &operator=(const held_payload &) = delete;

  const void *data() const { return page_; }
  static bool has_waiting_thread() { return waits_ != 0; }
  void release() {
    EXPECT_EQ(mprotect(page_, size_, PROT_READ), 0);
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

TEST(PipelineSlowInjector, NoOtherInjectorGetsItsSlot) {
  pipeline_rig rig(pipeline_rig::small(1, 2), 2);
  held_payload slow(payload_of(rig.first_id, 8));
  std::thread injecting([&] {
    ring_buffer_injector injector = rig.pipeline->create_injector();
    EXPECT_TRUE(injector.try_submit(kFunction, slow.data(), 8, rig.first_id));
  });
  ASSERT_TRUE(eventually([] { return held_payload::has_waiting_thread(); }));
  ring_buffer_injector other = rig.pipeline->create_injector();
  rig.submit(other, 1);
  const std::vector<std::uint8_t> third = payload_of(99, 8);
  EXPECT_FALSE(other.try_submit(kFunction, third.data(), third.size(), 99))
      << "slot 0 looks free, but a ticket for it was taken";
  EXPECT_EQ(rig.pipeline->stats().submitted, 1u);
  slow.release();
  injecting.join();
  rig.pipeline->start();
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The loop of a resident block, run by CPU threads against a worker's thread.
#include "cudaq/qec/realtime/resident_mailbox.cuh"

#include "unittests/qec/pipeline/pipeline_rig.h"

#include <array>
#include <barrier>

namespace cudaq::qec::realtime::gpu {
namespace {

using cudaq::qec::realtime::test::eventually;
using cudaq::realtime::detail::claim_word;
using cudaq::realtime::detail::load_acquire;
using cudaq::realtime::detail::store_release;

/// The threads of a block, on the CPU.
class cpu_block {
public:
  explicit cpu_block(std::uint32_t threads) : threads_(threads), barrier_(threads) {}
  struct group {
    cpu_block &of;
    std::uint32_t number;
    std::uint32_t thread() const { return number; }
    void sync() const { of.barrier_.arrive_and_wait(); }
    bool any(bool mine) const {
      if (mine)
        of.any_ = true;
      sync();
      const bool result = of.any_;
      sync();
      if (number == 0)
        of.any_ = false;
      sync();
      return result;
    }
    void idle() const { std::this_thread::yield(); }
  };
  /// Runs the block's loop on threads of its own, which end() joins.
  template <class Stage>
  void start(const resident_mailboxes &boxes, std::uint32_t worker, const Stage &stage) {
    for (std::uint32_t t = 0; t < threads_; ++t)
      running_.emplace_back([this, &boxes, worker, t, &stage] {
        serve_mailbox(group{*this, t}, boxes, worker, [t, &stage](const resident_request &r) { stage(t, r); });
      });
  }
  void join() {
    for (std::thread &t : running_)
      t.join();
  }

private:
  const std::uint32_t threads_;
  std::barrier<> barrier_;
  std::atomic<bool> any_{false};
  std::vector<std::thread> running_;
};

constexpr std::uint32_t kWorkers = 2, kThreads = 2;
constexpr std::size_t kStride = 64;

struct mailboxes {
  std::array<std::uint64_t, kWorkers + 1> flags{};
  alignas(64) std::array<std::uint8_t, kWorkers * kStride> frames{}, outputs{};
  std::array<resident_state, kWorkers> states{};
  resident_mailboxes view{flags.data(), frames.data(), kStride, outputs.data(), kStride, states.data(), kWorkers};

  void post(std::uint32_t worker, std::uint64_t value) {
    std::memcpy(frames.data() + worker * kStride, &value, sizeof(value));
    store_release<std::uint64_t>(view.flags[worker], reinterpret_cast<std::uint64_t>(frames.data()) | 1);
  }
  /// The worker's side: the output, once it is ready.
  bool take(std::uint32_t worker, std::uint64_t (&out)[kThreads]) {
    if (!claim_word(states[worker].ready, 1, 2))
      return false;
    std::memcpy(out, outputs.data() + worker * kStride, sizeof(out));
    store_release(states[worker].ready, 0);
    return true;
  }
  void end() { store_release<std::uint64_t>(view.flags[kWorkers], 1); }
};

/// Each thread writes a word of the output.
void add_own_number(std::uint32_t thread, const resident_request &r) {
  std::uint64_t value = 0;
  std::memcpy(&value, r.frame, sizeof(value));
  value += thread + 100 * r.worker;
  std::memcpy(r.output + 8 * thread, &value, sizeof(value));
}

TEST(ResidentMailbox, ServesEachRequestOnceAndEndsOnRequest) {
  mailboxes boxes;
  std::array<cpu_block, kWorkers> blocks{cpu_block(kThreads), cpu_block(kThreads)};
  for (std::uint32_t w = 0; w < kWorkers; ++w)
    blocks[w].start(boxes.view, w, add_own_number);
  for (std::uint32_t w = 0; w < kWorkers; ++w)
    EXPECT_TRUE(eventually([&] { return load_acquire(boxes.states[w].began) == 1; })) << w;
  std::uint64_t wrong = 0;
  for (std::uint64_t k = 1; k <= 60; ++k)
    for (std::uint32_t w = 0; w < kWorkers; ++w) {
      boxes.post(w, 1000 * k);
      std::uint64_t out[kThreads] = {};
      EXPECT_TRUE(eventually([&] { return boxes.take(w, out); })) << k;
      for (std::uint32_t t = 0; t < kThreads; ++t)
        wrong += out[t] != 1000 * k + t + 100 * w;
      EXPECT_EQ(load_acquire(boxes.view.flags[w]), 0u) << "cleared before the ready flag";
    }
  EXPECT_EQ(wrong, 0u);
  boxes.end();
  for (cpu_block &b : blocks)
    b.join();
}

TEST(ResidentMailbox, ARequestThatIsPostedBeforeTheEndIsServed) {
  mailboxes boxes;
  boxes.post(0, 7);
  boxes.end();
  cpu_block block(kThreads);
  block.start(boxes.view, 0, add_own_number);
  block.join();
  std::uint64_t out[kThreads] = {};
  EXPECT_TRUE(boxes.take(0, out));
  EXPECT_EQ(out[1], 8u);
}

} // namespace
} // namespace cudaq::qec::realtime::gpu

// SPDX-License-Identifier: Apache-2.0
// The floor of a round trip by verbs: two queue pairs on the same device, a write with immediate there, a SEND back.
// No request is judged, no slot is kept, nothing is dispatched.
#pragma once

#include "unittests/transport/roce/soft_roce/verbs_pair.h"

#include <atomic>
#include <chrono>
#include <sched.h>
#include <thread>
#include <vector>

namespace cudaq::realtime::test {

class bare_echo {
public:
  /// `own` and `server`: IPv4 addresses of the device. Frames have the sizes of the request and of the answer.
  bare_echo(ibv_qp_type type, std::uint32_t mtu, const char *own, const char *server, std::uint32_t request_bytes,
            std::uint32_t answer_bytes)
      : request_bytes_(request_bytes), answer_bytes_(answer_bytes),
        here_(verbs_open(request_bytes + answer_bytes, kDepth, type, own)),
        there_(verbs_open(request_bytes + answer_bytes, kDepth, type, server)) {
    for (std::uint32_t i = 0; i < kDepth; ++i)
      verbs_post_receive(&there_, 0, request_bytes_, i);
    verbs_connect(&there_, mtu, own, here_.pair->qp_num, 0);
    verbs_connect(&here_, mtu, server, there_.pair->qp_num, 0);
  }
  bare_echo(const bare_echo &) = delete;
  bare_echo &operator=(const bare_echo &) = delete;

  /// Appends the round trips in us. The thread that answers runs during this call only: the guest has few processors.
  void exchange(std::uint32_t count, std::vector<double> &us) {
    std::atomic<bool> stop{false};
    std::thread answering([&] {
      while (!stop)
        if (received(there_)) {
          verbs_post_receive(&there_, 0, request_bytes_, 0);
          verbs_post_send(&there_, IBV_WR_SEND, request_bytes_, answer_bytes_, 0, 0, 0);
        } else {
          usleep(50); // as the dispatcher of the test's server waits: block_interval_ns
        }
    });
    for (std::uint32_t i = 0; i < count; ++i) {
      verbs_post_receive(&here_, request_bytes_, answer_bytes_, 0);
      const auto begin = std::chrono::steady_clock::now();
      verbs_post_send(&here_, IBV_WR_RDMA_WRITE_WITH_IMM, 0, request_bytes_,
                      reinterpret_cast<std::uintptr_t>(there_.buffer), there_.memory->rkey, 0);
      while (!received(here_))
        CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
      us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    stop = true;
    answering.join();
  }

private:
  static constexpr std::uint32_t kDepth = 8;

  /// A message has arrived. Without one, another thread gets the processor.
  static bool received(const verbs_pair &at) {
    ibv_wc done;
    const int n = ibv_poll_cq(at.completions, 1, &done);
    CHECK(n >= 0 && (n == 0 || done.status == IBV_WC_SUCCESS));
    if (n == 0)
      sched_yield();
    return n == 1 && (done.opcode & IBV_WC_RECV) != 0;
  }

  const std::uint32_t request_bytes_, answer_bytes_;
  const verbs_pair here_, there_;
};

} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The thread of the cpu_roce provider that serves callers, without memory.
#include "lib/transport/cpu_roce/rendezvous.h"
#include "unittests/support/fault_points.h"
#include "unittests/transport/cpu_roce/rendezvous_call.h"

#include <gtest/gtest.h>
#include <new>
#include <thread>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kServed = 7, kNeedsMemory = 8, kReply = 9, kAddress = 0x7F000001;

std::optional<detail::rendezvous_numbers> take(const detail::rendezvous_numbers &caller) {
  if (caller.qp == kNeedsMemory)
    throw std::bad_alloc();
  return detail::rendezvous_numbers{kReply, 1, kAddress};
}

/// The reply's queue pair; 0: the caller is refused.
std::uint32_t call(std::uint32_t port, std::uint32_t queue_pair) {
  const int fd = rendezvous_connect("127.0.0.1", port);
  const bool sent = rendezvous_send(fd, {queue_pair, 1, kAddress});
  const std::optional<call_numbers> reply = rendezvous_receive(fd);
  ::close(fd);
  return sent && reply ? reply->qp : 0;
}

TEST(RendezvousFaults, CallersThatNeedNoMemoryAreServedAndTheOthersRefused) {
  detail::rendezvous server;
  ASSERT_EQ(server.open("127.0.0.1", 0).text(), "");
  int refused = 0; // of the thread, until its end
  const detail::rendezvous::hooks hooks = {take, [] { return false; }, [&refused] { ++refused; }, [] {}};
  std::thread thread([&] { server.serve(hooks); });
  faults::arm(1, 1'000'000, "operator new");
  const std::uint32_t first = call(server.port(), kServed), second = call(server.port(), kNeedsMemory),
                      third = call(server.port(), kServed);
  faults::disarm();
  server.stop();
  thread.join();
  EXPECT_EQ(first, kReply);
  EXPECT_EQ(second, 0u);
  EXPECT_EQ(third, kReply);
  EXPECT_EQ(refused, 1);
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The device hooks of gpu-roce on the CPU, with queues of the test in place of the adapter's.
#include "contrib/gpu_roce/sensor_session.h"

#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace cudaq::realtime::test {
namespace {

using namespace detail;

/// The reports that the adapter will give, and the calls that it got, in order: "send 0", "repost 64".
struct adapter_script {
  std::deque<queue_entry> completions;
  std::uint32_t polls = 0, shutdown_after = 0; ///< 0: never
  volatile int *shutdown = nullptr;
  std::vector<std::uint64_t> polled;
  std::vector<std::string> calls;
  send_request last{};
} script;

struct scripted_adapter {
  scripted_adapter(const gpu_roce_context &, const void *) {}
  bool poll(std::uint64_t index, queue_entry &out) {
    if (++script.polls == script.shutdown_after)
      *script.shutdown = 1;
    if (script.completions.empty())
      return false;
    script.polled.push_back(index);
    out = script.completions.front();
    script.completions.pop_front();
    return true;
  }
  std::uint32_t queue_shifted() { return 0x1c7 << 8; }
  void send(send_request &request, std::uint64_t index) {
    script.last = request;
    script.calls.push_back("send " + std::to_string(index));
  }
  void repost(std::uint64_t index) { script.calls.push_back("repost " + std::to_string(index)); }
  void finish_send() { script.calls.push_back("finish"); }
};
using session = sensor_session<scripted_adapter>;
constexpr std::uint32_t kWrite = session::kWriteWithImmediate;

class SensorSession : public ::testing::Test {
protected:
  SensorSession() {
    script = {};
    script.shutdown = &shutdown;
  }
  session *attach() { return session::attach(storage, &context, &shutdown); }
  /// The page of the next request; -1: the kernel ends.
  int next_page() {
    void *request = nullptr, *response = nullptr;
    if (!s->poll(&request, &response))
      return -1;
    answer = static_cast<std::uint8_t *>(response);
    const auto page = (static_cast<std::uint8_t *>(request) - pages.data()) / 128;
    EXPECT_EQ(answer, pages.data() + (context.num_pages + static_cast<std::size_t>(page)) * 128);
    return static_cast<int>(page);
  }

  std::vector<std::uint8_t> pages = std::vector<std::uint8_t>(2 * 8 * 128);
  gpu_roce_context context{.magic = kGpuRoceContextMagic,
                           .num_pages = 8,
                           .page_size = 128,
                           .frame_size = 32,
                           .key = 7700,
                           .blue_flame = 1,
                           .queue_pair = nullptr,
                           .pages = pages.data(),
                           .pages_remote = 0,
                           .received = 0,
                           .sent = 0};
  alignas(16) std::uint8_t storage[256];
  volatile int shutdown = 0;
  session *s = attach();
  std::uint8_t *answer = nullptr;
};
static_assert(sizeof(session) <= 256 && alignof(session) == 16);

TEST_F(SensorSession, RefusesAContextOfAnotherVersion) {
  EXPECT_EQ(session::attach(storage, nullptr, &shutdown), nullptr);
  EXPECT_EQ(session::attach(storage, &context, nullptr), nullptr);
  context.magic ^= 1;
  EXPECT_EQ(attach(), nullptr);
}

TEST_F(SensorSession, TakesThePageFromTheLowerBitsOfTheImmediate) {
  script.completions = {{kWrite, 0x5007}, {kWrite, 0}};
  EXPECT_EQ(next_page(), 7);
  std::memset(answer, 'a', 32);
  s->publish(answer);
  EXPECT_EQ(next_page(), 0);
  EXPECT_EQ(script.polled, (std::vector<std::uint64_t>{0, 1}));
}

TEST_F(SensorSession, SendsBeforeItPostsTheReceiveRequestAgain) {
  script.completions = {{kWrite, 3}, {kWrite, 4}};
  for (int i = 0; i < 2; ++i) {
    next_page();
    std::memset(answer, 'a', 32);
    s->publish(answer);
  }
  EXPECT_EQ(script.calls, (std::vector<std::string>{"send 0", "repost 64", "finish", "send 1", "repost 65", "finish"}));
}

TEST_F(SensorSession, DoesNotSendAHeaderOfZeros) {
  script.completions = {{kWrite, 3}, {kWrite, 4}};
  next_page();
  s->publish(answer);
  EXPECT_EQ(script.calls, (std::vector<std::string>{"repost 64"}));
  next_page();
  answer[0] = 1;
  s->publish(answer);
  EXPECT_EQ(script.calls.at(1), "send 0") << "the index counts what was sent";
}

TEST_F(SensorSession, PassesOverPagesThatThereAreNot) {
  script.completions = {{kWrite, 8}, {kWrite, 0xFFF}, {kWrite, 5}};
  EXPECT_EQ(next_page(), 5);
  EXPECT_EQ(script.calls, (std::vector<std::string>{"repost 64", "repost 65"}));
  EXPECT_EQ(context.received, 2u);
}

TEST_F(SensorSession, ReadsTheShutdownFlagEvery1024Polls) {
  script.shutdown_after = 1;
  EXPECT_EQ(next_page(), -1);
  EXPECT_EQ(script.polls, 1023u) << "the 1024th poll reads the flag instead";
}

TEST_F(SensorSession, ReadsTheShutdownFlagAmongWrongPages) {
  for (int i = 0; i < 3000; ++i)
    script.completions.push_back({kWrite, 100});
  script.shutdown_after = 1500;
  EXPECT_EQ(next_page(), -1);
  EXPECT_EQ(script.polls, 2047u);
}

TEST_F(SensorSession, ReturnsARequestAlthoughTheFlagIsSet) {
  shutdown = 1;
  script.completions = {{kWrite, 2}};
  EXPECT_EQ(next_page(), 2);
}

TEST_F(SensorSession, EndsWhenTheQueuePairHasFailed) {
  script.completions = {{14 /* MLX5_CQE_RESP_ERR */, 2}};
  EXPECT_EQ(next_page(), -1);
  EXPECT_TRUE(script.calls.empty());
}

TEST_F(SensorSession, GoesOnAfterARestart) {
  script.completions = {{kWrite, 0x1000}, {kWrite, 0x1001}, {kWrite, 0x1002}};
  next_page();
  s->publish(answer); // without an answer
  next_page();
  answer[0] = 1;
  s->publish(answer);
  EXPECT_EQ(context.received, 2u);
  EXPECT_EQ(context.sent, 1u);
  std::memset(storage, 0xCD, sizeof(storage));
  s = attach();
  next_page();
  answer[0] = 1;
  s->publish(answer);
  EXPECT_EQ(script.polled.back(), 2u);
  EXPECT_EQ(script.calls.at(script.calls.size() - 3), "send 1");
}

TEST_F(SensorSession, PointsToALongAnswer) {
  context.frame_size = 100;
  context.pages_remote = 0x100000000;
  s = attach();
  script.completions = {{kWrite, 3}};
  next_page();
  answer[0] = 1;
  s->publish(answer);
  EXPECT_EQ(script.last.word[4], big_endian(100));
  EXPECT_EQ(script.last.word[5], big_endian(7700));
  EXPECT_EQ(script.last.word[6], big_endian(1));
  EXPECT_EQ(script.last.word[7], big_endian((8 + 3) * 128));
}

} // namespace
} // namespace cudaq::realtime::test

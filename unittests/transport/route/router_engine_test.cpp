// SPDX-License-Identifier: Apache-2.0
// The engine with its thread: requests of one thread, answers on another.
#include "lib/transport/route/router_engine.h"

#include <array>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <new>

namespace cudaq::realtime::detail::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kNoAnswer = UINT64_MAX; ///< a value that the node does not answer

/// A node that answers each request with its payload, from the router's thread. It may fall silent, and be without
/// memory once.
class echo_link final : public node_link {
public:
  bool connect(std::uint32_t) override { return true; }
  void disconnect(std::uint32_t) override { waiting_.clear(); }
  void send(std::uint32_t, const route_header &header, std::span<const std::uint8_t> payload) override {
    route_header reply = header;
    if (payload.size() == sizeof kNoAnswer && std::memcmp(payload.data(), &kNoAnswer, sizeof kNoAnswer) == 0)
      return;
    if (header.kind == route_kind::hello) {
      reply.kind = route_kind::welcome;
      reply.slot = 8;
      reply.function_id = 1024;
      reply.status = 1;
    } else if (header.kind == route_kind::request) {
      reply.kind = route_kind::answer;
    } else {
      reply.kind = route_kind::pong;
    }
    std::vector<std::uint8_t> message(sizeof reply + payload.size());
    std::memcpy(message.data(), &reply, sizeof reply);
    std::copy(payload.begin(), payload.end(), message.begin() + sizeof reply);
    waiting_.push_back(std::move(message));
  }
  std::uint32_t progress(const message_receiver &message, const failure_receiver &) override {
    if (without_memory.load() != 0) {
      without_memory.store(0);
      throw std::bad_alloc();
    }
    std::uint32_t work = 0;
    for (; silent.load() == 0 && !waiting_.empty(); ++work) {
      const auto next = std::move(waiting_.front());
      waiting_.pop_front();
      message({}, next);
    }
    return work;
  }
  bool flush(std::uint64_t) override { return true; }
  std::string carrier(std::uint32_t) override { return "echo"; }

  shared_word<std::uint32_t> silent, without_memory;

private:
  std::deque<std::vector<std::uint8_t>> waiting_;
};

class RouterEngine : public testing::Test {
protected:
  static constexpr std::uint32_t kEntries = 16, kFunction = 3;

  RouterEngine() {
    route_table table;
    table.num_nodes = 1;
    table.functions = {{kFunction, false, 0, false, true}};
    router_limits limits;
    limits.num_entries = kEntries;
    limits.lost_after = 60s;
    limits.answer_limit = 0s;
    engine_ = std::make_unique<router_engine>(
        table, limits, 64, link_,
        router_engine::events{[this](std::uint32_t entry, std::int32_t status, std::span<const std::uint8_t> result) {
                                statuses_[entry] = status;
                                results_[entry].assign(result.begin(), result.end());
                                answered_[entry].store(answered_[entry].peek() + 1);
                              },
                              [this](std::uint32_t, node_state state, const std::string &) {
                                joined_.store(state == node_state::joined ? 1 : 0);
                              }});
  }
  void wait_joined() {
    ASSERT_TRUE(wait_until(deadline_after(20'000'000'000), [this] { return joined_.load() == 1; }));
  }
  bool submit(std::uint32_t entry, std::uint64_t value) {
    std::uint8_t payload[8];
    std::memcpy(payload, &value, 8);
    return engine_->submit(entry, kFunction, payload, 0);
  }

  echo_link link_;
  std::array<std::int32_t, kEntries> statuses_{};
  std::array<std::vector<std::uint8_t>, kEntries> results_;
  std::array<shared_word<std::uint64_t>, kEntries> answered_;
  shared_word<std::uint32_t> joined_;
  std::unique_ptr<router_engine> engine_;
};

TEST_F(RouterEngine, AnswersEachRequestOnceWithItsResult) {
  ASSERT_TRUE(engine_->start(CUDAQ_WAIT_SPIN_YIELD).ok());
  wait_joined();
  constexpr std::uint64_t kRequests = 20000;
  std::array<std::uint64_t, kEntries> sent{};
  for (std::uint64_t n = 0; n < kRequests; ++n) {
    const std::uint32_t entry = static_cast<std::uint32_t>(n % kEntries);
    ASSERT_TRUE(wait_until(deadline_after(20'000'000'000), [&] { return answered_[entry].load() == sent[entry]; }));
    if (sent[entry] != 0) {
      ASSERT_EQ(statuses_[entry], 0);
      std::uint64_t value = 0;
      ASSERT_EQ(results_[entry].size(), 8u);
      std::memcpy(&value, results_[entry].data(), 8);
      ASSERT_EQ(value, n - kEntries);
    }
    ++sent[entry];
    ASSERT_TRUE(submit(entry, n));
  }
  EXPECT_TRUE(wait_until(deadline_after(20'000'000'000), [this] { return engine_->idle(); }));
  EXPECT_TRUE(engine_->stop(deadline_after(20'000'000'000)));
  for (std::uint32_t entry = 0; entry < kEntries; ++entry)
    EXPECT_EQ(answered_[entry].load(), sent[entry]);
}

TEST_F(RouterEngine, AnswersWhatIsOpenWhenItLeavesAndRefusesTheRest) {
  ASSERT_TRUE(engine_->start(CUDAQ_WAIT_BLOCK).ok());
  wait_joined();
  link_.silent.store(1);
  for (std::uint32_t entry = 0; entry < kEntries; ++entry)
    ASSERT_TRUE(submit(entry, entry));
  engine_->leave();
  ASSERT_TRUE(wait_until(deadline_after(20'000'000'000), [this] { return engine_->idle(); }));
  ASSERT_TRUE(submit(3, 3));
  ASSERT_TRUE(wait_until(deadline_after(20'000'000'000), [this] { return engine_->idle(); }));
  EXPECT_EQ(answered_[3].load(), 2u);
  EXPECT_EQ(statuses_[3], static_cast<std::int32_t>(route_status::not_ready));
  EXPECT_TRUE(engine_->stop(deadline_after(20'000'000'000)));
  for (std::uint32_t entry = 0; entry < kEntries; ++entry)
    EXPECT_EQ(answered_[entry].load(), entry == 3 ? 2u : 1u);
}

TEST_F(RouterEngine, IsNotIdleWhileARequestIsOpen) {
  ASSERT_TRUE(engine_->start(CUDAQ_WAIT_SPIN_YIELD).ok());
  wait_joined();
  constexpr std::uint64_t kRequests = 2000;
  ASSERT_TRUE(submit(1, kNoAnswer));
  shared_word<std::uint32_t> ends;
  std::uint64_t wrong = 0;
  std::thread observer([&] {
    for (; ends.load() == 0; std::this_thread::yield())
      wrong += engine_->idle() ? 1 : 0;
  });
  for (std::uint64_t n = 0; n < kRequests; ++n) {
    EXPECT_TRUE(submit(0, n));
    EXPECT_TRUE(wait_until(deadline_after(20'000'000'000), [&] { return answered_[0].load() == n + 1; }));
  }
  ends.store(1);
  observer.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(engine_->stop(deadline_after(20'000'000'000)));
}

TEST_F(RouterEngine, GoesOnAfterATurnWithoutMemory) {
  ASSERT_TRUE(engine_->start(CUDAQ_WAIT_SPIN_YIELD).ok());
  wait_joined();
  link_.without_memory.store(1);
  EXPECT_TRUE(wait_until(deadline_after(20'000'000'000), [this] { return link_.without_memory.load() == 0; }));
  ASSERT_TRUE(submit(1, 5));
  EXPECT_TRUE(wait_until(deadline_after(20'000'000'000), [this] { return answered_[1].load() == 1; }));
  EXPECT_TRUE(engine_->stop(deadline_after(20'000'000'000)));
  EXPECT_EQ(statuses_[1], 0);
}

TEST_F(RouterEngine, RefusesWhatItHasNoRoomFor) {
  EXPECT_FALSE(engine_->submit(0, kFunction, std::vector<std::uint8_t>(65), 0));
  EXPECT_FALSE(engine_->submit(kEntries, kFunction, {}, 0));
  EXPECT_TRUE(engine_->idle());
}

TEST_F(RouterEngine, DrainsANodeWhileItRuns) {
  request_router::time now = 1s;
  for (int i = 0; i < 3; ++i)
    engine_->turn(now += 1ms);
  engine_->drain(1);
  ASSERT_TRUE(submit(0, 1));
  engine_->turn(now += 1ms);
  EXPECT_EQ(statuses_[0], static_cast<std::int32_t>(route_status::not_ready));
  engine_->drain(0);
  ASSERT_TRUE(submit(0, 1));
  engine_->turn(now += 1ms);
  engine_->turn(now += 1ms);
  EXPECT_EQ(statuses_[0], 0);
}

} // namespace
} // namespace cudaq::realtime::detail::test

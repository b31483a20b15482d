// SPDX-License-Identifier: Apache-2.0
// Random schedules: nodes die, stop, go on and leave while requests are under way; messages arrive late and again.
// Every request gets exactly one answer, and an answer 0 is the right one.
#include "unittests/transport/route/route_world.h"

#include <random>

namespace cudaq::realtime::detail::test {
namespace {

constexpr std::uint32_t kNodes = 3, kKeys = 4 * kNodes;

/// A requester that keeps to the rules: after `lost` it waits for its open requests, resets, and waits for the answer.
struct stream_model {
  std::uint32_t open = 0;
  bool lost = false;
  std::uint64_t count = 0; ///< what the decoder must have counted
};

class random_run {
public:
  explicit random_run(std::uint32_t seed)
      : random_(seed), world_(kNodes, [&](router_limits &limits) {
          limits.max_credits = 1 + seed % 5;
          limits.queue_length = seed % 4;
          limits.answer_limit = seed % 3 == 0 ? 0ns : 2500ms;
        }) {
    stopped_.assign(kNodes, false);
    world_.on_answer = [this](std::uint32_t entry, const given_answer &given) { check(entry, given); };
  }

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step)
      take_step();
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      stopped_[node] = false;
      if (world_.dead[node])
        world_.start_node(node);
    }
    world_.settle_for(8s);
    EXPECT_TRUE(world_.router->idle());
    EXPECT_EQ(answered_, world_.serial);
    expect_recovery();
  }
  std::uint64_t good() const { return good_; }
  std::uint64_t lost() const { return lost_; }
  std::uint64_t strays() const { return world_.router->stray_messages().value(); }

private:
  std::uint32_t pick(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }

  void submit() {
    const std::uint64_t key = pick(kKeys);
    stream_model &stream = streams_[key];
    if (stream.open >= (stream.lost ? 1u : 4u) || (stream.lost && stream.open != 0))
      return;
    ++stream.open;
    world_.submit(stream.lost ? kResetKey : kAdd, key);
  }

  void check(std::uint32_t entry, const given_answer &given) {
    ++answered_;
    const std::uint64_t key = word_at(world_.payloads[entry], 0);
    stream_model &stream = streams_[key];
    --stream.open;
    if (given.status == kLost) {
      stream.lost = true;
      ++lost_;
    } else if (given.status == 0 && given.result.empty()) { // a reset
      stream.lost = false;
      stream.count = 0;
    } else if (given.status == 0 && !stream.lost) {
      ASSERT_EQ(word_at(given.result, 0), ++stream.count) << "key " << key;
      ++good_;
    } else {
      ASSERT_TRUE(stream.lost || given.status == kNotReady || given.status == kBusy ||
                  given.status == CUDAQ_RPC_ERR_SHUTTING_DOWN)
          << given.status;
    }
  }

  void move_node(std::uint32_t node) {
    if (world_.dead[node] || stopped_[node])
      return;
    simulated_node &process = *world_.nodes[node];
    process.receive(world_.now, pick(4), pick(2) == 0);
    if (pick(3) != 0)
      process.take_all();
    for (std::uint32_t n = pick(4); n > 0 && process.execute_one(); --n) {
    }
    process.sessions->tick(world_.now);
  }

  /// A message of any time arrives (again) at the router, sometimes with a bit changed.
  void replay(std::uint32_t node) {
    if (!world_.wires[node] || world_.wires[node]->to_router.empty())
      return;
    kept_.push_back(world_.wires[node]->to_router.front());
    if (kept_.size() > 20)
      kept_.pop_front();
  }
  void deliver_kept() {
    if (kept_.empty())
      return;
    const bytes &message = kept_[pick(static_cast<std::uint32_t>(kept_.size()))];
    route_header header;
    std::span<const std::uint8_t> payload;
    ASSERT_TRUE(read_route_message(message, header, payload));
    if (header.kind == route_kind::answer) // of the others, a second one of the same session is not harmless
      world_.router->received({}, message, world_.now);
    bytes broken = message;
    broken[pick(16)] ^= static_cast<std::uint8_t>(1 << pick(8)); // magic, version, kind, node or epoch
    if (broken[5] != message[5])
      return; // another kind of the same session is what a node may send
    world_.router->received({}, broken, world_.now);
  }

  void disturb(std::uint32_t node) {
    switch (pick(6)) {
    case 0:
      world_.kill_node(node);
      stopped_[node] = false;
      return;
    case 1:
      stopped_[node] = true;
      return;
    case 2:
      stopped_[node] = false;
      return;
    case 3:
      if (!world_.dead[node] && !stopped_[node]) { // it ends as after SIGTERM
        world_.nodes[node]->take_all();
        while (world_.nodes[node]->execute_one()) {
        }
        world_.nodes[node]->sessions->close();
        while (world_.wires[node] && !world_.wires[node]->to_router.empty())
          world_.deliver_to_router(node, 1);
        world_.kill_node(node);
      }
      return;
    default:
      if (world_.dead[node])
        world_.start_node(node);
    }
  }

  void take_step() {
    const std::uint32_t node = pick(kNodes);
    switch (pick(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return submit();
    case 4:
    case 5:
    case 6:
      return move_node(node);
    case 7:
      replay(node);
      return world_.deliver_to_router(node, pick(4));
    case 8:
      return world_.deliver_to_router(node);
    case 9:
      return deliver_kept();
    case 10:
      world_.now += std::chrono::milliseconds(pick(40));
      return world_.router->tick(world_.now);
    default:
      if (pick(40) == 0)
        disturb(node);
    }
  }

  void expect_recovery() {
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      ASSERT_EQ(world_.call(kResetKey, key), 0) << key;
      const std::uint32_t add = world_.submit(kAdd, key);
      world_.settle();
      ASSERT_EQ(world_.status(add), 0) << key;
      EXPECT_EQ(world_.result(add), 1u);
    }
  }

  std::mt19937 random_;
  route_world world_;
  std::vector<bool> stopped_;
  std::map<std::uint64_t, stream_model> streams_;
  std::deque<bytes> kept_;
  std::uint64_t answered_ = 0, good_ = 0, lost_ = 0;
};

TEST(RequestRouterRandom, EveryRequestGetsExactlyOneAnswerAndEachResultIsRight) {
  std::uint64_t good = 0, lost = 0, strays = 0;
  for (std::uint32_t seed = 1; seed <= 150 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    random_run run(seed);
    run.run(6000);
    good += run.good();
    lost += run.lost();
    strays += run.strays();
  }
  EXPECT_GT(good, 10000u); // the schedules reach both
  EXPECT_GT(lost, 1000u);
  EXPECT_GT(strays, 1000u);
}

} // namespace
} // namespace cudaq::realtime::detail::test

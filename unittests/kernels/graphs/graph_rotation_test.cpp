// SPDX-License-Identifier: Apache-2.0
// Members of the graph schedulers' rotation that come late, do not come back, or cannot relaunch themselves.
#include "unittests/kernels/graphs/graph_host.h"

namespace cudaq::realtime::test {
namespace {

constexpr int kRefused = 7; ///< a cudaError_t

/// A function whose graph answers at once, 2, and one whose graph waits for a gate, 3.
class GraphRotation : public ::testing::Test {
protected:
  void make(std::uint32_t members, bool publishes = false) {
    graphs[1].gate = &gate;
    graphs[0].publishes = graphs[1].publishes = publishes;
    host =
        std::make_unique<graph_host>(ring, std::vector<graph_entry>{{2, 0, &graphs[0]}, {3, 0, &graphs[1]}}, members);
  }
  void calls(std::uint32_t count) {
    for (std::uint32_t n = 0; n < count; ++n)
      ASSERT_EQ(client.call(2, {}, n).header.status, 0) << n;
  }

  void the_last_one_cannot_relaunch(bool publishes);

  const host_ring ring{{1024, 64, false}}; // no request comes round to the slot of one that waits
  ring_client client{ring};
  std::vector<fake_graph> graphs{2};
  std::atomic<bool> gate{false};
  std::unique_ptr<graph_host> host;
};

// The gate is closed: whoever has launched the graph behind it does not come back.
TEST_F(GraphRotation, Row03_OthersGoOnWhileAMemberWaitsForASlowGraph) {
  make(3);
  host->start();
  const std::uint32_t slow = client.send(3, {}, 1000);
  calls(600);
  answer early;
  EXPECT_FALSE(client.try_collect(slow, early));
  gate.store(true);
  EXPECT_EQ(client.collect(slow).header.request_id, 1000u);
  host->stop();
  EXPECT_GE(host->members_that_served(), 3u);
}

TEST_F(GraphRotation, WhoeverIsThereFirstServes) {
  make(3);
  host->bring(2);
  calls(50);
  host->bring(1);
  host->stop();
  EXPECT_EQ(host->executions[2], 1u);
  EXPECT_EQ(host->executions[0], 0u);
}

// Its place on the device is somebody else's when it wants to come back.
TEST_F(GraphRotation, AnotherTakesTheTokenOfAMemberThatDoesNotComeBack) {
  make(2);
  host->detained[0].store(true);
  host->bring(0);
  calls(kMostLaunches);
  EXPECT_TRUE(eventually([&] { return host->token() == kTokenFree; }));
  const std::uint32_t waits = client.send(2, {}, 777);
  host->bring(1);
  EXPECT_EQ(client.collect(waits).header.request_id, 777u);
  calls(50);
  host->detained[0].store(false);
  host->stop();
  EXPECT_EQ(host->executions[1], 1u);
  EXPECT_EQ(host->state().counts.unrelieved, 1u);
}

TEST_F(GraphRotation, AMemberThatCannotRelaunchItselfIsDoneWithout) {
  make(3);
  host->relaunch_errors[1].store(kRefused);
  host->start();
  calls(1000);
  host->stop();
  EXPECT_LE(host->executions[1], 1u);
  EXPECT_EQ(host->fault(), 0u);
}

// It has the token, and may not launch: what comes waits for the other one.
TEST_F(GraphRotation, AMemberThatCannotRelaunchItselfKeepsServingUntilAnotherOneComes) {
  make(2);
  host->relaunch_errors[0].store(kRefused);
  host->bring(0);
  calls(kMostLaunches);
  std::vector<std::uint32_t> waiting;
  for (std::uint32_t n = 0; n < 5; ++n)
    waiting.push_back(client.send(2, {}, n));
  EXPECT_TRUE(eventually([&] { return load_relaxed(host->base.reports[0].dispatched) == kMostLaunches + 5; }));
  EXPECT_TRUE(eventually([&] { return host->relaunches_refused.load() == 1; })) << "or this would be an ordinary pass";
  host->bring(1);
  for (std::uint32_t n = 0; n < 5; ++n)
    EXPECT_EQ(client.collect(waiting[n]).header.status, 0);
  host->stop();
  EXPECT_EQ(host->fault(), 0u);
}

// Whether the other one comes at all, nobody knows: a stop does not wait for it.
TEST_F(GraphRotation, Row12_AStopDoesNotWaitForAMemberThatMayNeverCome) {
  make(2);
  host->relaunch_errors[0].store(kRefused);
  host->bring(0);
  calls(kMostLaunches);
  const std::uint32_t waits = client.send(2, {}, 777);
  EXPECT_TRUE(eventually([&] { return load_relaxed(host->base.reports[0].dispatched) == kMostLaunches + 1; }));
  EXPECT_TRUE(eventually([&] { return host->relaunches_refused.load() != 0; }));
  host->stop();
  EXPECT_EQ(client.collect(waits).header.status, CUDAQ_RPC_ERR_LAUNCH_FAILED);
  EXPECT_EQ(host->fault(), static_cast<std::uint32_t>(kRefused));
}

// Row 7 of the field notes: an answer to everything accepted, none twice, and the reason is told.
void GraphRotation::the_last_one_cannot_relaunch(bool publishes) {
  constexpr std::uint32_t kFail = 5, kBefore = kMostLaunches - 6;
  make(2, publishes);
  std::atomic<bool> quick_gate{true};
  graphs[0].gate = &quick_gate;
  host->relaunch_errors[0].store(kRefused);
  host->relaunch_errors[1].store(kRefused);
  host->bring(0);
  const std::uint32_t slow = client.send(3, {}, 1000);
  calls(kMostLaunches - 1);
  std::vector<std::uint32_t> sent{client.send(2, {}, 1)}; // waits for the other one
  host->bring(1);
  EXPECT_EQ(client.collect(sent[0]).header.status, 0);
  calls(kBefore - 1);
  quick_gate.store(false);
  sent.clear();
  for (std::uint32_t n = 0; n < kMostLaunches - kBefore + kFail; ++n)
    sent.push_back(client.send(2, {}, n));
  const std::uint64_t all = 2 * kMostLaunches + kFail;
  EXPECT_TRUE(eventually([&] { return load_relaxed(host->base.reports[0].dispatched) == all; }));
  quick_gate.store(true);
  for (std::uint32_t n = 0; n < sent.size(); ++n)
    EXPECT_EQ(client.collect(sent[n]).header.status, n < kMostLaunches - kBefore ? 0 : CUDAQ_RPC_ERR_LAUNCH_FAILED);
  gate.store(true); // somebody still looks after it
  EXPECT_EQ(client.collect(slow).header.request_id, 1000u);
  host->join();
  EXPECT_EQ(host->fault(), static_cast<std::uint32_t>(kRefused));
  EXPECT_EQ(host->state().accepted, 0u);
  for (auto &error : host->relaunch_errors)
    error.store(0);
  host->renew();
  host->start();
  calls(10);
  host->stop();
  EXPECT_EQ(host->fault(), 0u);
  EXPECT_EQ(graphs[1].launches, 1u) << "its request was answered";
}
TEST_F(GraphRotation, Row07_TheLastOneThatCannotRelaunchItselfAnswersEverythingAndSaysWhy) {
  the_last_one_cannot_relaunch(false);
}
TEST_F(GraphRotation, Row07_TheSameWithGraphsThatPublish) { the_last_one_cannot_relaunch(true); }

} // namespace
} // namespace cudaq::realtime::test

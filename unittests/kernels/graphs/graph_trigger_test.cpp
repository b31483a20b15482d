// SPDX-License-Identifier: Apache-2.0
// A graph that handlers trigger, with the scheduler on CPU threads.
#include "unittests/kernels/graphs/graph_host.h"

namespace cudaq::realtime::test {
namespace {

fake_graph *triggered_graph = nullptr; ///< of the test that runs

/// The result: how often the graph was launched before. A payload of four bytes is the number of bytes of the result.
int trigger(const void *in, void *out, std::uint32_t arg_len, std::uint32_t, std::uint32_t *result_len) {
  std::uint32_t bytes = sizeof(std::uint32_t);
  if (arg_len == sizeof(bytes))
    std::memcpy(&bytes, in, sizeof(bytes));
  std::memset(out, 0, bytes);
  std::memcpy(out, &triggered_graph->launches, sizeof(std::uint32_t));
  *result_len = bytes;
  return kTriggerStatus;
}

/// Function 1 triggers the graph; function 2 is a graph of its own.
class GraphTrigger : public ::testing::Test {
protected:
  void SetUp() override {
    triggered_graph = &triggered;
    triggered.silent_every = 1; // it has no request
    triggered.wait = std::chrono::microseconds(100);
  }
  static std::uint32_t word_of(const answer &a) {
    std::uint32_t word = ~0u;
    if (a.result.size() >= sizeof(word))
      std::memcpy(&word, a.result.data(), sizeof(word));
    return word;
  }
  /// Requests of function 1, `deep` at a time: each is answered 0, and sees one launch for each request before it.
  void expect_launches_between(const host_ring &ring, graph_host &host, std::uint32_t requests, std::uint32_t deep,
                               const std::vector<std::uint8_t> &payload) {
    ring_client client(ring);
    std::vector<std::uint32_t> slots;
    std::uint32_t collected = 0;
    const auto collect = [&] {
      const answer got = client.collect(slots[collected]);
      EXPECT_EQ(got.header.status, 0);
      EXPECT_EQ(got.header.request_id, collected);
      EXPECT_EQ(word_of(got), collected) << "launches before this request";
      ++collected;
    };
    for (std::uint32_t n = 0; n < requests && !HasFailure(); ++n) {
      slots.push_back(client.send(1, payload, n));
      if (n + 1 == deep) // the first requests are one batch
        host.start();
      if (n + 1 >= deep)
        collect();
    }
    while (collected < requests && !HasFailure())
      collect();
    host.stop();
    EXPECT_EQ(triggered.launches, requests);
    EXPECT_EQ(host.report.triggered, requests);
    EXPECT_EQ(host.report.trigger_error, 0u);
    EXPECT_EQ(host.over_limit.load(), 0u);
    EXPECT_EQ(host.fault(), 0u);
  }
  fake_graph triggered, other;
};

TEST_F(GraphTrigger, IsAnsweredFirstAndLaunchedBeforeTheNextRequest) {
  for (const std::uint32_t deep : {1u, 8u})
    for (const std::uint32_t members : {1u, 3u}) {
      triggered.launches = 0;
      const host_ring ring({8, 256, false});
      graph_host host(ring, {{2, 0, &other}, {1, 0, nullptr, trigger}}, members, 2, false, false, &triggered);
      expect_launches_between(ring, host, 300, deep, {1, 2, 3});
      EXPECT_GE(host.state().counts.relaunches, 300 / kMaxLaunches) << "the triggered graphs use the same budget";
    }
}

// The answer is longer than what one lane copies, and slots are larger than the staging.
TEST_F(GraphTrigger, ComesAfterAnAnswerOfAnyLength) {
  for (const std::uint32_t slot_size : {256u, 16384u}) {
    triggered.launches = 0;
    const host_ring ring({4, slot_size, false});
    graph_host host(ring, {{1, 0, nullptr, trigger}}, 2, 2, false, false, &triggered);
    const std::uint32_t bytes = slot_size - CUDAQ_RPC_HEADER_SIZE;
    std::vector<std::uint8_t> payload(sizeof(bytes));
    std::memcpy(payload.data(), &bytes, sizeof(bytes));
    expect_launches_between(ring, host, 20, 2, payload);
  }
}

TEST_F(GraphTrigger, WithoutATriggeredGraphTheStatusIsTheHandlersOwn) {
  const host_ring ring({4, 256, false});
  graph_host host(ring, {{1, 0, nullptr, trigger}}, 1);
  host.start();
  ring_client client(ring);
  EXPECT_EQ(client.call(1, {}).header.status, kTriggerStatus);
  host.stop();
  EXPECT_EQ(triggered.launches, 0u);
}

TEST_F(GraphTrigger, AGraphThatCannotBeLaunchedCostsNoAnswer) {
  triggered.uploaded = false;
  const host_ring ring({4, 256, false});
  graph_host host(ring, {{1, 0, nullptr, trigger}}, 2, 2, false, false, &triggered);
  host.start();
  ring_client client(ring);
  for (std::uint32_t n = 0; n < 5; ++n)
    EXPECT_EQ(client.call(1, {}, n).header.status, 0);
  host.stop();
  EXPECT_EQ(host.report.triggered, 0u);
  EXPECT_EQ(host.report.trigger_error, 1u);
}

TEST_F(GraphTrigger, AStopComesAfterTheLaunchThatAnAnswerHasPromised) {
  std::atomic<bool> gate{false};
  triggered.gate = &gate;
  const host_ring ring({4, 256, false});
  graph_host host(ring, {{1, 0, nullptr, trigger}}, 2, 2, false, false, &triggered);
  host.start();
  ring_client client(ring);
  EXPECT_EQ(client.call(1, {}, 0).header.status, 0);
  EXPECT_EQ(client.call(1, {}, 1).header.status, 0); // its launch waits: the graph still runs
  store_release(host.base.library_word, std::uint32_t{1});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  gate = true;
  host.stop();
  EXPECT_EQ(triggered.launches, 2u);
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The caller's words of the upstream interface, on fake graphs: a thread of the caller answers, and gives the worker
// back by setting its bit in the caller's own mask. It has no handle, and finds the slot in the caller's array of tags.
#include "unittests/host_dispatcher/fake_graphs.h"

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kWorkers = 3;

class UpstreamWords : public ::testing::TestWithParam<bool> {
protected:
  UpstreamWords() {
    checked_function::v1_by_id[1] = &function;
    plan.shape = {8, 128, false};
    plan.markers = GetParam();
    plan.workers.assign(kWorkers, fake_worker(1, 0, CUDAQ_WORKER_CALLER_PUBLISHES));
    plan.words = {&idle_mask, &live_dispatched, tags};
  }
  /// What a CPU worker of the existing system does when its graph has finished.
  void answer(const graph_rig &rig, std::uint32_t worker) {
    const auto slot = static_cast<std::uint32_t>(tags[worker]);
    const detail::slot_ring view = detail::view_of(rig.ring.ring, host_config(plan.shape), detail::ring_side::host);
    const auto request = detail::read_header<detail::request>(view.rx_slot(slot));
    const auto frame = detail::read_header<detail::response>(view.tx_slot(slot));
    detail::write_response(view.tx_slot(slot), request, frame.status, frame.result_len);
    view.publish_tx(slot);
    idle_mask.raise_bits(std::uint64_t{1} << worker);
  }

  static constexpr std::uint32_t kMessages = 4000;
  checked_function function{1, kMessages};
  graph_rig_plan plan;
  detail::shared_word<std::uint64_t> idle_mask{(1u << kWorkers) - 1}, live_dispatched;
  int tags[kWorkers] = {-1, -1, -1};
};

// Known failure 65.
TEST_P(UpstreamWords, EveryRequestIsAnsweredOnceThroughTheMaskOfTheCaller) {
  graph_rig rig(plan);
  rig.device->ready = [&](std::uint32_t worker) { answer(rig, worker); };
  std::vector<std::unique_ptr<checked_function>> functions;
  functions.push_back(std::make_unique<checked_function>(1, load_size(kMessages)));
  checked_function::v1_by_id[1] = functions[0].get();
  traffic t(rig.ring, traffic_for(functions, load_size(kMessages)));
  t.run();
  t.expect_clean(false, false);
  EXPECT_TRUE(rig.stop());
  const cudaq_dispatcher_stats_t stats = rig.stats();
  EXPECT_EQ(stats.responded, load_size(kMessages));
  EXPECT_EQ(stats.in_flight, 0u);
  EXPECT_EQ(live_dispatched.load(), stats.launches);
  EXPECT_EQ(idle_mask.load(), (1u << kWorkers) - 1) << "all workers are free at the end";
}

TEST_P(UpstreamWords, AWorkerWhoseBitIsNotSetGetsNoRequest) {
  idle_mask.store(0b100);
  graph_rig rig(plan);
  rig.device->ready = [&](std::uint32_t worker) { answer(rig, worker); };
  std::atomic<std::uint32_t> others{0};
  rig.device->seen = [&](std::uint32_t worker, const std::uint8_t *) { others += worker != 2; };
  for (std::uint32_t slot = 0; slot < 4; ++slot)
    rig.send(slot, 1, 7, slot);
  EXPECT_TRUE(eventually([&] { return rig.answered(3); })) << rig.dispatcher.describe();
  EXPECT_EQ(others.load(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Markers, UpstreamWords, ::testing::Bool(),
                         [](const auto &tested) { return tested.param ? "On" : "Off"; });

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// A pipeline on an external ring whose peer overwrites everything in the ring at any time.
#include "unittests/qec/pipeline/pipeline_rig.h"
#include "unittests/support/hostile_peer.h"

namespace cudaq::qec::realtime::test {
namespace {

using namespace cudaq::realtime::test;

/// Both stages check sizes and addresses, and read the payload in the slot.
struct watched_stages {
  explicit watched_stages(const guarded_ring &of) : ring(of) {}
  const guarded_ring &ring;
  handler_watch watch;
  std::atomic<std::uint64_t> cpu_calls{0};

  bool is_payload(const void *at) const {
    const auto *slot = static_cast<const std::uint8_t *>(at) - CUDAQ_RPC_HEADER_SIZE;
    const std::uint8_t *const first = ring.ring.rx_data_host;
    return slot >= first && slot < first + ring.shape.num_slots * ring.ring.rx_stride_sz &&
           static_cast<std::size_t>(slot - first) % ring.ring.rx_stride_sz == 0;
  }
  static int gpu_stage(void *self, host_stage_call *call) {
    auto &s = *static_cast<watched_stages *>(self);
    ++s.watch.calls;
    s.watch.expect(s.is_payload(call->payload));
    s.watch.expect(call->payload_size <= s.ring.shape.slot_size - CUDAQ_RPC_HEADER_SIZE);
    std::uint64_t result[64];
    handler_watch::use(call->payload, static_cast<std::uint32_t>(call->payload_size), result);
    return 0;
  }
  std::size_t cpu_stage(const cpu_stage_context &c) {
    ++cpu_calls;
    watch.expect(is_payload(c.payload));
    watch.expect(c.payload_size <= ring.shape.slot_size - CUDAQ_RPC_HEADER_SIZE);
    watch.expect(c.max_response_size == ring.shape.slot_size - CUDAQ_RPC_HEADER_SIZE);
    handler_watch::use(c.payload, static_cast<std::uint32_t>(c.payload_size), c.response_buffer);
    return c.payload_size;
  }
};

class HostilePipeline : public testing::TestWithParam<bool> {};

TEST_P(HostilePipeline, Row58_StagesGetOnlyWhatTheSlotHolds) {
  const guarded_ring ring({8, 256, GetParam()});
  watched_stages stages(ring);
  pipeline_stage_config c = pipeline_rig::small(2, 8);
  c.external_ringbuffer = const_cast<cudaq_ringbuffer_t *>(&ring.ring);
  c.grace_period_ns = kSecond / 2;
  pipeline_rig rig(c);
  rig.pipeline->set_gpu_stage([&](int id) {
    gpu_worker_resources r = rig.resources(id);
    r.host_stage_fn = &watched_stages::gpu_stage;
    r.host_stage_data = &stages;
    return r;
  });
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &at) { return stages.cpu_stage(at); });
  rig.pipeline->set_completion_handler([](const completion &) {});
  rig.pipeline->start();
  hostile_plan plan{{kFunction}};
  // The pipeline clears an old answer's header, and moves results, with plain stores: a race to a race detector.
  plan.answers = !kRaceDetector;
  plan.payloads = !kRaceDetector || !GetParam();
  hostile_peer peer(ring.ring, ring.shape, plan);
  peer.attack_until([&] { return stages.cpu_calls >= 100; });
  const auto begun = std::chrono::steady_clock::now();
  rig.pipeline->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
  peer.stop();
  EXPECT_EQ(stages.watch.violations, 0u);
  std::printf("%llu hostile writes, %llu calls of the GPU stage, %llu of the CPU stage\n",
              static_cast<unsigned long long>(peer.writes()),
              static_cast<unsigned long long>(stages.watch.calls.load()),
              static_cast<unsigned long long>(stages.cpu_calls.load()));

  reinitialise(ring.ring, ring.shape);
  rig.pipeline->start();
  expect_good_answers(ring.ring, ring.shape, {kFunction}, 32);
  rig.pipeline->stop();
  EXPECT_EQ(stages.watch.violations, 0u);
}

INSTANTIATE_TEST_SUITE_P(Rings, HostilePipeline, testing::Values(false, true),
                         [](const auto &tested) { return std::string(tested.param ? "InPlace" : "Separate"); });

} // namespace
} // namespace cudaq::qec::realtime::test

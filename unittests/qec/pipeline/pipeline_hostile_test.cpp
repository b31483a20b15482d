// SPDX-License-Identifier: Apache-2.0
// A pipeline on an external ring whose peer overwrites everything in the ring at any time.
#include "unittests/qec/pipeline/fake_graph_workers.h"
#include "unittests/qec/pipeline/pipeline_rig.h"
#include "unittests/support/hostile_peer.h"

namespace cudaq::qec::realtime::test {
namespace {

using namespace cudaq::realtime::test;

constexpr int kWorkers = 2;

struct flavour {
  const char *name;
  bool graphs, in_place;
};
void PrintTo(const flavour &f, std::ostream *out) { *out << f.name; }

/// Both stages check sizes and addresses, and read the payload in the slot. The GPU stage is a host stage, or graphs
/// that are functions.
struct watched_stages {
  explicit watched_stages(const guarded_ring &of)
      : ring(of), fake([this](int id, std::uint8_t *slot) { return graph(id, slot); }) {
    fake.ring(ring.ring.rx_data_host, ring.ring.rx_stride_sz);
  }
  const guarded_ring &ring;
  handler_watch watch; ///< its calls are those of the GPU stage
  std::atomic<std::uint64_t> cpu_calls{0}, completions{0};
  volatile int ready[kWorkers] = {};
  std::uint64_t outputs[kWorkers] = {}; ///< of graphs
  fake_graph_workers fake;

  std::size_t max_size() const { return ring.shape.slot_size - CUDAQ_RPC_HEADER_SIZE; }
  bool is_payload(const void *at) const {
    const auto *slot = static_cast<const std::uint8_t *>(at) - CUDAQ_RPC_HEADER_SIZE;
    const std::uint8_t *const first = ring.ring.rx_data_host;
    return slot >= first && slot < first + ring.shape.num_slots * ring.ring.rx_stride_sz &&
           static_cast<std::size_t>(slot - first) % ring.ring.rx_stride_sz == 0;
  }
  void see(const void *payload, std::size_t size) {
    ++watch.calls;
    watch.expect(is_payload(payload) && size <= max_size());
    std::uint64_t result[64];
    handler_watch::use(payload, static_cast<std::uint32_t>(std::min(size, max_size())), result);
  }
  static int host_stage(void *self, host_stage_call *call) {
    static_cast<watched_stages *>(self)->see(call->payload, call->payload_size);
    return 0;
  }
  /// A graph gets only the slot. It reads the length once and checks it by itself.
  std::uint32_t graph(int id, std::uint8_t *slot) {
    const auto stated = static_cast<std::uint32_t>(peer_word(slot + 8));
    see(slot + CUDAQ_RPC_HEADER_SIZE, std::min<std::size_t>(stated, max_size()));
    cudaq::realtime::detail::store_release(ready[id], 1);
    return 0;
  }
  std::size_t cpu_stage(const cpu_stage_context &c) {
    ++cpu_calls;
    watch.expect(is_payload(c.payload));
    watch.expect(c.payload_size <= max_size());
    watch.expect(c.max_response_size == max_size());
    handler_watch::use(c.payload, static_cast<std::uint32_t>(c.payload_size), c.response_buffer);
    return std::max<std::size_t>(c.payload_size, 1); // 0 means: not ready, call again
  }
  gpu_worker_resources resources(int id, bool graphs) {
    gpu_worker_resources r;
    r.function_id = kFunction;
    if (!graphs) {
      r.host_stage_fn = &watched_stages::host_stage;
      r.host_stage_data = this;
      return r;
    }
    r.graph_exec = reinterpret_cast<cudaGraphExec_t>(this);
    r.ready_flag = &ready[id];
    r.gpu_output = &outputs[id];
    r.gpu_output_size = sizeof(outputs[id]);
    return r;
  }
  void wire(realtime_pipeline &pipeline, bool graphs) {
    pipeline.set_gpu_stage([this, graphs](int id) { return resources(id, graphs); });
    pipeline.set_cpu_stage([this](const cpu_stage_context &c) { return cpu_stage(c); });
    pipeline.set_completion_handler([this](const completion &) { ++completions; });
  }
};

/// The counter of the pipeline's dump that stands after `name`.
std::uint64_t counter_in(const std::string &dump, const std::string &name) {
  const std::size_t at = dump.find(name);
  EXPECT_NE(at, std::string::npos) << name << " in\n" << dump;
  return at == std::string::npos ? 0 : std::strtoull(dump.c_str() + at + name.size(), nullptr, 10);
}

/// After a stop: every request that was received is completed once, dropped, or refused by the dispatcher with an
/// error, and stages got at least a tenth.
void expect_pipeline_accounts(const realtime_pipeline &pipeline, const watched_stages &stages, std::uint64_t writes) {
  const realtime_pipeline::Stats s = pipeline.stats();
  const std::string dump = pipeline.dump();
  const std::uint64_t dropped = counter_in(dump, "dropped for magic ") + counter_in(dump, "unknown function ") +
                                counter_in(dump, ", flag value ");
  EXPECT_EQ(counter_in(dump, "in flight "), 0u) << dump;
  EXPECT_EQ(s.submitted, counter_in(dump, "responded ") + dropped) << dump;
  EXPECT_EQ(s.completed, s.dispatched) << dump;
  EXPECT_LE(s.completed, s.submitted - dropped) << dump;
  EXPECT_EQ(stages.completions, s.completed);
  EXPECT_LE(stages.watch.calls, s.dispatched);
  EXPECT_LE(stages.cpu_calls, stages.watch.calls);
  EXPECT_EQ(stages.watch.violations, 0u) << "stages got what was not judged";
  EXPECT_GT(s.submitted, 0u);
  EXPECT_LE(s.submitted, 10 * stages.watch.calls);
  EXPECT_LE(s.submitted, 10 * stages.cpu_calls);
  std::printf("%llu hostile writes, %llu requests, %llu dropped, %llu calls of the GPU stage, %llu of the CPU stage, "
              "%llu completed\n",
              static_cast<unsigned long long>(writes), static_cast<unsigned long long>(s.submitted),
              static_cast<unsigned long long>(dropped), static_cast<unsigned long long>(stages.watch.calls.load()),
              static_cast<unsigned long long>(stages.cpu_calls.load()), static_cast<unsigned long long>(s.completed));
}

class HostilePipeline : public testing::TestWithParam<flavour> {};

// Known failure 58.
TEST_P(HostilePipeline, StagesGetOnlyWhatTheSlotHolds) {
  const flavour &f = GetParam();
  const guarded_ring ring({8, 256, f.in_place});
  watched_stages stages(ring);
  pipeline_stage_config c = pipeline_rig::small(kWorkers, 8);
  cudaq_ringbuffer_t host_view = ring.ring; // without device addresses, as the hooks of functions for graphs want it
  host_view.rx_flags = host_view.tx_flags = nullptr;
  host_view.rx_data = host_view.tx_data = nullptr;
  c.external_ringbuffer = &host_view;
  c.grace_period_ns = 5 * kSecond;
  realtime_pipeline pipeline(c);
  stages.wire(pipeline, f.graphs);
  pipeline.start();
  hostile_plan plan{{kFunction}};
  // The pipeline clears an old answer's header, and moves results, with plain stores: a race to a race detector.
  plan.answers = !kRaceDetector;
  plan.payloads = !kRaceDetector || !f.in_place;
  hostile_peer peer(ring.ring, ring.shape, plan);
  peer.attack_until([&] { return stages.cpu_calls >= 500; });
  const auto begun = std::chrono::steady_clock::now();
  pipeline.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
  peer.stop();
  expect_pipeline_accounts(pipeline, stages, peer.writes());

  reinitialise(ring.ring, ring.shape);
  pipeline.start();
  expect_good_answers(ring.ring, ring.shape, {kFunction}, 32);
  pipeline.stop();
  EXPECT_EQ(stages.watch.violations, 0u);
}

INSTANTIATE_TEST_SUITE_P(Rings, HostilePipeline,
                         testing::Values(flavour{"Separate", false, false}, flavour{"InPlace", false, true},
                                         flavour{"GraphsSeparate", true, false}, flavour{"GraphsInPlace", true, true}),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::qec::realtime::test

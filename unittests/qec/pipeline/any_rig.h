// SPDX-License-Identifier: Apache-2.0
// One rig for pipelines of all kinds: which requests were accepted, and whether each was completed.
#pragma once

#include "unittests/qec/pipeline/foreign_ring.h"
#include "unittests/qec/pipeline/graph_rig.h"

#include <array>
#include <optional>

namespace cudaq::qec::realtime::test {

using cudaq::realtime::test::spared;

struct pipeline_kind {
  const char *name;
  bool graphs, external, cpu_stage;
  bool two_sides = false; ///< of the external ring: requests and answers in memory of their own
};
inline void PrintTo(const pipeline_kind &k, std::ostream *out) { *out << k.name; }
inline const std::vector<pipeline_kind> kPipelineKinds = {{"HostStages", false, false, true},
                                                          {"HostStagesAlone", false, false, false},
                                                          {"HostStagesExternalRing", false, true, true},
                                                          {"Graphs", true, false, true},
                                                          {"GraphsAlone", true, false, false},
                                                          {"GraphsExternalRing", true, true, true}};

/// A pipeline and its client. Request k has the id k. There are at most `requests` requests.
class any_rig {
public:
  explicit any_rig(const pipeline_kind &of, std::uint64_t grace_period_ns = 20 * kSecond, int workers = 2,
                   int slots = 4, std::size_t requests = 64)
      : kind(of), config(pipeline_rig::small(workers, slots)), generations(static_cast<std::size_t>(slots)) {
    config.grace_period_ns = grace_period_ns;
    if (kind.external)
      config.external_ringbuffer = &foreign.emplace(static_cast<std::uint32_t>(slots), !kind.two_sides).ring;
    if (kind.graphs)
      graphs.emplace(config, requests);
    else
      host.emplace(config, requests);
    wire();
  }
  pipeline_rig &rig() { return kind.graphs ? graphs->rig : *host; }
  realtime_pipeline &pipeline() { return *rig().pipeline; }
  std::unique_ptr<realtime_pipeline> &owner() { return rig().pipeline; }

  /// Sets the functions of the pipeline, also of a new one in the place of the first.
  void wire() {
    rig().first_id = 0;
    rig().wire();
    if (kind.graphs)
      graphs->wire(config);
    if (!kind.cpu_stage)
      pipeline().set_cpu_stage({});
    pipeline().set_gpu_stage([this](int id) { return resources(id); });
    pipeline().set_completion_handler([this](const completion &c) {
      const spared here;
      given_up += c.status == CUDAQ_RPC_ERR_SHUTTING_DOWN;
      rig().record(c);
    });
  }
  /// What the GPU stage of a worker is.
  gpu_worker_resources resources(int id) {
    gpu_worker_resources r = kind.graphs ? graphs->resources(id) : host->resources(id);
    if (!kind.graphs && !kind.cpu_stage)
      r.host_stage_fn = [](void *, host_stage_call *call) {
        std::memmove(call->response_buffer, call->payload, call->payload_size);
        call->response_size = call->payload_size;
        return 0;
      };
    return r;
  }
  /// The CPU stage defers every request, and no thread completes it.
  void defer_all() {
    pipeline().set_cpu_stage([this](const cpu_stage_context &c) {
      pipeline_rig::echo(c);
      generations[static_cast<std::size_t>(c.origin_slot)] = c.generation;
      ++deferred;
      return DEFERRED_COMPLETION;
    });
  }

  /// Submits the next request, and notes whether it was accepted. What a call throws is passed on.
  bool submit() {
    if (kind.external) {
      const spared here; // the producer is not the pipeline
      const bool sent = foreign->send(accepted);
      accepted += sent;
      return sent;
    }
    std::optional<ring_buffer_injector> injector(pipeline().create_injector());
    std::array<std::uint8_t, 72> payload{};
    const std::size_t size = 8 + accepted % 64;
    {
      const spared here;
      std::memcpy(payload.data(), payload_of(accepted, size).data(), size);
    }
    const bool submitted = injector->try_submit(kFunction, payload.data(), size, accepted);
    accepted += submitted;
    return submitted;
  }
  /// Each accepted request gets a completion, and the answer on an external ring is collected.
  void expect_all_completed(std::int32_t status = 0) {
    EXPECT_TRUE(eventually([&] { return rig().seen.all >= accepted; })) << pipeline().dump();
    for (; kind.external && collected < accepted; ++collected)
      EXPECT_TRUE(eventually([&] { return foreign->receive(collected, status); })) << collected;
    expect_each_once();
  }
  /// Without a pipeline, too.
  void expect_each_once() {
    EXPECT_EQ(rig().seen.all, accepted);
    std::size_t wrong = 0;
    for (std::size_t k = 0; k < rig().seen.times.size(); ++k)
      wrong += rig().seen.times[k] != (k < accepted ? 1 : 0);
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(rig().seen.strangers, 0u);
  }
  /// `n` requests that must be answered rightly.
  void serve(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_TRUE(eventually([&] { return submit(); }));
      expect_all_completed();
      if (!kind.external) {
        EXPECT_EQ(rig().seen.good[accepted - 1], 1) << accepted - 1;
      }
    }
  }
  /// The same, with as many requests in the ring as it holds.
  void stream(std::size_t n) {
    const std::size_t first = accepted, end = accepted + n;
    EXPECT_TRUE(eventually([&] {
      while (accepted != end && submit()) {
      }
      while (kind.external && collected != accepted && foreign->receive(collected))
        ++collected;
      return accepted == end && rig().seen.all == end && (!kind.external || collected == end);
    })) << pipeline().dump();
    expect_each_once();
    for (std::size_t k = first; k < end && !kind.external; ++k) // an external ring's answers are checked by receive
      EXPECT_EQ(rig().seen.good[k], 1) << k;
  }
  /// A whole run: everything works.
  void expect_usable() {
    EXPECT_NO_THROW(pipeline().start());
    serve(3);
    pipeline().stop();
    const stop_report report = pipeline().last_stop();
    EXPECT_TRUE(report.drained) << report.text;
  }

  const pipeline_kind kind;
  pipeline_stage_config config;
  std::optional<foreign_ring> foreign;
  std::optional<graph_rig> graphs;
  std::optional<pipeline_rig> host;
  std::size_t accepted = 0, collected = 0;
  std::atomic<std::size_t> given_up{0}, deferred{0};
  std::vector<std::atomic<std::uint64_t>> generations; ///< by slot: of the last request that was deferred
};

} // namespace cudaq::qec::realtime::test

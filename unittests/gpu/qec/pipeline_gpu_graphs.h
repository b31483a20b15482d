// SPDX-License-Identifier: Apache-2.0
// Graphs for pipeline workers on a GPU: some copy their payload, some run the tasks of the host dispatcher's tests.
#pragma once

#include "unittests/gpu/graphs/host_graph_rig.h"
#include "unittests/gpu/qec/pipeline_gpu_rig.h"

namespace cudaq::realtime::test {

inline constexpr std::size_t kPayload = 13104; // d13, INT32 measurements
inline constexpr std::size_t kSlot = 16384;

/// Random payloads through graphs that copy them. The CPU stage answers with a checksum of its input.
struct copying {
  copying(int workers, std::size_t requests, gpu::staging how, std::uint64_t busy_ns = 0)
      : seen(requests), payload(kPayload + 8 * requests) {
    std::mt19937_64 random(7);
    for (auto &byte : payload)
      byte = static_cast<std::uint8_t>(random());
    for (int id = 0; id < workers; ++id)
      engines.push_back(std::make_unique<gpu::copy_gpu_worker>(kPayload, busy_ns, how, kSlot));
  }
  static std::uint64_t sum(const void *bytes) {
    const auto *words = static_cast<const std::uint64_t *>(bytes);
    std::uint64_t s = 0;
    for (std::size_t i = 0; i < kPayload / 8; ++i)
      s = s * 31 + words[i];
    return s;
  }
  const std::uint8_t *request(std::uint64_t k) const { return payload.data() + 8 * k; }
  void wire(pipe::realtime_pipeline &p) {
    p.set_gpu_stage([this](int id) { return engines[static_cast<std::size_t>(id)]->resources(kDecode, nullptr); });
    p.set_cpu_stage([](const pipe::cpu_stage_context &c) -> std::size_t {
      const std::uint64_t s = sum(c.gpu_output);
      std::memcpy(c.response_buffer, &s, sizeof(s));
      return sizeof(s);
    });
    p.set_completion_handler([this](const pipe::completion &c) { seen.record(c, right(c)); });
  }
  bool right(const pipe::completion &c) const {
    if (c.response == nullptr)
      return true; // external ring: the answer goes to its owner
    const std::uint64_t s = sum(request(c.request_id));
    return c.response_size == sizeof(s) && std::memcmp(c.response, &s, sizeof(s)) == 0;
  }
  std::span<const std::uint8_t> bytes(std::uint64_t k) const { return {request(k), kPayload}; }
  void expect_run(pipe::realtime_pipeline &p) const {
    test::expect_run(p, seen, [this](std::uint64_t k) { return bytes(k); });
  }
  seen_by_request seen;
  std::vector<std::uint8_t> payload;
  std::vector<std::unique_ptr<gpu::copy_gpu_worker>> engines;
};

/// The graphs of the host dispatcher's tests: they write their own frames, trap on request, and set a word at their
/// end.
struct task_graphs {
  task_graphs(int workers, bool traps)
      : contexts(static_cast<std::size_t>(workers)), ready(static_cast<std::size_t>(workers) * 16) {
    for (int id = 0; id < workers; ++id) {
      graph_task task;
      task.io = contexts.dev + id;
      task.slot_size = 256;
      task.traps = traps;
      task.ready = ready.dev + 16 * id;
      const graph_capture_result captured =
          capture_graph(graphs.emplace_back(), [&](cudaStream_t stream) { return launch_graph_task(task, stream); });
      EXPECT_EQ(captured.status, CUDAQ_OK) << captured.text;
    }
  }
  pipe::gpu_worker_resources resources(int id) {
    pipe::gpu_worker_resources r;
    r.graph_exec = graphs[static_cast<std::size_t>(id)].exec();
    r.function_id = kDecode;
    r.io_ctx = contexts.host + id;
    r.ready_flag = reinterpret_cast<volatile int *>(ready.host + 16 * id);
    r.gpu_output = contexts.host + id;
    r.gpu_output_size = sizeof(GraphIOContext);
    return r;
  }
  mapped_array<GraphIOContext> contexts;
  mapped_array<std::uint64_t> ready;
  std::deque<captured_graph> graphs;
};

} // namespace cudaq::realtime::test

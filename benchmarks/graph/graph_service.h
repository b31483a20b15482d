// SPDX-License-Identifier: Apache-2.0
// Echo graphs: several instances of one graph, each with its own context. They are
// launched bare, or as the workers of a dispatcher on the host path.
#pragma once

#include "benchmarks/graph/bench_graph_gpu.h"
#include "tools/services/device_service.h"

#include "cudaq/realtime/daemon/dispatcher/graph_capture.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"

#include <memory>
#include <vector>

namespace cudaq::realtime::tools {

struct graph_service_config : ring_service_config {
  std::uint32_t workers = 1;
  std::uint32_t completion = CUDAQ_WORKER_LIBRARY_PUBLISHES;
  bool staged = false;       ///< the request is copied to device memory before the launch
  std::uint64_t busy_ns = 0; ///< time that the kernel spins
};

/// The function id that the workers of a graph_service serve.
inline constexpr std::uint32_t kGraphFunctionId = fnv1a_hash("bench_graph");

/// The graphs, their contexts in mapped memory, and their staging buffers.
class echo_graphs {
public:
  explicit echo_graphs(const graph_service_config &config);
  ~echo_graphs();
  echo_graphs(const echo_graphs &) = delete;
  echo_graphs &operator=(const echo_graphs &) = delete;

  [[nodiscard]] cudaGraphExec_t exec(std::uint32_t w) const { return graphs_[w].exec(); }
  [[nodiscard]] GraphIOContext &context(std::uint32_t w) const { return contexts_[w]; }
  [[nodiscard]] std::uint8_t *staged(std::uint32_t w) const {
    return staging_ ? staging_->as<std::uint8_t>() + w * slot_bytes_ : nullptr;
  }
  [[nodiscard]] std::uint32_t slot_bytes() const { return slot_bytes_; }

private:
  std::uint32_t slot_bytes_; ///< a multiple of 16
  gpu_stream stream_;
  GraphIOContext *contexts_ = nullptr;
  std::unique_ptr<gpu_memory> staging_;
  std::vector<captured_graph> graphs_;
};

/// Owns a manager, a mapped ring, and one dispatcher on the host path whose workers are echo graphs. The dispatcher is
/// configured, not started. If a graph does not end, the destructor calls abandon(), which ends the process.
class graph_service : public ring_service {
public:
  explicit graph_service(const graph_service_config &config);
};

} // namespace cudaq::realtime::tools

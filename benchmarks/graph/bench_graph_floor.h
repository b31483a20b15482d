// SPDX-License-Identifier: Apache-2.0
// The floor of `graph`: the measuring thread launches the same graphs, and polls words in mapped memory for their
// ends. Written without the library's dispatcher.
#pragma once

#include "benchmarks/device/bench_session.h"
#include "benchmarks/graph/graph_service.h"

#include <memory>

namespace cudaq::realtime::tools {

class bare_graphs {
public:
  /// One graph for each worker of `config`. `per_stream` successive ones share a stream, so that a launch of one is
  /// queued after a launch of the other.
  explicit bare_graphs(const graph_service_config &config, std::uint32_t per_stream = 1);
  ~bare_graphs();
  bare_graphs(const bare_graphs &) = delete;
  bare_graphs &operator=(const bare_graphs &) = delete;

  /// One launch at a time, of each graph in turn. The measured time begins just before the copy or launch call and ends
  /// just after the done word is seen. The frame is written before that time, and the answer is checked after it.
  loop_result one_by_one(const exchange_config &config, const tick_scale &scale);
  /// Each graph gets its next launch as soon as the end of its last launch is seen. Every 16th launch is timed.
  /// `threads`: host threads that launch, each for its own part of the graphs; one is the calling thread. They are
  /// pinned to `cores`, in turn; no cores: not pinned.
  loop_result all_graphs(const exchange_config &config, const tick_scale &scale, std::uint32_t threads = 1,
                         const std::vector<int> &cores = {});

private:
  /// A thread's part of the graphs and of the launches.
  struct share {
    std::uint32_t first = 0, count = 0;
    std::uint64_t warm_up = 0, exchanges = 0;
    std::uint64_t first_launch = 0;         ///< number before its first launch
    std::uint64_t begin_ns = 0, end_ns = 0; ///< out: of the measured launches
    latency_histogram latency{};            ///< out
  };
  void keep_busy(share &part, const exchange_config &config, const tick_scale &scale);
  /// Runs each part on a thread of its own.
  void keep_busy_by_threads(std::vector<share> &parts, const exchange_config &config, const tick_scale &scale,
                            const std::vector<int> &cores);
  void launch(std::uint32_t w, std::uint64_t launch_number);
  [[nodiscard]] bool ended(std::uint32_t w, std::uint64_t launch_number) const;

  const graph_service_config config_;
  const std::uint32_t per_stream_;
  bare_ring ring_; ///< slot w belongs to graph w
  echo_graphs graphs_;
  std::vector<std::unique_ptr<gpu_stream>> streams_;
  std::uint64_t *done_ = nullptr; ///< mapped, one word per graph, 64 bytes apart
  std::uint64_t done_dev_ = 0;    ///< the device address of done_
  void *write_value_ = nullptr;   ///< cuStreamWriteValue64
  std::uint64_t launches_ = 0;
};

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// The floor of `bench graph`: the measuring thread launches the same graphs, and polls words in mapped memory for their
// ends. Written without the library's dispatcher.
#pragma once

#include "tools/bench/bench_session.h"
#include "tools/bench/graph/graph_service.h"

#include <memory>

namespace cudaq::realtime::tools {

class bare_graphs {
public:
  explicit bare_graphs(const graph_service_config &config);
  ~bare_graphs();
  bare_graphs(const bare_graphs &) = delete;
  bare_graphs &operator=(const bare_graphs &) = delete;

  /// One launch at a time, on the first stream. The measured time begins just before the copy or launch call and ends
  /// just after the done word is seen. The frame is written before that time, and the answer is checked after it.
  loop_result one_by_one(const client_config &config, const tick_scale &scale);
  /// Each stream gets its next launch as soon as the end of its last launch is seen. Every 16th launch is timed.
  loop_result all_streams(const client_config &config, const tick_scale &scale);

private:
  void launch(std::uint32_t w, std::uint64_t launch_number);
  [[nodiscard]] bool ended(std::uint32_t w, std::uint64_t launch_number) const;

  const graph_service_config config_;
  bare_ring ring_; ///< slot w belongs to instance w
  echo_graphs graphs_;
  std::vector<std::unique_ptr<gpu_stream>> streams_;
  std::uint64_t *done_ = nullptr; ///< mapped, one word per instance, 64 bytes apart
  std::uint64_t done_dev_ = 0;    ///< the device address of done_
  void *write_value_ = nullptr;   ///< cuStreamWriteValue64
  std::uint64_t launches_ = 0;
};

} // namespace cudaq::realtime::tools

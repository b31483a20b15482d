// SPDX-License-Identifier: Apache-2.0
// Relay-BP on a GPU: the same answers as lib/qec/decoders/relay_bp in float, by a kernel that stays on the GPU.
#pragma once

#include "cudaq/qec/decoding/decoder.h"
#include "kernels/qec/kernel_loading.h"
#include "kernels/qec/relay_bp/relay_bp_kernels.h"
#include "kernels/qec/relay_bp/relay_bp_layout.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cudaq::qec::realtime::gpu {

struct relay_bp_gpu_limits {
  /// Thread blocks of a chain: 1, 2, 4 or 8; more than one are a cluster. 0: 1 if all of a chain fits into the shared
  /// memory of a block; else the most with which the ensemble fits into half of the GPU, so that a decoder that takes
  /// its place fits into the other half, and has room beside the instances of this process on the same GPU.
  std::uint32_t blocks = 0;
  std::size_t shared_bytes = SIZE_MAX; ///< of a block; less than the device has decides for another variant
  std::chrono::milliseconds load_limit = kLoadLimit;
};

/// An ensemble of chains on one GPU, one or several blocks each. The blocks run from the constructor until the
/// destructor, and occupy a multiprocessor each, also without requests. Several instances share a GPU while it has
/// multiprocessors. Those of this process are counted: one for which there is no room in any case is refused before it
/// launches anything. Room that other kernels have taken is found at the launch, within four seconds; the launch then
/// waits for its end, its multiprocessors count as taken until these kernels have given room, and until then the next
/// instances are refused at once. The first instance must be made before kernels that run without end: it loads the
/// kernels (kernel_loading.h).
///
/// In the modes least_weight and in_step corrections are those of relay_bp with the same options, bit for bit. Not for
/// two threads at once.
class relay_bp_gpu {
public:
  /// Throws std::runtime_error with the reason: no GPU, no room on it, a CUDA error. std::bad_alloc.
  relay_bp_gpu(const tanner_graph &graph, const relay_bp_options &options, int device_id,
               const relay_bp_gpu_limits &limits = {});
  ~relay_bp_gpu();
  relay_bp_gpu(const relay_bp_gpu &) = delete;
  relay_bp_gpu &operator=(const relay_bp_gpu &) = delete;

  /// `syndrome`: 0 or 1 for each check. ok, not_converged, deadline and cancelled as relay_bp::solve; has_solution().
  /// internal_error: the kernel has ended by a fault, or does not answer; fault() has the reason, and every later call
  /// fails at once.
  decode_status solve(std::span<const std::uint8_t> syndrome, const decode_control &control) noexcept;

  [[nodiscard]] bool has_solution() const noexcept { return last_.found != 0; }
  /// Columns, ascending; empty without a solution. Valid until the next call.
  [[nodiscard]] std::span<const std::uint32_t> correction() const noexcept { return correction_; }
  /// The sum of log((1 - p) / p) over correction().
  [[nodiscard]] double weight() const noexcept { return weight_; }
  /// Of the chain that gave the answer.
  [[nodiscard]] const relay_record &record() const noexcept { return last_; }
  [[nodiscard]] const relay_layout &layout() const noexcept;
  /// "NVIDIA H100, 16 chains, 64 of 132 multiprocessors, messages and values of columns in shared memory".
  [[nodiscard]] const std::string &description() const noexcept;
  /// "" or a CUDA error.
  [[nodiscard]] std::string fault() const;

private:
  class impl;
  /// Gives memory and room back when the blocks have ended. `job`: it has room on the device. `frees`: memory may be
  /// freed now.
  void end(const std::optional<relay_job> &job, bool frees);

  const int device_id_;
  std::shared_ptr<impl> impl_;
  std::vector<double> log_odds_;
  std::vector<std::uint32_t> correction_;
  relay_record last_{};
  double weight_ = 0;
};

} // namespace cudaq::qec::realtime::gpu

// SPDX-License-Identifier: Apache-2.0
// A Tanner graph as the relay-bp kernel needs it, and which variant of the kernel that is.
#pragma once

#include "kernels/qec/relay_bp/relay_bp_job.h"
#include "lib/qec/decoders/relay_bp/grouped_graph.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::qec::realtime::gpu {

/// The arrays of a relay_job, in host memory.
class relay_layout {
public:
  /// block_bytes: the shared memory that a block can have. Throws std::bad_alloc.
  relay_layout(const tanner_graph &graph, const relay_bp_options &options, std::size_t block_bytes);

  /// Sizes, options and variant; the pointers are null.
  [[nodiscard]] const relay_job &job() const noexcept { return job_; }
  [[nodiscard]] relay_variant variant() const noexcept { return variant_; }
  /// Where the kernel keeps its messages and values, for reports.
  [[nodiscard]] const char *variant_text() const noexcept;

  /// The syndrome of the request, from 0 or 1 for each check. `words`: job().num_words().
  void pack_syndrome(std::span<const std::uint8_t> syndrome, std::span<std::uint32_t> words) const noexcept;
  /// The columns of a solution, ascending. Does not allocate if `columns` has room for all.
  void columns_of(std::span<const std::uint32_t> solution, std::vector<std::uint32_t> &columns) const;

  /// Pairs of columns that read the same bank of shared memory at the same time: each costs a cycle.
  [[nodiscard]] std::size_t bank_conflicts() const;

  grouped_graph groups;
  std::vector<relay_check> checks;
  std::vector<std::uint16_t> group_of_row;
  std::vector<relay_column_group> column_groups;
  std::vector<std::uint16_t> short_places; ///< groups.places, unless variant `device`
  std::vector<float> log_odds;
  std::vector<std::uint64_t> units;
  std::vector<float> scales, gammas;

private:
  void spread_banks();

  relay_job job_{};
  relay_variant variant_ = relay_variant::device;
};

} // namespace cudaq::qec::realtime::gpu

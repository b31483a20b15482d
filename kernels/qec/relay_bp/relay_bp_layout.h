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

/// What a chain can have.
struct relay_room {
  std::size_t block_bytes = 0; ///< shared memory of a block
  /// 1, 2, 4 or 8: blocks of a variant for clusters, if the model fits; 1 only `cluster`.
  std::uint32_t cluster_blocks = 0;
  std::uint32_t check_lanes = kClusterCheckLanes; ///< of these variants: threads of a check
};

/// The arrays of a relay_job, in host memory.
class relay_layout {
public:
  /// Throws std::bad_alloc.
  relay_layout(const tanner_graph &graph, const relay_bp_options &options, const relay_room &room);

  /// Sizes, options and variant; the pointers are null.
  [[nodiscard]] const relay_job &job() const noexcept { return job_; }
  [[nodiscard]] relay_variant variant() const noexcept { return variant_; }
  /// Where the kernel keeps its messages and values, for reports.
  [[nodiscard]] const char *variant_text() const noexcept;

  /// The syndrome of the request, from 0 or 1 for each check. `words`: job().total_words.
  void pack_syndrome(std::span<const std::uint8_t> syndrome, std::span<std::uint32_t> words) const noexcept;
  /// The columns of a solution, ascending. Does not allocate if `columns` has room for all.
  void columns_of(std::span<const std::uint32_t> solution, std::vector<std::uint32_t> &columns) const;

  std::vector<relay_cut> cuts;
  std::vector<std::uint16_t> sends_to;
  std::vector<relay_check> checks;
  std::vector<std::uint16_t> group_of_row;
  std::vector<relay_column_group> column_groups;
  std::vector<std::uint32_t> places;
  std::vector<std::uint16_t> short_places;  ///< the same, unless has_messages_in_device()
  std::vector<std::uint32_t> column_at;     ///< for each lane, grouped_graph::kUnused: none
  std::vector<std::uint32_t> lane_of_check; ///< for each check; one that is cut has its event in its first part only
  std::vector<float> log_odds;
  std::vector<std::uint64_t> units;
  std::vector<float> scales, gammas;

private:
  void cut_graph(const tanner_graph &graph, std::uint32_t parts, std::uint32_t check_lanes);
  /// Columns begin to end - 1. holders: for each check; numbers: of the cut checks, or kNotCut.
  void append_part(const tanner_graph &graph, std::uint32_t begin, std::uint32_t end, std::uint32_t number,
                   std::uint32_t check_lanes, std::span<const std::uint16_t> holders,
                   std::span<const std::uint32_t> numbers);
  void assign_slots();
  void spread_banks(std::uint32_t check_lanes);

  relay_job job_{};
  relay_variant variant_ = relay_variant::device;
};

} // namespace cudaq::qec::realtime::gpu

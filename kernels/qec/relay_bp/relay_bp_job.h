// SPDX-License-Identifier: Apache-2.0
// The data of the relay-bp kernel: the model in device memory, the words that the blocks of an ensemble share, and the
// records that they write. Plain data for host and device code.
#pragma once

#include "lib/qec/decoders/relay_bp/relay_bp_options.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cudaq::qec::realtime::gpu {

/// Lanes of a group of checks or columns: a warp. Rows of a group of checks are one cell further apart, so that the
/// rows of a check are in different banks of shared memory.
inline constexpr std::uint32_t kWarpLanes = 32, kRowStride = 33;
/// Threads of a block, and in the variant with registers the most columns and checks of a thread.
inline constexpr std::uint32_t kBlockThreads = 1024, kRegisterRounds = 9, kRegisterChecks = 1;
/// Legs whose memory strengths are in a table. Those of later legs are computed, which takes the time of iterations.
inline constexpr std::uint32_t kTabledLegs = 8;
/// Threads of a check in the variant `cluster`: neighbours.
inline constexpr std::uint32_t kClusterCheckLanes = 4;
/// The most blocks of a cluster, a power of 2. More are not portable.
inline constexpr std::uint32_t kMaxParts = 8;

/// A check, or one of the lanes that share its messages.
struct relay_check {
  static constexpr std::uint32_t kNotCut = UINT32_MAX;
  std::uint32_t first_cell, rows; ///< row r is first_cell + r * kRowStride
  std::uint32_t cut;              ///< its number among the cut checks of its part, or kNotCut
};
/// A cut check, as one of the parts that have messages of it sees it.
struct alignas(8) relay_cut {
  std::uint16_t number;     ///< among all cut checks
  std::uint16_t first_slot; ///< of this part's slots: one for the pair of each other part with messages of the check
  std::uint16_t others;     ///< bit p is set if part p is one of these, whose slots are in ascending order
  std::uint16_t num_others;
};
struct relay_column_group {
  std::uint32_t first_row;   ///< of its places: row r of lane k is places[(first_row + r) * kWarpLanes + k]
  std::uint16_t rows, lanes; ///< lanes that have a column
};

/// What a block of a cluster has of the model: its columns, and the checks of these columns. Arrays of the model have
/// the parts one after another.
struct relay_part {
  std::uint32_t num_check_lanes = 0, num_cells = 0, num_column_groups = 0, num_place_rows = 0;
  std::uint32_t num_cuts = 0, num_slots = 0;
  std::uint32_t num_rows = 0; ///< of cells, without those of unused lanes
};

/// How the chains of a shot end.
struct relay_request {
  std::uint64_t budget_ns; ///< from the time at which the kernel sees the request; UINT64_MAX: none
  std::uint32_t number;    ///< of the request; `cancel` with this value ends it
  std::uint32_t unused;
  // Then the syndrome: a bit for each lane of checks, in words of 32 bits.
};

/// The number of the next request; 0 is none. A number that comes again must not find its former cancellation.
template <class Forget>
std::uint32_t number_after(std::uint32_t last, Forget &&forget_cancellation) {
  if (last != UINT32_MAX)
    return last + 1;
  forget_cancellation();
  return 1;
}

enum class relay_status : std::uint32_t {
  complete = 0, ///< the answer of the mode
  deadline = 1, ///< the time has passed: the best so far, or nothing
  cancelled = 2
};

/// What a chain has found, and what the ensemble answers. The solution follows: a bit for each lane of columns.
struct relay_record {
  relay_status status;   ///< of the answer
  std::uint32_t stopped; ///< 1: the chain did not reach its end
  std::uint32_t found;   ///< 1: there is a solution
  std::uint32_t chain;
  std::uint64_t steps;                                   ///< iterations, all counted
  std::uint64_t weight;                                  ///< in weight_units; UINT64_MAX: there is no solution
  std::uint64_t check_cycles, column_cycles, all_cycles; ///< of the block's clock: in each step, and in all
  std::uint64_t wait_cycles;                             ///< of check_cycles: for the other blocks of the cluster
};

/// The words that the blocks of an ensemble share, each on a line of its own. Zeroed before the kernel begins.
struct relay_team {
  alignas(128) std::uint32_t begun;   ///< blocks that run, without block 0
  alignas(128) std::uint64_t shot;    ///< that the chains decode, from 1; kNoMoreShots: they end
  alignas(128) std::uint64_t limit;   ///< chains stop after this number of steps
  alignas(128) std::uint32_t ended;   ///< counts the ends of chains in all shots, modulo 2^32
  alignas(128) std::uint32_t winner;  ///< mode first: 1 + the chain that ended first
  alignas(128) std::uint32_t ready;   ///< the same, after its record is complete
  alignas(128) std::uint64_t best;    ///< the least key of a chain that ended with a solution
  alignas(128) std::uint64_t so_far;  ///< the same of chains that were stopped, by weight
  alignas(128) std::uint32_t stopped; ///< chains that were stopped

  static constexpr std::uint64_t kNoMoreShots = UINT64_MAX, kNoChain = UINT64_MAX;
};

/// Where the blocks of a chain keep what they change.
enum class relay_variant {
  cluster,        ///< all in the shared memory of one block or several ones, which have a part of the columns each
  cluster_shared, ///< several blocks: messages in shared memory, the values of columns in device memory
  cluster_device, ///< several blocks: both in device memory
  registers,      ///< one block: messages, posteriors and places in shared memory, other values in registers
  shared,         ///< one block: messages in shared memory, the values of columns in device memory
  device          ///< one block: both in device memory
};
/// Blocks have parts of the columns.
CUDAQ_QEC_HOST_DEVICE constexpr bool is_cluster(relay_variant v) {
  return v == relay_variant::cluster || v == relay_variant::cluster_shared || v == relay_variant::cluster_device;
}
CUDAQ_QEC_HOST_DEVICE constexpr bool has_messages_in_device(relay_variant v) {
  return v == relay_variant::device || v == relay_variant::cluster_device;
}
CUDAQ_QEC_HOST_DEVICE constexpr bool has_values_in_device(relay_variant v) {
  return v != relay_variant::cluster && v != relay_variant::registers;
}
/// The number of a cell.
template <relay_variant Variant>
using relay_place = std::conditional_t<has_messages_in_device(Variant), std::uint32_t, std::uint16_t>;

/// Calls body with the variant as a type, std::integral_constant.
template <class Body>
decltype(auto) with_variant(relay_variant variant, const Body &body) {
  switch (variant) {
  case relay_variant::cluster:
    return body(std::integral_constant<relay_variant, relay_variant::cluster>{});
  case relay_variant::cluster_shared:
    return body(std::integral_constant<relay_variant, relay_variant::cluster_shared>{});
  case relay_variant::cluster_device:
    return body(std::integral_constant<relay_variant, relay_variant::cluster_device>{});
  case relay_variant::registers:
    return body(std::integral_constant<relay_variant, relay_variant::registers>{});
  case relay_variant::shared:
    return body(std::integral_constant<relay_variant, relay_variant::shared>{});
  case relay_variant::device:
    break;
  }
  return body(std::integral_constant<relay_variant, relay_variant::device>{});
}

/// A kernel argument. Addresses are device addresses.
struct relay_job {
  // The model. With parts: all of it, and what part_of() returns is one part.
  relay_part sizes;                  ///< of the part. All of it: without parts the model's, else unused
  relay_part part[kMaxParts];        ///< with parts
  std::uint32_t parts;               ///< blocks of a chain
  std::uint32_t num_cut;             ///< checks with messages in several parts
  std::uint32_t max_slots;           ///< of a part
  std::uint32_t total_words;         ///< of a syndrome: of all parts
  std::uint32_t total_column_groups; ///< of all parts
  std::uint32_t total_cells;         ///< of all parts
  std::uint32_t first_column_group;  ///< of the part
  const relay_cut *cuts;             ///< for each cut check of each part
  const std::uint16_t *sends_to;     ///< for each slot of a part, the slot for its own pair in the other part
  const relay_check *checks;         ///< for each lane of checks
  const std::uint16_t *group_of_row; ///< for each row of cells: its group of checks
  const relay_column_group *column_groups;
  const void *places;             ///< cells, as relay_place
  const float *log_odds;          ///< for each lane of columns
  const std::uint64_t *units;     ///< the same, as weight_units
  const std::uint32_t *column_at; ///< for each lane of columns
  const float *scales;            ///< of the first num_scales iterations of a leg; the last one holds for the rest
  std::uint32_t num_scales;

  // The options.
  relay_strengths strengths;
  float *gammas; ///< for each chain, its first kTabledLegs legs and the leg in progress, each lane of columns
  std::uint32_t pre_iter, num_sets, set_max_iter, stop_nconv, chains;
  ensemble_mode mode;

  // Memory of the ensemble.
  relay_team *team;
  std::uint32_t *syndrome;     ///< of the shot: total_words
  std::uint8_t *records;       ///< of each chain: a relay_record and its solution, record_bytes() apart
  float *values;               ///< with has_values_in_device: 3 values of each lane of columns, for each chain
  float *messages;             ///< with has_messages_in_device: the cells of each chain
  const std::uint32_t *cancel; ///< mapped memory: the number of the request to cancel

  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t num_words() const { return sizes.num_check_lanes / kWarpLanes; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t num_column_lanes() const {
    return sizes.num_column_groups * kWarpLanes;
  }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t total_column_lanes() const { return total_column_groups * kWarpLanes; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t num_cut_words() const {
    return (num_cut + kWarpLanes - 1) / kWarpLanes;
  }
  CUDAQ_QEC_HOST_DEVICE constexpr std::size_t record_bytes() const {
    return (sizeof(relay_record) + total_column_groups * sizeof(std::uint32_t) + 127) / 128 * 128;
  }
};

/// The job of one part: sizes and pointers of what it has.
template <relay_variant Variant>
CUDAQ_QEC_HOST_DEVICE relay_job part_of(const relay_job &all, std::uint32_t part) {
  relay_job one = all;
  one.sizes = all.part[part];
  for (std::uint32_t p = 0; p < part; ++p) {
    const relay_part &before = all.part[p];
    const std::uint32_t lanes = before.num_column_groups * kWarpLanes;
    one.first_column_group += before.num_column_groups;
    one.cuts += before.num_cuts;
    one.sends_to += before.num_slots;
    one.checks += before.num_check_lanes;
    one.group_of_row += before.num_rows;
    one.column_groups += before.num_column_groups;
    one.places = static_cast<const relay_place<Variant> *>(one.places) + before.num_place_rows * kWarpLanes;
    one.log_odds += lanes;
    one.units += lanes;
    one.column_at += lanes;
    one.gammas += lanes;
    one.syndrome += before.num_check_lanes / kWarpLanes;
    if constexpr (has_values_in_device(Variant))
      one.values += lanes;
    if constexpr (has_messages_in_device(Variant))
      one.messages += before.num_cells;
  }
  return one;
}

/// What the threads of a block share about the shot in progress. Each member has one writer at a time.
struct relay_progress {
  relay_record record;       ///< of the chain
  relay_request request;     ///< block 0
  std::uint64_t begin_ns;    ///< block 0: when it saw the request
  std::uint64_t shot;        ///< the next one
  std::uint64_t weight;      ///< of the solution that is being written
  std::uint32_t stop[2];     ///< 1: the chain ends; of even and odd iterations
  std::uint32_t open[2];     ///< not 0: a check of one part alone does not fit; of even and odd iterations
  std::uint32_t begin_clock; ///< of the chain, then of a step; the clock's lower half
  std::uint32_t chosen;      ///< block 0: the chain with the answer
  relay_status reason;       ///< block 0: why it stops the chains
  float last_scale;          ///< of relay_job::scales
};

/// Of the messages of a check, or some of them: the least magnitude, and the next one. The sign of `least` is the
/// product of the signs.
struct alignas(8) relay_pair {
  float least, second;
};

/// The working memory of a block, in an array of 8-byte words. The variant is known when it is compiled: so is the
/// kind of memory that a pointer leads to.
template <relay_variant Variant>
struct relay_memory {
  static constexpr bool kIsCluster = is_cluster(Variant), kHasMessages = !has_messages_in_device(Variant),
                        kHasPlaces = !has_values_in_device(Variant), kHasAll = Variant == relay_variant::cluster,
                        kHasColumnGroups = kHasPlaces || Variant == relay_variant::shared;

  relay_progress *progress;
  std::uint32_t *syndrome, *residual; ///< num_words(); twice that
  relay_column_group *column_groups;  ///< with kHasColumnGroups
  float *messages;                    ///< with kHasMessages
  float *posteriors;                  ///< this and what follows with kHasPlaces
  std::uint16_t *places, *group_of_row;
  float *priors, *gammas; ///< this and what follows with kHasAll
  relay_check *checks;
  relay_cut *cuts;
  std::uint16_t *sends_to;
  std::uint32_t *is_cut;   ///< this and what follows with kIsCluster. A bit for each lane of checks: it is cut
  std::uint32_t *cut_open; ///< for even and odd iterations a bit for each cut check: it does not fit
  relay_pair *pairs;       ///< for even and odd iterations, max_slots: those of other parts
  relay_pair *own_pairs;   ///< of the cut checks: those of this part

  CUDAQ_QEC_HOST_DEVICE relay_memory(std::uint64_t *block, const relay_job &j) : relay_memory(block, j, true) {}
  static std::size_t bytes(const relay_job &j) { return 8 * relay_memory(nullptr, j, false).words_; }

private:
  CUDAQ_QEC_HOST_DEVICE relay_memory(std::uint64_t *block, const relay_job &j, bool has_block)
      : block_(block), has_block_(has_block) {
    const relay_part &has = j.sizes;
    place(progress, 1);
    if constexpr (kIsCluster) { // other blocks write these: they are at the same place in all parts
      place(cut_open, 2 * j.num_cut_words());
      place(pairs, 2 * j.max_slots);
    }
    place(syndrome, j.num_words());
    place(residual, 2 * j.num_words());
    if constexpr (kIsCluster) {
      place(is_cut, j.num_words());
      place(own_pairs, has.num_cuts);
    }
    if constexpr (kHasColumnGroups)
      place(column_groups, has.num_column_groups);
    if constexpr (kHasMessages)
      place(messages, has.num_cells);
    if constexpr (kHasPlaces) {
      place(posteriors, j.num_column_lanes());
      place(places, kWarpLanes * has.num_place_rows);
      place(group_of_row, has.num_rows);
    }
    if constexpr (kHasAll) {
      place(priors, j.num_column_lanes());
      place(gammas, j.num_column_lanes());
      place(checks, has.num_check_lanes);
      place(cuts, has.num_cuts);
      place(sends_to, has.num_slots);
    }
  }
  template <class T>
  CUDAQ_QEC_HOST_DEVICE void place(T *&array, std::size_t n) {
    array = has_block_ ? reinterpret_cast<T *>(block_ + words_) : nullptr;
    words_ += (n * sizeof(T) + 7) / 8;
  }
  std::uint64_t *const block_;
  const bool has_block_; ///< false: only counts
  std::size_t words_ = 0;
};

/// The bytes of a block's memory: with parts, of the block that needs the most.
inline std::size_t relay_memory_bytes(const relay_job &job, relay_variant variant) {
  return with_variant(variant, [&](auto v) -> std::size_t {
    if constexpr (!is_cluster(v()))
      return relay_memory<v()>::bytes(job);
    std::size_t max_bytes = 0;
    for (std::uint32_t part = 0; part < job.parts; ++part) {
      relay_job one = job; // without the pointers of part_of(), which may be null
      one.sizes = job.part[part];
      const std::size_t bytes = relay_memory<v()>::bytes(one);
      max_bytes = bytes > max_bytes ? bytes : max_bytes;
    }
    return max_bytes;
  });
}

} // namespace cudaq::qec::realtime::gpu

// SPDX-License-Identifier: Apache-2.0
// The data of the relay-bp kernel: the model in device memory, the words that the blocks of an ensemble share, and the
// records that they write. Plain data for host and device code.
#pragma once

#include "lib/qec/decoders/relay_bp/relay_bp_options.h"

#include <cstddef>
#include <cstdint>

namespace cudaq::qec::realtime::gpu {

/// Lanes of a group of checks or columns: a warp. Rows of a group of checks are one cell further apart, so that the
/// rows of a check are in different banks of shared memory.
inline constexpr std::uint32_t kWarpLanes = 32, kRowStride = 33;
/// Threads of a block, and in the variant with registers the most columns and checks of a thread.
inline constexpr std::uint32_t kBlockThreads = 1024, kRegisterRounds = 9, kRegisterChecks = 1;
/// Legs whose memory strengths are in a table. Those of later legs are computed, which takes the time of iterations.
inline constexpr std::uint32_t kTabledLegs = 8;

struct relay_check {
  std::uint32_t first_cell, rows; ///< row r is first_cell + r * kRowStride
};
struct relay_column_group {
  std::uint32_t first_row;   ///< of its places: row r of lane k is places[(first_row + r) * kWarpLanes + k]
  std::uint16_t rows, lanes; ///< lanes that have a column
};

/// How the chains of a shot end.
struct relay_request {
  std::uint64_t budget_ns; ///< from the time at which the kernel sees the request; UINT64_MAX: none
  std::uint32_t number;    ///< of the request; `cancel` with this value ends it
  std::uint32_t unused;
  // Then the syndrome: a bit for each lane of checks, in words of 32 bits.
};

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
};

/// The words that the blocks of an ensemble share, each on a line of its own. Zeroed before the kernel begins.
struct relay_team {
  alignas(128) std::uint32_t begun;   ///< chains that run, without chain 0
  alignas(128) std::uint64_t shot;    ///< that the chains decode, from 1; kNoMoreShots: they end
  alignas(128) std::uint64_t limit;   ///< chains stop after so many steps
  alignas(128) std::uint32_t ended;   ///< counts the ends of chains in all shots, modulo 2^32
  alignas(128) std::uint32_t winner;  ///< mode first: 1 + the chain that ended first
  alignas(128) std::uint32_t ready;   ///< the same, after its record is complete
  alignas(128) std::uint64_t best;    ///< the least key of a chain that ended with a solution
  alignas(128) std::uint64_t so_far;  ///< the same of chains that were stopped, by weight
  alignas(128) std::uint32_t stopped; ///< chains that were stopped

  static constexpr std::uint64_t kNoMoreShots = UINT64_MAX, kNoChain = UINT64_MAX;
};

/// A kernel argument. Addresses are device addresses; `Place` of the places depends on the variant.
struct relay_job {
  // The model.
  std::uint32_t num_check_lanes, num_cells, num_column_groups, num_place_rows;
  std::uint32_t num_rows;            ///< of cells, without those of unused lanes
  const relay_check *checks;         ///< for each lane of checks
  const std::uint16_t *group_of_row; ///< for each row of cells: its group of checks
  const relay_column_group *column_groups;
  const void *places;             ///< cells, as std::uint16_t or std::uint32_t
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
  std::uint32_t *syndrome;     ///< of the shot: num_words() words
  std::uint8_t *records;       ///< of each chain: a relay_record and its solution, record_bytes() apart
  float *values;               ///< unless in registers: 3 values of each lane of columns, for each chain
  float *messages;             ///< variant `device`: the cells of each chain
  const std::uint32_t *cancel; ///< mapped memory: the number of the request to cancel

  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t num_words() const { return num_check_lanes / kWarpLanes; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t num_column_lanes() const { return num_column_groups * kWarpLanes; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::size_t record_bytes() const {
    return (sizeof(relay_record) + num_column_groups * sizeof(std::uint32_t) + 127) / 128 * 128;
  }
};

/// Where a block keeps what it changes.
enum class relay_variant {
  registers, ///< messages, posteriors and places in shared memory, other values in registers
  shared,    ///< messages in shared memory, the values of columns in device memory
  device     ///< both in device memory
};

/// What the threads of a block share about the shot in progress. Each member has one writer at a time.
struct relay_progress {
  relay_record record;       ///< of the chain
  relay_request request;     ///< block 0
  std::uint64_t begin_ns;    ///< block 0: when it saw the request
  std::uint64_t shot;        ///< the next one
  std::uint64_t weight;      ///< of the solution that is being written
  std::uint32_t stop[2];     ///< 1: the chain ends; of even and odd iterations
  std::uint32_t begin_clock; ///< of the chain, then of a step; the clock's lower half
  std::uint32_t chosen;      ///< block 0: the chain with the answer
  relay_status reason;       ///< block 0: why it stops the chains
  std::uint32_t unused;
};

/// The working memory of a block, in an array of 8-byte words. The variant is known when it is compiled: so is the
/// kind of memory that a pointer leads to.
template <relay_variant Variant>
struct relay_memory {
  static constexpr bool kHasMessages = Variant != relay_variant::device, kHasAll = Variant == relay_variant::registers;

  relay_progress *progress;
  std::uint32_t *syndrome, *residual; ///< num_words(); twice that
  relay_column_group *column_groups;
  float *messages;   ///< with kHasMessages
  float *posteriors; ///< this and what follows with kHasAll
  std::uint16_t *places, *group_of_row;

  CUDAQ_QEC_HOST_DEVICE static constexpr std::size_t bytes(const relay_job &j) {
    return 8 * (first_words(j) + (kHasMessages ? message_words(j) : 0) +
                (kHasAll ? posterior_words(j) + place_words(j) + words_of(sizeof(std::uint16_t) * j.num_rows) : 0));
  }
  CUDAQ_QEC_HOST_DEVICE relay_memory(std::uint64_t *block, const relay_job &j)
      : progress(reinterpret_cast<relay_progress *>(block)),
        syndrome(reinterpret_cast<std::uint32_t *>(block + kWords)), residual(syndrome + j.num_words()),
        column_groups(reinterpret_cast<relay_column_group *>(block + kWords + syndrome_words(j))),
        messages(reinterpret_cast<float *>(block + first_words(j))),
        posteriors(reinterpret_cast<float *>(block + first_words(j) + message_words(j))),
        places(reinterpret_cast<std::uint16_t *>(block + first_words(j) + message_words(j) + posterior_words(j))),
        group_of_row(reinterpret_cast<std::uint16_t *>(block + first_words(j) + message_words(j) + posterior_words(j) +
                                                       place_words(j))) {}

private:
  static constexpr std::size_t kWords = sizeof(relay_progress) / 8;
  CUDAQ_QEC_HOST_DEVICE static constexpr std::size_t words_of(std::size_t bytes) { return (bytes + 7) / 8; }
  CUDAQ_QEC_HOST_DEVICE static constexpr std::size_t syndrome_words(const relay_job &j) {
    return words_of(3 * sizeof(std::uint32_t) * j.num_words());
  }
  CUDAQ_QEC_HOST_DEVICE static constexpr std::size_t first_words(const relay_job &j) {
    return kWords + syndrome_words(j) + words_of(sizeof(relay_column_group) * j.num_column_groups);
  }
  CUDAQ_QEC_HOST_DEVICE static constexpr std::size_t message_words(const relay_job &j) {
    return words_of(sizeof(float) * j.num_cells);
  }
  CUDAQ_QEC_HOST_DEVICE static constexpr std::size_t posterior_words(const relay_job &j) {
    return words_of(sizeof(float) * j.num_column_lanes());
  }
  CUDAQ_QEC_HOST_DEVICE static constexpr std::size_t place_words(const relay_job &j) {
    return words_of(sizeof(std::uint16_t) * kWarpLanes * j.num_place_rows);
  }
};

/// The bytes of a block's memory.
constexpr std::size_t relay_memory_bytes(const relay_job &job, relay_variant variant) {
  switch (variant) {
  case relay_variant::registers:
    return relay_memory<relay_variant::registers>::bytes(job);
  case relay_variant::shared:
    return relay_memory<relay_variant::shared>::bytes(job);
  case relay_variant::device:
    break;
  }
  return relay_memory<relay_variant::device>::bytes(job);
}

} // namespace cudaq::qec::realtime::gpu

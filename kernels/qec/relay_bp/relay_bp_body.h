// SPDX-License-Identifier: Apache-2.0
// One chain of relay-bp for one block of threads, with the same bits as relay_bp on the CPU. The code uses its threads
// through a Group only, so a test can run it on a CPU.
//
// An iteration has two steps with a barrier after each:
//
//   checks    a thread a check: least and second magnitude and the signs of its messages, then all its answers
//   columns   a thread a column: the answers are added in ascending order of checks, then each check gets the sum
//             without its own answer. A column that decides for an error flips bits of the residual syndrome
//
// After the second barrier every warp tests whether the residual is zero. All words that the next iteration writes
// before its first barrier exist twice, for odd and even iterations: slower warps may still read those of this one.
//
// Group: thread(), threads(), sync(), any_word(words, n), flip_bits, set_bits, add, clock(), opaque(word), and what
// relay_bp_team.h needs.
#pragma once

#include "kernels/qec/relay_bp/relay_bp_job.h"
#include "lib/qec/decoders/relay_bp/min_sum_sweeps.h"

#include <type_traits>

/// Unrolls the loop after it on a device.
#if defined(__CUDACC__)
#define CUDAQ_QEC_PRAGMA(text) _Pragma(#text)
#define CUDAQ_QEC_UNROLL(times) CUDAQ_QEC_PRAGMA(unroll times)
#else
#define CUDAQ_QEC_UNROLL(times)
#endif

namespace cudaq::qec::realtime::gpu {

namespace detail {

/// Sums and products that the compiler does not fuse.
CUDAQ_QEC_HOST_DEVICE inline float sum_of(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
CUDAQ_QEC_HOST_DEVICE inline float product_of(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
CUDAQ_QEC_HOST_DEVICE inline std::uint32_t word_of(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  return __builtin_bit_cast(std::uint32_t, value);
#endif
}
CUDAQ_QEC_HOST_DEVICE inline float float_of(std::uint32_t word) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(word);
#else
  return __builtin_bit_cast(float, word);
#endif
}
/// Neither is NaN.
CUDAQ_QEC_HOST_DEVICE inline float lesser(float a, float b) {
#if defined(__CUDA_ARCH__)
  return fminf(a, b);
#else
  return a < b ? a : b;
#endif
}
CUDAQ_QEC_HOST_DEVICE inline float greater(float a, float b) {
#if defined(__CUDA_ARCH__)
  return fmaxf(a, b);
#else
  return a > b ? a : b;
#endif
}

/// A word of the model, which no kernel changes.
template <class T>
CUDAQ_QEC_HOST_DEVICE T constant(const T *word) {
#if defined(__CUDA_ARCH__)
  return __ldg(word);
#else
  return *word;
#endif
}

/// The prior and the memory strength of a thread's columns: in registers (Rounds columns at most), or in memory.
struct prior_and_gamma {
  float prior, gamma;
};
template <std::uint32_t Rounds>
struct values_of_thread {
  prior_and_gamma own[Rounds];
  CUDAQ_QEC_HOST_DEVICE values_of_thread(const relay_job &, std::uint32_t) {}
  CUDAQ_QEC_HOST_DEVICE prior_and_gamma load(std::uint32_t round, std::uint32_t) const { return own[round]; }
  CUDAQ_QEC_HOST_DEVICE void store(std::uint32_t round, std::uint32_t, const prior_and_gamma &v) { own[round] = v; }
};
template <>
struct values_of_thread<0> {
  float *prior, *gamma;
  CUDAQ_QEC_HOST_DEVICE values_of_thread(const relay_job &job, std::uint32_t chain) {
    prior = job.values + std::size_t{3} * job.num_column_lanes() * chain;
    gamma = prior + job.num_column_lanes();
  }
  CUDAQ_QEC_HOST_DEVICE prior_and_gamma load(std::uint32_t, std::uint32_t lane) const {
    return {prior[lane], gamma[lane]};
  }
  CUDAQ_QEC_HOST_DEVICE void store(std::uint32_t, std::uint32_t lane, const prior_and_gamma &v) {
    prior[lane] = v.prior;
    gamma[lane] = v.gamma;
  }
};

} // namespace detail

/// Columns, Checks: the most of a thread, in the variant with registers.
template <class Group, relay_variant Variant, std::uint32_t Columns = kRegisterRounds,
          std::uint32_t Checks = kRegisterChecks>
class relay_chain {
  static constexpr bool kInRegisters = Variant == relay_variant::registers;
  static constexpr std::uint32_t kRounds = kInRegisters ? Columns : 0;
  using place = std::conditional_t<Variant == relay_variant::device, std::uint32_t, std::uint16_t>;

public:
  /// All threads of the block.
  CUDAQ_QEC_HOST_DEVICE relay_chain(const Group &group, const relay_job &job, const relay_memory<Variant> &memory,
                                    std::uint32_t chain)
      : group_(group), job_(job), m_(memory), chain_(chain), values_(job, chain) {
    for (std::uint32_t g = group.thread(); g < job.num_column_groups; g += group.threads())
      m_.column_groups[g] = job.column_groups[g];
    if constexpr (kInRegisters) {
      const auto *const places = static_cast<const place *>(job.places);
      for (std::uint32_t k = group.thread(); k < job.num_place_rows * kWarpLanes; k += group.threads())
        m_.places[k] = places[k];
      for (std::uint32_t row = group.thread(); row < job.num_rows; row += group.threads())
        m_.group_of_row[row] = job.group_of_row[row];
      CUDAQ_QEC_UNROLL()
      for (std::uint32_t round = 0; round < Checks; ++round)
        if (const std::uint32_t check = group.thread() + round * group.threads(); check < job.num_check_lanes)
          own_checks_[round] = job.checks[check];
    }
    group.sync();
  }

  /// Decodes the syndrome in memory.syndrome: writes the lightest solution after the chain's record in device memory,
  /// and the record to memory.progress. The last thread calls watch.look() before its part of an iteration, and
  /// watch.limit(look), the most steps of the chain, after it. All threads call it, and synchronise after it.
  template <class Watch>
  CUDAQ_QEC_HOST_DEVICE void run(const Watch &watch) {
    relay_progress &now = *m_.progress;
    if (leads()) {
      now.record = {relay_status::complete, 0, 0, chain_, 0, UINT64_MAX, 0, 0, 0};
      now.weight = 0;
      now.begin_clock = group_.clock();
    }
    std::uint32_t found = 0, parity = 0;
    bool stopped = false;
    for (std::uint32_t leg = 0; leg <= job_.num_sets && found < job_.stop_nconv && !stopped; ++leg) {
      start_leg(leg);
      const std::uint32_t most = leg == 0 ? job_.pre_iter : job_.set_max_iter;
      for (std::uint32_t k = 1; k <= most && !stopped; ++k) {
        const bool fits = iterate(k, parity, watch);
        if (fits) {
          ++found;
          keep();
        }
        stopped = found != job_.stop_nconv && now.stop[parity] != 0;
        parity ^= 1;
        if (fits)
          break;
      }
    }
    if (leads()) {
      now.record.found = found != 0 ? 1 : 0;
      now.record.stopped = stopped ? 1 : 0;
    }
  }

private:
  static constexpr std::uint32_t kUnrolledRows = 6; ///< of columns with this many messages or fewer

  CUDAQ_QEC_HOST_DEVICE bool leads() const { return group_.thread() == 0; }

  /// Calls body(round, lane of columns, group of columns) for each column of this thread. `round` is a constant in each
  /// call, an index of registers.
  template <class Body>
  CUDAQ_QEC_HOST_DEVICE void for_each_own_column(const Body &body) {
    // The compiler must not compute the addresses of all rounds in advance: it has no registers for them.
    const std::uint32_t first = group_.opaque(group_.thread());
    if constexpr (kInRegisters) {
      CUDAQ_QEC_UNROLL()
      for (std::uint32_t round = 0; round < kRounds; ++round)
        one_column(round, first + round * group_.threads(), body);
    } else {
      for_each_column([&](std::uint32_t lane, const relay_column_group &group) { body(0, lane, group); });
    }
  }
  template <class Body>
  CUDAQ_QEC_HOST_DEVICE void one_column(std::uint32_t round, std::uint32_t lane, const Body &body) {
    if (lane >= job_.num_column_lanes())
      return;
    const relay_column_group group = m_.column_groups[lane / kWarpLanes];
    if (lane % kWarpLanes < group.lanes)
      body(round, lane, group);
  }
  template <class Body>
  CUDAQ_QEC_HOST_DEVICE void for_each_column(const Body &body) {
    for (std::uint32_t lane = group_.thread(); lane < job_.num_column_lanes(); lane += group_.threads())
      one_column(0, lane, [&](std::uint32_t, std::uint32_t, const relay_column_group &group) { body(lane, group); });
  }

  // What the variants have in different kinds of memory.
  CUDAQ_QEC_HOST_DEVICE float *messages() const {
    if constexpr (Variant == relay_variant::device)
      return job_.messages + std::size_t{chain_} * job_.num_cells;
    else
      return m_.messages;
  }
  CUDAQ_QEC_HOST_DEVICE float *posteriors() const {
    if constexpr (kInRegisters)
      return m_.posteriors;
    else
      return job_.values + (std::size_t{3} * chain_ + 2) * job_.num_column_lanes();
  }
  CUDAQ_QEC_HOST_DEVICE const place *places_of(std::uint32_t lane, const relay_column_group &group) const {
    const std::size_t first = std::size_t{group.first_row} * kWarpLanes + lane % kWarpLanes;
    if constexpr (kInRegisters)
      return m_.places + first;
    else
      return static_cast<const place *>(job_.places) + first;
  }
  CUDAQ_QEC_HOST_DEVICE const std::uint16_t *groups_of_rows() const {
    if constexpr (kInRegisters)
      return m_.group_of_row;
    else
      return job_.group_of_row;
  }

  CUDAQ_QEC_HOST_DEVICE void start_leg(std::uint32_t leg) {
    group_.sync(); // the columns of the leg before have read its messages
    const std::size_t tables = std::size_t{chain_} * (kTabledLegs + 1);
    float *const gammas = job_.gammas + (tables + (leg < kTabledLegs ? leg : kTabledLegs)) * job_.num_column_lanes();
    if (leg >= kTabledLegs) // each thread reads what it writes here
      for_each_column([&](std::uint32_t lane, const relay_column_group &) {
        gammas[lane] = static_cast<float>(job_.strengths.of(chain_, leg, detail::constant(job_.column_at + lane)));
      });
    for_each_own_column([&](std::uint32_t round, std::uint32_t lane, const relay_column_group &group) {
      const float log_odds = detail::constant(job_.log_odds + lane), gamma = gammas[lane];
      values_.store(round, lane, {detail::product_of(detail::sum_of(1, -gamma), log_odds), gamma});
      if (leg == 0)
        posteriors()[lane] = log_odds;
      const place *const at = places_of(lane, group);
      for (std::uint32_t row = 0; row < group.rows; ++row)
        messages()[at[row * kWarpLanes]] = log_odds;
    });
    group_.sync();
  }

  /// True: the decision has the syndrome.
  template <class Watch>
  CUDAQ_QEC_HOST_DEVICE bool iterate(std::uint32_t k, std::uint32_t parity, const Watch &watch) {
    relay_progress &now = *m_.progress;
    std::uint32_t *const residual = m_.residual + parity * job_.num_words();
    const bool watches = group_.thread() == group_.threads() - 1;
    const std::uint32_t first = group_.clock();
    typename Watch::seen seen{};
    if (watches)
      seen = watch.look();
    for (std::uint32_t w = group_.thread(); w < job_.num_words(); w += group_.threads())
      residual[w] = m_.syndrome[w];
    const float scale = detail::constant(job_.scales + (k < job_.num_scales ? k : job_.num_scales) - 1);
    if constexpr (kInRegisters) {
      CUDAQ_QEC_UNROLL()
      for (std::uint32_t round = 0; round < Checks; ++round)
        if (const std::uint32_t check = group_.thread() + round * group_.threads(); check < job_.num_check_lanes)
          answer_check(check, own_checks_[round], scale);
    } else {
      for (std::uint32_t check = group_.thread(); check < job_.num_check_lanes; check += group_.threads())
        answer_check(check, job_.checks[check], scale);
    }
    if (watches)
      now.stop[parity] = ++now.record.steps >= watch.limit(seen) ? 1 : 0;
    group_.sync();
    if (leads())
      step_ends(now.record.check_cycles, first);
    const std::uint32_t second = group_.clock();
    for_each_own_column([&](std::uint32_t round, std::uint32_t lane, const relay_column_group &group) {
      sum_column(round, lane, group, residual);
    });
    group_.sync();
    if (leads())
      step_ends(now.record.column_cycles, second);
    return !group_.any_word(residual, job_.num_words());
  }
  CUDAQ_QEC_HOST_DEVICE void step_ends(std::uint64_t &cycles, std::uint32_t begin) const {
    const std::uint32_t end = group_.clock();
    cycles += end - begin;
    m_.progress->record.all_cycles += end - m_.progress->begin_clock;
    m_.progress->begin_clock = end;
  }

  CUDAQ_QEC_HOST_DEVICE void answer_check(std::uint32_t check, const relay_check &where, float scale) {
    constexpr std::uint32_t kSign = 1u << 31;
    const std::uint32_t rows = where.rows;
    float *const cells = messages() + where.first_cell;
    float least = kLargestMessage<float>, second = least;
    std::uint32_t sign = m_.syndrome[check / kWarpLanes] >> check % kWarpLanes << 31;
    CUDAQ_QEC_UNROLL(5)
    for (std::uint32_t row = 0; row < rows; ++row) {
      const std::uint32_t word = detail::word_of(cells[row * kRowStride]);
      const float magnitude = detail::float_of(word & ~kSign);
      sign ^= word;
      second = detail::lesser(second, detail::greater(magnitude, least));
      least = detail::lesser(least, magnitude);
    }
    const std::uint32_t scaled_least = detail::word_of(detail::product_of(least, scale)) | (sign & kSign);
    const std::uint32_t scaled_second = detail::word_of(detail::product_of(second, scale)) | (sign & kSign);
    CUDAQ_QEC_UNROLL(5)
    for (std::uint32_t row = 0; row < rows; ++row) {
      const std::uint32_t word = detail::word_of(cells[row * kRowStride]);
      // If two messages are the least, `second` equals `least`.
      const std::uint32_t scaled = detail::float_of(word & ~kSign) == least ? scaled_second : scaled_least;
      cells[row * kRowStride] = detail::float_of(scaled ^ (word & kSign));
    }
  }

  CUDAQ_QEC_HOST_DEVICE void sum_column(std::uint32_t round, std::uint32_t lane, const relay_column_group &group,
                                        std::uint32_t *residual) {
    const place *const at = places_of(lane, group);
    const detail::prior_and_gamma v = values_.load(round, lane);
    float sum = detail::sum_of(v.prior, detail::product_of(v.gamma, posteriors()[lane])), later = 0;
    if (group.rows <= kUnrolledRows) {
      std::uint32_t cell[kUnrolledRows];
      float answer[kUnrolledRows], before[kUnrolledRows];
      CUDAQ_QEC_UNROLL()
      for (std::uint32_t row = 0; row < kUnrolledRows; ++row)
        if (row < group.rows) {
          cell[row] = at[row * kWarpLanes];
          answer[row] = messages()[cell[row]];
        }
      CUDAQ_QEC_UNROLL()
      for (std::uint32_t row = 0; row < kUnrolledRows; ++row)
        if (row < group.rows) {
          before[row] = sum;
          sum = detail::sum_of(sum, answer[row]);
        }
      CUDAQ_QEC_UNROLL()
      for (std::uint32_t row = kUnrolledRows; row-- > 0;)
        if (row < group.rows) {
          messages()[cell[row]] = detail::sum_of(before[row], later);
          later = detail::sum_of(later, answer[row]);
        }
    } else {
      const float begin = sum;
      for (std::uint32_t row = 0; row < group.rows; ++row)
        sum = detail::sum_of(sum, messages()[at[row * kWarpLanes]]);
      for (std::uint32_t row = group.rows; row-- > 0;) { // the answers before `row` are still there
        float before = begin;
        for (std::uint32_t earlier = 0; earlier < row; ++earlier)
          before = detail::sum_of(before, messages()[at[earlier * kWarpLanes]]);
        float &message = messages()[at[row * kWarpLanes]];
        const float answer = message;
        message = detail::sum_of(before, later);
        later = detail::sum_of(later, answer);
      }
    }
    posteriors()[lane] = sum;
    if (sum <= 0)
      flip_checks(at, group.rows, residual);
  }

  CUDAQ_QEC_HOST_DEVICE void flip_checks(const place *at, std::uint32_t rows, std::uint32_t *residual) {
    constexpr std::uint32_t kAtOnce = 3; // loads in flight before the first flip
    for (std::uint32_t first = 0; first < rows; first += kAtOnce) {
      std::uint32_t cell[kAtOnce], group[kAtOnce];
      CUDAQ_QEC_UNROLL()
      for (std::uint32_t k = 0; k < kAtOnce; ++k)
        if (first + k < rows)
          cell[k] = at[(first + k) * kWarpLanes];
      CUDAQ_QEC_UNROLL()
      for (std::uint32_t k = 0; k < kAtOnce; ++k)
        if (first + k < rows)
          group[k] = groups_of_rows()[cell[k] / kRowStride];
      CUDAQ_QEC_UNROLL()
      for (std::uint32_t k = 0; k < kAtOnce; ++k)
        if (first + k < rows)
          group_.flip_bits(residual[group[k]], 1u << cell[k] % kRowStride);
    }
  }

  /// Writes the decision after the chain's record if it is lighter than what is there.
  CUDAQ_QEC_HOST_DEVICE void keep() {
    relay_progress &now = *m_.progress;
    for_each_column([&](std::uint32_t lane, const relay_column_group &) {
      if (posteriors()[lane] <= 0)
        group_.add(now.weight, detail::constant(job_.units + lane));
    });
    group_.sync();
    const bool lighter = now.weight < now.record.weight;
    auto *const solution =
        reinterpret_cast<std::uint32_t *>(job_.records + chain_ * job_.record_bytes() + sizeof(relay_record));
    if (lighter)
      for (std::uint32_t g = group_.thread(); g < job_.num_column_groups; g += group_.threads())
        solution[g] = 0;
    group_.sync();
    if (leads()) {
      now.record.weight = lighter ? now.weight : now.record.weight;
      now.weight = 0;
    }
    if (lighter)
      for_each_column([&](std::uint32_t lane, const relay_column_group &) {
        if (posteriors()[lane] <= 0)
          group_.set_bits(solution[lane / kWarpLanes], 1u << lane % kWarpLanes);
      });
  }

  const Group &group_;
  const relay_job &job_;
  const relay_memory<Variant> m_;
  const std::uint32_t chain_;
  detail::values_of_thread<kRounds> values_;
  relay_check own_checks_[Checks]; ///< with kInRegisters
};

} // namespace cudaq::qec::realtime::gpu

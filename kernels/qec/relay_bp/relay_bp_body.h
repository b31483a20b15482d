// SPDX-License-Identifier: Apache-2.0
// One chain of relay-bp for one block of threads or a cluster of blocks, with the same bits as relay_bp on the CPU. The
// code uses its threads through a Group only, so a test can run it on a CPU.
//
// An iteration has two steps with a barrier of the block after each:
//
//   checks    least and second magnitude and the signs of a check's messages, then all its answers. A thread a check;
//             in a cluster kCheckLanes neighbouring threads a check, and cut checks are merged (relay_bp_exchange.h)
//   columns   a thread a column: the answers are added in ascending order of checks, then each check gets the sum
//             without its own answer. A column that decides for an error flips bits of the residual syndrome
//
// The step of checks begins with the test of the iteration before: whether the residual is zero. In a cluster the test
// is known after the exchange; the answers that were written before are then of no use, and do no harm. All words that
// the step of checks writes exist twice, for even and odd iterations: slower warps may still read the others.
//
// Example, two blocks, iteration 7 of a leg. Check 40 is cut: block 0 has 20 messages of it, block 1 has 15. In block 0
// four threads take 5 messages each; their pairs are merged to (0.3, 0.7) with sign -, which block 0 sends to block 1.
// Block 1 sends (0.5, 0.6) with sign +. After the barrier both know (0.3, 0.5) with sign -, and answer their messages.
//
// Group: thread(), threads(), sync(), any_word(words, n), flip_bits, set_bits, add, clock(), opaque(word), what
// relay_bp_team.h needs, and for variants with clusters kCheckLanes, across(pair, distance) (that of the thread whose
// number differs in this bit), rank(), of_part(pointer, part), and the barrier of the cluster: arrive() and wait(). The
// other variants have rank 0, and sync() for all three.
#pragma once

#include "kernels/qec/relay_bp/relay_bp_exchange.h"

namespace cudaq::qec::realtime::gpu {

namespace detail {

/// The prior and the memory strength of a thread's columns: in registers (Rounds columns at most), or in memory.
struct prior_and_gamma {
  float prior, gamma;
};
template <std::uint32_t Rounds>
struct values_of_thread {
  prior_and_gamma own[Rounds];
  CUDAQ_QEC_HOST_DEVICE values_of_thread(float *, float *) {}
  CUDAQ_QEC_HOST_DEVICE prior_and_gamma load(std::uint32_t round, std::uint32_t) const { return own[round]; }
  CUDAQ_QEC_HOST_DEVICE void store(std::uint32_t round, std::uint32_t, const prior_and_gamma &v) { own[round] = v; }
};
template <>
struct values_of_thread<0> {
  float *prior, *gamma;
  CUDAQ_QEC_HOST_DEVICE values_of_thread(float *priors, float *gammas) : prior(priors), gamma(gammas) {}
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
  using memory = relay_memory<Variant>;
  using exchange = relay_exchange<Group, Variant>;
  static constexpr bool kIsCluster = memory::kIsCluster, kInRegisters = Variant == relay_variant::registers;
  static constexpr std::uint32_t kRounds = kInRegisters ? Columns : 0;
  static constexpr std::uint32_t kCheckLanes = kIsCluster ? Group::kCheckLanes : 1;
  using place = relay_place<Variant>;

public:
  /// All threads of the block. `job`: with parts, that of this block.
  CUDAQ_QEC_HOST_DEVICE relay_chain(const Group &group, const relay_job &job, const memory &of_block,
                                    std::uint32_t chain)
      : group_(group), job_(job), m_(of_block), chain_(chain), values_(priors(), gammas()) {
    if (leads())
      m_.progress->last_scale = detail::constant(job.scales + job.num_scales - 1);
    if constexpr (memory::kHasColumnGroups)
      copy(m_.column_groups, job.column_groups, job.sizes.num_column_groups);
    if constexpr (memory::kHasPlaces) {
      copy(m_.places, static_cast<const place *>(job.places), job.sizes.num_place_rows * kWarpLanes);
      copy(m_.group_of_row, job.group_of_row, job.sizes.num_rows);
    }
    if constexpr (kInRegisters) {
      CUDAQ_QEC_UNROLL()
      for (std::uint32_t round = 0; round < Checks; ++round)
        if (const std::uint32_t check = group.thread() + round * group.threads(); check < job.sizes.num_check_lanes)
          own_checks_[round] = job.checks[check];
    }
    if constexpr (memory::kHasAll) {
      copy(m_.checks, job.checks, job.sizes.num_check_lanes);
      copy(m_.cuts, job.cuts, job.sizes.num_cuts);
      copy(m_.sends_to, job.sends_to, job.sizes.num_slots);
    }
    if constexpr (kIsCluster) {
      for (std::uint32_t w = group.thread(); w < job.num_words(); w += group.threads()) {
        m_.is_cut[w] = 0;
        for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane)
          if (job.checks[w * kWarpLanes + lane].cut != relay_check::kNotCut)
            m_.is_cut[w] |= 1u << lane;
      }
      exchange(group, job, m_).begin();
    }
    group.sync();
  }

  /// Decodes the syndrome in memory.syndrome: writes the lightest solution after the chain's record in device memory,
  /// and the record to memory.progress (of the block of rank 0). In each iteration the last thread of that block calls
  /// watch.limit(seen), the most steps of the chain, with what watch.poll() returned in the iteration before: a poll
  /// may take as long as an iteration. All threads call it, and synchronise after it.
  template <class Watch>
  CUDAQ_QEC_HOST_DEVICE void run(const Watch &watch) {
    relay_progress &now = *m_.progress;
    if (leads()) {
      now.record = {relay_status::complete, 0, 0, chain_, 0, UINT64_MAX, 0, 0, 0, 0};
      now.weight = 0;
      now.begin_clock = group_.clock();
    }
    typename Watch::seen seen = watch.nothing();
    std::uint32_t found = 0, parity = 0;
    bool ends = false;
    for (std::uint32_t leg = 0; leg <= job_.num_sets && found < job_.stop_nconv && !ends; ++leg) {
      start_leg(leg);
      const std::uint32_t max_iter = leg == 0 ? job_.pre_iter : job_.set_max_iter;
      for (std::uint32_t k = 1;; ++k, parity ^= 1) {
        const bool is_last = ends || k > max_iter;
        if (answer_checks(k, is_last, parity, watch, seen)) {
          ++found;
          keep();
          break;
        }
        if (is_last)
          break;
        ends = now.stop[parity] != 0;
        sum_columns(parity);
      }
      parity ^= 1;
    }
    if (leads()) {
      now.record.found = found != 0 ? 1 : 0;
      now.record.stopped = ends && found != job_.stop_nconv ? 1 : 0;
    }
  }

private:
  static constexpr std::uint32_t kRowsAtOnce = 6; ///< messages of a column in registers
  static constexpr std::uint32_t kSign = 1u << 31;

  CUDAQ_QEC_HOST_DEVICE bool leads() const { return group_.thread() == 0; }
  CUDAQ_QEC_HOST_DEVICE bool watches() const { return group_.thread() == group_.threads() - 1 && group_.rank() == 0; }
  template <class T>
  CUDAQ_QEC_HOST_DEVICE void copy(T *to, const T *from, std::uint32_t n) const {
    for (std::uint32_t k = group_.thread(); k < n; k += group_.threads())
      to[k] = from[k];
  }

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
    const relay_column_group group = column_groups()[lane / kWarpLanes];
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
    if constexpr (memory::kHasMessages)
      return m_.messages;
    else
      return job_.messages + std::size_t{chain_} * job_.total_cells;
  }
  CUDAQ_QEC_HOST_DEVICE const relay_column_group *column_groups() const {
    if constexpr (memory::kHasColumnGroups)
      return m_.column_groups;
    else
      return job_.column_groups;
  }
  CUDAQ_QEC_HOST_DEVICE const relay_check *checks() const {
    if constexpr (memory::kHasAll)
      return m_.checks;
    else
      return job_.checks;
  }
  CUDAQ_QEC_HOST_DEVICE float *device_values(std::uint32_t which) const {
    return job_.values + (std::size_t{3} * chain_ + which) * job_.total_column_lanes();
  }
  CUDAQ_QEC_HOST_DEVICE float *priors() const {
    if constexpr (memory::kHasAll)
      return m_.priors;
    else
      return device_values(0);
  }
  CUDAQ_QEC_HOST_DEVICE float *gammas() const {
    if constexpr (memory::kHasAll)
      return m_.gammas;
    else
      return device_values(1);
  }
  CUDAQ_QEC_HOST_DEVICE float *posteriors() const {
    if constexpr (memory::kHasPlaces)
      return m_.posteriors;
    else
      return device_values(2);
  }
  CUDAQ_QEC_HOST_DEVICE const place *places_of(std::uint32_t lane, const relay_column_group &group) const {
    const std::size_t first = std::size_t{group.first_row} * kWarpLanes + lane % kWarpLanes;
    if constexpr (memory::kHasPlaces)
      return m_.places + first;
    else
      return static_cast<const place *>(job_.places) + first;
  }
  CUDAQ_QEC_HOST_DEVICE const std::uint16_t *groups_of_rows() const {
    if constexpr (memory::kHasPlaces)
      return m_.group_of_row;
    else
      return job_.group_of_row;
  }

  CUDAQ_QEC_HOST_DEVICE void start_leg(std::uint32_t leg) {
    group_.sync(); // the threads of the leg before have read its messages and its test
    const std::size_t table = std::size_t{chain_} * (kTabledLegs + 1) + (leg < kTabledLegs ? leg : kTabledLegs);
    float *const gammas = job_.gammas + table * job_.total_column_lanes();
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

  /// Iteration k of a leg, the step of checks. True: the decision of iteration k - 1 has the syndrome. is_last: only
  /// this test.
  template <class Watch>
  CUDAQ_QEC_HOST_DEVICE bool answer_checks(std::uint32_t k, bool is_last, std::uint32_t parity, const Watch &watch,
                                           typename Watch::seen &seen) {
    relay_progress &now = *m_.progress;
    std::uint32_t *const residual = m_.residual + parity * job_.num_words();
    const std::uint32_t *const before = m_.residual + (parity ^ 1) * job_.num_words();
    const std::uint32_t first = group_.clock();
    if constexpr (!kIsCluster) {
      if (k > 1 && !group_.any_word(before, job_.num_words()))
        return true;
      if (is_last)
        return false;
    }
    if (watches() && !is_last) {
      const std::uint32_t stop = now.record.steps + 1 >= watch.limit(seen) ? 1 : 0;
      for (std::uint32_t part = 0; part < job_.parts; ++part)
        *group_.of_part(&now.stop[parity], part) = stop;
      seen = watch.poll();
    }
    for (std::uint32_t w = group_.thread(); w < job_.num_words() && !is_last; w += group_.threads())
      residual[w] = m_.syndrome[w];
    const float scale = k < job_.num_scales ? detail::constant(job_.scales + k - 1) : now.last_scale;
    if constexpr (kIsCluster) {
      if (const bool fits = answer_parts(scale, is_last, parity, k > 1 ? before : nullptr); fits || is_last)
        return fits;
    } else if constexpr (kInRegisters) {
      CUDAQ_QEC_UNROLL()
      for (std::uint32_t round = 0; round < Checks; ++round)
        if (const std::uint32_t lane = group_.thread() + round * group_.threads(); lane < job_.sizes.num_check_lanes)
          answer(own_checks_[round], pair_of(lane, own_checks_[round]), scale);
    } else {
      for (std::uint32_t lane = group_.thread(); lane < job_.sizes.num_check_lanes; lane += group_.threads())
        answer(checks()[lane], pair_of(lane, checks()[lane]), scale);
    }
    group_.sync();
    if (leads())
      step_ends(now.record.check_cycles, first);
    return false;
  }

  /// The step of checks in a cluster. `before`: the residual that is tested, or null.
  CUDAQ_QEC_HOST_DEVICE bool answer_parts(float scale, bool is_last, std::uint32_t parity,
                                          const std::uint32_t *before) {
    const exchange others(group_, job_, m_);
    if (before != nullptr)
      for (std::uint32_t w = group_.thread(); w < job_.num_words(); w += group_.threads())
        if ((before[w] & ~m_.is_cut[w]) != 0)
          others.open(parity);
    const std::uint32_t lanes = job_.sizes.num_check_lanes;
    for (std::uint32_t first = 0; first < lanes; first += group_.threads()) { // all threads: they exchange pairs
      const std::uint32_t lane = first + group_.thread();
      const relay_check where = lane < lanes ? checks()[lane] : relay_check{0, 0, relay_check::kNotCut};
      relay_pair pair{kLargestMessage<float>, kLargestMessage<float>};
      if (!is_last) {
        if (lane < lanes)
          pair = pair_of(lane, where);
        for (std::uint32_t distance = 1; distance < kCheckLanes; distance *= 2)
          pair = merge(pair, group_.across(pair, distance));
      }
      if (where.cut == relay_check::kNotCut) {
        if (!is_last)
          answer(where, pair, scale);
      } else if (lane % kCheckLanes == 0) {
        if (!is_last)
          others.send(parity, where.cut, pair);
        if (before != nullptr && (before[lane / kWarpLanes] >> lane % kWarpLanes & 1) != 0)
          others.flip_cut(parity, where.cut);
      }
    }
    const std::uint32_t begin = group_.clock();
    group_.arrive();
    group_.wait();
    if (leads())
      m_.progress->record.wait_cycles += group_.clock() - begin;
    if (before != nullptr && others.fits(parity))
      return true; // all bits are clear
    for (std::uint32_t lane = group_.thread(); lane < lanes && !is_last; lane += group_.threads())
      if (const relay_check where = checks()[lane]; where.cut != relay_check::kNotCut)
        answer(where, others.merged(parity, where.cut), scale);
    if (is_last) {
      group_.sync();
      others.clear(parity);
    }
    return false;
  }

  /// Of the messages of a check, or a lane of it. The first lane has the sign of the syndrome.
  CUDAQ_QEC_HOST_DEVICE relay_pair pair_of(std::uint32_t lane, const relay_check &where) const {
    const float *const cells = messages() + where.first_cell;
    const std::uint32_t rows = where.rows;
    float least = kLargestMessage<float>, second = least;
    std::uint32_t sign = m_.syndrome[lane / kWarpLanes] >> lane % kWarpLanes << 31;
    CUDAQ_QEC_UNROLL(5)
    for (std::uint32_t row = 0; row < rows; ++row) {
      const std::uint32_t word = detail::word_of(cells[row * kRowStride]);
      const float magnitude = detail::float_of(word & ~kSign);
      sign ^= word;
      second = detail::lesser(second, detail::greater(magnitude, least));
      least = detail::lesser(least, magnitude);
    }
    return {detail::float_of(detail::word_of(least) | (sign & kSign)), second};
  }

  /// Writes the answers to the messages of a check, or a lane of it. `pair`: of all its messages.
  CUDAQ_QEC_HOST_DEVICE void answer(const relay_check &where, const relay_pair &pair, float scale) const {
    float *const cells = messages() + where.first_cell;
    const std::uint32_t rows = where.rows, sign = detail::word_of(pair.least) & kSign;
    const float least = detail::float_of(detail::word_of(pair.least) & ~kSign);
    const std::uint32_t scaled_least = detail::word_of(detail::product_of(least, scale)) | sign;
    const std::uint32_t scaled_second = detail::word_of(detail::product_of(pair.second, scale)) | sign;
    CUDAQ_QEC_UNROLL(5)
    for (std::uint32_t row = 0; row < rows; ++row) {
      const std::uint32_t word = detail::word_of(cells[row * kRowStride]);
      // If two messages are the least, `second` equals `least`.
      const std::uint32_t scaled = detail::float_of(word & ~kSign) == least ? scaled_second : scaled_least;
      cells[row * kRowStride] = detail::float_of(scaled ^ (word & kSign));
    }
  }

  /// The step of columns.
  CUDAQ_QEC_HOST_DEVICE void sum_columns(std::uint32_t parity) {
    std::uint32_t *const residual = m_.residual + parity * job_.num_words();
    const std::uint32_t begin = group_.clock();
    if (watches())
      ++m_.progress->record.steps;
    if constexpr (kIsCluster)
      exchange(group_, job_, m_).clear(parity);
    for_each_own_column([&](std::uint32_t round, std::uint32_t lane, const relay_column_group &group) {
      sum_column(round, lane, group, residual);
    });
    group_.sync();
    if (leads())
      step_ends(m_.progress->record.column_cycles, begin);
  }
  CUDAQ_QEC_HOST_DEVICE void step_ends(std::uint64_t &cycles, std::uint32_t begin) const {
    const std::uint32_t end = group_.clock();
    cycles += end - begin;
    m_.progress->record.all_cycles += end - m_.progress->begin_clock;
    m_.progress->begin_clock = end;
  }

  CUDAQ_QEC_HOST_DEVICE void sum_column(std::uint32_t round, std::uint32_t lane, const relay_column_group &group,
                                        std::uint32_t *residual) {
    const place *const at = places_of(lane, group);
    const detail::prior_and_gamma v = values_.load(round, lane);
    const float begin = detail::sum_of(v.prior, detail::product_of(v.gamma, posteriors()[lane]));
    float later = 0;
    // Messages first to first + kRowsAtOnce - 1. `sum`: of what is before them. Returns the sum with their answers.
    const auto add_rows = [&](std::uint32_t first, float sum) {
      std::uint32_t cell[kRowsAtOnce];
      float answer[kRowsAtOnce], before[kRowsAtOnce];
      CUDAQ_QEC_UNROLL()
      for (std::uint32_t k = 0; k < kRowsAtOnce; ++k)
        if (first + k < group.rows) {
          cell[k] = at[(first + k) * kWarpLanes];
          answer[k] = messages()[cell[k]];
        }
      CUDAQ_QEC_UNROLL()
      for (std::uint32_t k = 0; k < kRowsAtOnce; ++k)
        if (first + k < group.rows) {
          before[k] = sum;
          sum = detail::sum_of(sum, answer[k]);
        }
      CUDAQ_QEC_UNROLL()
      for (std::uint32_t k = kRowsAtOnce; k-- > 0;)
        if (first + k < group.rows) {
          messages()[cell[k]] = detail::sum_of(before[k], later);
          later = detail::sum_of(later, answer[k]);
        }
      return sum;
    };
    float posterior = 0;
    if (group.rows <= kRowsAtOnce) {
      posterior = add_rows(0, begin);
    } else {
      for (std::uint32_t end = group.rows; end != 0;) {
        const std::uint32_t first = (end - 1) / kRowsAtOnce * kRowsAtOnce;
        float sum = begin;
        for (std::uint32_t row = 0; row < first; ++row) // their answers are still there
          sum = detail::sum_of(sum, messages()[at[row * kWarpLanes]]);
        sum = add_rows(first, sum);
        if (end == group.rows)
          posterior = sum;
        end = first;
      }
    }
    posteriors()[lane] = posterior;
    if (posterior <= 0)
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
          group_.flip_bits(residual[group[k]], 1u << cell[k] % kRowStride / kCheckLanes * kCheckLanes);
    }
  }

  /// Writes the decision after the chain's record if it is lighter than what is there.
  CUDAQ_QEC_HOST_DEVICE void keep() {
    relay_progress &now = *m_.progress;
    for_each_column([&](std::uint32_t lane, const relay_column_group &) {
      if (posteriors()[lane] <= 0)
        for (std::uint32_t part = 0; part < job_.parts; ++part)
          group_.add(*group_.of_part(&now.weight, part), detail::constant(job_.units + lane));
    });
    group_.arrive();
    group_.wait();
    const bool lighter = now.weight < now.record.weight;
    auto *const solution =
        reinterpret_cast<std::uint32_t *>(job_.records + chain_ * job_.record_bytes() + sizeof(relay_record)) +
        job_.first_column_group;
    if (lighter)
      for (std::uint32_t g = group_.thread(); g < job_.sizes.num_column_groups; g += group_.threads())
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
  const memory m_;
  const std::uint32_t chain_;
  detail::values_of_thread<kRounds> values_;
  relay_check own_checks_[Checks]; ///< with kInRegisters
};

} // namespace cudaq::qec::realtime::gpu

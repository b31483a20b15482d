// SPDX-License-Identifier: Apache-2.0
// What the blocks of a cluster tell each other in an iteration. Each block has a part of the columns and all messages
// of these columns. A check is cut if several parts have messages of it. One exchange:
//
//   send()   the pair of this part's messages of a cut check, to the other parts that have messages of it
//   open     bits of checks that did not fit in the iteration before, to all parts
//   arrive() and wait(): a barrier of the cluster
//   merged() the pair of all messages of a cut check
//   fits()   all checks fitted in the iteration before
//   clear()  after a barrier of the block: the bits for the exchange after the next one
//
// All memory exists twice, for even and odd exchanges: a block that is ahead by one writes to the other half. It cannot
// be ahead by two, because of the barrier. Only a part's own pairs exist once: no other block writes them.
//
// A part has a slot for each pair that another part sends to it, and knows its slots in the other parts. Example: parts
// 0, 1 and 3 have messages of a check. Slots 12 and 13 of part 1 are for the pairs of parts 0 and 3, so first_slot is
// 12. Part 1 sends its own pair to slot 7 of part 0 and to slot 21 of part 3: sends_to[12] is 7 and sends_to[13] is 21.
//
// Group: rank(), of_part(pointer to memory of this block, part), and what relay_bp_body.h needs.
#pragma once

#include "kernels/qec/relay_bp/relay_bp_arithmetic.h"
#include "kernels/qec/relay_bp/relay_bp_job.h"

#include <bit>

namespace cudaq::qec::realtime::gpu {

/// The pair of the messages of both.
CUDAQ_QEC_HOST_DEVICE inline relay_pair merge(const relay_pair &a, const relay_pair &b) {
  constexpr std::uint32_t kSign = 1u << 31;
  const std::uint32_t word_a = detail::word_of(a.least), word_b = detail::word_of(b.least);
  const float least_a = detail::float_of(word_a & ~kSign), least_b = detail::float_of(word_b & ~kSign);
  const float second = detail::lesser(detail::greater(least_a, least_b), detail::lesser(a.second, b.second));
  const std::uint32_t sign = (word_a ^ word_b) & kSign;
  return {detail::float_of(detail::word_of(detail::lesser(least_a, least_b)) | sign), second};
}

/// The number of the lowest bit that is set. `word` is not 0.
CUDAQ_QEC_HOST_DEVICE inline std::uint32_t lowest_bit(std::uint32_t word) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__ffs(static_cast<int>(word)) - 1);
#else
  return static_cast<std::uint32_t>(std::countr_zero(word));
#endif
}

template <class Group, relay_variant Variant>
class relay_exchange {
  using memory = relay_memory<Variant>;

public:
  CUDAQ_QEC_HOST_DEVICE relay_exchange(const Group &group, const relay_job &job, const memory &m)
      : group_(group), job_(job), m_(m) {}

  /// Before the first exchange, by all threads of the block.
  CUDAQ_QEC_HOST_DEVICE void begin() const {
    clear(0);
    clear(1);
  }
  CUDAQ_QEC_HOST_DEVICE void send(std::uint32_t parity, std::uint32_t cut, const relay_pair &pair) const {
    const relay_cut where = cuts()[cut];
    m_.own_pairs[cut] = pair;
    std::uint32_t slot = where.first_slot;
    for (std::uint32_t left = where.others; left != 0; left &= left - 1, ++slot)
      *group_.of_part(pairs(parity) + sends_to()[slot], lowest_bit(left)) = pair;
  }
  /// This part's errors flip the check an odd number of times. (The part that has the bit of the syndrome counts it.)
  CUDAQ_QEC_HOST_DEVICE void flip_cut(std::uint32_t parity, std::uint32_t cut) const {
    const std::uint32_t number = cuts()[cut].number;
    for (std::uint32_t part = 0; part < job_.parts; ++part)
      group_.flip_bits(*group_.of_part(cut_open(parity) + number / kWarpLanes, part), 1u << number % kWarpLanes);
  }
  /// A check that only this part has does not fit.
  CUDAQ_QEC_HOST_DEVICE void open(std::uint32_t parity) const {
    for (std::uint32_t part = 0; part < job_.parts; ++part)
      group_.set_bits(*group_.of_part(&m_.progress->open[parity], part), 1);
  }
  CUDAQ_QEC_HOST_DEVICE bool fits(std::uint32_t parity) const {
    return !group_.any_word(cut_open(parity), job_.num_cut_words()) && m_.progress->open[parity] == 0;
  }
  CUDAQ_QEC_HOST_DEVICE relay_pair merged(std::uint32_t parity, std::uint32_t cut) const {
    const relay_cut where = cuts()[cut];
    const relay_pair *const theirs = pairs(parity) + where.first_slot;
    relay_pair all = m_.own_pairs[cut];
    for (std::uint32_t k = 0; k < where.num_others; ++k)
      all = merge(all, theirs[k]);
    return all;
  }
  CUDAQ_QEC_HOST_DEVICE void clear(std::uint32_t parity) const {
    for (std::uint32_t w = group_.thread(); w < job_.num_cut_words(); w += group_.threads())
      cut_open(parity)[w] = 0;
    if (group_.thread() == 0)
      m_.progress->open[parity] = 0;
  }

private:
  CUDAQ_QEC_HOST_DEVICE const relay_cut *cuts() const {
    if constexpr (memory::kHasAll)
      return m_.cuts;
    else
      return job_.cuts;
  }
  CUDAQ_QEC_HOST_DEVICE const std::uint16_t *sends_to() const {
    if constexpr (memory::kHasAll)
      return m_.sends_to;
    else
      return job_.sends_to;
  }
  CUDAQ_QEC_HOST_DEVICE std::uint32_t *cut_open(std::uint32_t parity) const {
    return m_.cut_open + parity * job_.num_cut_words();
  }
  CUDAQ_QEC_HOST_DEVICE relay_pair *pairs(std::uint32_t parity) const { return m_.pairs + parity * job_.max_slots; }

  const Group &group_;
  const relay_job &job_;
  const memory &m_;
};

} // namespace cudaq::qec::realtime::gpu

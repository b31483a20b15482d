// SPDX-License-Identifier: Apache-2.0
// The predecoder for one block of threads. It reads a request's frame and writes the output that the decode stage reads
// (predecoder_output.h), with the same bytes as the predecoder on the CPU. The code uses its threads through a Group
// only, so a test can run it on a CPU.
//
//   1  frame -> fired words, checked                    a word per thread and step
//   2  fired words -> list of events                    counted, summed over the group, listed
//   3  each event decided by local_rule.h               an event per thread and step
//   4  residual words -> dense form, list -> sparse     events ascend, since a thread's words are neighbours
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include "lib/qec/decoding/local_rule.h"
#include "lib/qec/decoding/predecoder_output.h"

namespace cudaq::qec::realtime::gpu {

/// Input of a worker's predecoder. A kernel argument, so it is fixed in the graph. Addresses are device addresses.
struct predecode_job {
  predecoder_layout layout;
  detector_graph_view graph; ///< of the local rule; edge_first null: passthrough, everything is residual
  local_rule rule = local_rule::isolated;
  std::uint8_t *output = nullptr;      ///< layout.bytes(), 16-byte aligned
  std::uint32_t readable = UINT32_MAX; ///< payload bytes that the frame's memory has; longer requests are refused
};

/// Events that a group lists in its own memory. If there are more, it searches the words for them, which is slower.
inline constexpr std::uint32_t kListedEvents = 4096;

/// The pointers of a group's own memory into one block.
struct predecode_scratch {
  std::uint64_t *fired, *residual, *frame;
  std::uint32_t *matched, *list;

  CUDAQ_QEC_HOST_DEVICE static constexpr std::size_t words_bytes(const predecoder_layout &l) {
    return (2 * l.dense_words() + l.frame_words() + 1) * sizeof(std::uint64_t);
  }
  CUDAQ_QEC_HOST_DEVICE static constexpr std::size_t bytes(const predecoder_layout &l) {
    return words_bytes(l) + kListedEvents * sizeof(std::uint32_t);
  }
  CUDAQ_QEC_HOST_DEVICE predecode_scratch(std::uint64_t *block, const predecoder_layout &l)
      : fired(block), residual(fired + l.dense_words()), frame(residual + l.dense_words()),
        matched(reinterpret_cast<std::uint32_t *>(frame + l.frame_words())), list(matched + 2) {}
};

namespace detail {

CUDAQ_QEC_HOST_DEVICE inline std::uint32_t count_bits(std::uint64_t word) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__popcll(word));
#else
  return static_cast<std::uint32_t>(__builtin_popcountll(word));
#endif
}
CUDAQ_QEC_HOST_DEVICE inline std::uint32_t lowest_bit(std::uint64_t word) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__ffsll(static_cast<long long>(word))) - 1;
#else
  return static_cast<std::uint32_t>(__builtin_ctzll(word));
#endif
}
CUDAQ_QEC_HOST_DEVICE inline std::uint64_t low_bits(std::uint32_t n) {
  return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
}

/// The words of one thread. Threads in ascending order have words in ascending order.
struct word_range {
  std::uint32_t first, last;
};
template <class Group>
CUDAQ_QEC_HOST_DEVICE word_range words_of(const Group &group, std::uint32_t words) {
  const std::uint32_t each = (words + group.threads() - 1) / group.threads();
  const std::uint32_t first = group.thread() * each < words ? group.thread() * each : words;
  return {first, first + each < words ? first + each : words};
}

/// Writes the ascending indices of the set bits to `list`, if there are at most `room` of them. Returns their number.
template <class Group>
CUDAQ_QEC_HOST_DEVICE std::uint32_t list_bits(const Group &group, const std::uint64_t *words, std::uint32_t num_words,
                                              std::uint32_t *list, std::uint32_t room) {
  const word_range mine = words_of(group, num_words);
  std::uint32_t count = 0, total = 0;
  for (std::uint32_t w = mine.first; w < mine.last; ++w)
    count += count_bits(words[w]);
  std::uint32_t at = group.exclusive_sum(count, total);
  if (total <= room)
    for (std::uint32_t w = mine.first; w < mine.last; ++w)
      for (std::uint64_t word = words[w]; word != 0; word &= word - 1)
        list[at++] = w * 64 + lowest_bit(word);
  return total;
}

/// Reads the request. Payload bits beyond the last detector must be zero, as on the CPU.
template <class Group>
CUDAQ_QEC_HOST_DEVICE decode_status load_shot(const Group &group, const predecoder_layout &layout,
                                              std::uint32_t readable, const std::uint64_t *frame,
                                              std::uint64_t *fired) {
  const auto words = static_cast<std::uint32_t>(layout.dense_words());
  const std::uint64_t *const payload = frame + CUDAQ_RPC_HEADER_SIZE / sizeof(std::uint64_t);
  // Loaded together with the header: each round trip to a mapped slot takes a microsecond.
  const std::uint64_t early = group.thread() < words ? payload[group.thread()] : 0;
  const auto arg_len = static_cast<std::uint32_t>(frame[1]);
  if (arg_len < layout.input_bytes())
    return decode_status::buffer_too_small;
  if (arg_len > readable)
    return decode_status::bad_detector_index;
  bool bad = false;
  for (std::uint32_t w = group.thread(); w < (arg_len + 7) / 8; w += group.threads()) {
    const bool known = w == group.thread() && w < words;
    const std::uint64_t word = (known ? early : payload[w]) & low_bits(8 * (arg_len - 8 * w));
    const std::uint64_t legal = w < words ? low_bits(layout.num_detectors - 64 * w) : 0;
    bad = bad || (word & ~legal) != 0;
    if (w < words)
      fired[w] = word;
  }
  return group.any(bad) ? decode_status::bad_detector_index : decode_status::ok;
}

template <class Group>
CUDAQ_QEC_HOST_DEVICE void decide(const Group &group, const predecode_job &job, const predecode_scratch &s,
                                  std::uint32_t detector) {
  const local_decision said = decide_locally(job.graph, s.fired, detector, job.rule);
  if (said.matched)
    group.clear_bits(reinterpret_cast<std::uint32_t *>(s.residual)[detector / 32], 1u << detector % 32);
  if (!said.toggles)
    return;
  group.add(*s.matched, 1);
  for (std::uint32_t i = job.graph.list_first[said.observables]; i < job.graph.list_first[said.observables + 1]; ++i) {
    const std::uint32_t observable = job.graph.lists[i];
    group.flip_bits(reinterpret_cast<std::uint32_t *>(s.frame)[observable / 32], 1u << observable % 32);
  }
}

} // namespace detail

/// Called by all threads of the group. frame: the request with its header, 8-byte aligned; at least 24 bytes and the
/// words of one shot are readable. The output is complete when every thread has returned.
template <class Group>
CUDAQ_QEC_HOST_DEVICE void predecode(const Group &group, const predecode_job &job, const std::uint64_t *frame,
                                     std::uint64_t *block) {
  const predecoder_layout layout = job.layout;
  const predecode_scratch s(block, layout);
  const auto words = static_cast<std::uint32_t>(layout.dense_words());
  const auto frame_words = static_cast<std::uint32_t>(layout.frame_words());
  auto *const header = reinterpret_cast<predecoder_header *>(job.output);
  const decode_status status = detail::load_shot(group, layout, job.readable, frame, s.fired);
  if (status != decode_status::ok) {
    if (group.thread() == 0)
      *header = {static_cast<std::int32_t>(status), 0, 0, 0};
    return;
  }
  for (std::uint32_t w = group.thread(); w < frame_words; w += group.threads())
    s.frame[w] = 0;
  if (group.thread() == 0)
    *s.matched = 0;
  group.sync();
  for (std::uint32_t w = group.thread(); w < words; w += group.threads())
    s.residual[w] = s.fired[w];
  const std::uint32_t input = detail::list_bits(group, s.fired, words, s.list, kListedEvents);
  group.sync();
  std::uint32_t left = input;
  if (job.graph.edge_first != nullptr) {
    if (input <= kListedEvents)
      for (std::uint32_t i = group.thread(); i < input; i += group.threads())
        detail::decide(group, job, s, s.list[i]);
    else
      for (std::uint32_t w = group.thread(); w < words; w += group.threads())
        for (std::uint64_t word = s.fired[w]; word != 0; word &= word - 1)
          detail::decide(group, job, s, w * 64 + detail::lowest_bit(word));
    group.sync();
    left = detail::list_bits(group, s.residual, words, s.list, kListedEvents);
    group.sync();
  }
  auto *const events = reinterpret_cast<std::uint32_t *>(job.output + layout.events_offset());
  if (left <= kListedEvents)
    for (std::uint32_t i = group.thread(); i < left; i += group.threads())
      events[i] = s.list[i];
  else
    detail::list_bits(group, s.residual, words, events, layout.num_detectors);
  auto *const dense = reinterpret_cast<std::uint64_t *>(job.output + layout.dense_offset());
  for (std::uint32_t w = group.thread(); w < words; w += group.threads())
    dense[w] = s.residual[w];
  auto *const toggled = reinterpret_cast<std::uint64_t *>(job.output + layout.frame_offset());
  for (std::uint32_t w = group.thread(); w < frame_words; w += group.threads())
    toggled[w] = s.frame[w];
  if (group.thread() == 0)
    *header = {0, left, input, *s.matched};
}

} // namespace cudaq::qec::realtime::gpu

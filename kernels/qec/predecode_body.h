// SPDX-License-Identifier: Apache-2.0
// The predecoder for one block of threads. It reads a request's frame and writes the output that the decode stage reads
// (predecoder_output.h), with the same bytes as the predecoder on the CPU. The code uses its threads through a Group
// only, so a test can run it on a CPU.
//
//   1  frame -> fired words, checked                      a word per thread and step
//   2  fired words -> list of events, ascending           a half word per thread and step
//   3  which neighbours of each event have fired          an event per team and step
//   4  each event decided, from results of step 3         an event per thread and step
//   5  residual words -> dense form, list -> sparse       as step 2
//
// On a device a load of the graph takes a fraction of a microsecond, and a decision on its own is a chain of ten such
// loads. The steps make the chain short, and do it for all events at a time. A team is part of a warp; on a CPU it is a
// thread.
//
// Group: thread(), threads(), sync(), any(bool), sum_before, team(), clear_bits, flip_bits, add.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include "lib/qec/decoding/local_rule.h"
#include "lib/qec/decoding/predecoder_output.h"

namespace cudaq::qec::realtime::gpu {

/// Input of a worker's predecoder. A kernel argument, so it is fixed in the graph. Addresses are device addresses.
struct predecode_job {
  predecoder_layout layout;
  detector_graph_view graph;           ///< of the local rule; edge_first null: passthrough, everything is residual
  std::uint32_t readable = UINT32_MAX; ///< payload bytes that the frame's memory has; longer requests are refused
};

/// Events that a group lists in its own memory. If there are more, each is searched for in the words and decided on its
/// own, which is slower.
inline constexpr std::uint32_t kListedEvents = 2048;

/// What step 3 finds about an event.
struct event_facts {
  static constexpr std::uint32_t kNone = UINT32_MAX, kMany = UINT32_MAX - 1; ///< no fired neighbour, more than one
  graph_edge edge; ///< `neighbour`: the only fired neighbour, kNone or kMany
};

/// The pointers of a group's own memory into one block.
struct predecode_scratch {
  std::uint64_t *fired, *residual, *frame;
  std::uint32_t *matched; ///< number of matched edges; its memory is a whole word
  std::uint32_t *before;  ///< per half word of `fired`: number of events in the half words before it
  std::uint32_t *list;
  event_facts *facts; ///< per event of `list`

  CUDAQ_QEC_HOST_DEVICE static constexpr std::size_t bytes(const predecoder_layout &l) {
    const std::size_t words = 2 * l.dense_words() + l.frame_words() + 1; // fired, residual, frame; matched
    return words * sizeof(std::uint64_t) + l.dense_words() * 2 * sizeof(std::uint32_t) +
           kListedEvents * (sizeof(std::uint32_t) + sizeof(event_facts));
  }
  CUDAQ_QEC_HOST_DEVICE predecode_scratch(std::uint64_t *block, const predecoder_layout &l)
      : fired(block), residual(fired + l.dense_words()), frame(residual + l.dense_words()),
        matched(reinterpret_cast<std::uint32_t *>(frame + l.frame_words())), before(matched + 2),
        list(before + 2 * l.dense_words()), facts(reinterpret_cast<event_facts *>(list + kListedEvents)) {}
};

/// The threads of a group in teams: the number of one's own team, how many there are, and the lanes of a team.
template <class Lanes>
struct group_team {
  std::uint32_t number, teams;
  Lanes together;
};

namespace detail {

using namespace cudaq::qec::realtime::detail;

CUDAQ_QEC_HOST_DEVICE inline std::uint32_t count_bits(std::uint32_t word) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__popc(word));
#else
  return static_cast<std::uint32_t>(__builtin_popcount(word));
#endif
}
CUDAQ_QEC_HOST_DEVICE inline std::uint32_t bits_below(std::uint32_t word, std::uint32_t bit) {
  return count_bits(word & ((1u << bit) - 1));
}
CUDAQ_QEC_HOST_DEVICE inline std::uint64_t low_bits(std::uint32_t n) {
  return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
}

/// Half words of 64-bit words, lowest first.
CUDAQ_QEC_HOST_DEVICE inline const std::uint32_t *halves(const std::uint64_t *words) {
  return reinterpret_cast<const std::uint32_t *>(words);
}
CUDAQ_QEC_HOST_DEVICE inline std::uint32_t *halves(std::uint64_t *words) {
  return reinterpret_cast<std::uint32_t *>(words);
}

/// Writes the ascending indices of the set bits to `list`, and the number of set bits before each half word to
/// `before`, if it is not null. Returns the number of set bits; if that is more than `room`, the list is useless. All
/// threads call it.
template <class Group>
CUDAQ_QEC_HOST_DEVICE std::uint32_t list_bits(const Group &group, const std::uint64_t *words, std::uint32_t num_words,
                                              std::uint32_t *list, std::uint32_t room, std::uint32_t *before) {
  const std::uint32_t *const half = halves(words);
  const std::uint32_t count = 2 * num_words;
  std::uint32_t total = 0;
  for (std::uint32_t first = 0; first < count; first += group.threads()) {
    if (first != 0)
      group.sync(); // sum_before uses its memory again
    const std::uint32_t h = first + group.thread();
    const std::uint32_t word = h < count ? half[h] : 0;
    std::uint32_t sum = 0;
    std::uint32_t at = total + group.sum_before(count_bits(word), count - first, sum);
    total += sum;
    if (h < count && before != nullptr)
      before[h] = at;
    for (std::uint32_t left = word; left != 0 && at < room; left &= left - 1)
      list[at++] = 32 * h + lowest_lane(left);
  }
  return total;
}

/// Reads a payload of `size` bytes, in whole words. Bits beyond the last detector must be zero, as on the CPU.
/// own_word: the thread's, read before, if it has one.
template <class Group>
CUDAQ_QEC_HOST_DEVICE decode_status load_payload(const Group &group, const predecoder_layout &layout,
                                                 std::uint32_t readable, const std::uint64_t *payload,
                                                 std::uint32_t size, std::uint64_t own_word, std::uint64_t *fired) {
  const auto words = static_cast<std::uint32_t>(layout.dense_words());
  if (size < layout.input_bytes())
    return decode_status::buffer_too_small;
  if (size > readable)
    return decode_status::bad_detector_index;
  bool bad = false;
  for (std::uint32_t w = group.thread(); w < (size + 7) / 8; w += group.threads()) {
    const bool known = w == group.thread() && w < words;
    const std::uint64_t word = (known ? own_word : payload[w]) & low_bits(8 * (size - 8 * w));
    const std::uint64_t legal = w < words ? low_bits(layout.num_detectors - 64 * w) : 0;
    bad = bad || (word & ~legal) != 0;
    if (w < words)
      fired[w] = word;
  }
  return group.any(bad) ? decode_status::bad_detector_index : decode_status::ok;
}

/// The same with the payload of a frame.
template <class Group>
CUDAQ_QEC_HOST_DEVICE decode_status load_shot(const Group &group, const predecoder_layout &layout,
                                              std::uint32_t readable, const std::uint64_t *frame,
                                              std::uint64_t *fired) {
  const std::uint64_t *const payload = frame + CUDAQ_RPC_HEADER_SIZE / sizeof(std::uint64_t);
  // Loaded together with the header: each round trip to a mapped slot takes a microsecond.
  const std::uint64_t own_word = group.thread() < layout.dense_words() ? payload[group.thread()] : 0;
  return load_payload(group, layout, readable, payload, static_cast<std::uint32_t>(frame[1]), own_word, fired);
}

template <class Group>
CUDAQ_QEC_HOST_DEVICE void apply(const Group &group, const predecode_job &job, const predecode_scratch &s,
                                 std::uint32_t detector, const local_decision &decision) {
  if (decision.matched)
    group.clear_bits(halves(s.residual)[detector / 32], 1u << detector % 32);
  if (!decision.toggles)
    return;
  group.add(*s.matched, 1);
  for (std::uint32_t i = job.graph.list_first[decision.observables]; i < job.graph.list_first[decision.observables + 1];
       ++i) {
    const std::uint32_t observable = job.graph.lists[i];
    group.flip_bits(halves(s.frame)[observable / 32], 1u << observable % 32);
  }
}

/// The number of an event in the list.
CUDAQ_QEC_HOST_DEVICE inline std::uint32_t place_of(const predecode_scratch &s, std::uint32_t detector) {
  return s.before[detector / 32] + bits_below(halves(s.fired)[detector / 32], detector % 32);
}

/// Step 3.
template <class Group>
CUDAQ_QEC_HOST_DEVICE void find_neighbours(const Group &group, const predecode_job &job, const predecode_scratch &s,
                                           std::uint32_t events) {
  const auto team = group.team();
  for (std::uint32_t first = 0; first < events; first += team.teams) {
    const std::uint32_t i = first + team.number;
    const only_neighbour mine =
        only_fired_neighbour(job.graph, s.fired, i < events ? s.list[i] : kNoDetector, team.together);
    if (team.together.lane() != 0 || i >= events)
      continue;
    event_facts found{{event_facts::kNone, 0}};
    if (mine.how == only_neighbour::many)
      found.edge.neighbour = event_facts::kMany;
    if (mine.how == only_neighbour::one)
      found.edge = job.graph.edges[mine.edge];
    s.facts[i] = found;
  }
}

/// True if an event has one fired neighbour, which has no other.
CUDAQ_QEC_HOST_DEVICE inline bool is_mutual(const predecode_scratch &s, const event_facts &mine) {
  return mine.edge.neighbour < event_facts::kMany &&
         s.facts[place_of(s, mine.edge.neighbour)].edge.neighbour < event_facts::kMany;
}

/// Steps 3 and 4. The list is complete.
template <class Group>
CUDAQ_QEC_HOST_DEVICE void decide_listed(const Group &group, const predecode_job &job, const predecode_scratch &s,
                                         std::uint32_t events) {
  find_neighbours(group, job, s, events);
  group.sync();
  for (std::uint32_t i = group.thread(); i < events; i += group.threads()) {
    const event_facts mine = s.facts[i];
    const only_neighbour::kind how = mine.edge.neighbour == event_facts::kNone   ? only_neighbour::none
                                     : mine.edge.neighbour == event_facts::kMany ? only_neighbour::many
                                                                                 : only_neighbour::one;
    apply(group, job, s, s.list[i], decide(job.graph, s.fired, s.list[i], how, mine.edge, is_mutual(s, mine)));
  }
}

/// The same for events that do not fit into the list.
template <class Group>
CUDAQ_QEC_HOST_DEVICE void decide_in_words(const Group &group, const predecode_job &job, const predecode_scratch &s) {
  for (std::uint32_t h = group.thread(); h < 2 * job.layout.dense_words(); h += group.threads())
    for (std::uint32_t left = halves(s.fired)[h]; left != 0; left &= left - 1) {
      const std::uint32_t detector = 32 * h + lowest_lane(left);
      apply(group, job, s, detector, decide_locally(job.graph, s.fired, detector));
    }
}

} // namespace detail

/// Called by all threads of the group. frame: the request with its header, 8-byte aligned; at least 24 bytes and the
/// words of one shot are readable. output: job.layout.bytes(), 16-byte aligned; complete when every thread has
/// returned.
template <class Group>
CUDAQ_QEC_HOST_DEVICE void predecode(const Group &group, const predecode_job &job, const std::uint64_t *frame,
                                     std::uint8_t *output, std::uint64_t *block) {
  const predecoder_layout layout = job.layout;
  const predecode_scratch s(block, layout);
  const auto words = static_cast<std::uint32_t>(layout.dense_words());
  const auto frame_words = static_cast<std::uint32_t>(layout.frame_words());
  auto *const header = reinterpret_cast<predecoder_header *>(output);
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
  const std::uint32_t input = detail::list_bits(group, s.fired, words, s.list, kListedEvents, s.before);
  group.sync();
  auto *const events = reinterpret_cast<std::uint32_t *>(output + layout.events_offset());
  if (job.graph.edge_first != nullptr) {
    if (input <= kListedEvents)
      detail::decide_listed(group, job, s, input);
    else
      detail::decide_in_words(group, job, s);
    group.sync();
  }
  const std::uint32_t left = detail::list_bits(group, s.residual, words, events, layout.num_detectors, nullptr);
  auto *const dense = reinterpret_cast<std::uint64_t *>(output + layout.dense_offset());
  for (std::uint32_t w = group.thread(); w < words; w += group.threads())
    dense[w] = s.residual[w];
  auto *const toggled = reinterpret_cast<std::uint64_t *>(output + layout.frame_offset());
  for (std::uint32_t w = group.thread(); w < frame_words; w += group.threads())
    toggled[w] = s.frame[w];
  if (group.thread() == 0)
    *header = {0, left, input, *s.matched};
}

} // namespace cudaq::qec::realtime::gpu

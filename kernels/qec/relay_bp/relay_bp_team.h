// SPDX-License-Identifier: Apache-2.0
// The chains of an ensemble, a block or a cluster of blocks each, and how they take and end a shot. Block 0 reads the
// request and writes the answer; the other blocks wait for shots in device memory. One shot:
//
//   block 0       the syndrome, limit = all, then shot = n
//   other blocks  see shot = n, copy the syndrome of their part
//   every block   runs its chain, and writes its part of the solution; that of rank 0 writes the record; ended + 1
//   block 0       waits for the end that the mode needs, writes the answer
//
// A chain looks at `limit` in each iteration. Who makes it smaller: block 0 for a deadline, a cancelled request or the
// end of the kernel (0); the first chain that ends in mode first (0), and each that ends in mode in_step (its steps).
//
// Group, besides what relay_bp_body.h needs: now_ns(), a clock of all blocks, and idle(), which a thread calls while it
// waits for another block.
#pragma once

#include "kernels/qec/relay_bp/relay_bp_body.h"

#include "cudaq/qec/realtime/resident_mailbox.cuh"

namespace cudaq::qec::realtime::gpu {

namespace detail {

namespace words = cudaq::realtime::detail;

template <class T>
CUDAQ_QEC_HOST_DEVICE T load_of_device(const T &word) {
  return words::load_acquire<T, words::thread_scope_device>(word);
}
template <class T>
CUDAQ_QEC_HOST_DEVICE void store_of_device(T &word, T value) {
  words::store_release<T, words::thread_scope_device>(word, value);
}

CUDAQ_QEC_HOST_DEVICE inline relay_record *record_of(const relay_job &job, std::uint32_t chain) {
  return reinterpret_cast<relay_record *>(job.records + chain * job.record_bytes());
}

/// Called by all threads of the blocks of a chain after it.
template <class Group>
CUDAQ_QEC_HOST_DEVICE void report_end(const Group &group, const relay_job &job, const relay_progress &now) {
  group.arrive();
  group.wait(); // the solution is written
  if (group.thread() != 0 || group.rank() != 0)
    return;
  const relay_record end = now.record;
  relay_team &team = *job.team;
  *record_of(job, end.chain) = end;
  const bool offers = end.found != 0 && end.stopped == 0;
  // A key is a number of steps or a weight, then the number of the chain.
  const std::uint64_t by_weight = end.weight * kMaxRelayChains + end.chain;
  if (offers && job.mode == ensemble_mode::in_step) {
    words::lower_device_word(team.best, end.steps * kMaxRelayChains + end.chain);
    words::lower_device_word(team.limit, end.steps);
  } else if (offers) {
    words::lower_device_word(team.best, by_weight);
  } else if (end.found != 0) {
    words::lower_device_word(team.so_far, by_weight);
  }
  if (end.stopped != 0)
    words::arrive(team.stopped);
  if (offers && job.mode == ensemble_mode::first &&
      words::claim_word<std::uint32_t, words::thread_scope_device>(team.winner, 0, end.chain + 1)) {
    store_of_device(team.ready, end.chain + 1);
    words::lower_device_word(team.limit, 0);
  }
  words::arrive(team.ended);
}

/// The chain with the best offer, after all chains have ended. Without an offer: that with the lightest solution so
/// far, else chain 0.
CUDAQ_QEC_HOST_DEVICE inline std::uint32_t best_chain(const relay_team &team) {
  std::uint64_t key = load_of_device(team.best);
  if (key == relay_team::kNoChain)
    key = load_of_device(team.so_far);
  return key == relay_team::kNoChain ? 0 : static_cast<std::uint32_t>(key % kMaxRelayChains);
}

} // namespace detail

/// The request that block 0 works on, for the thread that watches for its end.
template <class Group>
class relay_watch {
public:
  CUDAQ_QEC_HOST_DEVICE relay_watch(const Group &group, const relay_job &job, volatile std::uint64_t &end_word,
                                    relay_progress &progress)
      : group_(group), job_(job), end_word_(end_word), now_(progress) {}

  struct seen {
    std::uint64_t limit, end_word;
    std::uint32_t cancel;
  };
  CUDAQ_QEC_HOST_DEVICE static seen nothing() { return {UINT64_MAX, 0, 0}; }
  CUDAQ_QEC_HOST_DEVICE seen poll() const {
    return {detail::words::load_relaxed(job_.team->limit), detail::words::load_relaxed(end_word_),
            detail::words::load_relaxed(*job_.cancel)};
  }
  /// The limit of the chain. Stops all chains if the request is cancelled or its time has passed.
  CUDAQ_QEC_HOST_DEVICE std::uint64_t limit(const seen &found) const {
    if (found.cancel == now_.request.number || found.end_word != 0)
      return stop(relay_status::cancelled);
    if (now_.request.budget_ns != UINT64_MAX && group_.now_ns() - now_.begin_ns >= now_.request.budget_ns)
      return stop(relay_status::deadline);
    return found.limit;
  }

private:
  CUDAQ_QEC_HOST_DEVICE std::uint64_t stop(relay_status why) const {
    now_.reason = why;
    detail::words::lower_device_word(job_.team->limit, 0);
    return 0;
  }

  const Group &group_;
  const relay_job &job_;
  volatile std::uint64_t &end_word_;
  relay_progress &now_;
};

/// The same for the other blocks, which see only the limit.
struct relay_limit {
  const relay_job &job;
  using seen = std::uint64_t;
  CUDAQ_QEC_HOST_DEVICE static seen nothing() { return UINT64_MAX; }
  CUDAQ_QEC_HOST_DEVICE seen poll() const { return detail::words::load_relaxed(job.team->limit); }
  CUDAQ_QEC_HOST_DEVICE std::uint64_t limit(seen now) const { return now; }
};

/// Block 0 in one request. All threads call it.
template <class Chain, class Memory, class Group>
CUDAQ_QEC_HOST_DEVICE void lead_shot(const Group &group, const relay_job &job, const Memory &memory, Chain &chain,
                                     volatile std::uint64_t &end_word, const resident_request &call) {
  constexpr std::uint32_t kHeaderBytes = 24;
  relay_team &team = *job.team;
  relay_progress &now = *memory.progress;
  const bool leads = group.thread() == 0, polls = group.thread() == group.threads() - 1;
  const auto &request = *reinterpret_cast<const relay_request *>(call.frame + kHeaderBytes);
  const auto *const syndrome = reinterpret_cast<const std::uint32_t *>(&request + 1);
  const std::uint64_t shot = team.shot; // only this block writes it
  const auto ends_before = static_cast<std::uint32_t>(shot * job.chains);
  // Chains that lost the shot before end within an iteration.
  while (leads && detail::load_of_device(team.ended) != ends_before)
    group.idle();
  if (leads) {
    now.request = request;
    now.begin_ns = group.now_ns();
    now.reason = relay_status::complete;
    // Relaxed: a release each would wait for the store before it. The acquire of `ended` above orders these stores
    // after all accesses of the shot before. This thread's release of `shot` publishes them: a chain of another block
    // accesses the words after its thread 0 has acquired `shot`, and a barrier; this block after the barriers below.
    detail::words::store_relaxed(team.limit, UINT64_MAX);
    detail::words::store_relaxed(team.winner, std::uint32_t{0});
    detail::words::store_relaxed(team.ready, std::uint32_t{0});
    detail::words::store_relaxed(team.stopped, std::uint32_t{0});
    detail::words::store_relaxed(team.best, relay_team::kNoChain);
    detail::words::store_relaxed(team.so_far, relay_team::kNoChain);
  }
  group.sync();
  for (std::uint32_t w = group.thread(); w < job.total_words; w += group.threads()) {
    job.syndrome[w] = syndrome[w];
    if (w < job.num_words())
      memory.syndrome[w] = syndrome[w];
  }
  group.sync();
  if (leads)
    detail::store_of_device(team.shot, shot + 1);
  const relay_watch<Group> watch(group, job, end_word, now);
  chain.run(watch);
  detail::report_end(group, job, now);
  if (polls) {
    for (;;) {
      // In this order: a chain sets `ready` before it counts its end.
      const bool all_ended = detail::load_of_device(team.ended) == ends_before + job.chains;
      const std::uint32_t ready = detail::load_of_device(team.ready);
      if (ready != 0 || all_ended) {
        now.chosen = ready != 0 ? ready - 1 : detail::best_chain(team);
        if (ready != 0 || detail::load_of_device(team.stopped) == 0) // a deadline that stopped nothing
          now.reason = relay_status::complete;
        break;
      }
      static_cast<void>(watch.limit(watch.poll()));
      group.idle();
    }
  }
  group.sync();
  const relay_record *const best = detail::record_of(job, now.chosen);
  auto *const answer = reinterpret_cast<relay_record *>(call.output);
  const auto *const solution = reinterpret_cast<const std::uint32_t *>(best + 1);
  for (std::uint32_t g = group.thread(); g < job.total_column_groups; g += group.threads())
    reinterpret_cast<std::uint32_t *>(answer + 1)[g] = solution[g];
  if (leads) {
    *answer = *best;
    answer->status = now.reason;
  }
}

/// The life of block 0. `chain` is its chain. All threads call it.
template <class Group, class Memory, class Chain>
CUDAQ_QEC_HOST_DEVICE void lead(const Group &group, const resident_mailboxes &boxes, const relay_job &job,
                                const Memory &memory, Chain &chain) {
  volatile std::uint64_t &end_word = boxes.flags[boxes.workers];
  bool ends = false;
  if (group.thread() == 0)
    while (detail::load_of_device(job.team->begun) != job.chains * job.parts - 1 && !ends) {
      ends = detail::words::load_acquire(end_word) != 0;
      group.idle();
    }
  if (!group.any(ends))
    serve_mailbox(group, boxes, 0,
                  [&](const resident_request &call) { lead_shot(group, job, memory, chain, end_word, call); });
  if (group.thread() == 0)
    detail::store_of_device(job.team->shot, relay_team::kNoMoreShots);
}

/// The life of another block.
template <class Group, class Memory, class Chain>
CUDAQ_QEC_HOST_DEVICE void follow(const Group &group, const relay_job &job, const Memory &memory, Chain &chain) {
  relay_team &team = *job.team;
  relay_progress &now = *memory.progress;
  const bool leads = group.thread() == 0;
  if (leads)
    detail::words::arrive(team.begun);
  for (std::uint64_t done = 0;;) {
    if (leads) {
      std::uint64_t shot = done;
      while ((shot = detail::load_of_device(team.shot)) == done)
        group.idle();
      now.shot = shot;
    }
    group.sync();
    if (now.shot == relay_team::kNoMoreShots)
      return;
    done = now.shot;
    for (std::uint32_t w = group.thread(); w < job.num_words(); w += group.threads())
      memory.syndrome[w] = job.syndrome[w];
    group.sync();
    chain.run(relay_limit{job});
    detail::report_end(group, job, now);
  }
}

} // namespace cudaq::qec::realtime::gpu

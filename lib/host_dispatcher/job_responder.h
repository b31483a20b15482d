// SPDX-License-Identifier: Apache-2.0
// Answers jobs that have a record: those of a pool, of a shared ring, of graphs, and all jobs of a dispatcher whose
// handlers may defer. The job's phase (lib/shared_ring/job_table.h) decides which thread may publish. That thread calls
// these functions.
#pragma once

#include "lib/host_dispatcher/handler_table.h"
#include "lib/host_dispatcher/handler_times.h"

namespace cudaq::realtime::detail {

class job_responder {
public:
  /// for_completions: counters that any thread may add to.
  job_responder(const handler_table &handlers, const handler_times &times, thread_counters &for_completions)
      : handlers_(handlers), times_(times), completion_counters_(for_completions) {}
  /// Before a run. markers: the tx flag holds IN_FLIGHT while a request is in flight.
  void prepare(bool markers) { markers_ = markers; }
  bool markers() const { return markers_; }

  /// The handler, or the launch, of a job in phase running has returned `response`. For the thread that ran it.
  void handler_returned(job_table &jobs, std::uint32_t slot, std::uint64_t generation, handler_result response,
                        thread_counters &here) const;
  /// Answers a job from any thread. False: the slot has another job, or this job was answered already.
  bool complete(job_table &jobs, std::uint32_t slot, std::uint64_t generation, const handler_result &response) const;
  /// Publishes the answer of a job that no other thread may answer: it waits for a thread or a worker, or the calling
  /// thread has claimed it.
  void publish(job_table &jobs, std::uint32_t slot, handler_result response, thread_counters &counts) const;

  /// True if the graph or the caller has set the tx flag of a job in flight. Always false without markers: it cannot be
  /// detected then.
  bool answered_elsewhere(const job_table &jobs, std::uint32_t slot) const {
    return markers_ && jobs.ring.answer(slot) != CUDAQ_TX_FLAG_IN_FLIGHT;
  }
  /// Closes such a job and clears rx if it is still set. Counts status OK: the frame may be collected already, so its
  /// status is not known.
  void close_answered(job_table &jobs, const cudaq_host_job_t &job, thread_counters &counts) const;
  /// The same for a job that the calling thread has claimed.
  void close_claimed(job_table &jobs, std::uint32_t slot, thread_counters &counts) const;

private:
  /// After the answer of a job, before the job is finished: then its record belongs to the next request.
  void record_time(const job_record &record, thread_counters &counts) const {
    if (times_.on() && record.what.what == verdict::serve && record.taken_at != 0)
      times_.record(counts, record.what.route, record.taken_at);
  }

  const handler_table &handlers_;
  const handler_times &times_;
  thread_counters &completion_counters_;
  bool markers_ = true;
};

} // namespace cudaq::realtime::detail

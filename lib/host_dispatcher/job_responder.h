// SPDX-License-Identifier: Apache-2.0
// How jobs are answered that have a record: those of the pool, of a shared ring, of v2 handlers and of graphs. Which
// thread may publish is decided by the job's state (lib/shared_ring/job_table.h); whoever has it comes through here.
#pragma once

#include "lib/host_dispatcher/handler_table.h"

namespace cudaq::realtime::detail {

class job_responder {
public:
  /// for_completions: counters to which any thread may add.
  job_responder(const handler_table &handlers, thread_counters &for_completions)
      : handlers_(handlers), completion_counters_(for_completions) {}
  /// Before a run. markers: IN_FLIGHT stands in the tx flag of a slot whose request is in flight.
  void prepare(bool markers) { markers_ = markers; }
  bool markers() const { return markers_; }

  /// The handler, or the launch, of a job in phase running has returned and said this. By the thread that ran it.
  void handler_returned(job_table &jobs, std::uint32_t slot, std::uint64_t generation, handler_result said,
                        thread_counters &here) const;
  /// An answer from any thread. False: no such job, or it was answered already.
  bool complete(job_table &jobs, std::uint32_t slot, std::uint64_t generation, const handler_result &said) const;
  /// Answers a job that nobody else may answer: one that waits for a thread or a worker, or that the caller has
  /// claimed.
  void publish(job_table &jobs, std::uint32_t slot, handler_result said, thread_counters &counts) const;

  /// The tx flag of a job in flight was raised without the library. Without markers that cannot be known: false.
  bool answered_elsewhere(const job_table &jobs, std::uint32_t slot) const {
    return markers_ && jobs.ring.answer(slot) != CUDAQ_TX_FLAG_IN_FLIGHT;
  }
  /// Closes such a job: frees the slot's request side. The frame may be collected already, so its status is not known.
  void close_answered(job_table &jobs, const cudaq_host_job_t &job, thread_counters &counts) const;

private:
  const handler_table &handlers_;
  thread_counters &completion_counters_;
  bool markers_ = true;
};

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
#include "lib/host_dispatcher/job_responder.h"

namespace cudaq::realtime::detail {

void job_responder::handler_returned(job_table &jobs, std::uint32_t slot, std::uint64_t generation,
                                     handler_result response, thread_counters &here) const {
  job_record &record = jobs[slot];
  // A completion that came while the handler ran wins over the handler's return value, because it was accepted.
  if (record.state.claim(generation, job_phase::running, response.now ? job_phase::completing : job_phase::deferred)) {
    if (!response.now)
      return;
  } else if (record.state.claim(generation, job_phase::storing_completion, job_phase::completer_publishes)) {
    return;
  } else {
    response = record.completion;
  }
  publish(jobs, slot, response, here);
}

bool job_responder::complete(job_table &jobs, std::uint32_t slot, std::uint64_t generation,
                             const handler_result &response) const {
  job_record &record = jobs[slot];
  job_state &state = record.state;
  bool mine = state.claim(generation, job_phase::deferred, job_phase::completing);
  if (!mine && state.claim(generation, job_phase::running, job_phase::storing_completion)) {
    record.completion = response;
    if (state.claim(generation, job_phase::storing_completion, job_phase::completion_stored))
      return true;
    // The claim failed: the handler has returned in the meantime.
    mine = state.claim(generation, job_phase::completer_publishes, job_phase::completing);
  } else if (!mine) { // the handler may have deferred between the two claims
    mine = state.claim(generation, job_phase::deferred, job_phase::completing);
  }
  if (mine)
    publish(jobs, slot, response, completion_counters_);
  return mine;
}

void job_responder::publish(job_table &jobs, std::uint32_t slot, handler_result response,
                            thread_counters &counts) const {
  job_record &record = jobs[slot];
  if (record.what.what == verdict::serve)
    response = handlers_.checked(record.what.route, response);
  counts.count_response(response.status);
  publish_answer(jobs.ring, slot, record.req, response, {record.marked, markers_ ? record.cuda_error : 0});
  record_time(record, counts);
  record.state.finish();
  counts.count(counts.closed);
}

void job_responder::close_answered(job_table &jobs, const cudaq_host_job_t &job, thread_counters &counts) const {
  if (jobs[job.slot].state.claim(job.generation, job_phase::deferred, job_phase::completing))
    close_claimed(jobs, job.slot, counts);
}

void job_responder::close_claimed(job_table &jobs, std::uint32_t slot, thread_counters &counts) const {
  job_record &record = jobs[slot];
  counts.count_response(CUDAQ_RPC_OK);
  if (!record.marked)
    jobs.ring.release_rx(slot);
  record_time(record, counts);
  record.state.finish();
  counts.count(counts.closed);
}

} // namespace cudaq::realtime::detail

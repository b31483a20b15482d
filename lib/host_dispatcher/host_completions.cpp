// SPDX-License-Identifier: Apache-2.0
// Completions of deferred jobs. Any thread of the program may call them at any time.
#include "lib/host_dispatcher/host_dispatcher.h"

namespace cudaq::realtime::detail {

expected<> host_dispatcher::complete_deferred(const cudaq_host_job_t &job, std::int32_t status,
                                              std::uint32_t result_len) {
  const used_jobs::use jobs(jobs_);
  if (!jobs && max_result_len_.peek() == 0)
    return make_reason(CUDAQ_ERR_STATE, "the dispatcher was never started: it has no jobs");
  if (!jobs)
    return make_reason(CUDAQ_ERR_STATE,
                       "the job of request %u in slot %u was completed already: the dispatcher is wired to another "
                       "ring since",
                       job.request_id, job.slot);
  if (job.slot >= jobs->num_slots)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "job->slot is %u; the ring has %u slots", job.slot, jobs->num_slots);
  if (result_len > max_result_len_.peek())
    return make_reason(CUDAQ_ERR_INVALID_ARG, "result_len is %u; a slot holds at most %u result bytes", result_len,
                       max_result_len_.peek());
  if (status == CUDAQ_HOST_CALL_DEFERRED)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "status is CUDAQ_HOST_CALL_DEFERRED: a completion cannot defer; pass the final status");
  // Only these words of the record are read before the claim: the slot may have another request by now.
  const job_record &record = (*jobs)[job.slot];
  const job_state::snapshot seen = record.state.look();
  if (seen.generation == job.generation && record.owner.peek() != this)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "the job of request %u in slot %u belongs to another dispatcher",
                       job.request_id, job.slot);
  if (seen.generation == job.generation && record.library_answers.peek())
    return make_reason(CUDAQ_ERR_STATE,
                       "the job of request %u in slot %u belongs to a graph worker whose completion is not "
                       "CALLER_PUBLISHES: the library completes it",
                       job.request_id, job.slot);
  if (!responder_.complete(*jobs, job.slot, job.generation, {true, status, result_len}))
    return make_reason(CUDAQ_ERR_STATE, "the job of request %u in slot %u was completed already", job.request_id,
                       job.slot);
  return {};
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
#include "lib/host_dispatcher/graph_workers.h"

namespace cudaq::realtime::detail {

void graph_workers::reset(const std::vector<cudaq_host_worker_t> &workers, const function_index_view &index,
                          job_table &jobs, cudaq_busy_workers_t when_busy, std::shared_ptr<graph_launcher> launcher,
                          shared_word<std::uint64_t> *idle_mask) {
  jobs_ = &jobs;
  specs_ = workers;
  launcher_ = std::move(launcher);
  done_words_.clear();
  for (std::uint32_t w = 0; w < size(); ++w)
    done_words_.push_back(&launcher_->done_word(w));
  for (worker_record &r : records_)
    r.end();
  workers_of_route_.assign(index.num_routes, 0);
  queue_of_route_.assign(index.num_routes, 0);
  queues_.clear();
  for (std::uint32_t r = 0; r < index.num_routes; ++r) {
    const function_route &route = index.routes[r];
    if (route.mode != CUDAQ_DISPATCH_GRAPH_LAUNCH)
      continue;
    for (std::uint32_t w = 0; w < size(); ++w)
      if (specs_[w].function_id == route.function_id && specs_[w].routing_key == route.routing_key)
        workers_of_route_[r] |= bit(w);
    const bool same_function = r != 0 && index.routes[r - 1].function_id == route.function_id;
    const bool joins = when_busy == CUDAQ_BUSY_WORKERS_WAIT
                           ? !queues_.empty()
                           : when_busy == CUDAQ_BUSY_WORKERS_PASS_FUNCTION && same_function;
    if (!joins)
      queues_.push_back(std::make_unique<queue>());
    queue_of_route_[r] = static_cast<std::uint32_t>(queues_.size() - 1);
  }
  idle_ = idle_mask != nullptr ? idle_mask : &own_idle_;
  own_idle_.store(size() == kMaxGraphWorkers ? ~std::uint64_t{0} : bit(size()) - 1);
  started_ = pushed_.value();
  running_ = held_by_caller_ = handed_over_ = failed_ = 0;
  first_queue_ = 0;
}

// The queues take turns in having the first choice of an idle worker.
bool graph_workers::next_start(start &out) {
  // A released worker is used again only after collect has handled the release.
  const std::uint64_t idle = idle_->load() & ~(held_by_caller_ | failed_);
  if (idle == 0)
    return false;
  for (std::size_t n = 0; n < queues_.size(); ++n) {
    queue &q = *queues_[first_queue_];
    first_queue_ = first_queue_ + 1 == queues_.size() ? 0 : first_queue_ + 1;
    if (!has_head(q))
      continue;
    const std::uint64_t fit = idle & workers_of_route_[(*jobs_)[q.head].what.route];
    if (fit == 0)
      continue;
    out = {q.head, static_cast<std::uint32_t>(std::countr_zero(fit))};
    q.head = kNone;
    ++started_;
    return true;
  }
  return false;
}

bool graph_workers::next_to_fail(std::uint32_t &slot) {
  for (const auto &q : queues_)
    if (has_head(*q)) {
      slot = q->head;
      q->head = kNone;
      ++started_;
      return true;
    }
  return false;
}

std::uint64_t graph_workers::begin(std::uint32_t worker, const cudaq_host_job_t &job) {
  idle_->clear_bits(bit(worker));
  (specs_[worker].completion == CUDAQ_WORKER_CALLER_PUBLISHES ? held_by_caller_ : running_) |= bit(worker);
  records_[worker].begin(job, ++launches_);
  return launches_;
}

bool graph_workers::hand_over(std::uint32_t worker, std::uint32_t slot) {
  const cudaq_host_worker_t &spec = specs_[worker];
  handed_launch &launch = handed_[worker];
  launch.launcher = launcher_.get();
  launch.worker = worker;
  launch.slot = slot;
  launch.stages = spec.hand_over == CUDAQ_HAND_OVER_HOOK_AND_LAUNCH;
  launch.error.store(handed_launch::kPending);
  handed_over_ |= bit(worker);
  if (spec.hand_over_fn(spec.hand_over_data, &handed_launch::run, &launch) != 0)
    return true;
  handed_over_ &= ~bit(worker);
  return false;
}

void graph_workers::fail(std::uint32_t worker, int error) {
  running_ &= ~bit(worker);
  held_by_caller_ &= ~bit(worker);
  failed_ |= bit(worker);
  errors_[worker] = error;
}

void graph_workers::end(std::uint32_t worker) {
  running_ &= ~bit(worker);
  held_by_caller_ &= ~bit(worker);
  failed_ &= ~bit(worker);
  records_[worker].end();
  idle_->raise_bits(bit(worker));
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// Wiring, start, deferred completions, and the pipeline as text. pipeline_stop.cpp has the stop.
#include "lib/qec/pipeline/pipeline_core.h"

#include "lib/qec/pipeline/graph_engine.h"
#include "lib/qec/pipeline/host_engine.h"
#include "lib/qec/pipeline/pipeline_thread.h"

#include <algorithm>
#include <climits>
#include <sched.h>
#include <stdexcept>
#include <utility>

namespace cudaq::qec::realtime::detail {

using namespace experimental;
using cudaq::realtime::detail::expected;
using cudaq::realtime::detail::loop_thread;
using cudaq::realtime::detail::run_loop;
using cudaq::realtime::detail::steady_clock;
using cudaq::realtime::detail::thread_placement;

namespace {

[[noreturn]] void refused(const char *what) {
  throw std::runtime_error(std::string("pipeline: ") + what + ": " + cudaq_last_error_message());
}
void must(cudaq_status_t status, const char *what) {
  if (status != CUDAQ_OK)
    refused(what);
}

cudaq_wait_policy_t decide_wait(const pipeline_stage_config &c) {
  switch (c.wait) {
  case wait_policy::spin:
    return CUDAQ_WAIT_SPIN;
  case wait_policy::spin_yield:
    return CUDAQ_WAIT_SPIN_YIELD;
  case wait_policy::block:
    return CUDAQ_WAIT_BLOCK;
  case wait_policy::automatic:
    break;
  }
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  const bool known = sched_getaffinity(0, sizeof(cpus), &cpus) == 0;
  // Besides the workers: dispatcher, consumer and one producer.
  return known && CPU_COUNT(&cpus) >= c.num_workers + 3 ? CUDAQ_WAIT_SPIN : CUDAQ_WAIT_SPIN_YIELD;
}

void start_thread(loop_thread &thread, const std::string &name, int core, std::function<void()> body) {
  thread_placement placement;
  placement.core = core < 0 ? CUDAQ_CORE_ANY : core;
  if (const expected<> result = thread.start(name, placement, std::move(body)); result.failed())
    throw std::runtime_error("pipeline: start: thread " + name + ": " + result.text());
}

} // namespace

pipeline_core::pipeline_core(const pipeline_stage_config &config)
    : config_(config), ring_(config), wait_(decide_wait(config)), completions_(ring_), responder_(ring_, completions_) {
  try {
    create_dispatcher();
  } catch (...) {
    if (dispatcher_ != nullptr)
      cudaq_dispatcher_destroy(dispatcher_);
    if (manager_ != nullptr)
      cudaq_dispatch_manager_destroy(manager_);
    throw;
  }
}

pipeline_core::~pipeline_core() {
  cudaq_dispatcher_destroy(dispatcher_);
  cudaq_dispatch_manager_destroy(manager_);
}

void pipeline_core::create_dispatcher() {
  cudaq_dispatcher_config_t c{};
  c.num_slots = ring_.num_slots();
  c.slot_size = static_cast<std::uint32_t>(config_.slot_size);
  c.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  c.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  c.device_id = config_.device_id;
  must(cudaq_dispatch_manager_create(&manager_), "manager");
  must(cudaq_dispatcher_create(manager_, &c, &dispatcher_), "dispatcher");
  const cudaq_status_t bound = cudaq_dispatcher_set_ringbuffer(dispatcher_, &ring_.ring());
  if (bound == CUDAQ_ERR_INVALID_ARG)
    throw std::invalid_argument(std::string("pipeline: external_ringbuffer or ring: ") + cudaq_last_error_message());
  must(bound, "ring");
  must(cudaq_dispatcher_set_control(dispatcher_, &shutdown_, &processed_), "control words");
  responder_.set_dispatcher(dispatcher_);
  completions_.set_dispatcher(dispatcher_);
}

void pipeline_core::require_configurable(const char *call) const {
  const std::lock_guard<std::mutex> lock(shape_);
  if (state_ == run_state::starting || state_ == run_state::running || state_ == run_state::stuck)
    throw std::logic_error(std::string("pipeline: ") + call +
                           ": the pipeline runs or a thread is stuck; call stop first");
}

void pipeline_core::set_gpu_stage(gpu_stage_factory factory) {
  require_configurable("set_gpu_stage");
  factory_ = std::move(factory);
}
void pipeline_core::set_cpu_stage(cpu_stage_callback callback) {
  require_configurable("set_cpu_stage");
  cpu_stage_ = std::move(callback);
}
void pipeline_core::set_completion_handler(completion_callback handler) {
  require_configurable("set_completion_handler");
  handler_ = std::move(handler);
}

std::vector<gpu_worker_resources> pipeline_core::make_resources() const {
  const pipeline_thread inside(this); // the factory is the caller's code: it must not start or stop this pipeline
  std::vector<gpu_worker_resources> made;
  for (int id = 0; id < config_.num_workers * config_.buffers; ++id) {
    const gpu_worker_resources &w = made.emplace_back(factory_(id));
    const std::string who = "pipeline: worker " + std::to_string(id) + ": ";
    const bool graph = w.graph_exec != nullptr;
    if (graph == (w.host_stage_fn != nullptr))
      throw std::invalid_argument(who + (graph ? "both" : "neither") + " graph_exec and host_stage_fn " +
                                  (graph ? "are set, set only one" : "is set, set one of them"));
    if (graph != (made.front().graph_exec != nullptr))
      throw std::invalid_argument(who + "graphs and host stages cannot be mixed in one pipeline");
    if (graph && config_.buffers != 1)
      throw std::invalid_argument(who + "buffers is " + std::to_string(config_.buffers) +
                                  ", but its stage is a graph that the pipeline launches: make it a graph_stage");
    if (const int first = id % config_.num_workers; w.function_id != made[static_cast<std::size_t>(first)].function_id)
      throw std::invalid_argument(who + "its function_id is not that of worker " + std::to_string(first) +
                                  ", which is a buffer of the same worker");
    if (graph && (w.stage_begin_fn != nullptr || w.stage_end_fn != nullptr || w.stage_error_fn != nullptr))
      throw std::invalid_argument(who + "stage_begin_fn, stage_end_fn and stage_error_fn are for host stages");
    for (int other = 0; other < id && w.ready_flag != nullptr; ++other)
      if (made[static_cast<std::size_t>(other)].ready_flag == w.ready_flag)
        throw std::invalid_argument(who + "its ready_flag is that of worker " + std::to_string(other));
    if (cpu_stage_ && graph && w.gpu_output != nullptr && w.ready_flag == nullptr)
      throw std::invalid_argument(
          who + "gpu_output is set, ready_flag is not: a graph must set a flag when its output is ready");
    if (cpu_stage_ && w.ready_flag != nullptr && w.gpu_output == nullptr)
      throw std::invalid_argument(who + "ready_flag is set, gpu_output is not: set both or none");
  }
  return made;
}

pipeline_core::run_state pipeline_core::exchange_state(run_state to) {
  const std::lock_guard<std::mutex> lock(shape_);
  return std::exchange(state_, to);
}

void pipeline_core::start() {
  const cudaq::realtime::detail::cancellation_disabled during_the_call;
  refuse_from_callback("start");
  const std::lock_guard<std::mutex> one(control_);
  require_configurable("start");
  if (!factory_)
    throw std::logic_error("pipeline: start: there is no GPU stage; call set_gpu_stage first");
  if (!cpu_stage_ && ring_.external())
    throw std::logic_error("pipeline: start: an external ring needs a CPU stage; call set_cpu_stage first");
  // Until `running`, neither the factory nor a callback of a first request may change the configuration.
  const run_state before = exchange_state(run_state::starting);
  try {
    start_all();
  } catch (...) {
    exchange_state(engine_ != nullptr ? run_state::stuck : before);
    throw;
  }
  set_state({}, run_state::running);
  ring_.open();
}

void pipeline_core::start_all() {
  const std::vector<gpu_worker_resources> resources = make_resources();
  if (resources.front().graph_exec != nullptr)
    // A worker that sleeps between polls would launch too late.
    engine_ = std::make_unique<graph_engine>(ring_, responder_, resources, static_cast<bool>(cpu_stage_),
                                             wait_ != CUDAQ_WAIT_BLOCK);
  else
    engine_ = std::make_unique<host_engine>(ring_, resources, config_.num_workers);
  try {
    engine_->wire(dispatcher_);
    {
      const pipeline_thread inside(this); // the stages' hooks are the caller's code
      engine_->begin_stages();
    }
    start_threads(resources);
    start_dispatcher();
  } catch (...) {
    end_after_failed_start();
    throw;
  }
}

void pipeline_core::start_threads(const std::vector<gpu_worker_resources> &resources) {
  responder_.give_up.store(0);
  workers_end_.store(0);
  consumer_ends_.store(0);
  completions_.set_handler(&handler_);
  start_thread(consumer_, "qec-consumer", config_.cores.consumer, [this] {
    const pipeline_thread inside(this);
    run_loop([this] { return completions_.turn(); },
             [this] { return consumer_ends_.load() != 0 && completions_.turn() == 0; }, idle());
  });
  for (int id = 0; id < config_.num_workers && engine_->has_threads(); ++id) {
    std::vector<std::unique_ptr<stage_worker>> buffers;
    for (int b = id; b < config_.num_workers * config_.buffers; b += config_.num_workers)
      buffers.push_back(std::make_unique<stage_worker>(b, resources[static_cast<std::size_t>(b)], *engine_, ring_,
                                                       cpu_stage_, responder_));
    worker_thread *worker = nullptr;
    {
      const std::lock_guard<std::mutex> lock(shape_);
      worker = &workers_.emplace_back();
      worker->buffers = std::move(buffers);
    }
    const auto core = static_cast<int>(std::min<std::int64_t>(std::int64_t{config_.cores.worker_base} + id, INT_MAX));
    start_thread(worker->thread, "qec-worker-" + std::to_string(id), config_.cores.worker_base < 0 ? -1 : core,
                 [this, worker, id] {
                   const pipeline_thread inside(this);
                   run_loop([worker] { return worker->turn(); },
                            [this, worker, id] {
                              return workers_end_.load() != 0 && worker->turn() == 0 && worker->idle() &&
                                     engine_->leave(id);
                            },
                            idle());
                 });
  }
}

std::uint32_t pipeline_core::worker_thread::turn() {
  std::uint32_t work = 0;
  for (const auto &b : buffers)
    work += b->turn();
  return work;
}

bool pipeline_core::worker_thread::idle() const {
  return std::all_of(buffers.begin(), buffers.end(), [](const auto &b) { return b->idle(); });
}

/// For reports: the buffer with which the thread is, if it is in a callback.
const stage_worker &pipeline_core::worker_thread::busiest() const {
  return **std::max_element(buffers.begin(), buffers.end(), [](const auto &a, const auto &b) {
    const auto rank = [](const stage_worker &w) {
      const stage_worker::activity what = w.doing();
      return what == stage_worker::activity::idle ? 0 : what == stage_worker::activity::waiting ? 1 : 2;
    };
    return rank(*a) < rank(*b);
  });
}

void pipeline_core::start_dispatcher() {
  cudaq_dispatcher_options_t o;
  must(cudaq_dispatcher_options_init(&o, sizeof(o)), "options");
  o.wait_policy = static_cast<std::uint32_t>(wait_);
  o.block_interval_ns = kBlockIntervalNs;
  o.dispatcher_core = config_.cores.dispatcher < 0 ? CUDAQ_CORE_ANY : config_.cores.dispatcher;
  o.grace_period_ns = config_.grace_period_ns;
  o.busy_workers = CUDAQ_BUSY_WORKERS_PASS_FUNCTION;
  o.payload_in_slot = 1; // workers read the payload in the slot, so the dispatcher need not copy it
  // Every ticket needs an answer. On an external ring requests of unknown functions are dropped, as by any dispatcher.
  o.unknown_function = ring_.external() ? CUDAQ_UNKNOWN_FUNCTION_DROP : CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  must(cudaq_dispatcher_set_options(dispatcher_, &o), "options of the dispatcher");
  must(cudaq_dispatcher_start(dispatcher_), "start of the dispatcher");
}

void pipeline_core::end_after_failed_start() noexcept {
  // No request has been accepted, so no callback runs.
  workers_end_.store(1);
  consumer_ends_.store(1);
  {
    const std::lock_guard<std::mutex> lock(shape_);
    workers_.clear(); // joins
  }
  consumer_.join_until(steady_clock::time_point::max());
  const pipeline_thread inside(this);
  if (engine_->end_stages() != 0)
    return; // the next stop tries again
  engine_->unwire(dispatcher_);
  engine_.reset();
}

bool pipeline_core::answer_claimed(int slot, std::uint64_t generation, const std::size_t *size, int status) {
  const auto at = static_cast<std::uint32_t>(slot);
  const answer response = size != nullptr ? checked_answer(status, *size, ring_.max_payload())
                                          : framed_answer(ring_.tx_slot(at), ring_.max_payload());
  return responder_.complete(at, generation, response);
}

request_state &pipeline_core::state_to_complete(int slot, int status) {
  if (slot < 0 || slot >= config_.num_slots)
    throw std::out_of_range("pipeline: complete_deferred: slot is " + std::to_string(slot) + ", num_slots is " +
                            std::to_string(config_.num_slots));
  if (status == CUDAQ_HOST_CALL_DEFERRED)
    throw std::invalid_argument(
        "pipeline: complete_deferred: status is INT32_MIN, which means deferred; give a final status");
  return ring_.record(static_cast<std::uint32_t>(slot)).state;
}

void pipeline_core::complete_deferred(int slot, const std::size_t *size, int status) {
  const in_flight_completions<false>::one inside(completers_);
  request_state &state = state_to_complete(slot, status);
  request_state::snapshot seen = state.load();
  while (seen.phase == request_phase::completable &&
         !state.claim(seen.generation, request_phase::completable, request_phase::none))
    seen = state.load(); // its worker has just moved it on, or another thread was faster
  const bool given_up = seen.phase == request_phase::given_up;
  if (!given_up && seen.phase != request_phase::completable)
    throw std::logic_error("pipeline: complete_deferred: slot " + std::to_string(slot) + " has no deferred request");
  if (given_up || !answer_claimed(slot, seen.generation, size, status))
    responder_.answered_twice.add(); // a stop has answered it; the caller could not know
}

bool pipeline_core::complete_deferred(int slot, std::uint64_t generation, std::size_t size, int status) {
  const in_flight_completions<false>::one inside(completers_);
  return state_to_complete(slot, status).claim(generation, request_phase::completable, request_phase::none) &&
         answer_claimed(slot, generation, &size, status);
}

cudaq_dispatcher_stats_t pipeline_core::dispatcher_stats() const {
  cudaq_dispatcher_stats_t stats{};
  stats.struct_size = sizeof(stats);
  cudaq_dispatcher_get_stats(dispatcher_, &stats);
  return stats;
}

} // namespace cudaq::qec::realtime::detail

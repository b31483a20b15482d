// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/pipeline/stage_worker.h"

#include "lib/base/callback.h"
#include "lib/base/trace_range.h"

#include <chrono>
#include <cstring>
#include <exception>

namespace cudaq::qec::realtime::detail {

using cudaq::realtime::detail::claim_word;
using cudaq::realtime::detail::must_return;
using cudaq::realtime::detail::steady_clock;
using cudaq::realtime::detail::store_release;
using experimental::cpu_stage_context;
using experimental::DEFERRED_COMPLETION;

namespace {
// Values of a ready flag.
constexpr int kIdle = 0, kReady = 1, kProcessing = 2;
/// A waiting worker calls stage_engine::check_stage() at most once in this time. It reads the clock once in
/// kPollsPerClock polls: where other threads share its core, a poll may take a time slice of each of them.
constexpr auto kCheckInterval = std::chrono::milliseconds(1);
constexpr std::uint32_t kPollsPerClock = 32;
} // namespace

bool responder::complete(std::uint32_t slot, std::uint64_t generation, const answer &response) {
  // After the answer the slot may belong to the next request, so all fields are read before.
  request_record &record = ring_.record(slot);
  if (response.stage_error != 0) // only then: a stop may have answered, and the record may be the next request's
    record.error = response.stage_error;
  answered_request queued{record.request_id, slot, response.status, response.stage_error};
  const cudaq_host_job_t job{generation, slot, static_cast<std::uint32_t>(queued.request_id)};
  const cudaq_status_t status = cudaq_host_complete_deferred(dispatcher_, &job, response.status, response.result_size);
  const bool mine = status == CUDAQ_OK;
  if (!mine && status != CUDAQ_ERR_STATE) // not answered: its slot stays occupied until stop
    note(cudaq_last_error_message());
  if (!mine) {
    queued.status = CUDAQ_RPC_ERR_SHUTTING_DOWN;
    if (status == CUDAQ_ERR_STATE && give_up.load() == 0) { // no stop: a fault of the device
      queued.status = CUDAQ_RPC_ERR_DEVICE_FAULT;
      queued.error = cudaErrorUnknown;
      stage_errors.add();
    }
  }
  if (ring_.external()) // on the own ring the consumer reads all of this from the slot
    completions_.enqueue(queued);
  return mine;
}

void responder::report_device_fault(const answered_request &queued) {
  stage_errors.add();
  if (ring_.external())
    completions_.enqueue(queued);
}

void responder::failed_launch(const answered_request &queued) {
  stage_errors.add();
  if (ring_.external())
    completions_.enqueue_failed_launch(queued);
}

void responder::report_given_up(const answered_request &queued) {
  taken();
  completions_.enqueue(queued);
}

void responder::note(const char *what) noexcept {
  if (!noted_.claim(0, 1))
    return;
  std::strncpy(note_.data(), what, note_.size() - 1); // the last byte stays 0
  noted_.store(2);
}

std::string responder::first_note() const { return noted_.load() == 2 ? note_.data() : ""; }

stage_worker::stage_worker(int id, const experimental::gpu_worker_resources &resources, stage_engine &engine,
                           pipeline_ring &ring, const experimental::cpu_stage_callback &cpu_stage, responder &to)
    : id_(id), resources_(resources), engine_(engine), ring_(ring), cpu_stage_(cpu_stage), responder_(to) {
  if (resources_.ready_flag != nullptr)
    store_release(*resources_.ready_flag, kIdle);
}

std::uint32_t stage_worker::turn() {
  if (phase_ == phase::abandoned) {
    if (resources_.ready_flag == nullptr || !claim_word(*resources_.ready_flag, kReady, kProcessing))
      return 0;
    phase_ = phase::ready;
    done(stage_end::ended);
    return 1;
  }
  if (phase_ == phase::idle && !begin())
    return 0;
  if (phase_ != phase::launched && phase_ != phase::ready) // begin() has ended the request
    return 1;
  if (is_ready() && answer_ready())
    return 1;
  if (responder_.give_up.load() != 0) {
    finish_early({CUDAQ_RPC_ERR_SHUTTING_DOWN, 0}, stage_now());
    return 1;
  }
  return ++empty_polls_ % kPollsPerClock == 0 && check_is_due() && drop_lost_stage() ? 1 : 0;
}

stage_launch stage_worker::launch() {
  const cudaq::realtime::detail::trace_range range("qec GPU stage");
  return engine_.launch(id_, slot_);
}

/// True: a request was taken.
bool stage_worker::begin() {
  if (engine_.has_handed_over(id_)) {
    show(activity::launch); // with pre_launch_on_worker it calls a hook of the caller
    engine_.launch_handed_over(id_);
    show(activity::idle);
  }
  if (!responder_.may_take())
    return false;
  {
    const in_flight_answers::one inside(in_flight_); // take() reports failed launches to the consumer
    if (!engine_.take(id_, slot_))
      return false;
  }
  responder_.taken();
  generation_ = ring_.record(slot_).state.generation();
  slot_seen_.set(slot_);
  phase_ = phase::launched;
  if (responder_.give_up.load() != 0) {
    finish_early({CUDAQ_RPC_ERR_SHUTTING_DOWN, 0}, stage_end::may_run);
    return true;
  }
  show(activity::gpu_stage);
  const stage_launch launched = launch();
  if (launched.error != 0) {
    responder_.stage_errors.add();
    finish_early({CUDAQ_RPC_ERR_LAUNCH_FAILED, 0, launched.error}, stage_end::may_run);
    return true;
  }
  response_size_ = launched.response_size;
  show(activity::waiting);
  return true;
}

bool stage_worker::is_ready() {
  if (phase_ == phase::ready || resources_.ready_flag == nullptr)
    return true;
  if (!claim_word(*resources_.ready_flag, kReady, kProcessing))
    return false;
  phase_ = phase::ready;
  return true;
}

/// False: there is no answer yet (poll mode).
bool stage_worker::answer_ready() {
  if (cpu_stage_)
    return run_cpu_stage();
  finish_stage(response_size_);
  return true;
}

bool stage_worker::run_cpu_stage() {
  request_record &record = ring_.record(slot_);
  // Made before the claim: after it another thread may answer, and the slot may belong to the next request.
  const cpu_stage_context context{id_,
                                  static_cast<int>(slot_),
                                  resources_.gpu_output,
                                  resources_.gpu_output != nullptr ? resources_.gpu_output_size : 0,
                                  ring_.tx_slot(slot_) + CUDAQ_RPC_HEADER_SIZE,
                                  ring_.max_payload(),
                                  resources_.user_context,
                                  generation_,
                                  ring_.rx_slot(slot_) + CUDAQ_RPC_HEADER_SIZE,
                                  record.payload_size};
  if (!record.state.claim(generation_, request_phase::held, request_phase::completable)) { // a stop has taken it back
    done(stage_now());
    return true;
  }
  std::size_t size = 0;
  show(activity::cpu_stage);
  try {
    const cudaq::realtime::detail::trace_range range("qec CPU stage");
    size = must_return([&] { return cpu_stage_(context); }, "the CPU stage of function", resources_.function_id);
  } catch (const std::exception &e) {
    threw(e.what());
    return true;
  } catch (...) {
    threw("the CPU stage threw an exception that is not a std::exception");
    return true;
  }
  show(activity::waiting);
  if (size == DEFERRED_COMPLETION) { // the request stays completable, or is completed already
    done(stage_end::ended);
    return true;
  }
  // In poll mode a header in the slot does not mean that the answer is complete: a graph may still be writing it.
  if (size != 0 || resources_.gpu_output != nullptr) {
    finish_stage(size);
    return true;
  }
  if (record.state.claim(generation_, request_phase::completable, request_phase::held))
    return false;
  done(stage_end::ended); // another thread has completed the request
  return true;
}

void stage_worker::threw(const char *what) {
  responder_.note(what); // before the count: who reads it finds the text
  responder_.callback_errors.add();
  finish_early({CUDAQ_RPC_ERR_HANDLER_THREW, 0}, stage_end::ended);
}

bool stage_worker::check_is_due() {
  const auto now = steady_clock::now();
  if (now - last_check_ < kCheckInterval)
    return false;
  last_check_ = now;
  return true;
}

/// For a failed device, whose stages never end.
bool stage_worker::drop_lost_stage() {
  const stage_condition seen = engine_.check_stage(id_, generation_);
  if (seen.what == stage_condition::outcome::open)
    return false;
  if (seen.what == stage_condition::outcome::failed) {
    responder_.stage_errors.add();
    finish_early({CUDAQ_RPC_ERR_DEVICE_FAULT, 0, seen.error}, stage_end::ended);
    return true;
  }
  {
    const in_flight_answers::one inside(in_flight_);
    const answered_request queued{ring_.record(slot_).request_id, slot_, CUDAQ_RPC_ERR_DEVICE_FAULT, cudaErrorUnknown};
    if (claim_answer())
      responder_.report_device_fault(queued);
  }
  done(stage_end::ended);
  return true;
}

/// Called before the slot is written: after another thread's answer it may hold the next request. Only this worker
/// moves the request between the two phases, so if both claims fail, another thread has answered.
bool stage_worker::claim_answer() {
  request_state &state = ring_.record(slot_).state;
  return state.claim(generation_, request_phase::completable, request_phase::none) ||
         state.claim(generation_, request_phase::held, request_phase::none);
}

template <class Response>
void stage_worker::finish(const Response &make_response, stage_end stage) {
  {
    const in_flight_answers::one inside(in_flight_);
    if (claim_answer())
      responder_.complete(slot_, generation_, make_response());
    else
      responder_.answered_twice.add();
  }
  done(stage);
}

void stage_worker::finish_stage(std::size_t size) {
  finish([&] { return stage_answer(ring_.tx_slot(slot_), size, ring_.max_payload()); }, stage_end::ended);
}

void stage_worker::finish_early(const answer &response, stage_end stage) {
  finish([&] { return response; }, stage);
}

void stage_worker::done(stage_end stage) {
  if (phase_ == phase::ready)
    store_release(*resources_.ready_flag, kIdle);
  phase_ = engine_.release(id_, stage) ? phase::idle : phase::abandoned;
  show(phase_ == phase::idle ? activity::idle : activity::waiting);
}

} // namespace cudaq::qec::realtime::detail

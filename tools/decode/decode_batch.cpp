// SPDX-License-Identifier: Apache-2.0
#include "tools/decode/decode_batch.h"

#include "lib/qec/decoding/event_bits.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <stdexcept>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

// A wait without a limit would need the C++ runtime of GCC 12: lib/base/condition.h.
constexpr std::chrono::hours kLongWait(1);

} // namespace

decoder_threads::decoder_threads(worker_list workers, std::uint64_t num_errors) : workers_(std::move(workers)) {
  for (const auto &worker : workers_)
    memories_.push_back({std::vector<std::uint8_t>(worker->stage().response_bytes()),
                         std::vector<std::uint64_t>(static_cast<std::size_t>(num_errors))});
  try {
    for (std::size_t k = 0; workers_.size() > 1 && k < workers_.size(); ++k)
      threads_.emplace_back([this, k] { serve(*workers_[k], memories_[k]); });
  } catch (const std::exception &refused) { // no destructor follows
    const std::size_t started = threads_.size();
    end();
    throw std::runtime_error(fmt::format("--threads {}: the system starts no more than {} ({}): use fewer",
                                         workers_.size(), started, refused.what()));
  }
}

decoder_threads::~decoder_threads() { end(); }

void decoder_threads::end() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread &t : threads_)
    t.join();
  threads_.clear();
}

void decoder_threads::submit(decode_batch &batch) {
  batch.done = threads_.empty();
  if (batch.done) {
    decode(*workers_.front(), memories_.front(), batch);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    todo_.push_back(&batch);
  }
  work_.notify_one();
}

void decoder_threads::wait_for(const decode_batch &batch) {
  std::unique_lock lock(mutex_);
  while (!batch.done)
    finished_.wait_for(lock, kLongWait);
}

decoder_totals decoder_threads::totals() const {
  decoder_totals sum;
  for (const scratch &memory : memories_)
    sum.shot_ns.merge(memory.shot_ns);
  for (const auto &worker : workers_) {
    const qec::decoder &with = worker->stage().inner();
    sum.deadlines += with.deadlines();
    const auto wins = with.wins();
    sum.wins.resize(wins.size());
    for (std::size_t k = 0; k < wins.size(); ++k)
      sum.wins[k] = {wins[k].first, sum.wins[k].second + wins[k].second};
    if (const std::uint64_t faults = with.member_faults(); faults != 0) {
      sum.member_faults += faults;
      sum.member_fault = with.fault();
    }
  }
  return sum;
}

void decoder_threads::serve(qec::decoding_worker &worker, scratch &memory) {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!stop_ && todo_.empty())
      work_.wait_for(lock, kLongWait);
    if (stop_)
      return;
    decode_batch &batch = *todo_.front();
    todo_.pop_front();
    lock.unlock();
    decode(worker, memory, batch);
    lock.lock();
    batch.done = true;
    finished_.notify_all();
  }
}

void decoder_threads::decode(qec::decoding_worker &worker, scratch &memory, decode_batch &batch) noexcept {
  const std::span<std::uint8_t> response(memory.response);
  qec::decode_details details{.errors = memory.errors};
  qec::decode_details *const wanted = batch.num_errors == 0 && batch.num_gaps == 0 ? nullptr : &details;
  batch.status = qec::decode_status::ok;
  std::uint64_t begin = now_ns(); // one reading of the clock for each shot: a shot of a small code takes 200 ns
  for (batch.decoded = 0; batch.decoded < batch.shots && !interrupt_guard::is_grace_over(); ++batch.decoded) {
    details.gaps = batch.gaps_of(batch.decoded);
    const std::size_t size = worker.decode(decode_batch::row(batch.detections, batch.decoded, batch.detection_bytes),
                                           response, batch.status, wanted, batch.flags_of(batch.decoded));
    const bool is_solved = size == response.size(), at_deadline = batch.status == qec::decode_status::deadline;
    if (batch.status != qec::decode_status::ok && !at_deadline && batch.status != qec::decode_status::not_converged) {
      batch.fault = worker.stage().inner().fault();
      return;
    }
    const std::uint64_t end = now_ns();
    memory.shot_ns.record(end - std::exchange(begin, end));
    batch.status = qec::decode_status::ok;
    using result = decode_batch::result;
    batch.results[batch.decoded] = is_solved ? result::solution : at_deadline ? result::deadline : result::unconverged;
    batch.late[batch.decoded] = is_solved && !at_deadline && worker.stage().inner().is_late() ? 1 : 0;
    if (batch.num_errors != 0)
      static_cast<void>(qec::pack_events(std::span(memory.errors).first(details.num_errors), batch.num_errors,
                                         decode_batch::row(batch.errors, batch.decoded, batch.error_bytes)));
    const auto answer = decode_batch::row(batch.answers, batch.decoded, batch.observable_bytes);
    if (is_solved)
      std::ranges::copy(response.subspan(sizeof(qec::DecodeResponse), batch.observable_bytes), answer.begin());
    else
      std::ranges::fill(answer, std::uint8_t{0});
  }
}

} // namespace cudaq::realtime::tools

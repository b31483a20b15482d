// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/decoder/request_queue.h"

#include "lib/qec/server/decoder/probes.h"

#include <algorithm>

namespace cudaq::qec::realtime {

std::uint64_t queue_bytes(std::uint32_t queue_length, std::uint64_t max_bytes) noexcept {
  return queue_length * (sizeof(request_queue::entry) + max_bytes);
}

request_queue::request_queue(std::uint32_t length, std::uint64_t max_bytes) : entries_(length) {
  for (entry &e : entries_)
    e.bits.resize(static_cast<std::size_t>(max_bytes));
}

bool request_queue::has_copy_of(const read_result &read) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return finds_copy_of(read, entries_.size());
}

bool request_queue::finds_copy_of(const read_result &read, std::uint64_t among) const noexcept {
  if (read.status != server_status::ok || read.request.timestamp == 0)
    return false;
  const std::uint64_t head = head_.peek();
  const std::uint64_t in_it = std::min(head - tail_.load(), among);
  for (std::uint64_t at = head - in_it; at != head; ++at) // only enter() writes to them
    if (const read_result &other = entries_[at % entries_.size()].read;
        other.status == server_status::ok && is_copy(other.request, read.request))
      return true;
  return false;
}

void request_queue::close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
}

server_answer request_queue::enter(const read_result &read, std::span<std::uint8_t> result, const cudaq_host_job_t &job,
                                   cudaq::realtime::detail::remembered_requests &memory, const stage_times &times,
                                   request_moments moments) {
  using cudaq::realtime::detail::request_state;
  const wire_function function = read.request.function;
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  moments.accepted = moments.arrived;
  const bool is_quick = lock.owns_lock();
  if (!is_quick) {
    lock.lock();
    moments.accepted = times.now();
  }
  CUDAQ_QEC_PROBE(accepted, job.request_id, job.slot);
  // While it serves, not among more requests than a requester may send before it repeats one: the queue may be long. A
  // copy that is not found has a place of its own, and the same answer.
  if (finds_copy_of(read, closed_ ? entries_.size() : CUDAQ_QEC_REPEAT_REQUESTS))
    return kNoRoomForCopy;
  if (closed_)
    return refuse(function, server_status::not_ready);
  const clock::time_point arrival = arrivals_.at(moments.accepted, times.clock());
  const std::uint64_t at = head_.peek();
  const bool full = at - tail_.load() == entries_.size();
  request_state before = request_state::unseen;
  if (read.status == server_status::ok && changes_state(read.request))
    before = memory.arrive(identity_of(read.request), !full, arrival);
  if (full && before == request_state::executing) // an earlier copy came in, and has left the queue
    return kNoRoomForCopy;
  if (full || before == request_state::refused) // as the first one: its requester may have sent another request
    return refuse(function, server_status::busy);
  entry &e = entries_[at % entries_.size()];
  e.read = read;
  const auto bits = read.request.bits;
  e.read.request.bits = std::span<const std::uint8_t>(e.bits).first(std::min(bits.size(), e.bits.size()));
  std::copy_n(bits.begin(), e.read.request.bits.size(), e.bits.begin());
  if (bits.size() > e.bits.size()) // longer than a shot
    e.read.status = server_status::bad_request;
  e.result = result;
  e.job = job;
  e.arrival = arrival;
  constexpr std::size_t kFewBytes = 4096;
  moments.queued = is_quick && bits.size() <= kFewBytes ? moments.accepted : times.now();
  e.moments = moments;
  CUDAQ_QEC_PROBE(queued, job.request_id, job.slot);
  head_.store(at + 1);
  return {.waits = true};
}

request_queue::entry *request_queue::front() noexcept {
  const std::uint64_t at = tail_.peek();
  return at == head_.load() ? nullptr : &entries_[at % entries_.size()];
}

std::uint64_t request_queue::waiting() const noexcept {
  const std::uint64_t served = tail_.load(), entered = head_.load(); // in this order: never below 0
  return entered - served;
}

} // namespace cudaq::qec::realtime

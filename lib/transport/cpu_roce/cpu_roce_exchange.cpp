// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/cpu_roce/cpu_roce_exchange.h"

#include <algorithm>
#include <cstring>

namespace cudaq::realtime::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto kFlushTime = 100ms;
constexpr std::uint32_t kPageMask = 0xFFF; // a sensor bridge puts the page into the lower bits of the immediate

void write_status(std::uint8_t *frame, std::uint32_t frame_size, std::int32_t status, std::uint32_t request_id,
                  std::uint64_t ptp_timestamp) {
  const cudaq_rpc_response_t header = {CUDAQ_RPC_MAGIC_RESPONSE, status, 0, request_id, ptp_timestamp};
  std::memcpy(frame, &header, sizeof(header));
  std::memset(frame + sizeof(header), 0, frame_size - sizeof(header));
}

} // namespace

cpu_roce_exchange::cpu_roce_exchange(const cpu_roce_options &options, const cudaq_ringbuffer_t &ring)
    : options_(options), ring_(ring), slots_(options.num_slots), sends_(max_sends()),
      refusals_(std::size_t{kRefusals} * options.frame_size) {
  ready_.reserve(2 * std::size_t{options.num_slots}); // see arrived
  waiting_.reserve(options.num_slots);
}

rdma_memory cpu_roce_exchange::memory() {
  return {{ring_.rx_data_host, options_.num_slots * ring_.rx_stride_sz},
          {ring_.tx_data_host, options_.num_slots * ring_.tx_stride_sz},
          refusals_};
}

// --- the connection ---

void cpu_roce_exchange::attach(std::unique_ptr<rdma_queue_pair> pair) {
  const std::lock_guard<std::mutex> lock(mutex_);
  pair_ = std::move(pair);
  ended_ = false;
  why_broken_.clear();
  first_send_ = num_sends_ = first_refusal_ = num_refusals_ = 0;
  counters_.peers.bump();
}

bool cpu_roce_exchange::take_back(steady_clock::time_point deadline, const std::function<bool()> &give_up,
                                  std::unique_ptr<rdma_queue_pair> &out) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (pair_ == nullptr)
      return true;
    if (!ended_)
      pair_->halt();
    ended_ = true;
    forget();
  }
  const auto none_taken = [this] {
    const std::lock_guard<std::mutex> lock(mutex_);
    return num_taken_ == 0;
  };
  wait_until(deadline, [&] { return none_taken() || give_up(); });
  const std::lock_guard<std::mutex> lock(mutex_);
  if (num_taken_ != 0)
    return false;
  out = std::move(pair_);
  return true;
}

bool cpu_roce_exchange::connected() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return up();
}

std::string cpu_roce_exchange::why_broken() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return why_broken_;
}

std::size_t cpu_roce_exchange::ready_entries() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ready_.size();
}

void cpu_roce_exchange::launch() {
  const std::lock_guard<std::mutex> lock(mutex_);
  launched_ = true;
}

void cpu_roce_exchange::disconnect() {
  const auto done = [this] {
    const std::lock_guard<std::mutex> lock(mutex_);
    launched_ = false;
    if (!up())
      return true;
    reap();
    return !up() || (waiting_.empty() && num_sends_ == 0);
  };
  wait_until(steady_clock::now() + kFlushTime, done);
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_ = true;
  forget();
  pair_.reset(); // after it, the peer writes nothing more
}

/// The peer has closed the connection: requests that the dispatcher has not got, and answers that are not sent.
void cpu_roce_exchange::forget() {
  for (std::size_t i = next_ready_; i < ready_.size(); ++i)
    slots_[ready_[i]].in = phase::free;
  for (const std::uint32_t slot : waiting_)
    slots_[slot].in = phase::free;
  counters_.orphaned.bump(ready_.size() - next_ready_ + waiting_.size());
  ready_.clear();
  waiting_.clear();
  next_ready_ = 0;
}

void cpu_roce_exchange::break_connection(const char *reason) {
  if (ended_)
    return;
  pair_->halt();
  ended_ = true;
  why_broken_ = reason;
  counters_.peers_lost.bump();
  forget();
}

// --- requests ---

std::optional<std::uint32_t> cpu_roce_exchange::poll() {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !launched_ || !up())
    return {};
  if (next_ready_ == ready_.size()) {
    ready_.clear();
    next_ready_ = 0;
    reap();
  }
  while (next_ready_ < ready_.size()) {
    const std::uint32_t slot = ready_[next_ready_++];
    if (slots_[slot].overwritten) {
      refuse_overwritten(slot);
      continue;
    }
    slots_[slot].in = phase::taken;
    ++num_taken_;
    return slot;
  }
  return {};
}

/// Takes the completions of the queue pair.
void cpu_roce_exchange::reap() {
  std::array<rdma_completion, 16> done;
  const std::uint32_t n = pair_->poll(done);
  for (std::uint32_t i = 0; i < n && !ended_; ++i)
    switch (done[i].what) {
    case rdma_completion::kind::sent:
      sent();
      break;
    case rdma_completion::kind::failed:
      break_connection(done[i].reason);
      break;
    case rdma_completion::kind::request:
      if (launched_)
        arrived(done[i].immediate, done[i].bytes);
      break;
    }
  if (!waiting_.empty() && !ended_)
    send_waiting();
}

void cpu_roce_exchange::arrived(std::uint32_t immediate, std::uint32_t bytes) {
  counters_.received.bump();
  const bool names_slot = immediate != UINT32_MAX;
  const std::uint32_t slot = options_.sensor_bridge && names_slot ? immediate & kPageMask : immediate;
  if (slot >= options_.num_slots) {
    counters_.dropped_immediate.bump();
    return receive_again();
  }
  cudaq_rpc_header_t header;
  std::memcpy(&header, rx_slot(slot), sizeof(header));
  if (slots_[slot].in != phase::free) {
    mark_overwritten(slot);
    counters_.answered_busy.bump();
    refuse(header, CUDAQ_RPC_ERR_BUSY);
    return receive_again();
  }
  if (!fits(slot, header, bytes))
    return receive_again();
  counters_.accepted.bump();
  slots_[slot] = {phase::ready, false, header.request_id, header.ptp_timestamp};
  if (next_ready_ >= options_.num_slots) { // under steady load the list is never empty: only its end is kept
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(next_ready_));
    next_ready_ = 0;
  }
  ready_.push_back(slot);
}

/// Whether the write has brought the whole request. A sensor bridge writes in several parts, and only the size of the
/// last one is known.
bool cpu_roce_exchange::fits(std::uint32_t slot, const cudaq_rpc_header_t &header, std::uint32_t bytes) {
  if (options_.sensor_bridge)
    return true;
  if (bytes < sizeof(header)) {
    counters_.dropped_short.bump();
    return false;
  }
  if (bytes > options_.slot_size) {
    for (std::uint32_t next = slot + 1; next < options_.num_slots; ++next)
      if (std::uint64_t{next - slot} * options_.slot_size < bytes)
        mark_overwritten(next);
    counters_.dropped_long.bump();
    return false;
  }
  if (header.magic == CUDAQ_RPC_MAGIC_REQUEST && header.arg_len > bytes - sizeof(header)) {
    counters_.answered_truncated.bump();
    refuse(header, CUDAQ_RPC_ERR_BAD_ARG_LEN);
    return false;
  }
  return true;
}

/// The answer of a slot that waits is complete: only the request is lost.
void cpu_roce_exchange::mark_overwritten(std::uint32_t slot) {
  exchange_slot &record = slots_[slot];
  if (record.overwritten || (record.in != phase::ready && record.in != phase::taken))
    return;
  record.overwritten = true;
  counters_.overwritten.bump();
}

/// Answers a request with a status. A frame that is no request is not answered.
void cpu_roce_exchange::refuse(const cudaq_rpc_header_t &header, std::int32_t status) {
  if (header.magic != CUDAQ_RPC_MAGIC_REQUEST)
    return;
  if (num_refusals_ == kRefusals || num_sends_ == max_sends())
    return counters_.refusals_dropped.bump();
  std::uint8_t *const frame = refusal((first_refusal_ + num_refusals_++) % kRefusals);
  write_status(frame, options_.frame_size, status, header.request_id, header.ptp_timestamp);
  send(frame, true);
}

void cpu_roce_exchange::refuse_overwritten(std::uint32_t slot) {
  slots_[slot].in = phase::taken; // for a moment
  ++num_taken_;
  complete_frame(slot, CUDAQ_RPC_ERR_BUSY);
  send_or_wait(slot);
}

// --- answers ---

expected<> cpu_roce_exchange::check_taken(std::uint32_t slot) const {
  if (slot < slots_.size() && slots_[slot].in == phase::taken)
    return {};
  return make_reason(CUDAQ_ERR_INVALID_ARG, "slot %u: the loop does not have it", slot);
}

expected<> cpu_roce_exchange::answer(std::uint32_t slot, std::int32_t status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (expected<> result = check_taken(slot); result.failed())
    return result;
  if (up() && launched_)
    reap(); // it may have been overwritten meanwhile
  if (!up()) {
    counters_.orphaned.bump();
    free_slot(slot);
    return {};
  }
  complete_frame(slot, slots_[slot].overwritten ? CUDAQ_RPC_ERR_NO_RESPONSE : status);
  send_or_wait(slot);
  if (!up())
    return make_reason(CUDAQ_ERR_INTERNAL, "slot %u: the adapter refused the answer: %s", slot, why_broken_.c_str());
  return {};
}

expected<> cpu_roce_exchange::drop(std::uint32_t slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (expected<> result = check_taken(slot); result.failed())
    return result;
  if (up()) {
    counters_.unanswered.bump();
    receive_again();
  } else {
    counters_.orphaned.bump();
  }
  free_slot(slot);
  return {};
}

/// Makes TX slot `slot` a frame that may be sent whole: nothing of an earlier answer is in it.
void cpu_roce_exchange::complete_frame(std::uint32_t slot, std::int32_t status) {
  std::uint8_t *const frame = tx_slot(slot);
  cudaq_rpc_response_t header;
  std::memcpy(&header, frame, sizeof(header));
  if (status == 0 && header.magic != CUDAQ_RPC_MAGIC_RESPONSE)
    status = CUDAQ_RPC_ERR_NO_RESPONSE;
  if (status == 0 && header.result_len > options_.frame_size - sizeof(header))
    status = CUDAQ_RPC_ERR_RESULT_TOO_LARGE;
  if (status != 0)
    return write_status(frame, options_.frame_size, status, slots_[slot].request_id, slots_[slot].ptp_timestamp);
  const std::size_t used = sizeof(header) + header.result_len;
  std::memset(frame + used, 0, options_.frame_size - used);
}

void cpu_roce_exchange::free_slot(std::uint32_t slot) {
  num_taken_ -= slots_[slot].in == phase::taken;
  slots_[slot].in = phase::free;
  slots_[slot].overwritten = false;
}

void cpu_roce_exchange::send_or_wait(std::uint32_t slot) {
  if (waiting_.empty() && num_sends_ < max_sends())
    return send_answer(slot);
  --num_taken_;
  slots_[slot].in = phase::waiting;
  waiting_.push_back(slot);
}

void cpu_roce_exchange::send_waiting() {
  while (!waiting_.empty() && num_sends_ < max_sends()) { // the end of the connection empties the list
    const std::uint32_t slot = waiting_.front();
    waiting_.erase(waiting_.begin());
    send_answer(slot);
  }
}

/// The peer may use the credit as soon as it has the answer. With UC there are receives left, and the answer must not
/// wait. With RC the receive comes first: a peer that finds none pauses.
void cpu_roce_exchange::send_answer(std::uint32_t slot) {
  free_slot(slot);
  if (options_.reliable)
    receive_again();
  send(tx_slot(slot), false);
  if (!options_.reliable)
    receive_again();
}

void cpu_roce_exchange::send(const std::uint8_t *frame, bool refusal) {
  if (ended_)
    return;
  if (!pair_->post_send(frame))
    return break_connection("the adapter accepts no send");
  sends_[(first_send_ + num_sends_++) % max_sends()] = refusal;
  counters_.replied.bump();
}

void cpu_roce_exchange::sent() {
  if (num_sends_ == 0)
    return break_connection("the adapter completes what was not posted");
  if (sends_[first_send_] != 0) {
    first_refusal_ = (first_refusal_ + 1) % kRefusals;
    --num_refusals_;
  }
  first_send_ = (first_send_ + 1) % max_sends();
  --num_sends_;
}

void cpu_roce_exchange::receive_again() {
  if (!ended_ && !pair_->post_receive())
    break_connection("the adapter accepts no receive");
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/datagram_dataplane.h"

#include <algorithm>

namespace cudaq::realtime::detail {
namespace {
using namespace std::chrono_literals;

constexpr std::uint32_t kPollsPerDropCheck = 64;
constexpr auto kFlushTime = 100ms; // as long as the ring shape
constexpr auto kFlushPause = 50us;
} // namespace

datagram_dataplane::datagram_dataplane(datagram_exchange &exchange) : exchange_(exchange) {
  const std::uint32_t slots = exchange.options().num_slots;
  for (std::vector<std::uint32_t> *list : {&free_, &ready_, &taken_, &waiting_})
    list->reserve(slots);
  for (std::uint32_t slot = slots; slot-- > 0;)
    free_.push_back(slot);
}

cudaq_rx_status_t datagram_dataplane::poll(std::uint32_t &slot) {
  if (stopped_.load() == kFlushes)
    return CUDAQ_RX_EMPTY;
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock())
    return CUDAQ_RX_EMPTY;
  if (stopped_.load() != kRuns) {
    send_waiting_answers();
    return CUDAQ_RX_EMPTY;
  }
  if (next_ready_ == ready_.size()) {
    send_waiting_answers();
    if (free_.empty() || ++empty_polls_ % kPollsPerDropCheck == 0)
      take_back_dropped();
    receive();
    if (ready_.empty())
      return CUDAQ_RX_EMPTY;
  }
  slot = ready_[next_ready_++];
  taken_.push_back(slot);
  store_release<std::uint64_t>(exchange_.rx_flag(slot), 1);
  return CUDAQ_RX_READY;
}

void datagram_dataplane::receive() {
  ready_.clear();
  next_ready_ = 0;
  if (free_.empty() || exchange_.has_waiting_requests()) {
    exchange_.receive_without_slot();
    for (; !free_.empty() && exchange_.take_waiting(free_.back()); free_.pop_back())
      ready_.push_back(free_.back());
    exchange_.send_refusals();
    return;
  }
  const auto max_count = static_cast<std::uint32_t>(std::min<std::size_t>(free_.size(), kUdpBatch));
  const auto slot_of = [&](std::uint32_t i) { return free_[free_.size() - 1 - i]; };
  for (std::uint32_t i = 0; i < max_count; ++i)
    exchange_.set_target(i, slot_of(i));
  const std::uint32_t n = exchange_.receive(max_count);
  for (std::uint32_t i = 0; i < n; ++i)
    if (exchange_.accept_received(i, slot_of(i)))
      ready_.push_back(slot_of(i));
  if (!ready_.empty()) // only the last `max_count` entries can be open
    free_.erase(std::remove_if(free_.end() - max_count, free_.end(),
                               [this](std::uint32_t slot) { return exchange_.request(slot).open; }),
                free_.end());
  exchange_.send_refusals();
}

expected<> datagram_dataplane::publish(std::uint32_t slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = std::find(taken_.begin(), taken_.end(), slot);
  if (at == taken_.end())
    return make_reason(CUDAQ_ERR_INVALID_ARG, "slot %u: the loop does not have it", slot);
  *at = taken_.back();
  taken_.pop_back();
  store_release<std::uint64_t>(exchange_.rx_flag(slot), 0);
  waiting_.push_back(slot);
  if (!send_waiting_answers())
    return make_reason(CUDAQ_ERR_INTERNAL, "slot %u: the system refused to send the answer", slot);
  return {};
}

void datagram_dataplane::launch() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_.store(kRuns);
}

expected<> datagram_dataplane::disconnect() {
  const steady_clock::time_point deadline = steady_clock::now() + kFlushTime;
  stopped_.store(kFlushes);
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    send_waiting_answers();
    if (waiting_.empty() || steady_clock::now() >= deadline)
      break;
    lock.unlock();
    exchange_.socket().wait(false, kFlushPause);
    lock.lock();
  }
  stopped_.store(kStopped);
  if (waiting_.empty())
    return {};
  return make_reason(CUDAQ_ERR_TIMEOUT,
                     "%zu answers wait, because the system has had no room to send them for 100 ms; call disconnect "
                     "again to wait on",
                     waiting_.size());
}

/// Returns false if the system refused the last one.
bool datagram_dataplane::send_waiting_answers() {
  bool accepted = true;
  while (!waiting_.empty()) {
    const auto n = std::min<std::size_t>(waiting_.size(), kUdpBatch);
    for (std::size_t i = 0; i < n; ++i)
      exchange_.queue_answer(waiting_[i]);
    const std::uint64_t errors = exchange_.counters().send_errors.value();
    const std::uint32_t done = exchange_.send_answers();
    accepted = exchange_.counters().send_errors.value() == errors;
    for (std::uint32_t i = 0; i < done; ++i) {
      exchange_.close(waiting_[i]);
      free_.push_back(waiting_[i]);
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + done);
    if (done < n)
      break;
  }
  return accepted;
}

void datagram_dataplane::take_back_dropped() {
  std::erase_if(taken_, [this](std::uint32_t slot) {
    if (load_acquire(exchange_.rx_flag(slot)) != 0)
      return false;
    exchange_.close_unanswered(slot);
    free_.push_back(slot);
    return true;
  });
}

} // namespace cudaq::realtime::detail

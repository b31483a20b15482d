// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/datagram_ring.h"

#include <algorithm>

namespace cudaq::realtime::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kTurnsPerDropCheck = 64; // no client waits for a dropped request
constexpr auto kSleepInFlight = 50us;            // an answer does not wake the thread
constexpr auto kSleepIdle = 20ms;                // a datagram does; a stop waits so long
constexpr auto kFlushTime = 100ms, kFlushPause = 1ms;
constexpr std::uint64_t kJoinTimeNs = 5000000000u;

} // namespace

expected<> datagram_ring::launch() {
  if (!thread_.ended())
    return make_reason(CUDAQ_ERR_STATE, "the provider's thread runs already");
  thread_.join_until(steady_clock::time_point::max());
  stop_.store(0);
  thread_placement placement;
  placement.core = exchange_.options().core;
  return thread_.start(exchange_.options().thread_name(), placement, [this] { run(); });
}

expected<> datagram_ring::end_thread() {
  stop_.store(1);
  if (!thread_.join_until(deadline_after(kJoinTimeNs)))
    return make_reason(CUDAQ_ERR_TIMEOUT, "the provider's thread did not end");
  return {};
}

expected<> datagram_ring::disconnect() {
  if (expected<> result = end_thread(); result.failed())
    return result;
  const steady_clock::time_point deadline = steady_clock::now() + kFlushTime;
  for (;;) {
    const bool worked = collect() != 0;
    const auto waiting =
        static_cast<std::size_t>(std::count_if(in_flight_.begin(), in_flight_.end(), [this](std::uint32_t slot) {
          const std::uint64_t tx = load_acquire(exchange_.tx_flag(slot));
          return tx != 0 && tx != CUDAQ_TX_FLAG_IN_FLIGHT;
        }));
    if (waiting == 0 && !worked)
      return {};
    if (steady_clock::now() >= deadline)
      return make_reason(CUDAQ_ERR_TIMEOUT,
                         "%zu answers wait, because the system has had no room to send them for 100 ms; call "
                         "disconnect again to wait on",
                         waiting);
    if (waiting != 0)
      exchange_.socket().wait(false, kFlushPause);
  }
}

void datagram_ring::run() {
  std::uint32_t empty_turns = 0;
  while (stop_.load() == 0) {
    if (turn() != 0) {
      empty_turns = 0;
      asleep_ = false;
    } else {
      wait_for_work(empty_turns++);
    }
  }
}

void datagram_ring::wait_for_work(std::uint32_t empty_turns) {
  if (!asleep_) {
    if (empty_turns == 0) {
      idle_since_ = steady_clock::now();
    } else if (empty_turns % 16 == 0) {
      const auto idle = std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - idle_since_);
      asleep_ = static_cast<std::uint64_t>(idle.count()) >= exchange_.options().busy_poll_us;
    }
    if (!asleep_)
      return cpu_relax();
  }
  const bool quiet = in_flight_.empty() && room_ != 0;
  exchange_.socket().wait(true,
                          quiet ? std::chrono::nanoseconds(kSleepIdle) : std::chrono::nanoseconds(kSleepInFlight));
}

std::uint32_t datagram_ring::collect() {
  ++turns_;
  std::uint32_t closed = 0;
  num_queued_ = 0;
  for (const std::uint32_t slot : in_flight_) {
    if (num_queued_ == kUdpBatch)
      break;
    closed += poll_answer(slot);
  }
  if (num_queued_ != 0) {
    const std::uint32_t done = exchange_.send_answers();
    for (std::uint32_t i = 0; i < done; ++i) {
      exchange_.close(queued_[i]);
      store_release<std::uint64_t>(exchange_.tx_flag(queued_[i]), 0);
    }
    closed += done;
  }
  if (closed != 0)
    std::erase_if(in_flight_, [this](std::uint32_t slot) { return !exchange_.request(slot).open; });
  return std::max(closed, num_queued_);
}

bool datagram_ring::poll_answer(std::uint32_t slot) {
  const std::uint64_t tx = load_acquire(exchange_.tx_flag(slot));
  if (tx == CUDAQ_TX_FLAG_IN_FLIGHT)
    return false;
  if (tx == 0) {
    // Dropped if both flags are 0; the dispatcher sets tx before it clears rx, so rx is read first.
    if (turns_ % kTurnsPerDropCheck != 0 && room_ != 0)
      return false;
    if (load_acquire(exchange_.rx_flag(slot)) != 0 || load_acquire(exchange_.tx_flag(slot)) != 0)
      return false;
    exchange_.close_unanswered(slot);
    return true;
  }
  if (tx >> CUDAQ_TX_FLAG_ERROR_SHIFT == CUDAQ_TX_FLAG_ERROR_TAG)
    exchange_.queue_status(slot, CUDAQ_RPC_ERR_LAUNCH_FAILED);
  else
    exchange_.queue_answer(slot);
  queued_[num_queued_++] = slot;
  return false;
}

void datagram_ring::find_room() {
  while (room_ < kUdpBatch && room_ < slots_) {
    const std::uint32_t slot = (head_ + room_) % slots_;
    if (exchange_.request(slot).open || load_acquire(exchange_.rx_flag(slot)) != 0 ||
        load_acquire(exchange_.tx_flag(slot)) != 0)
      return;
    ++room_;
  }
}

std::uint32_t datagram_ring::receive() {
  find_room();
  if (room_ == 0 || exchange_.has_waiting_requests()) {
    std::uint32_t work = exchange_.receive_without_slot();
    while (room_ != 0 && exchange_.take_waiting(head_)) {
      signal(head_);
      ++work;
    }
    exchange_.send_refusals();
    return work;
  }
  for (std::uint32_t i = 0; i < room_; ++i)
    exchange_.set_target(i, (head_ + i) % slots_);
  const std::uint32_t n = exchange_.receive(room_);
  for (std::uint32_t i = 0; i < n; ++i)
    if (exchange_.accept_received(i, head_))
      signal(head_);
  exchange_.send_refusals();
  return n;
}

/// The request in the slot at the head is complete.
void datagram_ring::signal(std::uint32_t slot) {
  in_flight_.push_back(slot);
  store_release(exchange_.rx_flag(slot), reinterpret_cast<std::uint64_t>(exchange_.rx_slot(slot)));
  head_ = (slot + 1) % slots_;
  --room_;
}

} // namespace cudaq::realtime::detail

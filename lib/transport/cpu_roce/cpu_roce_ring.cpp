// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/cpu_roce/cpu_roce_ring.h"

#include <algorithm>

namespace cudaq::realtime::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kTurnsPerDropCheck = 64; // no peer waits for a dropped request
constexpr std::uint64_t kSleepNs = 50000;
constexpr auto kFlushTime = 100ms;
constexpr std::uint64_t kJoinTimeNs = 5000000000u;

} // namespace

expected<> cpu_roce_ring::launch() {
  exchange_.launch();
  thread_placement placement;
  placement.core = exchange_.options().core;
  return thread_.start("cudaq-cpu-roce", placement, [this] { run(); });
}

expected<> cpu_roce_ring::disconnect() {
  stop_.store(1);
  if (!thread_.join_until(deadline_after(kJoinTimeNs)))
    return make_reason(CUDAQ_ERR_TIMEOUT, "the provider's thread did not end");
  return {};
}

void cpu_roce_ring::run() {
  run_loop([this] { return turn(); }, [this] { return stop_.load() != 0; },
           idle_strategy(exchange_.options().wait, kSleepNs));
  const auto waits = [this](std::uint32_t slot) { // also while the dispatcher has not cleared rx yet
    const std::uint64_t tx = load_acquire(exchange_.tx_flag(slot));
    return tx != 0 && tx != CUDAQ_TX_FLAG_IN_FLIGHT;
  };
  const steady_clock::time_point deadline = steady_clock::now() + kFlushTime;
  while ((collect() != 0 || std::any_of(in_flight_.begin(), in_flight_.end(), waits)) &&
         steady_clock::now() < deadline) {
  }
}

std::uint32_t cpu_roce_ring::collect() {
  ++turns_;
  return static_cast<std::uint32_t>(
      std::erase_if(in_flight_, [this](std::uint32_t slot) { return poll_answer(slot); }));
}

bool cpu_roce_ring::poll_answer(std::uint32_t slot) {
  const std::uint64_t tx = load_acquire(exchange_.tx_flag(slot));
  if (tx == CUDAQ_TX_FLAG_IN_FLIGHT)
    return false;
  if (tx == 0) {
    // Dropped if both flags are 0; the dispatcher sets tx before it clears rx, so rx is read first.
    if (turns_ % kTurnsPerDropCheck != 0 && in_flight_.size() < exchange_.options().num_slots)
      return false;
    if (load_acquire(exchange_.rx_flag(slot)) != 0 || load_acquire(exchange_.tx_flag(slot)) != 0)
      return false;
    return exchange_.drop(slot).ok();
  }
  if (load_acquire(exchange_.rx_flag(slot)) !=
      0) // the dispatcher is about to clear it; then the slot may be used again
    return false;
  store_release<std::uint64_t>(exchange_.tx_flag(slot), 0);
  const bool failed = tx >> CUDAQ_TX_FLAG_ERROR_SHIFT == CUDAQ_TX_FLAG_ERROR_TAG;
  (void)exchange_.answer(slot, failed ? CUDAQ_RPC_ERR_LAUNCH_FAILED : 0); // refused: the connection has ended
  return true;
}

std::uint32_t cpu_roce_ring::receive() {
  std::uint32_t n = 0;
  while (n < exchange_.options().num_slots) {
    const std::optional<std::uint32_t> slot = exchange_.poll();
    if (!slot)
      break;
    ++n;
    in_flight_.push_back(*slot);
    store_release(exchange_.rx_flag(*slot), reinterpret_cast<std::uint64_t>(exchange_.rx_slot(*slot)));
  }
  return n;
}

} // namespace cudaq::realtime::detail

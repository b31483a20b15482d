// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/cpu_roce/cpu_roce_dataplane.h"

#include <algorithm>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint32_t kPollsPerDropCheck = 64;

} // namespace

cudaq_rx_status_t cpu_roce_dataplane::poll(std::uint32_t &slot) {
  const std::optional<std::uint32_t> arrived = exchange_.poll();
  if (!arrived) {
    if (!taken_.empty() && (taken_.size() == exchange_.options().num_slots || ++empty_polls_ % kPollsPerDropCheck == 0))
      take_back_dropped();
    return CUDAQ_RX_EMPTY;
  }
  slot = *arrived;
  taken_.push_back(slot);
  store_release<std::uint64_t>(exchange_.rx_flag(slot), 1);
  return CUDAQ_RX_READY;
}

expected<> cpu_roce_dataplane::publish(std::uint32_t slot) {
  const auto at = std::find(taken_.begin(), taken_.end(), slot);
  if (at == taken_.end())
    return make_reason(CUDAQ_ERR_INVALID_ARG, "slot %u: the loop does not have it", slot);
  *at = taken_.back();
  taken_.pop_back();
  store_release<std::uint64_t>(exchange_.rx_flag(slot), 0);
  return exchange_.answer(slot);
}

void cpu_roce_dataplane::take_back_dropped() {
  std::erase_if(taken_, [this](std::uint32_t slot) {
    return load_acquire(exchange_.rx_flag(slot)) == 0 && exchange_.drop(slot).ok();
  });
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/slot_link.h"

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "tools/common/api_objects.h"

namespace cudaq::realtime::tools {

void slot_link::use_ring(const cudaq_ringbuffer_t &ring, std::uint32_t num_slots) {
  ring_ = ring;
  slots_.resize(num_slots);
}

bool slot_link::send(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
                     std::uint64_t timestamp) {
  if (was_dropped(next_))
    close(next_);
  if (slots_[next_].open || !write(next_, id, function_id, payload, timestamp))
    return false;
  slots_[next_] = {id, true, false};
  ++open_;
  next_ = after(next_);
  return true;
}

bool slot_link::write(std::uint32_t slot, std::uint32_t id, std::uint32_t function_id,
                      std::span<const std::uint8_t> payload, std::uint64_t timestamp) {
  if (cudaq_host_ringbuffer_slot_available(&ring_, slot) != 1)
    return false;
  require_ok(cudaq_host_ringbuffer_write_rpc_request(&ring_, slot, function_id, payload.data(),
                                                     static_cast<std::uint32_t>(payload.size()), id, timestamp),
             "cudaq_host_ringbuffer_write_rpc_request");
  signal(slot);
  return true;
}

std::optional<link_answer> slot_link::receive() {
  give_back();
  std::uint32_t seen = 0;
  for (std::uint32_t slot = first_; seen < open_; slot = after(slot)) {
    if (!slots_[slot].open)
      continue;
    ++seen;
    int cuda_error = 0;
    const cudaq_tx_status_t tx = cudaq_host_ringbuffer_poll_tx_flag(&ring_, slot, &cuda_error);
    if (tx != CUDAQ_TX_READY && tx != CUDAQ_TX_ERROR)
      continue;
    close(slot);
    read_ = slot;
    link_answer answer;
    const void *result = nullptr;
    if (tx == CUDAQ_TX_READY &&
        cudaq_host_ringbuffer_read_rpc_response(&ring_, slot, &answer.header, &result) == CUDAQ_OK &&
        answer.header.request_id == slots_[slot].id) {
      answer.result = {static_cast<const std::uint8_t *>(result), answer.header.result_len};
      return answer;
    }
    ++unexpected_;
    give_back();
  }
  return std::nullopt;
}

void slot_link::give_up(std::uint32_t id) {
  for (slot_state &s : slots_)
    s.given_up = s.given_up || (s.open && s.id == id);
}

void slot_link::close(std::uint32_t slot) {
  slots_[slot].open = false;
  --open_;
  while (open_ != 0 && !slots_[first_].open)
    first_ = after(first_);
  if (open_ == 0)
    first_ = next_;
}

/// An answer would stay in the slot until it is collected.
bool slot_link::was_dropped(std::uint32_t slot) const {
  return slots_[slot].open && slots_[slot].given_up && cudaq_host_ringbuffer_slot_available(&ring_, slot) == 1;
}

void slot_link::give_back() {
  if (read_ == kNone)
    return;
  cudaq_host_ringbuffer_clear_slot(&ring_, read_);
  read_ = kNone;
}

} // namespace cudaq::realtime::tools

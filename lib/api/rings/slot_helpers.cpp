// SPDX-License-Identifier: Apache-2.0
// The producer's and the consumer's moves on the host view, for software that plays the control system.
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/detail/ring/frame.h"
#include "cudaq/realtime/detail/ring/free_by_count.h"
#include "cudaq/realtime/detail/ring/ring_record.h"
#include "cudaq/realtime/detail/ring/ring_view.h"
#include "lib/api/validation.h"

#include <algorithm>

using namespace cudaq::realtime::detail;

namespace {

// A closed loop waits for several of these helpers in each exchange. So a call that is right tests its arguments
// inline, and makes no expected<>; a struct that goes through memory costs more than the flag.

/// The host view as a slot_ring of unknown length.
[[gnu::always_inline]] inline slot_ring view_of(const cudaq_ringbuffer_t &rb) {
  return with_answers_in_place(host_view(rb, 0, 0));
}

/// The free test of a ring whose tx flags lie where those of a ring with laps lie. Counts and laps must be between the
/// flags and the slots: another process may be able to write the record.
[[gnu::noinline]] bool is_free_with_record(const cudaq_ringbuffer_t &rb, std::uint32_t slot) {
  const auto words = [](const volatile void *flags, const void *slots) {
    const auto from = reinterpret_cast<std::uintptr_t>(flags), to = reinterpret_cast<std::uintptr_t>(slots);
    return to > from ? (to - from) / sizeof(std::uint64_t) : 0;
  };
  slot_ring ring = view_of(rb);
  const ring_record *const record = find_record(rb.tx_flags_host, /*of_this_process=*/false);
  const std::size_t distance = record != nullptr ? load_relaxed(record->lap_offset) : 0;
  const std::size_t room = std::min(words(rb.rx_flags_host, rb.rx_data_host), words(rb.tx_flags_host, rb.tx_data_host));
  if (distance == 0 || slot >= room || distance >= room - slot)
    return ring.free_for_producer(slot);
  ring.lap_offset = distance;
  return is_free_by_count(ring, slot);
}

bool has_host_view(const cudaq_ringbuffer_t *rb) {
  return rb != nullptr && rb->rx_flags_host != nullptr && rb->tx_flags_host != nullptr && rb->rx_data_host != nullptr;
}

/// True if check_host_view finds no reason.
bool is_good_view(const cudaq_ringbuffer_t *rb) {
  if (!has_host_view(rb) || rb->rx_flags_host == rb->tx_flags_host)
    return false;
  const bool has_tx = rb->tx_data_host != nullptr, has_tx_stride = has_tx && rb->tx_data_host != rb->rx_data_host;
  if (!has_tx && rb->tx_data != nullptr && rb->tx_data != rb->rx_data)
    return false;
  const std::size_t tx_stride = has_tx_stride ? rb->tx_stride_sz : rb->rx_stride_sz;
  const std::uintptr_t all = reinterpret_cast<std::uintptr_t>(rb->rx_flags_host) |
                             reinterpret_cast<std::uintptr_t>(rb->tx_flags_host) |
                             reinterpret_cast<std::uintptr_t>(rb->rx_data_host) |
                             reinterpret_cast<std::uintptr_t>(rb->tx_data_host) | rb->rx_stride_sz | tx_stride;
  return all % 8 == 0 && rb->rx_stride_sz >= CUDAQ_RPC_HEADER_SIZE && tx_stride >= CUDAQ_RPC_HEADER_SIZE;
}

expected<> check_host_view(const cudaq_ringbuffer_t *rb) {
  if (rb == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "rb is NULL");
  if (expected<> result = check_host_views(*rb); result.failed())
    return result;
  const std::size_t tx_stride = is_in_place(*rb, ring_side::host) ? rb->rx_stride_sz : rb->tx_stride_sz;
  if (rb->rx_stride_sz % 8 != 0 || tx_stride % 8 != 0 || rb->rx_stride_sz < CUDAQ_RPC_HEADER_SIZE ||
      tx_stride < CUDAQ_RPC_HEADER_SIZE)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "rb->rx_stride_sz is %zu, tx_stride_sz %zu: both must be multiples of 8, "
                       "at least 24",
                       rb->rx_stride_sz, tx_stride);
  return check_alignment(*rb, ring_side::host);
}

} // namespace

extern "C" {

int cudaq_host_ringbuffer_slot_available(const cudaq_ringbuffer_t *rb, uint32_t slot_idx) {
  if (!has_host_view(rb))
    return 0;
  if (reinterpret_cast<std::uintptr_t>(rb->tx_flags_host) % kPageBytes == kFlagsOffsetInPage) [[unlikely]]
    return is_free_with_record(*rb, slot_idx) ? 1 : 0;
  return view_of(*rb).free_for_producer(slot_idx) ? 1 : 0;
}

cudaq_status_t cudaq_host_ringbuffer_write_rpc_request(const cudaq_ringbuffer_t *rb, uint32_t slot_idx,
                                                       uint32_t function_id, const void *payload, uint32_t payload_len,
                                                       uint32_t request_id, uint64_t ptp_timestamp) {
  const bool fits = is_good_view(rb) && std::uint64_t{payload_len} + CUDAQ_RPC_HEADER_SIZE <= rb->rx_stride_sz;
  if (fits && (payload != nullptr || payload_len == 0)) [[likely]] {
    std::uint8_t *slot = view_of(*rb).rx_slot(slot_idx);
    write_request(slot, request{CUDAQ_RPC_MAGIC_REQUEST, function_id, payload_len, request_id, ptp_timestamp});
    if (payload_len != 0)
      std::memcpy(slot + CUDAQ_RPC_HEADER_SIZE, payload, payload_len);
    return CUDAQ_OK;
  }
  return guarded_brief(__func__, [&]() -> expected<> {
    if (expected<> result = check_host_view(rb); result.failed())
      return result;
    if (payload == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "payload is NULL but payload_len is %u", payload_len);
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "payload_len is %u: it must fit after the 24 byte header in a slot of %zu bytes", payload_len,
                       rb->rx_stride_sz);
  });
}

void cudaq_host_ringbuffer_signal_slot(const cudaq_ringbuffer_t *rb, uint32_t slot_idx) {
  if (!has_host_view(rb))
    return;
  // The memory may be write-combining, which cudaq_ringbuffer_t does not tell.
  fence_posted_stores();
  view_of(*rb).signal(slot_idx);
  fence_posted_stores();
}

cudaq_tx_status_t cudaq_host_ringbuffer_poll_tx_flag(const cudaq_ringbuffer_t *rb, uint32_t slot_idx,
                                                     int *out_cuda_error) {
  if (out_cuda_error != nullptr)
    *out_cuda_error = 0;
  const std::uint64_t flag = has_host_view(rb) ? view_of(*rb).answer(slot_idx) : 0;
  if (flag == 0)
    return CUDAQ_TX_EMPTY;
  if (flag == CUDAQ_TX_FLAG_IN_FLIGHT)
    return CUDAQ_TX_IN_FLIGHT;
  if (flag >> CUDAQ_TX_FLAG_ERROR_SHIFT != CUDAQ_TX_FLAG_ERROR_TAG)
    return CUDAQ_TX_READY;
  if (out_cuda_error != nullptr)
    *out_cuda_error = static_cast<int>(flag & 0xFFFFFFFFu);
  return CUDAQ_TX_ERROR;
}

cudaq_status_t cudaq_host_ringbuffer_read_rpc_response(const cudaq_ringbuffer_t *rb, uint32_t slot_idx,
                                                       cudaq_rpc_response_t *out_header, const void **out_result) {
  response header{};
  std::size_t stride = 0;
  if (is_good_view(rb) && out_header != nullptr && out_result != nullptr) [[likely]] {
    const slot_ring ring = view_of(*rb);
    stride = ring.tx_stride;
    header = read_header<response>(ring.tx_slot(slot_idx));
    if (header.magic == CUDAQ_RPC_MAGIC_RESPONSE && std::uint64_t{header.result_len} + CUDAQ_RPC_HEADER_SIZE <= stride)
        [[likely]] {
      std::memcpy(out_header, &header, sizeof(header));
      *out_result = ring.tx_slot(slot_idx) + CUDAQ_RPC_HEADER_SIZE;
      return CUDAQ_OK;
    }
  }
  return guarded_brief(__func__, [&]() -> expected<> {
    if (expected<> result = check_host_view(rb); result.failed())
      return result;
    if (out_header == nullptr || out_result == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", out_header == nullptr ? "out_header" : "out_result");
    if (header.magic != CUDAQ_RPC_MAGIC_RESPONSE)
      return make_reason(CUDAQ_ERR_INTERNAL, "slot %u holds no response: magic is 0x%08x", slot_idx, header.magic);
    return make_reason(CUDAQ_ERR_INTERNAL, "slot %u holds no response: result_len is %u, the stride is only %zu",
                       slot_idx, header.result_len, stride);
  });
}

void cudaq_host_ringbuffer_clear_slot(const cudaq_ringbuffer_t *rb, uint32_t slot_idx) {
  if (has_host_view(rb))
    view_of(*rb).collect(slot_idx);
}

} // extern "C"

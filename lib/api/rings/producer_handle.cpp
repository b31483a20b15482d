// SPDX-License-Identifier: Apache-2.0
// The producer's handle of ring_producer.h: arguments and frames. Which slot is free, and the order of the signals, is
// in lib/ring/producer_core.h.
#include "lib/ring/producer_core.h"

#include "cudaq/realtime/daemon/dispatcher/ring_producer.h"
#include "cudaq/realtime/detail/ring/frame.h"
#include "cudaq/realtime/detail/ring/ring_view.h"
#include "lib/api/rings/ring_memory.h"
#include "lib/api/validation.h"
#include "lib/base/cpu_relax.h"

#include <algorithm>
#include <chrono>

using namespace cudaq::realtime::detail;

struct cudaq_ringbuffer_producer_t {
  cudaq_ringbuffer_memory_t *memory; ///< NULL: the ring of another process
  producer_core core;
};

namespace {

using clock_type = std::chrono::steady_clock;
constexpr std::size_t kHeader = CUDAQ_RPC_HEADER_SIZE;
constexpr std::size_t kFirstPayload = kLineBytes - kHeader; ///< payload bytes in the line of the header

/// The CPU's view of the requests.
slot_ring view_of(const cudaq_ringbuffer_memory_t &m) {
  slot_ring view =
      with_answers_in_place(host_view(m.ring, m.num_slots, static_cast<std::uint32_t>(m.ring.rx_stride_sz)));
  view.lap_offset = m.record->lap_offset;
  return view;
}

expected<> check_ring_of_process(const cudaq_ringbuffer_t &ring, std::uint32_t num_slots, std::uint32_t kind) {
  if (kind == CUDAQ_MEMORY_DEVICE)
    return make_reason(CUDAQ_ERR_UNSUPPORTED, "memory_kind is 2 (device memory): the CPU cannot write the ring; use 3 "
                                              "(requests in device memory)");
  if (kind > CUDAQ_MEMORY_DEVICE_RX)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "memory_kind is %u: accepted are 0 (host), 1 (mapped) and 3 (requests in "
                       "device memory)",
                       kind);
  if (num_slots == 0 || num_slots > kMaxSlots)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "num_slots is %u: accepted are 1 to %u", num_slots, kMaxSlots);
  if (expected<> result = check_host_views(ring); result.failed())
    return result;
  if (expected<> result = check_alignment(ring, ring_side::host); result.failed())
    return result;
  if (ring.rx_stride_sz < kHeader || ring.rx_stride_sz % 8 != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "ring->rx_stride_sz is %zu: it must be a multiple of 8, at least 24",
                       ring.rx_stride_sz);
  if (kind != CUDAQ_MEMORY_DEVICE_RX)
    return {};
  if (is_in_place(ring, ring_side::host))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "the ring is in place, and memory_kind is 3: answers are not in device "
                                              "memory, so they have an array of their own");
  if ((reinterpret_cast<std::uintptr_t>(ring.rx_data_host) | ring.rx_stride_sz) % kLineBytes != 0)
    return make_reason(
        CUDAQ_ERR_INVALID_ARG,
        "ring->rx_data_host is %p and rx_stride_sz %zu: with memory_kind 3 both must be multiples of %zu",
        static_cast<const void *>(ring.rx_data_host), ring.rx_stride_sz, kLineBytes);
  return {};
}

/// Writes whole lines, the rest of the last one as zeros: the slot ends at the end of a line.
void write_lines(std::uint8_t *to, const request &r, const std::uint8_t *payload) {
  alignas(kLineBytes) std::uint8_t line[kLineBytes] = {};
  std::memcpy(line, &r, kHeader);
  std::size_t done = std::min<std::size_t>(r.arg_len, kFirstPayload);
  if (done != 0)
    std::memcpy(line + kHeader, payload, done);
  store_line(to, line);
  for (to += kLineBytes; r.arg_len - done >= kLineBytes; to += kLineBytes, done += kLineBytes)
    store_line(to, payload + done);
  if (done == r.arg_len)
    return;
  std::memset(line, 0, sizeof(line));
  std::memcpy(line, payload + done, r.arg_len - done);
  store_line(to, line);
}

void write_frame(const producer_core &ring, std::uint32_t slot, const request &r, const void *payload) {
  std::uint8_t *const to = ring.frame(slot);
  if (ring.with_laps())
    return write_lines(to, r, static_cast<const std::uint8_t *>(payload));
  write_request(to, r);
  if (r.arg_len != 0)
    std::memcpy(to + kHeader, payload, r.arg_len);
}

expected<> check_claimed(const cudaq_ringbuffer_producer_t *producer, std::uint32_t slot) {
  if (producer == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "producer is NULL");
  if (!producer->core.is_claimed(slot))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "slot %u is not claimed; the ring has %u slots", slot,
                       producer->core.num_slots());
  return {};
}

expected<> check_payload(const producer_core &ring, const void *payload, std::uint32_t bytes) {
  if (payload == nullptr && bytes != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "payload is NULL but payload_len is %u", bytes);
  if (kHeader + bytes > ring.stride())
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "payload_len is %u: it must fit after the 24 byte header in a slot of %zu bytes", bytes,
                       ring.stride());
  return {};
}

/// Claims the next slot, and waits for it until the deadline.
bool claim_within(producer_core &ring, std::uint64_t timeout_ns, std::uint32_t &slot) {
  if (ring.claim(slot))
    return true;
  const auto begun = clock_type::now();
  for (;;) {
    cpu_relax();
    if (ring.claim(slot))
      return true;
    const auto waited = std::chrono::duration_cast<std::chrono::nanoseconds>(clock_type::now() - begun).count();
    if (static_cast<std::uint64_t>(waited) >= timeout_ns)
      return false;
  }
}

} // namespace

extern "C" {

cudaq_status_t cudaq_ringbuffer_producer_open(cudaq_ringbuffer_memory_t *memory,
                                              cudaq_ringbuffer_producer_t **out_producer) {
  return guarded(__func__, [&]() -> expected<> {
    if (memory == nullptr || out_producer == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", memory == nullptr ? "memory" : "out_producer");
    if (memory->record == nullptr)
      return make_reason(CUDAQ_ERR_UNSUPPORTED,
                         "the ring has memory_kind %u (device memory): the CPU cannot write it; "
                         "use 3 (requests in device memory)",
                         memory->memory_kind);
    if (!memory->producers.claim(0, 1))
      return make_reason(CUDAQ_ERR_STATE, "a producer's handle is open on the ring; close it first, or share it");
    try {
      *out_producer = new cudaq_ringbuffer_producer_t{memory, producer_core(view_of(*memory), memory->next_slot)};
    } catch (...) {
      memory->producers.store(0);
      throw;
    }
    return {};
  });
}

cudaq_status_t cudaq_ringbuffer_producer_open_ring(const cudaq_ringbuffer_t *ring, uint32_t num_slots,
                                                   uint32_t memory_kind, cudaq_ringbuffer_producer_t **out_producer) {
  return guarded(__func__, [&]() -> expected<> {
    if (ring == nullptr || out_producer == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", ring == nullptr ? "ring" : "out_producer");
    if (expected<> result = check_ring_of_process(*ring, num_slots, memory_kind); result.failed())
      return result;
    slot_ring view = with_answers_in_place(host_view(*ring, num_slots, static_cast<std::uint32_t>(ring->rx_stride_sz)));
    view.lap_offset = memory_kind == CUDAQ_MEMORY_DEVICE_RX ? lap_distance(num_slots) : 0;
    *out_producer = new cudaq_ringbuffer_producer_t{nullptr, producer_core(view, 0)};
    return {};
  });
}

cudaq_status_t cudaq_ringbuffer_producer_close(cudaq_ringbuffer_producer_t *producer) {
  return guarded(__func__, [&]() -> expected<> {
    if (producer == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "producer is NULL");
    if (!producer->core.idle())
      return make_reason(CUDAQ_ERR_STATE, "a slot is claimed; commit it or abort it first");
    cudaq_ringbuffer_memory_t *const memory = producer->memory;
    if (memory != nullptr)
      memory->next_slot = producer->core.next_slot();
    delete producer;
    if (memory != nullptr)
      memory->producers.store(0);
    return {};
  });
}

cudaq_status_t cudaq_ringbuffer_producer_claim(cudaq_ringbuffer_producer_t *producer, uint32_t max_count,
                                               uint32_t *out_slot, uint32_t *out_count) {
  return guarded_brief(__func__, [&]() -> expected<> {
    if (producer == nullptr || out_slot == nullptr || out_count == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL",
                         producer == nullptr   ? "producer"
                         : out_slot == nullptr ? "out_slot"
                                               : "out_count");
    producer->core.claim(max_count, *out_slot, *out_count);
    return {};
  });
}

cudaq_status_t cudaq_ringbuffer_producer_write(cudaq_ringbuffer_producer_t *producer, uint32_t slot,
                                               uint32_t function_id, const void *payload, uint32_t payload_len,
                                               uint32_t request_id, uint64_t ptp_timestamp) {
  return guarded_brief(__func__, [&]() -> expected<> {
    if (expected<> result = check_claimed(producer, slot); result.failed())
      return result;
    if (expected<> result = check_payload(producer->core, payload, payload_len); result.failed())
      return result;
    write_frame(producer->core, slot, {CUDAQ_RPC_MAGIC_REQUEST, function_id, payload_len, request_id, ptp_timestamp},
                payload);
    return {};
  });
}

cudaq_status_t cudaq_ringbuffer_producer_payload(cudaq_ringbuffer_producer_t *producer, uint32_t slot,
                                                 void **out_payload, size_t *out_bytes) {
  return guarded_brief(__func__, [&]() -> expected<> {
    if (expected<> result = check_claimed(producer, slot); result.failed())
      return result;
    if (out_payload == nullptr || out_bytes == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", out_payload == nullptr ? "out_payload" : "out_bytes");
    *out_payload = producer->core.frame(slot) + kHeader;
    *out_bytes = producer->core.stride() - kHeader;
    return {};
  });
}

cudaq_status_t cudaq_ringbuffer_producer_write_header(cudaq_ringbuffer_producer_t *producer, uint32_t slot,
                                                      uint32_t function_id, uint32_t payload_len, uint32_t request_id,
                                                      uint64_t ptp_timestamp) {
  return guarded_brief(__func__, [&]() -> expected<> {
    if (expected<> result = check_claimed(producer, slot); result.failed())
      return result;
    std::uint8_t *const frame = producer->core.frame(slot);
    if (expected<> result = check_payload(producer->core, frame, payload_len); result.failed())
      return result;
    write_request(frame, {CUDAQ_RPC_MAGIC_REQUEST, function_id, payload_len, request_id, ptp_timestamp});
    return {};
  });
}

cudaq_status_t cudaq_ringbuffer_producer_commit(cudaq_ringbuffer_producer_t *producer, uint32_t slot, uint32_t count) {
  return guarded_brief(__func__, [&]() -> expected<> {
    if (producer == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "producer is NULL");
    const std::uint32_t slots = producer->core.num_slots();
    if (count == 0 || count > slots)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "count is %u; the ring has %u slots", count, slots);
    for (std::uint32_t k = 0; k < count; ++k)
      if (expected<> result = check_claimed(producer, slot < slots ? (slot + k) % slots : slot); result.failed())
        return result;
    producer->core.commit(slot, count);
    return {};
  });
}

cudaq_status_t cudaq_ringbuffer_producer_abort(cudaq_ringbuffer_producer_t *producer, uint32_t slot) {
  return guarded_brief(__func__, [&]() -> expected<> {
    if (expected<> result = check_claimed(producer, slot); result.failed())
      return result;
    write_request(producer->core.frame(slot), {});
    producer->core.commit(slot, 1);
    return {};
  });
}

cudaq_status_t cudaq_ringbuffer_producer_send(cudaq_ringbuffer_producer_t *producer, uint32_t function_id,
                                              const void *payload, uint32_t payload_len, uint32_t request_id,
                                              uint64_t ptp_timestamp, uint64_t timeout_ns, uint32_t *out_slot) {
  return guarded_brief(__func__, [&]() -> expected<> {
    if (producer == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "producer is NULL");
    producer_core &ring = producer->core;
    if (expected<> result = check_payload(ring, payload, payload_len); result.failed())
      return result;
    std::uint32_t slot = 0;
    if (!claim_within(ring, timeout_ns, slot))
      return make_reason(CUDAQ_ERR_TIMEOUT, "slot %u did not become free within %llu ns", ring.next_slot(),
                         static_cast<unsigned long long>(timeout_ns));
    write_frame(ring, slot, {CUDAQ_RPC_MAGIC_REQUEST, function_id, payload_len, request_id, ptp_timestamp}, payload);
    ring.commit(slot, 1);
    if (out_slot != nullptr)
      *out_slot = slot;
    return {};
  });
}

} // extern "C"

// SPDX-License-Identifier: Apache-2.0
// Rules for the ring.
#include "cudaq/realtime/detail/ring/ring_record.h"
#include "lib/api/rules.h"
#include "lib/api/validation.h"
#include "lib/kernel_abi/graph_params.h"

#include <array>
#include <string>

namespace cudaq::realtime::detail {
namespace {

struct named_array {
  const char *field;
  const volatile void *base;
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(base); }
};

/// RX flags, TX flags, RX data, TX data.
std::array<named_array, 4> arrays_of(const cudaq_ringbuffer_t &r, ring_side side) {
  if (side == ring_side::device)
    return {{{"rx_flags", r.rx_flags}, {"tx_flags", r.tx_flags}, {"rx_data", r.rx_data}, {"tx_data", r.tx_data}}};
  return {{{"rx_flags_host", r.rx_flags_host},
           {"tx_flags_host", r.tx_flags_host},
           {"rx_data_host", r.rx_data_host},
           {"tx_data_host", r.tx_data_host}}};
}

expected<> same_flags(const named_array &rx, const named_array &tx) {
  if (rx.base != tx.base)
    return {};
  return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s and %s are the same array", rx.field, tx.field);
}

} // namespace

bool is_in_place(const cudaq_ringbuffer_t &r, ring_side side) {
  const auto arrays = arrays_of(r, side);
  return arrays[3].base == nullptr || arrays[3].base == arrays[2].base;
}

std::size_t usable_slot_bytes(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c, ring_side side) {
  if (c.slot_size != 0)
    return c.slot_size;
  return is_in_place(r, side) || r.rx_stride_sz < r.tx_stride_sz ? r.rx_stride_sz : r.tx_stride_sz;
}

expected<> check_host_views(const cudaq_ringbuffer_t &r) {
  const auto missing = [](const char *field) {
    return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is NULL; the host path needs it", field);
  };
  if (r.rx_flags_host == nullptr)
    return missing("rx_flags_host");
  if (r.tx_flags_host == nullptr)
    return missing("tx_flags_host");
  if (r.rx_data_host == nullptr)
    return missing("rx_data_host");
  if (r.tx_data_host == nullptr && r.tx_data != nullptr && r.tx_data != r.rx_data)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "ringbuffer->tx_data_host is NULL (in place) but tx_data is another array than rx_data");
  const auto arrays = arrays_of(r, ring_side::host);
  return same_flags(arrays[0], arrays[1]);
}

expected<> check_device_views(const cudaq_ringbuffer_t &r) {
  const auto arrays = arrays_of(r, ring_side::device);
  for (const named_array &a : arrays)
    if (a.base == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is NULL; the device path needs it%s", a.field,
                         &a == &arrays[3] ? " (in place: rx_data)" : "");
  return same_flags(arrays[0], arrays[1]);
}

expected<> check_alignment(const cudaq_ringbuffer_t &r, ring_side side) {
  for (const named_array &a : arrays_of(r, side))
    if (a.address() % 8 != 0)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is %p, not a multiple of 8", a.field,
                         const_cast<const void *>(a.base));
  return {};
}

expected<> check_strides(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c, ring_side side) {
  const auto check = [&c](const char *field, std::size_t stride) -> expected<> {
    if (stride < CUDAQ_RPC_HEADER_SIZE)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is %zu, a header has 24 bytes", field, stride);
    if (stride % 8 != 0)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is %zu, not a multiple of 8", field, stride);
    if (stride < c.slot_size)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is %zu, less than config->slot_size %u", field, stride,
                         c.slot_size);
    if (stride > UINT32_MAX)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is %zu, allowed: at most 4294967295", field, stride);
    return {};
  };
  if (expected<> result = check("rx_stride_sz", r.rx_stride_sz); result.failed())
    return result;
  if (!is_in_place(r, side))
    return check("tx_stride_sz", r.tx_stride_sz);
  if (r.tx_stride_sz != 0 && r.tx_stride_sz != r.rx_stride_sz)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "ringbuffer->tx_stride_sz is %zu; in place it must be 0 or rx_stride_sz, %zu", r.tx_stride_sz,
                       r.rx_stride_sz);
  return {};
}

expected<> check_overlap(const cudaq_ringbuffer_t &r, std::uint32_t known_slots, ring_side side) {
  const auto arrays = arrays_of(r, side);
  const std::size_t slots = known_slots;
  const std::size_t bytes[4] = {slots * sizeof(std::uint64_t), slots * sizeof(std::uint64_t), slots * r.rx_stride_sz,
                                slots * r.tx_stride_sz};
  const std::size_t count = is_in_place(r, side) ? 3 : 4;
  const std::string which = known_slots == 1 ? "the first slot" : std::to_string(known_slots) + " slots";
  for (std::size_t a = 0; a < count; ++a)
    if (arrays[a].address() > UINTPTR_MAX - bytes[a])
      return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s reaches beyond the address space (%s)", arrays[a].field,
                         which.c_str());
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b)
      if (arrays[a].address() < arrays[b].address() + bytes[b] && arrays[b].address() < arrays[a].address() + bytes[a])
        return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s and %s overlap (%s)", arrays[a].field,
                           arrays[b].field, which.c_str());
  return {};
}

expected<> check_staging(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c) {
  const std::size_t usable = usable_slot_bytes(r, c, ring_side::device);
  if (!is_in_place(r, ring_side::device) || usable <= kDeviceStagingBytes)
    return {};
  return make_reason(CUDAQ_ERR_INVALID_ARG,
                     "ringbuffer->tx_data is rx_data (in place) with slots of %zu usable bytes: "
                     "on the device path an in-place slot has at most %u",
                     usable, kDeviceStagingBytes);
}

expected<> check_requests_are_near(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c) {
  const ring_record *const record = find_record(r.tx_flags_host);
  if (record == nullptr || load_relaxed(record->lap_offset) == 0)
    return {};
  if (find_lap_record(r.tx_flags_host, c.num_slots) == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "config->num_slots is %u; the ring was made with another number, and its requests are in device "
                       "memory: both must be the same",
                       c.num_slots);
  const bool host = c.dispatch_path == CUDAQ_DISPATCH_PATH_HOST;
  if (!host && c.shared_ring_mode == 0)
    return {};
  return make_reason(CUDAQ_ERR_UNSUPPORTED,
                     "the ring's requests are in device memory (memory_kind 3), and %s: the CPU would read each "
                     "request across the bus; use memory_kind 1 (mapped)",
                     host ? "config->dispatch_path is 1 (host)"
                          : "config->shared_ring_mode is set, so that the host routes the requests");
}

expected<> validate_host_ring(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c,
                              std::uint32_t known_slots) {
  constexpr ring_side side = ring_side::host;
  return first_of([&] { return check_host_views(r); }, [&] { return check_alignment(r, side); },
                  [&] { return check_requests_are_near(r, c); }, [&] { return check_strides(r, c, side); },
                  [&] { return check_overlap(r, known_slots, side); });
}

expected<> check_shared_views(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c) {
  if (c.shared_ring_mode == 0)
    return {};
  const bool in_place = is_in_place(r, ring_side::device);
  if (c.num_slots > ring_inbox::kMaxSlots)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "config->num_slots is %u, a kernel's shared ring has at most %u",
                       c.num_slots, ring_inbox::kMaxSlots);
  const named_array needed[] = {{"rx_flags_host", r.rx_flags_host},
                                {"tx_flags_host", r.tx_flags_host},
                                {"rx_data_host", r.rx_data_host},
                                {"tx_data_host", in_place ? r.rx_data_host : r.tx_data_host}};
  for (const named_array &a : needed)
    if (a.base == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG,
                         "ringbuffer->%s is NULL; config->shared_ring_mode is %u, and the host routes the requests of "
                         "a shared ring",
                         a.field, c.shared_ring_mode);
  if (in_place != is_in_place(r, ring_side::host))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer: one view is in place (tx_data is NULL or rx_data) and the "
                                              "other is not; the host routes a shared ring, so both must agree");
  return validate_host_ring(r, c, c.num_slots);
}

expected<> validate_device_ring(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c) {
  constexpr ring_side side = ring_side::device;
  return first_of([&] { return check_device_views(r); }, [&] { return check_alignment(r, side); },
                  [&] { return check_requests_are_near(r, c); }, [&] { return check_strides(r, c, side); },
                  [&] { return check_overlap(r, c.num_slots, side); }, [&] { return check_staging(r, c); },
                  [&] { return check_shared_views(r, c); });
}

} // namespace cudaq::realtime::detail

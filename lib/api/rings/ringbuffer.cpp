// SPDX-License-Identifier: Apache-2.0
// Rings: where the arrays lie in their memory.
//
//   kind              block in host memory                          block in device memory
//   HOST, MAPPED      record | rx flags | tx flags | rx slots | tx slots
//   DEVICE                                                          rx flags | tx flags | rx slots | tx slots
//   DEVICE_RX         record | tx flags | laps | tx slots           rx flags | counts | rx slots
//
// In place there are no tx slots. The lap of a slot is as far from its tx flag as the count from its rx flag.
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "lib/api/options.h"
#include "lib/api/rings/ring_memory.h"

#include <cstddef>
#include <new>

using namespace cudaq::realtime::detail;

namespace {

constexpr std::size_t kLine = 128;

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

/// Sizes in bytes.
struct layout {
  std::size_t flags, stride, slots; ///< one array of flags; from one slot to the next; one array of slots
  bool in_place;

  explicit layout(const cudaq_ringbuffer_options_t &o)
      : flags(flag_bytes(o.num_slots)), stride(round_up(o.slot_size, 64)), slots(round_up(o.num_slots * stride, kLine)),
        in_place(o.in_place != 0) {}
  std::size_t both_sides() const { return 2 * flags + (in_place ? 1 : 2) * slots; }
  std::size_t one_side() const { return 2 * flags + slots; }
};

volatile std::uint64_t *flags_at(std::uint8_t *at) { return reinterpret_cast<volatile std::uint64_t *>(at); }

/// Rings whose four arrays are in one block.
void fill_view(std::uint8_t *base, const layout &at, volatile std::uint64_t *&rx_flags,
               volatile std::uint64_t *&tx_flags, std::uint8_t *&rx_data, std::uint8_t *&tx_data) {
  rx_flags = flags_at(base);
  tx_flags = flags_at(base + at.flags);
  rx_data = base + 2 * at.flags;
  tx_data = at.in_place ? nullptr : rx_data + at.slots;
}

/// Makes the record in a block of host memory; returns the offset of the flags after it.
std::size_t make_record(cudaq_ringbuffer_memory_t &memory, std::size_t lap_offset) {
  auto *const base = static_cast<std::uint8_t *>(memory.base);
  std::size_t begin = sizeof(ring_record);
  begin +=
      (kPageBytes + kFlagsOffsetInPage - (reinterpret_cast<std::uintptr_t>(base) + begin) % kPageBytes) % kPageBytes;
  auto *const record = new (base + begin - sizeof(ring_record)) ring_record{};
  record->magic[0] = kRecordMagic[0], record->magic[1] = kRecordMagic[1];
  record->self = reinterpret_cast<std::uint64_t>(record);
  record->lap_offset = lap_offset;
  memory.record = record;
  return begin;
}

/// Frees the parts in `memory` unless the ring is complete.
struct allocation_guard {
  cudaq_ringbuffer_memory_t &memory;
  bool keep = false;
  ~allocation_guard() {
    if (!keep)
      (void)free_block(memory);
  }
};

expected<> create_in_one_block(const cudaq_ringbuffer_options_t &o, cudaq_ringbuffer_memory_t &memory) {
  const layout at(o);
  const bool in_host_memory = memory.memory_kind != CUDAQ_MEMORY_DEVICE;
  memory.bytes = at.both_sides() + (in_host_memory ? sizeof(ring_record) + kPageBytes : 0);
  if (expected<> result = allocate_block(o, memory); result.failed())
    return result;
  allocation_guard guard{memory};
  cudaq_ringbuffer_t &ring = memory.ring;
  ring.rx_stride_sz = ring.tx_stride_sz = at.stride;
  std::size_t begin = 0;
  if (in_host_memory) {
    begin = make_record(memory, 0);
    fill_view(static_cast<std::uint8_t *>(memory.base) + begin, at, ring.rx_flags_host, ring.tx_flags_host,
              ring.rx_data_host, ring.tx_data_host);
  }
  if (memory.memory_kind != CUDAQ_MEMORY_HOST) {
    std::uint8_t *device = nullptr;
    if (expected<> result = device_address(memory, device); result.failed())
      return result;
    fill_view(device + begin, at, ring.rx_flags, ring.tx_flags, ring.rx_data, ring.tx_data);
    if (at.in_place)
      ring.tx_data = ring.rx_data; // the device path needs tx_data to be set
  }
  guard.keep = true;
  return {};
}

expected<> create_in_two_blocks(const cudaq_ringbuffer_options_t &o, cudaq_ringbuffer_memory_t &memory) {
  const layout at(o);
  if (expected<> result = map_requests(o, at.one_side(), memory); result.failed())
    return result;
  memory.bytes = at.one_side() + sizeof(ring_record) + kPageBytes;
  if (expected<> result = allocate_block(o, memory); result.failed())
    return result;
  allocation_guard guard{memory};
  const std::size_t begin = make_record(memory, at.flags / sizeof(std::uint64_t));
  std::uint8_t *device = nullptr;
  if (expected<> result = device_address(memory, device); result.failed())
    return result;
  const auto fill_requests = [&](std::uint8_t *base, volatile std::uint64_t *&flags, std::uint8_t *&data) {
    flags = flags_at(base);
    data = base + 2 * at.flags;
  };
  const auto fill_answers = [&](std::uint8_t *base, volatile std::uint64_t *&flags, std::uint8_t *&data) {
    flags = flags_at(base + begin);
    data = base + begin + 2 * at.flags;
  };
  cudaq_ringbuffer_t &ring = memory.ring;
  ring.rx_stride_sz = ring.tx_stride_sz = at.stride;
  fill_requests(memory.requests->host(), ring.rx_flags_host, ring.rx_data_host);
  fill_requests(memory.requests->device(), ring.rx_flags, ring.rx_data);
  fill_answers(static_cast<std::uint8_t *>(memory.base), ring.tx_flags_host, ring.tx_data_host);
  fill_answers(device, ring.tx_flags, ring.tx_data);
  memory.record->requests = reinterpret_cast<std::uint64_t>(ring.rx_data_host);
  const std::string missed = memory.reason.empty() ? "" : ", because " + memory.reason;
  memory.reason = std::string("mapping by ") + name_of(memory.requests->source()) + missed;
  guard.keep = true;
  return {};
}

expected<> create(const cudaq_ringbuffer_options_t &o, cudaq_ringbuffer_memory_t **out_memory,
                  cudaq_ringbuffer_t *out_ring) {
  auto memory = std::make_unique<cudaq_ringbuffer_memory_t>();
  memory->device_id = o.device_id;
  memory->num_slots = o.num_slots;
  memory->memory_kind = o.memory_kind;
  if (o.memory_kind == CUDAQ_MEMORY_AUTO) {
    memory->memory_kind = CUDAQ_MEMORY_DEVICE_RX;
    const expected<> result =
        o.in_place != 0 ? make_reason(CUDAQ_ERR_UNSUPPORTED, "the ring is in place") : create_in_two_blocks(o, *memory);
    if (result.failed()) {
      memory->memory_kind = CUDAQ_MEMORY_MAPPED;
      memory->reason = "mapped memory, because " + result.text();
      if (memory->requests != nullptr)
        memory->refused.push_back(std::move(memory->requests));
    }
  } else if (o.memory_kind == CUDAQ_MEMORY_DEVICE_RX) {
    if (expected<> result = create_in_two_blocks(o, *memory); result.failed())
      return result;
  } else {
    memory->reason = "as asked for";
  }
  if (memory->memory_kind != CUDAQ_MEMORY_DEVICE_RX)
    if (expected<> result = create_in_one_block(o, *memory); result.failed())
      return result;
  *out_ring = memory->ring;
  *out_memory = memory.release();
  return {};
}

/// Takes the ring out of use: its record is not found any more, also if the memory is used again. Refused while a
/// dispatcher runs. `owner`: out: the owner word, which open_record() restores.
expected<> close_record(const cudaq_ringbuffer_memory_t &memory, std::uint64_t &owner) {
  ring_record *const record = memory.record;
  if (record == nullptr)
    return {};
  const auto own = reinterpret_cast<std::uint64_t>(&memory);
  owner = 0;
  if (!record->owner.claim(0, own)) {
    owner = kOwnerLeftAGraph;
    if (record->owner.load() != kOwnerLeftAGraph)
      return make_reason(CUDAQ_ERR_STATE, "a dispatcher runs on the ring; call cudaq_dispatcher_stop or "
                                          "cudaq_dispatcher_destroy for it first");
    if (memory.memory_kind == CUDAQ_MEMORY_HOST) // other memory is freed by CUDA, which waits for the graph
      return make_reason(CUDAQ_ERR_STATE, "a graph that a loop has left may still write to the ring; its memory stays");
  }
  record->self = 0;
  return {};
}

/// The memory could not be freed: the ring is as before.
void open_record(const cudaq_ringbuffer_memory_t &memory, std::uint64_t owner) {
  if (memory.record == nullptr)
    return;
  memory.record->self = reinterpret_cast<std::uint64_t>(memory.record);
  memory.record->owner.store(owner);
}

cudaq_ringbuffer_info_t info_of(const cudaq_ringbuffer_memory_t &memory) {
  cudaq_ringbuffer_info_t info{};
  info.memory_kind = memory.memory_kind;
  info.num_slots = memory.num_slots;
  info.stride = static_cast<std::uint32_t>(memory.ring.rx_stride_sz);
  if (memory.requests != nullptr) {
    info.mapping_source = memory.requests->source();
    info.writes_ordering = static_cast<std::uint32_t>(memory.requests->ordering());
  }
  memory.reason.copy(info.reason, sizeof(info.reason) - 1);
  return info;
}

} // namespace

extern "C" {

cudaq_status_t cudaq_ringbuffer_create(const cudaq_ringbuffer_options_t *options,
                                       cudaq_ringbuffer_memory_t **out_memory, cudaq_ringbuffer_t *out_ring) {
  return guarded(__func__, [&]() -> expected<> {
    cudaq_ringbuffer_options_t o = default_ringbuffer_options();
    if (expected<> result = read_sized("options", options, o); result.failed())
      return result;
    if (out_memory == nullptr || out_ring == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", out_memory == nullptr ? "out_memory" : "out_ring");
    if (expected<> result = validate_ring_options(o); result.failed())
      return result;
    return create(o, out_memory, out_ring);
  });
}

cudaq_status_t cudaq_ringbuffer_get_info(const cudaq_ringbuffer_memory_t *memory, cudaq_ringbuffer_info_t *out_info) {
  return guarded(__func__, [&]() -> expected<> {
    if (memory == nullptr || out_info == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", memory == nullptr ? "memory" : "out_info");
    const std::uint32_t size = out_info->struct_size;
    if (expected<> result = write_sized("out_info", out_info, size, info_of(*memory)); result.failed())
      return result;
    if (size > offsetof(cudaq_ringbuffer_info_t, reason)) // a shorter struct of the caller ends inside the text
      reinterpret_cast<char *>(out_info)[size - 1] = '\0';
    return {};
  });
}

cudaq_status_t cudaq_ringbuffer_destroy(cudaq_ringbuffer_memory_t *memory) {
  return guarded(__func__, [&]() -> expected<> {
    if (memory == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "memory is NULL");
    if (!memory->producers.claim(0, 1))
      return make_reason(CUDAQ_ERR_STATE, "a producer's handle is open on the ring; close it first");
    std::uint64_t owner = 0;
    expected<> result = close_record(*memory, owner);
    if (result.ok()) {
      result = free_block(*memory);
      if (result.failed())
        open_record(*memory, owner);
    }
    if (result.failed()) {
      memory->producers.store(0);
      return result;
    }
    delete memory;
    return {};
  });
}

} // extern "C"

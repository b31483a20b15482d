// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/pipeline/pipeline_ring.h"

#include <limits>
#include <stdexcept>
#include <string>

namespace cudaq::qec::realtime::detail {

using experimental::pipeline_stage_config;
using experimental::ring_memory;

namespace {

constexpr int kMaxSlots = 1 << 24; ///< of any ring, see cudaq_dispatcher_config_t

// Out of line, so that an accepted submit contains no code for texts.
[[noreturn]] void refuse(const std::string &text) { throw std::invalid_argument("pipeline: " + text); }

// Before any allocation: sizes are the caller's, and may be wrong by orders of magnitude.
const pipeline_stage_config &checked(const pipeline_stage_config &c) {
  if (c.num_workers < 1 || c.num_workers > 64)
    refuse("num_workers is " + std::to_string(c.num_workers) + ", it must be 1 to 64");
  if (c.buffers < 1 || c.buffers > 4)
    refuse("buffers is " + std::to_string(c.buffers) + ", it must be 1 to 4");
  if (c.num_slots < 1 || c.num_slots > kMaxSlots)
    refuse("num_slots is " + std::to_string(c.num_slots) + ", it must be 1 to " + std::to_string(kMaxSlots));
  if (c.slot_size < CUDAQ_RPC_HEADER_SIZE || c.slot_size > std::numeric_limits<std::uint32_t>::max() / 2)
    refuse("slot_size is " + std::to_string(c.slot_size) + ", it must be 24 bytes to 2 GiB");
  return c;
}

cudaq_ringbuffer_memory_t *allocate(const pipeline_stage_config &c, cudaq_ringbuffer_t &ring) {
  cudaq_ringbuffer_options_t options;
  cudaq_ringbuffer_options_init(&options, sizeof(options));
  options.num_slots = static_cast<std::uint32_t>(c.num_slots);
  options.slot_size = static_cast<std::uint32_t>(c.slot_size);
  options.in_place = 1;
  options.device_id = c.device_id;
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_status_t status = CUDAQ_ERR_UNSUPPORTED;
  if (c.memory != ring_memory::host) {
    options.memory_kind = CUDAQ_MEMORY_MAPPED;
    status = cudaq_ringbuffer_create(&options, &memory, &ring);
  }
  // Without a device the pipeline can still serve host stages: `automatic` falls back to host memory.
  if (status != CUDAQ_OK && c.memory != ring_memory::mapped) {
    options.memory_kind = CUDAQ_MEMORY_HOST;
    status = cudaq_ringbuffer_create(&options, &memory, &ring);
  }
  if (status != CUDAQ_OK)
    throw std::runtime_error(std::string("pipeline: allocating the ring failed: ") + cudaq_last_error_message());
  return memory;
}

} // namespace

pipeline_ring::pipeline_ring(const pipeline_stage_config &config)
    : slot_size_(checked(config).slot_size),
      memory_(config.external_ringbuffer == nullptr ? allocate(config, ring_) : nullptr),
      records_(static_cast<std::size_t>(config.num_slots)) {
  for (std::uint32_t i = 0; i < num_slots(); ++i)
    records_[i].admitted_ticket.set(i);
  if (external())
    ring_ = *static_cast<const cudaq_ringbuffer_t *>(config.external_ringbuffer);
}

pipeline_ring::admission pipeline_ring::submit(std::uint32_t function_id, const void *payload, std::size_t size,
                                               std::uint64_t request_id) {
  if (size > max_payload())
    refuse("payload_size is " + std::to_string(size) + ", a slot holds at most " + std::to_string(max_payload()));
  if (payload == nullptr && size != 0)
    refuse("payload is NULL, but payload_size is " + std::to_string(size));
  for (;;) {
    const std::uint64_t ticket = next_.load();
    if ((ticket & kClosed) != 0)
      return admission::closed;
    const auto slot = static_cast<std::uint32_t>(ticket % num_slots());
    request_record &record = records_[slot];
    // The flags are checked too: the dispatcher may clear rx only after the answer is collected.
    if (record.admitted_ticket.load() != ticket || cudaq_host_ringbuffer_slot_available(&ring_, slot) == 0) {
      if (next_.load() != ticket)
        continue; // another injector was faster: check the slot of the next ticket
      return admission::full;
    }
    if (!next_.claim(ticket, ticket + 1))
      continue;
    record.request_id = request_id;
    record.error = 0;
    cudaq_host_ringbuffer_write_rpc_request(&ring_, slot, function_id, payload, static_cast<std::uint32_t>(size),
                                            static_cast<std::uint32_t>(request_id), 0);
    submitted_.add(); // before the signal: a snapshot never has more completions than submissions
    cudaq_host_ringbuffer_signal_slot(&ring_, slot);
    return admission::accepted;
  }
}

void pipeline_ring::collect(std::uint64_t ticket) {
  const auto slot = static_cast<std::uint32_t>(ticket % num_slots());
  cudaq_host_ringbuffer_clear_slot(&ring_, slot);
  records_[slot].admitted_ticket.store(ticket + num_slots());
}

} // namespace cudaq::qec::realtime::detail

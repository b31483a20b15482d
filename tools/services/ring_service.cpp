// SPDX-License-Identifier: Apache-2.0
#include "tools/services/ring_service.h"

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <algorithm>

namespace cudaq::realtime::tools {

void service_parts::create_ring(const ring_service_config &config, std::uint32_t slot_bytes, cudaq_memory_kind_t kind) {
  tools::create_ring(config.device, config.num_slots, slot_bytes, kind, config.in_place, &memory, &ring);
  if (kind == CUDAQ_MEMORY_DEVICE_RX)
    require_ok(cudaq_ringbuffer_producer_open(memory, &producer), "cudaq_ringbuffer_producer_open");
}

void service_parts::create_dispatcher(const ring_service_config &config, cudaq_dispatcher_config_t dispatcher_config,
                                      volatile int *shutdown, std::uint64_t *counter) {
  require_ok(cudaq_dispatch_manager_create(&manager), "cudaq_dispatch_manager_create");
  dispatcher_config.device_id = config.device;
  dispatcher_config.num_slots = config.num_slots;
  require_ok(cudaq_dispatcher_create(manager, &dispatcher_config, &dispatcher), "cudaq_dispatcher_create");
  require_ok(cudaq_dispatcher_set_ringbuffer(dispatcher, &ring), "cudaq_dispatcher_set_ringbuffer");
  require_ok(cudaq_dispatcher_set_control(dispatcher, shutdown, counter), "cudaq_dispatcher_set_control");
  require_ok(cudaq_dispatcher_set_options(dispatcher, &config.options), "cudaq_dispatcher_set_options");
}

void service_parts::create_dispatcher(const ring_service_config &config,
                                      const cudaq_dispatcher_config_t &dispatcher_config) {
  create_dispatcher(config, dispatcher_config, &shutdown_flag, &processed);
}

bool service_parts::release() noexcept {
  if (dispatcher != nullptr && cudaq_dispatcher_destroy(dispatcher) != CUDAQ_OK)
    return false;
  dispatcher = nullptr;
  if (manager != nullptr)
    cudaq_dispatch_manager_destroy(manager);
  if (producer != nullptr)
    cudaq_ringbuffer_producer_close(producer);
  if (memory != nullptr)
    cudaq_ringbuffer_destroy(memory);
  return true;
}

ring_service::~ring_service() {
  if (parts_->release())
    return;
  parts_->still_running();
  (void)parts_.release();
}

void ring_service::start() { require_ok(cudaq_dispatcher_start(parts_->dispatcher), "cudaq_dispatcher_start"); }
void ring_service::stop() { require_ok(cudaq_dispatcher_stop(parts_->dispatcher), "cudaq_dispatcher_stop"); }

void ring_service::record_handler_times(bool on) {
  require_ok(cudaq_dispatcher_set_handler_times(parts_->dispatcher, on ? 1 : 0), "cudaq_dispatcher_set_handler_times");
}

cudaq_dispatcher_stats_t ring_service::stats() const {
  cudaq_dispatcher_stats_t stats{};
  stats.struct_size = sizeof stats;
  require_ok(cudaq_dispatcher_get_stats(parts_->dispatcher, &stats), "cudaq_dispatcher_get_stats");
  return stats;
}

std::uint64_t ring_service::processed() const {
  std::uint64_t packets = 0;
  require_ok(cudaq_dispatcher_get_processed(parts_->dispatcher, &packets), "cudaq_dispatcher_get_processed");
  return packets;
}

std::string ring_service::dump() const {
  std::string text(16384, '\0');
  std::size_t length = 0;
  if (cudaq_dispatcher_dump_state(parts_->dispatcher, text.data(), text.size(), &length) != CUDAQ_OK)
    return std::string("no dump of the dispatcher's state: ") + cudaq_last_error_message() + "\n";
  text.resize(std::min(length, text.size() - 1));
  return text;
}

} // namespace cudaq::realtime::tools

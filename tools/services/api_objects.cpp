// SPDX-License-Identifier: Apache-2.0
#include "tools/services/api_objects.h"

#include <algorithm>
#include <utility>

namespace cudaq::realtime::tools {

void require_ok(cudaq_status_t status, const char *call) {
  if (status == CUDAQ_OK)
    return;
  // The message first: naming the status may already be the "next call" that ends its life.
  std::string text = std::string(call) + ": " + cudaq_last_error_message();
  text += std::string(" (") + cudaq_status_string(status) + ")";
  throw api_error(text);
}

cudaq_dispatcher_options_t default_options() {
  cudaq_dispatcher_options_t options{};
  require_ok(cudaq_dispatcher_options_init(&options, sizeof options), "cudaq_dispatcher_options_init");
  return options;
}

/// Members are in the order of their creation. The dispatcher keeps pointers to the ring and to the control words, so
/// all of them share one fate: freed together, or left together.
struct host_service::parts : api_handles {
  std::shared_ptr<void> user;
  volatile int shutdown_flag = 0;
  std::uint64_t processed = 0;
  std::uint32_t num_slots = 0;
};

void create_ring(int device, std::uint32_t num_slots, std::uint32_t slot_bytes, cudaq_memory_kind_t kind, bool in_place,
                 cudaq_ringbuffer_memory_t **memory, cudaq_ringbuffer_t *ring) {
  cudaq_ringbuffer_options_t options{};
  require_ok(cudaq_ringbuffer_options_init(&options, sizeof options), "cudaq_ringbuffer_options_init");
  options.memory_kind = kind;
  options.num_slots = num_slots;
  options.slot_size = slot_bytes;
  options.in_place = in_place ? 1 : 0;
  options.device_id = device;
  require_ok(cudaq_ringbuffer_create(&options, memory, ring), "cudaq_ringbuffer_create");
}

bool api_handles::release() noexcept {
  if (dispatcher != nullptr && cudaq_dispatcher_destroy(dispatcher) != CUDAQ_OK)
    return false;
  dispatcher = nullptr;
  if (manager != nullptr)
    cudaq_dispatch_manager_destroy(manager);
  if (memory != nullptr)
    cudaq_ringbuffer_destroy(memory);
  return true;
}

host_service::host_service(const host_service_config &config, std::uint32_t function_id,
                           cudaq_host_handler_v2_t handler, std::shared_ptr<void> user,
                           const cudaq_handler_schema_t *schema)
    : parts_(std::make_unique<parts>()) {
  parts &p = *parts_;
  p.user = std::move(user);
  p.num_slots = config.num_slots;
  try {
    create_ring(0, config.num_slots, config.slot_bytes, CUDAQ_MEMORY_HOST, config.in_place, &p.memory, &p.ring);
    require_ok(cudaq_dispatch_manager_create(&p.manager), "cudaq_dispatch_manager_create");
    cudaq_dispatcher_config_t c{};
    c.num_slots = config.num_slots;
    c.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
    c.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
    require_ok(cudaq_dispatcher_create(p.manager, &c, &p.dispatcher), "cudaq_dispatcher_create");
    require_ok(cudaq_dispatcher_set_ringbuffer(p.dispatcher, &p.ring), "cudaq_dispatcher_set_ringbuffer");
    require_ok(cudaq_dispatcher_set_control(p.dispatcher, &p.shutdown_flag, &p.processed),
               "cudaq_dispatcher_set_control");
    require_ok(cudaq_dispatcher_set_host_handler_v2(p.dispatcher, function_id, handler, p.user.get(), schema),
               "cudaq_dispatcher_set_host_handler_v2");
    require_ok(cudaq_dispatcher_set_options(p.dispatcher, &config.options), "cudaq_dispatcher_set_options");
  } catch (...) {
    p.release();
    throw;
  }
}

host_service::~host_service() {
  if (!parts_->release())
    (void)parts_.release();
}

cudaq_status_t host_service::complete(const cudaq_host_job_t &job, std::int32_t status,
                                      std::uint32_t result_len) noexcept {
  return cudaq_host_complete_deferred(parts_->dispatcher, &job, status, result_len);
}

const cudaq_ringbuffer_t &host_service::ring() const { return parts_->ring; }
std::uint32_t host_service::num_slots() const { return parts_->num_slots; }
cudaq_dispatcher_t *host_service::dispatcher() const { return parts_->dispatcher; }

void ring_service::start() { require_ok(cudaq_dispatcher_start(dispatcher()), "cudaq_dispatcher_start"); }
void ring_service::stop() { require_ok(cudaq_dispatcher_stop(dispatcher()), "cudaq_dispatcher_stop"); }

cudaq_dispatcher_stats_t ring_service::stats() const {
  cudaq_dispatcher_stats_t stats{};
  stats.struct_size = sizeof stats;
  require_ok(cudaq_dispatcher_get_stats(dispatcher(), &stats), "cudaq_dispatcher_get_stats");
  return stats;
}

std::uint64_t ring_service::processed() const {
  std::uint64_t packets = 0;
  require_ok(cudaq_dispatcher_get_processed(dispatcher(), &packets), "cudaq_dispatcher_get_processed");
  return packets;
}

std::string ring_service::dump() const {
  std::string text(16384, '\0');
  std::size_t length = 0;
  if (cudaq_dispatcher_dump_state(dispatcher(), text.data(), text.size(), &length) != CUDAQ_OK)
    return std::string("no dump of the dispatcher's state: ") + cudaq_last_error_message() + "\n";
  text.resize(std::min(length, text.size() - 1));
  return text;
}

} // namespace cudaq::realtime::tools

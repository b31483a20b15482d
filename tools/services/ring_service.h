// SPDX-License-Identifier: Apache-2.0
// What every service of the program has: a ring, a manager and one dispatcher, owned together.
#pragma once

#include "tools/services/api_objects.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace cudaq::realtime::tools {

/// What every service is told.
struct ring_service_config {
  int device = 0;
  std::uint32_t num_slots = 64;
  std::uint32_t slot_bytes = 64; ///< whole frame: header and payload
  bool in_place = false;
  cudaq_dispatcher_options_t options{}; ///< from default_options()
};

/// Everything that the dispatcher of a service has pointers into: freed together, or left together. A service with more
/// of that kind derives from it; the members are in the order of their creation.
struct service_parts {
  explicit service_parts(const ring_service_config &config) : num_slots(config.num_slots) {}
  virtual ~service_parts() = default;
  service_parts(const service_parts &) = delete;
  service_parts &operator=(const service_parts &) = delete;

  /// A ring of config.num_slots in memory of this kind; throws api_error.
  void create_ring(const ring_service_config &config, std::uint32_t slot_bytes, cudaq_memory_kind_t kind);
  /// The manager, and a dispatcher on the ring with these control words. Device, slots and options come from the first
  /// argument, the rest from the second. Throws api_error.
  void create_dispatcher(const ring_service_config &config, cudaq_dispatcher_config_t dispatcher_config,
                         volatile int *shutdown, std::uint64_t *counter);
  /// The same with the control words below, which are for the host path.
  void create_dispatcher(const ring_service_config &config, const cudaq_dispatcher_config_t &dispatcher_config);

  /// Frees what was created. False, and nothing but the dispatcher's stop was tried: a handler or a kernel is still
  /// running.
  bool release() noexcept;
  /// Called when release() has failed, before all of this is left in memory.
  virtual void still_running() noexcept {}

  std::uint32_t num_slots;
  cudaq_ringbuffer_t ring{};
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *dispatcher = nullptr;
  volatile int shutdown_flag = 0;
  std::uint64_t processed = 0;
};

/// One dispatcher and its ring, wired, on the host path or the device path.
class ring_service {
public:
  ring_service(const ring_service &) = delete;
  ring_service &operator=(const ring_service &) = delete;
  virtual ~ring_service();

  void start();
  void stop();

  [[nodiscard]] const cudaq_ringbuffer_t &ring() const noexcept { return parts_->ring; }
  [[nodiscard]] std::uint32_t num_slots() const noexcept { return parts_->num_slots; }
  [[nodiscard]] cudaq_dispatcher_stats_t stats() const;
  [[nodiscard]] std::uint64_t processed() const;
  /// Text of cudaq_dispatcher_dump_state, or the reason why there is none.
  [[nodiscard]] std::string dump() const;

protected:
  /// The constructor of a service creates ring and dispatcher in `parts`. If it throws, the parts are released.
  explicit ring_service(std::unique_ptr<service_parts> parts) : parts_(std::move(parts)) {}
  template <typename Parts>
  [[nodiscard]] Parts &parts_as() const noexcept {
    return static_cast<Parts &>(*parts_);
  }

private:
  std::unique_ptr<service_parts> parts_;
};

} // namespace cudaq::realtime::tools

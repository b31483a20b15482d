// SPDX-License-Identifier: Apache-2.0
// The base of the services of the program: each owns a ring, a manager and one dispatcher.
//
// A service starts no threads itself. start() starts the dispatcher's thread with its handler threads, or its kernel;
// stop() ends them. ring(), num_slots() and the reading calls may be used by any thread meanwhile.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/ring_producer.h"
#include "tools/common/api_objects.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace cudaq::realtime::tools {

/// Configuration that every service has.
struct ring_service_config {
  int device = 0;
  std::uint32_t num_slots = 64;
  std::uint32_t slot_bytes = 64; ///< whole frame: header and payload
  bool in_place = false;
  cudaq_dispatcher_options_t options{}; ///< from default_options()
};

/// Everything that the dispatcher of a service points to. It is freed as a whole, or left in memory as a whole. A
/// service with more such objects derives from it.
struct service_parts {
  explicit service_parts(const ring_service_config &config) : num_slots(config.num_slots) {}
  virtual ~service_parts() = default;
  service_parts(const service_parts &) = delete;
  service_parts &operator=(const service_parts &) = delete;

  /// Creates a ring of config.num_slots slots in memory of this kind; throws api_error.
  void create_ring(const ring_service_config &config, std::uint32_t slot_bytes, cudaq_memory_kind_t kind);
  /// Creates the manager, and a dispatcher on the ring with these control words. Device, number of slots and options
  /// come from `config`, the rest from `dispatcher_config`. Call create_ring first. Throws api_error.
  void create_dispatcher(const ring_service_config &config, cudaq_dispatcher_config_t dispatcher_config,
                         volatile int *shutdown, std::uint64_t *counter);
  /// The same with shutdown_flag and processed as control words: for the host path.
  void create_dispatcher(const ring_service_config &config, const cudaq_dispatcher_config_t &dispatcher_config);

  /// Stops the dispatcher and frees the ring and the dispatcher. Returns false, and frees nothing, if a handler or a
  /// kernel still runs.
  bool release() noexcept;
  /// Called after release() has returned false, before everything is left in memory.
  virtual void still_running() noexcept {}

  std::uint32_t num_slots;
  cudaq_ringbuffer_t ring{};
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_producer_t *producer = nullptr;
  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *dispatcher = nullptr;
  volatile int shutdown_flag = 0;
  std::uint64_t processed = 0;
};

/// One dispatcher and its ring, configured, on the host path or the device path. start() and stop() throw api_error.
class ring_service {
public:
  ring_service(const ring_service &) = delete;
  ring_service &operator=(const ring_service &) = delete;
  virtual ~ring_service();

  void start();
  void stop();
  /// Host path, while stopped: whether the next runs record the times of handlers. Throws api_error.
  void record_handler_times(bool on);

  [[nodiscard]] const cudaq_ringbuffer_t &ring() const noexcept { return parts_->ring; }
  /// The producer's handle of a ring whose requests lie in device memory, else NULL: such a ring's producer uses the
  /// slot helpers.
  [[nodiscard]] cudaq_ringbuffer_producer_t *producer() const noexcept { return parts_->producer; }
  [[nodiscard]] std::uint32_t num_slots() const noexcept { return parts_->num_slots; }
  [[nodiscard]] cudaq_dispatcher_stats_t stats() const;
  [[nodiscard]] std::uint64_t processed() const;
  /// The text of cudaq_dispatcher_dump_state, or the reason why there is no text.
  [[nodiscard]] std::string dump() const;

protected:
  /// The constructor of a service creates ring and dispatcher in `parts`. If that constructor throws, this class's
  /// destructor releases the parts.
  explicit ring_service(std::unique_ptr<service_parts> parts) : parts_(std::move(parts)) {}
  template <typename Parts>
  [[nodiscard]] Parts &parts_as() const noexcept {
    return static_cast<Parts &>(*parts_);
  }

private:
  std::unique_ptr<service_parts> parts_;
};

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// The objects of the C API that a program with one dispatcher needs, owned together.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace cudaq::realtime::tools {

/// A call of the C API failed; the text names the call, the status and the library's reason.
class api_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Throws api_error unless status is CUDAQ_OK. `call` names the function.
void require_ok(cudaq_status_t status, const char *call);

/// cudaq_ringbuffer_create with the usual options; throws api_error.
void create_ring(int device, std::uint32_t num_slots, std::uint32_t slot_bytes, cudaq_memory_kind_t kind, bool in_place,
                 cudaq_ringbuffer_memory_t **memory, cudaq_ringbuffer_t *ring);

/// What a program with one dispatcher holds of the C API.
struct api_handles {
  cudaq_ringbuffer_t ring{};
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *dispatcher = nullptr;

  /// Frees them. False, and nothing but the dispatcher's stop was tried: a handler or a kernel is still running.
  bool release() noexcept;
};

struct host_service_config {
  std::uint32_t num_slots = 64;
  std::uint32_t slot_bytes = 64; ///< whole frame: header and payload
  bool in_place = false;
  cudaq_dispatcher_options_t options{}; ///< from default_options()
};

cudaq_dispatcher_options_t default_options();

/// One dispatcher and its ring, wired, on the host path or the device path.
class ring_service {
public:
  virtual ~ring_service() = default;
  ring_service(const ring_service &) = delete;
  ring_service &operator=(const ring_service &) = delete;

  void start();
  void stop();

  [[nodiscard]] virtual const cudaq_ringbuffer_t &ring() const = 0;
  [[nodiscard]] virtual std::uint32_t num_slots() const = 0;
  [[nodiscard]] cudaq_dispatcher_stats_t stats() const;
  [[nodiscard]] std::uint64_t processed() const;
  /// Text of cudaq_dispatcher_dump_state, or the reason why there is none.
  [[nodiscard]] std::string dump() const;

protected:
  ring_service() = default;
  [[nodiscard]] virtual cudaq_dispatcher_t *dispatcher() const = 0;
};

/// Manager, ring and one dispatcher on the host path, wired; serves one function with a v2 handler.
///
/// `user` goes to the handler and is kept alive as long as the dispatcher. Should a handler not come back within the
/// grace period, the destructor leaves everything in memory (the thread still uses it) rather than free or wait.
class host_service : public ring_service {
public:
  host_service(const host_service_config &config, std::uint32_t function_id, cudaq_host_handler_v2_t handler,
               std::shared_ptr<void> user, const cudaq_handler_schema_t *schema);
  ~host_service() override;

  /// cudaq_host_complete_deferred of the dispatcher.
  cudaq_status_t complete(const cudaq_host_job_t &job, std::int32_t status, std::uint32_t result_len) noexcept;

  [[nodiscard]] const cudaq_ringbuffer_t &ring() const override;
  [[nodiscard]] std::uint32_t num_slots() const override;

protected:
  [[nodiscard]] cudaq_dispatcher_t *dispatcher() const override;

private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// A dispatcher on the host path with one handler.
#pragma once

#include "tools/services/ring_service.h"

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"

#include <cstdint>
#include <memory>

namespace cudaq::realtime::tools {

/// Owns a manager, a ring and one dispatcher on the host path, which serves one function with a v2 handler. The
/// dispatcher is configured, not started.
///
/// `user` is passed to the handler, and lives as long as the dispatcher. If a handler does not return within the grace
/// period, the destructor neither frees nor waits: everything stays in memory, because the handler's thread still uses
/// it.
class host_service : public ring_service {
public:
  host_service(const ring_service_config &config, std::uint32_t function_id, cudaq_host_handler_v2_t handler,
               std::shared_ptr<void> user, const cudaq_handler_schema_t *schema);

  /// Calls cudaq_host_complete_deferred of the dispatcher; any thread may call it.
  cudaq_status_t complete(const cudaq_host_job_t &job, std::int32_t status, std::uint32_t result_len) noexcept;
};

} // namespace cudaq::realtime::tools

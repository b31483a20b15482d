// SPDX-License-Identifier: Apache-2.0
#include "tools/services/host_service.h"

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"

#include <utility>

namespace cudaq::realtime::tools {
namespace {

struct host_parts : service_parts {
  host_parts(const ring_service_config &config, std::shared_ptr<void> handler_user)
      : service_parts(config), user(std::move(handler_user)) {}

  std::shared_ptr<void> user;
};

} // namespace

host_service::host_service(const ring_service_config &config, std::uint32_t function_id,
                           cudaq_host_handler_v2_t handler, std::shared_ptr<void> user,
                           const cudaq_handler_schema_t *schema)
    : ring_service(std::make_unique<host_parts>(config, std::move(user))) {
  auto &parts = parts_as<host_parts>();
  parts.create_ring(config, config.slot_bytes, CUDAQ_MEMORY_HOST);
  cudaq_dispatcher_config_t c{};
  c.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  c.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  parts.create_dispatcher(config, c);
  require_ok(cudaq_dispatcher_set_host_handler_v2(parts.dispatcher, function_id, handler, parts.user.get(), schema),
             "cudaq_dispatcher_set_host_handler_v2");
}

cudaq_status_t host_service::complete(const cudaq_host_job_t &job, std::int32_t status,
                                      std::uint32_t result_len) noexcept {
  return cudaq_host_complete_deferred(parts_as<service_parts>().dispatcher, &job, status, result_len);
}

} // namespace cudaq::realtime::tools

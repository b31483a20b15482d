// SPDX-License-Identifier: Apache-2.0
// A dispatcher over the ring or the dataplane of a provider.
#pragma once

#include "unittests/support/host_fixture.h"

#include <functional>

namespace cudaq::realtime::test {

/// A v2 handler that returns each byte plus 1.
inline std::int32_t increment_handler(cudaq_host_call_t *call, void *) {
  for (std::uint32_t i = 0; i < call->payload_len; ++i)
    static_cast<std::uint8_t *>(call->result)[i] =
        static_cast<std::uint8_t>(static_cast<const std::uint8_t *>(call->payload)[i] + 1);
  call->result_len = call->payload_len;
  return 0;
}

/// Runs from its construction to its end, which stops and destroys it.
class provider_dispatcher {
public:
  /// Sets the functions of a dispatcher.
  using function_setter = std::function<cudaq_status_t(cudaq_dispatcher_t *)>;

  /// Serves the dataplane, or, if it is NULL, the ring.
  provider_dispatcher(cudaq_dispatcher_config_t config, const cudaq_ringbuffer_t &ring,
                      const cudaq_cpu_dataplane_t *plane, const function_setter &set_functions,
                      const cudaq_dispatcher_options_t &options = default_options()) {
    config.kernel_type = plane != nullptr ? CUDAQ_KERNEL_UNIFIED : CUDAQ_KERNEL_REGULAR;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_create(manager_.get, &config, &get));
    CUDAQ_EXPECT_OK(plane != nullptr ? cudaq_dispatcher_set_cpu_dataplane(get, plane)
                                     : cudaq_dispatcher_set_ringbuffer(get, &ring));
    CUDAQ_EXPECT_OK(set_functions(get));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(get, &shutdown_, &processed_));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(get, &options));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_start(get));
  }
  ~provider_dispatcher() {
    (void)stop();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(get));
  }
  provider_dispatcher(const provider_dispatcher &) = delete;
  provider_dispatcher &operator=(const provider_dispatcher &) = delete;

  /// For a program that is no GoogleTest: a call that failed is only printed.
  [[nodiscard]] bool is_running() const {
    cudaq_dispatcher_state_t state = CUDAQ_DISPATCHER_CREATED;
    return cudaq_dispatcher_get_state(get, &state) == CUDAQ_OK && state == CUDAQ_DISPATCHER_RUNNING;
  }
  /// The number of requests that it has processed.
  std::uint64_t stop() {
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(get));
    return processed_;
  }

private:
  const manager_handle manager_;
  volatile int shutdown_ = 0;
  std::uint64_t processed_ = 0;

public:
  cudaq_dispatcher_t *get = nullptr;
};

/// For one function with a v2 handler.
inline provider_dispatcher::function_setter function_v2(std::uint32_t id, cudaq_host_handler_v2_t handler,
                                                        void *user = nullptr) {
  return [=](cudaq_dispatcher_t *d) { return cudaq_dispatcher_set_host_handler_v2(d, id, handler, user, nullptr); };
}

} // namespace cudaq::realtime::test

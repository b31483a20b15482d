// SPDX-License-Identifier: Apache-2.0
// A dispatcher on the host path that serves a fake provider.
#pragma once

#include "unittests/api/dataplane/fake_provider.h"
#include "unittests/support/api_fixture.h"

namespace cudaq::realtime::test {

inline cudaq_dispatcher_config_t unified_config(const ring_shape &shape) {
  cudaq_dispatcher_config_t config = host_config(shape);
  config.kernel_type = CUDAQ_KERNEL_UNIFIED;
  return config;
}

/// The order of the members destroys the dispatcher before the handlers and the provider.
class dataplane_bench {
public:
  explicit dataplane_bench(const ring_shape &shape = {}, bool reports_drops = true)
      : provider(shape, reports_drops), options(default_options()) {
    const cudaq_dispatcher_config_t config = unified_config(shape);
    CUDAQ_EXPECT_OK(cudaq_dispatcher_create(manager.get, &config, &view.get));
    observer_ = std::make_unique<dispatcher_observer>(view.get);
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_cpu_dataplane(view.get, &provider.plane));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(view.get, &shutdown, &processed));
  }
  ~dataplane_bench() {
    cudaq_dispatcher_stop(view.get);
    observer_.reset();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(view.get));
    EXPECT_EQ(provider.wrong(), 0) << "the library published a slot twice, or a slot that it did not have";
  }
  dataplane_bench(const dataplane_bench &) = delete;
  dataplane_bench &operator=(const dataplane_bench &) = delete;

  void on(std::uint32_t function_id, handler_function fn) {
    handlers_.push_back(std::make_unique<handler_function>(std::move(fn)));
    CUDAQ_EXPECT_OK(
        cudaq_dispatcher_set_host_handler_v2(view.get, function_id, call_function, handlers_.back().get(), nullptr));
  }
  void start() {
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(view.get, &options));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(view.get));
  }

  manager_handle manager;
  fake_provider provider;
  dispatcher_view view;
  cudaq_dispatcher_options_t options;
  volatile int shutdown = 0;
  std::uint64_t processed = 0;

private:
  std::vector<std::unique_ptr<handler_function>> handlers_;
  std::unique_ptr<dispatcher_observer> observer_;
};

inline constexpr std::uint32_t kIncrement = 0x1C;

/// Adds one to each byte.
inline std::int32_t increment(cudaq_host_call_t &call) {
  for (std::uint32_t i = 0; i < call.payload_len; ++i)
    static_cast<std::uint8_t *>(call.result)[i] =
        static_cast<std::uint8_t>(static_cast<const std::uint8_t *>(call.payload)[i] + 1);
  call.result_len = call.payload_len;
  return 0;
}

} // namespace cudaq::realtime::test

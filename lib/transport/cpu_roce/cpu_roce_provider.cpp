// SPDX-License-Identifier: Apache-2.0
// The table that the loader calls.
#include "lib/transport/cpu_roce/cpu_roce_instance.h"
#include "lib/transport/cpu_roce/ibverbs_port.h"

namespace cudaq::realtime::detail {
namespace {

cudaq_status_t create(cudaq_realtime_bridge_handle_t *handle, int argc, char **argv) {
  return guarded("create", [&]() -> status_or_reason {
    if (handle == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "handle is NULL");
    cpu_roce_options options;
    if (status_or_reason refused = parse_cpu_roce_options(argc, argv, options))
      return refused;
    auto made = std::make_unique<cpu_roce_instance>();
    if (status_or_reason refused = made->open(options, open_ibverbs_port))
      return refused;
    publish_instance(std::move(made), handle);
    return {};
  });
}

} // namespace
} // namespace cudaq::realtime::detail

extern "C" {

CUDAQ_REALTIME_API cudaq_realtime_bridge_interface_t *cudaq_realtime_get_bridge_interface(void) {
  using namespace cudaq::realtime::detail;
  static cudaq_realtime_bridge_interface_t table = provider_table(create);
  return &table;
}

/* The text of the last entry that failed on this thread. */
CUDAQ_REALTIME_API const char *cudaq_realtime_get_bridge_error(void) {
  return cudaq::realtime::detail::last_error_text();
}

cudaq_status_t cudaq_cpu_roce_get_statistics(const char *endpoint, cudaq_cpu_roce_statistics_t *out) {
  using namespace cudaq::realtime::detail;
  return read_statistics("cudaq_cpu_roce_get_statistics", endpoint, out,
                         [](const provider_instance &instance, cudaq_cpu_roce_statistics_t &all) {
                           static_cast<const cpu_roce_instance &>(instance).counters().read(all); // all are such
                         });
}

} // extern "C"

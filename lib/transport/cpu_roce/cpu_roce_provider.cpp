// SPDX-License-Identifier: Apache-2.0
// The table that the loader calls.
#include "lib/transport/cpu_roce/cpu_roce_instance.h"
#include "lib/transport/cpu_roce/ibverbs_port.h"

namespace cudaq::realtime::detail {
namespace {

struct cpu_roce_entries : instance_entries {
  static constexpr char kPrefix[] = "cpu-roce ";

  static expected<> create(int argc, char **argv, std::unique_ptr<provider_instance> &out) {
    cpu_roce_options options;
    if (expected<> result = parse_cpu_roce_options(argc, argv, options); result.failed())
      return result;
    auto made = std::make_unique<cpu_roce_instance>();
    if (expected<> result = made->open(options, open_ibverbs_port); result.failed())
      return result;
    out = list_instance(std::move(made));
    return {};
  }
};

} // namespace
} // namespace cudaq::realtime::detail

extern "C" {

CUDAQ_REALTIME_API cudaq_realtime_bridge_interface_t *cudaq_realtime_get_bridge_interface(void) {
  using namespace cudaq::realtime::detail;
  static cudaq_realtime_bridge_interface_t table = provider_entries<cpu_roce_entries>::table();
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

// SPDX-License-Identifier: Apache-2.0
// What a provider reports about itself, and its function table.
#include "lib/transport/bridge/bridge_exclusive.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace cudaq::realtime::detail {

expected<> bridge_instance::since_version(int version, bool present, const char *entry) const {
  if (table_.entries.version < version)
    return make_reason(CUDAQ_ERR_UNSUPPORTED, "provider %s: its table has version %d, and %s is of version %d",
                       name_.c_str(), table_.entries.version, entry, version);
  if (!present)
    return make_reason(CUDAQ_ERR_UNSUPPORTED, "provider %s: it has no %s", name_.c_str(), entry);
  return {};
}

expected<> bridge_instance::get_transport_context(cudaq_realtime_transport_context_t type, void *out) {
  exclusive use(*this, std::unique_lock(mutex_), "get_transport_context", kAtRest);
  if (use.result().failed())
    return use.result();
  // The provider writes to zeroed memory: a field that it leaves out is 0, whatever the caller's struct held.
  union {
    cudaq_ringbuffer_t ring;
    cudaq_unified_dispatch_ctx_t unified;
  } given;
  std::memset(&given, 0, sizeof(given));
  if (expected<> result = call("get_transport_context", table_.entries.get_transport_context, handle_, type, &given);
      result.failed())
    return result;
  std::memcpy(out, &given, type == RING_BUFFER ? sizeof(given.ring) : sizeof(given.unified));
  return {};
}

expected<> bridge_instance::get_cpu_dataplane(cudaq_cpu_dataplane_t *out) {
  const auto entry = table_.entries.get_cpu_dataplane;
  if (expected<> result = since_version(2, entry != nullptr, "get_cpu_dataplane"); result.failed())
    return result;
  exclusive use(*this, std::unique_lock(mutex_), "get_cpu_dataplane", kAtRest);
  if (use.result().failed())
    return use.result();
  cudaq_cpu_dataplane_t given{};
  if (expected<> result = call("get_cpu_dataplane", entry, handle_, &given); result.failed())
    return result;
  *out = given;
  return {};
}

expected<> bridge_instance::get_endpoint_info(char *buffer, std::size_t length) {
  const auto entry = table_.entries.get_endpoint_info;
  if (expected<> result = since_version(2, entry != nullptr, "get_endpoint_info"); result.failed())
    return result;
  exclusive use(*this, std::unique_lock(mutex_), "get_endpoint_info", kAtRest);
  if (use.result().failed())
    return use.result();
  constexpr std::size_t kMax = 65536; // a line is shorter; a caller may give any length
  std::vector<char> line(std::min(length, kMax));
  if (expected<> result = call("get_endpoint_info", entry, handle_, line.data(), line.size()); result.failed())
    return result;
  line.back() = 0;
  std::memcpy(buffer, line.data(), std::strlen(line.data()) + 1);
  return {};
}

expected<> bridge_instance::get_ring_geometry(std::uint32_t *num_slots, std::uint32_t *slot_size) {
  const auto entry = table_.entries.get_ring_geometry;
  if (expected<> result = since_version(2, entry != nullptr, "get_ring_geometry"); result.failed())
    return result;
  exclusive use(*this, std::unique_lock(mutex_), "get_ring_geometry", kAtRest);
  if (use.result().failed())
    return use.result();
  std::uint32_t slots = 0, size = 0;
  if (expected<> result = call("get_ring_geometry", entry, handle_, &slots, &size); result.failed())
    return result;
  *num_slots = slots;
  *slot_size = size;
  return {};
}

expected<> bridge_instance::set_function_table(const cudaq_function_table_t *table) {
  const auto entry = table_.entries.set_function_table;
  if (entry == nullptr) // also of a version below 3: the provider does not run handlers itself
    return {};
  exclusive use(*this, std::unique_lock(mutex_), "set_function_table", bridge_state::created | bridge_state::connected);
  if (use.result().failed())
    return use.result();
  return call("set_function_table", entry, handle_, table);
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// The functions of bridge_interface.h: they check arguments, find the instance, and call it without any lock.
#include "cudaq/realtime/daemon/bridge/bridge_interface.h"
#include "lib/base/enum_number.h"
#include "lib/transport/bridge/bridge_registry.h"

#include <cstdlib>

using namespace cudaq::realtime::detail;

namespace {

constexpr char kGpuRoce[] = "libcudaq-realtime-bridge-gpu-roce.so";
constexpr char kVariable[] = "CUDAQ_REALTIME_BRIDGE_LIB";

expected<> invalid(const char *text) { return make_reason(CUDAQ_ERR_INVALID_ARG, "%s", text); }

expected<> null_argument(const char *name) { return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", name); }

expected<> check_create(const cudaq_realtime_bridge_handle_t *out_handle, int argc, char *const *argv) {
  if (out_handle == nullptr)
    return null_argument("out_handle");
  if (argc < 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "argc is %d, allowed: 0 or more", argc);
  if (argc > 0 && argv == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "argc is %d, but argv is NULL", argc);
  for (int i = 0; i < argc; ++i)
    if (argv[i] == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "argc is %d, but argv[%d] is NULL", argc, i);
  return {};
}

/// A handle that is in the list while the provider's create runs. It leaves the list if create does not succeed.
class new_handle {
public:
  explicit new_handle(std::shared_ptr<bridge_instance> instance) : handle_(bridge_registry::add(std::move(instance))) {}
  ~new_handle() {
    if (handle_ != nullptr)
      bridge_registry::remove(handle_);
  }
  new_handle(const new_handle &) = delete;
  new_handle &operator=(const new_handle &) = delete;
  cudaq_realtime_bridge_handle_t keep() { return std::exchange(handle_, nullptr); }

private:
  cudaq_realtime_bridge_handle_t handle_;
};

expected<> create_from(cudaq_realtime_bridge_handle_t *out_handle, const std::string &library, int argc, char **argv) {
  void *opened = nullptr;
  if (expected<> result = open_library(library, opened); result.failed())
    return result;
  const provider_table *table = nullptr;
  if (expected<> result = bridge_registry::library_of(opened).table(short_name(library), table); result.failed())
    return result;
  const auto instance = std::make_shared<bridge_instance>(library, *table);
  new_handle handle(instance);
  if (expected<> result = instance->create(argc, argv); result.failed())
    return result;
  *out_handle = handle.keep();
  return {};
}

/// Calls a function of the instance that a handle names.
template <class Function>
expected<> with(cudaq_realtime_bridge_handle_t handle, Function &&function) {
  if (handle == nullptr)
    return null_argument("handle");
  const std::shared_ptr<bridge_instance> instance = bridge_registry::find(handle);
  if (instance == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "handle is %p, which is no instance: it is destroyed, or not of "
                       "cudaq_bridge_create or cudaq_bridge_create_from_library",
                       handle);
  return function(*instance);
}

} // namespace

extern "C" {

cudaq_status_t cudaq_bridge_create(cudaq_realtime_bridge_handle_t *out_handle,
                                   cudaq_realtime_bridge_provider_t provider, int argc, char **argv) {
  return guarded(__func__, [&]() -> expected<> {
    if (expected<> result = check_create(out_handle, argc, argv); result.failed())
      return result;
    switch (number_in(provider)) {
    case CUDAQ_PROVIDER_GPU_ROCE:
      return create_from(out_handle, kGpuRoce, argc, argv);
    case CUDAQ_PROVIDER_EXTERNAL: {
      const char *const library = std::getenv(kVariable);
      if (library == nullptr || *library == 0)
        return make_reason(CUDAQ_ERR_INVALID_ARG,
                           "provider is 1 (CUDAQ_PROVIDER_EXTERNAL), but the environment variable %s is %s; it must "
                           "name the provider's library",
                           kVariable, library == nullptr ? "not set" : "empty");
      return create_from(out_handle, library, argc, argv);
    }
    default:
      return make_reason(CUDAQ_ERR_INVALID_ARG,
                         "provider is %d, allowed: 0 (CUDAQ_PROVIDER_GPU_ROCE), 1 (CUDAQ_PROVIDER_EXTERNAL)",
                         number_in(provider));
    }
  });
}

cudaq_status_t cudaq_bridge_create_from_library(cudaq_realtime_bridge_handle_t *out_handle, const char *library,
                                                int argc, char **argv) {
  return guarded(__func__, [&]() -> expected<> {
    if (expected<> result = check_create(out_handle, argc, argv); result.failed())
      return result;
    if (library == nullptr)
      return null_argument("library");
    if (*library == 0)
      return invalid("library is empty; it must be a path or a file name");
    return create_from(out_handle, library, argc, argv);
  });
}

cudaq_status_t cudaq_bridge_destroy(cudaq_realtime_bridge_handle_t handle) {
  return guarded(__func__, [&] {
    return with(handle, [&](bridge_instance &i) {
      expected<> result = i.destroy();
      if (result.ok())
        bridge_registry::remove(handle);
      return result;
    });
  });
}

cudaq_status_t cudaq_bridge_get_transport_context(cudaq_realtime_bridge_handle_t handle,
                                                  cudaq_realtime_transport_context_t context_type, void *out) {
  return guarded(__func__, [&] {
    return with(handle, [&](bridge_instance &i) -> expected<> {
      const int type = number_in(context_type);
      if (type != RING_BUFFER && type != UNIFIED)
        return make_reason(CUDAQ_ERR_INVALID_ARG, "context_type is %d, allowed: 0 (RING_BUFFER), 1 (UNIFIED)", type);
      return out == nullptr ? null_argument("out") : i.get_transport_context(context_type, out);
    });
  });
}

cudaq_status_t cudaq_bridge_connect(cudaq_realtime_bridge_handle_t handle) {
  return guarded(__func__, [&] {
    return with(handle, [](bridge_instance &i) { return i.connect(steady_clock::time_point::max()); });
  });
}

cudaq_status_t cudaq_bridge_connect_timeout(cudaq_realtime_bridge_handle_t handle, uint64_t timeout_ns) {
  return guarded(__func__, [&] {
    return with(handle, [&](bridge_instance &i) { return i.connect(deadline_after(timeout_ns)); });
  });
}

cudaq_status_t cudaq_bridge_launch(cudaq_realtime_bridge_handle_t handle) {
  return guarded(__func__, [&] { return with(handle, [](bridge_instance &i) { return i.launch(); }); });
}

cudaq_status_t cudaq_bridge_disconnect(cudaq_realtime_bridge_handle_t handle) {
  return guarded(__func__, [&] { return with(handle, [](bridge_instance &i) { return i.disconnect(); }); });
}

cudaq_status_t cudaq_bridge_get_cpu_dataplane(cudaq_realtime_bridge_handle_t handle, cudaq_cpu_dataplane_t *out) {
  return guarded(__func__, [&] {
    return with(handle,
                [&](bridge_instance &i) { return out == nullptr ? null_argument("out") : i.get_cpu_dataplane(out); });
  });
}

cudaq_status_t cudaq_bridge_get_endpoint_info(cudaq_realtime_bridge_handle_t handle, char *buffer, size_t length) {
  return guarded(__func__, [&] {
    return with(handle, [&](bridge_instance &i) {
      if (buffer == nullptr)
        return null_argument("buffer");
      return length == 0 ? invalid("length is 0, allowed: 1 or more") : i.get_endpoint_info(buffer, length);
    });
  });
}

cudaq_status_t cudaq_bridge_get_ring_geometry(cudaq_realtime_bridge_handle_t handle, uint32_t *num_slots,
                                              uint32_t *slot_size) {
  return guarded(__func__, [&] {
    return with(handle, [&](bridge_instance &i) {
      if (num_slots == nullptr || slot_size == nullptr)
        return null_argument(num_slots == nullptr ? "num_slots" : "slot_size");
      return i.get_ring_geometry(num_slots, slot_size);
    });
  });
}

cudaq_status_t cudaq_bridge_set_function_table(cudaq_realtime_bridge_handle_t handle,
                                               const cudaq_function_table_t *table) {
  return guarded(__func__, [&]() -> expected<> {
    if (table == nullptr || table->entries == nullptr)
      return null_argument(table == nullptr ? "table" : "table->entries");
    if (table->count == 0)
      return invalid("table->count is 0, allowed: 1 or more");
    return with(handle, [&](bridge_instance &i) { return i.set_function_table(table); });
  });
}

} // extern "C"

// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/bridge/bridge_registry.h"

#include <algorithm>
#include <dlfcn.h>
#include <vector>

namespace cudaq::realtime::detail {
namespace {

struct entry {
  std::uint64_t number;
  std::shared_ptr<bridge_instance> instance;
};

struct lists {
  std::mutex mutex;
  std::uint64_t last_number = 0;
  std::vector<entry> instances; // numbers ascend
  std::vector<std::unique_ptr<provider_library>> libraries;
};

/// Constructed during compilation, never destroyed.
union storage {
  constexpr storage() : all() {}
  ~storage() {}
  lists all;
};
constinit storage the;

std::uint64_t number_of(cudaq_realtime_bridge_handle_t handle) { return reinterpret_cast<std::uintptr_t>(handle); }

std::vector<entry>::iterator place_of(std::uint64_t number) {
  return std::lower_bound(the.all.instances.begin(), the.all.instances.end(), number,
                          [](const entry &e, std::uint64_t n) { return e.number < n; });
}

/// The mutex is held.
provider_library *loaded_before(void *dlopen_handle) {
  for (const auto &library : the.all.libraries)
    if (library->handle() == dlopen_handle)
      return library.get();
  return nullptr;
}

/// Providers stay loaded. The library that calls them must stay, too: one of its threads may be in a provider's
/// connect. In a program that is linked with the static library this has no effect. The mutex is not held: another
/// thread that has the dynamic linker's lock may be in a library's constructor, and wait for the mutex there.
void stay_loaded() {
  Dl_info info{};
  if (dladdr(&the, &info) != 0 && info.dli_fname != nullptr)
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

} // namespace

cudaq_realtime_bridge_handle_t bridge_registry::add(std::shared_ptr<bridge_instance> instance) {
  const std::lock_guard lock(the.all.mutex);
  the.all.instances.push_back({the.all.last_number + 1, std::move(instance)});
  return reinterpret_cast<cudaq_realtime_bridge_handle_t>(++the.all.last_number);
}

std::shared_ptr<bridge_instance> bridge_registry::find(cudaq_realtime_bridge_handle_t handle) {
  const std::lock_guard lock(the.all.mutex);
  const auto at = place_of(number_of(handle));
  return at != the.all.instances.end() && at->number == number_of(handle) ? at->instance : nullptr;
}

void bridge_registry::remove(cudaq_realtime_bridge_handle_t handle) {
  std::shared_ptr<bridge_instance> freed; // after the lock
  const std::lock_guard lock(the.all.mutex);
  const auto at = place_of(number_of(handle));
  if (at == the.all.instances.end() || at->number != number_of(handle))
    return;
  freed = std::move(at->instance);
  the.all.instances.erase(at);
  if (the.all.instances.empty())
    std::vector<entry>().swap(the.all.instances);
}

provider_library &bridge_registry::library_of(void *dlopen_handle) {
  {
    const std::lock_guard lock(the.all.mutex);
    if (provider_library *const found = loaded_before(dlopen_handle))
      return *found;
  }
  stay_loaded();
  auto library = std::make_unique<provider_library>(dlopen_handle);
  const std::lock_guard lock(the.all.mutex);
  if (provider_library *const found = loaded_before(dlopen_handle))
    return *found;
  the.all.libraries.push_back(std::move(library));
  return *the.all.libraries.back();
}

} // namespace cudaq::realtime::detail

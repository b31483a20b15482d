// SPDX-License-Identifier: Apache-2.0
// Handles of instances, and the libraries of their providers.
//
// This is the one process-wide list of the library. A handle of the bridge is a plain void *, and a function must
// refuse one that is unknown or destroyed. So the value cannot be the address of an object, which may be free or used
// again. It is a number, and the list says what it stands for. Libraries belong to the process, too: the dynamic linker
// has each of them once, and its getter is called once.
//
// The list is never destroyed. At the end of the process, threads of providers may still run, and an attempt to connect
// may still wait. It holds no memory when no instance is left and no library was loaded.
#pragma once

#include "lib/transport/bridge/bridge_instance.h"

#include <memory>

namespace cudaq::realtime::detail {

/// Calls may come from any thread. None of them calls a provider. A number is used once in the life of the process.
struct bridge_registry {
  static cudaq_realtime_bridge_handle_t add(std::shared_ptr<bridge_instance> instance);
  /// NULL: no instance has this handle.
  static std::shared_ptr<bridge_instance> find(cudaq_realtime_bridge_handle_t handle);
  static void remove(cudaq_realtime_bridge_handle_t handle);

  /// The library of a handle of dlopen.
  static provider_library &library_of(void *dlopen_handle);
};

} // namespace cudaq::realtime::detail

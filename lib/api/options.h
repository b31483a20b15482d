// SPDX-License-Identifier: Apache-2.0
// Structs that begin with struct_size may grow at their end. A caller with an older header passes a smaller size: only
// this front part is read or written, and the rest has its defaults. A caller with a newer header is refused.
#pragma once

#include "lib/api/validation.h"

#include <cstring>

namespace cudaq::realtime::detail {

cudaq_dispatcher_options_t default_dispatcher_options();
cudaq_ringbuffer_options_t default_ringbuffer_options();

/// Copies `value` to the caller's struct of `struct_size` bytes.
template <class T>
status_or_reason write_sized(const char *name, T *out, std::uint32_t struct_size, T value) {
  if (out == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", name);
  if (status_or_reason found = check_struct_size(name, struct_size, sizeof(T)))
    return found;
  value.struct_size = struct_size;
  std::memcpy(out, &value, struct_size);
  return {};
}

/// Copies the caller's struct over `into`, which holds the defaults.
template <class T>
status_or_reason read_sized(const char *name, const T *given, T &into) {
  if (given == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", name);
  if (status_or_reason found = check_struct_size(name, given->struct_size, sizeof(T)))
    return found;
  std::memcpy(&into, given, given->struct_size);
  into.struct_size = sizeof(T);
  return {};
}

} // namespace cudaq::realtime::detail

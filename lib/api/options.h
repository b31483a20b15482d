// SPDX-License-Identifier: Apache-2.0
// Structs that begin with struct_size may grow at their end. A caller with an older header passes a smaller size: only
// this front part is read or written, and the rest has its defaults. A size that ends inside a field is cut to the end
// of the field before it. A caller with a newer header is refused.
#pragma once

#include "lib/api/validation.h"

#include <cstddef>
#include <cstring>

namespace cudaq::realtime::detail {

cudaq_dispatcher_options_t default_dispatcher_options();
cudaq_ringbuffer_options_t default_ringbuffer_options();

/// The bytes of a struct in which all fields have 8 bytes. All other fields of it have 4 bytes.
struct byte_range {
  std::size_t begin, end;
};
template <class T>
inline constexpr byte_range eight_byte_fields[] = {{0, 0}};
template <>
inline constexpr byte_range eight_byte_fields<cudaq_dispatcher_options_t>[] = {
    {offsetof(cudaq_dispatcher_options_t, block_interval_ns), offsetof(cudaq_dispatcher_options_t, ring_peers)}};
template <>
inline constexpr byte_range eight_byte_fields<cudaq_dispatcher_stats_t>[] = {
    {offsetof(cudaq_dispatcher_stats_t, received), offsetof(cudaq_dispatcher_stats_t, cursor)},
    {offsetof(cudaq_dispatcher_stats_t, polls), sizeof(cudaq_dispatcher_stats_t)}};
template <>
inline constexpr byte_range eight_byte_fields<cudaq_handler_times_t>[] = {
    {offsetof(cudaq_handler_times_t, count), sizeof(cudaq_handler_times_t)}};
template <>
inline constexpr byte_range eight_byte_fields<cudaq_dispatch_graph_io_t>[] = {
    {offsetof(cudaq_dispatch_graph_io_t, contexts), sizeof(cudaq_dispatch_graph_io_t)}};

/// The end of the last field of T that lies in its first `struct_size` bytes, a multiple of 4.
template <class T>
constexpr std::size_t whole_fields(std::uint32_t struct_size) {
  for (const byte_range &range : eight_byte_fields<T>)
    if (struct_size > range.begin && struct_size < range.end)
      return struct_size - (struct_size - range.begin) % 8;
  return struct_size;
}

/// Copies `value` to the caller's struct of `struct_size` bytes.
template <class T>
expected<> write_sized(const char *name, T *out, std::uint32_t struct_size, T value) {
  if (out == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", name);
  if (expected<> result = check_struct_size(name, struct_size, sizeof(T)); result.failed())
    return result;
  value.struct_size = struct_size;
  std::memcpy(out, &value, whole_fields<T>(struct_size));
  return {};
}

/// Copies the caller's struct over `into`, which holds the defaults.
template <class T>
expected<> read_sized(const char *name, const T *given, T &into) {
  if (given == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", name);
  if (expected<> result = check_struct_size(name, given->struct_size, sizeof(T)); result.failed())
    return result;
  std::memcpy(&into, given, whole_fields<T>(given->struct_size));
  into.struct_size = sizeof(T);
  return {};
}

} // namespace cudaq::realtime::detail

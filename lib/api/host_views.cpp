// SPDX-License-Identifier: Apache-2.0
#include "lib/api/host_views.h"

namespace cudaq::realtime::detail {
namespace {

struct device_array {
  const char *field;
  const volatile void *base;
  std::size_t bytes;
};

/// The array's address on the host. NULL, with the reason: it has none.
void *host_address_of(const device_array &a, const cudaq_dispatcher_config_t &c, const host_query &query,
                      expected<> &result) {
  const auto *last = static_cast<const volatile std::uint8_t *>(a.base) + a.bytes - 1;
  const host_place first = query(a.base), end = first.host == nullptr ? first : query(last);
  const bool whole = end.host == static_cast<std::uint8_t *>(first.host) + a.bytes - 1;
  if (first.host != nullptr && whole)
    return first.host;
  result = make_reason(CUDAQ_ERR_INVALID_ARG,
                       "ringbuffer->%s_host is NULL; config->shared_ring_mode is %u, and the host routes the requests "
                       "of a shared ring. %s is %p: %s; use pinned and mapped memory, or set %s_host",
                       a.field, c.shared_ring_mode, a.field, const_cast<const void *>(a.base),
                       first.host == nullptr ? first.what
                       : end.host == nullptr ? "the host has no address for the end of the array"
                                             : "its end is in another allocation than its begin",
                       a.field);
  return nullptr;
}

} // namespace

expected<> find_host_views(cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c, const host_query &query) {
  const std::size_t flag_bytes = c.num_slots * sizeof(std::uint64_t);
  expected<> result;
  const auto find = [&](auto *&host, const device_array &a) {
    using element = std::remove_reference_t<decltype(*host)>;
    if (host == nullptr && result.ok())
      host = static_cast<element *>(host_address_of(a, c, query, result));
  };
  find(r.rx_flags_host, {"rx_flags", r.rx_flags, flag_bytes});
  find(r.tx_flags_host, {"tx_flags", r.tx_flags, flag_bytes});
  find(r.rx_data_host, {"rx_data", r.rx_data, c.num_slots * r.rx_stride_sz});
  if (is_in_place(r, ring_side::device))
    r.tx_data_host = r.tx_data_host == nullptr ? r.rx_data_host : r.tx_data_host;
  else
    find(r.tx_data_host, {"tx_data", r.tx_data, c.num_slots * r.tx_stride_sz});
  return result;
}

} // namespace cudaq::realtime::detail

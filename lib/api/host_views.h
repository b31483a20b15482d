// SPDX-License-Identifier: Apache-2.0
// The host views of a ring that a caller describes by its device addresses only.
#pragma once

#include "lib/api/validation.h"

#include <functional>

namespace cudaq::realtime::detail {

/// What is known about memory that a device sees at some address.
struct host_place {
  void *host = nullptr;  ///< its address on the host; NULL: there is none, or it is not known
  const char *what = ""; ///< the kind of memory, for the error text; only without a host address
};
using host_query = std::function<host_place(const volatile void *device_address)>;

/// Sets each host view that is NULL, from the device view of the same array. All of the array must lie in memory that
/// the host can access. The device views must be valid for the configuration. In place, tx_data_host becomes
/// rx_data_host. CUDAQ_ERR_INVALID_ARG names the first array that has no host address.
expected<> find_host_views(cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config, const host_query &query);

} // namespace cudaq::realtime::detail

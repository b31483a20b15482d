// SPDX-License-Identifier: Apache-2.0
// The client of the self-test over UCX: a router with one node.
#pragma once

#include "tools/doctor/loopback_check.h"

#include <cstdint>
#include <memory>

namespace cudaq::realtime::tools {

/// A client of the provider ucx that listens at this port of 127.0.0.1. Throws usage_error if there is no link.
std::unique_ptr<one_request> make_ucx_request(std::uint32_t port, std::uint32_t max_payload_bytes);

} // namespace cudaq::realtime::tools

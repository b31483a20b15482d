// SPDX-License-Identifier: Apache-2.0
// The links of emulate, one for each transport.
#pragma once

#include "tools/emulate/emulate.h"
#include "tools/emulate/link.h"

#include <memory>

namespace cudaq::realtime::tools {

/// Connects to the server of the options, for requests with at most `payload_bytes` (shm:
/// see link::require_room). Throws usage_error, or api_error
/// if there is no such server. `window`: a power of two; ids that are open together differ by less.
std::unique_ptr<link> make_udp_link(const emulate_options &options, std::uint32_t window, std::size_t payload_bytes);
std::unique_ptr<link> make_roce_link(const emulate_options &options, std::uint32_t window, std::size_t payload_bytes);
std::unique_ptr<link> make_shm_link(const emulate_options &options);
/// A ring of `num_slots` slots in this process, with a dispatcher that decodes these shots. Throws usage_error with the
/// decoder's reason.
std::unique_ptr<link> make_ring_link(const emulate_options &options, const cudaq::qec::realtime::shot_set &shots,
                                     std::uint32_t num_slots);

/// A link to a server in another process.
std::unique_ptr<link> make_served_link(const emulate_options &options, std::uint32_t window, std::size_t payload_bytes);
inline bool over_network(const emulate_options &options) {
  return options.transport == "udp" || options.transport == "roce";
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/route/route_wire.h"

#include <bit>
#include <cstring>

namespace cudaq::realtime::detail {

static_assert(std::endian::native == std::endian::little, "headers are copied from the wire as they are");

bool read_route_message(std::span<const std::uint8_t> bytes, route_header &header,
                        std::span<const std::uint8_t> &payload) noexcept {
  if (bytes.size() < kRouteHeaderBytes)
    return false;
  std::memcpy(static_cast<void *>(&header), bytes.data(), kRouteHeaderBytes);
  if (header.magic != kRouteMagic || header.version != kRouteVersion || header.kind < route_kind::hello ||
      header.kind > route_kind::bye || header.length != bytes.size() - kRouteHeaderBytes)
    return false;
  payload = bytes.subspan(kRouteHeaderBytes);
  return true;
}

} // namespace cudaq::realtime::detail

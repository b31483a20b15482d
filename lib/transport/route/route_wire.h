// SPDX-License-Identifier: Apache-2.0
// The messages between a router and its nodes: a header of 48 bytes and a payload. docs/transport/route.md, "The wire".
// Numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kRouteMagic = 0x4E525143; ///< "CQRN"
inline constexpr std::uint8_t kRouteVersion = 1;
inline constexpr std::uint32_t kMaxNodeSlotBytes = 1u << 20;

enum class route_kind : std::uint8_t {
  hello = 1,   ///< router: begins a session. generation: the router's id at this node
  welcome = 2, ///< node: it has begun. slot: credits; function_id: most payload bytes; status: 1 = only this router has
               ///< used the node since its start, else 0
  refuse = 3,  ///< node: it has no room for another router
  request = 4, ///< router: slot, generation, function_id, timestamp, payload; status: request_id of the requester
  answer = 5,  ///< node: slot and generation of the request, status, result
  ping = 6,    ///< router
  pong = 7,    ///< node
  bye = 8      ///< either side: the session ends. A node has sent all answers that it will send
};

struct __attribute__((packed)) route_header {
  std::uint32_t magic = kRouteMagic;
  std::uint8_t version = kRouteVersion;
  route_kind kind = route_kind::ping;
  std::uint16_t node = 0;       ///< number of the node at the router; the node repeats it
  std::uint64_t epoch = 0;      ///< of the session; a router uses each once
  std::uint32_t slot = 0;       ///< from 0 to credits - 1
  std::uint32_t length = 0;     ///< payload bytes after the header
  std::uint64_t generation = 0; ///< counts the requests of a slot, over all sessions
  std::uint32_t function_id = 0;
  std::int32_t status = 0;
  std::uint64_t timestamp = 0; ///< of a request: the requester's
};
inline constexpr std::size_t kRouteHeaderBytes = 48;
static_assert(sizeof(route_header) == kRouteHeaderBytes && offsetof(route_header, epoch) == 8 &&
              offsetof(route_header, slot) == 16 && offsetof(route_header, generation) == 24 &&
              offsetof(route_header, function_id) == 32 && offsetof(route_header, timestamp) == 40);

/// Takes a message apart. False: it is too short, of another magic, version or kind, or its length is not that of its
/// payload. `payload` points into `bytes`.
[[nodiscard]] bool read_route_message(std::span<const std::uint8_t> bytes, route_header &header,
                                      std::span<const std::uint8_t> &payload) noexcept;

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// Frames as bytes, to one server and back: what the player of an FPGA has in place of a client.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace cudaq::realtime::tools {

class frame_port {
public:
  virtual ~frame_port() = default;
  /// False: the system has no room at this moment.
  virtual bool send(std::span<std::uint8_t> frame) = 0;
  /// A message that has arrived; empty: none. Valid until the next call.
  virtual std::span<const std::uint8_t> receive() = 0;
};

/// The server, as a host has written it to the registers of an FPGA.
struct frame_destination {
  std::string transport; ///< "udp" or "roce"
  std::string address;   ///< numeric IPv4
  std::uint32_t port = 0;
  std::string own_address; ///< "": the system chooses one
  std::uint32_t page_bytes = 0, pages = 0;
  std::uint32_t qp = 0, rkey = 0, mtu = 4096; ///< roce
};

/// Throws api_error with the reason.
std::unique_ptr<frame_port> open_frame_port(const frame_destination &to);

} // namespace cudaq::realtime::tools

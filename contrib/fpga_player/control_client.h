// SPDX-License-Identifier: Apache-2.0
// The host's side of the registers of an FPGA: one request at a time, sent again until its reply comes.
#pragma once

#include "contrib/fpga_player/control_packet.h"
#include "lib/transport/datagram/udp_socket.h"

#include <chrono>
#include <string>

namespace cudaq::realtime::tools {

/// Every call throws api_error if no reply comes within the timeout, or if the FPGA refuses.
class control_client {
public:
  control_client(const std::string &address, std::uint32_t port, std::chrono::nanoseconds timeout);

  void write(std::uint32_t address, std::uint32_t value);
  /// In packets of many registers.
  void write(std::span<const register_value> registers);
  std::uint32_t read(std::uint32_t address);
  /// Fills in the values of `registers`.
  void read(std::span<register_value> registers);

  /// Requests that were sent again.
  [[nodiscard]] std::uint64_t repeated() const { return repeated_; }

private:
  control_reply exchange(control_request request);
  bool receive(std::uint16_t sequence, control_reply &reply, std::chrono::nanoseconds time);

  const std::string where_;
  const std::chrono::nanoseconds timeout_;
  detail::udp_socket socket_;
  std::uint16_t sequence_ = 0;
  std::uint64_t repeated_ = 0;
};

} // namespace cudaq::realtime::tools

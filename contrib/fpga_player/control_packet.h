// SPDX-License-Identifier: Apache-2.0
// Packets by which a host reads and writes the registers of an FPGA over UDP: docs/transport/fpga_player.md has the
// layout. Numbers are big-endian. No function here makes a system call or reads outside of its arguments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::realtime::tools {

enum class control_command : std::uint8_t {
  write_byte = 0x01,
  write_word = 0x02, ///< 16 bits
  write_dword = 0x04,
  write_block = 0x09, ///< any number of registers
  modify = 0x0A,      ///< sets the bits of a mask
  read_byte = 0x11,
  read_word = 0x12,
  read_dword = 0x14,
  read_block = 0x19,
  get_info = 0x20,
};

enum class control_code : std::uint8_t { ok = 0x00, address = 0x03, command = 0x04, flag = 0x06, sequence = 0x0B };
/// "wrong address" and the like.
const char *control_code_text(control_code code);

inline constexpr std::uint8_t kWantsAck = 1, kChecksSequence = 2; ///< flags
inline constexpr std::size_t kControlHeadBytes = 6, kPairBytes = 8;
inline constexpr std::size_t kMaxPairs = 183; ///< so that packet and reply fit into an Ethernet frame
inline constexpr std::size_t kLargestControlPacket = 1472;

struct register_value {
  std::uint32_t address = 0, value = 0;
  bool operator==(const register_value &) const = default;
};

struct control_request {
  control_command command = control_command::get_info;
  std::uint8_t flags = kWantsAck;
  std::uint16_t sequence = 0;
  /// modify: two of the same address, the mask and then the value. Reads: the values have no meaning.
  std::vector<register_value> registers;

  [[nodiscard]] bool reads() const { return static_cast<std::uint8_t>(command) >= 0x10; }
  [[nodiscard]] bool wants_ack() const { return (flags & kWantsAck) != 0 || reads(); }
};

/// A reply: code, then for a read the registers, and the latched sequence.
struct control_reply {
  std::uint8_t command = 0, flags = 0;
  std::uint16_t sequence = 0;
  control_code code = control_code::ok;
  std::vector<register_value> registers;
  std::uint16_t latched_sequence = 0;
};

struct read_control {
  bool has_head = false; ///< else the packet is too short to be answered
  control_code code = control_code::ok;
  control_request request; ///< command, flags and sequence are as in the packet, whatever the code is
};

/// Checks form alone: a known command, known flags, the right number of registers. Addresses are not checked.
read_control read_control_request(std::span<const std::uint8_t> packet);
/// A read of one register has no value in it.
std::vector<std::uint8_t> write_control_request(const control_request &request);

/// `registers` are sent for a read with code ok only.
std::vector<std::uint8_t> write_control_reply(const control_request &to, control_code code,
                                              std::span<const register_value> registers,
                                              std::uint16_t latched_sequence);
/// Of the emulated FPGA, or of a sensor bridge (docs/transport/hsb_cosim.md). False: the packet is no complete reply.
bool read_control_reply(std::span<const std::uint8_t> packet, control_reply &out);

} // namespace cudaq::realtime::tools

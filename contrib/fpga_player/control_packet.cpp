// SPDX-License-Identifier: Apache-2.0
#include "contrib/fpga_player/control_packet.h"

namespace cudaq::realtime::tools {
namespace {

std::uint16_t big_16(const std::uint8_t *p) { return static_cast<std::uint16_t>(p[0] << 8 | p[1]); }
std::uint32_t big_32(const std::uint8_t *p) {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}
void put(std::vector<std::uint8_t> &to, std::uint32_t value, int bytes) {
  for (int k = bytes - 1; k >= 0; --k)
    to.push_back(static_cast<std::uint8_t>(value >> (8 * k)));
}

bool known(std::uint8_t command) {
  switch (static_cast<control_command>(command)) {
  case control_command::write_byte:
  case control_command::write_word:
  case control_command::write_dword:
  case control_command::write_block:
  case control_command::modify:
  case control_command::read_byte:
  case control_command::read_word:
  case control_command::read_dword:
  case control_command::read_block:
  case control_command::get_info:
    return true;
  }
  return false;
}

bool reads_one(control_command command) {
  return command == control_command::read_byte || command == control_command::read_word ||
         command == control_command::read_dword;
}

bool right_number(const control_request &r) {
  switch (r.command) {
  case control_command::get_info:
    return r.registers.empty();
  case control_command::write_block:
  case control_command::read_block:
    return !r.registers.empty() && r.registers.size() <= kMaxPairs;
  case control_command::modify:
    return r.registers.size() == 2 && r.registers[0].address == r.registers[1].address;
  default:
    return r.registers.size() == 1;
  }
}

std::vector<std::uint8_t> head(std::uint8_t command, std::uint8_t flags, std::uint16_t sequence, control_code code) {
  std::vector<std::uint8_t> packet{command, flags};
  put(packet, sequence, 2);
  packet.push_back(static_cast<std::uint8_t>(code));
  packet.push_back(0);
  return packet;
}

void put(std::vector<std::uint8_t> &packet, std::span<const register_value> registers) {
  for (const register_value &r : registers) {
    put(packet, r.address, 4);
    put(packet, r.value, 4);
  }
}

} // namespace

const char *control_code_text(control_code code) {
  switch (code) {
  case control_code::ok:
    return "good";
  case control_code::address:
    return "there is no such register";
  case control_code::command:
    return "unknown command, or a wrong number of registers";
  case control_code::flag:
    return "unknown flag";
  case control_code::sequence:
    return "wrong sequence number";
  }
  return "unknown code";
}

read_control read_control_request(std::span<const std::uint8_t> packet) {
  read_control read;
  if (packet.size() < kControlHeadBytes)
    return read;
  read.has_head = true;
  control_request &r = read.request;
  r.command = static_cast<control_command>(packet[0]);
  r.flags = packet[1];
  r.sequence = big_16(&packet[2]);
  std::span<const std::uint8_t> rest = packet.subspan(kControlHeadBytes);
  if (!known(packet[0])) {
    read.code = control_code::command;
  } else if ((r.flags & ~(kWantsAck | kChecksSequence)) != 0) {
    read.code = control_code::flag;
  } else {
    for (; rest.size() >= kPairBytes; rest = rest.subspan(kPairBytes))
      r.registers.push_back({big_32(rest.data()), big_32(rest.data() + 4)});
    if (reads_one(r.command) && rest.size() == 4) { // the address alone
      r.registers.push_back({big_32(rest.data()), 0});
      rest = {};
    }
    if (!rest.empty() || !right_number(r))
      read.code = control_code::command;
  }
  return read;
}

std::vector<std::uint8_t> write_control_request(const control_request &r) {
  std::vector<std::uint8_t> packet = head(static_cast<std::uint8_t>(r.command), r.flags, r.sequence, control_code::ok);
  put(packet, r.registers);
  if (reads_one(r.command))
    packet.resize(kControlHeadBytes + 4);
  return packet;
}

std::vector<std::uint8_t> write_control_reply(const control_request &to, control_code code,
                                              std::span<const register_value> registers,
                                              std::uint16_t latched_sequence) {
  std::vector<std::uint8_t> packet = head(static_cast<std::uint8_t>(to.command), to.flags, to.sequence, code);
  if (to.reads() && code == control_code::ok) {
    put(packet, registers);
    put(packet, latched_sequence, 2);
  }
  return packet;
}

bool read_control_reply(std::span<const std::uint8_t> packet, control_reply &out) {
  // The logic of a sensor bridge marks a reply, has a register in each of them, and fills it up to the shortest frame.
  constexpr std::uint8_t kIsReply = 0x80;
  constexpr std::size_t kFilledUp = 18, kFilling = 2;
  out = {};
  if (packet.size() < kControlHeadBytes)
    return false;
  out.command = packet[0] & static_cast<std::uint8_t>(~kIsReply);
  out.flags = packet[1];
  out.sequence = big_16(&packet[2]);
  out.code = static_cast<control_code>(packet[4]);
  std::span<const std::uint8_t> rest = packet.subspan(kControlHeadBytes);
  if (rest.empty())
    return out.command < 0x10 || out.code != control_code::ok;
  if (packet.size() == kFilledUp)
    rest = rest.first(rest.size() - kFilling);
  for (; rest.size() >= kPairBytes; rest = rest.subspan(kPairBytes))
    out.registers.push_back({big_32(rest.data()), big_32(rest.data() + 4)});
  if (rest.size() != 2)
    return false;
  out.latched_sequence = big_16(rest.data());
  return true;
}

} // namespace cudaq::realtime::tools

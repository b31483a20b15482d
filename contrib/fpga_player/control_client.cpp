// SPDX-License-Identifier: Apache-2.0
#include "contrib/fpga_player/control_client.h"

#include "tools/common/api_objects.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

using clock = std::chrono::steady_clock;
constexpr auto kRetryAfter = std::chrono::milliseconds(200);

} // namespace

control_client::control_client(const std::string &address, std::uint32_t port, std::chrono::nanoseconds timeout)
    : where_(fmt::format("{}:{}", address, port)), timeout_(timeout) {
  detail::udp_address fpga, own;
  detail::expected<> result = detail::udp_address_of("--hsb-ip", address, port, fpga);
  if (result.ok())
    result = detail::own_address_towards(fpga, own);
  if (result.ok())
    result = socket_.open(own, 0);
  if (result.ok())
    result = socket_.connect(fpga);
  if (result.failed())
    throw api_error(result.text());
}

void control_client::write(std::uint32_t address, std::uint32_t value) {
  exchange({control_command::write_dword, kWantsAck, 0, {{address, value}}});
}

void control_client::write(std::span<const register_value> registers) {
  while (!registers.empty()) {
    const auto part = registers.first(std::min(registers.size(), kMaxPairs));
    exchange({control_command::write_block, kWantsAck, 0, {part.begin(), part.end()}});
    registers = registers.subspan(part.size());
  }
}

std::uint32_t control_client::read(std::uint32_t address) {
  return exchange({control_command::read_dword, kWantsAck, 0, {{address, 0}}}).registers.at(0).value;
}

void control_client::read(std::span<register_value> registers) {
  while (!registers.empty()) {
    const auto part = registers.first(std::min(registers.size(), kMaxPairs));
    const control_reply reply = exchange({control_command::read_block, kWantsAck, 0, {part.begin(), part.end()}});
    std::ranges::copy(reply.registers, part.begin());
    registers = registers.subspan(part.size());
  }
}

control_reply control_client::exchange(control_request request) {
  request.sequence = sequence_++;
  const std::vector<std::uint8_t> packet = write_control_request(request);
  const clock::time_point deadline = clock::now() + timeout_;
  for (bool again = false; clock::now() < deadline; again = true) {
    repeated_ += again;
    // An error of an earlier packet is reported here: the FPGA does not listen yet.
    (void)::send(socket_.fd(), packet.data(), packet.size(), MSG_NOSIGNAL);
    control_reply reply;
    if (!receive(request.sequence, reply, std::min<std::chrono::nanoseconds>(kRetryAfter, deadline - clock::now())))
      continue;
    const std::uint32_t address = request.registers.front().address;
    if (reply.code != control_code::ok)
      throw api_error(fmt::format("the FPGA at {} refuses command {:#04x} at {:#x} with code {:#04x}: {}", where_,
                                  static_cast<unsigned>(request.command), address, static_cast<unsigned>(reply.code),
                                  control_code_text(reply.code)));
    if (request.reads() && reply.registers.size() != request.registers.size())
      throw api_error(fmt::format("the FPGA at {} answers a read of {} registers at {:#x} with {}", where_,
                                  request.registers.size(), address, reply.registers.size()));
    return reply;
  }
  throw api_error(fmt::format("no reply from {} within {:.3g} s; --hsb-ip and --control-port name the FPGA, or "
                              "`cudaq-realtime-fpga-player emulate`",
                              where_, std::chrono::duration<double>(timeout_).count()));
}

bool control_client::receive(std::uint16_t sequence, control_reply &reply, std::chrono::nanoseconds time) {
  const clock::time_point end = clock::now() + time;
  std::array<std::uint8_t, kLargestControlPacket> packet;
  for (clock::time_point now; (now = clock::now()) < end;) {
    socket_.wait(true, end - now);
    const ssize_t n = ::recv(socket_.fd(), packet.data(), packet.size(), MSG_DONTWAIT);
    if (n > 0 && read_control_reply({packet.data(), static_cast<std::size_t>(n)}, reply) && reply.sequence == sequence)
      return true;
  }
  return false;
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "contrib/hsb_cosim/simulated_bridge.h"

#include "contrib/fpga_player/control_packet.h"

#include <Vbridge.h>
#include <Vbridge___024root.h>
#include <algorithm>
#include <utility>
#include <verilated.h>

namespace cudaq::realtime::tools {
namespace {

constexpr std::size_t kIpBytes = 20, kUdpBytes = 8, kShortestFrame = 60, kWordBytes = 8;
constexpr std::uint32_t kClocksToStart = 2'000'000, kClocksOfReset = 64;
/// After the last frame of the bridge. Its largest pause within one piece of work is far smaller.
constexpr std::uint32_t kQuietClocks = 2000;

void put(byte_vector &to, std::uint64_t value, int bytes) {
  for (int k = bytes - 1; k >= 0; --k)
    to.push_back(static_cast<std::uint8_t>(value >> (8 * k)));
}
std::uint32_t big_endian(const std::uint8_t *p, int bytes) {
  std::uint32_t value = 0;
  for (int k = 0; k < bytes; ++k)
    value = value << 8 | p[k];
  return value;
}

/// 0: the checksum in the header is right.
std::uint16_t ip_checksum(const std::uint8_t *header) {
  std::uint32_t sum = 0;
  for (std::size_t at = 0; at < kIpBytes; at += 2)
    sum += big_endian(header + at, 2);
  while (sum >> 16 != 0)
    sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

} // namespace

byte_vector ethernet_frame::bytes() const {
  byte_vector b(to.begin(), to.end());
  b.insert(b.end(), from.begin(), from.end());
  put(b, 0x0800, 2);
  put(b, 0x4500, 2);
  put(b, kIpBytes + kUdpBytes + payload.size(), 2);
  put(b, identification, 2);
  put(b, fragmentation, 2);
  put(b, 0x4011, 2); // time to live, UDP
  put(b, 0, 2);
  put(b, source, 4);
  put(b, destination, 4);
  const std::uint16_t checksum = ip_checksum(&b[kEthernetBytes]);
  b[kEthernetBytes + 10] = static_cast<std::uint8_t>(checksum >> 8);
  b[kEthernetBytes + 11] = static_cast<std::uint8_t>(checksum);
  put(b, source_port, 2);
  put(b, destination_port, 2);
  put(b, kUdpBytes + payload.size(), 2);
  put(b, 0, 2); // no checksum of UDP
  b.insert(b.end(), payload.begin(), payload.end());
  b.resize(std::max(b.size(), kShortestFrame));
  return b;
}

std::optional<ethernet_frame> ethernet_frame::read(std::span<const std::uint8_t> b) {
  constexpr std::size_t kHeads = kEthernetBytes + kIpBytes + kUdpBytes;
  if (b.size() < kHeads || big_endian(&b[12], 2) != 0x0800 || b[14] != 0x45 || b[23] != 17)
    return {};
  const std::uint8_t *const ip = &b[kEthernetBytes], *const udp = ip + kIpBytes;
  const std::size_t length = big_endian(udp + 4, 2);
  if (ip_checksum(ip) != 0 || length < kUdpBytes || big_endian(ip + 2, 2) != kIpBytes + length ||
      kEthernetBytes + kIpBytes + length > b.size())
    return {};
  ethernet_frame frame;
  std::copy_n(&b[0], frame.to.size(), frame.to.begin());
  std::copy_n(&b[6], frame.from.size(), frame.from.begin());
  frame.source = big_endian(ip + 12, 4);
  frame.destination = big_endian(ip + 16, 4);
  frame.source_port = static_cast<std::uint16_t>(big_endian(udp, 2));
  frame.destination_port = static_cast<std::uint16_t>(big_endian(udp + 2, 2));
  frame.identification = static_cast<std::uint16_t>(big_endian(ip + 4, 2));
  frame.fragmentation = static_cast<std::uint16_t>(big_endian(ip + 6, 2));
  frame.payload.assign(udp + kUdpBytes, udp + length);
  return frame;
}

struct simulated_bridge::logic {
  VerilatedContext context;
  Vbridge top{&context};
  byte_vector frame;                  ///< that the bridge is sending
  std::vector<ethernet_frame> frames; ///< that it has sent to the host
  byte_vector to_sensor;
  std::uint32_t quiet = 0; ///< clocks since it sent something
  std::uint16_t sequence = 0;

  logic() {
    top.i_apb_pready = 1;
    top.i_hif_axis_tready = 3;
    top.i_sif_axis_tready = 1;
    top.i_sys_rst = 1;
    run(kClocksOfReset);
    top.i_sys_rst = 0;
    for (std::uint32_t k = 0; k < kClocksToStart && !top.o_init_done; ++k)
      clock();
    run(kClocksOfReset);
    frames.clear();
  }

  /// All clocks of the board are one.
  void clock() {
    top.i_i2c_scl = top.o_i2c_scl_en; // no EEPROM answers
    top.i_i2c_sda = top.o_i2c_sda_en;
    edge(0);
    ++quiet;
    if (top.o_hif_axis_tvalid & 1) {
      take(top.o_hif_axis_tdata[0], top.o_hif_axis_tkeep[0], frame);
      quiet = 0;
      if (top.o_hif_axis_tlast & 1) {
        if (std::optional<ethernet_frame> read = ethernet_frame::read(frame))
          frames.push_back(std::move(*read));
        frame.clear();
      }
    }
    if (top.o_sif_axis_tvalid && top.i_sif_axis_tready)
      take(top.o_sif_axis_tdata[0], top.o_sif_axis_tkeep[0], to_sensor);
    edge(1);
  }
  void edge(std::uint8_t level) {
    top.i_apb_clk = top.i_hif_clk = top.i_ptp_clk = top.i_sif_tx_clk = level;
    top.i_sif_rx_clk = level ? 3 : 0;
    top.eval();
  }
  static void take(std::uint64_t word, std::uint32_t keep, byte_vector &to) {
    for (std::size_t k = 0; k < kWordBytes; ++k)
      if (keep >> k & 1)
        to.push_back(static_cast<std::uint8_t>(word >> (8 * k)));
  }
  static std::uint64_t word_of(std::span<const std::uint8_t> bytes) {
    std::uint64_t word = 0;
    for (std::size_t k = 0; k < bytes.size(); ++k)
      word |= std::uint64_t{bytes[k]} << (8 * k);
    return word;
  }
  void run(std::uint32_t clocks) {
    for (std::uint32_t k = 0; k < clocks; ++k)
      clock();
  }
  std::vector<ethernet_frame> settle() {
    for (quiet = 0; quiet < kQuietClocks;)
      clock();
    return std::exchange(frames, {});
  }
  void send(const ethernet_frame &what) {
    frames.clear();
    const byte_vector bytes = what.bytes();
    for (std::span<const std::uint8_t> left = bytes; !left.empty();) {
      const std::span<const std::uint8_t> word = left.first(std::min(left.size(), kWordBytes));
      left = left.subspan(word.size());
      top.i_hif_axis_tvalid = 1;
      top.i_hif_axis_tlast = left.empty();
      top.i_hif_axis_tdata[0] = word_of(word);
      top.i_hif_axis_tkeep[0] = static_cast<std::uint8_t>((1u << word.size()) - 1);
      clock();
    }
    top.i_hif_axis_tvalid = top.i_hif_axis_tlast = 0;
  }
  std::optional<control_reply> control(control_command command, register_value about) {
    ethernet_frame request = frame_to();
    request.source_port = request.destination_port = kControlPort;
    request.payload = write_control_request({command, kWantsAck, ++sequence, {about}});
    send(request);
    control_reply reply;
    for (quiet = 0; quiet < kQuietClocks; clock())
      if (!frames.empty() && frames.back().source_port == kControlPort &&
          read_control_reply(frames.back().payload, reply) && reply.sequence == sequence)
        return reply.code == control_code::ok ? std::optional(reply) : std::nullopt;
    return {};
  }
};

simulated_bridge::simulated_bridge() : logic_(std::make_unique<logic>()) {}
simulated_bridge::~simulated_bridge() = default;
bool simulated_bridge::ready() const { return logic_->top.o_init_done != 0; }

std::vector<ethernet_frame> simulated_bridge::give(const ethernet_frame &frame) {
  logic_->send(frame);
  return logic_->settle();
}

std::vector<ethernet_frame> simulated_bridge::measure(std::span<const std::uint8_t> window) {
  Vbridge &top = logic_->top;
  logic_->frames.clear();
  for (std::uint32_t clocks = 0; !window.empty() && clocks < kClocksToStart; ++clocks) {
    top.i_sif_axis_tvalid = 1;
    top.i_sif_axis_tlast = window.size() == kWordBytes;
    top.i_sif_axis_tdata[0] = logic::word_of(window.first(kWordBytes));
    top.i_sif_axis_tkeep[0] = 0xFF;
    top.eval();
    const bool taken = top.o_sif_axis_tready & 1;
    logic_->clock();
    if (taken)
      window = window.subspan(kWordBytes);
  }
  top.i_sif_axis_tvalid = top.i_sif_axis_tlast = 0;
  return logic_->settle();
}

ethernet_frame simulated_bridge::frame_to() {
  ethernet_frame frame;
  frame.from = {2, 0, 0, 0, 0, 1};
  frame.source = kHostAddress;
  frame.destination = kAddress;
  return frame;
}

bool simulated_bridge::write(std::uint32_t address, std::uint32_t value) {
  return logic_->control(control_command::write_dword, {address, value}).has_value();
}

std::optional<std::uint32_t> simulated_bridge::read(std::uint32_t address) {
  const auto reply = logic_->control(control_command::read_dword, {address, 0});
  if (!reply || reply->registers.size() != 1 || reply->registers[0].address != address)
    return {};
  return reply->registers[0].value;
}

byte_vector simulated_bridge::sent_to_sensor() {
  (void)logic_->settle();
  return std::exchange(logic_->to_sensor, {});
}

void simulated_bridge::sensor_takes(bool takes) { logic_->top.i_sif_axis_tready = takes; }

void simulated_bridge::set_next_packet_number(std::uint32_t psn) {
  constexpr unsigned kAt = 17; // bits 17 to 40 of the state of a sensor
  auto &state = logic_->top.rootp->HOLOLINK_top__DOT__u_dp_pkt_top__DOT__sts_ram[0];
  const std::uint64_t mask = std::uint64_t{0xFFFFFF} << kAt;
  std::uint64_t low = state[0] | std::uint64_t{state[1]} << 32;
  low = (low & ~mask) | (std::uint64_t{psn} << kAt & mask);
  state[0] = static_cast<std::uint32_t>(low);
  state[1] = static_cast<std::uint32_t>(low >> 32);
}

} // namespace cudaq::realtime::tools

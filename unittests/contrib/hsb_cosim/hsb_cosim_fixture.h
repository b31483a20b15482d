// SPDX-License-Identifier: Apache-2.0
// A simulated sensor bridge, its host software, and a receiver. docs/transport/hsb_cosim.md
#pragma once

#include "contrib/fpga_player/fpga_registers.h"
#include "contrib/hsb_cosim/simulated_bridge.h"
#include "lib/transport/roce/roce_icrc.h"
#include "lib/transport/roce/uc_receiver.h"

#include <gtest/gtest.h>
#include <utility>

namespace cudaq::realtime::test {

using namespace detail;
using tools::byte_vector;
using tools::ethernet_frame;
using tools::simulated_bridge;

inline constexpr std::uint32_t kVp = 0x1000, kHif = 0x02000300, kAcknowledge = 0x0200001C, kHostQp = 0x3000;
inline constexpr std::uint32_t kToSensor = 0x01200000;
inline constexpr std::uint32_t kPages = 4, kPageBytes = 512, kUnit = 128;
inline constexpr std::uint32_t kQp = 0x11, kBridgeQp = 2, kRkey = 0x1234;
inline constexpr std::uint16_t kBridgePort = 12288, kHostPort = 49999;

inline udp_address address_of(std::uint32_t ip, std::uint16_t port) {
  udp_address address;
  auto &v4 = reinterpret_cast<sockaddr_in &>(address.bytes);
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(ip);
  v4.sin_port = htons(port);
  address.length = sizeof(v4);
  return address;
}
inline roce_path path_of(const ethernet_frame &f) {
  return {address_of(f.source, f.source_port), address_of(f.destination, f.destination_port)};
}
inline byte_vector window_of(std::size_t size, std::uint8_t first) {
  byte_vector window(size);
  for (std::size_t k = 0; k < size; ++k)
    window[k] = static_cast<std::uint8_t>(first + 3 * k + (k >> 8));
  return window;
}

class HsbCosim : public ::testing::Test {
protected:
  void SetUp() override { ASSERT_TRUE(bridge.ready()) << "the logic did not start"; }

  /// As the host software of the bridge does it. Windows of up to 128 bytes have no metadata.
  void program(std::uint32_t window_bytes, std::uint32_t packet_bytes = 256, std::uint32_t page_bytes = kPageBytes) {
    const bool metadata = window_bytes > kUnit;
    const std::pair<std::uint32_t, std::uint32_t> registers[] = {
        {kHif + tools::hif::vp_mask, 0},
        {kHif + tools::hif::packet_size, packet_bytes / kUnit},
        {kHif + tools::hif::packet_port, kBridgePort},
        {kVp + tools::vp::length, window_bytes},
        {kVp + tools::vp::mac_low, 0x00000001},
        {kVp + tools::vp::mac_high, 0x0200},
        {kVp + tools::vp::ip, simulated_bridge::kHostAddress},
        {kVp + tools::vp::port, kRocePort | (metadata ? 0u : 1u << 16)},
        {kVp + tools::vp::qp, kQp},
        {kVp + tools::vp::rkey, kRkey},
        {kVp + tools::vp::page_lsb, 0},
        {kVp + tools::vp::page_msb, 0},
        {kVp + tools::vp::page_inc, page_bytes / kUnit},
        {kVp + tools::vp::max_buff, kPages - 1},
        {kHif + tools::hif::vp_mask, 1},
    };
    for (const auto &[address, value] : registers)
      ASSERT_TRUE(bridge.write(address, value)) << std::hex << address;
  }

  /// Without it, an answer waits until the buffer before the sensor has been three quarters full once.
  void pass_answers_on(bool pauses = false) {
    ASSERT_TRUE(bridge.write(kToSensor + 4, 1)); // "almost full" from one word on
    ASSERT_TRUE(bridge.write(kToSensor + 8, 0)); // "almost empty"
    ASSERT_TRUE(bridge.write(kToSensor, 0x5 | (pauses ? 2u : 0u)));
  }

  /// The packets of a window. Each of them has the ICRC of identification 0.
  std::vector<ethernet_frame> writes_of(const byte_vector &window) {
    std::vector<ethernet_frame> frames = bridge.measure(window);
    std::erase_if(frames, [](const ethernet_frame &f) { return f.destination_port != kRocePort; });
    for (const ethernet_frame &f : frames) {
      EXPECT_EQ(f.identification, 0);
      EXPECT_EQ(f.fragmentation, 0x4000);
      EXPECT_EQ(f.source_port, kBridgePort);
      EXPECT_EQ(check_icrc(path_of(f), f.payload), icrc_finding::verified);
    }
    return frames;
  }
  static roce_packet packet_of(const ethernet_frame &f) {
    roce_packet packet;
    EXPECT_EQ(read_roce_packet(f.payload, packet), packet_finding::good);
    EXPECT_EQ(packet.pkey, kDefaultPkey);
    EXPECT_EQ(packet.qp, kQp);
    return packet;
  }
  /// The message that the frames complete.
  byte_vector take(const std::vector<ethernet_frame> &frames) {
    byte_vector message;
    for (const ethernet_frame &f : frames)
      if (const uc_receiver::message m = receiver.take(0, packet_of(f)); m.complete)
        message.assign(m.bytes.begin(), m.bytes.end());
    return message;
  }

  /// A packet to the sensor, as the provider roce makes it. An adapter numbers its datagrams: `identification`.
  static ethernet_frame frame_of(const roce_packet &packet, std::uint16_t identification = 0) {
    ethernet_frame f = simulated_bridge::frame_to();
    f.source_port = kHostPort;
    f.destination_port = kRocePort;
    f.identification = identification;
    f.payload.resize(kMaxHeaderBytes + packet.payload.size() + 3 + kIcrcBytes);
    f.payload.resize(write_roce_packet(packet, f.payload.data()));
    seal_with_icrc(path_of(f), f.payload);
    return f;
  }
  static roce_packet send_of(std::span<const std::uint8_t> payload, std::uint32_t psn,
                             uc_opcode opcode = uc_opcode::send_only) {
    roce_packet packet;
    packet.opcode = opcode;
    packet.qp = kBridgeQp;
    packet.psn = psn;
    packet.payload = payload;
    return packet;
  }

  simulated_bridge bridge;
  roce_counters counters;
  uc_receiver receiver{{kLargestMtu, kPageBytes, kPages, kRkey}, 1, counters};
};

} // namespace cudaq::realtime::test

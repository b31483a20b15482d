// SPDX-License-Identifier: Apache-2.0
// The published logic of the Holoscan sensor bridge in Verilator: docs/transport/hsb_cosim.md. The board is mfp200, and
// has a sensor that takes data, too. It has no EEPROM; so its address is that of the logic itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace cudaq::realtime::tools {

using byte_vector = std::vector<std::uint8_t>;
inline constexpr std::size_t kEthernetBytes = 14; ///< before the IPv4 header

/// A datagram over IPv4 in a frame of Ethernet, as it is on the wire. No VLAN, no options of IPv4.
struct ethernet_frame {
  std::array<std::uint8_t, 6> to{}, from{};                 ///< MAC addresses
  std::uint32_t source = 0, destination = 0;                ///< IPv4: 10.0.0.2 is 0x0A000002
  std::uint16_t source_port = 0, destination_port = 0;      ///< UDP
  std::uint16_t identification = 0, fragmentation = 0x4000; ///< of IPv4; 0x4000: do not fragment
  byte_vector payload;                                      ///< of UDP

  byte_vector bytes() const;
  /// None: no datagram over IPv4, or lengths or checksum of IPv4 that are wrong.
  static std::optional<ethernet_frame> read(std::span<const std::uint8_t> bytes);
};

/// One thread uses it. Nothing happens between the calls: each one lets the clocks of the logic run.
class simulated_bridge {
public:
  static constexpr std::uint32_t kAddress = 0xC0A80002, kHostAddress = 0xC0A80001;
  static constexpr std::uint16_t kControlPort = 8192;

  /// Runs it until it has started. Check ready() then.
  simulated_bridge();
  ~simulated_bridge();
  simulated_bridge(const simulated_bridge &) = delete;
  simulated_bridge &operator=(const simulated_bridge &) = delete;
  bool ready() const;

  /// Registers, over UDP, as a host does it. False, none: no reply, or another code than ok.
  bool write(std::uint32_t address, std::uint32_t value);
  std::optional<std::uint32_t> read(std::uint32_t address);

  /// The sensor measures `window`, a multiple of 8 bytes. Returns what the bridge sends to the host because of it.
  std::vector<ethernet_frame> measure(std::span<const std::uint8_t> window);
  /// A frame from the host. Returns what the bridge answers.
  std::vector<ethernet_frame> give(const ethernet_frame &frame);
  /// A frame to the bridge, from the host, without ports and payload.
  static ethernet_frame frame_to();

  /// What the bridge has sent to the sensor since the last call.
  byte_vector sent_to_sensor();
  /// Whether the sensor takes what is sent to it. At first it does.
  void sensor_takes(bool takes);

  /// The number of the next packet that the bridge writes. There is no register for it, and 2^24 packets would take
  /// hours: it is put into the memory of the logic.
  void set_next_packet_number(std::uint32_t psn);

private:
  struct logic;
  const std::unique_ptr<logic> logic_;
};

} // namespace cudaq::realtime::tools

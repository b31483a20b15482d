// SPDX-License-Identifier: Apache-2.0
// The packets of the folder golden, which other programs have made: golden/make_packets.py describes the lines.
#pragma once

#include "lib/transport/roce/roce_icrc.h"
#include "lib/transport/roce/roce_packet.h"
#include "unittests/support/program_paths.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace cudaq::realtime::test {

struct golden_packet {
  std::string name;
  std::map<std::string, std::uint64_t> words;
  std::vector<std::uint8_t> ip;       ///< from the IPv4 header on
  std::vector<std::uint8_t> datagram; ///< what a UDP socket receives
  detail::roce_path path;

  std::uint64_t word(const std::string &key) const {
    const auto at = words.find(key);
    EXPECT_NE(at, words.end()) << name << ": " << key;
    return at == words.end() ? 0 : at->second;
  }
};
inline void PrintTo(const golden_packet &packet, std::ostream *out) { *out << packet.name; }

inline golden_packet golden_packet_of(const std::string &line) {
  constexpr std::size_t kIpBytes = 20, kUdpBytes = 8;
  golden_packet packet;
  std::istringstream words(line);
  words >> packet.name;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      packet.words[word.substr(0, equals)] = std::stoull(word.substr(equals + 1), nullptr, 0);
      continue;
    }
    for (std::size_t at = 0; at + 1 < word.size(); at += 2)
      packet.ip.push_back(static_cast<std::uint8_t>(std::stoul(word.substr(at, 2), nullptr, 16)));
  }
  if (packet.ip.size() < kIpBytes + kUdpBytes) {
    ADD_FAILURE() << line << ": no packet";
    return packet;
  }
  const auto end = [&packet](std::size_t address_at, std::size_t port_at) {
    sockaddr_in socket{};
    socket.sin_family = AF_INET;
    std::memcpy(&socket.sin_addr, &packet.ip[address_at], sizeof(socket.sin_addr));
    std::memcpy(&socket.sin_port, &packet.ip[port_at], sizeof(socket.sin_port));
    detail::udp_address address;
    std::memcpy(&address.bytes, &socket, sizeof(socket));
    address.length = sizeof(socket);
    return address;
  };
  packet.path = {end(12, 20), end(16, 22)};
  packet.datagram.assign(packet.ip.begin() + kIpBytes + kUdpBytes, packet.ip.end());
  return packet;
}

inline std::vector<golden_packet> golden_packets(const std::string &file) {
  std::vector<golden_packet> packets;
  std::ifstream lines(std::string(CUDAQ_ROCE_GOLDEN) + "/" + file);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && line[0] != '#')
      packets.push_back(golden_packet_of(line));
  EXPECT_FALSE(packets.empty()) << file;
  return packets;
}

inline golden_packet golden_packet_named(const std::string &file, const std::string &name) {
  for (const golden_packet &packet : golden_packets(file))
    if (packet.name == name)
      return packet;
  ADD_FAILURE() << file << " has no " << name;
  return {};
}

} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Packets and their ICRC, against packets that scapy has made and packets of the kernel's soft-RoCE.
#include "unittests/support/test_scale.h"
#include "unittests/transport/roce/roce_golden.h"

namespace cudaq::realtime::test {
namespace {

using detail::icrc_finding;
using detail::packet_finding;
using detail::roce_packet;
using detail::uc_opcode;

std::vector<golden_packet> of_scapy() { return golden_packets("packets.txt"); }

roce_packet read(const golden_packet &golden) {
  roce_packet packet;
  EXPECT_EQ(detail::read_roce_packet(golden.datagram, packet), packet_finding::good) << golden.name;
  EXPECT_EQ(static_cast<std::uint64_t>(packet.opcode), golden.word("opcode")) << golden.name;
  EXPECT_EQ(packet.psn, golden.word("psn")) << golden.name;
  EXPECT_EQ(packet.address, golden.word("address")) << golden.name;
  EXPECT_EQ(packet.immediate, golden.word("immediate")) << golden.name;
  return packet;
}
roce_packet read_with_sizes(const golden_packet &golden) {
  const roce_packet packet = read(golden);
  EXPECT_EQ(packet.payload.size(), golden.word("size")) << golden.name;
  EXPECT_EQ(packet.rkey, golden.word("rkey")) << golden.name;
  EXPECT_EQ(packet.length, golden.word("length")) << golden.name;
  return packet;
}

TEST(RocePacket, IsReadAsScapyMeansIt) {
  for (const golden_packet &golden : of_scapy()) {
    const roce_packet packet = read_with_sizes(golden);
    EXPECT_EQ(packet.qp, golden.word("qp")) << golden.name;
    EXPECT_EQ(packet.pkey, golden.word("pkey")) << golden.name;
    for (std::size_t i = 0; i < packet.payload.size(); ++i)
      ASSERT_EQ(packet.payload[i], static_cast<std::uint8_t>(7 * i + packet.payload.size())) << golden.name;
  }
}

TEST(RocePacket, IsReadAsSoftRoceSendsIt) {
  std::uint64_t opcodes = 0;
  for (const golden_packet &golden : golden_packets("soft_roce.txt")) {
    read_with_sizes(golden);
    EXPECT_NE(golden.word("identification"), 0u) << golden.name << ": soft-RoCE numbers its packets";
    EXPECT_EQ(detail::check_icrc(golden.path, golden.datagram), icrc_finding::partly) << golden.name;
    std::vector<std::uint8_t> changed = golden.datagram;
    changed[detail::kBthBytes] = static_cast<std::uint8_t>(changed[detail::kBthBytes] ^ 1);
    EXPECT_EQ(detail::check_icrc(golden.path, changed), icrc_finding::wrong) << golden.name;
    opcodes |= std::uint64_t{1} << (golden.word("opcode") - 0x20);
  }
  EXPECT_EQ(opcodes, 0xFFFu) << "all twelve";
}

// unittests/contrib/hsb_cosim simulates the logic, and compares the file with it.
TEST(RocePacket, IsReadAndWrittenAsTheLogicOfASensorBridgeWritesIt) {
  for (const golden_packet &golden : golden_packets("sensor_bridge.txt")) {
    const roce_packet packet = read(golden);
    EXPECT_EQ(packet.length, packet.payload.size()) << golden.name;
    EXPECT_EQ(detail::check_icrc(golden.path, golden.datagram), icrc_finding::verified) << golden.name;
    std::vector<std::uint8_t> written(golden.datagram.size() + 3);
    written.resize(detail::write_roce_packet(packet, written.data()));
    detail::seal_with_icrc(golden.path, written);
    EXPECT_EQ(written, golden.datagram) << golden.name;
  }
}

TEST(RocePacket, IsWrittenByteForByteAsScapyWritesIt) {
  std::size_t compared = 0;
  for (const golden_packet &golden : of_scapy()) {
    if (golden.word("identification") != 0 || golden.word("fragments") != 0 || golden.name == "congested")
      continue; // this library does not send such packets
    const roce_packet packet = read(golden);
    std::vector<std::uint8_t> written(detail::kMaxHeaderBytes + packet.payload.size() + 3 + detail::kIcrcBytes);
    written.resize(detail::write_roce_packet(packet, written.data()));
    ASSERT_EQ(written.size(), golden.datagram.size()) << golden.name;
    detail::seal_with_icrc(golden.path, written);
    EXPECT_EQ(written, golden.datagram) << golden.name;
    ++compared;
  }
  EXPECT_GE(compared, 26u);
}

TEST(RocePacket, IsNotReadIfCutOffAnywhere) {
  for (const golden_packet &golden : of_scapy()) {
    for (std::size_t size = 0; size < golden.datagram.size(); ++size) {
      const std::vector<std::uint8_t> exact(golden.datagram.begin(),
                                            golden.datagram.begin() + static_cast<std::ptrdiff_t>(size));
      roce_packet packet;
      const packet_finding finding = detail::read_roce_packet(exact, packet);
      EXPECT_TRUE(size % 4 == 0 || finding != packet_finding::good) << golden.name << ", " << size << " bytes";
      const bool passes =
          finding == packet_finding::good && detail::check_icrc(golden.path, exact) != icrc_finding::wrong;
      EXPECT_FALSE(passes) << golden.name << ", " << size << " bytes";
    }
  }
}

TEST(RocePacket, IsRefusedWithAReason) {
  const golden_packet golden = golden_packet_named("packets.txt", "bridge_end");
  const auto finding_with = [&golden](std::size_t at, std::uint8_t value) {
    std::vector<std::uint8_t> changed = golden.datagram;
    changed.at(at) = value;
    roce_packet packet;
    return detail::read_roce_packet(changed, packet);
  };
  for (const int opcode : {0x00, 0x0A, 0x1F, 0x2C, 0x2D, 0x64, 0x81, 0xFF})
    EXPECT_EQ(finding_with(0, static_cast<std::uint8_t>(opcode)), packet_finding::opcode) << opcode;
  EXPECT_EQ(finding_with(1, 0x01), packet_finding::version);
  roce_packet packet;
  const std::vector<std::uint8_t> no_room_for_reth(golden.datagram.begin(), golden.datagram.begin() + 32);
  EXPECT_EQ(detail::read_roce_packet(no_room_for_reth, packet), packet_finding::too_short);
  std::vector<std::uint8_t> padding_without_payload = golden_packet_named("packets.txt", "size_0").datagram;
  padding_without_payload[1] |= 0x30;
  EXPECT_EQ(detail::read_roce_packet(padding_without_payload, packet), packet_finding::too_short);
  std::vector<std::uint8_t> odd = golden.datagram;
  odd.push_back(0);
  EXPECT_EQ(detail::read_roce_packet(odd, packet), packet_finding::padding);
}

TEST(RoceIcrc, IsVerifiedForIdentificationZeroOnly) {
  for (const golden_packet &golden : of_scapy()) {
    const bool known = golden.word("identification") == 0 && golden.word("fragments") == 0;
    EXPECT_EQ(detail::check_icrc(golden.path, golden.datagram), known ? icrc_finding::verified : icrc_finding::partly)
        << golden.name;
  }
}

TEST(RoceIcrc, IsWrongIfAnyBitIsChanged) {
  const golden_packet golden = golden_packet_named("packets.txt", "size_63");
  for (std::size_t bit = 0; bit < 8 * golden.datagram.size(); ++bit) {
    if (bit / 8 == 4) // a switch may change it
      continue;
    std::vector<std::uint8_t> changed = golden.datagram;
    changed[bit / 8] = static_cast<std::uint8_t>(changed[bit / 8] ^ 1u << bit % 8);
    EXPECT_EQ(detail::check_icrc(golden.path, changed), icrc_finding::wrong) << "bit " << bit;
  }
  detail::roce_path other = golden.path;
  other.source.set_port(12289);
  EXPECT_EQ(detail::check_icrc(other, golden.datagram), icrc_finding::wrong);
  EXPECT_EQ(detail::check_icrc({golden.path.destination, golden.path.source}, golden.datagram), icrc_finding::wrong);
}

TEST(RoceIcrc, LetsFewWrongPacketsPass) {
  const golden_packet golden = golden_packet_named("packets.txt", "size_64");
  std::vector<std::uint8_t> changed = golden.datagram;
  unsigned passed = 0;
  const unsigned tries = 1u << (samples_where_slow() ? 17 : 20);
  std::uint32_t random = 1;
  for (unsigned i = 0; i < tries; ++i) {
    random = random * 1664525u + 1013904223u;
    detail::put_big_endian_32(changed.data() + changed.size() - 4, random ^ random >> 16);
    passed += detail::check_icrc(golden.path, changed) == icrc_finding::partly;
  }
  EXPECT_LT(passed, 4 * tries / 32768) << "1 in 32768 is expected";
}

} // namespace
} // namespace cudaq::realtime::test

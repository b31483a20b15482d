// SPDX-License-Identifier: Apache-2.0
// Packets to the registers of an FPGA: golden/make_control_packets.py has written them from the document's table.
#include "contrib/fpga_player/fpga_registers.h"
#include "unittests/support/program_paths.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace cudaq::realtime::tools {
namespace {

using bytes = std::vector<std::uint8_t>;
constexpr std::uint64_t kHost = 1;

struct golden_exchange {
  std::string name;
  bytes request, reply;
  bool answered = false;
};

bytes unhex(const std::string &text) {
  bytes all;
  for (std::size_t at = 0; at + 1 < text.size(); at += 2)
    all.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(at, 2), nullptr, 16)));
  return all;
}

std::vector<golden_exchange> golden_exchanges() {
  std::vector<golden_exchange> all;
  std::ifstream lines(std::string(CUDAQ_CONTROL_GOLDEN) + "/control_packets.txt");
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#')
      continue;
    std::istringstream words(line);
    std::string name, request, reply;
    words >> name >> request >> reply;
    all.push_back({name, unhex(request), unhex(reply == "-" ? "" : reply), reply != "-"});
  }
  return all;
}

TEST(ControlPackets, AreAnsweredByteForByte) {
  fpga_registers registers(0x1000, 0x0800);
  const auto exchanges = golden_exchanges();
  ASSERT_EQ(exchanges.size(), 35u);
  for (const golden_exchange &one : exchanges) {
    const auto reply = registers.handle(one.request, kHost);
    ASSERT_EQ(reply.has_value(), one.answered) << one.name;
    EXPECT_EQ(reply.value_or(bytes{}), one.reply) << one.name;
  }
  EXPECT_TRUE(registers.take_start());
  EXPECT_FALSE(registers.take_start()) << "one pass for one write";
  EXPECT_EQ(registers.counts().dropped, 1u);
  EXPECT_EQ(registers.counts().refused, 13u);
}

TEST(ControlPackets, AreWrittenAsTheyAreRead) {
  for (const golden_exchange &one : golden_exchanges()) {
    const read_control read = read_control_request(one.request);
    if (!read.has_head || read.code != control_code::ok)
      continue;
    const bytes again = write_control_request(read.request);
    // A read of one register may have a value without meaning.
    EXPECT_TRUE(std::equal(again.begin(), again.end(), one.request.begin())) << one.name;
    control_reply reply;
    if (one.answered) {
      EXPECT_TRUE(read_control_reply(one.reply, reply)) << one.name;
      EXPECT_EQ(reply.sequence, read.request.sequence) << one.name;
    }
  }
}

// As the published logic of the sensor bridge has sent them in a simulation: unittests/contrib/hsb_cosim.
TEST(ControlPackets, OfTheLogicOfASensorBridgeAreRead) {
  const struct {
    const char *packet;
    control_command command;
    control_code code;
    std::vector<register_value> registers;
    std::uint16_t latched;
  } replies[] = {
      {"840100010000000010040000000000010000", control_command::write_dword, control_code::ok, {{0x1004, 0}}, 1},
      {"940100030000000010041234567900030000",
       control_command::read_dword,
       control_code::ok,
       {{0x1004, 0x12345679}},
       3},
      {"890100050000000010040000000000001008000000000005",
       control_command::write_block,
       control_code::ok,
       {{0x1004, 0}, {0x1008, 0}},
       5},
      {"99010006000000001004aabbccdd00001008000000800006",
       control_command::read_block,
       control_code::ok,
       {{0x1004, 0xAABBCCDD}, {0x1008, 0x80}},
       6},
      {"200100070400000000000000000000060000", control_command::get_info, control_code::command, {{0, 0}}, 6},
      {"9401000d0300f0000000badadd12000c0000",
       control_command::read_dword,
       control_code::address,
       {{0xF0000000, 0xBADADD12}},
       0xC},
      {"8403000e0b000000100400000000000c0000",
       control_command::write_dword,
       control_code::sequence,
       {{0x1004, 0}},
       0xC},
  };
  for (const auto &r : replies) {
    control_reply reply;
    EXPECT_TRUE(read_control_reply(unhex(r.packet), reply)) << r.packet;
    EXPECT_EQ(reply.command, static_cast<std::uint8_t>(r.command)) << r.packet;
    EXPECT_EQ(reply.code, r.code) << r.packet;
    EXPECT_EQ(reply.registers, r.registers) << r.packet;
    EXPECT_EQ(reply.latched_sequence, r.latched) << r.packet;
  }
}

TEST(ControlPackets, OfEachLengthAreReadWithinTheirBytes) {
  bytes packet = write_control_request({control_command::write_block, kWantsAck, 7, {{0x1000, 1}, {0x1004, 2}}});
  for (std::size_t size = 0; size <= packet.size(); ++size) {
    const bytes cut(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(size)); // ASan sees its end
    const read_control read = read_control_request(cut);
    EXPECT_EQ(read.has_head, size >= kControlHeadBytes);
    const bool whole = size == packet.size() || size == packet.size() - kPairBytes;
    EXPECT_EQ(read.has_head && read.code == control_code::ok, whole) << size;
    control_reply reply;
    read_control_reply(cut, reply);
  }
  packet.assign(kControlHeadBytes + (kMaxPairs + 1) * kPairBytes, 0);
  packet[0] = static_cast<std::uint8_t>(control_command::read_block);
  EXPECT_EQ(read_control_request(packet).code, control_code::command) << "more registers than a reply can hold";
}

TEST(FpgaRegisters, ExecuteAWriteOnceIfItsAcknowledgementWasLost) {
  fpga_registers registers(0x1000, 0x0800);
  const bytes start =
      write_control_request({control_command::write_dword, kWantsAck, 5, {{kPlayer + play::enable, 0xD}}});
  const auto first = registers.handle(start, kHost);
  EXPECT_TRUE(registers.take_start());
  EXPECT_EQ(registers.handle(start, kHost), first);
  EXPECT_FALSE(registers.take_start());
  EXPECT_EQ(registers.counts().repeated, 1u);
  registers.handle(start, kHost + 1);
  EXPECT_TRUE(registers.take_start()) << "another host has numbers of its own";
}

TEST(FpgaRegisters, RecordAnswersInRowsAndResetThem) {
  fpga_registers registers(0x1000, 0x0800);
  const auto set_control = [&](std::uint32_t value, std::uint16_t sequence) {
    registers.handle(write_control_request({control_command::write_dword, kWantsAck, sequence, {{kIla, value}}}),
                     kHost);
  };
  const auto word = [&](std::uint32_t address) {
    const auto reply =
        registers.handle(write_control_request({control_command::read_dword, kWantsAck, 9, {{address, 0}}}), kHost);
    control_reply read;
    EXPECT_TRUE(read_control_reply(*reply, read));
    return read.registers.at(0).value;
  };
  bytes answer(100);
  for (std::size_t k = 0; k < answer.size(); ++k)
    answer[k] = static_cast<std::uint8_t>(k + 1);
  EXPECT_FALSE(registers.record(answer, 1)) << "it is off";
  set_control(ila::on, 1);
  const std::uint64_t time = 0xFEDCBA9876543210;
  EXPECT_TRUE(registers.record(answer, time));
  EXPECT_EQ(word(kIla + ila::sample), 2u);
  bytes read;
  for (std::uint32_t row = 0; row < 2; ++row) {
    ila_row bits;
    for (std::uint32_t bank = 0; bank < kIlaBanks; ++bank)
      bits[bank] = word(bank_address(kIlaMemory, kIlaRows, bank, row));
    const recorded_beat beat = read_ila_row(bits);
    EXPECT_TRUE(beat.valid);
    EXPECT_EQ(beat.last, row == 1);
    EXPECT_EQ(beat.time_ns, time);
    read.insert(read.end(), beat.bytes.begin(), beat.bytes.begin() + beat.count);
  }
  EXPECT_EQ(read, answer);
  set_control(ila::on | ila::reset, 2);
  EXPECT_EQ(word(kIla + ila::sample), 0u);
  EXPECT_EQ(word(kIlaMemory), 0u);
  EXPECT_EQ(word(kIla + ila::status), ila::on);
}

TEST(FpgaRegisters, SayThatTheRecordIsFull) {
  fpga_registers registers(0x1000, 0x0800);
  registers.handle(write_control_request({control_command::write_dword, kWantsAck, 1, {{kIla, ila::on}}}), kHost);
  const bytes answer(64 * kRowBytes);
  for (std::uint32_t row = 0; row < kIlaRows; row += 64)
    EXPECT_TRUE(registers.record(answer, row));
  EXPECT_FALSE(registers.record(bytes(1), 1));
  const auto reply = registers.handle(
      write_control_request({control_command::read_dword, kWantsAck, 2, {{kIla + ila::status, 0}}}), kHost);
  control_reply status;
  ASSERT_TRUE(read_control_reply(*reply, status));
  EXPECT_EQ(status.registers.at(0).value, ila::on | ila::full);
}

} // namespace
} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "contrib/fpga_player/fpga_registers.h"

#include "cudaq/realtime/version.h"

#include <algorithm>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kBlockWords = 34; ///< up to offset 0x84
constexpr std::uint32_t kDate = 0x20260101;

/// Bytes that a command reads or writes at its address.
std::uint32_t width_of(control_command command) {
  switch (command) {
  case control_command::write_byte:
  case control_command::read_byte:
    return 1;
  case control_command::write_word:
  case control_command::read_word:
    return 2;
  default:
    return 4;
  }
}
std::uint32_t mask_of(std::uint32_t width) { return width == 4 ? ~std::uint32_t{0} : (1u << (8 * width)) - 1; }

} // namespace

fpga_registers::fpga_registers(std::uint32_t vp_address, std::uint32_t hif_address)
    : info_{kVersionRegister, true, {CUDAQ_REALTIME_VERSION, kDate}}, vp_{vp_address, false,
                                                                          std::vector<std::uint32_t>(vp::port / 4 + 1)},
      hif_{hif_address, false, std::vector<std::uint32_t>(hif::vp_mask / 4 + 1)}, player_{kPlayer, false,
                                                                                          std::vector<std::uint32_t>(
                                                                                              play::windows / 4 + 1)},
      player_memory_{kPlayerMemory, false, std::vector<std::uint32_t>(kPlayerBanks * kPlayerRows)},
      ila_{kIla, false, std::vector<std::uint32_t>(kBlockWords)},
      ila_memory_{kIlaMemory, true, std::vector<std::uint32_t>(kIlaBanks * kIlaRows)} {}

fpga_registers::block *fpga_registers::find(std::uint32_t address, std::uint32_t bytes) {
  if (address % bytes != 0)
    return nullptr;
  for (block *b : {&info_, &vp_, &hif_, &player_, &player_memory_, &ila_, &ila_memory_})
    if (address >= b->base && address - b->base < 4 * b->words.size())
      return b;
  return nullptr;
}

/// State, status and sample count are read-only registers of blocks that can be written.
control_code fpga_registers::check(const control_request &r) {
  for (const register_value &one : r.registers) {
    const block *const b = find(one.address, width_of(r.command));
    if (b == nullptr)
      return control_code::address;
    const std::uint32_t word = one.address & ~3u;
    const bool fixed =
        b->read_only || word == kPlayer + play::state || word == kIla + ila::status || word == kIla + ila::sample;
    if (!r.reads() && fixed)
      return control_code::address;
  }
  return control_code::ok;
}

bool fpga_registers::repeats_the_last(const control_request &r, std::uint64_t peer) const {
  return wrote_ && peer == last_peer_ && r.sequence == last_write_.sequence && r.command == last_write_.command &&
         r.registers == last_write_.registers;
}

std::optional<std::vector<std::uint8_t>> fpga_registers::handle(std::span<const std::uint8_t> packet,
                                                                std::uint64_t peer) {
  ++counts_.packets;
  read_control read = read_control_request(packet);
  if (!read.has_head) {
    ++counts_.dropped;
    return std::nullopt;
  }
  control_request &r = read.request;
  const auto reply = [&](control_code code) -> std::optional<std::vector<std::uint8_t>> {
    counts_.refused += code != control_code::ok;
    if (!r.wants_ack())
      return std::nullopt;
    return write_control_reply(r, code, r.registers, latched_.value_or(0));
  };
  if (read.code != control_code::ok)
    return reply(read.code);
  // The acknowledgement was lost: the host sends the same again. A second execution could start a second pass.
  if (repeats_the_last(r, peer)) {
    ++counts_.repeated;
    return reply(control_code::ok);
  }
  if ((r.flags & kChecksSequence) != 0 && latched_ && r.sequence != static_cast<std::uint16_t>(*latched_ + 1))
    return reply(control_code::sequence);
  if (const control_code code = check(r); code != control_code::ok)
    return reply(code);
  latched_ = r.sequence;
  wrote_ = !r.reads();
  if (wrote_) {
    last_write_ = r;
    last_peer_ = peer;
  }
  execute(r);
  return reply(control_code::ok);
}

void fpga_registers::execute(control_request &r) {
  const std::uint32_t width = width_of(r.command), mask = mask_of(width);
  switch (r.command) {
  case control_command::get_info:
    r.registers = {{kVersionRegister, read(kVersionRegister)}, {kDateRegister, read(kDateRegister)}};
    break;
  case control_command::modify:
    write(r.registers[0].address, r.registers[1].value, r.registers[0].value);
    break;
  default:
    for (register_value &one : r.registers) {
      const std::uint32_t shift = 8 * (one.address & 3u);
      if (r.reads())
        one.value = read(one.address) >> shift & mask;
      else
        write(one.address & ~3u, (one.value & mask) << shift, mask << shift);
    }
  }
}

std::uint32_t fpga_registers::read(std::uint32_t address) {
  const block &b = *find(address & ~3u, 4);
  return b.words[(address - b.base) / 4];
}

void fpga_registers::write(std::uint32_t address, std::uint32_t value, std::uint32_t mask) {
  block &b = *find(address, 4);
  std::uint32_t &word = b.words[(address - b.base) / 4];
  word = (word & ~mask) | (value & mask);
  if (address == kPlayer + play::enable && word == play::single_pass) {
    start_ = true;
    set_state(pass_state::runs);
  }
  if (address == kIla + ila::control) {
    if ((word & ila::reset) != 0) {
      samples_ = ila_.words[ila::sample / 4] = 0;
      std::ranges::fill(ila_memory_.words, 0u);
      word &= ~ila::reset;
    }
    ila_.words[ila::status / 4] = (word & ila::on) | (samples_ == kIlaRows ? ila::full : 0u);
  }
}

void fpga_registers::set_state(pass_state state) {
  player_.words[play::state / 4] = static_cast<std::uint32_t>(state);
  if (state != pass_state::runs)
    player_.words[play::enable / 4] = 0;
}

void fpga_registers::read_window(std::uint32_t n, std::span<std::uint8_t> to) const {
  const auto rows = static_cast<std::uint32_t>((to.size() + kRowBytes - 1) / kRowBytes);
  for (std::size_t at = 0; at < to.size(); ++at) {
    const auto row = n * rows + static_cast<std::uint32_t>(at / kRowBytes);
    const auto bank = static_cast<std::uint32_t>(at % kRowBytes / 4);
    to[at] = static_cast<std::uint8_t>(player_memory_.words[bank * kPlayerRows + row] >> (8 * (at % 4)));
  }
}

bool fpga_registers::record(std::span<const std::uint8_t> answer, std::uint64_t time_ns) {
  const std::size_t rows = (answer.size() + kRowBytes - 1) / kRowBytes;
  if ((ila_.words[ila::control / 4] & ila::on) == 0 || samples_ + rows > kIlaRows) {
    if (samples_ + rows > kIlaRows)
      ila_.words[ila::status / 4] |= ila::full;
    return false;
  }
  for (std::size_t k = 0; k < rows; ++k) {
    const auto part = answer.subspan(k * kRowBytes, std::min<std::size_t>(kRowBytes, answer.size() - k * kRowBytes));
    const ila_row row = make_ila_row(part, k + 1 == rows, time_ns);
    for (std::uint32_t bank = 0; bank < kIlaBanks; ++bank)
      ila_memory_.words[bank * kIlaRows + samples_] = row[bank];
    ++samples_;
  }
  ila_.words[ila::sample / 4] = samples_;
  return true;
}

ila_row make_ila_row(std::span<const std::uint8_t> bytes, bool last, std::uint64_t time_ns) {
  ila_row row{};
  for (std::size_t k = 0; k < bytes.size(); ++k)
    row[k / 4] |= std::uint32_t{bytes[k]} << (8 * (k % 4));
  // Bit 521 is bit 9 of word 16: time is split at 23 and 55 bits.
  row[16] =
      1u | (last ? 2u : 0u) | static_cast<std::uint32_t>(bytes.size()) << 2 | static_cast<std::uint32_t>(time_ns << 9);
  row[17] = static_cast<std::uint32_t>(time_ns >> 23);
  row[18] = static_cast<std::uint32_t>(time_ns >> 55);
  return row;
}

recorded_beat read_ila_row(const ila_row &row) {
  recorded_beat beat;
  for (std::size_t k = 0; k < kRowBytes; ++k)
    beat.bytes[k] = static_cast<std::uint8_t>(row[k / 4] >> (8 * (k % 4)));
  beat.valid = (row[16] & 1u) != 0;
  beat.last = (row[16] & 2u) != 0;
  beat.count = std::min<std::uint32_t>(row[16] >> 2 & 0x7F, kRowBytes);
  beat.time_ns = row[16] >> 9 | std::uint64_t{row[17]} << 23 | std::uint64_t{row[18] & 0x1FF} << 55;
  return beat;
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// The registers of an FPGA that plays windows to a server and records the answers: docs/transport/fpga_player.md. The
// blocks, and how they hang together:
//
//   host writes windows to the player's memory, the server's numbers to VP, the pace to the player
//   host writes 1 to ILA CTRL and 0xD to ENABLE: take_start() is true once
//   the player (fpga_player.h) sends window by window, and gives each answer to record()
//   host reads ILA SAMPLE and the record
#pragma once

#include "contrib/fpga_player/control_packet.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools {

// Addresses. VP and HIF are at addresses that a user may choose.
inline constexpr std::uint32_t kVersionRegister = 0x80, kDateRegister = 0x84;
inline constexpr std::uint32_t kPlayer = 0x50000000, kPlayerMemory = 0x50100000;
inline constexpr std::uint32_t kIla = 0x40000000, kIlaMemory = 0x40100000;
inline constexpr std::uint32_t kPlayerBanks = 16, kPlayerRows = 512;
inline constexpr std::uint32_t kIlaBanks = 19, kIlaRows = 8192;
inline constexpr std::uint32_t kRowBytes = 64; ///< of a window or an answer
inline constexpr std::uint32_t kTicksPerUs = 322;
inline constexpr std::uint32_t kPageUnit = 128; ///< bytes

/// Offsets in the blocks.
namespace vp {
inline constexpr std::uint32_t qp = 0x00, rkey = 0x04, page_lsb = 0x08, page_msb = 0x0C, page_inc = 0x10,
                               max_buff = 0x14, length = 0x18, mac_low = 0x20, mac_high = 0x24, ip = 0x28, port = 0x2C;
}
namespace hif {
inline constexpr std::uint32_t packet_size = 0x04, packet_port = 0x08, vp_mask = 0x0C;
}
namespace play {
inline constexpr std::uint32_t state = 0x00, enable = 0x04, timer = 0x08, window_bytes = 0x0C, windows = 0x10;
inline constexpr std::uint32_t single_pass = 0xD;
} // namespace play
namespace ila {
inline constexpr std::uint32_t control = 0x00, status = 0x80, sample = 0x84;
inline constexpr std::uint32_t on = 1, reset = 2; ///< bits of control
inline constexpr std::uint32_t full = 2;          ///< of status, beside `on`
} // namespace ila

/// Values of the player's state register, which is an addition of ours.
enum class pass_state : std::uint32_t { none = 0, runs = 1, done = 2, refused = 3, silent = 4 };

struct control_counts {
  std::uint64_t packets = 0, dropped = 0, refused = 0, repeated = 0;
};

/// One thread uses it.
class fpga_registers {
public:
  fpga_registers(std::uint32_t vp_address, std::uint32_t hif_address);

  /// A packet of a host, and the bytes of the reply; nothing: it is not answered. `peer` tells hosts apart.
  std::optional<std::vector<std::uint8_t>> handle(std::span<const std::uint8_t> packet, std::uint64_t peer);

  [[nodiscard]] std::uint32_t vp_word(std::uint32_t offset) const { return words_of(vp_, offset); }
  [[nodiscard]] std::uint32_t hif_word(std::uint32_t offset) const { return words_of(hif_, offset); }
  [[nodiscard]] std::uint32_t player_word(std::uint32_t offset) const { return words_of(player_, offset); }

  /// True once for each single pass that a host has started. A stop is a 0 in ENABLE.
  bool take_start() { return std::exchange(start_, false); }
  void set_state(pass_state state);
  /// Bytes of window `n` as the host has written them. It must be inside of the player's memory.
  void read_window(std::uint32_t n, std::span<std::uint8_t> to) const;
  /// Stores an answer in rows of 64 bytes. Returns false if the record is off or full.
  bool record(std::span<const std::uint8_t> answer, std::uint64_t time_ns);

  [[nodiscard]] const control_counts &counts() const { return counts_; }

private:
  struct block {
    std::uint32_t base = 0;
    bool read_only = false;
    std::vector<std::uint32_t> words;
  };
  static std::uint32_t words_of(const block &b, std::uint32_t offset) { return b.words[offset / 4]; }

  block *find(std::uint32_t address, std::uint32_t bytes);
  control_code check(const control_request &r);
  void execute(control_request &r);
  void write(std::uint32_t address, std::uint32_t value, std::uint32_t mask);
  std::uint32_t read(std::uint32_t address);
  bool repeats_the_last(const control_request &r, std::uint64_t peer) const;

  block info_, vp_, hif_, player_, player_memory_, ila_, ila_memory_;
  bool start_ = false;
  std::uint32_t samples_ = 0;

  std::optional<std::uint16_t> latched_; ///< the sequence of the last request that was executed
  control_request last_write_;           ///< with an acknowledgement; may come again, if that was lost
  std::uint64_t last_peer_ = 0;
  bool wrote_ = false; ///< last_write_ is the last request that was executed
  control_counts counts_;
};

/// One row of the record: bits 0 to 511 data, 512 valid, 513 last, 514 to 520 number of bytes, 521 to 584 time.
using ila_row = std::array<std::uint32_t, kIlaBanks>;
ila_row make_ila_row(std::span<const std::uint8_t> bytes, bool last, std::uint64_t time_ns);

struct recorded_beat {
  std::array<std::uint8_t, kRowBytes> bytes{};
  std::uint32_t count = 0;
  bool valid = false, last = false;
  std::uint64_t time_ns = 0;
};
recorded_beat read_ila_row(const ila_row &row);

/// Where a word of a memory is: banks follow each other, each with all its rows.
constexpr std::uint32_t bank_address(std::uint32_t memory, std::uint32_t rows, std::uint32_t bank, std::uint32_t row) {
  return memory + 4 * (bank * rows + row);
}

} // namespace cudaq::realtime::tools

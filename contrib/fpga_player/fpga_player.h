// SPDX-License-Identifier: Apache-2.0
// The player of an emulated FPGA: when a host has started a pass, it sends window by window and records each answer.
//
//   window 0 is sent; its answer comes; window 1 is sent at its time, TIMER ticks after window 0; ...
//
// One window is open at a time: the next one waits for the answer, also if its time has come.
#pragma once

#include "contrib/fpga_player/fpga_registers.h"
#include "contrib/fpga_player/frame_port.h"
#include "tools/common/latency_histogram.h"
#include "tools/trace/exchange_record.h"

#include <functional>
#include <string>

namespace cudaq::realtime::tools {

struct played_passes {
  std::uint64_t passes = 0, refused = 0, silent = 0; ///< begun; not begun; ended because no answer came
  std::uint64_t windows = 0, answered = 0, lost = 0, unexpected = 0, late = 0, not_recorded = 0;
  latency_histogram round_trip; ///< from the time in the window to the answer
  exchange_record record;
};

struct fpga_player_options {
  std::string transport = "roce";
  std::string own_address;
  std::uint32_t mtu = 4096;
  std::uint64_t timeout_ns = 10'000'000'000; ///< a window without an answer is lost after this time
};

class fpga_player {
public:
  using port_opener = std::function<std::unique_ptr<frame_port>(const frame_destination &)>;
  /// `clock`: nanoseconds. It is the time that goes into windows and into the record.
  fpga_player(const fpga_player_options &options, fpga_registers &registers, port_opener open,
              std::function<std::uint64_t()> clock);

  /// One turn. Returns true if there was work.
  bool turn();
  [[nodiscard]] bool plays() const { return port_ != nullptr; }
  [[nodiscard]] const played_passes &result() const { return result_; }
  /// What happened to the last pass, if it was refused or ended early; "" after the first call.
  std::string take_note() { return std::exchange(note_, {}); }

private:
  void begin(std::uint64_t now);
  /// "": the registers describe a pass that can be played.
  std::string why_not() const;
  bool take_answers();
  bool is_answer(std::span<const std::uint8_t> frame) const;
  void lose();
  bool send_next(std::uint64_t now);
  void end(pass_state state, std::string note);

  const fpga_player_options options_;
  fpga_registers &registers_;
  const port_opener open_;
  const std::function<std::uint64_t()> clock_;
  std::unique_ptr<frame_port> port_; ///< while a pass is played
  std::vector<std::uint8_t> window_;
  std::uint32_t number_ = 0, next_ = 0; ///< windows of the pass
  std::uint64_t gap_ns_ = 0, begin_ns_ = 0, sent_ns_ = 0;
  std::uint32_t lost_in_a_row_ = 0;
  bool waits_ = false; ///< for the answer to window next_ - 1
  played_passes result_;
  std::string note_;
};

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "contrib/fpga_player/fpga_player.h"

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "tools/common/api_objects.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kMaxLostInARow = 3;
constexpr std::size_t kTimeAt = offsetof(cudaq_rpc_header_t, ptp_timestamp);
constexpr std::size_t kIdAt = offsetof(cudaq_rpc_header_t, request_id);
static_assert(kIdAt == offsetof(cudaq_rpc_response_t, request_id));

std::uint32_t rows_of(std::uint32_t bytes) { return (bytes + kRowBytes - 1) / kRowBytes; }

std::string dotted(std::uint32_t ip) {
  return fmt::format("{}.{}.{}.{}", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
}

} // namespace

fpga_player::fpga_player(const fpga_player_options &options, fpga_registers &registers, port_opener open,
                         std::function<std::uint64_t()> clock)
    : options_(options), registers_(registers), open_(std::move(open)), clock_(std::move(clock)) {}

std::string fpga_player::why_not() const {
  const std::uint32_t bytes = registers_.player_word(play::window_bytes);
  const std::uint32_t number = registers_.player_word(play::windows);
  const std::uint64_t page = std::uint64_t{registers_.vp_word(vp::page_inc)} * kPageUnit;
  const std::uint32_t last_page = registers_.vp_word(vp::max_buff);
  if ((registers_.hif_word(hif::vp_mask) & 1) == 0)
    return "bit 0 of HIF VP_MASK is 0: the channel is off";
  if (bytes < CUDAQ_RPC_HEADER_SIZE || bytes > kRowBytes * kPlayerRows)
    return fmt::format("WIN_SIZE is {}: a window has {} to {} bytes", bytes, CUDAQ_RPC_HEADER_SIZE,
                       kRowBytes * kPlayerRows);
  if (number == 0 || std::uint64_t{rows_of(bytes)} * number > kPlayerRows)
    return fmt::format("WIN_NUM is {}: windows of {} bytes take {} rows each, the memory has {}", number, bytes,
                       rows_of(bytes), kPlayerRows);
  if (page < bytes || page > 65408)
    return fmt::format("PAGE_INC is {}: a page has {} bytes, a window {}, and 65408 are the most", page / kPageUnit,
                       page, bytes);
  if (last_page >= 4096)
    return fmt::format("MAX_BUFF is {}: at most 4095, the number of the last page", last_page);
  if (registers_.vp_word(vp::page_msb) != 0 || registers_.vp_word(vp::page_lsb) != 0)
    return "PAGE_LSB and PAGE_MSB must be 0: the emulator writes to pages from address 0 on";
  if (registers_.vp_word(vp::ip) == 0 || registers_.vp_word(vp::port) == 0 || registers_.vp_word(vp::port) > 65535)
    return "VP has no IP address or no UDP port of the server";
  return "";
}

void fpga_player::begin(std::uint64_t now) {
  ++result_.passes;
  if (std::string reason = why_not(); !reason.empty())
    return end(pass_state::refused, std::move(reason));
  frame_destination to;
  to.transport = options_.transport;
  to.own_address = options_.own_address;
  to.mtu = options_.mtu;
  to.address = dotted(registers_.vp_word(vp::ip));
  to.port = registers_.vp_word(vp::port);
  to.page_bytes = registers_.vp_word(vp::page_inc) * kPageUnit;
  to.pages = registers_.vp_word(vp::max_buff) + 1;
  to.qp = registers_.vp_word(vp::qp);
  to.rkey = registers_.vp_word(vp::rkey);
  try {
    port_ = open_(to);
  } catch (const api_error &e) {
    return end(pass_state::refused, e.what());
  }
  window_.resize(registers_.player_word(play::window_bytes));
  number_ = registers_.player_word(play::windows);
  gap_ns_ = std::uint64_t{registers_.player_word(play::timer)} * 1000 / kTicksPerUs;
  begin_ns_ = now;
  next_ = lost_in_a_row_ = 0;
  waits_ = false;
}

void fpga_player::end(pass_state state, std::string note) {
  port_.reset();
  note_ = std::move(note);
  result_.refused += state == pass_state::refused;
  result_.silent += state == pass_state::silent;
  registers_.set_state(state);
}

bool fpga_player::turn() {
  if (registers_.take_start()) {
    port_.reset(); // a pass that is played ends
    begin(clock_());
    return true;
  }
  if (!plays())
    return false;
  if (registers_.player_word(play::enable) != play::single_pass) {
    end(pass_state::none, "the host has stopped the pass");
    return true;
  }
  const bool worked = take_answers();
  const std::uint64_t now = clock_();
  if (waits_ && now - sent_ns_ > options_.timeout_ns)
    lose();
  if (!plays())
    return true;
  return (!waits_ && send_next(now)) || worked;
}

bool fpga_player::is_answer(std::span<const std::uint8_t> frame) const {
  return waits_ && frame.size() >= CUDAQ_RPC_HEADER_SIZE &&
         std::ranges::equal(frame.subspan(kIdAt, 4), std::span(window_).subspan(kIdAt, 4));
}

bool fpga_player::take_answers() {
  bool worked = false;
  for (std::span<const std::uint8_t> frame; !(frame = port_->receive()).empty();) {
    worked = true;
    const std::uint64_t now = clock_();
    if (!is_answer(frame)) {
      ++result_.unexpected;
      continue;
    }
    waits_ = false;
    lost_in_a_row_ = 0;
    ++result_.answered;
    result_.not_recorded += !registers_.record(frame, now);
    cudaq_rpc_response_t header;
    std::memcpy(&header, frame.data(), sizeof header);
    result_.round_trip.record(now - sent_ns_);
    result_.record.add({header.request_id, sent_ns_, now, header.status});
  }
  return worked;
}

void fpga_player::lose() {
  ++result_.lost;
  std::uint32_t id = 0;
  std::memcpy(&id, window_.data() + kIdAt, sizeof id);
  result_.record.add({id, sent_ns_, 0, 0});
  waits_ = false;
  if (++lost_in_a_row_ == kMaxLostInARow)
    end(pass_state::silent, fmt::format("window {}: no answer to {} windows one after the other; the pass ends",
                                        next_ - 1, kMaxLostInARow));
}

bool fpga_player::send_next(std::uint64_t now) {
  if (next_ == number_) {
    end(pass_state::done, "");
    return true;
  }
  const std::uint64_t due = begin_ns_ + next_ * gap_ns_;
  if (now < due)
    return false;
  registers_.read_window(next_, window_);
  sent_ns_ = clock_();
  std::memcpy(window_.data() + kTimeAt, &sent_ns_, sizeof sent_ns_);
  if (!port_->send(window_))
    return false;
  result_.late += gap_ns_ != 0 && now - due > gap_ns_;
  ++result_.windows;
  ++next_;
  waits_ = true;
  return true;
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// Packets of hosts through the registers and the player of an emulated FPGA. Input: for each packet a byte for the host
// and how the player goes on, a byte for the length, and the packet. Each reply can be read and belongs to its request;
// a window that is sent lies in the player's memory; a pass ends.
#include "contrib/fpga_player/control_packet.cpp"
#include "contrib/fpga_player/fpga_player.cpp"
#include "contrib/fpga_player/fpga_registers.cpp"
#include "unittests/fuzz/fuzz_input.h"

#include <deque>

namespace {

using namespace cudaq::realtime::tools;
using cudaq::realtime::test::fuzz_input;
using cudaq::realtime::test::require;

constexpr std::size_t kMaxPackets = 40;

/// Answers with what it was sent, twice; or not at all.
class echo_port final : public frame_port {
public:
  echo_port(const frame_destination &to, bool silent) : page_(to.page_bytes), silent_(silent) {}
  bool send(std::span<std::uint8_t> frame) override {
    require(frame.size() >= 24 && frame.size() <= page_ && frame.size() <= kPlayerRows * kRowBytes,
            "a window has a header, and fits into a page and the memory");
    if (!silent_)
      waiting_.assign(2, {frame.begin(), frame.end()});
    return true;
  }
  std::span<const std::uint8_t> receive() override {
    if (waiting_.empty())
      return {};
    now_ = waiting_.front();
    waiting_.pop_front();
    return now_;
  }

private:
  const std::size_t page_;
  const bool silent_;
  std::deque<std::vector<std::uint8_t>> waiting_;
  std::vector<std::uint8_t> now_;
};

void check_reply(std::span<const std::uint8_t> packet, const std::vector<std::uint8_t> &reply) {
  require(reply.size() >= kControlHeadBytes && reply.size() <= kLargestControlPacket, "the size of a reply");
  require(std::equal(reply.begin(), reply.begin() + 4, packet.begin()), "a reply has the head of its request");
  control_reply read;
  require(read_control_reply(reply, read), "a reply can be read");
  const read_control request = read_control_request(packet);
  require(request.code == control_code::ok || read.code == request.code, "a wrong form is refused with its code");
  if (read.code == control_code::ok && request.request.reads() && request.request.command != control_command::get_info)
    require(read.registers.size() == request.request.registers.size(), "each register is read");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  fuzz_input input(data, size);
  fpga_registers registers(0x1000, 0x0800);
  std::uint64_t now = 1000;
  bool silent = false;
  fpga_player player(
      {"udp", "", 4096, 100'000}, registers,
      [&silent](const frame_destination &to) { return std::make_unique<echo_port>(to, silent); },
      [&now] { return now += 7; });
  for (std::size_t n = 0; n < kMaxPackets && !input.empty(); ++n) {
    const auto how = input.take<std::uint8_t>();
    const auto packet = input.bytes(input.take<std::uint8_t>() * std::size_t{how & 0x10 ? 8u : 1u});
    const auto reply = registers.handle(packet, how & 1);
    require(!reply || packet.size() >= kControlHeadBytes, "a packet without a head is not answered");
    if (reply)
      check_reply(packet, *reply);
    silent = (how & 2) != 0;
    for (int turn = 0; turn < how >> 5; ++turn)
      player.turn();
  }
  for (int turn = 0; turn < 4096 && player.plays(); ++turn) { // windows are at most 13.4 s apart
    now += 13'400'000'000;
    player.turn();
  }
  require(!player.plays(), "a pass ends");
  return 0;
}

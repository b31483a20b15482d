// SPDX-License-Identifier: Apache-2.0
// The player of an emulated FPGA, against a server that is a function and a clock of the test.
#include "contrib/fpga_player/fpga_player.h"

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "tools/common/api_objects.h"

#include <cstring>
#include <deque>
#include <gtest/gtest.h>

namespace cudaq::realtime::tools {
namespace {

using bytes = std::vector<std::uint8_t>;

/// The datagrams that were sent, and what the server does with them.
struct served_windows {
  std::vector<bytes> sent;
  std::deque<bytes> waiting;
  int loses = 0; ///< of the next windows
  frame_destination to;
};

class function_port final : public frame_port {
public:
  explicit function_port(served_windows &server) : server_(server) {}
  bool send(std::span<std::uint8_t> frame) override {
    server_.sent.emplace_back(frame.begin(), frame.end());
    if (server_.loses != 0) {
      --server_.loses;
      return true;
    }
    cudaq_rpc_header_t request;
    std::memcpy(&request, frame.data(), sizeof request);
    const cudaq_rpc_response_t answer = {CUDAQ_RPC_MAGIC_RESPONSE, 0, 0, request.request_id, request.ptp_timestamp};
    bytes all(256);
    std::memcpy(all.data(), &answer, sizeof answer);
    server_.waiting.push_back(all);
    return true;
  }
  std::span<const std::uint8_t> receive() override {
    if (server_.waiting.empty())
      return {};
    now_ = server_.waiting.front();
    server_.waiting.pop_front();
    return now_;
  }

private:
  served_windows &server_;
  bytes now_;
};

constexpr std::uint32_t kVp = 0x1000, kHif = 0x0800;

class FpgaPlayer : public testing::Test {
protected:
  FpgaPlayer() {
    set({{kVp + vp::page_inc, 2},
         {kVp + vp::max_buff, 7},
         {kVp + vp::qp, 0x11},
         {kVp + vp::ip, 0x0A000102},
         {kVp + vp::port, 4791},
         {kHif + hif::vp_mask, 1},
         {kPlayer + play::timer, kTicksPerUs * 100},
         {kPlayer + play::window_bytes, 70},
         {kPlayer + play::windows, 5},
         {kIla, ila::on}});
    for (std::uint32_t k = 0; k < 5; ++k) { // two rows each; the request id is the number
      set({{bank_address(kPlayerMemory, kPlayerRows, 3, 2 * k), k},
           {bank_address(kPlayerMemory, kPlayerRows, 1, 2 * k + 1), 0x0000AA00 + k}});
    }
  }
  void set(std::vector<register_value> registers_to_set) {
    const auto reply = registers.handle(
        write_control_request({control_command::write_block, kWantsAck, ++sequence, std::move(registers_to_set)}), 1);
    ASSERT_TRUE(reply && (*reply)[4] == 0);
  }
  void start() { set({{kPlayer + play::enable, play::single_pass}}); }
  pass_state state() const { return static_cast<pass_state>(registers.player_word(play::state)); }
  /// Until the pass ends. Each look at the clock is 1 us later.
  void play_on(int max_turns = 100000) {
    player.turn();
    for (int turn = 0; turn < max_turns && player.plays(); ++turn)
      player.turn();
  }

  std::uint64_t now = 1'000'000;
  std::uint16_t sequence = 0;
  served_windows server;
  fpga_registers registers{kVp, kHif};
  fpga_player player{{"roce", "", 4096, 2'000'000},
                     registers,
                     [this](const frame_destination &to) {
                       server.to = to;
                       return std::make_unique<function_port>(server);
                     },
                     [this] { return now += 1000; }};
};

TEST_F(FpgaPlayer, SendsEachWindowOnceAtItsTimeWithItsTimeInIt) {
  start();
  EXPECT_EQ(state(), pass_state::runs);
  play_on();
  EXPECT_EQ(state(), pass_state::done);
  EXPECT_EQ(registers.player_word(play::enable), 0u);
  ASSERT_EQ(server.sent.size(), 5u);
  std::uint64_t before = 0;
  for (std::uint32_t k = 0; k < 5; ++k) {
    cudaq_rpc_header_t header;
    ASSERT_EQ(server.sent[k].size(), 70u);
    std::memcpy(&header, server.sent[k].data(), sizeof header);
    EXPECT_EQ(header.request_id, k);
    EXPECT_EQ(server.sent[k][68], k) << "byte 4 of the second row";
    EXPECT_EQ(server.sent[k][69], 0xAA);
    if (k != 0) {
      EXPECT_NEAR(static_cast<double>(header.ptp_timestamp - before), 100'000, 10'000);
    }
    before = header.ptp_timestamp;
  }
  EXPECT_EQ(server.to.address, "10.0.1.2");
  EXPECT_EQ(server.to.page_bytes, 256u);
  EXPECT_EQ(server.to.pages, 8u);
  EXPECT_EQ(player.result().answered, 5u);
  EXPECT_EQ(player.result().record.all().size(), 5u);
}

TEST_F(FpgaPlayer, PlaysAgainWhenTheHostStartsAgain) {
  start();
  play_on();
  start();
  play_on();
  EXPECT_EQ(server.sent.size(), 10u);
  EXPECT_EQ(player.result().passes, 2u);
}

TEST_F(FpgaPlayer, GoesOnAfterALostWindowAndTakesItsLateAnswerForNoOther) {
  server.loses = 1;
  start();
  player.turn();
  for (int turn = 0; turn < 100000 && player.result().lost == 0; ++turn)
    player.turn();
  bytes late(256); // of window 0
  server.waiting.push_front(late);
  play_on();
  EXPECT_EQ(player.result().lost, 1u);
  EXPECT_EQ(player.result().answered, 4u);
  EXPECT_EQ(player.result().unexpected, 1u);
  EXPECT_EQ(state(), pass_state::done);
}

TEST_F(FpgaPlayer, EndsThePassOfASilentServer) {
  server.loses = 100;
  start();
  play_on();
  EXPECT_EQ(state(), pass_state::silent);
  EXPECT_EQ(server.sent.size(), 3u);
  EXPECT_NE(player.take_note().find("no answer to 3 windows"), std::string::npos);
}

TEST_F(FpgaPlayer, StopsWhenTheHostWritesZero) {
  start();
  player.turn();
  player.turn();
  set({{kPlayer + play::enable, 0}});
  play_on();
  EXPECT_EQ(state(), pass_state::none);
  EXPECT_LT(server.sent.size(), 5u);
}

TEST_F(FpgaPlayer, RefusesAPassThatItCannotPlayWithTheReason) {
  const struct {
    std::uint32_t address, wrong, right;
    const char *text;
  } cases[] = {{kHif + hif::vp_mask, 0, 1, "VP_MASK"},
               {kPlayer + play::window_bytes, 23, 70, "WIN_SIZE is 23"},
               {kPlayer + play::windows, 257, 5, "WIN_NUM is 257"},
               {kPlayer + play::windows, 0, 5, "WIN_NUM is 0"},
               {kVp + vp::page_inc, 0, 2, "PAGE_INC is 0"},
               {kVp + vp::page_inc, 0xFFFFFFFF, 2, "PAGE_INC"},
               {kVp + vp::max_buff, 4096, 7, "MAX_BUFF is 4096"},
               {kVp + vp::page_lsb, 128, 0, "PAGE_LSB"},
               {kVp + vp::ip, 0, 0x0A000102, "IP address"},
               {kVp + vp::port, 65536, 4791, "UDP port"}};
  for (const auto &one : cases) {
    set({{one.address, one.wrong}});
    start();
    player.turn();
    EXPECT_EQ(state(), pass_state::refused) << one.text;
    EXPECT_NE(player.take_note().find(one.text), std::string::npos) << one.text;
    set({{one.address, one.right}});
  }
  EXPECT_TRUE(server.sent.empty());
  start();
  play_on();
  EXPECT_EQ(server.sent.size(), 5u) << "after the registers were set right";
}

TEST_F(FpgaPlayer, CountsAnswersThatFindTheRecordOff) {
  set({{kIla, 0}});
  start();
  play_on();
  EXPECT_EQ(player.result().not_recorded, 5u);
}

} // namespace
} // namespace cudaq::realtime::tools

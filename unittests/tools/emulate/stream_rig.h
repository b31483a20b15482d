// SPDX-License-Identifier: Apache-2.0
// Endless experiments against a decoding server of this process, with a clock of the test.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "tools/emulate/stream_player.h"
#include "unittests/qec/server/server_stream_support.h"
#include "unittests/qec/stream/stream_test_support.h"

#include <deque>
#include <functional>
#include <map>

namespace cudaq::realtime::tools {

inline const std::string kStreamDem = qec::test::repetition_dem(3, 0.02, 1, 100);

/// A server whose decoder 0 is a stream without a queue. Requests pass a function of the test first.
class server_link final : public link {
public:
  enum class fate : std::uint8_t { served, lost, busy, no_solution };

  explicit server_link(const qec::stream_options &options)
      : server_(qec::test::one_setup(
            {.id = 0}, std::make_unique<qec::decoding_unit>(qec::test::stream_or_throw(kStreamDem, options), 1))) {}

  bool send(std::uint32_t id, std::uint32_t function, std::span<const std::uint8_t> payload,
            std::uint64_t timestamp) override {
    if (room == 0)
      return false;
    ++requests[function];
    longest = std::max(longest, payload.size());
    reply out;
    out.header.request_id = id;
    out.header.ptp_timestamp = timestamp;
    const fate what = judge ? judge(function) : fate::served;
    if (what == fate::lost)
      return true;
    if (what == fate::busy) {
      out.header.status = CUDAQ_RPC_ERR_BUSY;
    } else if (what == fate::no_solution) {
      out.header.status = static_cast<std::int32_t>(qec::server_status::not_converged);
    } else {
      out.result.resize(64);
      qec::server_answer now;
      EXPECT_TRUE(server_.submit(function, payload, out.result, {}, now));
      out.result.resize(now.bytes);
      out.header.status = now.status;
      if (spoil && now.status == 0)
        spoil(function, out.result);
    }
    waiting_.push_back(std::move(out));
    return true;
  }
  std::optional<link_answer> receive() override {
    if (held_polls != 0) {
      --held_polls;
      return std::nullopt;
    }
    if (waiting_.empty() || (is_slow && ++receives_ % 8 != 0))
      return std::nullopt;
    now_ = std::move(waiting_.front());
    waiting_.pop_front();
    return link_answer{now_.header, now_.result};
  }
  void give_up(std::uint32_t) override {}
  bool alive() override { return lives; }
  link_counters counters() const override { return {}; }
  std::string describe() const override { return "a server of this process"; }

  std::function<fate(std::uint32_t function)> judge;
  std::function<void(std::uint32_t function, std::vector<std::uint8_t> &result)> spoil;
  std::map<std::uint32_t, std::uint64_t> requests; ///< by function
  std::size_t longest = 0;                         ///< bytes of a request
  int room = 1;
  int held_polls = 0;                 ///< the server pauses for so many polls of its answers
  bool lives = true, is_slow = false; ///< slow: several requests are open

private:
  struct reply {
    cudaq_rpc_response_t header{};
    std::vector<std::uint8_t> result;
  };
  qec::decoding_server server_;
  std::deque<reply> waiting_;
  reply now_;
  std::uint32_t receives_ = 0;
};

struct stream_rig {
  explicit stream_rig(std::uint64_t shots, std::uint64_t rounds = 200, const std::string &decoder = kDecoder,
                      const qec::stream_options &served = {.decoder = "lookup", .commit = 2, .buffer = 3},
                      std::size_t workers = 0, const readout_files &readout = {}, const own_data &record = {})
      : plan(kStreamDem, decoder, workers, rounds, 7, std::chrono::nanoseconds::max(), readout, record), to(served) {
    options.shots = shots;
    options.rounds = rounds;
    options.window = 4;
    options.timeout_s = 0.001;
  }
  static constexpr const char *kDecoder = "sliding-window:inner=lookup,commit=2,buffer=3";

  /// Each look at the clock takes 50 ns. Before this turn a signal comes.
  stream_play_result play(int interrupted_turn = -1) {
    std::uint64_t now = 1'000'000;
    stream_player player(options, plan, to, slot_bytes, [&now] { return now += 50; });
    player.begin_with(first_id);
    for (int turn = 0; turn < 10'000'000 && !player.done(); ++turn) {
      if (turn == interrupted_turn)
        player.interrupt();
      player.turn();
    }
    EXPECT_TRUE(player.done());
    return player.result();
  }

  emulate_options options;
  stream_plan plan;
  std::size_t slot_bytes = 256;
  std::uint32_t first_id = 0;
  server_link to;
};

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "contrib/fpga_player/fpga_emulator.h"

#include "contrib/fpga_player/fpga_player.h"
#include "lib/transport/datagram/udp_socket.h"
#include "tools/common/api_objects.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/html/html_page.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kFpgaSpins = 200, kTurnsPerControl = 64;
constexpr auto kSleep = std::chrono::milliseconds(50); ///< so long a signal may wait while nothing is played

/// The socket on which hosts read and write the registers.
class control_socket {
public:
  control_socket(const fpga_options &o) {
    detail::udp_address own;
    detail::expected<> result =
        detail::udp_address_of("--own-address", o.own_address.empty() ? "127.0.0.1" : o.own_address,
                               static_cast<std::uint32_t>(o.control_port), own);
    if (result.ok())
      result = socket_.open(own, 0);
    if (result.failed())
      throw api_error(fmt::format("--control-port {}: {}", o.control_port, result.text()));
  }
  [[nodiscard]] std::uint32_t port() const { return socket_.port(); }
  void wait() const { socket_.wait(true, kSleep); }

  /// Answers the packet that has arrived. Returns false if there is none.
  bool turn(fpga_registers &registers) {
    detail::udp_address from;
    from.length = sizeof from.bytes;
    const ssize_t n = recvfrom(socket_.fd(), packet_.data(), packet_.size(), MSG_DONTWAIT, from.get(), &from.length);
    if (n < 0)
      return false;
    const std::uint64_t peer = detail::udp_address_hash()(from);
    if (const auto reply = registers.handle({packet_.data(), static_cast<std::size_t>(n)}, peer))
      (void)sendto(socket_.fd(), reply->data(), reply->size(), MSG_DONTWAIT | MSG_NOSIGNAL, from.get(), from.length);
    return true;
  }

private:
  detail::udp_socket socket_;
  std::array<std::uint8_t, kLargestControlPacket + 1> packet_{}; ///< one byte more: a longer packet is refused
};

void check_addresses(const fpga_options &o) {
  constexpr std::uint32_t first = kDateRegister + 4, vp_bytes = vp::port + 4, hif_bytes = hif::vp_mask + 4;
  const auto inside = [](std::uint32_t at, std::uint32_t bytes) {
    return at % 4 == 0 && at >= first && at <= kIla - bytes;
  };
  const bool apart = o.vp_address + vp_bytes <= o.hif_address || o.hif_address + hif_bytes <= o.vp_address;
  if (!inside(o.vp_address, vp_bytes) || !inside(o.hif_address, hif_bytes) || !apart)
    throw usage_error(
        fmt::format("--vp-address {:#x} and --hif-address {:#x}: multiples of 4 from {:#x} to {:#x} whose "
                    "blocks of {} and {} bytes do not overlap are accepted",
                    o.vp_address, o.hif_address, first, kIla - vp_bytes, vp_bytes, hif_bytes));
}

std::vector<std::string> problems_of(const played_passes &r) {
  std::vector<std::string> problems;
  const auto none = [&problems](std::uint64_t count, const char *what) {
    if (count != 0)
      problems.push_back(fmt::format("{} {}", count, what));
  };
  none(r.lost, "windows without an answer");
  none(r.refused, "passes that could not be played");
  none(r.not_recorded, "answers that were not recorded: the ILA was off or full");
  return problems;
}

constexpr int kFpgaSchemaVersion = 2; ///< 1 had late_shots, now begun_late

json report_of(const fpga_options &o, const played_passes &r, const control_counts &c,
               const std::vector<std::string> &problems) {
  return {{"schema_version", kFpgaSchemaVersion},
          {"method", "round trip: from the clock read just before a window is sent, which the answer echoes, to the "
                     "clock read after the answer was received (CLOCK_MONOTONIC)"},
          {"link", fmt::format("{}, as the registers say", o.transport)},
          {"protocol", "registers"},
          {"passes", r.passes},
          {"passes_refused", r.refused},
          {"passes_silent", r.silent},
          {"shots", r.windows},
          {"shots_answered", r.answered},
          {"requests", r.windows},
          {"round_trip_ns", latency_json(r.round_trip)},
          {"shot_ns", latency_json(r.round_trip)},
          {"lost", r.lost},
          {"unexpected_answers", r.unexpected},
          {"begun_late", r.late},
          {"not_recorded", r.not_recorded},
          {"control_packets", c.packets},
          {"control_dropped", c.dropped},
          {"control_refused", c.refused},
          {"control_repeated", c.repeated},
          {"problems", problems}};
}

} // namespace

int run_fpga(const fpga_options &o, const output &out) {
  check_addresses(o);
  out.open_hgrm({"round_trip"});
  const std::unique_ptr<output_file> ila = open_ila(o.ila_file);
  const interrupt_guard interrupts;
  fpga_registers registers(o.vp_address, o.hif_address);
  control_socket control(o);
  fpga_player player({o.transport, o.own_address, o.mtu, static_cast<std::uint64_t>(o.timeout_s * 1e9)}, registers,
                     &open_frame_port, &now_ns);
  std::FILE *const lines = out.uses_stdout_for_json() ? stderr : stdout;
  write_text(lines, fmt::format("CUDAQ_REALTIME_EMULATOR_READY control_port={} address={} transport={}\n",
                                control.port(), o.own_address.empty() ? "127.0.0.1" : o.own_address, o.transport));
  std::fflush(lines);

  spin_then_yield idle(kFpgaSpins);
  for (std::uint32_t turn = 0; !interrupts.interrupted(); ++turn) {
    const bool played = player.turn();
    // While a window is open its answer is polled for first; hosts can wait.
    const bool control_is_due = !player.plays() || turn % kTurnsPerControl == 0;
    const bool worked = (control_is_due && control.turn(registers)) || played;
    if (const std::string note = player.take_note(); !note.empty())
      print_error("cudaq-realtime-fpga-player emulate: pass {}: {}\n", player.result().passes, note);
    if (worked)
      idle.worked();
    else if (player.plays())
      idle.idle();
    else
      control.wait();
  }
  const played_passes &r = player.result();
  out.text("passes        {} begun, {} refused, {} without answers\n", r.passes, r.refused, r.silent);
  out.text("windows       {} sent, {} answered, {} lost, {} late\n", r.windows, r.answered, r.lost, r.late);
  out.text("round trip    {}\n", latency_line(r.round_trip));
  out.text("registers     {} packets, {} refused, {} repeated\n", registers.counts().packets,
           registers.counts().refused, registers.counts().repeated);
  r.record.write_csv(ila.get());
  out.write_hgrm("round_trip", r.round_trip);
  const std::vector<std::string> problems = problems_of(r);
  return out.finish(
      report_of(o, r, registers.counts(), problems), fmt::format("{}", fmt::join(problems, "; ")), kExitCheckFailed, {},
      [&](const json &all) {
        html_page page("Emulated FPGA: " + o.transport);
        const std::vector<plotted_latency> latencies{{"round trip of a window", &r.round_trip}};
        page.add("Latency histogram", histogram_plot(latencies));
        page.add("Latency percentiles", percentile_plot(latencies) + latency_table({{"round trip", &r.round_trip}}));
        return page.text(all);
      });
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "contrib/fpga_player/playback.h"

#include "contrib/fpga_player/control_client.h"
#include "contrib/fpga_player/fpga_registers.h"
#include "contrib/fpga_player/played_messages.h"
#include "lib/transport/datagram/udp_socket.h"
#include "tools/common/api_objects.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/trace/exchange_record.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr std::size_t kMaxNotes = 5;
constexpr auto kPollInterval = std::chrono::milliseconds(5);

struct played_back {
  std::uint32_t answered = 0, wrong = 0, unknown = 0, samples = 0;
  latency_histogram round_trip;
  exchange_record record;
  std::vector<std::string> notes;
};

std::uint32_t rows_of(std::size_t bytes) { return static_cast<std::uint32_t>((bytes + kRowBytes - 1) / kRowBytes); }

/// Of the player's timer, from one message to the next.
double ticks_of(double rate) { return rate == 0 ? 0 : std::round(1e6 / rate * kTicksPerUs); }

std::uint32_t ip_of(const std::string &text) {
  detail::udp_address address;
  if (const detail::expected<> result = detail::udp_address_of("--bridge-ip", text, 1, address); result.failed())
    throw usage_error(result.text());
  if (!address.is_v4())
    throw usage_error(fmt::format("--bridge-ip {}: an IPv4 address is accepted", text));
  return ntohl(address.v4());
}

void check(const playback_options &o, const played_messages &messages) {
  const std::size_t bytes = messages.frames.front().size();
  if (o.page_size % kPageUnit != 0)
    throw usage_error(fmt::format("--page-size {}: a multiple of {} is accepted", o.page_size, kPageUnit));
  if (bytes > o.page_size)
    throw usage_error(fmt::format("--page-size {}: a message has {} bytes", o.page_size, bytes));
  if (o.emulator && o.bridge_buffer % kPageUnit != 0)
    throw usage_error(
        fmt::format("--bridge-buffer {:#x}: with --emulator a multiple of {} is accepted", o.bridge_buffer, kPageUnit));
  if (ticks_of(o.rate) > UINT32_MAX)
    throw usage_error(fmt::format("--rate {}: the player's timer holds at most {:.3g} s; 0 or {:.3g} and more are "
                                  "accepted",
                                  o.rate, UINT32_MAX / (1e6 * kTicksPerUs), 1e6 * kTicksPerUs / UINT32_MAX));
  if (const std::uint32_t max_messages = kPlayerRows / rows_of(bytes); o.num_messages > max_messages)
    throw usage_error(fmt::format("--num-messages {}: the player's memory holds {} messages of {} bytes",
                                  o.num_messages, max_messages, bytes));
}

/// The session with one FPGA.
class player_host {
public:
  player_host(const playback_options &o, const played_messages &messages)
      : options_(o), messages_(messages), ip_(ip_of(o.bridge_ip)),
        fpga_(o.hsb_ip, static_cast<std::uint32_t>(o.control_port),
              std::chrono::nanoseconds(static_cast<std::int64_t>(o.timeout_s * 1e9))) {}

  /// The first contact: ends what the player plays.
  void stop() { fpga_.write(kPlayer + play::enable, 0); }
  void program();
  /// Until the record is complete, the player has ended, or no answer comes for the timeout and the time between two
  /// messages. Throws check_failed if the player refuses.
  void wait_for_answers(const interrupt_guard &interrupts);
  std::vector<recorded_answer> read_record();
  [[nodiscard]] std::uint64_t repeated() const { return fpga_.repeated(); }
  [[nodiscard]] std::uint32_t samples() const { return samples_; }

private:
  const playback_options &options_;
  const played_messages &messages_;
  const std::uint32_t ip_;
  control_client fpga_;
  std::uint32_t samples_ = 0;
};

void player_host::program() {
  const playback_options &o = options_;
  const std::uint32_t bytes = static_cast<std::uint32_t>(messages_.frames.front().size()), rows = rows_of(bytes);
  const std::uint64_t address = o.emulator ? o.bridge_buffer >> 7 : o.bridge_buffer;
  const std::uint32_t page = o.page_size / kPageUnit;
  const register_value head[] = {{o.vp_address + vp::qp, o.bridge_qp},
                                 {o.vp_address + vp::rkey, o.bridge_rkey},
                                 {o.vp_address + vp::page_lsb, static_cast<std::uint32_t>(address)},
                                 {o.vp_address + vp::page_msb, static_cast<std::uint32_t>(address >> 32)},
                                 {o.vp_address + vp::page_inc, page},
                                 {o.vp_address + vp::max_buff, o.num_pages - 1},
                                 {o.vp_address + vp::length, bytes},
                                 {o.vp_address + vp::ip, ip_},
                                 {o.vp_address + vp::port, static_cast<std::uint32_t>(o.bridge_port)},
                                 {o.hif_address + hif::packet_size, page},
                                 {o.hif_address + hif::vp_mask, 1},
                                 {kPlayer + play::timer, static_cast<std::uint32_t>(ticks_of(o.rate))},
                                 {kPlayer + play::window_bytes, bytes},
                                 {kPlayer + play::windows, o.num_messages},
                                 {kIla + ila::control, ila::reset}};
  fpga_.write(head);
  std::vector<register_value> memory;
  for (std::uint32_t k = 0; k < o.num_messages; ++k) {
    const std::vector<std::uint8_t> &frame = messages_.frames[k];
    for (std::size_t at = 0; at < frame.size(); at += 4) {
      std::uint32_t word = 0;
      std::memcpy(&word, frame.data() + at, std::min<std::size_t>(4, frame.size() - at));
      const auto row = k * rows + static_cast<std::uint32_t>(at / kRowBytes);
      memory.push_back(
          {bank_address(kPlayerMemory, kPlayerRows, static_cast<std::uint32_t>(at % kRowBytes / 4), row), word});
    }
  }
  fpga_.write(memory);
  fpga_.write(kIla + ila::control, ila::on);
  fpga_.write(kPlayer + play::enable, play::single_pass);
}

void player_host::wait_for_answers(const interrupt_guard &interrupts) {
  const std::uint64_t all = std::uint64_t{options_.num_messages} * rows_of(options_.page_size);
  const double limit_ns = (options_.timeout_s + (options_.rate == 0 ? 0 : 1 / options_.rate)) * 1e9;
  std::uint64_t since = now_ns();
  while (!interrupts.interrupted()) {
    const auto state =
        options_.emulator ? static_cast<pass_state>(fpga_.read(kPlayer + play::state)) : pass_state::runs;
    const std::uint32_t samples = fpga_.read(kIla + ila::sample); // after the state: it is the last count then
    if (samples != samples_) {
      samples_ = samples;
      since = now_ns();
    }
    if (state == pass_state::refused)
      throw check_failed("the player refuses the pass: `emulate` has printed the reason");
    if (samples_ >= all || samples_ >= kIlaRows || state != pass_state::runs)
      break;
    if (static_cast<double>(now_ns() - since) > limit_ns)
      break;
    std::this_thread::sleep_for(kPollInterval);
  }
  if (interrupts.interrupted())
    stop();
}

std::vector<recorded_answer> player_host::read_record() {
  samples_ = std::min(samples_, kIlaRows);
  std::vector<register_value> words;
  for (std::uint32_t row = 0; row < samples_; ++row)
    for (std::uint32_t bank = 0; bank < kIlaBanks; ++bank)
      words.push_back({bank_address(kIlaMemory, kIlaRows, bank, row), 0});
  fpga_.read(words);
  std::vector<recorded_answer> answers;
  recorded_answer open;
  for (std::uint32_t row = 0; row < samples_; ++row) {
    ila_row bits;
    for (std::uint32_t bank = 0; bank < kIlaBanks; ++bank)
      bits[bank] = words[row * kIlaBanks + bank].value;
    const recorded_beat beat = read_ila_row(bits);
    if (!beat.valid)
      continue;
    open.bytes.insert(open.bytes.end(), beat.bytes.begin(), beat.bytes.begin() + beat.count);
    open.time_ns = beat.time_ns;
    if (beat.last)
      answers.push_back(std::exchange(open, {}));
  }
  return answers;
}

played_back judge(const playback_options &o, const played_messages &messages,
                  const std::vector<recorded_answer> &answers) {
  played_back r;
  std::vector<bool> seen(o.num_messages);
  const auto note = [&r](std::string text) {
    if (r.notes.size() < kMaxNotes)
      r.notes.push_back(std::move(text));
  };
  for (const recorded_answer &answer : answers) {
    cudaq_rpc_response_t header{};
    if (answer.bytes.size() >= sizeof header)
      std::memcpy(&header, answer.bytes.data(), sizeof header);
    const std::uint32_t number = header.request_id;
    if (answer.bytes.size() < sizeof header || number >= o.num_messages || seen[number]) {
      ++r.unknown;
      note(fmt::format("an answer of {} bytes with the request id {}: no such message, or a second answer",
                       answer.bytes.size(), number));
      continue;
    }
    seen[number] = true;
    ++r.answered;
    r.round_trip.record(answer.time_ns - header.ptp_timestamp);
    r.record.add({number, header.ptp_timestamp, answer.time_ns, header.status});
    if (o.no_verify)
      continue;
    if (const std::string reason = why_wrong(o, messages, number, answer); !reason.empty()) {
      ++r.wrong;
      note(fmt::format("message {}: {}", number, reason));
    }
  }
  return r;
}

} // namespace

int run_playback(const playback_options &o, const output &out) {
  const std::unique_ptr<output_file> ila = open_ila(o.ila_file);
  const played_messages messages = make_messages(o);
  check(o, messages);
  const bool verified = !o.no_verify && !messages.expected.empty();
  player_host host(o, messages);
  host.stop();
  const interrupt_guard interrupts; // until here there is nothing to report
  host.program();
  host.wait_for_answers(interrupts);
  const played_back r = judge(o, messages, host.read_record());

  std::vector<std::string> problems;
  if (r.answered < o.num_messages && !interrupts.interrupted())
    problems.push_back(fmt::format("{} messages without a recorded answer", o.num_messages - r.answered));
  if (r.wrong != 0)
    problems.push_back(fmt::format("{} wrong answers", r.wrong));
  if (r.unknown != 0)
    problems.push_back(fmt::format("{} answers to no message", r.unknown));
  out.text("messages      {}: {} of {} bytes\n", messages.name, o.num_messages, messages.frames.front().size());
  out.text("answers       {} recorded in {} rows; {}\n", r.answered, host.samples(),
           verified ? fmt::format("{} as expected", r.answered - r.wrong) : "results not checked");
  out.text("round trip    {}\n", latency_line(r.round_trip));
  for (const std::string &text : r.notes)
    print_error("  {}\n", text);
  r.record.write_csv(ila.get());
  return out.finish({{"method", "round trip: the time in the record of the answer minus the time that the FPGA has "
                                "written into the message and the answer echoes"},
                     {"data", messages.name},
                     {"messages", o.num_messages},
                     {"message_bytes", messages.frames.front().size()},
                     {"answered", r.answered},
                     {"verified", verified},
                     {"wrong", r.wrong},
                     {"unknown", r.unknown},
                     {"samples", host.samples()},
                     {"round_trip_ns", latency_json(r.round_trip)},
                     {"control_repeated", host.repeated()},
                     {"notes", r.notes},
                     {"problems", problems}},
                    fmt::format("{}", fmt::join(problems, "; ")), kExitCheckFailed,
                    ended(interrupts.interrupted(), r.answered, o.num_messages, "messages"));
}

} // namespace cudaq::realtime::tools

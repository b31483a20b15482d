// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/replay.h"

#include "lib/qec/server/slot_size.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/output_file.h"
#include "tools/common/terminal.h"
#include "tools/emulate/links.h"
#include "tools/emulate/play_loop.h"
#include "tools/emulate/server_query.h"
#include "tools/replay/here_link.h"
#include "tools/replay/replay_player.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr int kReplaySchemaVersion = 2; ///< 1 had late, now sent_late
constexpr std::uint32_t kIdWindow = 16;
constexpr std::size_t kShown = 5; ///< differences in the text

/// What the recording has, without its bytes.
struct recording_facts {
  std::uint64_t payload_bytes = 0; ///< of the longest request
  std::uint64_t answered = 0;
  std::vector<std::uint64_t> unanswered;   ///< numbers, at most replay_result::kKept
  std::uint64_t first_ns = 0, last_ns = 0; ///< arrivals
  latency_histogram whole;
};

recording_facts facts_of(qec::record_reader &recording) {
  recording_facts facts;
  for (std::size_t k = 0; k < recording.size(); ++k) {
    const std::optional<qec::recorded_request> one = recording.read(k);
    if (!one)
      continue;
    facts.payload_bytes = std::max<std::uint64_t>(facts.payload_bytes, one->payload.size());
    facts.first_ns = facts.first_ns == 0 ? one->arrived_ns : std::min(facts.first_ns, one->arrived_ns);
    facts.last_ns = std::max(facts.last_ns, one->arrived_ns);
    if (one->is_answered) {
      ++facts.answered;
      facts.whole.record(one->stage_ns.back());
    } else if (facts.unanswered.size() < replay_result::kKept) {
      facts.unanswered.push_back(one->number);
    }
  }
  return facts;
}

/// A link to a server in another process, whose slots have the size that it says.
std::unique_ptr<link> connect(emulate_options &o, std::size_t payload_bytes, std::uint32_t &next_id) {
  const bool size_is_given = o.slot_size != 0;
  const std::uint64_t needed = (payload_bytes + CUDAQ_RPC_HEADER_SIZE + 127) / 128 * 128;
  if (over_network(o) && needed > 65408)
    throw usage_error(
        fmt::format("a request of {} bytes does not fit into a slot of --transport {}", payload_bytes, o.transport));
  if (!size_is_given)
    o.slot_size = std::max(qec::kUsualSlotSize, static_cast<std::uint32_t>(needed));
  const auto open = [&] { return make_served_link(o, kIdWindow, payload_bytes); };
  std::unique_ptr<link> to = open();
  (void)query_server(*to, o, next_id, qec::kDescribeFunctionId, {});
  (void)take_slot_size_of_server(to, o, size_is_given, payload_bytes, open);
  to->require_room(payload_bytes);
  return to;
}

std::string hex(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kMax = 32;
  return bytes.empty() ? "nothing"
                       : fmt::format("{:02x}{}", fmt::join(bytes.first(std::min(bytes.size(), kMax)), ""),
                                     bytes.size() > kMax ? "..." : "");
}

std::string text_of(const replay_difference &d) {
  const bool status = d.verdict == qec::answer_verdict::other_status;
  return fmt::format("request {} ({}), {} bytes: {}", d.recorded.number, function_name(d.recorded.function_id),
                     d.recorded.payload_bytes,
                     status
                         ? fmt::format("status {}, recorded was {}", d.replayed.status, d.recorded.status)
                         : fmt::format("result {}, recorded was {}", hex(d.replayed.result), hex(d.recorded.result)));
}

json json_of(const replay_difference &d) {
  return {{"request", d.recorded.number},
          {"function", function_name(d.recorded.function_id)},
          {"verdict", qec::kAnswerVerdicts[static_cast<std::size_t>(d.verdict)]},
          {"recorded_status", d.recorded.status},
          {"status", d.replayed.status},
          {"recorded_result", hex(d.recorded.result)},
          {"result", hex(d.replayed.result)}};
}

json json_of(const qec::record_reader &recording, const recording_facts &facts) {
  return {{"requests", recording.size()},
          {"places", recording.places()},
          {"answered", facts.answered},
          {"unanswered_requests", facts.unanswered},
          {"torn", recording.torn()},
          {"damaged", recording.damaged()},
          {"left_out", recording.left_out()},
          {"boot_id", fmt::format("{:016x}", recording.boot_id())},
          {"whole_ns", latency_json(facts.whole)}};
}

void print(const output &out, const std::string &file, const qec::record_reader &recording,
           const recording_facts &facts) {
  const std::uint64_t first = recording.size() == 0 ? 0 : recording.number(0);
  out.text("recording     {}: {} requests (number {} on) of {}; {} torn, {} damaged, {} left out\n", file,
           recording.size(), first, recording.places(), recording.torn(), recording.damaged(), recording.left_out());
  out.text("answered      {} in {}: {}\n", facts.answered,
           format_ns(static_cast<double>(facts.last_ns - facts.first_ns)), latency_line(facts.whole));
  if (!facts.unanswered.empty())
    out.text("no answer     request{} {}\n", facts.unanswered.size() == 1 ? "" : "s",
             fmt::join(facts.unanswered, ", "));
}

void print(const output &out, const replay_result &r, const left_out_requests &left) {
  const std::uint64_t wall = r.end_ns - r.begin_ns;
  out.text("played        {} in {}: {}/s; round trip {}\n", r.played, format_ns(static_cast<double>(wall)),
           format_rate(wall == 0 ? 0 : static_cast<double>(r.played) * 1e9 / static_cast<double>(wall)),
           latency_line(r.round_trip));
  out.text("not played    {}: {} copies, {} not executed, {} without their begin, {} unreadable\n", left.total(),
           left.copies, left.not_executed, left.without_begin, left.unreadable);
  out.text("answers       {} equal, {} differ, {} depend on time, {} not recorded\n", r.equal, r.differences,
           r.depends_on_time, r.not_compared);
  for (std::size_t k = 0; k < std::min(kShown, r.first.size()); ++k)
    out.text("difference    {}\n", text_of(r.first[k]));
}

std::vector<std::string> problems_of(const replay_result &r, link &to, bool interrupted) {
  problem_list problems;
  problems.none(r.differences, "answers differ from those that were recorded");
  if (r.stalled)
    problems.texts.push_back(to.alive() ? "the server has not answered in time" : to.end_text());
  else if (r.equal + r.differences == 0 && !interrupted)
    problems.texts.push_back("no answer could be compared");
  return problems.texts;
}

} // namespace

int run_replay(const replay_options &options, const output &out) {
  refuse_output_file("FILE", options.file);
  auto opened = qec::record_reader::open(options.file);
  if (opened.failed())
    refuse(opened.status() != CUDAQ_ERR_INVALID_ARG, opened.text());
  qec::record_reader &recording = **opened;
  const recording_facts facts = facts_of(recording);
  print(out, options.file, recording, facts);
  json report{{"schema_version", kReplaySchemaVersion}, {"recording", json_of(recording, facts)}};
  if (options.config.empty() && options.transport.empty())
    return out.finish(std::move(report));
  emulate_options o = options.link;
  o.transport = options.transport;
  std::uint32_t next_id = 0;
  const std::unique_ptr<link> to =
      options.config.empty() ? connect(o, facts.payload_bytes, next_id) : make_here_link(options.config);
  out.text("link          {}\n", to->describe());
  const interrupt_guard interrupts; // until here there is nothing to report
  replay_plan plan(recording);
  replay_player play({options.as_recorded, static_cast<std::uint64_t>(o.timeout_s * 1e9), next_id}, plan, *to, &now_ns);
  progress display({"replay", "requests", recording.size(), 0});
  play_to_end(play, interrupts, display, [&play] { return play.progress(); });
  const replay_result &r = play.result();
  print(out, r, plan.left_out());
  if (r.stalled && r.answered == 0 && over_network(o))
    print_error("  {}\n", size_advice(o));
  const std::vector<std::string> problems = problems_of(r, *to, interrupts.interrupted());
  json differences = json::array();
  for (const replay_difference &d : r.first)
    differences.push_back(json_of(d));
  report.update({{"link", to->describe()},
                 {"as_recorded", options.as_recorded},
                 {"played", r.played},
                 {"equal", r.equal},
                 {"different", r.differences},
                 {"depends_on_time", r.depends_on_time},
                 {"not_compared", r.not_compared},
                 {"copies", plan.left_out().copies},
                 {"not_executed", plan.left_out().not_executed},
                 {"without_begin", plan.left_out().without_begin},
                 {"unreadable", plan.left_out().unreadable},
                 {"busy", r.busy},
                 {"sent_late", r.late},
                 {"stalled", r.stalled},
                 {"wall_ns", r.end_ns - r.begin_ns},
                 {"round_trip_ns", latency_json(r.round_trip)},
                 {"differences", std::move(differences)}});
  return out.finish(std::move(report), fmt::format("{}", fmt::join(problems, "; ")), kExitCheckFailed,
                    ended(interrupts.interrupted(), r.played, recording.size(), "requests"));
}

} // namespace cudaq::realtime::tools

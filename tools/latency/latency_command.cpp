// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/latency/latency.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kLatencyFooter =
    R"(Floors and cases alternate in every repetition. The client is pinned to one core and the server to another.
Floors:
  floor (a)  two flags and one cache line of payload each way, nothing else
  floor (b)  the same ring, slots and frames, served by a loop that knows every request in advance
Every payload is random and every reply is checked.

Examples:
  cudaq-realtime latency                     200000 exchanges of each case, in 20 repetitions
  cudaq-realtime latency --core-producer 2 --core-dispatcher 3 --json latency.json --hgrm latency
  cudaq-realtime latency --quick             a short check that everything works, no measurement)";

} // namespace

void add_latency(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<latency_options>();
  latency_options &o = *options;
  CLI::App &latency = *program.add_subcommand("latency", "round trips of HOST_CALL, compared with a floor");
  latency.footer(kLatencyFooter);
  add_exchanges_option(latency, o, std::uint64_t{1} << 40);
  add_repeats_option(latency, chosen, o, "repetitions; each measures every floor and every case");
  add_quick_flag(latency, o);
  add_slots_option(latency, o.slots, "slots of the ring, and requests in flight when pipelined");
  latency.add_flag("--in-place", o.in_place, "answers overwrite their requests");
  latency.add_flag("--handler-times", o.handler_times,
                   "also cases in which the dispatcher records the times of its handlers");
  CLI::Option *const client = latency.add_option("--core-producer", o.where.producer,
                                                 "core of the client (default: two different physical cores)");
  CLI::Option *const server = latency.add_option("--core-dispatcher", o.where.dispatcher, "core of the server");
  for (CLI::Option *const core : {client, server})
    core->check(CLI::Range(0, kMaxCores));
  const auto both = [&o](const std::vector<int> &cores) {
    o.where.producer = cores[0];
    o.where.dispatcher = cores[1];
    return fmt::format("--core-producer {} --core-dispatcher {}", cores[0], cores[1]);
  };
  add_old_name<std::vector<int>>(latency, chosen, "--cores", {client, server}, both)
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::Range(0, kMaxCores));
  add_random_payload_options(latency, o);
  add_html_option(latency, chosen.output);
  add_hgrm_option(latency, chosen.output);
  run_when_chosen(latency, chosen, [options](const output &out) { return run_latency(*options, out); });
}

} // namespace cudaq::realtime::tools

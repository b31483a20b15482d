// SPDX-License-Identifier: Apache-2.0
#include "tools/commands.h"
#include "tools/common/command_options.h"
#include "tools/latency/latency.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kLatencyFooter =
    R"(Floors and cases alternate in every round. The client is pinned to one core and the server to another. Floors:
  floor (a)  two flags and one cache line of payload each way, nothing else
  floor (b)  the same ring, slots and frames, served by a loop that knows every request in advance
Every payload is random and every reply is checked.

Examples:
  cudaq-realtime latency                     200000 exchanges of each case, in 20 rounds
  cudaq-realtime latency --cores 2,3 --json latency.json --hgrm latency
  cudaq-realtime latency --quick             a short check that everything works, no measurement)";

} // namespace

void add_latency(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<latency_options>();
  latency_options &o = *options;
  CLI::App &latency = *program.add_subcommand("latency", "round trips of HOST_CALL, compared with a floor");
  latency.footer(kLatencyFooter);
  add_rounds_options(latency, o, std::uint64_t{1} << 40);
  add_quick_flag(latency, o);
  latency.add_option("--slots", o.slots, "slots of the ring, and requests in flight when pipelined")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1u << 20));
  latency.add_flag("--in-place", o.in_place, "answers overwrite their requests");
  add_client_cores_option(latency, o, "client core, server core (default: two different physical cores)")
      ->expected(2)
      ->type_name("A,B");
  add_random_payload_options(latency, o);
  add_html_option(latency, chosen.output);
  add_hgrm_option(latency, chosen.output);
  run_when_chosen(latency, chosen, [options](const output &out) { return run_latency(*options, out); });
}

} // namespace cudaq::realtime::tools

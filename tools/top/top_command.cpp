// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/top/top.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kTopFooter =
    R"(The server, or the router, must run with --counters PATH. Rates, latencies and errors are those of the interval,
queue lengths those of its end; totals are since the start. Latencies are from a request's arrival at the decoder to
its answer, up to 25 % or 256 ns too high, and only as ">8.59 s" above that. On a terminal, q ends it and a
space reads at once.

Examples:
  cudaq-realtime top --counters /run/decoders.sock
  cudaq-realtime top --counters /run/decoders.sock --count 1                             one reading
  cudaq-realtime top --counters /run/decoders.sock --interval 10 --count 6 --json top.json)";

} // namespace

void add_top(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<top_options>();
  top_options &o = *options;
  CLI::App &top = *program.add_subcommand("top", "shows a running server: rates, latencies, queues, errors by decoder");
  top.footer(kTopFooter);
  top.add_option("--counters", o.counters, "Unix socket on which a server gives its live counters")
      ->type_name("PATH")
      ->required();
  top.add_option("--interval", o.interval_s, "seconds between two readings")
      ->capture_default_str()
      ->check(number_between(0.05, 1e5));
  top.add_option("--count", o.count, "readings that are shown; 0: until Ctrl-C")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1'000'000}));
  run_when_chosen(top, chosen, [options, &chosen](const output &out) {
    if (chosen.output.json && options->count == 0)
      throw usage_error("--json: the report has all readings, so it needs --count with their number");
    return run_top(*options, out);
  });
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/bench_commands.h"
#include "benchmarks/compare/compare.h"
#include "benchmarks/compare/report_reader.h"
#include "tools/command_line/command_options.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kCompareFooter =
    R"(The first report is the base. Each ratio has an interval of 95 %: from the rounds of the report (latency, device,
graph),
or from several runs, as a list with commas. A figure is worse if its whole interval is beyond --tolerance, the same
if the whole interval is within it; else the runs cannot tell. If the noise is not known, the ratio decides. The exit
status is 1 if a judged figure is worse. A star marks the better side.

Examples:
  cudaq-realtime latency --json before.json
  cudaq-realtime latency --json after.json
  cudaq-realtime-bench compare before.json after.json
  cudaq-realtime-bench compare a1.json,a2.json,a3.json b1.json,b2.json,b3.json --tolerance 0.03
                                                     three runs of each
  cudaq-realtime-bench compare base.json new.json --judge p99,rate --json=verdict.json)";

/// `compare --json a.json b.json` means a.json as an input, but the parser takes it as the value of --json.
std::string refuse_input_as_output(std::string &path) {
  std::ifstream file(path);
  if (!file)
    return "";
  const json there = json::parse(file, nullptr, false);
  if (!there.is_object() || !is_report_of_ours(there) || there.value("command", json()) == "compare")
    return "";
  return fmt::format("{} holds another report, which would be lost; write --json=FILE, or --json at the end", path);
}

} // namespace

void add_compare(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<compare_options>();
  compare_options &o = *options;
  CLI::App &compare = *program.add_subcommand("compare", "two or more reports: ratios, their noise, and a verdict");
  compare.footer(kCompareFooter);
  compare.add_option("reports", o.reports, "reports of --json, the base first; A,B: several runs")
      ->required()
      ->type_name("REPORT")
      ->expected(2, 1000);
  compare.add_option("--tolerance", o.tolerance, "part by which a figure may differ; 0.1: ten percent")
      ->capture_default_str()
      ->check(number_between(0, 1000));
  compare.add_option("--judge", o.judge, "figures that decide the exit status")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::IsMember({"p50", "p90", "p99", "p99.9", "max", "rate", "time", "errors"}));
  add_html_option(compare, chosen.output);
  run_when_chosen(compare, chosen, [options](const output &out) { return run_compare(*options, out); });
  compare.get_option("--json")->check(CLI::Validator(&refuse_input_as_output, ""));
}

} // namespace cudaq::realtime::tools

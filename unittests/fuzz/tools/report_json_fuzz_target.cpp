// SPDX-License-Identifier: Apache-2.0
// The input is two reports of --json, with a line "%%" between them, as `compare` reads them. Each is refused with a
// text, or its figures are found; those of both are compared.
#include "benchmarks/compare/compared_figures.cpp"
#include "benchmarks/compare/ratio_estimate.cpp"
#include "benchmarks/compare/report_figures.cpp"
#include "benchmarks/compare/report_reader.cpp"
#include "unittests/fuzz/fuzz_input.h"

#include <nlohmann/json.hpp>
#include <optional>

namespace {

using namespace cudaq::realtime::tools;
using cudaq::realtime::test::require;

std::optional<json> report(std::string_view text) {
  try {
    return parse_report(text, "report");
  } catch (const usage_error &refused) {
    require(std::string_view(refused.what()).starts_with("report: "), "a refusal names the file");
    return std::nullopt;
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  cudaq::realtime::test::fuzz_input input(data, size);
  const auto base = report(input.text_until("%%\n")), now = report(input.text_until("%%\n"));
  for (const auto &one : {base, now}) {
    if (!one)
      continue;
    (void)conditions_of(*one);
    for (const report_figure &figure : figures_of(*one))
      require(!figure.what.empty() && figure.rounds.size() != 1, "a figure is of some kind");
  }
  if (!base || !now)
    return 0;
  for (const compared_figure &figure : compare_runs({"base", {*base}}, {"now", {*now}}, {})) {
    require(figure.judged == (figure.is != comparison::not_judged), "what is judged has a verdict");
    require(figure.base.what == figure.now.what && figure.base.of == figure.now.of, "like is compared with like");
  }
  return 0;
}

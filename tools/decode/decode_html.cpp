// SPDX-License-Identifier: Apache-2.0
// The report of `decode` as a page.
#include "tools/decode/decode.h"
#include "tools/html/html_page.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {

std::string decode_html(const json &report) {
  const auto number = [&](const char *name) { return report[name].get<std::uint64_t>(); };
  const std::string model = report["model"].get<std::string>(), predecoder = report["predecoder"].get<std::string>();
  const std::uint64_t shots = number("shots"), wall_ns = number("wall_ns");
  const auto wall = static_cast<double>(wall_ns);
  html_page page("Decoded shots of " + model);
  page.add("Shots",
           html_table({{"", "shots", "time", "shots/s", "threads"},
                       {(predecoder == "passthrough" ? "" : predecoder + "+") + report["decoder"].get<std::string>(),
                        std::to_string(shots), format_ns(wall),
                        format_rate(wall_ns == 0 ? 0 : static_cast<double>(shots) / wall * 1e9),
                        std::to_string(number("threads"))}}));
  page.add("Model", html_table({{"", "detectors", "observables"},
                                {model, std::to_string(number("detectors")), std::to_string(number("observables"))}}));
  page.add("Logical errors",
           html_paragraph(report.contains("logical_errors") ? error_rate{number("logical_errors"), shots}.text()
                                                            : "Not counted: the shots have no true observables."));
  if (report.contains("differences_from_predictions"))
    page.add("Answers", html_paragraph(fmt::format("{} of {} differ from those of --predictions.",
                                                   number("differences_from_predictions"), shots)));
  return page.text(report);
}

} // namespace cudaq::realtime::tools

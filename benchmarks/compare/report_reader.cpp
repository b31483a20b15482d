// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/compare/report_reader.h"

#include "benchmarks/compare/report_figures.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr int kDeepest = 64; // functions call themselves for each level; reports have about 8

/// They could steer the terminal that the text is printed to.
bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }

} // namespace

bool is_report_of_ours(const json &report) {
  return report.is_object() && text_of(report, "tool", "").starts_with("cudaq-realtime") &&
         report.value("command", json()).is_string();
}

json parse_report(std::string_view text, const std::string &path) {
  bool too_deep = false, bad_name = false;
  const auto keep = [&](int depth, json::parse_event_t event, json &part) {
    too_deep = too_deep || depth > kDeepest;
    if (std::string *const words = part.get_ptr<std::string *>(); words != nullptr) {
      bad_name = bad_name || (event == json::parse_event_t::key && std::ranges::any_of(*words, is_control));
      std::ranges::replace_if(*words, is_control, '?');
    }
    return !too_deep;
  };
  json report = json::parse(text, keep, false);
  if (too_deep)
    throw usage_error(fmt::format("{}: not a report that --json wrote: more than {} levels", path, kDeepest));
  if (bad_name)
    throw usage_error(fmt::format("{}: not a report that --json wrote: control characters in a name", path));
  if (!is_report_of_ours(report))
    throw usage_error(fmt::format("{}: not a report that --json wrote", path));
  if (report.value("ok", json(true)) != true)
    throw usage_error(fmt::format("{}: the report of a run that failed", path));
  return report;
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/report_reader.h"

#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr int kDeepest = 64; // functions call themselves for each level; reports have about 8

} // namespace

json parse_report(std::string_view text, const std::string &path) {
  bool too_deep = false;
  const auto keep = [&](int depth, json::parse_event_t, json &) {
    too_deep = too_deep || depth > kDeepest;
    return !too_deep;
  };
  json report = json::parse(text, keep, false);
  if (too_deep)
    throw usage_error(fmt::format("{}: not a report that --json wrote: more than {} levels", path, kDeepest));
  if (!report.is_object() || report.value("tool", json()) != "cudaq-realtime" ||
      !report.value("command", json()).is_string())
    throw usage_error(fmt::format("{}: not a report that --json wrote", path));
  if (report.value("ok", json(true)) != true)
    throw usage_error(fmt::format("{}: the report of a run that failed", path));
  return report;
}

} // namespace cudaq::realtime::tools

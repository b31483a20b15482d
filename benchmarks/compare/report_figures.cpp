// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/compare/report_figures.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>

namespace cudaq::realtime::tools {
namespace {

constexpr std::array<std::string_view, 5> kPercentiles = {"p50", "p90", "p99", "p99.9", "max"};
/// Parts of a report that hold settings, measurements of something else than the library, or the same figures in
/// another form.
constexpr std::array<std::string_view, 11> kNotFigures = {"machine",      "method",    "config",         "gpu",
                                                          "data",         "decoder",   "target",         "floor",
                                                          "other_floors", "lap_64_ns", "wall_per_second"};
/// The settings among them.
constexpr std::array<std::string_view, 6> kConditions = {"machine", "method", "config", "gpu", "data", "decoder"};
/// Differ from run to run, or are known from the figures.
constexpr std::array<std::string_view, 7> kNoConditions = {"load_average",
                                                           "ns_per_tick",
                                                           "timer_overhead_ns",
                                                           "offline_ns_per_shot",
                                                           "involuntary_context_switches",
                                                           "measured_clock_mhz",
                                                           "involuntary_context_switches_client"};

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N> &names) {
  return std::ranges::find(names, name) != names.end();
}

bool is_latency(const json &j) { return j.is_object() && j.contains("p50") && j.contains("p99") && j.contains("max"); }

double number(const json &object, const char *name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->template get<double>() : -1;
}

std::vector<double> numbers(const json &object, std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (const auto found = object.find(name); found != object.end() && found->is_array() &&
                                              std::ranges::all_of(*found, [](const json &n) { return n.is_number(); }))
      return found->template get<std::vector<double>>();
  return {};
}

/// The path of element `index` of the list at `path`: its name, if it has one.
std::string element_path(const std::string &path, const json &element, std::size_t index) {
  for (const char *name : {"name", "id", "label"})
    if (const auto found = element.find(name); found != element.end() && found->is_string())
      return found->template get<std::string>();
  for (const char *name : {"x", "slots"})
    if (const auto found = element.find(name); found != element.end())
      return fmt::format("{} {}", name, found->is_string() ? found->template get<std::string>() : found->dump());
  return fmt::format("{} {}", path, index + 1);
}

class figure_search {
public:
  std::vector<report_figure> found;

  /// `shots` of the objects around this one, -1 if they have none: those that were played, answered or not.
  void visit(const json &object, const std::string &path, double shots) {
    for (const char *name : {"shots_sent", "submitted", "shots"})
      if (const double n = number(object, name); n >= 0) {
        shots = n;
        break;
      }
    errors(object, path, shots);
    for (const auto &[name, value] : object.items()) {
      const std::string below = path.empty() ? name : path + " " + name;
      if (is_one_of(name, kNotFigures))
        continue;
      if (is_latency(value))
        latency(object, value, below);
      else if (value.is_number() && name.ends_with("per_second"))
        add({path, "rate", "1/s", value.template get<double>(), 0, 0, numbers(object, {"round_per_second"})});
      else if (value.is_number() && name.ends_with("_ns_per_shot"))
        add({below, "time", "ns", value.template get<double>(), 0, 0, {}});
      else if (value.is_object())
        visit(value, below, shots);
      else if (value.is_array())
        for (std::size_t i = 0; i < value.size(); ++i)
          if (value[i].is_object())
            visit(value[i], element_path(below, value[i], i), shots);
    }
  }

private:
  void add(report_figure figure) {
    if (figure.rounds.size() < 2)
      figure.rounds.clear();
    found.push_back(std::move(figure));
  }

  void latency(const json &around, const json &values, const std::string &path) {
    const std::string unit = path.ends_with("_rounds") ? "rounds" : text_of(around, "unit", "ns");
    for (const std::string_view what : kPercentiles)
      if (const double value = number(values, std::string(what).c_str()); value >= 0)
        add({path, std::string(what), unit, value, 0, 0,
             what == "p50" ? numbers(around, {"round_p50_ns", "round_p50"}) : std::vector<double>{}});
  }

  void errors(const json &object, const std::string &path, double shots) {
    double count = std::max(number(object, "logical_errors"), number(object, "failures"));
    count = std::max(count, number(object, "with_predecoder"));
    if (count >= 0 && shots > 0)
      add({path, "errors", "", count / shots, count, shots, {}});
  }
};

void collect(const json &value, const std::string &path, std::vector<std::pair<std::string, std::string>> &all) {
  if (!value.is_object()) {
    all.emplace_back(path, value.is_string() ? value.template get<std::string>() : value.dump());
    return;
  }
  for (const auto &[name, part] : value.items())
    if (!is_one_of(name, kNoConditions))
      collect(part, path + "." + name, all);
}

} // namespace

std::string text_of(const json &object, const char *name, const char *otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->template get<std::string>() : otherwise;
}

std::vector<report_figure> figures_of(const json &report) {
  figure_search search;
  search.visit(report, "", -1);
  return std::move(search.found);
}

std::vector<std::pair<std::string, std::string>> conditions_of(const json &report) {
  std::vector<std::pair<std::string, std::string>> all{{"version", text_of(report, "version", "")}};
  for (const std::string_view part : kConditions)
    if (const auto found = report.find(part); found != report.end())
      collect(*found, std::string(part), all);
  return all;
}

} // namespace cudaq::realtime::tools

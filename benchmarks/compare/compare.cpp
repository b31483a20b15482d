// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/compare/compare.h"

#include "benchmarks/compare/report_reader.h"
#include "tools/common/output_file.h"
#include "tools/common/terminal.h"
#include "tools/html/html_page.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace cudaq::realtime::tools {
namespace {

json read_report(const std::string &path) {
  refuse_output_file("report", path);
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file)
    throw usage_error(fmt::format("{}: cannot be read", path));
  return parse_report(text.str(), path);
}

compared_runs read_runs(const std::string &list) {
  compared_runs runs{list, {}};
  std::istringstream paths(list);
  for (std::string path; std::getline(paths, path, ',');)
    runs.reports.push_back(read_report(path));
  if (runs.reports.empty())
    throw usage_error("a report has an empty name");
  return runs;
}

/// All reports must be of the same subcommand, with fields of the same meaning.
void check_same_kind(const std::vector<compared_runs> &sides) {
  const json &first = sides.front().reports.front();
  for (const compared_runs &side : sides)
    for (const json &report : side.reports) {
      for (const char *field : {"tool", "command", "schema_version"}) {
        // Reports from before the field existed have the meaning of 1.
        const json standard = std::string_view(field) == "schema_version" ? json(1) : json();
        const json a = first.value(field, standard), b = report.value(field, standard);
        if (a != b)
          throw usage_error(
              fmt::format("{}: its {} is {}, but {} has {}", side.name, field, b.dump(), sides.front().name, a.dump()));
      }
    }
}

std::vector<std::string> differences(const json &base, const json &now) {
  std::vector<std::string> all;
  const auto before = conditions_of(base), after = conditions_of(now);
  for (const auto &[name, value] : before) {
    const auto same = std::ranges::find(after, name, &std::pair<std::string, std::string>::first);
    if (same == after.end())
      all.push_back(fmt::format("{}: {}, then missing", name, value));
    else if (same->second != value)
      all.push_back(fmt::format("{}: {}, then {}", name, value, same->second));
  }
  return all;
}

std::string figure_text(const report_figure &f) {
  if (f.unit == "ns")
    return format_ns(f.value);
  if (f.what == "errors")
    return fmt::format("{:.3g}", f.value);
  return f.unit == "1/s" ? format_rate(f.value) + "/s" : fmt::format("{:.4g} {}", f.value, f.unit);
}

void print_side(const output &out, const char *which, const compared_runs &side) {
  const json &first = side.reports.front();
  out.text("{:<5} {}: {}, version {}, {}{}\n", which, side.name, first["command"].get<std::string>(),
           text_of(first, "version", "unknown"), text_of(first, "date", "unknown"),
           side.reports.size() == 1 ? "" : fmt::format(" and {} more runs", side.reports.size() - 1));
}

/// Two values mean little, so the intervals of two runs may be very wide.
std::string bound_text(double bound) {
  return bound > 1000 ? ">1000" : bound < 0.001 ? "<0.001" : fmt::format("{:.3f}", bound);
}

std::string comparison_text(const compared_figure &f) {
  const std::string text = comparison_name(f.is);
  return f.is == comparison::worse       ? coloured(text, colour::bad)
         : f.is == comparison::better    ? coloured(text, colour::good)
         : f.is == comparison::undecided ? coloured(text, colour::warning)
                                         : text;
}

/// "base", "now", or "" if neither is known to be better.
std::string better_side(const compared_figure &f) {
  return f.is == comparison::better ? "now" : f.is == comparison::worse ? "base" : "";
}

/// The value of one side, with a star if this side is the better one.
std::string side_text(const report_figure &f, bool is_better, const char *otherwise = "") {
  return figure_text(f) + (is_better ? "*" : otherwise);
}

const char *direction(const report_figure &f) { return f.higher_is_better() ? "higher" : "lower"; }

/// What is judged, and p99. The report has all.
void print_figures(const output &out, const std::vector<compared_figure> &figures) {
  out.text("\n{:<50} {:>12} {:>12} {:>7} {:>7}  {:<19}verdict\n", "", "base", "now", "ratio", "better",
           "95 % interval");
  for (const compared_figure &f : figures) {
    if (!f.judged && f.base.what != "p99")
      continue;
    const auto &interval = f.estimate.interval;
    const std::string better = better_side(f);
    out.text("{:<50} {:>12} {:>12} {:>7} {:>7}  {:<19}{}\n",
             fmt::format("{}{}{}", f.base.of, f.base.of.empty() ? "" : " ", f.base.what),
             side_text(f.base, better == "base", " "), side_text(f.now, better == "now", " "),
             bound_text(f.estimate.ratio), direction(f.base),
             interval ? bound_text(interval->first) + " to " + bound_text(interval->second) : "noise not known",
             f.judged ? comparison_text(f) : "not judged");
  }
}

json figure_json(const compared_figure &f) {
  const auto &interval = f.estimate.interval;
  const std::string better = better_side(f);
  return {{"of", f.base.of},
          {"what", f.base.what},
          {"unit", f.base.unit},
          {"base", f.base.value},
          {"now", f.now.value},
          {"ratio", f.estimate.ratio},
          {"ratio_95_percent", interval ? json{interval->first, interval->second} : json()},
          {"values_of_base", f.base_values},
          {"values_of_now", f.now_values},
          {"better_is", direction(f.base)},
          {"better_side", better.empty() ? json() : json(better)},
          {"judged", f.judged},
          {"verdict", f.judged ? json(comparison_name(f.is)) : json()}};
}

std::size_t count(const std::vector<compared_figure> &figures, comparison c) {
  return static_cast<std::size_t>(std::ranges::count(figures, c, &compared_figure::is));
}

/// "1 worse, 2 better, 3 the same, 4 cannot tell"
std::string counts_text(const json &side) {
  return fmt::format("{} worse, {} better, {} the same, {} cannot tell", side["worse"].get<std::size_t>(),
                     side["better"].get<std::size_t>(), side["same"].get<std::size_t>(),
                     side["cannot_tell"].get<std::size_t>());
}

/// Compares one side with the base, prints it, and returns it as JSON. Adds to `worse` the names of what is worse.
json compare_side(const output &out, const compared_runs &base, const compared_runs &now, const compare_options &o,
                  std::vector<std::string> &worse) {
  const auto figures = compare_runs(base, now, o);
  if (std::ranges::none_of(figures, &compared_figure::judged))
    throw usage_error(fmt::format("{}, {}: they have no figure in common that is judged", base.name, now.name));
  const auto notes = differences(base.reports.front(), now.reports.front());
  print_side(out, "now", now);
  for (const std::string &note : notes)
    out.text("note  {}\n", note);
  print_figures(out, figures);
  json list = json::array();
  std::size_t noise_unknown = 0;
  for (const compared_figure &f : figures) {
    list.push_back(figure_json(f));
    noise_unknown += f.judged && !f.estimate.interval;
    if (f.is == comparison::worse)
      worse.push_back(fmt::format("{} {} ({:.2f})", f.base.of, f.base.what, f.estimate.ratio));
  }
  json side = {{"name", now.name},
               {"runs", now.reports.size()},
               {"differences", notes},
               {"worse", count(figures, comparison::worse)},
               {"better", count(figures, comparison::better)},
               {"same", count(figures, comparison::same)},
               {"cannot_tell", count(figures, comparison::undecided)},
               {"figures", list}};
  out.text("\n{}; *: the better side; a difference up to {:g} % is the same\n", counts_text(side), 100 * o.tolerance);
  if (side["cannot_tell"] != 0)
    out.text(
        "Cannot tell: the interval has differences within the tolerance and beyond it. More runs make it narrower.\n");
  if (noise_unknown != 0)
    out.text("Figures whose noise is not known: {}. Give several runs of each side, separated by commas.\n",
             noise_unknown);
  return side;
}

/// From the report alone.
std::string compare_html(const json &report) {
  html_page page("Comparison of " + report["compared_command"].get<std::string>());
  page.add("Base", html_paragraph(fmt::format("{}: {} run{}.", report["base"]["name"].get<std::string>(),
                                              report["base"]["runs"].get<std::size_t>(),
                                              report["base"]["runs"] == 1 ? "" : "s")));
  for (const json &side : report["compared"]) {
    std::vector<std::vector<std::string>> rows{{"", "base", "now", "ratio", "better", "95 % interval", "verdict"}};
    std::vector<plotted_ratio> ratios;
    for (const json &f : side["figures"]) {
      const double ratio = f["ratio"].get<double>();
      const bool known = f["ratio_95_percent"].is_array();
      const double low = known ? f["ratio_95_percent"][0].get<double>() : ratio;
      const double high = known ? f["ratio_95_percent"][1].get<double>() : ratio;
      const std::string of = f["of"].get<std::string>(), what = f["what"].get<std::string>();
      const std::string name = of.empty() ? what : of + " " + what;
      const auto value = [&](const char *which) {
        report_figure figure;
        figure.what = what;
        figure.unit = f["unit"].get<std::string>();
        figure.value = f[which].get<double>();
        return side_text(figure, f["better_side"] == which);
      };
      const std::string is = f["judged"].get<bool>() ? f["verdict"].get<std::string>() : "not judged";
      rows.push_back({name, value("base"), value("now"), bound_text(ratio), f["better_is"].get<std::string>(),
                      known ? bound_text(low) + " to " + bound_text(high) : "noise not known", is});
      if (f["judged"].get<bool>())
        ratios.push_back({name, ratio, low, high, is});
    }
    std::string notes;
    for (const json &note : side["differences"])
      notes += html_paragraph(note.get<std::string>());
    const std::string legend = fmt::format("*: the better side. A difference up to {:g} % is the same.",
                                           100 * report["tolerance"].get<double>());
    page.add(side["name"].get<std::string>() + ": " + counts_text(side),
             notes + ratio_plot(ratios) + html_table(rows) + html_paragraph(legend));
  }
  return page.text(report);
}

} // namespace

const char *comparison_name(comparison c) {
  constexpr const char *kNames[] = {"", "worse", "better", "same", "cannot tell"};
  return kNames[static_cast<std::size_t>(c)];
}

int run_compare(const compare_options &o, const output &out) {
  std::vector<compared_runs> sides;
  for (const std::string &list : o.reports)
    sides.push_back(read_runs(list));
  check_same_kind(sides);
  const compared_runs &base = sides.front();
  json report = {{"compared_command", base.reports.front()["command"]},
                 {"method",
                  "ratio: geometric mean of the values of the runs, or of the rounds of the only run; "
                  "base, now: the same means, or the value of all exchanges if a side has one value only; "
                  "interval: Welch's with 95 %, of the logarithms; errors: log-normal with half an error added"},
                 {"tolerance", o.tolerance},
                 {"judged", o.judge},
                 {"base", {{"name", base.name}, {"runs", base.reports.size()}}}};
  report["compared"] = json::array();
  print_side(out, "base", base);
  std::vector<std::string> worse;
  for (std::size_t i = 1; i < sides.size(); ++i)
    report["compared"].push_back(compare_side(out, base, sides[i], o, worse));
  return out.finish(std::move(report), worse.empty() ? "" : fmt::format("worse: {}", fmt::join(worse, ", ")),
                    kExitCheckFailed, {}, &compare_html);
}

} // namespace cudaq::realtime::tools

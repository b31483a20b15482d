// SPDX-License-Identifier: Apache-2.0
#include "tools/html/html_page.h"

#include "tools/html/plot_frame.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

// In print the light colours are used.
constexpr const char *kStyle = R"css(
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:1rem;background:var(--back);color:var(--text);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25;margin:.2em 0}h2{font-size:1.15rem;margin:1.8em 0 .4em}
.result{font-weight:600}.good{color:var(--good)}.bad{color:var(--bad)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:.8rem 0}
dt{color:var(--soft)}dd{margin:0}
.plot,.table{overflow-x:auto}
svg{display:block;width:100%;min-width:34rem;height:auto}
g.even{color:var(--c0)}g circle{fill:currentColor}g line{stroke:currentColor;stroke-width:3}
g.open circle{fill:var(--back);stroke:currentColor;stroke-width:2}
.filled{fill:var(--c0);fill-opacity:.18}.mark{stroke:var(--text);stroke-dasharray:3 3}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
th,td{padding:.2rem .8rem .2rem 0;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap;
overflow-wrap:normal}
th{font-weight:600;color:var(--soft)}th:first-child,td:first-child{text-align:left;white-space:normal;
min-width:8rem}
details{margin-top:2rem}summary{cursor:pointer;font-weight:600}details td{text-align:left;white-space:normal;
overflow-wrap:anywhere}
@media (max-width:32rem){body{padding:.6rem}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.4rem}}
@media print{:root{color-scheme:light;--back:#fff;--text:#000;--soft:#444;--line:#bbb;--good:#1f7a3a;--bad:#b3261e;
--c0:#2563a8;--c1:#b4541a;--c2:#2f7a43;--c3:#7d4aa5}
body{max-width:none;padding:0;font-size:10pt}section{break-inside:avoid}svg{min-width:0}
.plot,.table{overflow:visible}th,td{white-space:normal;padding-right:.4rem}details{display:none}
h1,h2{break-after:avoid}@page{margin:15mm}}
)css";

std::string fact(const char *name, const std::string &value) {
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, html_text(value));
}

std::string machine_text(const json &machine) {
  const auto governor = machine.value("governor", std::string());
  return fmt::format("{}, {} cores, {} NUMA node{}, {} {}{}{}", machine.value("cpu_model", std::string("unknown")),
                     machine.value("online_cores", 0), machine.value("numa_nodes", 0),
                     machine.value("numa_nodes", 0) == 1 ? "" : "s", machine.value("kernel", std::string()),
                     machine.value("architecture", std::string()),
                     machine.value("virtual_machine", false) ? ", virtual machine" : "",
                     governor.empty() ? "" : ", governor " + governor);
}

/// Decodes without an answer, or with a late one: the sum of `unanswered`, and of `late` beside it, at any depth.
/// Several decoders may have decoded the same shot.
std::uint64_t unanswered_in(const json &figures) {
  const bool has_unanswered = figures.is_object() && figures.contains("unanswered");
  std::uint64_t sum = 0;
  for (const auto &[name, value] : figures.items())
    if (value.is_structured())
      sum += unanswered_in(value);
    else if (value.is_number_unsigned() && has_unanswered && (name == "unanswered" || name == "late"))
      sum += value.get<std::uint64_t>();
  return sum;
}

std::string header(const std::string &title, const std::string &unchecked, const json &report) {
  const bool ok = report.value("ok", false), partial = report.value("exit_status", 0) == kExitInterrupted;
  const bool is_unchecked = ok && !unchecked.empty();
  const std::uint64_t unanswered = ok ? unanswered_in(report) : 0;
  const bool is_late = ok && report.contains("pace_kept") && report["pace_kept"] == false;
  const std::string result = is_unchecked ? "Nothing was checked: " + unchecked
                             : unanswered != 0
                                 ? fmt::format("Complete, but {} decode{} no answer or a late one: failures "
                                               "of the rate",
                                               unanswered, unanswered == 1 ? " has" : "s have")
                             : is_late ? "Every check passed, but the pace was not kept"
                             : ok      ? "Good: every check passed"
                             : partial ? "Not complete: " + report.value("error", std::string())
                                       : "Failed: " + report.value("error", std::string("unknown"));
  return fmt::format("<h1>{}</h1>\n<p class=\"result {}\">{}{}</p>\n<dl>\n", html_text(title),
                     is_unchecked || unanswered != 0 || is_late ? ""
                     : ok                                       ? "good"
                                                                : "bad",
                     html_text(result), report.value("interrupted", false) ? " (ended by a signal)" : "") +
         fact("Command", report.value("command_line", std::string())) +
         fact("Machine", machine_text(report["machine"])) +
         fact("Version", report.value("tool", std::string()) + " " + report.value("version", std::string())) +
         fact("Date", report.value("date", std::string())) +
         (report.contains("method") && report["method"].is_string()
              ? fact("Method", report["method"].get<std::string>())
              : "") +
         "</dl>\n";
}

/// A table row for each figure. A figure inside an object is named <object>.<name>.
std::string rows(const json &figures, const std::string &prefix) {
  std::string out;
  for (const auto &[name, value] : figures.items()) {
    const std::string path = prefix.empty() ? name : prefix + "." + name;
    const bool is_list_of_objects = value.is_array() && !value.empty() && value[0].is_object();
    if (value.is_object() || is_list_of_objects)
      out += rows(value, path);
    else
      out += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", html_text(path),
                         html_text(value.is_string() ? value.get<std::string>()
                                                     : value.dump(-1, ' ', false, json::error_handler_t::replace)));
  }
  return out;
}

} // namespace

void html_page::add(const std::string &heading, const std::string &content) {
  if (!content.empty())
    sections_.emplace_back(heading, content);
}

std::string html_page::text(const json &report) const {
  std::string page = fmt::format("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                                 "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n",
                                 html_text(title_), page_style()) +
                     header(title_, unchecked_, report);
  for (const auto &[heading, content] : sections_)
    page += fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", html_text(heading), content);
  return page + "<details>\n<summary>All figures</summary>\n<div class=\"table\"><table>\n" + rows(report, "") +
         "</table></div>\n</details>\n</main>\n</body>\n</html>\n";
}

std::string page_style() {
  return fmt::format(":root{{color-scheme:light dark;{}}}{}\n@media (prefers-color-scheme:dark){{:root{{{}}}}}{}",
                     kLightColours, kPlotStyle, kDarkColours, kStyle);
}

std::string html_table(const std::vector<std::vector<std::string>> &rows) {
  std::string out = "<div class=\"table\"><table>\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const char *cell = i == 0 ? "th" : "td";
    out += "<tr>";
    for (const std::string &text : rows[i])
      out += fmt::format("<{0}>{1}</{0}>", cell, html_text(text));
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string latency_table(const std::vector<plotted_latency> &rows, const measured_words &words) {
  std::vector<std::vector<std::string>> cells{{"", words.things, "min", "mean", "p50", "p90", "p99", "p99.9", "max"}};
  for (const auto &[name, h] : rows) {
    const auto cell = [&](double ns) { return h->count() == 0 ? "-" : format_ns(ns); };
    std::vector<std::string> row{name, std::to_string(h->count()), cell(static_cast<double>(h->min())),
                                 cell(h->mean())};
    for (const double percent : {50.0, 90.0, 99.0, 99.9, 100.0})
      row.push_back(cell(static_cast<double>(h->percentile(percent))));
    cells.push_back(std::move(row));
  }
  return html_table(cells);
}

std::string html_paragraph(const std::string &text) { return text.empty() ? "" : "<p>" + html_text(text) + "</p>\n"; }

} // namespace cudaq::realtime::tools

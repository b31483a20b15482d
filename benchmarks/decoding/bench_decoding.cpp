// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/decoding/bench_decoding.h"

#include "benchmarks/decoding/error_curve.h"
#include "benchmarks/decoding/sampled_decoding.h"
#include "tools/common/interrupt.h"
#include "tools/html/html_page.h"
#include "tools/html/html_plots.h"
#include "tools/html/plot_axis.h"
#include "tools/shots/own_data.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

std::string ratio_text(const paired_errors &e, bool is_reference) {
  if (is_reference)
    return "reference";
  if (e.with == e.without && e.only_with == 0)
    return "1 (all answers equally right)";
  if (e.with == 0 || e.without == 0)
    return fmt::format("{} / {} failures", e.with, e.without);
  return fmt::format("{:.3f} ({:.3f}-{:.3f})", e.ratio(), e.ratio_interval().low, e.ratio_interval().high);
}

json case_json(const decoding_case &one, const case_counts &c, bool is_reference) {
  const auto shots = static_cast<double>(c.errors.shots);
  const error_rate failed{c.errors.with, c.errors.shots};
  json j{{"name", one.name},
         {"failures", c.errors.with},
         {"logical_error_rate", failed.rate()},
         {"interval_95", {failed.interval_95().low, failed.interval_95().high}},
         {"events_per_shot", static_cast<double>(c.events) / shots},
         {"cpu_ns_per_shot", c.ns / shots}};
  j.update(case_fields(c));
  if (one.deadline_us != 0) {
    j["decoder"] = one.decoder;
    j["deadline_us"] = one.deadline_us;
  }
  if (is_reference)
    return j;
  j["only_this_failed"] = c.errors.only_with;
  j["only_reference_failed"] = c.errors.only_without;
  if (c.errors.with != 0 && c.errors.without != 0) {
    const auto ratio = c.errors.ratio_interval();
    j["ratio"] = c.errors.ratio();
    j["ratio_interval_95"] = {ratio.low, ratio.high};
  }
  return j;
}

/// Rates over the deadline: of all failures, and of the shots without an answer in time where there are some.
std::string deadline_plot(const json &cases) {
  std::vector<plotted_curve> curves;
  std::size_t colour = 0;
  plotted_curve unanswered;
  const auto add_unanswered = [&] {
    if (std::ranges::any_of(unanswered.points, [](const plotted_rate &p) { return p.rate != 0; }))
      curves.push_back(std::move(unanswered));
  };
  for (const json &c : cases) {
    if (!c.contains("deadline_us"))
      continue;
    const std::string decoder = c["decoder"].get<std::string>();
    if (unanswered.name != decoder + ", no answer in time") {
      if (!curves.empty())
        ++colour;
      add_unanswered();
      curves.push_back({decoder, colour, 0, {}});
      unanswered = {decoder + ", no answer in time", colour, 2, {}};
    }
    const double x = 1000 * c["deadline_us"].get<double>();
    const error_rate none{c["unanswered"].get<std::uint64_t>() + c["late"].get<std::uint64_t>(),
                          c["shot_ns"]["count"].get<std::uint64_t>()};
    curves.back().points.push_back({x, c["logical_error_rate"].get<double>(), c["interval_95"][0].get<double>(),
                                    c["interval_95"][1].get<double>()});
    unanswered.points.push_back({x, none.rate(), none.interval_95().low, none.interval_95().high});
  }
  add_unanswered();
  return curve_plot(curves, "deadline of a decode", "logical errors per shot", &time_label);
}

std::string decoding_html(const json &report) {
  html_page page("Decoders on shots of " + report["dem"].get<std::string>());
  page.add("Shots",
           html_paragraph(fmt::format("{} shots of {} detectors and {} observables, {:.3g} errors a shot "
                                      "expected; seed {}.",
                                      report["shots"].get<std::uint64_t>(), report["detectors"].get<int>(),
                                      report["observables"].get<int>(), report["expected_errors"].get<double>(),
                                      report["seed"].get<std::uint64_t>())));
  std::vector<std::vector<std::string>> rows{
      {"", "failures", "errors per shot", "95 % interval", "ratio", "95 % interval", "CPU a shot"}};
  const auto interval = [](const json &ends) {
    return fmt::format("{:.3g} to {:.3g}", ends[0].get<double>(), ends[1].get<double>());
  };
  for (const json &c : report["cases"]) {
    const bool has_ratio = c.contains("ratio");
    rows.push_back({c["name"].get<std::string>(), std::to_string(c["failures"].get<std::uint64_t>()),
                    fmt::format("{:.3g}", c["logical_error_rate"].get<double>()), interval(c["interval_95"]),
                    has_ratio ? fmt::format("{:.3f}", c["ratio"].get<double>()) : "",
                    has_ratio ? interval(c["ratio_interval_95"]) : "", format_ns(c["cpu_ns_per_shot"].get<double>())});
  }
  page.add("Logical errors and time", html_table(rows));
  page.add("Times of shots, and shots without an answer",
           case_tables(report["cases"], [](const json &c) { return c["name"].get<std::string>(); }));
  page.add("Logical errors under a deadline", deadline_plot(report["cases"]));
  return page.text(report);
}

} // namespace

int run_bench_decoding(const bench_decoding_options &o, const output &out) {
  if (o.dem_files.size() != 1 && o.known.any())
    throw usage_error("--readout, --heralds: of one model; name one file for --dem");
  if (o.dem_files.size() != 1 || !o.csv_file.empty())
    return run_error_curve(o, out);
  const std::string &dem_file = o.dem_files.front();
  if (!o.svg_file.empty())
    throw usage_error("--svg: the picture of a curve: name several files for --dem, or --csv");
  const std::vector<decoding_case> cases = cases_of(o);
  sampled_decoding decoding(o, {dem_file, read_dem_file(dem_file), cases});
  const qec::detector_error_model &model = decoding.model();
  const interrupt_guard guard; // until here there is nothing to report
  const std::vector<case_counts> counts = decoding.run();

  const case_counts &reference = counts.front();
  out.text(
      "{}: {} detectors, {} observables, {:.3g} errors a shot expected{}\n{} shots, seed {}\n\n{:<32} {:>9}  {:<28}  "
      "{:<26} {:>8}  {:>10}\n",
      dem_file, model.num_detectors, model.num_observables, decoding.sampler().expected_errors(),
      decoding.known() != nullptr ? "; " + decoding.known()->text()
      : o.errors == 0             ? ""
                                  : fmt::format("; sampled: exactly {}", o.errors),
      reference.errors.shots, o.seed, "", "failures", "per shot, 95 % interval", "ratio, paired", "events",
      "CPU a shot");
  json list = json::array();
  for (std::size_t k = 0; k < counts.size() && reference.errors.shots != 0; ++k) { // 0: the first batch was cut
    const std::string &name = cases[k].name;
    const case_counts &c = counts[k];
    const error_rate failed{c.errors.with, c.errors.shots};
    const auto interval = failed.interval_95();
    const auto n = static_cast<double>(c.errors.shots);
    out.text("{:<32} {:>9}  {:<28}  {:<26} {:>8.2f}  {:>10}\n", name, c.errors.with,
             fmt::format("{:.3g} ({:.3g}-{:.3g})", failed.rate(), interval.low, interval.high),
             ratio_text(c.errors, k == 0), static_cast<double>(c.events) / n, format_ns(c.ns / n));
    out.raw(case_text(c));
    list.push_back(case_json(cases[k], c, k == 0));
  }
  json report{
      {"schema_version", kDecodingSchemaVersion},
      {"method",
       "shots sampled from the model's error instructions; every case decodes the same "
       "shots; CPU time of the thread, with predecoder and unpacking, without sampling. Deadlines are "
       "wall-clock times from the begin of each decode, times of shots from the end of the decode before; a shot "
       "without an answer in time is a failure. A decoder with the readout, or with heralds, makes the "
       "probabilities of a shot in this time; one without has their averages"},
      {"dem", dem_file},
      {"detectors", model.num_detectors},
      {"observables", model.num_observables},
      {"expected_errors", decoding.sampler().expected_errors()},
      {"errors", o.errors},
      {"known", decoding.known() != nullptr ? json(decoding.known()->text()) : json()},
      {"shots", reference.errors.shots},
      {"seed", o.seed},
      {"threads", decoding.threads()},
      {"cases", list}};
  return out.finish(
      std::move(report), "", kExitCheckFailed,
      ended(guard.interrupted(), reference.errors.shots, o.duration_s != 0 ? kNotKnown : o.shots, "shots"),
      &decoding_html);
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/detector_pages.h"

#include "tools/html/html_page.h"
#include "tools/serve/live_pages.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

using namespace cudaq::qec::realtime;

constexpr std::size_t kWorst = 5, kWorstOfPage = 20;
constexpr std::size_t kMaxDecodersOfText = 100, kMaxDecodersOfPage = 16, kMaxDetectorsOfJson = 20'000;

/// A decoder that counts, and its rates at this moment.
struct counted_detectors {
  std::uint64_t id;
  std::shared_ptr<const decoder_identity> identity; ///< keeps the model
  detector_reading now;

  [[nodiscard]] const model_detectors &model() const { return identity->rates->model(); }
};

/// Of the first decoders that count, so many.
std::vector<counted_detectors> read_all(const decoding_server &server, std::size_t max_count) {
  std::vector<counted_detectors> all;
  for (const auto &decoder : server.decoders()) {
    auto identity = decoder->identity();
    if (identity->rates == nullptr)
      continue;
    if (all.size() == max_count)
      break;
    detector_reading now = identity->rates->read();
    all.push_back({decoder->limits().id, std::move(identity), std::move(now)});
  }
  return all;
}

json known(double value) { return std::isfinite(value) ? json(value) : json(); }

json detector_json(const counted_detectors &of, std::size_t d) {
  const model_detector &model = of.model().all[d];
  return {{"detector", d},
          {"rate", known(of.now.detectors[d].rate)},
          {"model_rate", known(model.rate)},
          {"sigma", known(of.now.detectors[d].sigma)},
          {"x", known(model.x)},
          {"y", known(model.y)},
          {"time", known(model.time)}};
}

std::string value_text(double value, const char *form) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(form), value) : "-";
}

/// The detectors of one place, at all times.
struct place_sums {
  double rate = 0, model = 0;
  std::size_t known = 0;
  std::vector<std::size_t> detectors;
};

/// One place for each x and y. Detectors at successive times share errors, so a difference of their sum may be shown
/// up to 1.4 times too large.
std::vector<plotted_place> places_of(const counted_detectors &of) {
  std::map<std::pair<double, double>, place_sums> sums;
  const auto &model = of.model().all;
  for (std::size_t d = 0; d < model.size(); ++d) {
    if (!model[d].has_place())
      continue;
    place_sums &sum = sums[{model[d].x, model[d].y}];
    sum.detectors.push_back(d);
    if (std::isnan(of.now.detectors[d].sigma))
      continue;
    ++sum.known;
    sum.rate += of.now.detectors[d].rate;
    sum.model += model[d].rate;
  }
  std::vector<plotted_place> places;
  for (const auto &[at, sum] : sums) {
    const auto n = static_cast<double>(sum.known);
    constexpr std::size_t kNamed = 8;
    std::string name;
    for (std::size_t k = 0; k < std::min(kNamed, sum.detectors.size()); ++k)
      name += fmt::format("{}D{}", k == 0 ? "" : " ", sum.detectors[k]);
    const double sigma = sum.known == 0 ? kUnknown : sigma_between(sum.rate / n, sum.model / n, of.now.shots * n);
    name += fmt::format("{} at ({:g}, {:g}): rate {}, model {}, {} sigma", sum.detectors.size() > kNamed ? " ..." : "",
                        at.first, at.second, value_text(sum.rate / n, "{:.3g}"), value_text(sum.model / n, "{:.3g}"),
                        value_text(sigma, "{:+.1f}"));
    places.push_back({at.first, at.second, sigma, std::move(name)});
  }
  return places;
}

std::string worst_table(const counted_detectors &of) {
  std::vector<std::vector<std::string>> rows{{"detector", "x", "y", "time", "rate", "model", "sigma"}};
  for (const std::size_t d : worst_detectors(of.now, kWorstOfPage)) {
    const model_detector &model = of.model().all[d];
    rows.push_back({fmt::format("D{}", d), value_text(model.x, "{:g}"), value_text(model.y, "{:g}"),
                    value_text(model.time, "{:g}"), value_text(of.now.detectors[d].rate, "{:.4g}"),
                    value_text(model.rate, "{:.4g}"), value_text(of.now.detectors[d].sigma, "{:+.1f}")});
  }
  return html_table(rows);
}

} // namespace

std::string detectors_text(const decoding_server &server) {
  const std::vector<counted_detectors> all = read_all(server, kMaxDecodersOfText);
  if (all.empty())
    return "";
  std::string text;
  const auto family = [&text](const char *name, const char *help) {
    text += fmt::format("# HELP cudaq_decoder_{0} {1}\n# TYPE cudaq_decoder_{0} gauge\n", name, help);
  };
  const auto each = [&](const char *name, const char *help, const auto &value) {
    family(name, help);
    for (const counted_detectors &of : all)
      text += fmt::format("cudaq_decoder_{}{{decoder=\"{}\"}} {}\n", name, of.id, value(of));
  };
  each("detectors", "Detectors of a shot, or of the parts of a stream.",
       [](const counted_detectors &of) { return of.now.detectors.size(); });
  each("detector_shots", "Shots that would give rates of detectors as exact as the present ones.",
       [](const counted_detectors &of) { return fmt::format("{:.0f}", of.now.shots); });
  each("detectors_beyond_5_sigma", "Detectors whose rate differs from the model's by 5 standard deviations or more.",
       [](const counted_detectors &of) { return certain_differences(of.now); });
  std::vector<std::vector<std::size_t>> worst;
  for (const counted_detectors &of : all)
    worst.push_back(worst_detectors(of.now, kWorst));
  const auto each_rank = [&](const char *name, const char *help, const auto &value) {
    family(name, help);
    for (std::size_t k = 0; k < all.size(); ++k)
      for (std::size_t rank = 0; rank < worst[k].size(); ++rank)
        text += fmt::format("cudaq_decoder_{}{{decoder=\"{}\",rank=\"{}\"}} {}\n", name, all[k].id, rank + 1,
                            value(all[k], worst[k][rank]));
  };
  each_rank("worst_detector", "The detector whose rate differs most from the model's; next ones have higher ranks.",
            [](const counted_detectors &, std::size_t d) { return d; });
  // Without a sign: each value of the page is a count or a size, and readers rely on it.
  each_rank("worst_detector_sigma", "By how many standard deviations; its rates say in which direction.",
            [](const counted_detectors &of, std::size_t d) {
              return fmt::format("{:.3f}", std::abs(of.now.detectors[d].sigma));
            });
  each_rank("worst_detector_rate", "Its rate.",
            [](const counted_detectors &of, std::size_t d) { return fmt::format("{:.6g}", of.now.detectors[d].rate); });
  each_rank("worst_detector_model_rate", "Its rate in the model.",
            [](const counted_detectors &of, std::size_t d) { return fmt::format("{:.6g}", of.model().all[d].rate); });
  return text;
}

json learning_json(const learning_report &report) {
  const learn_verdict &last = report.last;
  constexpr const char *kNames[] = {"refused", "not_better", "better"};
  const bool has_ended = report.refused + report.not_better + report.better != 0;
  json score;
  if (has_ended && last.what != learn_verdict::kind::refused)
    score = {{"per_shot", last.score.per_shot},
             {"sigma", last.score.sigma},
             {"better_by_sigmas", last.score.better_by_sigmas},
             {"shots", last.score.shots},
             {"shadow_shots", last.shadow_shots},
             {"shadow_differ", last.shadow_differ}};
  return {{"id", report.id},
          {"refused", report.refused},
          {"not_better", report.not_better},
          {"better", report.better},
          {"swaps", report.swaps},
          {"lost_shots", report.lost},
          {"uses_learned", report.uses_learned},
          {"last", has_ended ? json(kNames[static_cast<std::size_t>(last.what)]) : json()},
          {"reasons", last.reasons},
          {"more_reasons", last.more_reasons},
          {"score", std::move(score)}};
}

std::string learning_text(const std::vector<learning_report> &learning) {
  constexpr struct {
    const char *name, *type, *help;
    std::uint64_t (*value)(const learning_report &report);
  } kFamilies[] = {
      {"learn_refused_total", "counter", "Rounds of learning whose data must not change a model.",
       [](const learning_report &r) { return r.refused; }},
      {"learn_not_better_total", "counter", "Rounds whose learned model was not better by enough.",
       [](const learning_report &r) { return r.not_better; }},
      {"learn_better_total", "counter", "Rounds whose learned model was better.",
       [](const learning_report &r) { return r.better; }},
      {"learn_swaps_total", "counter", "Learned models that took the place of the served one.",
       [](const learning_report &r) { return r.swaps; }},
      {"learn_lost_shots_total", "counter", "Shots that were not learned from, because they came too quickly.",
       [](const learning_report &r) { return r.lost; }},
      {"uses_learned_model", "gauge", "1: the served model is a learned one.",
       [](const learning_report &r) { return std::uint64_t{r.uses_learned}; }},
  };
  std::string text;
  if (!learning.empty())
    for (const auto &[name, type, help, value] : kFamilies) {
      text += fmt::format("# HELP cudaq_decoder_{0} {2}\n# TYPE cudaq_decoder_{0} {1}\n", name, type, help);
      for (const learning_report &report : learning)
        text += fmt::format("cudaq_decoder_{}{{decoder=\"{}\"}} {}\n", name, report.id, value(report));
    }
  return text;
}

std::string detectors_json(const decoding_server &server, const std::vector<learning_report> &learning) {
  json decoders = json::array();
  std::size_t listed = 0;
  for (const counted_detectors &of : read_all(server, SIZE_MAX)) {
    json one = {{"id", of.id},
                {"shots", of.now.shots},
                {"num_detectors", of.now.detectors.size()},
                {"head_detectors", of.model().head},
                {"tail_detectors", of.model().tail},
                {"beyond_5_sigma", certain_differences(of.now)},
                {"worst", json::array()},
                {"detectors", json()},
                {"learn", json()}};
    for (const learning_report &report : learning)
      if (report.id == of.id)
        one["learn"] = learning_json(report);
    for (const std::size_t d : worst_detectors(of.now, kWorstOfPage))
      one["worst"].push_back(detector_json(of, d));
    listed += of.now.detectors.size();
    if (listed <= kMaxDetectorsOfJson) {
      one["detectors"] = json::array();
      for (std::size_t d = 0; d < of.now.detectors.size(); ++d)
        one["detectors"].push_back(detector_json(of, d));
    }
    decoders.push_back(std::move(one));
  }
  return json({{"schema_version", 1}, {"decoders", std::move(decoders)}}).dump() + "\n";
}

std::string detectors_page(const decoding_server &server) {
  std::string sections;
  const std::vector<counted_detectors> all = read_all(server, kMaxDecodersOfPage);
  if (all.empty())
    sections = html_paragraph("No decoder counts detection events.");
  for (const counted_detectors &of : all) {
    const std::string picture = layout_plot(places_of(of));
    sections += fmt::format("<section>\n<h2>Decoder {}</h2>\n", of.id) +
                html_paragraph(fmt::format("{} detectors, {} of them beyond 5 sigma; about {:.0f} shots.",
                                           of.now.detectors.size(), certain_differences(of.now), of.now.shots)) +
                (picture.empty() ? html_paragraph("The model has no coordinates, so there is no picture.") : picture) +
                worst_table(of) + "</section>\n";
  }
  return live_page("Detectors", "Detectors: rates beside the model", 5, sections);
}

} // namespace cudaq::realtime::tools

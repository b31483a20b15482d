// SPDX-License-Identifier: Apache-2.0
#include "tools/learn/learn.h"

#include "lib/qec/decoding/model_text_file.h"
#include "lib/qec/decoding/number_of.h"
#include "lib/qec/learning/offline_learning.h"
#include "lib/qec/shots/shot_stream.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/output_file.h"
#include "tools/common/terminal.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

namespace cudaq::realtime::tools {
namespace {

using qec::number_of;

constexpr std::size_t kShownDetectors = 5; ///< in the text: those that differ most from the model

/// Of all errors: learned rate over the model's own, ascending.
std::vector<double> factors_of(const qec::learned_rates &rates) {
  std::vector<double> factors;
  for (const qec::learned_rate &one : rates.errors)
    factors.push_back(one.rate / one.model);
  std::ranges::sort(factors);
  return factors;
}

std::string text_of(const qec::offline_result &result, std::uint64_t wall_ns, const std::string &shot_text) {
  const qec::learned_rates &rates = result.rates;
  std::string text = fmt::format("learned         from {} in {}; each {}\n", number_of(result.learned_from, "shot"),
                                 format_ns(static_cast<double>(wall_ns)), shot_text);
  const std::vector<double> factors = factors_of(rates);
  if (!factors.empty()) {
    const auto at = [&](double share) {
      return factors[static_cast<std::size_t>(share * static_cast<double>(factors.size() - 1))];
    };
    text += fmt::format("errors          {} of {} resolved; 90 % of the rates are {:.3g} to {:.3g} times the model's, "
                        "the middle one {:.3g} times\n",
                        std::ranges::count(rates.errors, true, &qec::learned_rate::resolved), factors.size(), at(0.05),
                        at(0.95), at(0.5));
  }
  std::vector<std::size_t> order(rates.detectors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t d) { return std::abs(rates.detectors[d].sigmas); });
  order.resize(std::min(order.size(), kShownDetectors));
  for (const std::size_t d : order)
    text += fmt::format("detector {:<6} fires in {:.4g} of the shots, by the model in {:.4g} ({:+.1f} sigma)\n", d,
                        rates.detectors[d].now, rates.detectors[d].model, rates.detectors[d].sigmas);
  if (result.score)
    text += fmt::format("score           {:+.3g} +- {:.2g} nats a shot on {} held out: {}\n", result.score->per_shot,
                        result.score->sigma, number_of(result.held_out, "shot"),
                        result.score->blocks < qec::model_score::kFewestBlocks
                            ? std::string("too few to say")
                            : fmt::format("{:.1f} sigma {}", std::abs(result.score->better_by_sigmas),
                                          result.score->better_by_sigmas < 0 ? "worse" : "better"));
  return text;
}

json report_of(const learn_options &o, const qec::offline_result &result, std::uint64_t wall_ns) {
  const qec::learned_rates &rates = result.rates;
  json j = {{"model", o.data.dem}, {"shots", result.learned_from}, {"held_out_shots", result.held_out},
            {"wall_ns", wall_ns},  {"variation", rates.variation}, {"refusals", rates.refusals}};
  if (result.score)
    j["score"] = {{"per_shot", result.score->per_shot},
                  {"sigma", result.score->sigma},
                  {"blocks", result.score->blocks},
                  {"better_by_sigmas", result.score->better_by_sigmas}};
  json &errors = j["errors"] = json::array();
  for (const qec::learned_rate &one : rates.errors)
    errors.push_back({{"error", one.mechanism},
                      {"line", one.line},
                      {"model", one.model},
                      {"rate", one.rate},
                      {"sigma", one.sigma},
                      {"low", one.low},
                      {"high", one.high},
                      {"resolved", one.resolved}});
  json &detectors = j["detectors"] = json::array();
  for (const qec::detector_rate &one : rates.detectors)
    detectors.push_back({{"rate", one.now}, {"model", one.model}, {"sigmas", one.sigmas}});
  return j;
}

qec::tied_errors read_groups(const learn_options &o, const std::string &dem_text) {
  if (o.tied.empty())
    return {};
  const auto text = qec::read_model_text(o.tied);
  if (text.failed())
    throw usage_error(fmt::format("--tied {}", text.text()));
  auto groups = qec::parse_tied(*text, qec::crc32_of(dem_text));
  if (groups.failed())
    throw usage_error(fmt::format("--tied {}: {}", o.tied, groups.text()));
  return std::move(*groups);
}

} // namespace

int run_learn(const learn_options &o, const output &out) {
  std::optional<output_file> written;
  if (!o.out.empty())
    written.emplace("--out", o.out);
  for (const auto &[option, path] : {std::pair{"--in", o.data.in.path}, std::pair{"--tied", o.tied}})
    refuse_output_file(option, path);
  const std::string dem_text = read_dem_file(o.data.dem);
  auto model = qec::parse_dem(dem_text);
  if (model.failed())
    throw usage_error(fmt::format("--dem {}: {}", o.data.dem, model.text()));
  if (model->num_detectors == 0)
    throw usage_error(no_detectors_text(o.data));
  const qec::shot_bits bits{model->num_detectors, o.data.in_includes_appended_observables ? model->num_observables : 0};
  qec::learning_options how;
  how.prior_sigma = std::log(o.prior);
  how.tied = read_groups(o, dem_text);
  auto learning = qec::offline_learning::of(std::move(*model), std::move(how), o.held_out);
  if (learning.failed())
    throw usage_error(fmt::format("--dem {}: {}", o.data.dem, learning.text()));

  const interrupt_guard guard;
  const std::uint64_t begin = now_ns();
  std::uint64_t shots = 0, expected_shots = 0;
  std::string shot_text;
  try {
    qec::shot_reader in(o.data.in.path, o.data.in.shot_format(), bits, "--in_format");
    in.stop_when(&interrupt_guard::interrupted);
    std::vector<std::uint8_t> shot((bits.detectors + 7) / 8), observables((bits.observables + 7) / 8);
    progress display({"learn"});
    while (in.read(shot, observables)) {
      (void)learning->add(shot); // the reader gives no bits after the last detector
      display.show(in.shots(), now_ns(), in.expected_shots());
    }
    shots = in.shots();
    expected_shots = in.expected_shots();
    shot_text = in.shot_text();
    if (shots == 0)
      throw usage_error(fmt::format("{}: there are no shots", in.name()));
  } catch (const qec::shot_file_error &error) {
    throw usage_error(error.what());
  }
  const auto result = learning->finish();
  if (result.failed())
    throw usage_error(fmt::format("--dem {}: {}", o.data.dem, result.text()));
  const std::uint64_t wall_ns = now_ns() - begin;
  out.raw(text_of(*result, wall_ns, shot_text));
  std::string problem;
  for (const std::string &text : result->rates.refusals)
    problem += (problem.empty() ? "the model stays as it is: " : "; ") + text;
  if (written && problem.empty()) {
    const std::string text = qec::text_with(dem_text, result->rates);
    written->write([&text](std::ostream &file) { file << text; });
    out.text("written         {}\n", o.out);
  }
  return out.finish(
      report_of(o, *result, wall_ns), problem, kExitCheckFailed,
      ended(guard.interrupted(), shots, guard.interrupted() ? std::max(shots + 1, expected_shots) : shots, "shots"));
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/learning/data_checks.h"

#include "lib/qec/learning/parity_system.h"

#include "lib/qec/decoding/number_of.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace cudaq::qec::realtime {
namespace {

constexpr double kSurely = 5;            ///< sigma, for what refuses data
constexpr std::size_t kFewestErrors = 4; ///< of a detector that lost some
constexpr std::size_t kMaxTexts = 20;    ///< about detectors

/// A detector in a text: "detector 7 fires in 0.481 of the shots".
std::string fires(std::size_t detector, const detector_rate &rate) {
  return "detector " + std::to_string(detector) + " fires in " + short_number(rate.now) + " of the shots";
}

/// Why the rate of a detector refuses the data; "": it does not.
std::string refusal_of_detector(std::size_t d, const detector_rate &rate, double shots, double effective_shots,
                                const learning_options &options) {
  const std::string expects = ", the model expects " + short_number(rate.model);
  const double sigma = std::sqrt(std::max(rate.now, 1 / effective_shots) / effective_shots);
  if (rate.now > options.stuck_above && rate.now - kSurely * sigma > rate.model)
    return fires(d, rate) + expects + ": it is stuck or random";
  if (rate.now * shots < 1 && rate.model * effective_shots >= options.min_expected_events)
    return fires(d, rate) + expects + ": it is dead";
  if (rate.model == 0)
    return rate.now > kSurely * sigma ? fires(d, rate) + ", and no error of the model flips it" : "";
  if (rate.now - kSurely * sigma > options.max_change * rate.model ||
      rate.now + kSurely * sigma < rate.model / options.max_change)
    return fires(d, rate) + expects + ": a change by more than a factor of " + short_number(options.max_change);
  return "";
}

} // namespace

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::vector<detector_rate> beside_model(const std::vector<double> &exponents, const event_counts &counts) {
  std::vector<detector_rate> rates(exponents.size());
  for (std::size_t d = 0; d < rates.size(); ++d) {
    detector_rate &rate = rates[d];
    rate.model = probability_of(exponents[d]);
    if (!(counts.shots() > 0))
      continue;
    rate.now = counts.odd(d) / counts.shots();
    const double variance = rate.model * (1 - rate.model) / counts.effective_shots();
    // A detector that no error flips: one event alone is far from the model.
    rate.sigmas = (rate.now - rate.model) / std::sqrt(std::max(variance, 1e-12 / counts.effective_shots()));
  }
  return rates;
}

std::vector<std::string> refusals_of(const learned_rates &rates, const event_counts &counts,
                                     const std::vector<set_change> &changes, const learning_options &options) {
  std::vector<std::string> texts;
  const double shots = counts.effective_shots();
  if (shots < options.min_shots)
    texts.push_back("too few shots: " + std::to_string(std::llround(shots)) +
                    ", needed: " + std::to_string(std::llround(options.min_shots)));
  if (counts.repeated_shots() > options.max_repeated * counts.shots())
    texts.push_back("at least " + short_number(100 * counts.repeated_shots() / counts.shots()) +
                    " % of the shots are in passages that repeat earlier ones bit by bit");
  std::vector<std::size_t> resolved(rates.detectors.size()), lost(rates.detectors.size());
  for (const set_change &change : changes) {
    const double least = change.model / options.max_change;
    if (change.model - least < kSurely * change.sigma)
      continue; // it could be missing by chance
    for (const std::uint32_t d : change.detectors) {
      ++resolved[d];
      lost[d] += change.now < least ? 1 : 0;
    }
  }
  std::size_t of_detectors = 0;
  const auto add = [&](const std::string &text) {
    if (!text.empty() && ++of_detectors <= kMaxTexts)
      texts.push_back(text);
  };
  for (std::size_t d = 0; d < rates.detectors.size(); ++d) {
    const std::string text = refusal_of_detector(d, rates.detectors[d], counts.shots(), shots, options);
    add(text);
    if (text.empty() && resolved[d] >= kFewestErrors &&
        static_cast<double>(lost[d]) > options.max_lost * static_cast<double>(resolved[d]))
      add("detector " + std::to_string(d) + ": of " + number_of(resolved[d], "error") +
          " that it shares with others, " + std::to_string(lost[d]) +
          " are missing: it has the place of another detector, or the model is another one's");
  }
  if (of_detectors > kMaxTexts)
    texts.push_back(number_of(of_detectors - kMaxTexts, "more text") + " about detectors");
  // The variance of a variance is about 4 / n of its square: the number of events has a longer tail than a normal one.
  const double allowed = options.max_variation * counts.mean_events();
  if (counts.variance_of_events() > rates.explained_variance * (1 + kSurely * 2 / std::sqrt(shots)) + allowed * allowed)
    texts.push_back(
        "the number of events of a shot varies more than independent errors explain, as if the rates varied by " +
        short_number(100 * rates.variation) + " % between shots; accepted: " +
        short_number(100 * options.max_variation) + " %. There was a burst, or the rates changed");
  return texts;
}

} // namespace cudaq::qec::realtime

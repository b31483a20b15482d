// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/bp_osd/bp_osd_decoder.h"

#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoders/propagation/column_answer.h"
#include "lib/qec/decoders/propagation/shot_columns.h"
#include "lib/qec/decoders/propagation/tanner_decoder.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

class bp_osd_decoder final : public decoder {
public:
  bp_osd_decoder(tanner_graph graph, const bp_osd_options &options, double smallest)
      : decoder(graph.num_detectors, graph.num_observables), solver_(std::move(graph), options),
        shot_(solver_.graph(), smallest) {}

  const char *name() const noexcept override { return "bp-osd"; }
  bool obeys_deadline() const noexcept override { return true; }
  std::uint64_t num_errors() const noexcept override { return shot_.graph().num_errors; }
  const char *refuses_probabilities() const noexcept override { return nullptr; }
  double smallest_probability() const noexcept override { return shot_.smallest(); }
  const char *fault() const noexcept override { return shot_.fault(); }

protected:
  decode_status replace_probabilities(shot_probabilities probabilities) noexcept override {
    return shot_.replace(probabilities, solver_);
  }
  void restore_probabilities() noexcept override { shot_.restore(solver_); }

  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *details) noexcept override {
    shot_.clear_fault();
    const decode_status status = solver_.solve(events, stop_check(details));
    if (!solver_.has_solution())
      return status;
    const double weight = details == nullptr ? 0 : solver_.weight_of(solver_.correction());
    return answer_columns(shot_.graph(), solver_.correction(), weight, status, observables, details);
  }

private:
  bp_osd solver_;
  shot_columns shot_;
};

/// Min-sum is relay belief propagation of one leg without memory.
relay_bp_options min_sum_options(const bp_osd_options &options) {
  relay_bp_options o;
  o.alpha = options.scaling;
  o.gamma0 = 0;
  o.pre_iter = options.max_iterations;
  o.num_sets = 0;
  o.sums_posteriors = options.sums_posteriors;
  return o;
}

} // namespace

bp_osd::bp_osd(tanner_graph graph, const bp_osd_options &options)
    : graph_(std::move(graph)), syndrome_(graph_), score_(graph_.num_columns()),
      statistics_(graph_, syndrome_.rank(), options.osd_order), small_sets_(graph_) {
  if (options.method == bp_method::min_sum)
    min_sum_.emplace(graph_, min_sum_options(options));
  else
    product_sum_.emplace(graph_, options.max_iterations, options.sums_posteriors);
}

void bp_osd::reload(std::uint32_t column) noexcept {
  if (min_sum_)
    min_sum_->reload(column);
  else
    product_sum_->reload(column, graph_.probability[column]);
  statistics_.reload(column);
  small_sets_.reload(column);
}

decode_status bp_osd::propagate(stop_check &stop) noexcept {
  decode_status status;
  if (min_sum_) {
    status = min_sum_->solve(syndrome_.bytes(), stop);
    iterations_ = min_sum_->iterations() + (status == decode_status::ok ? 1 : 0);
    correction_ = min_sum_->correction();
    if (status == decode_status::not_converged)
      min_sum_->posteriors(score_);
  } else {
    status = product_sum_->run(syndrome_.bytes(), stop);
    iterations_ = product_sum_->iterations();
    correction_ = product_sum_->decision();
    if (status == decode_status::not_converged)
      std::ranges::copy(product_sum_->score(), score_.begin());
  }
  return status;
}

decode_status bp_osd::solve(std::span<const std::uint64_t> events, stop_check stop) noexcept {
  correction_ = {};
  iterations_ = 0;
  used_ordered_statistics_ = has_solution_ = false;
  if (!syndrome_.set_events(events))
    return decode_status::no_solution;
  // No probability is above 1/2, so the likeliest set without events is the empty one.
  has_solution_ = syndrome_.checks().empty();
  if (has_solution_)
    return decode_status::ok;
  decode_status status = propagate(stop);
  used_ordered_statistics_ = status == decode_status::not_converged;
  if (used_ordered_statistics_) {
    status = statistics_.solve(syndrome_.words(), score_, stop);
    correction_ = statistics_.solution();
  }
  has_solution_ = status == decode_status::ok || (used_ordered_statistics_ && statistics_.has_solution());
  if (!has_solution_) {
    correction_ = {};
    return status;
  }
  // Belief propagation stops at the first set that explains the events, and its first messages are scaled down: that
  // set may be heavier than a single error or a pair.
  const auto small = small_sets_.lighter_than(weight_of(correction_), syndrome_.checks());
  if (!small.empty())
    correction_ = small;
  return status;
}

decoder_result make_bp_osd_decoder(const decoder_model &model, decoder_settings &settings) {
  const auto failed = [](const std::string &why) { return decoder_result{nullptr, "bp-osd decoder: " + why}; };
  try {
    bp_osd_options options;
    const bool product_sum = settings.choice("method", "min_sum", {"min_sum", "product_sum"}) == "product_sum";
    options.method = product_sum ? bp_method::product_sum : bp_method::min_sum;
    options.max_iterations =
        static_cast<std::uint32_t>(settings.number("max_iterations", options.max_iterations, 1, kMaxBpIterations));
    options.scaling = settings.real("scaling", options.scaling, 0, 1);
    options.osd_order = static_cast<std::uint32_t>(settings.number("osd_order", options.osd_order, 0, kMaxOsdOrder));
    options.sums_posteriors = settings.choice("posterior", "sum", {"sum", "last"}) == "sum";
    decoder_result made = make_tanner_decoder<bp_osd_decoder>(model, settings, options);
    return made ? std::move(made) : failed(made.error);
  } catch (const std::exception &failure) { // out of memory
    return failed(failure.what());
  }
}

} // namespace cudaq::qec::realtime

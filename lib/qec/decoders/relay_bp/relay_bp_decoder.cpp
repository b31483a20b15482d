// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoders/propagation/column_answer.h"
#include "lib/qec/decoders/propagation/graph_syndrome.h"
#include "lib/qec/decoders/propagation/shot_columns.h"
#include "lib/qec/decoders/propagation/tanner_decoder.h"
#include "lib/qec/decoders/relay_bp/relay_bp.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

class relay_bp_decoder final : public decoder {
public:
  relay_bp_decoder(tanner_graph graph, const relay_bp_options &options, double smallest)
      : decoder(graph.num_detectors, graph.num_observables), graph_(std::move(graph)), syndrome_(graph_),
        solver_(graph_, options), shot_(graph_, smallest) {}

  const char *name() const noexcept override { return "relay-bp"; }
  bool obeys_deadline() const noexcept override { return true; }
  std::uint64_t num_errors() const noexcept override { return graph_.num_errors; }
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
    if (!syndrome_.set_events(events))
      return decode_status::no_solution;
    const decode_status status = solver_.solve(syndrome_.bytes(), stop_check(details));
    const bool is_solved = status == decode_status::ok || (status == decode_status::deadline && solver_.has_solution());
    if (!is_solved)
      return status;
    return answer_columns(graph_, solver_.correction(), solver_.weight(), status, observables, details);
  }

private:
  tanner_graph graph_;
  graph_syndrome syndrome_;
  relay_bp solver_;
  shot_columns shot_;
};

} // namespace

relay_bp_options relay_bp_options_of(decoder_settings &settings, bool on_gpu) {
  relay_bp_options o;
  const auto count = [&](std::string_view key, std::uint32_t otherwise, std::uint32_t lowest, std::uint32_t highest) {
    return static_cast<std::uint32_t>(settings.number(key, otherwise, lowest, highest));
  };
  o.alpha = settings.real("alpha", o.alpha, 0, 1);
  o.alpha_iteration_scaling_factor = settings.real("alpha_iteration_scaling_factor", 1, 1e-6, 1e6);
  o.gamma0 = settings.real("gamma0", o.gamma0, -1, 1);
  o.pre_iter = count("pre_iter", o.pre_iter, 1, kMaxRelayIterations);
  o.num_sets = count("num_sets", o.num_sets, 0, kMaxRelaySets);
  o.set_max_iter = count("set_max_iter", o.set_max_iter, 1, kMaxRelayIterations);
  o.gamma_lowest = settings.real("gamma_lowest", o.gamma_lowest, -1, 1);
  o.gamma_highest = settings.real("gamma_highest", o.gamma_highest, o.gamma_lowest, 1);
  o.stop_nconv = count("stop_nconv", o.stop_nconv, 1, kMaxRelaySets);
  o.seed = settings.number("seed", o.seed, 0, UINT64_MAX);
  if (!on_gpu)
    o.double_precision = settings.choice("precision", "float", {"float", "double"}) == "double";
  o.ensemble = count("ensemble", o.ensemble, 1, kMaxRelayChains);
  std::vector<std::string_view> modes{"least_weight", "in_step"};
  if (on_gpu)
    modes.emplace_back("first");
  const std::string mode = settings.choice("mode", on_gpu ? "first" : "least_weight", modes);
  o.mode = static_cast<ensemble_mode>(std::ranges::find(modes, mode) - modes.begin());
  return o;
}

decoder_result make_relay_bp_decoder(const decoder_model &model, decoder_settings &settings) {
  const auto failed = [](const std::string &why) { return decoder_result{nullptr, "relay-bp decoder: " + why}; };
  try {
    const relay_bp_options options = relay_bp_options_of(settings);
    decoder_result made = make_tanner_decoder<relay_bp_decoder>(model, settings, options);
    return made ? std::move(made) : failed(made.error);
  } catch (const std::exception &failure) { // out of memory
    return failed(failure.what());
  }
}

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
// A decoder plug-in in C++: the likeliest set of errors that causes the events. Its search improves a solution, so it
// shows how a decode ends at a deadline: with the best solution so far.
//
// The set must have an error that flips the lowest remaining event. The search tries each of them, with all sets of
// further errors (depth first). What remains adds at least a bound: for each event the least weight of an untried error
// that flips it, over the remaining events that this error flips. Sets whose weight and bound are not below the best
// solution are left out; at first also those above a limit, which grows until there is a solution. Example: error 0 is
// D0 (weight 4), error 1 is D0 D1 (3), error 2 is D1 (4).
//
//   set   remaining   weight + bound
//   {}    D0 D1       0 + 1.5 + 1.5    the first limit
//   {1}   none        3 + 0            the best so far
//   {0}   D1          4 + 4            left out, so the search ends
//
// The bound is that of the search decoder Tesseract (arXiv:2503.10988).
#include <cudaq/qec/decoding/decoder_plugin.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kRounding = 1e-9;
using indices = std::vector<std::uint64_t>;

class least_weight {
public:
  /// Copies the model, whose memory is valid until `create` returns. Throws if it is not taken.
  explicit least_weight(const cudaq_qec_decoder_model_t &model)
      : errors_(model.errors->errors.num_rows), flipping_(model.num_detectors), remains_(model.num_detectors) {
    for (std::size_t k = 0; k < model.num_settings; ++k)
      set(model.settings[k].key, model.settings[k].value);
    const cudaq_qec_decoder_flips_t &flips = model.errors->errors;
    for (std::size_t k = 0; k < errors_.size(); ++k) {
      const double p = model.errors->probabilities[k];
      if (p > 0.5)
        throw std::invalid_argument("error " + std::to_string(k) + " is likelier than not; bp-osd takes it");
      errors_[k].weight = std::log((1 - p) / p);
      errors_[k].detectors =
          indices(flips.detectors + flips.first_detector[k], flips.detectors + flips.first_detector[k + 1]);
      errors_[k].observables =
          indices(flips.observables + flips.first_observable[k], flips.observables + flips.first_observable[k + 1]);
      if (p > 0)
        for (const std::uint64_t d : errors_[k].detectors)
          flipping_[d].push_back(k);
    }
    for (indices &errors : flipping_)
      sort(errors);
    replaced_.reserve(errors_.size());
    path_.reserve(errors_.size() + 1); // decode allocates nothing
    tried_.reserve(errors_.size());
    best_.reserve(errors_.size());
  }

  /// The weights of a shot; an empty list: those of the model again.
  std::int32_t replace_weights(const cudaq_qec_error_probability_t *list, std::size_t size) noexcept {
    constexpr double kLeast = 1e-9; // a weight is finite
    for (std::size_t k = 0; k < size; ++k)
      if (list[k].probability > 0.5 || errors_[list[k].error].weight == kInfinity)
        return CUDAQ_QEC_DECODE_NOT_SUPPORTED;
    for (const auto &[number, weight] : replaced_)
      set_weight(number, weight);
    replaced_.clear();
    for (std::size_t k = 0; k < size; ++k) {
      const double p = std::max(list[k].probability, kLeast);
      replaced_.emplace_back(list[k].error, errors_[list[k].error].weight);
      set_weight(list[k].error, std::log((1 - p) / p));
    }
    return CUDAQ_QEC_DECODE_OK;
  }

  /// `control`: null without a deadline.
  std::int32_t decode(const std::uint64_t *events, std::size_t num_events, std::uint8_t *observables, double *weight,
                      const cudaq_qec_decode_control_t *control) noexcept {
    for (std::uint64_t d = 0; d < remains_.size(); ++d) // what the last shot has left
      if (remains_[d])
        flip(d);
    std::for_each(events, events + num_events, [this](std::uint64_t d) { flip(d); });
    const std::int32_t status = search(control);
    if (best_weight_ == kInfinity)
      return status;
    for (const std::uint64_t k : best_)
      for (const std::uint64_t o : errors_[k].observables)
        observables[o / 8] = static_cast<std::uint8_t>(observables[o / 8] ^ 1U << o % 8);
    *weight = best_weight_;
    return status;
  }

  /// The errors of the last solution, ascending.
  const indices &correction() const noexcept { return best_; }

private:
  struct error {
    double weight;
    indices detectors, observables;
    std::int64_t num_remaining = 0; ///< of the detectors
    bool is_tried = false;          ///< it is in the set, or the sets with it have been tried
  };
  /// An event, and the errors that flip it: those before `next` were chosen one after another.
  struct choice {
    const indices *errors;
    std::size_t next, num_tried; ///< num_tried: the size of tried_ before
    double weight;               ///< of the errors that were chosen before
    const error *chosen = nullptr;
  };

  void set(std::string_view key, std::string_view value) {
    const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), max_steps_);
    if (key != "steps" || fault != std::errc{} || end != value.data() + value.size())
      throw std::invalid_argument("setting " + std::string(key) + "=" + std::string(value) +
                                  ": the only one is steps=N, the most steps of a shot");
  }

  void set_weight(std::uint64_t number, double weight) noexcept {
    errors_[number].weight = weight;
    for (const std::uint64_t d : errors_[number].detectors)
      sort(flipping_[d]);
  }

  /// The likeliest first. The numbers decide ties: after a shot with weights of its own the order is that of the model.
  void sort(indices &errors) const noexcept {
    std::ranges::sort(errors, {}, [this](std::uint64_t k) { return std::pair(errors_[k].weight, k); });
  }

  void flip(std::uint64_t d) noexcept {
    remains_[d] = !remains_[d];
    for (const std::uint64_t k : flipping_[d])
      errors_[k].num_remaining += remains_[d] ? 1 : -1;
  }
  void flip(const error &e) noexcept {
    for (const std::uint64_t d : e.detectors)
      flip(d);
  }

  [[nodiscard]] double bound() const noexcept {
    double sum = 0;
    for (std::uint64_t d = 0; d < remains_.size(); ++d) {
      double least = kInfinity;
      if (remains_[d])
        for (const std::uint64_t k : flipping_[d])
          if (const error &e = errors_[k]; !e.is_tried)
            least = std::min(least, e.weight / static_cast<double>(e.num_remaining));
      sum += remains_[d] ? least : 0;
    }
    return sum;
  }

  std::int32_t search(const cudaq_qec_decode_control_t *control) noexcept {
    take_back(0);
    path_.clear();
    best_.clear();
    best_weight_ = kInfinity;
    std::uint64_t steps = 0;
    for (double limit = bound(); best_weight_ == kInfinity; limit = std::max(1.1 * limit, least_above_)) {
      if (limit == kInfinity)
        return CUDAQ_QEC_DECODE_NO_SOLUTION;
      least_above_ = kInfinity;
      for (go_on(0, limit); !path_.empty(); step(limit))
        if (steps++ == max_steps_)
          return best_weight_ < kInfinity ? CUDAQ_QEC_DECODE_OK : CUDAQ_QEC_DECODE_NOT_CONVERGED;
        else if (const std::int32_t status = why_end(control); status != CUDAQ_QEC_DECODE_OK)
          return status;
    }
    return CUDAQ_QEC_DECODE_OK;
  }

  static std::int32_t why_end(const cudaq_qec_decode_control_t *control) noexcept {
    if (control == nullptr)
      return CUDAQ_QEC_DECODE_OK;
    // The constant word is only read.
    if (control->cancel != nullptr &&
        std::atomic_ref(const_cast<std::uint32_t &>(*control->cancel)).load(std::memory_order_relaxed) != 0)
      return CUDAQ_QEC_DECODE_CANCELLED;
    const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch(); // CLOCK_MONOTONIC
    return static_cast<std::uint64_t>(now.count()) < control->deadline_ns ? CUDAQ_QEC_DECODE_OK
                                                                          : CUDAQ_QEC_DECODE_DEADLINE;
  }

  /// Looks at the set of the chosen errors, which has this weight.
  void go_on(double weight, double limit) noexcept {
    const double least = weight + bound();
    if (least > std::min(limit + kRounding, best_weight_ - kRounding)) {
      least_above_ = std::min(least_above_, least);
      return;
    }
    const auto event = std::ranges::find(remains_, 1);
    if (event != remains_.end()) {
      path_.push_back({&flipping_[static_cast<std::size_t>(event - remains_.begin())], 0, tried_.size(), weight});
      return;
    }
    best_weight_ = weight;
    best_.clear();
    for (const choice &c : path_)
      best_.push_back(static_cast<std::uint64_t>(c.chosen - errors_.data()));
    std::ranges::sort(best_);
  }

  /// Takes the next error of the last choice, or takes this choice back if it has no other.
  void step(double limit) noexcept {
    choice &last = path_.back();
    if (last.chosen != nullptr)
      flip(*last.chosen);
    last.chosen = nullptr;
    while (last.next != last.errors->size() && errors_[(*last.errors)[last.next]].is_tried)
      ++last.next;
    if (last.next == last.errors->size()) {
      take_back(last.num_tried);
      path_.pop_back();
      return;
    }
    error &e = errors_[(*last.errors)[last.next++]];
    e.is_tried = true;
    tried_.push_back(&e);
    last.chosen = &e;
    flip(e);
    go_on(last.weight + e.weight, limit);
  }

  void take_back(std::size_t num_tried) noexcept {
    for (; tried_.size() > num_tried; tried_.pop_back())
      tried_.back()->is_tried = false;
  }

  std::uint64_t max_steps_ = 100'000;
  std::vector<error> errors_;
  std::vector<indices> flipping_; ///< for each detector the errors that flip it, the likeliest first
  std::vector<char> remains_;     ///< of each detector: it is an event that the chosen errors do not explain
  std::vector<std::pair<std::uint64_t, double>> replaced_; ///< errors with a weight of the shot, and that of the model
  std::vector<choice> path_;
  std::vector<error *> tried_;
  double least_above_ = kInfinity; ///< of what was left out
  double best_weight_ = kInfinity;
  indices best_;
};

// The functions of the table. No exception leaves them.

std::int32_t create(const cudaq_qec_decoder_model_t *model, void **made, char *error, std::size_t error_size) {
  try {
    if (model->struct_size < sizeof *model)
      throw std::invalid_argument("the library is older than this plug-in");
    *made = new least_weight(*model);
    return CUDAQ_QEC_DECODE_OK;
  } catch (const std::invalid_argument &refusal) {
    std::snprintf(error, error_size, "%s", refusal.what());
    return CUDAQ_QEC_DECODE_NOT_SUPPORTED;
  } catch (const std::exception &failure) { // out of memory
    std::snprintf(error, error_size, "%s", failure.what());
    return CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  }
}

std::int32_t decode_until(void *self, const std::uint64_t *events, std::size_t num_events, std::uint8_t *observables,
                          double *weight, const cudaq_qec_decode_control_t *control) {
  return static_cast<least_weight *>(self)->decode(events, num_events, observables, weight, control);
}

std::int32_t decode(void *self, const std::uint64_t *events, std::size_t num_events, std::uint8_t *observables,
                    double *weight) {
  return decode_until(self, events, num_events, observables, weight, nullptr);
}

void destroy(void *self) { delete static_cast<least_weight *>(self); }

std::size_t columns(void *self, std::uint64_t *columns, std::size_t max) {
  const indices &errors = static_cast<const least_weight *>(self)->correction();
  std::copy_n(errors.begin(), std::min(errors.size(), max), columns);
  return errors.size();
}

std::int32_t replace_probabilities(void *self, const cudaq_qec_error_probability_t *list, std::size_t num_errors) {
  return static_cast<least_weight *>(self)->replace_weights(list, num_errors);
}

} // namespace

const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(std::uint32_t host_version) {
  static constexpr cudaq_qec_decoder_plugin_t kTable{.version = CUDAQ_QEC_DECODER_PLUGIN_VERSION,
                                                     .struct_size = sizeof kTable,
                                                     .name = "least-weight",
                                                     .create = create,
                                                     .decode = decode,
                                                     .destroy = destroy,
                                                     .edges = nullptr,
                                                     .columns = columns,
                                                     .decode_until = decode_until,
                                                     .error_form = CUDAQ_QEC_ERRORS_WHOLE,
                                                     .reserved = 0,
                                                     .replace_probabilities = replace_probabilities};
  return host_version == CUDAQ_QEC_DECODER_PLUGIN_VERSION ? &kTable : nullptr;
}

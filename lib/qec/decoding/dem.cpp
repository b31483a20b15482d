// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/dem_text/dem_program.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

using namespace dem_text;

class unroller {
public:
  unroller(const program &of, const dem_limits &limits, std::size_t loop, std::uint64_t rounds,
           unrolled_detectors *notes)
      : program_(of), limits_(limits), loop_(loop), rounds_(rounds), notes_(notes) {
    model.num_observables = of.num_observables;
    reserve();
  }

  detector_error_model model;

  void run() {
    for (std::size_t at = 0; at < program_.instructions.size(); ++at) {
      const instruction &step = program_.instructions[at];
      if (step.what == kind::end_of_repeat) {
        if (--rounds_left_.back() != 0)
          at = step.other_end;
        else
          leave_loop(step.other_end);
        continue;
      }
      add_checked(instructions_, 1, limits_.instructions, "instructions", step.line);
      add_checked(targets_, step.targets, limits_.targets, "targets", step.line);
      if (step.what != kind::error) // which has a probability
        add_checked(targets_, step.arguments, limits_.targets, "coordinates", step.line);
      switch (step.what) {
      case kind::error:
        if (notes_ == nullptr || !notes_->skips_errors)
          add_error(step);
        break;
      case kind::detector:
        declare(step);
        break;
      case kind::shift:
        if (notes_ != nullptr)
          shift_coordinates(program_.arguments_of(step));
        shift_ = std::min(shift_ + step.number, kMaxNumber); // refused when a detector is named after it
        break;
      case kind::repeat:
        at = enter_loop(step, at);
        break;
      case kind::observable:
      case kind::end_of_repeat:
        break;
      }
    }
  }

private:
  /// Room for the whole model, so that it is not copied while it grows. What is not used costs no memory.
  void reserve() {
    constexpr std::uint64_t kMax = std::uint64_t{1} << 22; // a larger model grows
    const auto product = [](std::uint64_t a, std::uint64_t b) { return b != 0 && a > kMax / b ? kMax : a * b; };
    std::uint64_t times = 1, errors = 0, targets = 0;
    std::vector<std::uint64_t> outer;
    for (std::size_t at = 0; at < program_.instructions.size(); ++at) {
      const instruction &step = program_.instructions[at];
      if (step.what == kind::repeat) {
        outer.push_back(times);
        times = product(times, at == loop_ ? rounds_ : step.number);
      } else if (step.what == kind::end_of_repeat) {
        times = outer.back();
        outer.pop_back();
      } else if (step.what == kind::error) {
        errors += times;
        targets += product(times, step.targets);
      }
    }
    model.components.reserve(std::min(2 * errors, kMax)); // Stim's decomposed errors have fewer than two
    model.targets.reserve(std::min(targets, kMax));
  }

  /// Returns the instruction after which the program goes on.
  std::size_t enter_loop(const instruction &loop, std::size_t at) {
    const std::uint64_t rounds = at == loop_ ? rounds_ : loop.number;
    if (at == loop_ && notes_ != nullptr) {
      notes_->declared_before = notes_->declared_after = declared_;
      notes_->shift_before = notes_->shift_after = shift_;
      notes_->errors_before = mechanism_;
    }
    // Counted in one step: a huge loop without instructions must not run.
    add_checked(instructions_, rounds, limits_.instructions, "instructions", loop.line);
    if (rounds == 0)
      return loop.other_end;
    rounds_left_.push_back(rounds);
    return at;
  }

  void leave_loop(std::size_t begin) {
    rounds_left_.pop_back();
    if (begin == loop_ && notes_ != nullptr) {
      notes_->declared_after = declared_;
      notes_->shift_after = shift_;
    }
  }

  void declare(const instruction &detector) {
    const std::uint64_t index = absolute(program_.targets_of(detector)[0].index, detector.line);
    declared_ = std::max(declared_, index + 1);
    const auto coordinates = program_.arguments_of(detector);
    if (notes_ == nullptr || coordinates.empty())
      return;
    if (notes_->wants_coordinates)
      note_coordinates(index, coordinates);
    if (notes_->time.size() <= index)
      notes_->time.resize(index + 1, std::numeric_limits<double>::quiet_NaN());
    const std::size_t last = coordinates.size() - 1;
    notes_->time[index] = coordinates[last] + (last < coordinate_shift_.size() ? coordinate_shift_[last] : 0);
  }

  void note_coordinates(std::uint64_t index, std::span<const double> coordinates) {
    if (notes_->coordinates.size() <= index)
      notes_->coordinates.resize(index + 1);
    std::vector<double> &noted = notes_->coordinates[index];
    noted.assign(coordinates.begin(), coordinates.end());
    for (std::size_t k = 0; k < std::min(noted.size(), coordinate_shift_.size()); ++k)
      noted[k] += coordinate_shift_[k];
  }

  void shift_coordinates(std::span<const double> by) {
    coordinate_shift_.resize(std::max(coordinate_shift_.size(), by.size()));
    for (std::size_t k = 0; k < by.size(); ++k)
      coordinate_shift_[k] += by[k];
  }

  static void add_checked(std::uint64_t &sum, std::uint64_t by, std::uint64_t limit, const char *of_what,
                          std::uint64_t line) {
    if (by > limit - sum)
      throw dem_error(line, std::string("the model has too many ") + of_what + " when unrolled");
    sum += by;
  }

  /// The absolute index of a detector; grows the model to hold it.
  std::uint64_t absolute(std::uint64_t relative, std::uint64_t line) {
    const std::uint64_t index = relative + shift_;
    if (index >= limits_.detectors)
      throw dem_error(line, "the index of D" + std::to_string(index) + " is too large: a shot has at most " +
                                std::to_string(limits_.detectors) +
                                " detectors; a model with a loop decodes as a stream of any length (decode --stream)");
    model.num_detectors = std::max(model.num_detectors, index + 1);
    return index;
  }

  void add_error(const instruction &error) {
    for (const target &t : program_.targets_of(error))
      if (t.what == target_kind::separator)
        add_component(error);
      else if (t.what == target_kind::detector)
        detectors_.push_back(absolute(t.index, error.line));
      else
        observables_.push_back(t.index);
    add_component(error);
    model.num_errors = ++mechanism_;
  }

  /// Sorts the indices and removes pairs: a target that is flipped twice is not flipped.
  static void cancel(std::vector<std::uint64_t> &indices) {
    if (indices.size() < 2)
      return;
    std::sort(indices.begin(), indices.end());
    auto kept = indices.begin();
    for (auto at = indices.begin(); at != indices.end();) {
      const auto next = std::find_if(at, indices.end(), [at](std::uint64_t index) { return index != *at; });
      if ((next - at) % 2 != 0)
        *kept++ = *at;
      at = next;
    }
    indices.erase(kept, indices.end());
  }

  /// Of the targets since the last `^`.
  void add_component(const instruction &error) {
    if (error.probability > 0) {
      cancel(detectors_);
      cancel(observables_);
    }
    if (error.probability > 0 && detectors_.size() + observables_.size() != 0)
      model.add({error.probability, error.line, 0, 0, 0, mechanism_}, detectors_, observables_);
    detectors_.clear();
    observables_.clear();
  }

  const program &program_;
  const dem_limits limits_;
  const std::size_t loop_;
  const std::uint64_t rounds_;
  unrolled_detectors *const notes_;
  std::uint64_t declared_ = 0;
  std::vector<double> coordinate_shift_;
  std::vector<std::uint64_t> rounds_left_; // of the loops that are running, the innermost last
  std::uint64_t shift_ = 0;
  std::uint64_t instructions_ = 0;
  std::uint64_t targets_ = 0;
  std::uint32_t mechanism_ = 0;
  std::vector<std::uint64_t> detectors_;
  std::vector<std::uint64_t> observables_;
};

} // namespace

detector_error_model dem_text::unroll(const program &of, const dem_limits &limits, std::size_t loop,
                                      std::uint64_t rounds, unrolled_detectors *notes) {
  unroller unrolled(of, limits, loop, rounds, notes);
  unrolled.run();
  if (notes != nullptr)
    notes->time.resize(unrolled.model.num_detectors, std::numeric_limits<double>::quiet_NaN());
  if (notes != nullptr && notes->wants_coordinates)
    notes->coordinates.resize(unrolled.model.num_detectors);
  return std::move(unrolled.model);
}

expected<detector_error_model> parse_dem(std::string_view text, const dem_limits &limits) {
  return or_reason([&] { return unroll(read_program(text, limits), limits); });
}

std::uint64_t model_digest(const detector_error_model &model) noexcept {
  // The finalizer of SplitMix64: each bit of the sum changes about half of the bits.
  const auto mixed = [](std::uint64_t state, std::uint64_t word) {
    state = (state + word + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
    return (state ^ state >> 29) * 0x94d049bb133111eb;
  };
  std::uint64_t errors = 0; // a sum, so that the order of the errors does not count
  for (const dem_component &c : model.components) {
    std::uint64_t error = mixed(c.detectors, std::bit_cast<std::uint64_t>(c.probability));
    for (const std::uint64_t target : model.detectors_of(c))
      error = mixed(error, target);
    for (const std::uint64_t target : model.observables_of(c))
      error = mixed(error, target);
    errors += error ^ error >> 32;
  }
  const std::uint64_t whole = mixed(mixed(mixed(0, model.num_detectors), model.num_observables), errors);
  return whole ^ whole >> 32;
}

double log_odds(double probability) noexcept {
  const double odds = (1 - probability) / probability;
  return std::isfinite(odds) ? std::log(odds) : -std::log(probability);
}

double merged_probability(double p, double q) noexcept { return p * (1 - q) + q * (1 - p); }

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/dem_text/dem_program.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

namespace cudaq::qec::realtime {
namespace {

using namespace dem_text;

class unroller {
public:
  unroller(const program &of, const dem_limits &limits) : program_(of), limits_(limits) {
    model.num_observables = of.num_observables;
  }

  detector_error_model model;

  void run() {
    for (std::size_t at = 0; at < program_.instructions.size(); ++at) {
      const instruction &step = program_.instructions[at];
      if (step.what == kind::end_of_repeat) {
        if (--rounds_left_.back() != 0)
          at = step.other_end;
        else
          rounds_left_.pop_back();
        continue;
      }
      take(instructions_, 1, limits_.instructions, "instructions", step.line);
      take(targets_, step.targets, limits_.targets, "targets", step.line);
      switch (step.what) {
      case kind::error:
        add_error(step);
        break;
      case kind::detector:
        absolute(program_.targets_of(step)[0].index, step.line);
        break;
      case kind::shift:
        shift_ = std::min(shift_ + step.number, kMaxNumber); // refused when a detector is named after it
        break;
      case kind::repeat:
        // Counted in one step: a huge loop without instructions must not run.
        take(instructions_, step.number, limits_.instructions, "instructions", step.line);
        if (step.number == 0)
          at = step.other_end;
        else
          rounds_left_.push_back(step.number);
        break;
      case kind::observable:
      case kind::end_of_repeat:
        break;
      }
    }
  }

private:
  static void take(std::uint64_t &count, std::uint64_t by, std::uint64_t limit, const char *of_what,
                   std::uint64_t line) {
    if (by > limit - count)
      throw dem_error(line, std::string("the model has too many ") + of_what + " when unrolled");
    count += by;
  }

  /// The absolute index of a detector; grows the model to hold it.
  std::uint64_t absolute(std::uint64_t relative, std::uint64_t line) {
    const std::uint64_t index = relative + shift_;
    if (index >= limits_.detectors)
      throw dem_error(line, "the index of D" + std::to_string(index) + " is too large");
    model.num_detectors = std::max(model.num_detectors, index + 1);
    return index;
  }

  void add_error(const instruction &error) {
    for (const target &t : program_.targets_of(error))
      if (t.prefix == '^')
        add_component(error);
      else if (t.prefix == 'D')
        detectors_.push_back(absolute(t.index, error.line));
      else
        observables_.push_back(t.index);
    add_component(error);
    ++mechanism_;
  }

  /// Sorts the indices and removes pairs: a target that is flipped twice is not flipped.
  static void cancel(std::vector<std::uint64_t> &indices) {
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
    if (error.probability > 0 && detectors_.size() + observables_.size() != 0) {
      model.components.push_back({error.probability, error.line, model.targets.size(),
                                  static_cast<std::uint32_t>(detectors_.size()),
                                  static_cast<std::uint32_t>(observables_.size()), mechanism_});
      model.targets.insert(model.targets.end(), detectors_.begin(), detectors_.end());
      model.targets.insert(model.targets.end(), observables_.begin(), observables_.end());
    }
    detectors_.clear();
    observables_.clear();
  }

  const program &program_;
  const dem_limits limits_;
  std::vector<std::uint64_t> rounds_left_; // of the loops that are running, the innermost last
  std::uint64_t shift_ = 0;
  std::uint64_t instructions_ = 0;
  std::uint64_t targets_ = 0;
  std::uint32_t mechanism_ = 0;
  std::vector<std::uint64_t> detectors_;
  std::vector<std::uint64_t> observables_;
};

} // namespace

expected<detector_error_model> parse_dem(std::string_view text, const dem_limits &limits) {
  try {
    const program parsed = read_program(text, limits);
    unroller unrolled(parsed, limits);
    unrolled.run();
    return std::move(unrolled.model);
  } catch (const dem_error &failure) {
    return reason(failure.what());
  } catch (const std::exception &failure) {
    return reason(std::string("the model does not fit into memory: ") + failure.what());
  }
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

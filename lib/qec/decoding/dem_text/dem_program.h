// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/dem.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// The text of a detector error model as instructions, loops not unrolled. Inside the parser only.
namespace cudaq::qec::realtime::dem_text {

constexpr std::uint64_t kMaxNumber = std::uint64_t{1} << 60; ///< every number is below it, as in Stim

enum class kind { error, detector, observable, shift, repeat, end_of_repeat };

enum class target_kind : std::uint64_t { detector, observable, separator };

/// One word, since a text has more targets than anything else.
struct target {
  target(target_kind kind, std::uint64_t number) : what(kind), index(number & (kMaxNumber - 1)) {}
  target_kind what : 4;
  std::uint64_t index : 60;
};
static_assert(sizeof(target) == 8 && kMaxNumber == std::uint64_t{1} << 60);

struct instruction {
  kind what;
  std::uint64_t line = 0;
  double probability = 0;
  std::uint64_t number = 0;  // of shift_detectors and repeat
  std::size_t other_end = 0; // of a loop: the index of its repeat, or of its end
  std::size_t first_target = 0;
  std::size_t targets = 0;
  std::size_t first_argument = 0;
  std::size_t arguments = 0; // coordinates of a detector, or their shift
};

/// A model's text as one list, without nesting: a text may nest deeper than a stack can hold.
struct program {
  std::vector<instruction> instructions;
  std::vector<target> targets;
  std::vector<double> arguments;
  std::uint64_t num_observables = 0; ///< Stim counts those of loops that run 0 times, too

  std::span<const target> targets_of(const instruction &of) const {
    return std::span(targets).subspan(of.first_target, of.targets);
  }
  std::span<const double> arguments_of(const instruction &of) const {
    return std::span(arguments).subspan(of.first_argument, of.arguments);
  }
};

/// Thrown inside the parser only; or_reason turns it into an error text.
struct dem_error : std::runtime_error {
  dem_error(std::uint64_t line, const std::string &text)
      : std::runtime_error("line " + std::to_string(line) + ": " + text) {}
};

template <class T>
struct result_of {
  using type = expected<T>;
};
template <class T>
struct result_of<expected<T>> {
  using type = expected<T>;
};
/// What `make` returns, or the reason of what it throws: the end of the parser for its callers.
template <class Make>
typename result_of<std::invoke_result_t<Make>>::type or_reason(const Make &make) {
  try {
    return make();
  } catch (const dem_error &failure) {
    return reason(failure.what());
  } catch (const std::exception &failure) {
    return reason(std::string("the model does not fit into memory: ") + failure.what());
  }
}

/// Reads a whole text; time and memory are linear in it. Throws dem_error. Of the limits, it checks observables and
/// nesting.
program read_program(std::string_view text, const dem_limits &limits);

/// What unroll() notes beside the model.
struct unrolled_detectors {
  /// For each detector the last coordinate of its declaration with all shifts; NaN: it has none.
  std::vector<double> time;
  /// Set by the caller: all coordinates are noted, too.
  bool wants_coordinates = false;
  /// Set by the caller who has the errors: the model that unroll() returns lacks them, and what only they name.
  bool skips_errors = false;
  std::vector<std::vector<double>> coordinates; ///< of each detector; of several declarations the last one
  /// One more than the highest detector that is declared, and the shift of detectors, where the counted loop begins
  /// and where it ends.
  std::uint64_t declared_before = 0, declared_after = 0, shift_before = 0, shift_after = 0;
  std::uint64_t errors_before = 0; ///< error instructions before the counted loop
};

/// The model with its loops unrolled. `loop`: the instruction index of a repeat that runs `rounds` times instead of as
/// often as the text says; SIZE_MAX: none. Throws dem_error.
detector_error_model unroll(const program &of, const dem_limits &limits, std::size_t loop = SIZE_MAX,
                            std::uint64_t rounds = 0, unrolled_detectors *notes = nullptr);

} // namespace cudaq::qec::realtime::dem_text

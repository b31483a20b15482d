// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/decoder_model.h"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// How detectors are put into rounds.
struct round_rule {
  std::uint64_t detectors = 0; ///< of each round, by index; 0: the last coordinate, with all shifts, is the round
  /// "time" or "index:N".
  static expected<round_rule> parse(std::string_view text);
};

/// Where an error or a detector of a model with a loop is. Part 0 is the head, 1 the first repetition, ..., the last
/// one the tail.
struct model_place {
  std::uint64_t part, within;
};
/// `head`, `body`: errors, or detectors, of these parts.
constexpr model_place place_in_model(std::uint64_t number, std::uint64_t head, std::uint64_t body,
                                     std::uint64_t repetitions) noexcept {
  if (number < head)
    return {0, number};
  const std::uint64_t in_body = number - head;
  if (body != 0 && in_body < body * repetitions)
    return {1 + in_body / body, in_body % body};
  return {1 + repetitions, in_body - body * repetitions};
}

/// A detector error model whose longest outer loop repeats for as long as a stream lasts: a head (what comes before
/// the loop), a body (the loop, once), and a tail. Other loops run as often as the text says. The memory depends on the
/// text only, not on the number of repetitions.
///
/// A round is a set of successive detectors: those of one value of the last coordinate, or a fixed number of them.
/// Head, body and tail have whole rounds.
class repeating_model {
public:
  /// Refused: an empty text; no loop; a body that moves no detectors; detectors without a coordinate, or not in the
  /// order of rounds.
  static expected<repeating_model> of(const decoder_model &model, round_rule rule, const dem_limits &limits = {});

  /// The whole model with this number of repetitions. `notes`: what unroll() notes; null: nothing.
  [[nodiscard]] expected<detector_error_model> unrolled(std::uint64_t repetitions,
                                                        dem_text::unrolled_detectors *notes = nullptr) const;

  /// Detectors of each round.
  [[nodiscard]] const std::vector<std::uint64_t> &head() const noexcept { return head_; }
  [[nodiscard]] const std::vector<std::uint64_t> &body() const noexcept { return body_; }
  [[nodiscard]] const std::vector<std::uint64_t> &tail() const noexcept { return tail_; }
  /// Sums of these.
  [[nodiscard]] std::uint64_t head_detectors() const noexcept { return head_ends_.back(); }
  [[nodiscard]] std::uint64_t body_detectors() const noexcept { return body_ends_.back(); }
  [[nodiscard]] std::uint64_t tail_detectors() const noexcept { return tail_ends_.back(); }
  /// Error instructions of the head, and of a repetition.
  [[nodiscard]] std::uint64_t head_errors() const noexcept { return head_errors_; }
  [[nodiscard]] std::uint64_t body_errors() const noexcept { return body_errors_; }
  /// The loop's number in the text.
  [[nodiscard]] std::uint64_t repetitions() const noexcept { return program_->instructions[loop_].number; }
  [[nodiscard]] std::uint64_t num_observables() const noexcept { return program_->num_observables; }
  /// The most rounds between two detectors of one error, plus 1.
  [[nodiscard]] std::uint64_t reach() const noexcept { return reach_; }

  /// The first detector of a round of the endless stream (head, then bodies), and of its next one.
  [[nodiscard]] std::uint64_t first_detector(std::uint64_t round) const noexcept;
  /// The round of a detector of the endless stream.
  [[nodiscard]] std::uint64_t round_of(std::uint64_t detector) const noexcept;
  /// For each detector of an unrolled model with this number of repetitions: its round.
  [[nodiscard]] std::vector<std::uint64_t> rounds(std::uint64_t repetitions) const;

private:
  repeating_model() = default;
  expected<> find_rounds(round_rule rule);
  expected<> find_reach();

  std::shared_ptr<const dem_text::program> program_; ///< as it is in the model
  dem_limits limits_;
  std::size_t loop_ = 0;
  std::vector<std::uint64_t> head_, body_, tail_;
  std::vector<std::uint64_t> head_ends_, body_ends_,
      tail_ends_; ///< sums of the sizes: entry k has those of the first k rounds
  std::uint64_t head_errors_ = 0, body_errors_ = 0;
  std::uint64_t reach_ = 0;
};

} // namespace cudaq::qec::realtime

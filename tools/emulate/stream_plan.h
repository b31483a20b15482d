// SPDX-License-Identifier: Apache-2.0
// An endless experiment as a plan: its rounds, the windows that make them final, and the frames that must come.
#pragma once

#include "lib/qec/server/session/wire_requests.h"
#include "lib/qec/stream/stream_factory.h"
#include "lib/qec/stream/window_set.h"
#include "tools/shots/drawn_values.h"
#include "tools/shots/experiment_rounds.h"
#include "tools/shots/own_data.h"
#include "tools/shots/recorded_readout.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// Frames of the server: the corrections of the first rounds, for several numbers of rounds, ascending.
struct stream_frames {
  std::vector<std::uint64_t> committed;
  std::vector<std::uint8_t> bits; ///< of each, frame_bytes() bytes
};

/// What a comparison found.
struct frame_check {
  std::uint64_t wrong = 0;         ///< frames that are not those of the own decoder
  std::uint64_t other_windows = 0; ///< frames for a number of rounds at which no window of the own decoder ends
  bool too_slow = false;           ///< nothing is known: the decoder took longer than it may
  bool has_solutions = false;      ///< the own decoder has an answer to each window that was checked
  bool logical_error = false;      ///< of a whole experiment, if that is known: the last frame is not what the errors
                                   ///< have flipped
};

class stream_plan {
public:
  /// `decoder`: a name such as sliding-window:inner=pymatching,commit=5; it must be the server's. `workers`: threads
  /// that decode here; as with the server's stream_workers, from 2 on windows are parallel if the name has no mode.
  /// `rounds`: at least those of the head, one repetition and the tail; else the next number that ends with a whole
  /// repetition. `check_limit`: of one check, and less for a window; none for a decoder that the user has named.
  /// `readout`: a table that is not "": rounds come with soft values and flags. Rounds and values are drawn; with
  /// `record.in` they are those of its files, and so is their number. Throws usage_error with the reason.
  stream_plan(const std::string &dem_text, const std::string &decoder, std::size_t workers, std::uint64_t rounds,
              std::uint64_t seed, std::chrono::nanoseconds check_limit = std::chrono::nanoseconds::max(),
              const readout_files &readout = {}, const own_data &record = {});

  [[nodiscard]] std::uint64_t rounds() const noexcept { return rounds_->rounds(); }
  [[nodiscard]] std::uint64_t rounds_before_tail() const noexcept { return rounds_->rounds_before_tail(); }
  /// A window makes `commit` rounds final; it needs `buffer` rounds after them.
  [[nodiscard]] std::uint64_t commit() const noexcept { return commit_; }
  [[nodiscard]] std::uint64_t buffer() const noexcept { return buffer_; }
  /// The rounds that are final when `pushed` rounds of head and repetitions have come.
  [[nodiscard]] std::uint64_t final_after(std::uint64_t pushed) const noexcept {
    return qec::window_layout{commit_, buffer_, reference_->is_parallel()}.complete(pushed) * commit_;
  }
  [[nodiscard]] std::uint64_t max_round_bits() const noexcept { return max_round_bits_; }
  [[nodiscard]] std::uint64_t num_observables() const noexcept { return facts_.observables; }
  [[nodiscard]] std::size_t frame_bytes() const noexcept {
    return static_cast<std::size_t>((facts_.observables + 7) / 8);
  }
  /// What each repetition has. If it has any, rounds come with values and flags.
  [[nodiscard]] const qec::readout_facts &readout() const noexcept { return readout_; }
  [[nodiscard]] qec::soft_kind kind() const noexcept { return kind_; } ///< of their values
  /// The values and flags that must be sent with the first `bits` bits before the tail: those of all repetitions that
  /// these are in, those of head and tail, whose numbers are known together, and what windows need.
  [[nodiscard]] qec::readout_place values_with(std::uint64_t bits) const noexcept;
  /// Bytes of so many values and flags, each array from a whole byte on.
  [[nodiscard]] std::uint64_t bytes_of(qec::readout_place values) const noexcept;
  /// Adds the values and flags [from, to) of the present experiment.
  void append_values(qec::readout_place from, qec::readout_place to, std::vector<std::uint8_t> &bytes) const;
  /// Whether it is known what the errors of an experiment have flipped.
  [[nodiscard]] bool knows_observables() const noexcept { return !rounds_->observables().empty(); }
  /// What describe_decoder must answer.
  [[nodiscard]] const qec::model_facts &facts() const noexcept { return facts_; }
  [[nodiscard]] const std::string &description() const noexcept { return reference_->description(); }

  /// The rounds of experiment k, one after another.
  [[nodiscard]] experiment_rounds &begin(std::uint64_t k);
  /// Makes the rounds of experiment k once more, as far as the last of the frames needs it, decodes them, and compares.
  /// `unsolved_after`: the server says that a window of these first rounds has no solution; they are decoded, too.
  [[nodiscard]] frame_check check(std::uint64_t k, const stream_frames &frames,
                                  std::optional<std::uint64_t> unsolved_after = {});

private:
  /// Decodes a round here, with its values.
  [[nodiscard]] qec::decode_status push_round(std::span<const std::uint8_t> bits);
  [[nodiscard]] bool has_limit() const noexcept { return check_limit_ != std::chrono::nanoseconds::max(); }
  /// The check that began at this time has reached its limit, or a window of it.
  [[nodiscard]] bool is_too_slow(std::chrono::steady_clock::time_point begun) const;

  const std::uint64_t seed_;
  const std::chrono::nanoseconds check_limit_;
  std::unique_ptr<qec::stream_source> source_;
  std::unique_ptr<qec::stream_decoder> reference_;
  std::optional<drawn_values> values_;
  std::unique_ptr<experiment_rounds> rounds_;
  std::vector<std::uint8_t> packed_, soft_, flags_; ///< of the round that is decoded here
  qec::readout_place pushed_values_;                ///< of the reference
  qec::soft_kind kind_;
  qec::readout_facts readout_;
  qec::model_facts facts_;
  std::uint64_t commit_ = 0, buffer_ = 0, max_round_bits_ = 0;
};

} // namespace cudaq::realtime::tools

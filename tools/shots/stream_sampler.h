// SPDX-License-Identifier: Apache-2.0
// Rounds of an endless experiment, sampled one after another.
#pragma once

#include "lib/qec/decoding/model_sampler.h"
#include "lib/qec/stream/repeating_model.h"
#include "tools/shots/drawn_values.h"
#include "tools/shots/experiment_rounds.h"

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace cudaq::realtime::tools {

namespace qec = cudaq::qec::realtime;

/// The least number of repetitions, at least 1, with which an experiment has `rounds` rounds or more, those of head and
/// tail included.
std::uint64_t repetitions_for(const qec::repeating_model &model, std::uint64_t rounds);

/// Samples the errors of a model with a loop: those of the head, of each repetition, and of the tail, each with its
/// probability. The memory depends on the model only, not on the repetitions. One thread at a time.
///
/// An error of a repetition flips detectors of its neighbours, too. So a round is complete only when no later part can
/// flip its detectors; until then its bits are kept in a ring.
///
/// With values of a readout the errors that it names happen as often as values and flags of the experiment say.
class stream_sampler final : public experiment_rounds {
public:
  /// `repetitions`: at least 1. `values`: null, or those of the experiments. Both must outlive the sampler. Throws
  /// usage_error if the model cannot be unrolled.
  stream_sampler(const qec::repeating_model &model, std::uint64_t repetitions, drawn_values *values = nullptr);

  void begin(std::uint64_t seed, std::uint64_t k) override;
  [[nodiscard]] std::span<const std::uint8_t> next_round() override;
  [[nodiscard]] std::span<const std::uint8_t> observables() const noexcept override { return observables_; }
  [[nodiscard]] std::uint64_t rounds() const noexcept override { return before_tail_ + model_.tail().size(); }
  [[nodiscard]] std::uint64_t rounds_before_tail() const noexcept override { return before_tail_; }
  /// Only with values.
  void append_soft(std::uint64_t from, std::uint64_t to, std::vector<std::uint8_t> &bytes) const override {
    values_->append(from, to, bytes);
  }
  void append_flags(std::uint64_t from, std::uint64_t to, std::vector<std::uint8_t> &bytes) const override {
    values_->append_flags(from, to, bytes);
  }

private:
  /// An error whose probability values and flags say.
  struct read_error {
    double rest;
    std::vector<qec::read_errors::reading> readings; ///< of the first repetition, or of an experiment with one
    std::vector<qec::read_errors::listing> listings; ///< likewise
    std::vector<std::uint64_t> detectors, observables;
  };
  /// The errors of one part of the model with one repetition.
  struct part {
    qec::model_sampler sampler; ///< of all but those that are read
    std::vector<read_error> read;
    std::uint64_t lowest; ///< detector that they flip; UINT64_MAX: none
  };
  static part part_of(const qec::detector_error_model &whole, std::size_t begin, std::size_t end,
                      std::uint64_t first_error, const qec::read_errors &read);
  void sample_next();
  [[nodiscard]] std::uint64_t complete() const noexcept;
  std::uint8_t &bit(std::uint64_t detector) noexcept { return ring_[detector & (ring_.size() - 1)]; }

  const qec::repeating_model &model_;
  const std::uint64_t repetitions_, before_tail_;
  drawn_values *const values_; ///< may be null
  std::vector<part> parts_;    ///< head, repetition, tail
  std::vector<std::uint8_t> shot_, observables_, ring_, round_;
  std::mt19937_64 random_;
  std::uint64_t next_round_ = 0, next_detector_ = 0;
  std::uint64_t sampled_ = 0; ///< parts: the head, repetitions, the tail
};

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// The recorded shots of a decoding configuration, or own shots. They are decoded offline before a ring exists. The
// result: the answers that the pipeline must give, and the logical errors with and without the predecoder.
#pragma once

#include "lib/qec/stages/decoding_worker.h"
#include "tools/shots/config_shots.h"
#include "tools/shots/own_data.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

class pipeline_shots {
public:
  /// engine: "local", "passthrough", "model=FILE", or "auto".
  pipeline_shots(qec::shot_set shots, std::string engine, std::string decoder, std::uint64_t seed);
  /// Called once, before the functions of answers. first: the engine, if it is not that of the CPU. Throws usage_error
  /// if a shot cannot be decoded (one that the decoder leaves without an answer is counted), if the model does not suit
  /// the engine or the decoder, or if the engine does not run before the decoder.
  void decode_offline(std::unique_ptr<qec::predecoder> first = nullptr);

  /// Makes a worker: an engine, or none, and a matcher. Each thread needs a worker of its own.
  [[nodiscard]] std::unique_ptr<qec::decoding_worker> make_worker(bool with_engine) const {
    return make_worker(with_engine ? engine_ : "passthrough", nullptr, nullptr);
  }

  [[nodiscard]] const qec::shot_set &shots() const noexcept { return shots_; }
  [[nodiscard]] std::uint32_t shot_of(std::uint64_t request) const noexcept {
    return order_[static_cast<std::size_t>(request % order_.size())];
  }
  /// The expected response to a shot, without the RPC header.
  [[nodiscard]] std::span<const std::uint8_t> expected(std::uint32_t shot) const noexcept {
    return std::span(expected_).subspan(shot * response_bytes_, response_bytes_);
  }
  [[nodiscard]] std::size_t response_bytes() const noexcept { return response_bytes_; }
  /// The status of that response: ok; not_converged or deadline, then it has no answer that counts.
  [[nodiscard]] qec::decode_status expected_status(std::uint32_t shot) const noexcept { return statuses_[shot]; }
  /// Shots that the offline decode has left without an answer; the matcher alone.
  [[nodiscard]] const unanswered_shots &offline_unanswered() const noexcept { return unanswered_; }
  [[nodiscard]] const unanswered_shots &unanswered_alone() const noexcept { return unanswered_alone_; }
  [[nodiscard]] const std::string &decoder_name() const noexcept { return decoder_name_; }
  /// Shots whose offline answer differs from the set's prediction; 0 without predictions.
  [[nodiscard]] std::uint64_t prediction_differences() const noexcept { return prediction_differences_; }
  [[nodiscard]] const paired_errors &errors() const noexcept { return errors_; }
  [[nodiscard]] double events_per_shot() const noexcept { return per_shot(input_events_); }
  [[nodiscard]] double residual_per_shot() const noexcept { return per_shot(residual_events_); }
  [[nodiscard]] double offline_ns_per_shot() const noexcept { return per_shot(offline_ns_); }
  [[nodiscard]] double matcher_ns_per_shot() const noexcept { return per_shot(matcher_ns_); }
  [[nodiscard]] const std::string &engine() const noexcept { return engine_; }
  /// Why "auto" has chosen the engine; empty without "auto".
  [[nodiscard]] const std::string &choice() const noexcept { return choice_; }
  /// Why "auto" took this decoder and not its first choice; empty otherwise.
  [[nodiscard]] const std::string &decoder_choice() const noexcept { return decoder_choice_; }

private:
  /// `why`: null, or set to what choose_decoder says of `auto`. first: the engine, or null: one on the CPU is made.
  std::unique_ptr<qec::decoding_worker> make_worker(const std::string &engine, std::string *why,
                                                    std::unique_ptr<qec::predecoder> first) const;
  double per_shot(std::uint64_t sum) const noexcept {
    return static_cast<double>(sum) / static_cast<double>(shots_.shots);
  }

  qec::shot_set shots_;
  std::string engine_, decoder_, decoder_name_, choice_, decoder_choice_;
  std::vector<std::uint32_t> order_;
  std::size_t response_bytes_ = 0;
  std::vector<std::uint8_t> expected_;
  std::vector<qec::decode_status> statuses_; ///< for each shot
  unanswered_shots unanswered_, unanswered_alone_;
  paired_errors errors_;
  std::uint64_t prediction_differences_ = 0;
  std::uint64_t input_events_ = 0, residual_events_ = 0, offline_ns_ = 0, matcher_ns_ = 0;
};

} // namespace cudaq::realtime::tools

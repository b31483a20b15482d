// SPDX-License-Identifier: Apache-2.0
// The recorded shot of each request, and its right answer.
#pragma once

#include "tools/common/report.h"
#include "tools/services/decode_service.h"
#include "tools/shots/config_shots.h"
#include "tools/shots/own_data.h"
#include "tools/shots/recorded_readout.h"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// The order of the shots, and the expected answers. The set is repeated in file order (seed 0), or in one random
/// order.
class shot_plan {
public:
  /// `readout`: null, or what the readout of these shots says; both must outlive the plan.
  shot_plan(const qec::shot_set &shots, std::uint64_t seed, const recorded_readout *readout = nullptr);

  /// Decodes every shot of the set with `service` on this thread, before a ring exists. With `use_offline` these
  /// answers become the expected answers: for a decoder that may break ties in another way than PyMatching, or for a
  /// set without predictions. Otherwise the expected answers are the set's predictions. A shot that the decoder leaves
  /// without an answer has none to expect. Throws usage_error if a shot cannot be decoded.
  void decode_offline(decode_service &service, bool use_offline);

  [[nodiscard]] const qec::shot_set &shots() const noexcept { return shots_; }
  [[nodiscard]] const recorded_readout *readout() const noexcept { return readout_; }
  /// The expected answers of the first `count` requests become those of `service`, decoded on this thread. A
  /// shot that it cannot decode has none: expected_status. False: it took longer than `limit`, or a decode reached its
  /// deadline; then nothing has changed. Throws usage_error if there is a readout that the decoder, or its table, does
  /// not take.
  bool expect_answers_of(decode_service &service, std::uint64_t count,
                         std::chrono::nanoseconds limit = std::chrono::nanoseconds::max());
  /// The logical errors of `service` on the shots of the first `count` requests, each once, without what the readout
  /// says; a shot without an answer is one. It needs observables.
  [[nodiscard]] error_rate errors_without_readout(decode_service &service, std::uint64_t count) const;
  /// Shot of request `sequence`.
  [[nodiscard]] std::uint32_t shot_of(std::uint64_t sequence) const noexcept {
    return order_[static_cast<std::size_t>(sequence % order_.size())];
  }
  [[nodiscard]] std::span<const std::uint8_t> expected_row(std::uint32_t shot) const noexcept {
    return std::span(expected_).subspan(shot * shots_.observable_bytes(), shots_.observable_bytes());
  }
  /// The status of the offline decode of a shot: after decode_offline ok, not_converged or deadline.
  [[nodiscard]] qec::decode_status expected_status(std::uint32_t shot) const noexcept {
    return statuses_.empty() ? qec::decode_status::ok : statuses_[shot];
  }
  /// Shots that the offline decode has left without an answer.
  [[nodiscard]] const unanswered_shots &offline_unanswered() const noexcept { return offline_unanswered_; }
  /// True if the expected answers come from the offline decode.
  [[nodiscard]] bool expects_offline() const noexcept { return expects_offline_; }
  /// Who made the set's predictions: those of a named set are PyMatching's.
  [[nodiscard]] const char *predictions_name() const noexcept {
    return shots_.distance != 0 ? "PyMatching's published predictions" : "the given predictions";
  }
  [[nodiscard]] const char *predictions_json_name() const noexcept {
    return shots_.distance != 0 ? "PyMatching published" : "given predictions";
  }
  /// Of the offline decode: number of answers that differ from the set's prediction, and time per shot.
  [[nodiscard]] std::uint64_t offline_differences() const noexcept { return offline_differences_; }
  [[nodiscard]] double offline_ns_per_shot() const noexcept { return offline_ns_per_shot_; }
  /// Of the offline decode: logical errors on each shot of the set once, of the decoder and of a reference. The
  /// reference is the set's predictions, else the decoder pymatching where it takes the model. No shots: there is no
  /// reference, or no true observables.
  [[nodiscard]] const paired_errors &reference_errors() const noexcept { return reference_errors_; }
  [[nodiscard]] const char *reference_name() const noexcept {
    return shots_.has_predictions() ? predictions_name() : "pymatching";
  }

private:
  void compare_with_reference(const std::string &decoder_name, std::span<const std::uint8_t> answers);

  const qec::shot_set &shots_;
  const recorded_readout *readout_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint8_t> expected_;
  std::vector<qec::decode_status> statuses_; ///< of the offline decode, for each shot
  unanswered_shots offline_unanswered_;
  bool expects_offline_ = false;
  std::uint64_t offline_differences_ = 0;
  double offline_ns_per_shot_ = 0;
  paired_errors reference_errors_;
};

/// Folder of the recorded shots: `given` if it is not empty. Otherwise the first of these that holds shots:
/// $CUDAQ_REALTIME_DATA, the data folder of the installed program, the source tree that the program was built from.
/// Throws usage_error if there is none.
std::string find_data_folder(const std::string &given);
/// The refusal of a set that cannot be loaded: names the sets of the folder, and how to get others.
usage_error no_shot_set(const std::string &reason, const std::string &folder, const std::string &config,
                        const std::string &noise);
/// For a --config that takes a file: " (...)" if `path` is the name of a decoding configuration instead; else "".
std::string config_file_hint(const std::string &path);

/// Loads the recorded shots of a configuration: a named one of `pipeline`, or d<distance>, which is
/// surface_z_d<distance>_p<noise>. Throws usage_error with the reason and the names of the sets in the folder.
qec::shot_set load_shots(const std::string &folder, const std::string &config, const std::string &noise);

} // namespace cudaq::realtime::tools

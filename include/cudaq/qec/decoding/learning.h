/* SPDX-License-Identifier: Apache-2.0 */
// The rates of a model's errors, learned from detection events: `cudaq-realtime learn` as a library. C++20. Link
// cudaq::qec-decoding.
//
//   rate_learner_result learner = make_rate_learner(dem_text);
//   if (!learner)
//     return report(learner.error);
//   for (const std::vector<std::uint8_t> &shot : shots)
//     if (decode_status status = learner.instance->add(shot); status != decode_status::ok)
//       return report(decode_status_text(status));
//   learning_report_result learned = learner.instance->finish();
//   if (learned && learned.instance->refusals.empty())
//     use(learned.instance->dem);
//
// The method, and which data are refused: docs/decoders/learn.md.
#ifndef CUDAQ_QEC_DECODING_LEARNING_H
#define CUDAQ_QEC_DECODING_LEARNING_H

#include "cudaq/qec/decoding/decoder.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// What was learned of one error of the model.
struct learned_error {
  std::uint64_t error; ///< the number of the error instruction, from 0, with loops unrolled
  std::uint64_t line;  ///< of the model's text, from 1
  double model;        ///< the model's own rate, a probability in one shot
  double rate;         ///< the learned one, above 0 and below 1/2
  double sigma;        ///< of `rate`
  double low, high;    ///< the interval that holds the true rate with 95 %
  bool resolved;       ///< false: the shots say little, and the rate stays near the model's
};

/// A detector beside the model.
struct learned_detector {
  double rate, model; ///< share of the shots in which it fires: counted, and by the model
  double sigmas;      ///< (rate - model) / sigma of `rate` under the model
};

/// The learned model beside the given one, on the held-out shots.
struct learned_score {
  double per_shot;         ///< difference of the log-likelihoods in nats a shot; above 0: the learned one is better
  double sigma;            ///< of `per_shot`
  std::uint64_t blocks;    ///< of shots, from which `sigma` was drawn
  double better_by_sigmas; ///< per_shot / sigma; 0: too few blocks to say
};

struct learning_report {
  std::string dem;                   ///< the text of the model with the learned rates; of a refusal: the given text
  std::vector<std::string> refusals; ///< why the shots must not change a model; empty: nothing speaks against it
  std::vector<learned_error> errors; ///< with an effect, in the order of the text; they are there after a refusal, too
  std::vector<learned_detector> detectors;
  std::optional<learned_score> score; ///< without held-out shots none
  std::uint64_t shots;                ///< that the rates were learned from
  std::uint64_t held_out_shots;
  double variation; ///< of the rates between the shots, as a share of their mean
};

/// A report, or an error text.
struct learning_report_result {
  std::unique_ptr<learning_report> instance;
  std::string error;
  explicit operator bool() const noexcept { return instance != nullptr; }
};

struct learning_settings {
  /// The text of a file of tied errors for this model; empty: none. It is not kept.
  std::string_view tied = {};
  double held_out = 0.1; ///< share of the shots that only score the learned model, 0 to 0.9; 0: no score
  /// The factor by which a rate is expected to differ from the model's (one sigma), 1.01 to 1e6.
  double prior = 4;
};

/// Counts shots, and learns from them. One thread at a time.
class CUDAQ_QEC_DECODING_API rate_learner {
public:
  struct content;
  explicit rate_learner(std::unique_ptr<content> all) noexcept;
  ~rate_learner();
  rate_learner(const rate_learner &) = delete;
  rate_learner &operator=(const rate_learner &) = delete;

  [[nodiscard]] std::size_t num_detectors() const noexcept;
  /// Adds the detection events of a shot: detector k in bit k % 8 of byte k / 8. buffer_too_small: the bytes are too
  /// few. bad_detector_index: a bit after the last detector is set. Then nothing is added. Throws std::bad_alloc: the
  /// held-out shots are kept, up to 256 MiB.
  [[nodiscard]] decode_status add(std::span<const std::uint8_t> shot);
  /// Learns from all shots until now; more may be added after it. It takes seconds for a model of some thousand errors.
  /// The error text says why no rate can be learned: no shots, a tied error that the model lacks, a probability above
  /// 0.4, too little memory.
  [[nodiscard]] learning_report_result finish();

private:
  const std::unique_ptr<content> all_;
};

/// A learner, or an error text.
struct rate_learner_result {
  std::unique_ptr<rate_learner> instance;
  std::string error;
  explicit operator bool() const noexcept { return instance != nullptr; }
};

/// `dem_text`: the model that the rates begin with; a copy is kept. The error text says what is wrong, with the line.
[[nodiscard]] CUDAQ_QEC_DECODING_API rate_learner_result make_rate_learner(std::string_view dem_text,
                                                                           const learning_settings &settings = {});

} // namespace cudaq::qec::realtime

#endif

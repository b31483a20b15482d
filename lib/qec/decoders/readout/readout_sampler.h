// SPDX-License-Identifier: Apache-2.0
// Shots with soft values and flags that were not measured. Values are drawn from the Gaussians of a table, then each
// error of the model happens with the probability that it has in the shot: so values are as sure as the table says:
//
//   value of measurement 3    0.1, of the Gaussians at 1 and -1 with standard deviation 0.5
//   list of the table         error 17 has 0.31 in this shot
//   shot                      error 17 happens with 0.31; an error that the list does not name as the model says
#pragma once

#include "lib/qec/decoders/readout/readout_content.h"
#include "lib/qec/decoding/model_sampler.h"

#include <random>
#include <span>
#include <string>
#include <vector>

namespace cudaq::qec::realtime {

/// Why no value of a measurement with this calibration can be drawn, as the end of a sentence about it: levels do not
/// say how often each of them comes, and a mean may be no value of this kind. "": it can.
[[nodiscard]] std::string refuses_draws(const readout_calibration &calibration, soft_kind kind);
/// A value as this kind has it: of u8 and u4 the nearest level.
[[nodiscard]] double as_kind(double value, soft_kind kind) noexcept;

/// A flag that is drawn: 2 with the probability `leaked`, 1 with the same one, else 0. `share`: uniform in (0, 1].
[[nodiscard]] constexpr unsigned drawn_flag(double leaked, double share) noexcept {
  return share <= leaked ? 2 : share <= 2 * leaked ? 1 : 0;
}
/// The flags of a shot, each on its own. `row`: as shot_readout::leakage.
void draw_flags(std::mt19937_64 &random, double leaked, std::uint64_t flags, std::span<std::uint8_t> row);

/// One thread at a time.
class readout_sampler {
public:
  /// `table`: of this model; it must live longer. Fails with refuses_draws.
  [[nodiscard]] static expected<readout_sampler> of(const detector_error_model &model, const readout_table &table,
                                                    soft_kind kind);

  /// Where a shot is written: detector k in bit k % 8 of byte k / 8, observables likewise. All bytes are 0 on entry.
  struct shot_room {
    std::span<std::uint8_t> events, observables;
    std::span<std::uint8_t> soft; ///< readout_table::soft_bytes(kind); a value that misreads no error stays 0
  };
  /// Draws a shot whose flags are `leakage`. Values of u8 and u4 are rounded to the nearest whole number that the kind
  /// has. Statuses and `fault` as of readout_table::list_of; not ok: the shot has no errors.
  [[nodiscard]] decode_status sample(std::mt19937_64 &random, std::span<const std::uint8_t> leakage,
                                     const shot_room &shot, std::string &fault);
  /// Of the last shot, as readout_table::list_of makes it.
  [[nodiscard]] const std::vector<error_probability> &list() const noexcept { return list_; }

private:
  readout_sampler(const detector_error_model &model, const readout_table &table, soft_kind kind);
  void draw_value(std::mt19937_64 &random, const readout_table::content::reading &reading,
                  std::span<std::uint8_t> soft) const;

  /// An error that the table names.
  struct named_error {
    double probability = 0; ///< by the model
    std::vector<std::uint64_t> detectors, observables;
  };

  const soft_kind kind_;
  const readout_table &table_;
  const readout_table::content &all_;
  std::vector<named_error> named_; ///< as content::errors
  model_sampler others_;           ///< of the errors that the table does not name
  std::vector<error_probability> list_;
};

} // namespace cudaq::qec::realtime

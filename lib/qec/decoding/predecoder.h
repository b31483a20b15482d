// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/decoder_model.h"
#include "lib/qec/decoding/local_rule.h"
#include "lib/qec/decoding/predecoder_output.h"
#include "lib/qec/decoding/qec_expected.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// A predecoder on the CPU. Input: one bit per detector, detector k in bit k % 8 of byte k / 8 (Stim's b8). Each thread
/// needs its own instance. No call allocates or throws.
class predecoder {
public:
  virtual ~predecoder() = default;
  predecoder(const predecoder &) = delete;
  predecoder &operator=(const predecoder &) = delete;

  [[nodiscard]] const predecoder_layout &layout() const noexcept { return layout_; }
  [[nodiscard]] virtual const char *name() const noexcept = 0;
  /// Why each shot is left to the decoder whole, since a device has failed; null: none has.
  [[nodiscard]] virtual const char *fault() const noexcept { return nullptr; }

  /// Writes at most layout().bytes() bytes to `output`, which is 8-byte aligned. The returned status is also in the
  /// output's header: buffer_too_small for a shot with too few bytes, bad_detector_index for a bit after the last
  /// detector.
  decode_status run(std::span<const std::uint8_t> shot, std::span<std::uint64_t> output) noexcept;

protected:
  explicit predecoder(predecoder_layout layout);
  /// `fired` has dense_words() words. Writes frame and residual, both all 0 on entry. Returns the number of matched
  /// edges.
  virtual std::uint32_t residual_of(std::span<const std::uint64_t> fired, std::span<std::uint64_t> frame,
                                    std::span<std::uint64_t> residual) noexcept = 0;

private:
  predecoder_layout layout_;
  std::vector<std::uint64_t> fired_;
};

/// A name that begins so means the network in the file that follows (learned/learned_predecoder.h).
inline constexpr std::string_view kLearnedPrefix = "model=";
[[nodiscard]] inline bool is_learned_predecoder(std::string_view name) noexcept {
  return name.starts_with(kLearnedPrefix) && name.size() > kLearnedPrefix.size();
}
/// The file of such a name; "" of any other.
[[nodiscard]] inline std::string_view learned_predecoder_file(std::string_view name) noexcept {
  return is_learned_predecoder(name) ? name.substr(kLearnedPrefix.size()) : std::string_view();
}

/// "passthrough": all events are residual, so the answers are those of the decoder alone. "local": the rule of
/// local_rule.h on the model's detector graph. It makes more logical errors than matching alone (docs/predecoding.md
/// has the ratios). "model=FILE": a network.
[[nodiscard]] expected<std::unique_ptr<predecoder>> make_predecoder(std::string_view name, const decoder_model &model);
/// "passthrough" for a model of this size, which need not be read. Refused: more than 2^32 - 1 of either.
[[nodiscard]] expected<std::unique_ptr<predecoder>> make_passthrough_predecoder(std::uint64_t detectors,
                                                                                std::uint64_t observables);

/// Whether all events are residual: then a shot may replace probabilities.
[[nodiscard]] inline bool is_passthrough(const predecoder &one) noexcept {
  return std::string_view(one.name()) == "passthrough";
}

/// Refuses every predecoder but "passthrough" before a decoder other than "pymatching". decoder: its name().
[[nodiscard]] expected<> check_predecoder_before(std::string_view name, std::string_view decoder);

/// The predecoder that the choice "auto" stands for, and why. A predecoder that changes answers is never chosen.
inline constexpr const char *kAutoPredecoder = "passthrough";
inline constexpr const char *kAutoPredecoderReason =
    "auto takes no predecoder: the local one makes more logical errors than the decoder alone";

} // namespace cudaq::qec::realtime

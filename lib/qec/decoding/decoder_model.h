// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/dem.h"

#include <concepts>
#include <optional>
#include <string>
#include <string_view>

namespace cudaq::qec::realtime {

/// A text in which parse_dem finds the same model, bit by bit, except for the numbers of lines.
[[nodiscard]] std::string text_of(const detector_error_model &model);

/// What a decoder is made for: the text of a model, or a model that was not read from a text, such as a window. The
/// other form is made when it is asked for, and once: the same object makes several decoders. One thread at a time.
class decoder_model {
public:
  /// The text must live as long as this object.
  template <std::convertible_to<std::string_view> Text>
  decoder_model(const Text &text) : text_(text) {}
  /// The same for the model.
  explicit decoder_model(const detector_error_model &errors) : errors_(&errors) {}
  decoder_model(const decoder_model &) = delete;
  decoder_model &operator=(const decoder_model &) = delete;

  /// Never null. A reason is that of parse_dem.
  [[nodiscard]] expected<const detector_error_model *> errors() const;
  [[nodiscard]] std::string_view text() const;

private:
  mutable std::optional<std::string_view> text_;
  const detector_error_model *const errors_ = nullptr;
  mutable std::optional<expected<detector_error_model>> parsed_;
  mutable std::string written_;
};

} // namespace cudaq::qec::realtime

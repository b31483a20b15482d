// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/dem_text/dem_program.h"

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// A text in which parse_dem finds the same model, bit by bit, except for the numbers of lines.
[[nodiscard]] std::string text_of(const detector_error_model &model);

/// What a decoder is made for: the text of a model, or a model that was not read from a text, such as a window. The
/// other form is made when it is asked for, and once: the same object makes several decoders, and serves all others who
/// need the model. A text is read once, whatever is asked for. One thread at a time.
class decoder_model {
public:
  /// The text must live as long as this object.
  template <std::convertible_to<std::string_view> Text>
  decoder_model(const Text &text) : text_(text) {}
  /// The same for the model.
  explicit decoder_model(const detector_error_model &errors) : errors_(&errors) {}
  /// Keeps the text, for a model that several objects share.
  [[nodiscard]] static std::shared_ptr<const decoder_model> of_text(std::string text);
  decoder_model(const decoder_model &) = delete;
  decoder_model &operator=(const decoder_model &) = delete;

  /// Never null. A reason is that of parse_dem.
  [[nodiscard]] expected<const detector_error_model *> errors() const;
  [[nodiscard]] std::string_view text() const;
  /// The text as instructions, loops not unrolled. Never null. A reason is that of the text.
  [[nodiscard]] expected<std::shared_ptr<const dem_text::program>> instructions() const;
  /// Of each detector; empty: it has none. Made at each call. A model that was not read from a text has none. A reason
  /// is that of errors().
  [[nodiscard]] expected<std::vector<std::vector<double>>> coordinates() const;
  /// Memory of what was made until now, without the model of the second constructor.
  [[nodiscard]] std::uint64_t bytes() const noexcept;

private:
  mutable std::optional<std::string_view> text_;
  const detector_error_model *const errors_ = nullptr;
  mutable std::optional<expected<std::shared_ptr<const dem_text::program>>> instructions_;
  mutable std::optional<expected<detector_error_model>> unrolled_;
  mutable std::string kept_; ///< what text_ shows, if it is not the caller's
};

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/decoder_model.h"

#include <charconv>

namespace cudaq::qec::realtime {

std::string text_of(const detector_error_model &model) {
  std::string text;
  const auto &all = model.components;
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (k != 0 && all[k].mechanism == all[k - 1].mechanism) {
      text += " ^";
    } else {
      char digits[32];
      text.append(k != 0 ? "\n" : "")
          .append("error(")
          .append(digits, std::to_chars(digits, digits + sizeof digits, all[k].probability).ptr) += ')';
    }
    for (const std::uint64_t d : model.detectors_of(all[k]))
      text += " D" + std::to_string(d);
    for (const std::uint64_t o : model.observables_of(all[k]))
      text += " L" + std::to_string(o);
  }
  if (!all.empty())
    text += '\n';
  // All detectors and observables, also those that no error flips.
  if (model.num_detectors != 0)
    text += "detector D" + std::to_string(model.num_detectors - 1) + '\n';
  if (model.num_observables != 0)
    text += "logical_observable L" + std::to_string(model.num_observables - 1) + '\n';
  return text;
}

expected<const detector_error_model *> decoder_model::errors() const {
  if (errors_ != nullptr)
    return errors_;
  if (!parsed_)
    parsed_ = parse_dem(*text_);
  if (parsed_->failed())
    return parsed_->reason();
  return &**parsed_;
}

std::string_view decoder_model::text() const {
  if (!text_) {
    written_ = text_of(*errors_);
    text_ = written_;
  }
  return *text_;
}

} // namespace cudaq::qec::realtime

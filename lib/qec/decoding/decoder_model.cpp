// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/decoder_model.h"

#include <charconv>
#include <utility>

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

std::shared_ptr<const decoder_model> decoder_model::of_text(std::string text) {
  auto made = std::make_shared<decoder_model>(std::string_view());
  made->kept_ = std::move(text);
  made->text_ = made->kept_;
  return made;
}

expected<std::shared_ptr<const dem_text::program>> decoder_model::instructions() const {
  if (!instructions_)
    instructions_ = dem_text::or_reason([this]() -> std::shared_ptr<const dem_text::program> {
      return std::make_shared<dem_text::program>(dem_text::read_program(text(), {}));
    });
  return *instructions_;
}

expected<const detector_error_model *> decoder_model::errors() const {
  if (errors_ != nullptr)
    return errors_;
  if (!unrolled_) {
    const auto read = instructions();
    unrolled_ = read.ok() ? dem_text::or_reason([&] { return dem_text::unroll(**read, {}); }) : read.reason();
  }
  if (unrolled_->failed())
    return unrolled_->reason();
  return &**unrolled_;
}

expected<std::vector<std::vector<double>>> decoder_model::coordinates() const {
  const auto model = errors();
  if (model.failed())
    return model.reason();
  dem_text::unrolled_detectors notes{.time = {}, .wants_coordinates = true, .skips_errors = true, .coordinates = {}};
  if (errors_ == nullptr) {
    const auto read = instructions();
    const auto unrolled = dem_text::or_reason([&] { return dem_text::unroll(**read, {}, SIZE_MAX, 0, &notes); });
    if (unrolled.failed())
      return unrolled.reason();
  }
  notes.coordinates.resize(static_cast<std::size_t>((*model)->num_detectors));
  return std::move(notes.coordinates);
}

std::uint64_t decoder_model::bytes() const noexcept {
  std::uint64_t bytes = kept_.size();
  if (instructions_ && instructions_->ok()) {
    const dem_text::program &all = ***instructions_;
    bytes += all.instructions.size() * sizeof(dem_text::instruction) + all.targets.size() * sizeof(dem_text::target) +
             all.arguments.size() * sizeof(double);
  }
  if (unrolled_ && unrolled_->ok())
    bytes +=
        (*unrolled_)->components.size() * sizeof(dem_component) + (*unrolled_)->targets.size() * sizeof(std::uint64_t);
  return bytes;
}

std::string_view decoder_model::text() const {
  if (!text_) {
    kept_ = text_of(*errors_);
    text_ = kept_;
  }
  return *text_;
}

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/heralds/heralded_decoder.h"

#include "lib/qec/decoders/heralds/list_trial.h"

#include <string>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

class heralded_decoder final : public decoder {
public:
  heralded_decoder(herald_list heralds, std::unique_ptr<decoder> inner, std::uint64_t num_errors)
      : decoder(heralds.meaning.size(), inner->num_observables()), heralds_(std::move(heralds)),
        inner_(std::move(inner)), name_(std::string("heralds+") + inner_->name()), num_model_errors_(num_errors) {
    events_.reserve(static_cast<std::size_t>(inner_->num_detectors()));
    list_.reserve(heralds_.errors.size() + static_cast<std::size_t>(num_errors)); // no decode allocates
  }

  const char *name() const noexcept override { return name_.c_str(); }
  bool gives_edges() const noexcept override { return inner_->gives_edges(); }
  std::uint64_t num_errors() const noexcept override { return inner_->num_errors(); }
  std::vector<std::pair<std::string, std::uint64_t>> wins() const override { return inner_->wins(); }
  std::uint64_t member_faults() const noexcept override { return inner_->member_faults(); }
  bool obeys_deadline() const noexcept override { return inner_->obeys_deadline(); }
  const char *fault() const noexcept override { return list_is_long_ ? kLongList : inner_->fault(); }
  const char *refuses_probabilities() const noexcept override { return nullptr; } // make_heralded_decoder has asked
  double smallest_probability() const noexcept override { return inner_->smallest_probability(); }
  const char *refuses_gaps() const noexcept override { return inner_->refuses_gaps(); }

protected:
  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *details) noexcept override {
    events_.clear();
    list_.assign(given_.begin(), given_.end());
    list_is_long_ = false;
    for (const std::uint64_t event : events) {
      const std::uint64_t meaning = heralds_.meaning[event];
      if ((meaning & herald_list::kHerald) == 0) {
        events_.push_back(meaning);
        continue;
      }
      const shot_probabilities errors = heralds_.errors_of(meaning & ~herald_list::kHerald);
      list_.insert(list_.end(), errors.begin(), errors.end());
    }
    const decode_status status = inner_->decode(events_, observables, list_, details);
    for (std::size_t k = 0; details != nullptr && k < details->num_edges; ++k) {
      correction_edge &edge = details->edges[k];
      edge.first = heralds_.detector[edge.first];
      edge.second = edge.second == kBoundary ? kBoundary : heralds_.detector[edge.second];
    }
    return status;
  }
  decode_status replace_probabilities(shot_probabilities probabilities) noexcept override {
    list_is_long_ = probabilities.size() > num_model_errors_;
    if (list_is_long_)
      return decode_status::bad_probability;
    given_ = probabilities;
    return decode_status::ok;
  }
  void restore_probabilities() noexcept override { given_ = {}; }

private:
  static constexpr const char *kLongList = "the shot's list has more errors than the model";

  const herald_list heralds_;
  const std::unique_ptr<decoder> inner_;
  const std::string name_;
  const std::uint64_t num_model_errors_;
  std::vector<std::uint64_t> events_;   ///< of the shot, without heralds
  shot_probabilities given_;            ///< by the caller, in this decode
  std::vector<error_probability> list_; ///< these, and those of the heralds that have fired
  bool list_is_long_ = false;           ///< the last one of a caller
};

} // namespace

decoder_result make_heralded_decoder(herald_list heralds, std::unique_ptr<decoder> inner, const decoder_model &model) {
  if (const char *const refusal = inner->refuses_probabilities())
    return {nullptr, std::string("heralds: ") + refusal};
  if (inner->num_detectors() != heralds.detector.size())
    return {nullptr, "heralds: the decoder has " + std::to_string(inner->num_detectors()) +
                         " detectors, and the model of the heralds " + std::to_string(heralds.detector.size())};
  // With it matching makes the graph of such shots.
  std::vector<std::uint8_t> observables(inner->observable_bytes());
  if (const decode_status status = try_list(*inner, observables, heralds.errors); !takes_list(status))
    return {nullptr, "heralds: " + decode_status_text(status, inner->fault())};
  return {std::make_unique<heralded_decoder>(std::move(heralds), std::move(inner), (*model.errors())->num_errors), {}};
}

} // namespace cudaq::qec::realtime

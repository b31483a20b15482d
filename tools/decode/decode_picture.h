// SPDX-License-Identifier: Apache-2.0
// `decode --svg`: the correction of one shot over the places of its code, and what a predecoder has removed before.
#pragma once

#include "lib/qec/decoders/heralds/herald_list.h"
#include "lib/qec/decoding/decoder_model.h"
#include "lib/qec/decoding/predecoder.h"
#include "tools/decode/decode.h"
#include "tools/html/html_plots.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

class decode_picture {
public:
  /// Throws usage_error if the detectors have no places, or the decoder tells nothing of its correction.
  decode_picture(const decode_options &o, const std::string &dem_text);

  /// A shot that was decoded, in the order of the input: keeps the first one that --svg-shot names.
  void offer(std::uint64_t shot, std::span<const std::uint8_t> events, qec::shot_probabilities probabilities,
             bool is_failure);
  [[nodiscard]] bool has_shot() const noexcept { return shot_.has_value(); }
  /// Decodes that shot again and draws it. "" without such a shot, or if its places cannot be drawn.
  [[nodiscard]] std::string svg() const;

private:
  struct correction {
    std::vector<std::vector<std::uint64_t>> errors; ///< the detectors of each
    std::vector<bool> flips;                        ///< whether it flips an observable
    std::vector<std::uint64_t> observables;         ///< that flip
    std::string failure;                            ///< "": there is an answer
    std::vector<std::uint64_t> events;              ///< that the predecoder has left
  };
  [[nodiscard]] correction decode() const;
  std::vector<std::uint64_t> predecode(std::vector<std::uint64_t> &events) const;
  [[nodiscard]] std::uint64_t in_model(std::uint64_t detector) const {
    return heralds_ ? heralds_->meaning[static_cast<std::size_t>(detector)] : detector;
  }
  /// Nothing if its errors flip no detector.
  [[nodiscard]] std::optional<plotted_herald> place_of(std::uint64_t herald) const;
  void add_edges(std::span<const qec::correction_edge> edges, correction &to) const;
  void add_errors(std::span<const std::uint64_t> errors, correction &to) const;

  const decode_options &options_;
  const qec::decoder_model model_;
  std::optional<qec::herald_list> heralds_;     ///< of --heralds
  std::vector<plotted_detector> detectors_;     ///< of the model
  std::unique_ptr<qec::predecoder> predecoder_; ///< null: the decoder gets all events
  std::unique_ptr<qec::decoder> decoder_;
  std::optional<std::uint64_t> shot_;
  std::vector<std::uint64_t> events_;        ///< also heralds
  std::vector<std::uint64_t> fired_heralds_; ///< of the events
  std::vector<qec::error_probability> probabilities_;
  bool is_failure_ = false;
};

} // namespace cudaq::realtime::tools

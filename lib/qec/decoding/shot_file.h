// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/qec_expected.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// A recorded experiment: a detector error model, and shots with their true observables and PyMatching's predictions
/// (tools/data/README.md). Rows are bit-packed (b8). Observables and predictions may be missing.
struct shot_set {
  std::string name;
  std::uint64_t distance = 0; ///< 0: not known, and the same for rounds and noise
  std::uint64_t rounds = 0;
  double noise = 0;
  std::uint64_t shots = 0;
  std::uint64_t num_detectors = 0;
  std::uint64_t num_observables = 0;
  std::uint64_t offline_logical_errors = 0; ///< shots whose prediction differs from the true observables
  std::string dem_text;
  std::vector<std::uint8_t> detections;
  std::vector<std::uint8_t> observables;
  std::vector<std::uint8_t> predictions;

  /// Whether the set has a row for each shot; without observables in the model the rows are empty.
  [[nodiscard]] bool has_observables() const noexcept {
    return num_observables != 0 && observables.size() == shots * observable_bytes();
  }
  [[nodiscard]] bool has_predictions() const noexcept { return predictions.size() == shots * observable_bytes(); }
  [[nodiscard]] std::size_t detection_bytes() const noexcept {
    return static_cast<std::size_t>((num_detectors + 7) / 8);
  }
  [[nodiscard]] std::size_t observable_bytes() const noexcept {
    return static_cast<std::size_t>((num_observables + 7) / 8);
  }
  /// Row of one shot; `shot` < shots. The set must have such rows.
  [[nodiscard]] std::span<const std::uint8_t> detection_row(std::uint64_t shot) const noexcept {
    return std::span(detections).subspan(static_cast<std::size_t>(shot) * detection_bytes(), detection_bytes());
  }
  [[nodiscard]] std::span<const std::uint8_t> observable_row(std::uint64_t shot) const noexcept {
    return std::span(observables).subspan(static_cast<std::size_t>(shot) * observable_bytes(), observable_bytes());
  }
  [[nodiscard]] std::span<const std::uint8_t> prediction_row(std::uint64_t shot) const noexcept {
    return std::span(predictions).subspan(static_cast<std::size_t>(shot) * observable_bytes(), observable_bytes());
  }
};

/// The contents of the files of a set.
struct shot_files {
  std::optional<std::string> meta;
  std::string dem;
  std::vector<std::uint8_t> detections;
  std::vector<std::uint8_t> observables;
  std::vector<std::uint8_t> predictions;
};

/// Makes the set of these files, named `<prefix>.meta` and so on in error texts. Sizes must match the .meta exactly,
/// and no bit after the last detector or observable may be set. A set has at least one detector, so the number of its
/// shots is at most the size of its files. Without a .meta, the model has the number of detectors and observables, and
/// an empty file of observables or predictions is a missing one.
[[nodiscard]] expected<shot_set> make_shot_set(const std::string &prefix, shot_files files);

/// "surface_z_d13_p0.003" for (13, "0.003").
[[nodiscard]] std::string shot_set_name(std::uint64_t distance, std::string_view noise);

/// Names of the sets in a folder (its *.dets.b8 files), sorted; empty if the folder has no sets.
[[nodiscard]] std::vector<std::string> list_shot_sets(const std::filesystem::path &folder);

/// Reads `<name>.meta`, `.dem`, `.dets.b8`, `.obs.b8` and `.pred.b8` of a folder: make_shot_set says what is accepted.
/// The .meta may be missing; then `.obs.b8` and `.pred.b8` may be missing, too. An error text names the file.
[[nodiscard]] expected<shot_set> load_shot_set(const std::filesystem::path &folder, std::string_view name);

} // namespace cudaq::qec::realtime

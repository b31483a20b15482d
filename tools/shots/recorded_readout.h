// SPDX-License-Identifier: Apache-2.0
// What the readout of shots says, recorded or drawn: docs/decoders/soft.md.
#pragma once

#include "lib/qec/decoding/shot_file.h"
#include "lib/qec/server/session/unit_readout.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::realtime::tools {

namespace qec = cudaq::qec::realtime;

/// The options that name the files.
struct readout_files {
  std::string readout;           ///< which errors the values of --soft and --leakage mean; "": none
  std::string soft, leakage;     ///< rows of bytes, one for each shot
  std::string soft_kind = "f32"; ///< else "u8", "u4"
  double leaked = 0.01;          ///< of flags that are drawn: the share that is 2, and the share that is 1

  [[nodiscard]] qec::soft_kind kind() const;
};

/// The text of --readout. Throws usage_error.
std::string read_readout_file(const readout_files &files);
/// Its table. Throws usage_error.
std::unique_ptr<qec::readout_table> make_readout_table(const readout_files &files, std::string_view text,
                                                       std::string_view dem_text);
/// The refusal of a file that is missing, or that the table does not need; "": it is right. `bytes`: of a row.
std::string wrong_readout_file(const char *option, const std::string &path, std::size_t bytes, const char *what);

/// The files, in memory.
class recorded_readout {
public:
  /// Throws usage_error: the files are not those of the table and of the shots.
  recorded_readout(const readout_files &files, const qec::shot_set &shots);
  /// Draws the soft values, and the shots anew, so that each error happens as often as values and flags say. Flags are
  /// drawn, too, each on its own, unless there is a file of them. Throws usage_error, also for a table whose values
  /// cannot be drawn.
  recorded_readout(const readout_files &files, qec::shot_set &shots, std::uint64_t seed);

  [[nodiscard]] const qec::readout_facts &facts() const noexcept { return table_->facts(); }
  [[nodiscard]] qec::soft_kind kind() const noexcept { return kind_; }
  [[nodiscard]] bool is_drawn() const noexcept { return is_drawn_; }
  [[nodiscard]] std::span<const std::uint8_t> soft_row(std::uint32_t shot) const noexcept { return row(soft_, shot); }
  [[nodiscard]] std::span<const std::uint8_t> leakage_row(std::uint32_t shot) const noexcept {
    return row(leakage_, shot);
  }
  /// Bytes of both rows.
  [[nodiscard]] std::size_t shot_bytes() const noexcept { return soft_.row_bytes + leakage_.row_bytes; }
  /// Of the same model with this table.
  [[nodiscard]] std::uint64_t digest_with(std::uint64_t digest_of_model) const noexcept {
    return qec::digest_with(digest_of_model, text_);
  }
  /// The probabilities of a shot, until the next call. Throws usage_error: they are not what the table takes.
  qec::shot_probabilities list(std::uint32_t shot) const;

private:
  struct rows {
    std::size_t row_bytes = 0;
    std::string bytes;
  };
  static std::span<const std::uint8_t> row(const rows &of, std::uint32_t shot) noexcept;
  static rows read(const char *option, const std::string &path, std::size_t row_bytes, const char *what,
                   const qec::shot_set &shots);

  void draw(const qec::readout_table &table, qec::shot_set &shots, std::uint64_t seed, double leaked);

  std::string path_, text_;
  qec::soft_kind kind_;
  bool is_drawn_ = false;
  std::unique_ptr<qec::unit_readout> table_;
  rows soft_, leakage_;
};

} // namespace cudaq::realtime::tools

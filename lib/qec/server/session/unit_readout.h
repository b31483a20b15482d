// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/readout.h"
#include "cudaq/qec/decoding/stream.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// As the options and texts of the project call it.
[[nodiscard]] constexpr const char *name_of(soft_kind kind) noexcept {
  return kind == soft_kind::f32 ? "f32" : kind == soft_kind::u8 ? "u8" : "u4";
}
/// Bits of a soft value.
[[nodiscard]] constexpr unsigned bits_of(soft_kind kind) noexcept {
  return kind == soft_kind::f32 ? 32 : kind == soft_kind::u8 ? 8 : 4;
}

/// What a decoder takes with a shot, or a stream with each repetition: values of measurements and flags of leakage. All
/// 0: nothing.
struct readout_facts {
  std::uint64_t measurements = 0, flags = 0;
  std::uint64_t kinds = 0; ///< bit k: of soft_kind k. 0 without measurements, or if no kind suits all of them
  bool operator==(const readout_facts &) const = default;

  [[nodiscard]] bool any() const noexcept { return measurements != 0 || flags != 0; }
  /// Of the soft values of a shot, in this kind.
  [[nodiscard]] std::uint64_t soft_bytes(soft_kind kind) const noexcept {
    return (measurements * bits_of(kind) + 7) / 8;
  }
  [[nodiscard]] std::uint64_t leakage_bytes() const noexcept { return (flags * 2 + 7) / 8; }
  /// Of values and flags of a shot, in the widest kind.
  [[nodiscard]] std::uint64_t longest_bytes() const noexcept;
  /// The kind that is taken and whose values of a shot have so many bytes; else the widest one that is taken.
  [[nodiscard]] soft_kind kind_of(std::uint64_t bytes) const noexcept;
  [[nodiscard]] bool takes(soft_kind kind) const noexcept { return (kinds >> static_cast<unsigned>(kind) & 1) != 0; }
  /// "25 soft values (f32, u8) and 8 flags"
  [[nodiscard]] std::string text() const;
};

/// Of a stream.
[[nodiscard]] readout_facts readout_facts_of(const stream_values_info &of) noexcept;

/// The digest of a model whose decoder has this file, too: another file, other answers. A step of FNV-1a.
[[nodiscard]] std::uint64_t digest_with(std::uint64_t digest, std::string_view file) noexcept;

/// The table of a decoder of the server, and its scratch memory. Not for two threads at once.
class unit_readout {
public:
  /// Throws std::bad_alloc.
  explicit unit_readout(std::unique_ptr<readout_table> table);

  [[nodiscard]] const readout_facts &facts() const noexcept { return facts_; }
  [[nodiscard]] const readout_table &table() const noexcept { return *table_; }
  /// Makes the list of probabilities of a shot: list(), empty after a failure, whose text is fault(). Statuses as of
  /// readout_table::list_of; internal_error: out of memory.
  [[nodiscard]] decode_status make_list(const shot_readout &shot) noexcept;
  [[nodiscard]] const std::vector<error_probability> &list() const noexcept { return list_; }
  [[nodiscard]] const char *fault() const noexcept { return has_memory_ ? fault_.c_str() : "out of memory"; }

private:
  const std::unique_ptr<readout_table> table_;
  readout_facts facts_;
  std::vector<error_probability> list_;
  std::string fault_;
  bool has_memory_ = true;
};

} // namespace cudaq::qec::realtime

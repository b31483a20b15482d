// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/decode_status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// Static text of a status, never null.
const char *decode_status_text(decode_status status) noexcept;

/// A decoder for one detector error model. It takes the detection events of a shot and returns the flipped logical
/// observables.
///
/// An instance has scratch memory, so each thread needs its own; there may be any number. No call prints, aborts or
/// throws. After an error status the instance works as before: it decodes the next correct shot correctly.
class decoder {
public:
  virtual ~decoder() = default;
  decoder(const decoder &) = delete;
  decoder &operator=(const decoder &) = delete;

  /// Decodes one shot.
  ///
  /// `events`: the indices of the detectors that fired, each once, in any order. The answer does not depend on the
  /// order; ascending order saves a sort. May be empty. `observables`: at least observable_bytes() bytes. Observable
  /// k is returned in bit k % 8 of byte k / 8; unused bits of the last byte are 0, later bytes are not written. With
  /// an error status the observable bytes are 0 (with buffer_too_small: not written).
  [[nodiscard]] decode_status decode(std::span<const std::uint64_t> events,
                                     std::span<std::uint8_t> observables) noexcept;

  [[nodiscard]] std::uint64_t num_detectors() const noexcept { return num_detectors_; }
  [[nodiscard]] std::uint64_t num_observables() const noexcept { return num_observables_; }
  [[nodiscard]] std::size_t observable_bytes() const noexcept {
    return static_cast<std::size_t>((num_observables_ + 7) / 8);
  }
  /// "pymatching" or "lookup".
  [[nodiscard]] virtual const char *name() const noexcept = 0;

protected:
  decoder(std::uint64_t num_detectors, std::uint64_t num_observables);

  /// `events` are in range, ascending and without duplicates. `observables` has exactly observable_bytes() bytes, all
  /// 0. On return only bits of observables may be set.
  virtual decode_status decode_checked(const std::vector<std::uint64_t> &events,
                                       std::span<std::uint8_t> observables) noexcept = 0;

private:
  decode_status take_events(std::span<const std::uint64_t> events) noexcept;

  std::uint64_t num_detectors_;
  std::uint64_t num_observables_;
  std::vector<std::uint64_t> events_; ///< room for num_detectors_: never grows while decoding
};

/// The result of a factory: a decoder, or an error text.
struct decoder_result {
  std::unique_ptr<decoder> instance;
  std::string error;
  explicit operator bool() const noexcept { return instance != nullptr; }
};

/// Minimum-weight perfect matching, for any graph-like model. The instance is warmed up: its first decode is as fast
/// as the later ones. `dem_text` is a Stim detector error model.
[[nodiscard]] decoder_result make_pymatching_decoder(std::string_view dem_text);

/// A table with the minimum-weight answer to every syndrome; for small codes only (docs/decoding.md).
[[nodiscard]] decoder_result make_lookup_decoder(std::string_view dem_text);

/// By name: "pymatching", "lookup", or "auto" (PyMatching if this library was built with it, else lookup).
[[nodiscard]] decoder_result make_decoder(std::string_view name, std::string_view dem_text);

/// Whether this library was built with PyMatching, and PyMatching's version ("" without it).
[[nodiscard]] bool pymatching_available() noexcept;
[[nodiscard]] const char *pymatching_version() noexcept;

} // namespace cudaq::qec::realtime

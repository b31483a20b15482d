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

/// A decoder of one detector error model: detection events of a shot in, flipped logical
/// observables out.
///
/// An instance keeps scratch memory: one instance per thread, any number of instances. No
/// call prints, aborts or throws. After an error status the instance is as good as new: the
/// next good shot decodes right.
class decoder {
public:
  virtual ~decoder() = default;
  decoder(const decoder &) = delete;
  decoder &operator=(const decoder &) = delete;

  /// Decodes one shot.
  ///
  /// `events`: the indices of the detectors that fired, in any order, each once. The answer
  /// does not depend on the order; ascending order saves a sort. May be empty.
  /// `observables`: at least observable_bytes() long. Observable k comes back in bit k % 8 of
  /// byte k / 8; unused bits of the last byte are 0, bytes after it stay untouched. With any
  /// status but ok the observable bytes are 0 (untouched with buffer_too_small).
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

  /// `events` are in range, ascending and each there once; `observables` has exactly
  /// observable_bytes() bytes, all 0, and must hold only set observable bits on return.
  virtual decode_status decode_checked(const std::vector<std::uint64_t> &events,
                                       std::span<std::uint8_t> observables) noexcept = 0;

private:
  decode_status take_events(std::span<const std::uint64_t> events) noexcept;

  std::uint64_t num_detectors_;
  std::uint64_t num_observables_;
  std::vector<std::uint64_t> events_; ///< room for num_detectors_: never grows while decoding
};

/// What a factory gives back: a decoder, or the reason why not.
struct decoder_result {
  std::unique_ptr<decoder> instance;
  std::string error;
  explicit operator bool() const noexcept { return instance != nullptr; }
};

/// Minimum-weight perfect matching; any graph-like model. The instance comes back warm: its
/// first decode is as fast as the later ones. `dem_text` is a Stim detector error model.
[[nodiscard]] decoder_result make_pymatching_decoder(std::string_view dem_text);

/// A table of the minimum-weight answer to every syndrome; small codes only (docs/decoding.md).
[[nodiscard]] decoder_result make_lookup_decoder(std::string_view dem_text);

/// By name: "pymatching", "lookup", or "auto" (PyMatching where it was built in, else lookup).
[[nodiscard]] decoder_result make_decoder(std::string_view name, std::string_view dem_text);

/// Whether PyMatching was built in, and its version ("" without it).
[[nodiscard]] bool pymatching_available() noexcept;
[[nodiscard]] const char *pymatching_version() noexcept;

} // namespace cudaq::qec::realtime

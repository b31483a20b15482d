// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/lookup_table.h"
#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/qec_expected.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace cudaq::qec::realtime {

class decoder;

/// Limits of a table: detectors of one part; detectors plus observables of one part (the space that is searched while
/// the table is built; 2^22 weights are 32 MiB); bytes of the table.
inline constexpr std::uint32_t kLookupMaxPartDetectors = 20;
inline constexpr std::uint32_t kLookupMaxPartBits = 22;
inline constexpr std::uint64_t kLookupMaxBytes = std::uint64_t{64} << 20;
/// Errors of one part, times 2^(its detectors plus observables): the steps of building it; some 30 s.
inline constexpr std::uint64_t kLookupMaxSteps = std::uint64_t{1} << 34;

/// The largest setting depth: see make_lookup_decoder of decoder_factories.h.
inline constexpr std::uint64_t kLookupMaxDepth = 16;

/// Owns the block of lookup_table.h. Immutable: any number of threads may read it.
class lookup_table {
public:
  explicit lookup_table(std::vector<std::uint64_t> words) : words_(std::move(words)) {}

  /// The block: header().total_bytes bytes, ready to be copied to a device.
  const std::uint8_t *data() const noexcept {
    return static_cast<const std::uint8_t *>(static_cast<const void *>(words_.data()));
  }
  const lookup_table_header &header() const noexcept {
    return *static_cast<const lookup_table_header *>(static_cast<const void *>(words_.data()));
  }
  lookup_table_view view() const noexcept { return make_lookup_table_view(header(), data()); }

private:
  std::vector<std::uint64_t> words_; ///< 64-bit words for the alignment
};

/// Integer weight of an error of probability p, rounded as PyMatching does: 2 * round(log((1 - p) / p) * scale).
/// `scale` maps the largest weight of the model to 2^24 - 1.
std::int64_t matching_weight(double probability, double scale) noexcept;

/// Builds the table of a model. It is *exact*: for every syndrome the table holds the observables of a set of errors
/// with the least total weight among all sets that cause the syndrome. Components of a decomposed error are separate
/// errors. Errors with the same detectors and observables are merged as independent errors. Weights are
/// matching_weight() with the scale of the whole model. If several sets have the least weight, the smallest
/// observables count, read as a number with observable 0 as the lowest bit.
[[nodiscard]] expected<lookup_table> build_lookup_table(const detector_error_model &model);

/// Whether the parts of a model are within the limits of a table. Costs little: nothing is built.
[[nodiscard]] bool fits_lookup_table(const detector_error_model &model);

/// A decoder that uses a table. Several instances may share one table.
[[nodiscard]] std::unique_ptr<decoder> make_lookup_decoder(std::shared_ptr<const lookup_table> table);

} // namespace cudaq::qec::realtime

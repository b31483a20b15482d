// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// PyMatching with masks of 256 bits: the same matching of the same graph as with masks of 64 bits. PyMatching's own
/// way for many observables searches the edges of each path after the matching; this keeps the observables of a path
/// while it grows.
/// Only built with PyMatching. One thread at a time.
class wide_matcher {
public:
  static constexpr std::size_t kMaxObservables = 256;

  struct edge {
    std::size_t first, second; ///< nodes; second SIZE_MAX: the boundary
    std::vector<std::size_t> observables;
    double weight, probability;
  };
  /// `always_flipped`: observables that are flipped besides those of the matching's edges.
  wide_matcher(std::size_t nodes, std::size_t observables, std::span<const edge> edges,
               std::span<const std::size_t> always_flipped);
  ~wide_matcher();
  wide_matcher(const wide_matcher &) = delete;
  wide_matcher &operator=(const wide_matcher &) = delete;

  /// Sets the bits of flipped observables in `observables`, all of which are 0. Returns the weight of the matching, in
  /// units of 1 / normalising_constant(). Throws std::invalid_argument if there is no matching: call reset(); after
  /// another exception call abandon().
  std::int64_t decode(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables);
  void reset() noexcept;
  /// Leaks the matcher, which can neither be used nor destroyed: out of memory in the middle of a decode.
  void abandon() noexcept;
  [[nodiscard]] double normalising_constant() const noexcept;

private:
  struct matcher;
  std::unique_ptr<matcher> matcher_;
};

} // namespace cudaq::qec::realtime

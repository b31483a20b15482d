// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/heralds/herald_list.h"
#include "lib/qec/stream/repeating_model.h"

#include <cstdint>
#include <vector>

namespace cudaq::qec::realtime {

/// An error of an unrolled model, the herald that says when it is likelier, and its probability then.
struct heralded_error {
  std::uint64_t error, herald;
  double probability;
};

/// The heralds of a stream: those of the head, of one repetition, and of the tail. Heralds are detectors of its model.
class stream_heralds {
public:
  stream_heralds() = default; ///< none

  /// `list`: of the model as its text has it. Refused: a list that leaves the heralds out of the model; repetitions
  /// whose heralds differ; a herald and an error of it that are not in the same part: head, a repetition, tail.
  static expected<stream_heralds> make(const herald_list &list, const repeating_model &model);

  /// Of the model with this number of repetitions, by error.
  [[nodiscard]] std::vector<heralded_error> unrolled(std::uint64_t repetitions) const;
  /// The most rounds from a herald to a later detector of one of its errors: a window needs the heralds of so many
  /// rounds before it.
  [[nodiscard]] std::uint64_t rounds_before() const noexcept { return rounds_before_; }
  [[nodiscard]] bool empty() const noexcept { return head_.empty() && body_.empty() && tail_.empty(); }
  /// A number that two lists share if they are equal; 0: none.
  [[nodiscard]] std::uint64_t digest() const noexcept;
  /// Bytes of memory, of the lists.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return (head_.size() + body_.size() + tail_.size()) * sizeof(heralded_error);
  }

private:
  expected<> find_rounds_before(const repeating_model &model);

  // Numbers of errors and heralds count from the begin of the part.
  std::vector<heralded_error> head_, body_, tail_;
  std::uint64_t head_errors_ = 0, body_errors_ = 0, head_detectors_ = 0, body_detectors_ = 0;
  std::uint64_t rounds_before_ = 0;
};

} // namespace cudaq::qec::realtime

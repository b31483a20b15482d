/* SPDX-License-Identifier: Apache-2.0 */
// Decoding without an end: rounds of detection events in, as they come; final corrections out, a few rounds later.
// C++20. Link cudaq::qec-decoding.
//
//   stream_result made = make_stream_decoder(dem_text, {});
//   if (!made)
//     return report(made.error);
//   while (more_rounds)
//     if (made.instance->push(bits, count) != decode_status::ok) ...
//   made.instance->finish(tail_bits, tail_count);
//   made.instance->observables(); // the correction of the whole experiment
//
// docs/decoders/streaming.md explains windows, the choice of commit and buffer, and what it costs.
#ifndef CUDAQ_QEC_DECODING_STREAM_H
#define CUDAQ_QEC_DECODING_STREAM_H

#include "cudaq/qec/decoding/decoder.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace cudaq::qec::realtime {

struct stream_options {
  std::string decoder = "auto"; ///< of each window: a name that make_decoder takes
  std::uint64_t commit = 0;     ///< rounds that a window makes final; 0: the distance of the code
  std::uint64_t buffer = 0;     ///< later rounds that it looks at; 0: the distance of the code
  /// "time": a round is a value of the last coordinate of detectors, with all shifts. "index:N": N successive
  /// detectors.
  std::string rounds = "time";
};

/// A decoder for a detector error model with a loop (`repeat`), for any number of repetitions: also for more than the
/// text says. Of several loops the longest outer one repeats. The memory depends on the model and the window only.
///
/// Threads: as for `decoder`. Every window is decoded in the call that completes it. No call prints, aborts or throws.
/// push allocates nothing of its own after the first window.
class CUDAQ_QEC_DECODING_API stream_decoder {
public:
  virtual ~stream_decoder();
  stream_decoder(const stream_decoder &) = delete;
  stream_decoder &operator=(const stream_decoder &) = delete;

  /// The next `count` bits: one for each detector, in ascending order, bit k % 8 of byte k / 8; any number, also parts
  /// of rounds. buffer_too_small: fewer bytes than that; nothing was taken. After the first status of a window that is
  /// not ok the stream is broken: every call returns it until reset(), and no further round becomes final.
  [[nodiscard]] virtual decode_status push(std::span<const std::uint8_t> bits, std::uint64_t count) noexcept = 0;

  /// The bits of the tail, after a whole repetition: the experiment ends, and all rounds become final.
  /// stream_misaligned: not tail_detectors() bits, or the loop is not at the end of a repetition; nothing was taken.
  [[nodiscard]] virtual decode_status finish(std::span<const std::uint8_t> bits, std::uint64_t count) noexcept = 0;

  /// Back to the beginning of the head. The next stream begins.
  virtual void reset() noexcept = 0;

  /// Whether each observable is flipped by the errors found in the first committed_rounds() rounds. Observable k: bit k
  /// % 8 of byte k / 8. Valid until the next call that is not const.
  [[nodiscard]] virtual std::span<const std::uint8_t> observables() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t committed_rounds() const noexcept = 0;
  /// Rounds of which all bits have come, and all bits of them and of the round that is not complete.
  [[nodiscard]] virtual std::uint64_t pushed_rounds() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t pushed_bits() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t windows() const noexcept = 0;

  /// The model: detectors of the head, of a repetition and of the tail.
  [[nodiscard]] virtual std::uint64_t head_detectors() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t body_detectors() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t tail_detectors() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t num_observables() const noexcept = 0;
  /// Windows, in words: "commit 5 and buffer 5 rounds (the distance); 24 detectors a round; pymatching".
  [[nodiscard]] virtual const std::string &description() const noexcept = 0;

protected:
  stream_decoder() = default;
};

/// The result of the factory: a decoder, or an error text.
struct stream_result {
  std::unique_ptr<stream_decoder> instance;
  std::string error;
  explicit operator bool() const noexcept { return instance != nullptr; }
};

/// Makes a decoder for a model in Stim's text format; may be called from any thread. All windows of long streams are
/// built here, so it takes a while. A stream of fewer rounds than a few windows builds its last window in finish(), and
/// so does one whose commit is much longer than a repetition.
[[nodiscard]] CUDAQ_QEC_DECODING_API stream_result make_stream_decoder(std::string_view dem_text,
                                                                       const stream_options &options);

} // namespace cudaq::qec::realtime

#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder.h"
#include "lib/qec/stream/repeating_model.h"
#include "lib/qec/stream/value_ring.h"
#include "lib/qec/stream/window_model.h"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime {

/// Thrown inside this folder; make_stream_decoder turns it into an error text.
struct stream_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The decoder of a window was refused because of the machine: decoder_result::machine_lacks.
struct stream_machine_error : stream_error {
  using stream_error::stream_error;
};

/// The model has no parallel windows.
struct no_parallel_windows : stream_error {
  using stream_error::stream_error;
};

/// Where the windows of a stream lie. Window j makes rounds [j * commit, (j + 1) * commit) final.
///
/// Sequential: window j also sees `buffer` later rounds, and needs window j - 1. Parallel: an even window (A) also sees
/// `buffer` rounds before and after, and needs no other; an odd window (B) sees its own rounds only, and needs both of
/// its neighbours. The last window sees all rounds that are left, and needs the one before it.
struct window_layout {
  std::uint64_t commit, buffer;
  bool parallel;

  [[nodiscard]] bool is_between(std::uint64_t j) const noexcept { return parallel && j % 2 == 1; }
  [[nodiscard]] window_rounds rounds_of(std::uint64_t j) const noexcept {
    const std::uint64_t line = j * commit, next = line + commit;
    if (is_between(j))
      return {line, line, next, next, false, true};
    return {parallel ? line - std::min(line, buffer) : line, line, next, next + buffer, parallel, false};
  }
  /// The rounds after which all windows are where they were.
  [[nodiscard]] std::uint64_t stride() const noexcept { return parallel ? 2 * commit : commit; }
  /// The windows that can be decoded when these rounds have come, if the stream goes on.
  [[nodiscard]] std::uint64_t complete(std::uint64_t rounds) const noexcept {
    if (rounds < commit + buffer)
      return 0;
    const std::uint64_t windows = (rounds - buffer) / commit;
    return parallel ? windows - (windows % 2 == 0 ? 1 : 0) : windows;
  }
  /// The rounds after which complete() is more than `windows`.
  [[nodiscard]] std::uint64_t rounds_for_more_than(std::uint64_t windows) const noexcept {
    const std::uint64_t more = windows + 1 + (parallel && windows % 2 == 1 ? 1 : 0);
    return more * commit + buffer;
  }
};

/// A decoder of a window, with its memory. One thread at a time.
struct window_decoder {
  std::unique_ptr<decoder> inner;
  std::vector<std::uint64_t> events; ///< room for all detectors
  std::vector<std::uint8_t> answer;
  std::vector<error_probability> list; ///< of the heralds that have fired, and of the readout; room for all
  value_ring::text fault{};            ///< what is wrong with the readout of a window
};

/// One window with its decoders: as many as threads decode it at the same time.
struct window {
  window_model model;     ///< its values and flags count from stream_readout::base_of its begin
  readout_place read_end; ///< after the last value and flag of these
  std::vector<window_decoder> decoders;
  std::vector<window_decoder *> idle; ///< those that no thread has; never grows
};

/// The decoder of windows: its name with its settings. Of auto the name is that of the decoder that it made, or the
/// names, if windows have different ones; `reason` says why that is not its first choice, else it is "".
struct decoder_choice {
  std::string name, reason;
};

/// The windows of a model. Late windows repeat: they are like the one a whole number of repetitions earlier.
class window_set {
public:
  /// `threads`: windows that are decoded at the same time. Throws stream_error.
  window_set(repeating_model model, stream_heralds heralds, stream_readout readout, std::string decoder,
             window_layout layout, std::size_t threads);

  [[nodiscard]] const repeating_model &model() const noexcept { return model_; }
  [[nodiscard]] const stream_heralds &heralds() const noexcept { return heralds_; }
  [[nodiscard]] const stream_readout &readout() const noexcept { return readout_; }
  [[nodiscard]] const window_layout &layout() const noexcept { return layout_; }
  [[nodiscard]] const decoder_choice &choice() const noexcept { return choice_; }

  /// Window j of a stream that goes on.
  [[nodiscard]] window &regular(std::uint64_t j) noexcept;
  /// The last window of a stream with these repetitions, if it was built in advance; else null.
  [[nodiscard]] window *last_if_built(std::uint64_t repetitions) noexcept;
  /// The same; builds it if need be. A few of those are kept. Throws. One thread at a time.
  [[nodiscard]] window &last(std::uint64_t repetitions);

private:
  std::uint64_t head() const noexcept { return model_.head().size(); }
  std::uint64_t body() const noexcept { return model_.body().size(); }
  std::uint64_t end_of(std::uint64_t repetitions) const noexcept { return head() + repetitions * body(); }
  /// The number of the last window of a stream with these repetitions, and its rounds.
  window_rounds last_rounds(std::uint64_t repetitions) const noexcept;
  std::uint64_t repetitions_for(std::uint64_t end) const noexcept;
  std::uint64_t common_windows() const noexcept { return common_ / layout_.commit; }
  std::uint64_t common_repetitions() const noexcept { return common_ / body(); }

  void choose_form();
  void name_choice();
  window_source source_of(std::uint64_t repetitions) const;
  window_model cut(const window_source &source, window_rounds rounds) const;
  const window_source &source_until(std::uint64_t end);
  std::unique_ptr<window> build(window_model model, std::size_t decoders, bool must_have_boundary);
  static void try_lists(const window_model &model, window_decoder &with);
  decoder_result take_first_decoder(const detector_error_model &errors);
  void find_steady();

  const repeating_model model_;
  const stream_heralds heralds_;
  const stream_readout readout_;
  std::string decoder_;
  decoder_choice choice_;
  const window_layout layout_;
  const std::uint64_t common_; ///< rounds after which both windows and repetitions begin again
  error_form form_ = error_form::components;
  std::unique_ptr<decoder> first_decoder_;      ///< of auto, until the first window is built
  detector_error_model first_errors_;           ///< what it was made for
  std::uint64_t steady_ = 0;                    ///< the first window that repeats
  std::uint64_t first_steady_end_ = 0;          ///< repetitions
  std::unique_ptr<const window_source> source_; ///< while the windows are built
  std::uint64_t source_repetitions_ = 0;
  std::vector<std::unique_ptr<window>> regular_;
  std::vector<std::unique_ptr<window>> last_; ///< by repetitions; none if they are too large
  static constexpr std::size_t kKept = 8;
  std::pair<std::uint64_t, std::unique_ptr<window>> kept_[kKept]; ///< last windows that were built when needed
  std::size_t next_kept_ = 0;
};

} // namespace cudaq::qec::realtime

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
// With threads that decode while the caller goes on pushing:
//
//   workers_result workers = make_stream_workers(4); // for any number of streams
//   stream_result made = make_stream_decoder(dem_text, {.pool = workers.instance});
//   made.instance->push(bits, count);                // never waits for a decode
//   made.instance->poll(observables);                // what is final so far
//
// The same for C: stream_c.h.
// docs/decoders/streaming.md explains windows, the choice of commit and buffer, and what it costs.
#ifndef CUDAQ_QEC_DECODING_STREAM_H
#define CUDAQ_QEC_DECODING_STREAM_H

#include "cudaq/qec/decoding/readout.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cudaq::qec::realtime {

/// Threads that decode the windows of any number of streams. Streams with windows that are ready take turns. Each
/// stream keeps its threads alive: the threads end with the last owner of this object.
class CUDAQ_QEC_DECODING_API stream_workers {
public:
  virtual ~stream_workers();
  stream_workers(const stream_workers &) = delete;
  stream_workers &operator=(const stream_workers &) = delete;
  [[nodiscard]] virtual std::size_t count() const noexcept = 0;

private:
  friend class worker_pool;
  stream_workers() = default;
};

/// The result of make_stream_workers: threads, or an error text.
struct workers_result {
  std::shared_ptr<stream_workers> instance;
  std::string error;
  explicit operator bool() const noexcept { return instance != nullptr; }
};

/// Starts `count` threads, 1 to 1024. May be called from any thread.
[[nodiscard]] CUDAQ_QEC_DECODING_API workers_result make_stream_workers(std::size_t count);

enum class stream_mode {
  automatic = 0,  ///< sequential with at most one worker, and for models that parallel windows do not take
  sequential = 1, ///< each window begins where the one before it was decided
  parallel = 2    ///< every second window is decoded on its own, and then those between them
};

struct stream_options {
  /// Of each window: a name that make_decoder takes; or the whole form of a stream, which has further options:
  /// "sliding-window:inner=NAME,commit=C,buffer=B,rounds=RULE,mode=MODE,heralds=FILE". An option that
  /// both have, with different values, is refused.
  std::string decoder = "auto";
  std::uint64_t commit = 0; ///< rounds that a window makes final; 0: the distance of the code
  std::uint64_t buffer = 0; ///< later rounds that it looks at (parallel: also earlier); 0: the distance of the code
  /// "time": a round is a value of the last coordinate of detectors, with all shifts. "index:N": N successive
  /// detectors.
  std::string rounds = "time";
  stream_mode mode = stream_mode::automatic;
  /// Threads that decode windows. 0 without a pool: windows are decoded in the calling thread. With a pool: the most
  /// windows of this stream that its threads decode at the same time; 0: as many as it has threads.
  std::size_t workers = 0;
  std::shared_ptr<stream_workers> pool = {}; ///< empty, and workers not 0: threads of this stream alone
  /// With workers: the most rounds that are kept because they are not final; 0: 4096, or more if windows are long. In
  /// a head of smaller rounds than those of the loop it may be more, so that a push has room.
  std::uint64_t queue_rounds = 0;
  /// A file of heralds for this model, whose detectors are those of the stream, with the heralds; empty: none. The
  /// errors of a herald that has fired have its probabilities in each window that they are in. The heralds of all
  /// repetitions must be alike. docs/decoders/heralds.md
  std::string heralds = {};
  /// The text of a table of a readout for this model (readout.h), whose values and flags come with the rounds; nullopt:
  /// none. The table has all repetitions of the text, and they must be alike. docs/decoders/streaming.md
  std::optional<std::string> readout = {};
};

/// Soft values and flags that come with bits of a stream: the next ones, in the order of the table. The memory is the
/// caller's.
struct stream_values {
  std::span<const std::uint8_t> soft = {}; ///< at least (num_soft * bits of a value + 7) / 8 bytes
  std::uint64_t num_soft = 0;
  soft_kind kind = soft_kind::f32;            ///< the same for all values of an experiment
  std::span<const std::uint8_t> leakage = {}; ///< as of shot_readout, at least (num_leakage + 3) / 4 bytes
  std::uint64_t num_leakage = 0;
};

/// The values and flags of an experiment with R repetitions: R times those of a repetition, and those of head and tail.
struct stream_values_info {
  std::uint64_t body_soft = 0, other_soft = 0;
  std::uint64_t body_leakage = 0, other_leakage = 0;
  std::uint32_t kinds = 0; ///< bit k: soft_kind k suits all measurements
  bool operator==(const stream_values_info &) const = default;
};

/// What is final at some moment.
struct stream_progress {
  decode_status status;           ///< ok, or why the stream is broken
  std::uint64_t committed_rounds; ///< the observables are those of this number of rounds
  std::uint64_t pushed_rounds;
  bool is_final; ///< the tail has come and all rounds are final
};

/// Since the last reset.
struct stream_statistics {
  std::uint64_t windows;            ///< decoded
  std::uint64_t decode_ns;          ///< time in the decoder, of all windows with events
  std::uint64_t worst_decode_ns;    ///< of one window
  std::uint64_t worst_queue_rounds; ///< of complete windows whose decode had not begun
  std::uint64_t worst_lag_rounds;   ///< that had come and were not final when a window became final
  /// Of windows, if their decoder has a deadline. A missed one that is not late ended with its best solution so far,
  /// or broke the stream.
  deadline_counts deadlines;
};

/// A decoder for a detector error model with a loop (`repeat`), for any number of repetitions: also for more than the
/// text says. Of several loops the longest outer one repeats. The memory depends on the model, the window and
/// queue_rounds only. The frames depend on the mode and on what was pushed, not on the workers or the sizes of pushes.
///
/// A decoder with a deadline (deadline_us) has it for each window. The best solution so far of a window that ends at it
/// is committed, if it explains the events; frames then depend on time. Without such a solution the stream is broken.
///
/// Threads: push, finish, reset and the destructor are calls of one thread at a time, the owner. Without workers, so
/// are all others, and a window is decoded in the call that completes it. With workers poll, wait_committed,
/// committed_rounds, pushed_rounds, pushed_bits, windows and statistics may be called by any thread at any time. No
/// call prints, aborts or throws. push allocates nothing of its own.
class CUDAQ_QEC_DECODING_API stream_decoder {
public:
  virtual ~stream_decoder();
  stream_decoder(const stream_decoder &) = delete;
  stream_decoder &operator=(const stream_decoder &) = delete;

  /// The next `count` bits: one for each detector, in ascending order, bit k % 8 of byte k / 8; any number, also parts
  /// of rounds. buffer_too_small: fewer bytes than that; nothing was taken. After the first status of a window that is
  /// not ok the stream is broken: every call returns it until reset(), and no further round becomes final.
  ///
  /// With workers: copies the bits and does not wait for a decode. busy: more rounds than queue_rounds would be kept;
  /// nothing was taken, push the same bits again later. To wait for that, read committed_rounds() before the push, and
  /// wait for one round more: a number that is read after it may be the last one until further bits come.
  /// not_supported: more bits than can ever be taken at once (at least those of a repetition can). The status of a
  /// window that fails is that of a later call.
  [[nodiscard]] decode_status push(std::span<const std::uint8_t> bits, std::uint64_t count) noexcept {
    return push(bits, count, {});
  }

  /// The bits of the tail, after a whole repetition: the experiment ends, and all rounds become final.
  /// stream_misaligned: not tail_detectors() bits, or the loop is not at the end of a repetition; nothing was taken.
  /// With workers: does not wait; wait_committed or poll says when the end is final. Never busy.
  [[nodiscard]] decode_status finish(std::span<const std::uint8_t> bits, std::uint64_t count) noexcept {
    return finish(bits, count, {});
  }

  /// The same, with values of a readout: any number of the next ones, with their bits or before them. A window needs a
  /// value of each measurement that flips one of its detectors if it is misread, and the flags of its errors: a push
  /// that completes a window brings the last of them. So values that come with the bits of their round are never late.
  ///
  /// Refused besides what push and finish refuse, with the reason in fault(); nothing was taken, the stream goes on.
  /// not_supported: values without a table, of a kind that its calibrations do not take or that is not the one of the
  /// values before, or of rounds that are more than about a window away. buffer_too_small: fewer bytes than values;
  /// values of a complete window are missing; at the end there are not as many as the experiment has. bad_probability:
  /// a flag is 3. A value that is not finite, of a measurement that the table uses, breaks the stream with
  /// bad_probability in its window.
  [[nodiscard]] virtual decode_status push(std::span<const std::uint8_t> bits, std::uint64_t count,
                                           const stream_values &known) noexcept = 0;
  [[nodiscard]] virtual decode_status finish(std::span<const std::uint8_t> bits, std::uint64_t count,
                                             const stream_values &known) noexcept = 0;
  /// What the table has; all 0 without a table.
  [[nodiscard]] virtual stream_values_info values_info() const noexcept = 0;

  /// Back to the beginning of the head. The next stream begins. With workers: windows that have not begun are dropped,
  /// and it waits for those that have. The destructor does the same.
  virtual void reset() noexcept = 0;

  /// What is final. `observables`: empty, or at least (num_observables() + 7) / 8 bytes for a copy of observables()
  /// that belongs to committed_rounds; else the status is buffer_too_small.
  [[nodiscard]] virtual stream_progress poll(std::span<std::uint8_t> observables = {}) const noexcept = 0;

  /// The same, as soon as `round` rounds are final, or nothing more will become final, or the deadline has passed.
  /// Without workers: at once. Returns early also after reset().
  [[nodiscard]] virtual stream_progress wait_committed(std::uint64_t round,
                                                       std::chrono::steady_clock::time_point deadline,
                                                       std::span<std::uint8_t> observables = {}) const noexcept = 0;

  /// Whether each observable is flipped by the errors found in the first committed_rounds() rounds. Observable k: bit k
  /// % 8 of byte k / 8. Valid until the next call that is not const. With workers: only after poll() or
  /// wait_committed() said that the stream is final or broken.
  [[nodiscard]] virtual std::span<const std::uint8_t> observables() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t committed_rounds() const noexcept = 0;
  /// Rounds of which all bits have come, and all bits of them and of the round that is not complete.
  [[nodiscard]] virtual std::uint64_t pushed_rounds() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t pushed_bits() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t windows() const noexcept = 0; ///< decoded
  [[nodiscard]] virtual stream_statistics statistics() const noexcept = 0;
  /// After a call returned a status that breaks the stream: the window, and what its decoder's fault() says, such as
  /// "window 3: plug-in x: ..."; "" if nothing is known. Valid until reset(), which no other thread may call meanwhile.
  /// After the owner's push or finish refused values: what is wrong with them, for the owner, until its next call.
  [[nodiscard]] virtual const char *fault() const noexcept = 0;

  /// The model: detectors of the head, of a repetition and of the tail.
  [[nodiscard]] virtual std::uint64_t head_detectors() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t body_detectors() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t tail_detectors() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t num_observables() const noexcept = 0;
  /// Whether windows are parallel.
  [[nodiscard]] virtual bool is_parallel() const noexcept = 0;
  /// Windows, in words: "commit 5 and buffer 5 rounds (distance 5); a repetition has 48 detectors in 2 rounds;
  /// pymatching; sequential". If `auto` did not take its first choice, last why: "; auto took bp-osd, because ...".
  [[nodiscard]] virtual const std::string &description() const noexcept = 0;

protected:
  stream_decoder() = default;
};

/// The result of the factory: a decoder, or an error text.
struct stream_result {
  std::unique_ptr<stream_decoder> instance;
  std::string error;
  bool machine_lacks = false; ///< as in decoder_result
  explicit operator bool() const noexcept { return instance != nullptr; }
};

/// Makes a decoder for a model in Stim's text format; may be called from any thread. All windows of long streams are
/// built here, so it takes a while. A stream of fewer rounds than a few windows builds its last window in finish() (a
/// worker does it, if there are any), and so does one whose commit is much longer than a repetition.
///
/// Parallel windows (L. Skoric et al., arXiv 2209.08552; X. Tan et al., arXiv 2209.09219) are refused if commit is less
/// than the rounds that one error reaches over, for errors with more than two detectors, and for models without a
/// boundary, such as toric codes: a window between two others might have no solution.
[[nodiscard]] CUDAQ_QEC_DECODING_API stream_result make_stream_decoder(std::string_view dem_text,
                                                                       const stream_options &options);

} // namespace cudaq::qec::realtime

#endif

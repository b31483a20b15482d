/* SPDX-License-Identifier: Apache-2.0 */
// Decoders for detector error models: detection events in, flipped logical observables out. C++20. Link
// cudaq::qec-decoding.
//
//   decoder_result made = make_decoder("pymatching", dem_text);
//   if (!made)
//     return report(made.error);
//   decode_status status = made.instance->decode(events, observables);
//
// Which decoder for which model, their accuracy and their limits: docs/decoding.md. A decoder of your own: a plug-in
// (decoder_plugin.h), or a class that derives from `decoder`.
#ifndef CUDAQ_QEC_DECODING_DECODER_H
#define CUDAQ_QEC_DECODING_DECODER_H

#include "cudaq/qec/decoding/decode_status.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(__GNUC__)
#define CUDAQ_QEC_DECODING_API __attribute__((visibility("default")))
#else
#define CUDAQ_QEC_DECODING_API
#endif

namespace cudaq::qec::realtime {

/// Static text of a status, never null.
CUDAQ_QEC_DECODING_API const char *decode_status_text(decode_status status) noexcept;

/// The same, and for internal_error what a decoder or a stream knows about it: their fault(), which may be "". Throws
/// std::bad_alloc.
CUDAQ_QEC_DECODING_API std::string decode_status_text(decode_status status, const char *fault);

/// The second end of an edge to the boundary.
inline constexpr std::uint64_t kBoundary = UINT64_MAX;

/// One edge of a correction: an error that flips these two detectors, or one detector (second == kBoundary).
struct correction_edge {
  std::uint64_t first;
  std::uint64_t second;
};

/// The deadline of a decode without a deadline.
inline constexpr std::uint64_t kNoDeadline = UINT64_MAX;

/// What ends a decode before its own end. Decoders with obeys_deadline() look at both after each iteration or step,
/// and end when the next step would end after the deadline; the others ignore both.
struct decode_control {
  /// Nanoseconds of CLOCK_MONOTONIC, the clock of std::chrono::steady_clock.
  std::uint64_t deadline_ns = kNoDeadline;
  /// Null, or a word that ends the decode when it is not 0; cancel_decode sets it. The caller owns it, and clears it
  /// while no decode uses it.
  const std::uint32_t *cancel = nullptr;
};

/// Ends the decodes whose control has this word, each after the iteration or step that it is in. Any thread.
CUDAQ_QEC_DECODING_API void cancel_decode(std::uint32_t &word) noexcept;

/// Decodes of an instance that had a deadline.
struct deadline_counts {
  std::uint64_t met = 0;    ///< ended before it, with any status but `deadline`
  std::uint64_t missed = 0; ///< all others
  std::uint64_t late = 0;   ///< of these: ended after it, but not with the status `deadline`: the decoder ignored it

  deadline_counts &operator+=(const deadline_counts &more) noexcept {
    met += more.met;
    missed += more.missed;
    late += more.late;
    return *this;
  }
};

/// The probability that an error of the model has in one shot.
struct error_probability {
  std::uint64_t error; ///< the number of its instruction, as decode_details::errors counts them
  double probability;  ///< 0 to 1
};

/// What a shot knows besides its events: errors whose probability is another one in this shot, each at most once, in
/// any order. All others have the probability of the model. docs/decoders/shot_probabilities.md
using shot_probabilities = std::span<const error_probability>;

/// What a decode can give besides the observables, and what may end it early.
struct decode_details {
  /// In: room for the edges of the correction; empty: no edges are wanted. num_detectors edges always suffice for a
  /// matching with positive weights.
  std::span<correction_edge> edges = {};
  /// Out: edges written. The sum of the edges causes exactly the events of the shot; no edge is listed twice. (Of a
  /// plug-in it is not checked that each edge is an error of the model, and listed once.)
  std::size_t num_edges = 0;
  /// Out: sum of log((1 - p) / p) over the errors of the correction; NaN if the decoder does not give it. With an error
  /// status it is NaN, and num_edges is 0.
  double weight = std::numeric_limits<double>::quiet_NaN();
  /// In.
  decode_control control = {};
  /// Out: the observables are those of a set of errors that causes the events. True with the status ok; with `deadline`
  /// if there is a best solution so far. Else the observables are 0.
  bool has_solution = false;
  /// Out: the decode had a deadline and ended after it with another status than `deadline`: the decoder ignores
  /// deadlines, or its last step was longer than expected. The answer is the same as in time.
  bool is_late = false;
  /// In: room for the errors of the correction; empty: they are not wanted. num_errors() of the decoder always suffice.
  std::span<std::uint64_t> errors = {};
  /// Out: errors written, ascending: the numbers of the model's error instructions, from 0 in the order of the text,
  /// with all loops unrolled. Their sum mod 2 causes exactly the events of the shot, and flips the observables of the
  /// answer. Of equal errors it is the likeliest. Without a solution 0.
  std::size_t num_errors = 0;
  /// In: room for the gap of each observable, num_observables() of them; empty: they are not wanted. Out: by how much
  /// the lightest correction in which this observable has its other value is heavier than the answer, as a difference
  /// of weights (natural logarithms): the larger, the surer is the answer. At least 0. Infinite: no errors cause the
  /// events with the other value. NaN: not known, because the search for it reached the deadline, was cancelled or
  /// did not converge; with any status but ok all are NaN. The observables are those of a decode without gaps. Which
  /// decoders give exact gaps: docs/decoders/confidence.md. With gaps and without edges, `weight` is NaN if the decoder
  /// matches and a part of the model flips no observable: that part is not decoded.
  std::span<double> gaps = {};
  /// Out: of a race the member whose answer it is, with its settings; valid as long as the decoder. Else null.
  const char *winner = nullptr;
};

/// A decoder for one detector error model.
///
/// Threads: an instance has scratch memory, so each thread needs its own; there may be any number. No call prints,
/// aborts or throws. "bp-osd" and "lookup" allocate nothing while they decode; PyMatching does. After an error status
/// the instance works as before: it decodes the next correct shot correctly. Bits: detector (observable) k is bit k % 8
/// of byte k / 8, as in Stim's format b8.
class CUDAQ_QEC_DECODING_API decoder {
public:
  virtual ~decoder();
  decoder(const decoder &) = delete;
  decoder &operator=(const decoder &) = delete;

  /// Decodes one shot.
  ///
  /// `events`: the indices of the detectors that fired, each once, in any order. The answer does not depend on the
  /// order; ascending order saves a sort. May be empty. `observables`: at least observable_bytes() bytes. Unused bits
  /// of the last byte are 0, later bytes are not written. With an error status the observable bytes are 0 (if they are
  /// too few: buffer_too_small, and not written). `observables` may be in the memory of `events`, as in a slot whose
  /// answer takes the place of its request.
  [[nodiscard]] decode_status decode(std::span<const std::uint64_t> events,
                                     std::span<std::uint8_t> observables) noexcept;

  /// The same, with weight, edges and errors. `details.edges` empty: as above, and the weight. Else the decoder must
  /// give edges (gives_edges(), else not_supported); buffer_too_small: more edges than room, all observable bytes are
  /// 0. `details.errors` and gives_errors() in the same way. `details.gaps` not empty: refuses_gaps() must be null,
  /// else not_supported; buffer_too_small: fewer than num_observables().
  [[nodiscard]] decode_status decode(std::span<const std::uint64_t> events, std::span<std::uint8_t> observables,
                                     decode_details &details) noexcept;

  /// The same for a shot with one bit per detector. `events`: at least event_bytes() bytes, else buffer_too_small. A
  /// set bit after the last detector: bad_detector_index.
  [[nodiscard]] decode_status decode_bits(std::span<const std::uint8_t> events,
                                          std::span<std::uint8_t> observables) noexcept;
  [[nodiscard]] decode_status decode_bits(std::span<const std::uint8_t> events, std::span<std::uint8_t> observables,
                                          decode_details &details) noexcept;

  /// The same for a shot that replaces probabilities: the answer is that of a decoder that was made for it alone.
  /// Probabilities outside smallest_probability() to 1 - smallest_probability() count as the nearer of the two. The
  /// next decode has those of the model again. `details`: null, or as above. not_supported: refuses_probabilities() has
  /// the reason; bad_probability: fault() says which one and why. An empty list: the decode without it.
  [[nodiscard]] decode_status decode(std::span<const std::uint64_t> events, std::span<std::uint8_t> observables,
                                     shot_probabilities probabilities, decode_details *details = nullptr) noexcept;
  [[nodiscard]] decode_status decode_bits(std::span<const std::uint8_t> events, std::span<std::uint8_t> observables,
                                          shot_probabilities probabilities, decode_details *details = nullptr) noexcept;

  /// Decodes shots with one bit per detector. Shot i is row i of `events` (rows of event_bytes() bytes); its answer is
  /// row i of `observables` (rows of observable_bytes() bytes). The two must not overlap. `statuses`: one per shot, or
  /// empty. A shot with an error does not stop the others. Returns the first status that is not ok. buffer_too_small,
  /// and nothing written: a span is shorter than the shots need.
  [[nodiscard]] decode_status decode_batch(std::size_t shots, std::span<const std::uint8_t> events,
                                           std::span<std::uint8_t> observables,
                                           std::span<decode_status> statuses = {}) noexcept;

  /// The same with the gaps of each shot: shot i has row i of `gaps`, rows of num_observables().
  [[nodiscard]] decode_status decode_batch(std::size_t shots, std::span<const std::uint8_t> events,
                                           std::span<std::uint8_t> observables, std::span<decode_status> statuses,
                                           std::span<double> gaps) noexcept;

  [[nodiscard]] std::uint64_t num_detectors() const noexcept { return num_detectors_; }
  [[nodiscard]] std::uint64_t num_observables() const noexcept { return num_observables_; }
  [[nodiscard]] std::size_t event_bytes() const noexcept { return static_cast<std::size_t>((num_detectors_ + 7) / 8); }
  [[nodiscard]] std::size_t observable_bytes() const noexcept {
    return static_cast<std::size_t>((num_observables_ + 7) / 8);
  }
  /// The decoder's name, without its settings; valid as long as the instance.
  [[nodiscard]] virtual const char *name() const noexcept = 0;
  /// Whether decode can give the edges of its correction.
  [[nodiscard]] virtual bool gives_edges() const noexcept;

  /// The error instructions of the model with all loops unrolled, if decode can give the errors of its correction, also
  /// those that flip more than two detectors; else 0.
  [[nodiscard]] virtual std::uint64_t num_errors() const noexcept;
  [[nodiscard]] bool gives_errors() const noexcept { return num_errors() != 0; }

  /// Of a race: its members with their settings, and how many answers each has given; else empty. For the thread that
  /// decodes.
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::uint64_t>> wins() const;

  /// Of a race: how many decodes of its members have ended with internal_error so far, also of shots that another
  /// member has answered; fault() says what was wrong in one of the last. Else 0. For the thread that decodes.
  [[nodiscard]] virtual std::uint64_t member_faults() const noexcept;

  /// Whether decodes end at their deadline, and when they are cancelled. Of a decoder that ignores both, decodes that
  /// end too late are counted only.
  [[nodiscard]] virtual bool obeys_deadline() const noexcept;
  /// From now on each decode without a deadline of its own gets one: this time after its begin. 0: none. The setting
  /// deadline_us of every decoder.
  void set_budget(std::uint64_t budget_ns) noexcept { budget_ns_ = budget_ns; }
  /// For the thread that decodes.
  [[nodiscard]] const deadline_counts &deadlines() const noexcept { return deadlines_; }
  /// decode_details::has_solution of the last decode.
  [[nodiscard]] bool has_solution() const noexcept { return has_solution_; }
  /// decode_details::is_late of the last decode.
  [[nodiscard]] bool is_late() const noexcept { return is_late_; }
  /// What was wrong in the last decode that returned internal_error or bad_probability, if the decoder knows it; else
  /// "". Of a race: in
  /// the last one of a member. Of a plug-in: the promise of decoder_plugin.h that it broke, with the values. Valid
  /// until the next decode. For the thread that decodes.
  [[nodiscard]] virtual const char *fault() const noexcept;

  /// Null if a shot may replace probabilities; else the reason why not, a text that is valid as long as the decoder.
  [[nodiscard]] virtual const char *refuses_probabilities() const noexcept;
  /// The setting smallest_probability of decoders that take them; else 0.
  [[nodiscard]] virtual double smallest_probability() const noexcept;

  /// Null if decode can give the gaps of the observables: of decoders that were made with the setting confidence=1.
  /// Else the reason why not, a text that is valid as long as the decoder.
  [[nodiscard]] virtual const char *refuses_gaps() const noexcept;

protected:
  /// Throws std::bad_alloc.
  decoder(std::uint64_t num_detectors, std::uint64_t num_observables);

  /// Decodes a shot that was checked: `events` are in range, ascending and without duplicates, `observables` has
  /// exactly observable_bytes() bytes, all 0. On return only bits of observables may be set. `details` is null if only
  /// the observables are wanted; its edges are empty unless gives_edges(), its errors unless gives_errors(), its gaps
  /// unless refuses_gaps() is null: then there is room for all of them, and all are NaN. With
  /// obeys_deadline() it may also be for its control alone. With the status `deadline`, has_solution is set if there is
  /// a solution. Must not throw.
  virtual decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                                       decode_details *details) noexcept = 0;

  /// Before decode_checked of a shot with probabilities, which are not empty: takes them, or returns bad_probability
  /// (or internal_error) and changes nothing. Only if refuses_probabilities() is null. Must not throw.
  virtual decode_status replace_probabilities(shot_probabilities probabilities) noexcept;
  /// After it: all errors have the probabilities of the model again.
  virtual void restore_probabilities() noexcept;

private:
  decode_status take_events(std::span<const std::uint64_t> events) noexcept;
  decode_status take_bits(std::span<const std::uint8_t> events) noexcept;
  bool start(std::span<std::uint8_t> observables, decode_details *details) noexcept;
  bool supports(const decode_details *details, shot_probabilities probabilities = {}) const noexcept;
  void count_deadline(decode_status status, std::uint64_t deadline_ns) noexcept;
  decode_status decode_taken(decode_status taken, std::span<std::uint8_t> observables, decode_details *details,
                             shot_probabilities probabilities = {}) noexcept;
  decode_status decode_with(std::span<std::uint8_t> observables, decode_details *details,
                            shot_probabilities probabilities) noexcept;

  std::uint64_t num_detectors_;
  std::uint64_t num_observables_;
  std::uint64_t budget_ns_ = 0;
  deadline_counts deadlines_;
  bool has_solution_ = false, is_late_ = false;
  std::vector<std::uint64_t> events_; ///< room for num_detectors_: never grows while decoding
};

/// The result of a factory: a decoder, or an error text.
struct decoder_result {
  std::unique_ptr<decoder> instance;
  std::string error;
  /// Of an error: this machine, or this build, lacks something, such as a GPU or memory. The same name and model may be
  /// good elsewhere or later.
  bool machine_lacks = false;
  explicit operator bool() const noexcept { return instance != nullptr; }
};

/// Makes a decoder for a model. `dem_text`: a detector error model in Stim's text format. `name`: a name of
/// decoder_names(), "auto", or the path of a plug-in: a name with a `/` or with the end `.so`. "auto" is pymatching if
/// this library was built with it, else lookup; it is bp-osd for a model that the first choice refuses. Settings may
/// follow, after `.so:` or the first `:`: "bp-osd:osd_order=7,max_iterations=60". Several decoders on the same shot:
/// "race:relay-bp|bp-osd(osd_order=0),mode=first". Known to every decoder: `predecoder=NAME`, which runs before it
/// (`local` before pymatching only), `heralds=FILE` (heralds.h), and `deadline_us=N`: set_budget. docs/decoding.md
/// lists the settings.
///
/// Threads: may be called from any thread. A plug-in is loaded at the first use and unloaded after its last decoder.
/// The error text says what is wrong, with the line of the model, and which decoder takes such a model.
[[nodiscard]] CUDAQ_QEC_DECODING_API decoder_result make_decoder(std::string_view name, std::string_view dem_text);

/// The names of the decoders that this library was built with, without "auto", "race", "sliding-window",
/// "relay-bp-gpu" and "model-gpu".
[[nodiscard]] CUDAQ_QEC_DECODING_API std::vector<std::string> decoder_names();

/// Whether this library was built with PyMatching, and PyMatching's version ("" without it).
[[nodiscard]] CUDAQ_QEC_DECODING_API bool pymatching_available() noexcept;
[[nodiscard]] CUDAQ_QEC_DECODING_API const char *pymatching_version() noexcept;

} // namespace cudaq::qec::realtime

#endif

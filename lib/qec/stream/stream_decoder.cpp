// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/decoding/stream.h"

#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/decoding/event_bits.h"
#include "lib/qec/stream/code_distance.h"
#include "lib/qec/stream/repeating_model.h"
#include "lib/qec/stream/window_model.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

/// The repetitions of the model that is searched for the distance of the code, and for what no window can take.
constexpr std::uint64_t kFewRepetitions = 3;

/// Of all windows of one kind, built in advance.
constexpr std::uint64_t kMostDetectors = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostRounds = std::uint64_t{1} << 20; ///< of a window

constexpr std::uint64_t kMostUnrolled = std::uint64_t{1} << 26; ///< detectors, of all windows until they repeat

/// One window with its decoder.
struct window {
  window_model model;
  std::unique_ptr<decoder> inner;
};

/// Thrown inside this file; make_stream_decoder turns it into an error text.
struct stream_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The windows of a model. Window j begins at round j * commit. Late windows repeat: they are like the one a whole
/// number of repetitions earlier.
class window_set {
public:
  window_set(repeating_model model, std::string decoder, std::uint64_t commit, std::uint64_t buffer)
      : model_(std::move(model)), decoder_(std::move(decoder)), commit_(commit), buffer_(buffer),
        common_(std::lcm(commit, body())) {
    const auto parsed = decoder_name::parse(decoder_);
    if (parsed.failed())
      throw stream_error(parsed.text());
    if (parsed->name == "bp-osd" || parsed->name == "relay-bp")
      form_ = error_form::whole;
    else if (parsed->name != "pymatching" && parsed->name != "lookup" && parsed->name != "auto")
      form_ = error_form::joined;
    const std::uint64_t detectors = model_.first_detector(head() + commit_ + buffer_); // of a window, about
    if (common_ / commit_ > kMostDetectors / detectors)
      throw stream_error("commit " + std::to_string(commit_) + " and a repetition of " + std::to_string(body()) +
                         " rounds begin together only every " + std::to_string(common_) +
                         " rounds, which needs too many windows: choose a multiple or a divisor");
    find_steady();
    for (std::uint64_t j = 0; j < steady_ + common_ / commit_; ++j)
      regular_.push_back(build(rounds_of(j), repetitions_for(rounds_of(j).end)));
    // Of the last windows of long streams: one for each number of repetitions until the lines repeat. If that is too
    // much, finish() builds the one that it needs.
    for (std::uint64_t k = 0; k < common_ / body() && common_ / body() <= kMostDetectors / detectors; ++k)
      static_cast<void>(last(first_steady_end_ + k));
  }

  const repeating_model &model() const noexcept { return model_; }
  std::uint64_t commit() const noexcept { return commit_; }
  std::uint64_t buffer() const noexcept { return buffer_; }

  window_rounds rounds_of(std::uint64_t j) const noexcept {
    return {j * commit_, j * commit_, (j + 1) * commit_, (j + 1) * commit_ + buffer_};
  }
  /// Window j of a stream that goes on.
  window &regular(std::uint64_t j) noexcept {
    const std::uint64_t period = common_ / commit_;
    return *regular_[j < steady_ + period ? j : steady_ + (j - steady_) % period];
  }
  /// The window number of the last window of a stream with these repetitions: of the first that would need rounds of
  /// the tail.
  std::uint64_t last_number(std::uint64_t repetitions) const noexcept {
    const std::uint64_t end = head() + repetitions * body();
    return end < commit_ + buffer_ ? 0 : (end - buffer_) / commit_;
  }
  /// The last window of a stream with these repetitions. May build it, and throw.
  window &last(std::uint64_t repetitions) {
    const std::uint64_t period = common_ / body();
    if (repetitions >= first_steady_end_ + period)
      repetitions = first_steady_end_ + (repetitions - first_steady_end_) % period;
    std::unique_ptr<window> &made = last_[repetitions];
    if (made == nullptr) {
      const std::uint64_t begin = last_number(repetitions) * commit_;
      const std::uint64_t end = head() + repetitions * body() + model_.tail().size();
      made = build({begin, begin, end, end}, repetitions);
    }
    return *made;
  }

private:
  std::uint64_t head() const noexcept { return model_.head().size(); }
  std::uint64_t body() const noexcept { return model_.body().size(); }
  /// Repetitions after which no error of the tail touches rounds before `end`.
  std::uint64_t repetitions_for(std::uint64_t end) const noexcept {
    return (end + 2 * model_.reach() + body()) / body() + 1;
  }

  window_model text_of(window_rounds rounds, std::uint64_t repetitions) const {
    auto unrolled = model_.unrolled(repetitions);
    if (unrolled.ok() && form_ != error_form::whole)
      unrolled = place_observables(std::move(*unrolled));
    if (unrolled.failed())
      throw stream_error("a window of " + std::to_string(rounds.end - rounds.begin) + " rounds: " + unrolled.text());
    const std::vector<std::uint64_t> round_of = model_.rounds(repetitions);
    if (round_of.size() != unrolled->num_detectors)
      throw stream_error("the repetitions of the loop are not alike: with " + std::to_string(repetitions) +
                         " of them the model has " + std::to_string(unrolled->num_detectors) + " detectors, not " +
                         std::to_string(round_of.size()));
    return make_window_model(*unrolled, round_of, rounds, form_);
  }

  std::unique_ptr<window> build(window_rounds rounds, std::uint64_t repetitions) const {
    auto made = std::make_unique<window>();
    made->model = text_of(rounds, repetitions);
    decoder_result inner = make_decoder(decoder_, made->model.text);
    if (!inner)
      throw stream_error(inner.error);
    made->inner = std::move(inner.instance);
    return made;
  }

  /// Finds the first window that is like the one `common_` rounds later. The head has an influence on a few windows.
  void find_steady() {
    const std::uint64_t most = (head() + 2 * model_.reach() + 2 * body()) / commit_ + 2;
    const auto later = [&](window_rounds rounds) {
      return window_rounds{rounds.begin + common_, rounds.commit_begin + common_, rounds.commit_end + common_,
                           rounds.end + common_};
    };
    // The head may name detectors of later rounds; windows repeat after them only.
    const auto alone = model_.unrolled(0);
    const std::uint64_t named = alone.ok() && alone->num_detectors > model_.rounds(0).size() ? alone->num_detectors : 0;
    const std::uint64_t detectors = model_.first_detector(head() + commit_ + buffer_);
    for (steady_ = 0;; ++steady_) {
      if (steady_ > kMostUnrolled / detectors)
        throw stream_error("the head of the model has " + std::to_string(head()) +
                           " rounds, which needs too many windows: choose a larger commit");
      if (steady_ > most)
        throw stream_error("the repetitions of the loop are not alike: errors of the head name detectors far after it");
      const window_rounds here = rounds_of(steady_), there = later(here);
      if (here.begin >= head() && model_.first_detector(here.begin) >= named &&
          text_of(here, repetitions_for(there.end)).text == text_of(there, repetitions_for(there.end)).text)
        break;
    }
    // The last window of a stream with these repetitions begins at or after the first steady window.
    first_steady_end_ = (steady_ * commit_ + commit_ + buffer_ + body() - 1) / body() + 1;
  }

  const repeating_model model_;
  const std::string decoder_;
  const std::uint64_t commit_, buffer_;
  const std::uint64_t common_; ///< rounds after which both windows and repetitions begin again
  error_form form_ = error_form::components;
  std::uint64_t steady_ = 0;           ///< the first window that repeats
  std::uint64_t first_steady_end_ = 0; ///< repetitions
  std::vector<std::unique_ptr<window>> regular_;
  std::map<std::uint64_t, std::unique_ptr<window>> last_; ///< by repetitions
};

/// The bits of the detectors that are not final, in a ring.
class bit_ring {
public:
  explicit bit_ring(std::uint64_t detectors) : words_(std::bit_ceil(detectors / 64 + 2)) {}

  void flip(std::uint64_t detector) noexcept { word(detector / 64) ^= std::uint64_t{1} << (detector % 64); }

  /// Calls take(detector) for each set bit of [begin, end), ascending, and clears it.
  template <typename Take>
  void take(std::uint64_t begin, std::uint64_t end, const Take &take_one) noexcept {
    for (std::uint64_t at = begin / 64; at * 64 < end; ++at) {
      std::uint64_t bits = word(at) & mask(at, begin, end);
      word(at) ^= bits;
      for (; bits != 0; bits &= bits - 1)
        take_one(at * 64 + static_cast<std::uint64_t>(std::countr_zero(bits)));
    }
  }
  void clear() noexcept { std::ranges::fill(words_, std::uint64_t{0}); }

private:
  std::uint64_t &word(std::uint64_t at) noexcept { return words_[at & (words_.size() - 1)]; }
  /// The bits of word `at` that belong to [begin, end).
  static std::uint64_t mask(std::uint64_t at, std::uint64_t begin, std::uint64_t end) noexcept {
    std::uint64_t bits = ~std::uint64_t{0};
    if (begin > at * 64)
      bits <<= begin - at * 64;
    if (end < at * 64 + 64)
      bits &= (std::uint64_t{1} << (end - at * 64)) - 1;
    return bits;
  }
  std::vector<std::uint64_t> words_;
};

/// Windows one after another.
class sequential_stream final : public stream_decoder {
public:
  sequential_stream(window_set windows, std::string description)
      : windows_(std::move(windows)), description_(std::move(description)), head_(model().head_detectors()),
        body_(model().body_detectors()), tail_(model().tail_detectors()), ring_(most_detectors()),
        observables_((num_observables() + 7) / 8) {
    events_.reserve(most_detectors());
    reset();
  }

  decode_status push(std::span<const std::uint8_t> bits, std::uint64_t count) noexcept override {
    if (status_ != decode_status::ok)
      return status_;
    if (is_finished_)
      return decode_status::stream_misaligned;
    if (bits.size() < count / 8 + (count % 8 != 0))
      return decode_status::buffer_too_small;
    for (std::uint64_t from = 0; from < count;) {
      const std::uint64_t part = std::min(count - from, window_end_ - bits_);
      store(bits, from, part);
      from += part;
      if (bits_ == window_end_ && (status_ = decode(windows_.regular(number_))) != decode_status::ok)
        return status_;
    }
    return decode_status::ok;
  }

  decode_status finish(std::span<const std::uint8_t> bits, std::uint64_t count) noexcept override {
    if (status_ != decode_status::ok)
      return status_;
    if (is_finished_ || count != tail_ || bits_ < head_ || (bits_ - head_) % body_ != 0)
      return decode_status::stream_misaligned;
    if (bits.size() < count / 8 + (count % 8 != 0))
      return decode_status::buffer_too_small;
    const std::uint64_t repetitions = (bits_ - head_) / body_;
    try {
      window &last = windows_.last(repetitions);
      store(bits, 0, count);
      is_finished_ = true;
      status_ = decode(last);
    } catch (...) { // out of memory, or a model that the decoder refuses only at this length
      status_ = decode_status::internal_error;
    }
    return status_;
  }

  void reset() noexcept override {
    ring_.clear();
    std::ranges::fill(observables_, std::uint8_t{0});
    status_ = decode_status::ok;
    is_finished_ = false;
    bits_ = number_ = decoded_ = 0;
    window_end_ = model().first_detector(windows_.rounds_of(0).end);
  }

  std::span<const std::uint8_t> observables() const noexcept override { return observables_; }
  std::uint64_t committed_rounds() const noexcept override {
    return is_finished_ && status_ == decode_status::ok ? pushed_rounds() : number_ * windows_.commit();
  }
  std::uint64_t pushed_rounds() const noexcept override {
    if (is_finished_)
      return model().head().size() + (bits_ - head_ - tail_) / body_ * model().body().size() + model().tail().size();
    return model().round_of(bits_);
  }
  std::uint64_t pushed_bits() const noexcept override { return bits_; }
  std::uint64_t windows() const noexcept override { return decoded_; }
  std::uint64_t head_detectors() const noexcept override { return head_; }
  std::uint64_t body_detectors() const noexcept override { return body_; }
  std::uint64_t tail_detectors() const noexcept override { return tail_; }
  std::uint64_t num_observables() const noexcept override { return model().num_observables(); }
  const std::string &description() const noexcept override { return description_; }

private:
  const repeating_model &model() const noexcept { return windows_.model(); }

  /// Detectors that are stored at the same time: of a window, and of the tail.
  std::uint64_t most_detectors() const {
    const std::uint64_t rounds = windows_.commit() + windows_.buffer() + model().body().size();
    return model().first_detector(model().head().size() + rounds) + model().tail_detectors();
  }

  /// Takes bits [from, from + count) of a push.
  void store(std::span<const std::uint8_t> bits, std::uint64_t from, std::uint64_t count) noexcept {
    for (std::uint64_t k = from; k < from + count;) {
      const std::uint64_t in_byte = std::min<std::uint64_t>(8 - k % 8, from + count - k);
      std::uint32_t byte = std::uint32_t{bits[k / 8]} >> (k % 8) & ((1U << in_byte) - 1);
      for (; byte != 0; byte &= byte - 1)
        ring_.flip(bits_ + static_cast<std::uint64_t>(std::countr_zero(byte)));
      bits_ += in_byte;
      k += in_byte;
    }
  }

  /// Decodes window number_ and goes on to the next one.
  decode_status decode(window &of) noexcept {
    const window_model &m = of.model;
    const window_rounds rounds = windows_.rounds_of(number_);
    const std::uint64_t first = model().first_detector(rounds.begin), end = first + m.num_detectors;
    const std::uint64_t line = is_finished_ ? end : model().first_detector(rounds.commit_end);
    events_.clear();
    std::uint8_t parities = 0;
    ring_.take(first, end, [&](std::uint64_t detector) {
      const std::uint64_t k = detector - first;
      if (m.is_needed[k] == 0)
        return;
      events_.push_back(k);
      parities ^= m.parities[k];
    });
    // Events beyond the line come again in the next window.
    for (auto at = std::ranges::lower_bound(events_, line - first); at != events_.end(); ++at)
      ring_.flip(first + *at);
    answer_.resize(of.inner->observable_bytes()); // grows in the first windows
    const decode_status status = of.inner->decode(events_, answer_);
    if (status != decode_status::ok)
      return status;
    const auto bit = [&](std::uint64_t k) { return (answer_[k / 8] >> (k % 8) & 1) != 0; };
    const std::uint64_t first_parity = m.num_observables + m.crossings.size();
    for (std::uint64_t j = 0; j < window_model::kParities; ++j)
      if (bit(first_parity + j) != ((parities >> j & 1) != 0))
        return decode_status::internal_error; // the correction does not explain the events
    for (std::uint64_t k = 0; k < m.num_observables; ++k)
      if (bit(k))
        observables_[k / 8] = static_cast<std::uint8_t>(observables_[k / 8] ^ 1U << k % 8);
    for (std::size_t k = 0; k < m.crossings.size(); ++k)
      if (bit(m.num_observables + k))
        ring_.flip(first + m.crossings[k]);
    ++decoded_;
    ++number_;
    window_end_ = model().first_detector(windows_.rounds_of(number_).end);
    return decode_status::ok;
  }

  window_set windows_;
  const std::string description_;
  const std::uint64_t head_, body_, tail_; ///< detectors
  bit_ring ring_;
  std::vector<std::uint8_t> observables_;
  std::vector<std::uint64_t> events_;
  std::vector<std::uint8_t> answer_;
  decode_status status_ = decode_status::ok;
  bool is_finished_ = false;
  std::uint64_t bits_ = 0;       ///< that have come
  std::uint64_t number_ = 0;     ///< of the next window
  std::uint64_t window_end_ = 0; ///< the first detector after it
  std::uint64_t decoded_ = 0;    ///< windows
};

stream_result made_or_throw(std::string_view dem_text, const stream_options &options) {
  const auto rule = round_rule::parse(options.rounds);
  if (rule.failed())
    throw stream_error(rule.text());
  auto model = repeating_model::parse(dem_text, *rule);
  if (model.failed())
    throw stream_error(model.text());
  const auto short_model = model->unrolled(kFewRepetitions);
  if (short_model.failed())
    throw stream_error(short_model.text());
  for (const dem_component &c : short_model->components)
    if (c.detectors == 0 && c.probability > 0.5)
      throw stream_error("line " + std::to_string(c.line) +
                         ": a component without detectors and a probability above 1/2 flips observables in every "
                         "repetition; no window can take it");
  std::uint64_t distance = 0;
  if (options.commit == 0 || options.buffer == 0) {
    distance = code_distance(*short_model);
    if (distance == 0)
      throw stream_error("the distance of the code is not known (no error chain of at most two detectors an error "
                         "flips an observable): give commit and buffer in rounds");
  }
  const std::uint64_t commit = options.commit != 0 ? options.commit : distance;
  const std::uint64_t buffer = options.buffer != 0 ? options.buffer : std::max(distance, model->reach());
  if (commit > kMostRounds || buffer > kMostRounds)
    throw stream_error("commit and buffer are at most " + std::to_string(kMostRounds) + " rounds");
  if (buffer < model->reach())
    throw stream_error("buffer " + std::to_string(buffer) + " is less than the " + std::to_string(model->reach()) +
                       " rounds that one error reaches over");
  const std::string description = "commit " + std::to_string(commit) + " and buffer " + std::to_string(buffer) +
                                  " rounds" + (distance != 0 ? " (distance " + std::to_string(distance) + ")" : "") +
                                  "; a repetition has " + std::to_string(model->body_detectors()) + " detectors in " +
                                  std::to_string(model->body().size()) + " rounds; " + options.decoder;
  return {
      std::make_unique<sequential_stream>(window_set(std::move(*model), options.decoder, commit, buffer), description),
      {}};
}

} // namespace

stream_decoder::~stream_decoder() = default;

stream_result make_stream_decoder(std::string_view dem_text, const stream_options &options) {
  try {
    return made_or_throw(dem_text, options);
  } catch (const std::exception &failure) {
    return {nullptr, std::string("stream decoder: ") + failure.what()};
  }
}

} // namespace cudaq::qec::realtime

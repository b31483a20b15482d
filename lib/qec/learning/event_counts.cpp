// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/learning/event_counts.h"

#include "lib/qec/decoding/event_bits.h"
#include "lib/qec/decoding/splitmix.h"
#include "lib/qec/learning/whole_error.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

namespace cudaq::qec::realtime {
namespace {

using detector_set = std::vector<std::uint32_t>;

bool comes_before(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) noexcept {
  return a.size() != b.size() ? a.size() < b.size() : std::ranges::lexicographical_compare(a, b);
}

/// Transposes 64 words of 64 bits in place: bit s of word d is what bit d of word s was.
void transpose(std::uint64_t *words) noexcept {
  std::uint64_t mask = 0x00000000ffffffff;
  for (std::size_t step = 32; step != 0; step /= 2, mask ^= mask << step)
    for (std::size_t k = 0; k < 64; k = ((k | step) + 1) & ~step) {
      const std::uint64_t moved = (words[k] >> step ^ words[k | step]) & mask;
      words[k] ^= moved << step;
      words[k | step] ^= moved;
    }
}

/// The parities of the sets after the single detectors, and the counts of all.
[[gnu::always_inline]] inline void count_parities(std::span<const std::uint32_t> without_last,
                                                  std::span<const std::uint32_t> last, std::uint64_t *parities,
                                                  double *odd) noexcept {
  const std::size_t singles = without_last.size() - last.size();
  for (std::size_t k = 0; k < singles; ++k)
    odd[k] += std::popcount(parities[k]);
  for (std::size_t k = singles; k < without_last.size(); ++k) {
    parities[k] = parities[without_last[k]] ^ parities[last[k - singles]];
    odd[k] += std::popcount(parities[k]);
  }
}

void count_plain(std::span<const std::uint32_t> without_last, std::span<const std::uint32_t> last,
                 std::uint64_t *parities, double *odd) noexcept {
  count_parities(without_last, last, parities, odd);
}
#if defined(__x86_64__)
[[gnu::target("popcnt")]] void count_popcnt(std::span<const std::uint32_t> without_last,
                                            std::span<const std::uint32_t> last, std::uint64_t *parities,
                                            double *odd) noexcept {
  count_parities(without_last, last, parities, odd);
}
#endif

/// Why the rates of these errors cannot be learned within the limits of parity_sets; "": they can. An error has a term
/// in the equation of each set with an odd number of its detectors; here those with one or more are counted.
std::string too_many_terms(const std::vector<whole_error> &errors, const parity_sets &sets) {
  std::vector<std::uint64_t> sets_with(sets.num_detectors());
  for (std::size_t k = 0; k < sets.size(); ++k)
    for (const std::uint32_t d : sets[k])
      ++sets_with[d];
  std::vector<bool> is_known(sets.size()); // of sets: errors with the same detectors are one unknown
  double terms = 0, products = 0;
  for (const whole_error &error : errors) {
    const std::size_t set = error.detectors.empty() || error.detectors.size() > parity_sets::kWholeSubsets
                                ? parity_sets::kNone
                                : sets.find(error.detectors);
    if (set != parity_sets::kNone && is_known[set])
      continue;
    if (set != parity_sets::kNone)
      is_known[set] = true;
    double of_error = 0;
    for (const std::uint32_t d : error.detectors)
      of_error += static_cast<double>(sets_with[d]);
    terms += of_error;
    products += of_error * of_error;
  }
  if (terms <= parity_sets::kMaxTerms && products <= parity_sets::kMaxProducts)
    return "";
  const auto busiest = std::ranges::max_element(sets_with);
  return "too many sets of detectors overlap, for example " + std::to_string(*busiest) + " in detector " +
         std::to_string(busiest - sets_with.begin()) + ": the rates would take too much memory or time";
}

constexpr std::uint64_t kFewestEvents = 64; ///< of a passage
constexpr std::uint64_t kEndOfPassage = 63; ///< a shot whose hash has none of these bits ends it: one of 64

} // namespace

std::uint64_t parity_sets::max_sets(const detector_error_model &model) noexcept {
  std::uint64_t sets = model.num_detectors, detectors = 0; // of an error
  for (std::size_t k = 0; k < model.components.size() && sets < kMaxSets; ++k) {
    detectors += model.components[k].detectors;
    if (k + 1 < model.components.size() && model.components[k + 1].mechanism == model.components[k].mechanism)
      continue;
    constexpr std::uint64_t kAll = std::uint64_t{1} << kWholeSubsets; // components may cancel to such an error
    sets +=
        detectors <= kWholeSubsets ? std::uint64_t{1} << detectors : std::max(kAll, detectors * (detectors - 1) / 2);
    detectors = 0;
  }
  return std::min<std::uint64_t>(sets, kMaxSets);
}

expected<std::shared_ptr<const parity_sets>> parity_sets::of(const detector_error_model &model) {
  if (model.num_detectors == 0)
    return reason("the model has no detectors");
  const std::vector<whole_error> errors = whole_errors_of(model);
  std::vector<detector_set> sets;
  const auto keep_one_of_each = [&sets] {
    std::ranges::sort(sets, comes_before);
    sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  };
  detector_set subset;
  for (const whole_error &error : errors) {
    const std::size_t size = error.detectors.size();
    if (size > kMaxDetectors)
      return reason("line " + std::to_string(error.line) + ": the error flips " + std::to_string(size) +
                    " detectors; rates are learned of models whose errors flip at most " +
                    std::to_string(kMaxDetectors));
    const auto add_pair = [&](std::size_t i, std::size_t j) {
      sets.push_back({error.detectors[i], error.detectors[j]});
    };
    if (size > kWholeSubsets) {
      for (std::size_t i = 0; i < size; ++i)
        for (std::size_t j = i + 1; j < size; ++j)
          add_pair(i, j);
    } else {
      for (std::uint32_t members = 1; members < 1U << size; ++members) {
        if (std::popcount(members) < 2)
          continue;
        subset.clear();
        for (std::size_t i = 0; i < size; ++i)
          if ((members >> i & 1) != 0)
            subset.push_back(error.detectors[i]);
        sets.push_back(subset);
      }
    }
    if (sets.size() <= 2 * kMaxSets)
      continue;
    keep_one_of_each(); // errors may repeat those of others
    if (sets.size() > kMaxSets)
      return reason("the errors of the model join more than " + std::to_string(kMaxSets) + " sets of detectors");
  }
  keep_one_of_each();
  if (sets.size() + model.num_detectors > kMaxSets)
    return reason("the errors of the model join " + std::to_string(sets.size()) +
                  " sets of detectors; rates are learned of at most " + std::to_string(kMaxSets) +
                  " detectors and sets");
  auto made = std::make_shared<parity_sets>();
  made->num_detectors_ = static_cast<std::size_t>(model.num_detectors);
  const auto add = [&](std::span<const std::uint32_t> detectors) {
    made->detectors_.insert(made->detectors_.end(), detectors.begin(), detectors.end());
    made->first_.push_back(made->detectors_.size());
  };
  for (std::uint32_t d = 0; d < model.num_detectors; ++d)
    add(std::span(&d, 1));
  for (const detector_set &set : sets)
    add(set);
  made->end_of_pairs_ =
      made->num_detectors_ +
      static_cast<std::size_t>(std::ranges::upper_bound(sets, std::size_t{2}, {}, &detector_set::size) - sets.begin());
  made->without_last_.resize(made->num_detectors_);
  for (const detector_set &set : sets) {
    made->without_last_.push_back(static_cast<std::uint32_t>(made->find(std::span(set).first(set.size() - 1))));
    made->last_.push_back(set.back());
  }
  if (const std::string text = too_many_terms(errors, *made); !text.empty())
    return reason(text);
  return std::shared_ptr<const parity_sets>(std::move(made));
}

std::size_t parity_sets::find(std::span<const std::uint32_t> detectors) const noexcept {
  if (detectors.size() == 1)
    return detectors[0] < num_detectors_ ? detectors[0] : kNone;
  std::size_t begin = num_detectors_, end = size();
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (comes_before((*this)[middle], detectors))
      begin = middle + 1;
    else
      end = middle;
  }
  return begin < size() && std::ranges::equal((*this)[begin], detectors) ? begin : kNone;
}

event_counts::event_counts(std::shared_ptr<const parity_sets> sets)
    : sets_(std::move(sets)), words_((sets_->num_detectors() + 63) / 64), block_(kBlock * words_),
      parities_(std::max(sets_->size(), kBlock * words_)), odd_(sets_->size()), passages_(kPassages) {}

decode_status event_counts::add(std::span<const std::uint8_t> shot) noexcept {
  const std::size_t detectors = sets_->num_detectors();
  if (shot.size() < (detectors + 7) / 8)
    return decode_status::buffer_too_small;
  std::uint64_t hash = 0, events = 0;
  for (std::size_t w = 0, at = 0; w < words_; ++w, at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, shot.data() + at, std::min(sizeof word, shot.size() - at));
    if (w + 1 == words_ && detectors % 64 != 0 && word >> detectors % 64 != 0)
      return decode_status::bad_detector_index;
    block_[kBlock * w + pending_] = word;
    events += static_cast<std::uint64_t>(std::popcount(word));
    hash = splitmix(hash + kSplitmixStep + word);
  }
  for (std::size_t at = words_ * sizeof(std::uint64_t); at < shot.size(); ++at)
    if (shot[at] != 0)
      return decode_status::bad_detector_index;
  note_passage(hash, events);
  block_events_ += events;
  block_squared_events_ += events * events;
  if (++pending_ == kBlock)
    count_block();
  return decode_status::ok;
}

void event_counts::note_passage(std::uint64_t hash_of_shot, std::uint64_t events) noexcept {
  passage_hash_ = splitmix(passage_hash_ * kSplitmixStep + hash_of_shot);
  passage_events_ += events;
  ++passage_shots_;
  if (passage_events_ < kFewestEvents || (hash_of_shot & kEndOfPassage) != 0)
    return;
  std::uint64_t &known = passages_[passage_hash_ % kPassages];
  if (known == passage_hash_)
    repeated_ += static_cast<double>(passage_shots_);
  known = passage_hash_;
  passage_hash_ = passage_events_ = passage_shots_ = 0;
}

void event_counts::count_block() noexcept {
  for (std::size_t w = 0; w < words_; ++w) {
    std::uint64_t *const words = block_.data() + kBlock * w;
    std::fill(words + pending_, words + kBlock, 0);
    transpose(words);
    // The places after the last detector are those of other sets, which are written next.
    std::copy_n(words, kBlock, parities_.data() + kBlock * w);
  }
#if defined(__x86_64__)
  const auto count = __builtin_cpu_supports("popcnt") ? &count_popcnt : &count_plain;
#else
  const auto count = &count_plain;
#endif
  count(sets_->without_last_, sets_->last_, parities_.data(), odd_.data());
  shots_ += static_cast<double>(pending_);
  squared_weights_ += static_cast<double>(pending_);
  events_ += static_cast<double>(block_events_);
  squared_events_ += static_cast<double>(block_squared_events_);
  pending_ = 0;
  block_events_ = block_squared_events_ = 0;
}

void event_counts::flush() noexcept {
  if (pending_ != 0)
    count_block();
}

void event_counts::halve() noexcept {
  flush();
  for (double &count : odd_)
    count /= 2;
  shots_ /= 2;
  squared_weights_ /= 4;
  events_ /= 2;
  squared_events_ /= 2;
  repeated_ /= 2;
}

expected<> event_counts::merge(const event_counts &other) {
  if (other.sets_ != sets_ && !(*other.sets_ == *sets_))
    return reason("the counts are those of another model");
  if (other.pending_ != 0)
    return reason("the counts to add have " + std::to_string(other.pending_) +
                  " shots that are not counted; flush first");
  for (std::size_t k = 0; k < odd_.size(); ++k)
    odd_[k] += other.odd_[k];
  shots_ += other.shots_;
  squared_weights_ += other.squared_weights_;
  events_ += other.events_;
  squared_events_ += other.squared_events_;
  repeated_ += other.repeated_;
  return {};
}

void event_counts::clear() noexcept {
  std::ranges::fill(odd_, 0);
  std::ranges::fill(passages_, 0);
  pending_ = 0;
  shots_ = squared_weights_ = events_ = squared_events_ = repeated_ = 0;
  block_events_ = block_squared_events_ = 0;
  passage_hash_ = passage_events_ = passage_shots_ = 0;
}

double event_counts::effective_shots() const noexcept {
  return squared_weights_ > 0 ? shots_ * shots_ / squared_weights_ : 0;
}

double event_counts::mean_events() const noexcept { return shots_ > 0 ? events_ / shots_ : 0; }

double event_counts::variance_of_events() const noexcept {
  const double mean = mean_events();
  return shots_ > 0 ? std::max(squared_events_ / shots_ - mean * mean, 0.0) : 0;
}

} // namespace cudaq::qec::realtime

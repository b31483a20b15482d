// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stream/window_set.h"

#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/decoders/error_form.h"
#include "lib/qec/decoders/heralds/list_trial.h"
#include "lib/qec/decoding/split_errors/component_errors.h"
#include "lib/qec/decoding/split_errors/connected_parts.h"
#include "lib/qec/decoding/split_errors/decompose_errors.h"

#include <algorithm>
#include <numeric>

namespace cudaq::qec::realtime {
namespace {

/// Of all windows of one kind, built in advance.
constexpr std::uint64_t kMaxDetectors = std::uint64_t{1} << 20;

constexpr std::uint64_t kMaxCompared = std::uint64_t{1} << 26; ///< detectors, of all windows until they repeat

/// Whether any events of a window have a solution: each error flips at most two detectors, and in each connected part
/// there is one that flips one.
bool has_boundaries(const window_model &window) {
  const connected_parts parts(window.errors, true);
  for (std::uint64_t k = 0; k < window.num_detectors; ++k)
    if (window.is_needed[k] != 0 && !parts.parts[parts.part_of[k]].has_boundary)
      return false;
  return std::ranges::all_of(window.errors.components, [](const dem_component &c) { return c.detectors <= 2; });
}

/// Whether two windows have the same errors, whatever their lines.
bool are_alike(const detector_error_model &a, const detector_error_model &b) {
  return a.num_detectors == b.num_detectors && a.num_observables == b.num_observables && a.targets == b.targets &&
         std::ranges::equal(a.components, b.components, [](const dem_component &one, const dem_component &other) {
           return one.probability == other.probability && one.detectors == other.detectors &&
                  one.observables == other.observables && one.mechanism == other.mechanism;
         });
}

bool are_alike(const window_model &a, const window_model &b) {
  return are_alike(a.errors, b.errors) && a.heralds == b.heralds && a.read == b.read &&
         std::ranges::equal(a.herald_errors, b.herald_errors, [](const auto &one, const auto &other) {
           return one.error == other.error && one.probability == other.probability;
         });
}

} // namespace

window_set::window_set(repeating_model model, stream_heralds heralds, stream_readout readout, std::string decoder,
                       window_layout layout, std::size_t threads)
    : model_(std::move(model)), heralds_(std::move(heralds)), readout_(std::move(readout)),
      decoder_(std::move(decoder)), layout_(layout), common_(std::lcm(layout.stride(), body())) {
  const std::uint64_t commit = layout_.commit;
  const std::uint64_t detectors = model_.first_detector(head() + 2 * layout_.stride() - commit + layout_.buffer);
  if (common_windows() > kMaxDetectors / detectors)
    throw stream_error("commit " + std::to_string(commit) + " and a repetition of " + std::to_string(body()) +
                       " rounds begin together only every " + std::to_string(common_) +
                       " rounds, which needs too many windows: choose a multiple or a divisor");
  choose_form();
  find_steady();
  // Threads work on successive windows, most of the time.
  const std::size_t kinds = layout_.parallel ? common_windows() / 2 : common_windows();
  const std::size_t decoders = layout_.parallel ? std::min(threads, (threads - 1) / kinds + 2) : 1;
  for (std::uint64_t j = 0; j < steady_ + common_windows(); ++j) {
    const window_rounds rounds = layout_.rounds_of(j);
    regular_.push_back(build(cut(source_until(rounds.end), rounds), j < steady_ ? 1 : decoders, layout_.is_between(j)));
  }
  // The last windows of long streams: one for each number of repetitions until the lines repeat. If that is too much,
  // it is built when it is needed. They are cut from the end of one model.
  if (common_repetitions() <= kMaxDetectors / detectors) {
    const std::uint64_t max_repetitions = std::max(source_repetitions_, first_steady_end_ + common_repetitions());
    const window_source whole = source_of(max_repetitions);
    for (std::uint64_t k = 0; k < common_repetitions(); ++k) {
      window_rounds rounds = last_rounds(first_steady_end_ + k);
      const std::uint64_t later = (max_repetitions - first_steady_end_ - k) * body();
      rounds = {rounds.begin + later, rounds.commit_begin + later, rounds.commit_end + later, rounds.end + later};
      last_.push_back(build(cut(whole, rounds), 1, layout_.parallel));
    }
  }
  source_.reset();
  name_choice();
}

window &window_set::regular(std::uint64_t j) noexcept {
  return *regular_[j < steady_ + common_windows() ? j : steady_ + (j - steady_) % common_windows()];
}

window *window_set::last_if_built(std::uint64_t repetitions) noexcept {
  if (repetitions >= first_steady_end_ && !last_.empty())
    return last_[(repetitions - first_steady_end_) % common_repetitions()].get();
  const auto found =
      std::ranges::find_if(kept_, [&](const auto &one) { return one.second != nullptr && one.first == repetitions; });
  return found == std::end(kept_) ? nullptr : found->second.get();
}

window &window_set::last(std::uint64_t repetitions) {
  if (window *built = last_if_built(repetitions))
    return *built;
  // A late one is like an earlier one.
  const std::uint64_t all = repetitions < first_steady_end_
                                ? repetitions
                                : first_steady_end_ + (repetitions - first_steady_end_) % common_repetitions();
  auto &kept = kept_[next_kept_];
  kept.second.reset();
  kept = {repetitions, build(cut(source_of(all), last_rounds(all)), 1, layout_.parallel)};
  next_kept_ = (next_kept_ + 1) % kKept;
  return *kept.second;
}

window_rounds window_set::last_rounds(std::uint64_t repetitions) const noexcept {
  const std::uint64_t begin = layout_.complete(end_of(repetitions)) * layout_.commit;
  const std::uint64_t end = end_of(repetitions) + model_.tail().size();
  return {begin, begin, end, end};
}

/// Repetitions after which no error of the tail touches rounds before `end`.
std::uint64_t window_set::repetitions_for(std::uint64_t end) const noexcept {
  return (end + 2 * model_.reach() + body()) / body() + 1;
}

/// How the decoder takes errors. "auto" becomes the decoder that takes the first window.
void window_set::choose_form() {
  auto parsed = decoder_name::parse(decoder_);
  if (parsed.failed())
    throw stream_error(parsed.text());
  if (parsed->name == "auto") {
    const window_rounds first = layout_.rounds_of(0);
    std::string taken;
    try {
      first_errors_ = source_until(first.end).window(first).errors;
      chosen_decoder made = choose_decoder(decoder_, decoder_model(first_errors_));
      taken = made ? made.instance->name() : "";
      choice_.reason = std::move(made.auto_reason);
      first_decoder_ = std::move(made.instance);
    } catch (const stream_error &failure) { // matching needs another form of the errors, or does not take them
      taken = "bp-osd";
      choice_.reason = "auto took bp-osd, because its first choice refuses the windows: " + std::string(failure.what());
    }
    source_.reset();
    if (taken == "bp-osd") {
      decoder_.replace(0, parsed->name.size(), taken);
      first_decoder_.reset(); // its windows have another form
    }
  }
  const auto form = error_form_of(decoder_);
  if (form.failed())
    throw stream_error(form.text());
  form_ = *form;
}

void window_set::name_choice() {
  choice_.name = decoder_;
  const auto parsed = decoder_name::parse(decoder_);
  if (parsed.failed() || parsed->name != "auto")
    return;
  std::vector<std::string> taken;
  for (const auto *const windows : {&regular_, &last_})
    for (const auto &one : *windows) {
      const std::string name = one->decoders.front().inner->name();
      if (std::ranges::find(taken, name) == taken.end())
        taken.push_back(name);
    }
  std::string names;
  for (const std::string &name : taken)
    names += (names.empty() ? "" : " and ") + name.substr(name.rfind('+') + 1); // without the predecoder
  choice_.name.replace(0, parsed->name.size(), names);
}

window_source window_set::source_of(std::uint64_t repetitions) const {
  auto unrolled = model_.unrolled(repetitions);
  if (unrolled.ok() && form_ != error_form::whole)
    unrolled = component_errors(std::move(*unrolled));
  if (unrolled.ok() && takes_edges_only(decoder_)) // here: windows cut errors
    unrolled = decompose_errors(std::move(*unrolled));
  if (unrolled.failed())
    throw stream_error("windows of " + std::to_string(layout_.commit) + " and " + std::to_string(layout_.buffer) +
                       " rounds: " + unrolled.text());
  std::vector<std::uint64_t> round_of = model_.rounds(repetitions);
  if (round_of.size() != unrolled->num_detectors)
    throw stream_error("the repetitions of the loop are not alike: with " + std::to_string(repetitions) +
                       " of them the model has " + std::to_string(unrolled->num_detectors) + " detectors, not " +
                       std::to_string(round_of.size()));
  return {std::move(*unrolled), std::move(round_of), form_, heralds_.unrolled(repetitions),
          readout_.unrolled(repetitions)};
}

window_model window_set::cut(const window_source &source, window_rounds rounds) const {
  window_model made = source.window(rounds);
  made.read.move(readout_.base_of(rounds.begin) * -1);
  return made;
}

/// A model in which windows up to `end` are those of a stream that goes on.
const window_source &window_set::source_until(std::uint64_t end) {
  const std::uint64_t repetitions = repetitions_for(end);
  if (source_ == nullptr || source_repetitions_ < repetitions) {
    source_repetitions_ = repetitions + (source_ == nullptr ? 0 : source_repetitions_ / 2);
    source_ = std::make_unique<const window_source>(source_of(source_repetitions_));
  }
  return *source_;
}

std::unique_ptr<window> window_set::build(window_model model, std::size_t decoders, bool must_have_boundary) {
  if (must_have_boundary && !has_boundaries(model))
    throw no_parallel_windows("parallel windows need a boundary (errors that flip one detector, in each part of "
                              "the model and in all rounds) and no error that flips more than two detectors; "
                              "mode=sequential takes this model");
  auto made = std::make_unique<window>();
  made->model = std::move(model);
  made->read_end = made->model.read.end();
  made->decoders.reserve(decoders);
  const decoder_model errors(made->model.errors);
  if (made->model.errors.num_observables > dem_limits{}.observables)
    throw stream_error("a window has more than " + std::to_string(dem_limits{}.observables) +
                       " observables and detectors at its borders");
  for (std::size_t k = 0; k < decoders; ++k) {
    decoder_result inner = k == 0 ? take_first_decoder(made->model.errors) : decoder_result{};
    if (!inner)
      inner = choose_decoder(decoder_, errors);
    if (!inner && inner.machine_lacks)
      throw stream_machine_error(inner.error);
    if (!inner)
      throw stream_error(inner.error);
    window_decoder &one = made->decoders.emplace_back();
    one.inner = std::move(inner.instance);
    try_lists(made->model, one);
    one.events.reserve(made->model.num_detectors);
    made->idle.push_back(&one);
  }
  made->model.errors = {};
  return made;
}

/// Gives the decoder its memory, and all errors that heralds or a readout name once, each with the largest probability
/// that it can have: what it makes at the first list is made now, and what it refuses is refused now.
void window_set::try_lists(const window_model &model, window_decoder &with) {
  with.answer.resize(with.inner->observable_bytes());
  std::vector<error_probability> all = model.herald_errors;
  for (std::size_t k = 0; k < model.read.errors.size(); ++k) {
    double largest = kTriedProbability;
    if (!model.read.readings_of(k).empty()) // a misread measurement moves it towards 1/2
      largest = std::max(largest, model.read.errors[k].rest);
    for (const read_errors::listing &one : model.read.listings_of(k))
      largest = std::max(largest, one.probability);
    all.push_back({model.read.errors[k].error, largest});
  }
  if (all.empty())
    return;
  const std::string what = model.read.errors.empty() ? "heralds: " : "readout: ";
  if (const char *const refusal = with.inner->refuses_probabilities())
    throw stream_error(what + refusal);
  with.list.reserve(all.size());
  if (const decode_status status = try_list(*with.inner, with.answer, all); !takes_list(status))
    throw stream_error(what + decode_status_text(status, with.inner->fault()));
}

/// The decoder that choose_form has made, if it is for these errors; none otherwise. It is asked for once.
decoder_result window_set::take_first_decoder(const detector_error_model &errors) {
  decoder_result first{std::exchange(first_decoder_, nullptr), {}};
  const detector_error_model its_errors = std::exchange(first_errors_, {});
  if (first && !are_alike(its_errors, errors))
    first.instance.reset();
  return first;
}

/// Finds the first window that is like the one `common_` rounds later. The head has an influence on a few windows.
void window_set::find_steady() {
  const std::uint64_t step = layout_.stride() / layout_.commit;
  const std::uint64_t max_steady =
      (head() + 2 * model_.reach() + 2 * body() + layout_.buffer) / layout_.commit + 2 * step;
  // The head may name detectors of later rounds; windows repeat after them only.
  const auto alone = model_.unrolled(0);
  const std::uint64_t named = alone.ok() && alone->num_detectors > model_.rounds(0).size() ? alone->num_detectors : 0;
  const std::uint64_t detectors = model_.first_detector(head() + layout_.commit + layout_.buffer);
  const auto repeats = [&](std::uint64_t j) {
    const window_rounds here = layout_.rounds_of(j), there = layout_.rounds_of(j + common_windows());
    const window_source &source = source_until(there.end);
    return here.begin >= head() && model_.first_detector(here.begin) >= named &&
           are_alike(cut(source, here), cut(source, there));
  };
  for (steady_ = 0;; steady_ += step) {
    if (steady_ > kMaxCompared / detectors)
      throw stream_error("the head of the model has " + std::to_string(head()) +
                         " rounds, which needs too many windows: choose a larger commit");
    if (steady_ > max_steady)
      throw stream_error("the repetitions of the loop are not alike: errors of the head name detectors far after it");
    if (repeats(steady_) && (step == 1 || repeats(steady_ + 1)))
      break;
  }
  // The last window of a stream with these repetitions begins at or after the first steady window.
  first_steady_end_ = ((steady_ + step) * layout_.commit + layout_.stride() + layout_.buffer + body() - 1) / body() + 1;
}

} // namespace cudaq::qec::realtime

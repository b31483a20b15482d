// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/heralds/herald_list.h"

#include "lib/qec/decoding/model_text_file.h"

#include <numeric>
#include <optional>

namespace cudaq::qec::realtime {
namespace {

constexpr std::uint64_t kNone = UINT64_MAX;

class herald_reader {
public:
  herald_reader(const detector_error_model &model, std::uint32_t crc)
      : model_(model), head_("cudaq-realtime-heralds 1", crc), herald_of_(model.num_errors, kNoEffect) {
    for (const dem_component &c : model.components)
      herald_of_[c.mechanism] = kNone;
  }

  expected<> read_line(std::string_view line) {
    const expected<std::string_view> words = head_.read_line(line);
    if (words.failed())
      return words.reason();
    if (words->empty())
      return {};
    std::string_view rest = *words;
    const std::string_view word = next_word(rest), number = next_word(rest);
    if (!has_detectors_) {
      if (word != "detectors" || !read_number(number, num_detectors_) || !next_word(rest).empty())
        return reason("the line is " + in_quotes(*words) + ", accepted: detectors and how many a shot has");
      if (num_detectors_ < model_.num_detectors || num_detectors_ > dem_limits{}.detectors)
        return reason("a shot has " + std::string(number) + " detectors, accepted: from " +
                      std::to_string(model_.num_detectors) + ", as many as the model has, to " +
                      std::to_string(dem_limits{}.detectors));
      has_detectors_ = true;
      return {};
    }
    std::uint64_t herald = 0;
    if (word != "herald" || !read_number(number, herald))
      return reason("the line begins with " + in_quotes(std::string(word) + " " + std::string(number)) +
                    ", accepted: herald, its detector, and pairs of an error and a probability");
    if (herald >= num_detectors_)
      return reason("herald " + std::string(number) + " is no detector of a shot, which has " +
                    std::to_string(num_detectors_));
    if (last_ && herald <= *last_)
      return reason("herald " + std::string(number) + " comes after herald " + std::to_string(*last_) +
                    "; heralds ascend");
    last_ = herald;
    return take_herald(herald, rest);
  }

  expected<herald_list> finish() {
    if (const expected<> result = head_.finish(); result.failed())
      return result.reason();
    if (!has_detectors_)
      return reason("the file has no line detectors before its end");
    fill_up_to(num_detectors_);
    if (heralds_are_detectors())
      return with_all_detectors();
    if (list_.detector.size() != model_.num_detectors)
      return reason("a shot has " + std::to_string(num_detectors_) + " detectors, and " +
                    std::to_string(list_.end.size()) + " of them are heralds, but the model has " +
                    std::to_string(model_.num_detectors) + ", accepted: the rest, " +
                    std::to_string(list_.detector.size()));
    return std::move(list_);
  }

private:
  static constexpr std::uint64_t kNoEffect = kNone - 1;

  bool heralds_are_detectors() const noexcept { return num_detectors_ == model_.num_detectors; }

  /// The detectors before `end` that are no heralds.
  void fill_up_to(std::uint64_t end) {
    while (list_.meaning.size() < end) {
      list_.detector.push_back(list_.meaning.size());
      list_.meaning.push_back(heralds_are_detectors() ? list_.detector.back() : list_.detector.size() - 1);
    }
  }

  expected<herald_list> with_all_detectors() {
    for (const dem_component &c : model_.components)
      for (const std::uint64_t detector : model_.detectors_of(c))
        if ((list_.meaning[detector] & herald_list::kHerald) != 0)
          return reason("herald " + std::to_string(detector) + " is flipped by error " + std::to_string(c.mechanism) +
                        " of the model; no error flips a herald");
    list_.detector.resize(model_.num_detectors);
    std::iota(list_.detector.begin(), list_.detector.end(), std::uint64_t{0});
    return std::move(list_);
  }

  expected<> take_herald(std::uint64_t herald, std::string_view rest) {
    fill_up_to(herald);
    list_.meaning.push_back(herald_list::kHerald | list_.end.size());
    while (rest.find_first_not_of(" \t") != std::string_view::npos) {
      const expected<error_probability> one = read_pair(rest);
      if (one.failed())
        return one.reason();
      const std::string name = "error " + std::to_string(one->error);
      if (one->error >= herald_of_.size())
        return reason(name + " is not one of the model, which has " + std::to_string(herald_of_.size()));
      std::uint64_t &other = herald_of_[one->error];
      if (other == kNoEffect)
        return reason(name + " has the probability 0 in the model, or flips nothing: no decoder has a place for it; " +
                      "give it a small probability, such as 1e-9");
      if (other != kNone)
        return reason(name + (other == herald ? " is listed twice"
                                              : " is listed by herald " + std::to_string(other) +
                                                    " too; an error belongs to one herald"));
      other = herald;
      list_.errors.push_back(*one);
    }
    list_.end.push_back(list_.errors.size());
    return {};
  }

  const detector_error_model &model_;
  model_text_head head_;
  std::vector<std::uint64_t> herald_of_; ///< of each error: the herald that lists it, kNone, or kNoEffect
  bool has_detectors_ = false;
  std::uint64_t num_detectors_ = 0; ///< of a shot
  std::optional<std::uint64_t> last_;
  herald_list list_;
};

} // namespace

expected<herald_list> parse_heralds(std::string_view text, const decoder_model &model) {
  const auto errors = model.errors();
  if (errors.failed())
    return errors.reason();
  herald_reader reader(**errors, crc32_of(model.text()));
  return read_lines(text, reader);
}

expected<herald_list> load_heralds(const std::string &path, std::optional<std::string_view> contents,
                                   const decoder_model &model) {
  const expected<std::string> text = contents ? std::string() : read_model_text(path);
  if (text.failed())
    return text.reason();
  auto list = parse_heralds(contents ? *contents : *text, model);
  if (list.failed())
    return reason(path + ": " + list.text());
  return list;
}

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/heralds/herald_list.h"

#include "lib/qec/decoding/model_text_file.h"

#include <numeric>
#include <optional>

namespace cudaq::qec::realtime {
namespace {

class herald_reader {
public:
  explicit herald_reader(const detector_error_model &model) : model_(model), herald_of_(model) {}

  expected<> read_line(std::string_view line) {
    std::string_view rest = line;
    const std::string_view word = next_word(rest), number = next_word(rest);
    if (!has_detectors_) {
      if (word != "detectors" || !read_number(number, num_detectors_) || !next_word(rest).empty())
        return reason("the line is " + in_quotes(line) + ", accepted: detectors and how many a shot has");
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
    return read_herald(herald, rest);
  }

  expected<herald_list> finish() {
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

  expected<> read_herald(std::uint64_t herald, std::string_view rest) {
    fill_up_to(herald);
    list_.meaning.push_back(herald_list::kHerald | list_.end.size());
    while (!at_end(rest)) {
      const expected<error_probability> one = read_pair(rest);
      if (one.failed())
        return one.reason();
      const expected<std::uint64_t *> other = herald_of_.of(one->error);
      if (other.failed())
        return other.reason();
      if (**other != error_entries::kUnnamed)
        return reason("error " + std::to_string(one->error) +
                      (**other == herald ? " is listed twice"
                                         : " is listed by herald " + std::to_string(**other) +
                                               " too; an error belongs to one herald"));
      **other = herald;
      list_.errors.push_back(*one);
    }
    list_.end.push_back(list_.errors.size());
    return {};
  }

  const detector_error_model &model_;
  error_entries herald_of_; ///< the herald that lists it
  bool has_detectors_ = false;
  std::uint64_t num_detectors_ = 0; ///< of a shot
  std::optional<std::uint64_t> last_;
  herald_list list_;
};

} // namespace

expected<herald_list> parse_heralds(std::string_view text, const decoder_model &model) {
  return read_lines_about<herald_reader>(text, "cudaq-realtime-heralds 1", model);
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

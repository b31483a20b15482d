// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/dem.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <string>

namespace cudaq::qec::realtime {
namespace {

constexpr std::uint64_t kMaxDetectors = std::uint64_t{1} << 24;
constexpr std::uint64_t kMaxObservables = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxInstructions = std::uint64_t{1} << 24;
constexpr std::uint64_t kMaxNumber = std::uint64_t{1} << 60; // Stim's own limit
constexpr int kMaxDepth = 64;

enum class kind { error, detector, observable, shift, repeat };

struct target {
  char prefix; // 'D', 'L' or '^'
  std::uint64_t index;
};

struct instruction {
  kind what;
  std::uint64_t line;
  double probability = 0;
  std::uint64_t number = 0; // of shift_detectors and repeat
  std::vector<target> targets;
  std::vector<instruction> body;
};

// Thrown inside this file only; parse_dem turns it into an error text.
struct dem_error : std::runtime_error {
  dem_error(std::uint64_t line, const std::string &text)
      : std::runtime_error("line " + std::to_string(line) + ": " + text) {}
};

class reader {
public:
  explicit reader(std::string_view text) : text_(text) {}

  std::vector<instruction> block(int depth, std::uint64_t opened_at) {
    std::vector<instruction> result;
    while (true) {
      skip_between_instructions();
      if (at_end()) {
        if (depth > 0)
          throw dem_error(line_, "the repeat block opened in line " + std::to_string(opened_at) + " has no }");
        return result;
      }
      if (peek() == '}') {
        if (depth == 0)
          throw dem_error(line_, "} without a repeat block");
        ++at_;
        return result;
      }
      result.push_back(one(depth));
    }
  }

private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\n' : text_[at_]; }
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
  [[noreturn]] void fail(const std::string &text) const { throw dem_error(line_, text); }

  void skip_blanks() {
    while (!at_end() && is_blank(text_[at_]))
      ++at_;
  }
  void skip_comment() {
    if (peek() == '#')
      while (!at_end() && text_[at_] != '\n')
        ++at_;
  }
  void skip_between_instructions() {
    while (true) {
      skip_blanks();
      skip_comment();
      if (at_end() || text_[at_] != '\n')
        return;
      ++line_;
      ++at_;
    }
  }
  /// Skips blanks; true if the instruction goes on.
  bool more_on_line() {
    skip_blanks();
    skip_comment();
    return peek() != '\n';
  }

  std::string word() {
    std::string result;
    while (!at_end() && (is_letter(text_[at_]) || is_digit(text_[at_])))
      result += lower(text_[at_++]);
    return result;
  }

  std::uint64_t number(const char *of_what) {
    if (!is_digit(peek()))
      fail(std::string("expected the number of ") + of_what);
    std::uint64_t value = 0;
    while (is_digit(peek())) {
      value = value * 10 + static_cast<std::uint64_t>(text_[at_++] - '0');
      if (value >= kMaxNumber)
        fail(std::string("the number of ") + of_what + " is too large");
    }
    return value;
  }

  void skip_tag() {
    if (peek() != '[')
      return;
    while (peek() != ']') // Stim writes ']' and newline inside a tag as \C and \n
      if (peek() == '\n')
        fail("a tag has no ]");
      else
        ++at_;
    ++at_;
  }

  std::vector<double> arguments() {
    std::vector<double> result;
    if (peek() != '(')
      return result;
    ++at_;
    while (true) {
      skip_blanks();
      double value = 0;
      const char *begin = text_.data() + at_;
      const auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), value);
      if (code != std::errc{})
        fail("expected a number between ( and )");
      at_ += static_cast<std::size_t>(end - begin);
      result.push_back(value);
      skip_blanks();
      const char next = peek();
      if (next != ',' && next != ')')
        fail("expected , or ) after a number");
      ++at_;
      if (next == ')')
        return result;
    }
  }

  std::vector<target> targets() {
    std::vector<target> result;
    while (more_on_line()) {
      const char prefix = peek();
      ++at_;
      if (prefix == '^')
        result.push_back({'^', 0});
      else if (prefix == 'D' || prefix == 'd')
        result.push_back({'D', number("a detector")});
      else if (prefix == 'L' || prefix == 'l')
        result.push_back({'L', number("an observable")});
      else
        fail(std::string("unexpected '") + prefix + "', known targets are D, L and ^");
      if (!at_end() && !is_blank(peek()) && peek() != '\n' && peek() != '#')
        fail("expected a blank between targets");
    }
    return result;
  }

  instruction one(int depth);

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint64_t line_ = 1;
};

kind kind_of(const std::string &name, std::uint64_t line) {
  if (name == "error")
    return kind::error;
  if (name == "detector")
    return kind::detector;
  if (name == "logical_observable")
    return kind::observable;
  if (name == "shift_detectors")
    return kind::shift;
  if (name == "repeat")
    return kind::repeat;
  throw dem_error(line, "unknown instruction \"" + name + "\"");
}

void check_error(const instruction &error, std::size_t arguments) {
  if (arguments != 1)
    throw dem_error(error.line, "error takes one argument, its probability");
  if (!(error.probability >= 0 && error.probability <= 1))
    throw dem_error(error.line, "the probability is not between 0 and 1");
  bool empty = true; // the component so far
  for (const target &t : error.targets) {
    if (t.prefix == '^' && empty)
      throw dem_error(error.line, "an empty component at ^");
    empty = t.prefix == '^';
  }
  if (empty && !error.targets.empty())
    throw dem_error(error.line, "an empty component after ^");
}

void check_annotation(const instruction &made, std::size_t arguments) {
  const bool is_detector = made.what == kind::detector;
  const char wanted = is_detector ? 'D' : 'L';
  if (!is_detector && arguments != 0)
    throw dem_error(made.line, "logical_observable takes no arguments");
  if (made.targets.empty())
    throw dem_error(made.line, std::string("expected a target ") + wanted);
  for (const target &t : made.targets)
    if (t.prefix != wanted)
      throw dem_error(made.line, std::string("expected only targets ") + wanted);
}

instruction reader::one(int depth) {
  instruction made{};
  made.line = line_;
  const std::string name = word();
  if (name.empty())
    fail(std::string("expected an instruction, found '") + peek() + "'");
  made.what = kind_of(name, line_);
  skip_tag();
  const std::vector<double> arguments = this->arguments();
  switch (made.what) {
  case kind::error:
    made.probability = arguments.empty() ? 0 : arguments[0];
    made.targets = targets();
    check_error(made, arguments.size());
    break;
  case kind::detector:
  case kind::observable:
    made.targets = targets();
    check_annotation(made, arguments.size());
    break;
  case kind::shift:
    if (more_on_line())
      made.number = number("detectors to shift by");
    if (more_on_line())
      fail("unexpected text after shift_detectors");
    break;
  case kind::repeat:
    if (depth >= kMaxDepth)
      fail("repeat blocks are nested too deep");
    if (!arguments.empty() || !more_on_line())
      fail("repeat takes a count and a block");
    made.number = number("repetitions");
    if (made.number == 0)
      fail("repeat 0 is not allowed");
    if (!more_on_line() || peek() != '{')
      fail("expected { after the repeat count");
    ++at_;
    made.body = block(depth + 1, made.line);
    break;
  }
  return made;
}

class unroller {
public:
  detector_error_model model;

  void run(const std::vector<instruction> &body) {
    for (const instruction &step : body) {
      count(step.line);
      switch (step.what) {
      case kind::error:
        add_error(step);
        break;
      case kind::detector:
      case kind::observable:
        for (const target &t : step.targets)
          absolute(t, step.line);
        break;
      case kind::shift:
        shift_ += step.number;
        if (shift_ >= kMaxNumber)
          throw dem_error(step.line, "the detector shift is too large");
        break;
      case kind::repeat:
        count(step.line, step.number); // counted in one step: a huge loop without instructions must not run
        for (std::uint64_t k = 0; k < step.number; ++k)
          run(step.body);
        break;
      }
    }
  }

private:
  void count(std::uint64_t line, std::uint64_t by = 1) {
    if (by > kMaxInstructions - instructions_)
      throw dem_error(line, "the model has too many instructions when unrolled");
    instructions_ += by;
  }

  /// The absolute index of a target; grows the model to hold it.
  std::uint64_t absolute(const target &t, std::uint64_t line) {
    const bool is_detector = t.prefix == 'D';
    const std::uint64_t index = is_detector ? t.index + shift_ : t.index;
    if (index >= (is_detector ? kMaxDetectors : kMaxObservables))
      throw dem_error(line, std::string("the index of ") + t.prefix + std::to_string(index) + " is too large");
    std::uint64_t &size = is_detector ? model.num_detectors : model.num_observables;
    size = std::max(size, index + 1);
    return index;
  }

  void add_error(const instruction &error) {
    auto begin = error.targets.begin();
    while (begin != error.targets.end()) {
      const auto end = std::find_if(begin, error.targets.end(), [](const target &t) { return t.prefix == '^'; });
      detectors_.clear();
      observables_.clear();
      for (auto at = begin; at != end; ++at)
        (at->prefix == 'D' ? detectors_ : observables_).push_back(absolute(*at, error.line));
      if (error.probability > 0)
        add_component(error);
      begin = end == error.targets.end() ? end : end + 1;
    }
  }

  void add_component(const instruction &error) {
    for (auto *list : {&detectors_, &observables_}) {
      std::sort(list->begin(), list->end());
      if (std::adjacent_find(list->begin(), list->end()) != list->end())
        throw dem_error(error.line, "a target appears twice in one component");
    }
    model.components.push_back({error.probability, error.line, model.targets.size(),
                                static_cast<std::uint32_t>(detectors_.size()),
                                static_cast<std::uint32_t>(observables_.size())});
    model.targets.insert(model.targets.end(), detectors_.begin(), detectors_.end());
    model.targets.insert(model.targets.end(), observables_.begin(), observables_.end());
  }

  std::uint64_t shift_ = 0;
  std::uint64_t instructions_ = 0;
  std::vector<std::uint64_t> detectors_;
  std::vector<std::uint64_t> observables_;
};

} // namespace

or_error<detector_error_model> parse_dem(std::string_view text) {
  using result = or_error<detector_error_model>;
  try {
    unroller unrolled;
    unrolled.run(reader(text).block(0, 0));
    return std::move(unrolled.model);
  } catch (const dem_error &failure) {
    return result::failure(failure.what());
  } catch (const std::exception &failure) {
    return result::failure(std::string("the model does not fit into memory: ") + failure.what());
  }
}

} // namespace cudaq::qec::realtime

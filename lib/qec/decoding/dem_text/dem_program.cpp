// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/dem_text/dem_program.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace cudaq::qec::realtime::dem_text {
namespace {

constexpr std::uint64_t kMaxObservables = std::uint64_t{1} << 32; // Stim's own limit
constexpr std::size_t kMaxDigits = 63;                            // of an argument; Stim's own limit

std::string quoted(char c) {
  constexpr const char *kDigits = "0123456789ABCDEF";
  if (c >= ' ' && c <= '~')
    return {'\'', c, '\''};
  if (c == '\n')
    return "the end of the line";
  const auto byte = static_cast<unsigned char>(c);
  return {'t', 'h', 'e', ' ', 'b', 'y', 't', 'e', ' ', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_of_number(char c) { return is_digit(c) || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'; }

/// The value of a decimal number that is outside the range of a double: 0 or infinity.
double out_of_range(std::string_view number) {
  // The power of ten of the first digit that is not 0.
  long long power = 0;
  bool point = false, found = false;
  std::size_t at = 0;
  for (; at < number.size() && number[at] != 'e' && number[at] != 'E'; ++at) {
    point = point || number[at] == '.';
    if (!is_digit(number[at]))
      continue;
    found = found || number[at] != '0';
    power += found ? !point : -static_cast<int>(point);
  }
  long long exponent = 0;
  const bool negative = at + 1 < number.size() && number[at + 1] == '-';
  for (; at < number.size(); ++at)
    if (is_digit(number[at]))
      exponent = std::min(exponent * 10 + (number[at] - '0'), 1LL << 40);
  return power + (negative ? -exponent : exponent) < 0 ? 0 : HUGE_VAL;
}

/// Follows Stim 1.16.0 character by character (stim/dem/detector_error_model.cc, stim/circuit/circuit.h). A text that
/// ends inside a line is read as if a line end followed.
class reader {
public:
  reader(std::string_view text, const dem_limits &limits) : text_(text), limits_(limits) {}

  program read() {
    // Stim writes about 50 bytes and three targets a line. What is reserved and not used costs no memory.
    made_.instructions.reserve(text_.size() / 32);
    made_.arguments.reserve(text_.size() / 32);
    made_.targets.reserve(text_.size() / 12);
    while (true) {
      skip_between_instructions();
      if (at_end())
        break;
      if (peek() == '}')
        close_loop();
      else
        one();
    }
    if (!open_.empty())
      fail("the repeat block opened in line " + std::to_string(made_.instructions[open_.back()].line) + " has no }");
    return std::move(made_);
  }

private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\n' : text_[at_]; }
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
  static bool is_space(char c) { return is_blank(c) || c == '\n' || c == '\v' || c == '\f'; }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
  [[noreturn]] void fail(const std::string &text) const { throw dem_error(line_, text); }

  void skip_comment() {
    if (peek() == '#')
      while (!at_end() && text_[at_] != '\n')
        ++at_;
  }
  void skip_between_instructions() {
    while (true) {
      skip_comment();
      if (at_end() || !is_space(text_[at_]))
        return;
      line_ += text_[at_] == '\n';
      ++at_;
    }
  }
  /// Skips blanks and a comment; true if the instruction goes on. The word before the blanks must end here.
  bool more_on_line() {
    const char c = peek();
    if (!is_blank(c) && c != '#' && c != '\n' && c != '{')
      fail("expected a blank before " + quoted(c));
    while (is_blank(peek()))
      ++at_;
    skip_comment();
    return peek() != '\n' && peek() != '{';
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

  kind name() {
    const std::size_t begin = at_;
    while (is_letter(peek()) || is_digit(peek()))
      ++at_;
    std::string name(text_.substr(begin, at_ - begin));
    if (name.empty())
      fail("expected an instruction, found " + quoted(peek()));
    std::transform(name.begin(), name.end(), name.begin(), lower);
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
    constexpr const char *kOfCircuit = ": is this a Stim circuit? Its model is made by `stim analyze_errors "
                                       "--in circuit.stim --out model.dem`";
    fail("unknown instruction \"" + std::string(text_.substr(begin, at_ - begin)) + "\"" +
         (made_.instructions.empty() ? kOfCircuit : ""));
  }

  void skip_tag() {
    if (peek() != '[')
      return;
    for (++at_; peek() != ']'; ++at_) {
      if (peek() == '\n' || peek() == '\r')
        fail("a tag has no ]");
      if (peek() != '\\')
        continue;
      ++at_;
      if (std::string_view("nrBC").find(peek()) == std::string_view::npos)
        fail("a tag has a \\ that is not followed by n, r, B or C");
    }
    ++at_;
  }

  void skip_argument_blanks() { // not \r
    while (peek() == ' ' || peek() == '\t')
      ++at_;
  }

  double argument() {
    const std::size_t begin = at_;
    while (at_ - begin < kMaxDigits && is_of_number(peek()))
      ++at_;
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (digits.empty())
      return 0; // as Stim reads it
    if (digits.size() == kMaxDigits && is_of_number(peek()))
      fail("a number has more than 63 characters");
    const std::string_view value_text = digits.substr(digits[0] == '+' && digits.substr(1, 1) != "-");
    double value = 0;
    const auto [end, code] = std::from_chars(value_text.data(), value_text.data() + value_text.size(), value);
    if (code == std::errc::invalid_argument || end != value_text.data() + value_text.size())
      fail("\"" + std::string(digits) + "\" is not a number");
    if (code == std::errc::result_out_of_range)
      value = out_of_range(value_text);
    if (std::isinf(value))
      fail("the number " + std::string(digits) + " is too large");
    return value;
  }

  void arguments(instruction &of) {
    of.first_argument = made_.arguments.size();
    if (peek() != '(')
      return;
    do {
      ++at_;
      skip_argument_blanks();
      made_.arguments.push_back(argument());
      skip_argument_blanks();
    } while (peek() == ',');
    if (peek() != ')')
      fail("expected , or ) in the arguments, found " + quoted(peek()));
    ++at_;
    of.arguments = made_.arguments.size() - of.first_argument;
  }

  void targets(instruction &of) {
    of.first_target = made_.targets.size();
    while (more_on_line()) {
      const char prefix = peek();
      ++at_;
      if (prefix == '^')
        made_.targets.emplace_back(target_kind::separator, 0);
      else if (prefix == 'D' || prefix == 'd')
        made_.targets.emplace_back(target_kind::detector, number("a detector"));
      else if (prefix == 'L' || prefix == 'l')
        made_.targets.emplace_back(target_kind::observable, observable());
      else
        fail("unexpected " + quoted(prefix) + ", known targets are D, L and ^");
    }
    of.targets = made_.targets.size() - of.first_target;
  }

  std::uint64_t observable() {
    const std::uint64_t index = number("an observable");
    if (index >= std::min(limits_.observables, kMaxObservables))
      fail("the index of L" + std::to_string(index) + " is too large");
    made_.num_observables = std::max(made_.num_observables, index + 1);
    return index;
  }

  void check_error(instruction &error) const {
    if (error.arguments != 1)
      fail("error takes one argument, its probability");
    error.probability = made_.arguments.back();
    if (!(error.probability >= 0 && error.probability <= 1))
      fail("the probability is not between 0 and 1");
    bool empty = true; // the component so far
    for (const target &t : made_.targets_of(error)) {
      const bool ends = t.what == target_kind::separator;
      if (ends && empty)
        fail("an empty component at ^");
      empty = ends;
    }
    if (empty && error.targets != 0)
      fail("an empty component after ^");
  }

  void check_annotation(const instruction &made) const {
    if (made.what == kind::observable && made.arguments != 0)
      fail("logical_observable takes no arguments");
    const target_kind wanted = made.what == kind::detector ? target_kind::detector : target_kind::observable;
    if (made.targets != 1 || made_.targets_of(made)[0].what != wanted)
      fail(std::string("expected one target ") + (wanted == target_kind::detector ? 'D' : 'L'));
  }

  void one() {
    instruction next{name(), line_};
    skip_tag();
    if (next.what == kind::repeat)
      return open_loop(next);
    arguments(next);
    if (next.what == kind::shift) {
      more_on_line();
      next.number = number("detectors to shift by");
      if (more_on_line())
        fail("unexpected text after shift_detectors");
    } else {
      targets(next);
    }
    if (peek() == '{')
      fail("unexpected '{'");
    if (next.what == kind::error)
      check_error(next);
    else if (next.what != kind::shift)
      check_annotation(next);
    made_.instructions.push_back(next);
  }

  void open_loop(instruction &next) {
    more_on_line();
    next.number = number("repetitions");
    if (more_on_line() || peek() != '{')
      fail("expected { after the repeat count");
    ++at_;
    if (open_.size() >= limits_.nesting)
      fail("repeat blocks are nested deeper than " + std::to_string(limits_.nesting));
    open_.push_back(made_.instructions.size());
    made_.instructions.push_back(next);
  }

  void close_loop() {
    if (open_.empty())
      fail("} without a repeat block");
    ++at_;
    made_.instructions[open_.back()].other_end = made_.instructions.size();
    instruction end{kind::end_of_repeat, line_};
    end.other_end = open_.back();
    made_.instructions.push_back(end);
    open_.pop_back();
  }

  const std::string_view text_;
  const dem_limits limits_;
  program made_;
  std::vector<std::size_t> open_; // the repeats without an end so far
  std::size_t at_ = 0;
  std::uint64_t line_ = 1;
};

} // namespace

program read_program(std::string_view text, const dem_limits &limits) { return reader(text, limits).read(); }

} // namespace cudaq::qec::realtime::dem_text

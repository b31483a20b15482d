// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>

namespace cudaq::qec::realtime::test {

/// Texts of detector error models, right ones and wrong ones. The same seed gives the same text.
class random_model_text {
public:
  explicit random_model_text(std::uint64_t seed) : random_(seed) {}

  /// Half of the texts follow the grammar, the others have odd parts. Half of both then get one to four changes.
  std::string next() {
    plain_ = chance(2);
    std::string text = block(0);
    if (chance(2))
      for (std::uint64_t changes = below(4) + 1; changes > 0; --changes)
        change(text);
    // Stim does not stop at the end of the text inside a tag; a line end stops it.
    if (text.find('[') != std::string::npos)
      text += '\n';
    return text;
  }

private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool chance(std::uint64_t one_in) { return below(one_in) == 0; }
  bool odd(std::uint64_t one_in) { return !plain_ && chance(one_in); }
  std::string one_of(std::initializer_list<const char *> these) { return these.begin()[below(these.size())]; }

  /// One of the texts between the characters |.
  std::string word_of(std::string_view words) {
    for (std::uint64_t skipped = below(1 + static_cast<std::uint64_t>(std::ranges::count(words, '|'))); skipped > 0;
         --skipped)
      words.remove_prefix(words.find('|') + 1);
    return std::string(words.substr(0, words.find('|')));
  }
  std::string any_case(std::string name) {
    if (chance(8))
      for (char &c : name)
        if (c >= 'a' && c <= 'z' && chance(2))
          c = static_cast<char>(c - 'a' + 'A');
    return name;
  }
  std::string blank() { return odd(10) ? one_of({"\t", "  ", " \r", "\r", " \t ", ""}) : " "; }
  std::string line_end() {
    return odd(6) ? one_of({"\r\n", "\n\n", " # D0 ^\n", "#\n", "\n\v", "\n\f \t", " \n", "\n# repeat 2 {\r\n", " "})
                  : "\n";
  }
  std::string tag() {
    return odd(10) ? one_of({"[]", "[a (b) # c]", "[\\n\\r\\B\\C]", "[\\x]", "[a", "[\r]", "[\xC3\xBF]", " [a]"}) : "";
  }
  std::string number() {
    if (odd(60))
      return one_of({"4294967295", "4294967296", "1152921504606846975", "1152921504606846976", "", "-1", "+1", "1.0",
                     "99999999999999999999", "2999", "3000", "39", "40", "500"});
    return (chance(30) ? "00" : "") + std::to_string(below(chance(20) ? 4000 : 12));
  }
  std::string decimal() {
    if (odd(5))
      return word_of("0|1|+0.1|-0|-0.0|1.|.5|.||1e-400|5e-324|2e-324|3e-324|1e400|-1e400|1e-5000|0e9999|1e|e5|1e+0|"
                     "1E-3|+-0.1|++0.1|-+0.1|1.1.1|1e5.0|0x1p-3|nan|inf|-1|1.5|1e-3e|0.1 0.2|1-|00.25|.e1|"
                     "1e99999999999999999999|1e-99999999999999999999|0.00000000000000000000000000000001e31|"
                     "1.0000000000000001|1.0000000000000003|4.9406564584124654e-324|2.4703282292062328e-324|"
                     "2.4703282292062327e-324|2.2250738585072011e-308|1.7976931348623159e308");
    if (odd(30)) // at the length where Stim stops reading
      return "0." + std::string(58 + below(6), static_cast<char>('0' + below(10))) + one_of({"", "e1", "+", "1"});
    std::string digits = odd(10) ? "1." : one_of({"0.", ".", "0.0"});
    for (std::uint64_t k = below(18) + 1; k > 0; --k)
      digits += static_cast<char>('0' + below(10));
    return digits + (chance(4) ? one_of({"e-1", "E-2", "e-300", "e-310", "e-318", "e+0", "e-01"}) : "");
  }
  std::string list(std::uint64_t values) {
    std::string text;
    for (std::uint64_t k = 0; k < values; ++k)
      text += (k != 0 ? one_of({",", ", ", " ,", ",\t"}) : one_of({"", "", "", " "})) + decimal();
    return text + (odd(40) ? one_of({" ", ",", "\r", ";"}) : "");
  }
  std::string arguments(std::uint64_t values) {
    return values == 0 && !odd(10) ? "" : (odd(60) ? " (" : "(") + list(values) + (odd(60) ? "" : ")");
  }
  std::string target() {
    if (odd(60))
      return one_of({"^", "d1", "l0", "X1", "5", "D", "L", "D0D1", "D0^", "*", "D0*", "}", "{", "D 1"});
    return (chance(3) ? "L" : "D") + number();
  }
  std::string targets() {
    std::string text;
    for (std::uint64_t k = below(6); k > 0; --k)
      text += blank() + target() + (k > 1 && chance(4) ? " ^" : "");
    return text;
  }

  std::string instruction(int depth) {
    switch (below(depth < 7 ? 10 : 8)) {
    case 0:
      return any_case("detector") + tag() + arguments(below(4)) + blank() + "D" + number();
    case 1:
      return any_case("logical_observable") + tag() + arguments(odd(30)) + blank() + "L" + number();
    case 2:
      return any_case("shift_detectors") + tag() + arguments(below(3)) + blank() + number() + (odd(30) ? " 1" : "");
    case 3:
      return odd(6) ? one_of({"errors(0.1) D0", "err", "error D0", "repeat 2", "detector", "}", "{", "ERROR_(1)", "0",
                              "shift_detectors", "detector D0 D1", "logical_observable D0", "detector ^"})
                    : "error(" + decimal() + ")" + targets();
    case 8:
    case 9:
      return any_case("repeat") + tag() + blank() + (chance(20) ? number() : std::to_string(below(5))) + blank() + "{" +
             line_end() + block(depth + 1) + "}";
    default:
      return any_case("error") + tag() + arguments(odd(40) ? 2 : 1) + targets();
    }
  }
  std::string block(int depth) {
    std::string text;
    for (std::uint64_t k = below(depth == 0 ? 9 : 4); k > 0; --k)
      text += (chance(8) ? one_of({" ", "\t", "    ", "\v", "\r"}) : "") + instruction(depth) + line_end();
    return text;
  }

  void change(std::string &text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = chance(3) ? below(30) : 1;
    switch (below(5)) {
    case 0:
      text.erase(at, length);
      break;
    case 1:
      text.insert(at, text.substr(below(text.size() + 1), length));
      break;
    case 2: // any byte
      text.insert(at, 1, static_cast<char>(below(256)));
      break;
    case 3:
      text.insert(at, 1, kOften[below(kOften.size())]);
      break;
    default:
      text.resize(at); // the text ends here
      break;
    }
  }

  static constexpr std::string_view kOften = " \n\r\t\v\f#^DLdl0123456789()[]{}.,+-eE\\*_";

  std::mt19937_64 random_;
  bool plain_ = false;
};

} // namespace cudaq::qec::realtime::test

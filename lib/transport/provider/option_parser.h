// SPDX-License-Identifier: Apache-2.0
// How providers read their options.
#pragma once

#include "lib/base/error_text.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cudaq::realtime::detail {

/// Parses `--name value` and `--name=value`; numbers are decimal, or hexadecimal with 0x. A program may hand over its
/// whole argv: argv[0] may be its name, and options that the provider does not know are ignored and counted. With
/// --strict, and without --lenient, they are refused. The reason names the option, its value, and what is accepted; the
/// destinations of the options are then unspecified.
class option_parser {
public:
  /// `provider`: its name, for the texts. `after_program_name`: argv[0] may be the name of the program also with
  /// --strict.
  explicit option_parser(std::string provider, bool after_program_name = false)
      : provider_(std::move(provider)), after_program_name_(after_program_name) {}

  // What the provider accepts. The names and the values must live as long as the parser.
  template <class Number>
  void add_number(std::string_view name, std::uint64_t lowest, std::uint64_t highest, Number &value) {
    numbers_.push_back({name, lowest, highest, &value});
  }
  /// One of these words; without words any text.
  void add_choice(std::string_view name, std::vector<std::string_view> words, std::string &value) {
    choices_.push_back({name, std::move(words), &value});
  }
  void add_flag(std::string_view name, bool &value) { flags_.push_back({name, &value}); }

  expected<> parse(int argc, char *const *argv);
  /// Whether parse has found the option, which is not a flag.
  bool given(std::string_view name) const;
  /// For the endpoint line: "", or " ignored=N ignored_options=NAMES" with the first names.
  const std::string &ignored_words() const { return ignored_words_; }

private:
  struct number_option {
    std::string_view name;
    std::uint64_t lowest, highest;
    std::variant<std::uint32_t *, std::uint64_t *, int *> value;
    bool given = false;
  };
  struct choice_option {
    std::string_view name;
    std::vector<std::string_view> words;
    std::string *value;
    bool given = false;
  };
  struct flag_option {
    std::string_view name;
    bool *value;
  };

  expected<> parse_words(const std::vector<std::string_view> &words);
  expected<> refuse_unknown(std::string_view word) const;
  void note_ignored(const std::vector<std::string_view> &ignored);
  expected<> set(std::string_view name, std::string_view value);
  std::vector<std::string> all_names() const;

  const std::string provider_;
  const bool after_program_name_;
  bool strict_ = false, lenient_ = false; ///< as flags; what they mean is decided before the first option is read
  std::string ignored_words_;
  std::vector<number_option> numbers_;
  std::vector<choice_option> choices_;
  std::vector<flag_option> flags_{{"--strict", &strict_}, {"--lenient", &lenient_}};
};

} // namespace cudaq::realtime::detail

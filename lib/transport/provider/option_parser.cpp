// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/provider/option_parser.h"

#include "lib/base/similar_words.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <utility>

namespace cudaq::realtime::detail {
namespace {

std::string text(std::string_view view) { return std::string(view); }

bool is_option(std::string_view word) { return word.substr(0, 2) == "--"; }

template <class Options>
auto *named(Options &options, std::string_view name) {
  const auto found = std::find_if(options.begin(), options.end(), [&](const auto &o) { return o.name == name; });
  return found == options.end() ? nullptr : &*found;
}

} // namespace

expected<> option_parser::parse(int argc, char *const *argv) {
  if (argc > 0 && argv == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "argc %d: argv is NULL", argc);
  for (int i = 0; i < argc; ++i)
    if (argv[i] == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "argv[%d]: is NULL", i);
  return parse_words(std::vector<std::string_view>(argv, argv + std::max(argc, 0)));
}

expected<> option_parser::refuse_unknown(std::string_view word) const {
  std::string advice = after_program_name_ ? "" : "; options begin with --, and the first is argv[0]";
  if (is_option(word)) {
    const std::vector<std::string> names = all_names();
    advice = "; --lenient ignores unknown options; it has ";
    for (const std::string &name : names)
      advice += name + (&name == &names.back() ? "" : ", ");
    const std::string similar = did_you_mean(similar_words(word.substr(0, word.find('=')), names));
    advice += similar.empty() ? "" : "." + similar;
  }
  return make_reason(CUDAQ_ERR_INVALID_ARG, "'%s': the %s provider has no such option%s", text(word).c_str(),
                     provider_.c_str(), advice.c_str());
}

void option_parser::note_ignored(const std::vector<std::string_view> &ignored) {
  constexpr std::size_t kMaxNamed = 80; // bytes: the line goes into a buffer of the caller
  const auto printable = [](char c) { return c > ' ' && c < 127 && c != ','; };
  std::string names;
  for (const std::string_view word : ignored) {
    std::string name(word.substr(0, word.find('=')));
    std::replace_if(name.begin(), name.end(), std::not_fn(printable), '?');
    if (names.size() + name.size() > kMaxNamed) {
      names += names.empty() ? "..." : ",...";
      break;
    }
    names += (names.empty() ? "" : ",") + name;
  }
  if (!ignored.empty())
    ignored_words_ = " ignored=" + std::to_string(ignored.size()) + " ignored_options=" + names;
}

expected<> option_parser::parse_words(const std::vector<std::string_view> &words) {
  const auto among = [&](std::string_view flag) { return std::find(words.begin(), words.end(), flag) != words.end(); };
  const bool strict = among("--strict") && !among("--lenient");
  const bool named_program = (after_program_name_ || !strict) && !words.empty() && !is_option(words[0]);
  std::vector<std::string_view> ignored;
  bool value_may_follow = false; // of an option that is ignored
  for (std::size_t at = named_program ? 1 : 0; at < words.size(); ++at) {
    const std::size_t equals = words[at].find('=');
    const std::string_view name = words[at].substr(0, equals);
    const bool may_be_value = std::exchange(value_may_follow, false) && !is_option(name);
    std::optional<std::string_view> value;
    if (equals != std::string_view::npos)
      value = words[at].substr(equals + 1);
    if (const flag_option *const flag = named(flags_, name)) {
      if (value)
        return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: this option has no value", text(words[at]).c_str());
      *flag->value = true;
      continue;
    }
    if (named(numbers_, name) == nullptr && named(choices_, name) == nullptr) {
      if (strict)
        return refuse_unknown(words[at]);
      if (!may_be_value)
        ignored.push_back(words[at]);
      value_may_follow = is_option(name) && !value;
      continue;
    }
    if (!value && at + 1 < words.size())
      value = words[++at];
    if (!value)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: the value is missing", text(name).c_str());
    if (expected<> result = set(name, *value); result.failed())
      return result;
  }
  note_ignored(ignored);
  return {};
}

std::vector<std::string> option_parser::all_names() const {
  std::vector<std::string> names;
  for (const number_option &option : numbers_)
    names.push_back(text(option.name));
  for (const choice_option &option : choices_)
    names.push_back(text(option.name));
  for (const flag_option &option : flags_)
    names.push_back(text(option.name));
  std::sort(names.begin(), names.end());
  return names;
}

expected<> option_parser::set(std::string_view name, std::string_view value) {
  if (choice_option *const choice = named(choices_, name)) {
    if (!choice->words.empty() && std::find(choice->words.begin(), choice->words.end(), value) == choice->words.end()) {
      std::string accepted;
      for (const std::string_view word : choice->words)
        accepted += (accepted.empty() ? "" : ", ") + text(word);
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s '%s': one of %s is accepted", text(name).c_str(),
                         text(value).c_str(), accepted.c_str());
    }
    *choice->value = text(value);
    choice->given = true;
    return {};
  }
  number_option &option = *named(numbers_, name);
  const bool hex = value.substr(0, 2) == "0x";
  const std::string_view digits = value.substr(hex ? 2 : 0);
  std::uint64_t number = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number, hex ? 16 : 10);
  if (code != std::errc{} || end != digits.data() + digits.size() || number < option.lowest || number > option.highest)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s '%s': a number from %llu to %llu is accepted", text(name).c_str(),
                       text(value).c_str(), static_cast<unsigned long long>(option.lowest),
                       static_cast<unsigned long long>(option.highest));
  std::visit([number](auto *to) { *to = static_cast<std::remove_reference_t<decltype(*to)>>(number); }, option.value);
  option.given = true;
  return {};
}

bool option_parser::given(std::string_view name) const {
  for (const number_option &option : numbers_)
    if (option.name == name)
      return option.given;
  for (const choice_option &option : choices_)
    if (option.name == name)
      return option.given;
  return false;
}

} // namespace cudaq::realtime::detail

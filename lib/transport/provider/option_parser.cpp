// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/provider/option_parser.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace cudaq::realtime::detail {
namespace {

std::string text(std::string_view view) { return std::string(view); }

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

expected<> option_parser::parse_words(const std::vector<std::string_view> &words) {
  const bool lenient = std::find(words.begin(), words.end(), "--lenient") != words.end();
  const bool named_program = after_program_name_ && !words.empty() && words[0].substr(0, 2) != "--";
  for (std::size_t at = named_program ? 1 : 0; at < words.size(); ++at) {
    const std::size_t equals = words[at].find('=');
    const std::string_view name = words[at].substr(0, equals);
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
      if (lenient)
        continue;
      return make_reason(CUDAQ_ERR_INVALID_ARG, "'%s': the %s provider has no such option%s", text(words[at]).c_str(),
                         provider_.c_str(),
                         name.substr(0, 2) == "--"
                             ? ("; --lenient ignores unknown options; it has " + all_names()).c_str()
                         : after_program_name_ ? ""
                                               : "; options begin with --, and the first is argv[0]");
    }
    if (!value && at + 1 < words.size())
      value = words[++at];
    if (!value)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: the value is missing", text(name).c_str());
    if (expected<> result = set(name, *value); result.failed())
      return result;
  }
  return {};
}

std::string option_parser::all_names() const {
  std::vector<std::string> names;
  for (const number_option &option : numbers_)
    names.push_back(text(option.name));
  for (const choice_option &option : choices_)
    names.push_back(text(option.name));
  for (const flag_option &option : flags_)
    names.push_back(text(option.name));
  std::sort(names.begin(), names.end());
  std::string list;
  for (const std::string &name : names)
    list += (list.empty() ? "" : ", ") + name;
  return list;
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

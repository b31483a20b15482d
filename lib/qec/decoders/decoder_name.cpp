// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/decoder_name.h"

#include "lib/base/similar_words.h"

#include <algorithm>
#include <charconv>

namespace cudaq::qec::realtime {
namespace {

std::string joined(const std::vector<std::string> &words) {
  std::string result;
  for (const std::string &word : words)
    result += (result.empty() ? "" : ", ") + word;
  return result;
}

template <typename T>
bool read_all(std::string_view text, T &value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc{} && end == text.data() + text.size();
}

std::string short_text(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

} // namespace

const std::string *decoder_settings::find(std::string_view key) {
  known_.emplace_back(key);
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (all_[i].first == key) {
      used_[i] = true;
      return &all_[i].second;
    }
  return nullptr;
}

void decoder_settings::refuse(std::string_view key, std::string_view value, const std::string &wanted) {
  if (bad_value_.empty())
    bad_value_ = std::string(key) + "=" + std::string(value) + ": expected " + wanted;
}

std::string decoder_settings::text(std::string_view key, std::string_view otherwise) {
  const std::string *const value = find(key);
  return value != nullptr ? *value : std::string(otherwise);
}

std::string decoder_settings::choice(std::string_view key, std::string_view otherwise,
                                     const std::vector<std::string_view> &allowed) {
  std::string value = text(key, otherwise);
  if (std::ranges::find(allowed, value) == allowed.end())
    refuse(key, value, "one of " + joined({allowed.begin(), allowed.end()}));
  return value;
}

std::uint64_t decoder_settings::number(std::string_view key, std::uint64_t otherwise, std::uint64_t lowest,
                                       std::uint64_t highest) {
  const std::string *const value = find(key);
  std::uint64_t result = otherwise;
  if (value != nullptr && (!read_all(*value, result) || result < lowest || result > highest))
    refuse(key, *value, "a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest));
  return result;
}

double decoder_settings::real(std::string_view key, double otherwise, double lowest, double highest) {
  const std::string *const value = find(key);
  double result = otherwise;
  if (value != nullptr && (!read_all(*value, result) || !(result >= lowest && result <= highest)))
    refuse(key, *value, "a number from " + short_text(lowest) + " to " + short_text(highest));
  return result;
}

expected<> decoder_settings::check() const {
  if (!bad_value_.empty())
    return reason(bad_value_);
  namespace rt = cudaq::realtime::detail;
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (!used_[i]) {
      const std::string &key = all_[i].first;
      const std::string similar = rt::did_you_mean(rt::similar_words(key, known_));
      return reason("unknown setting \"" + key + "\": known are " + joined(known_) +
                    (similar.empty() ? "" : "." + similar));
    }
  return {};
}

decoder_settings::list decoder_settings::rest() const {
  list result;
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (!used_[i])
      result.push_back(all_[i]);
  return result;
}

namespace {

/// The end of the setting that begins at `at`: the next comma that is not in parentheses, if `nested`.
std::size_t end_of_setting(std::string_view text, std::size_t at, bool nested) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == ',' && depth == 0)
      break;
    if (nested)
      depth += (text[at] == '(' ? 1 : 0) - (text[at] == ')' ? 1 : 0);
  }
  return at;
}

/// Of a race or of windows: other decoders, with the paths of plug-ins, are settings.
bool has_other_names(std::string_view text) { return text.starts_with("race:") || text.starts_with("sliding-window:"); }

} // namespace

expected<decoder_name> decoder_name::parse(std::string_view text) {
  const bool is_race = text.starts_with("race:"), is_nested = has_other_names(text);
  const std::size_t plugin = is_nested ? std::string_view::npos : text.find(".so:");
  const std::size_t colon = plugin != std::string_view::npos ? plugin + 3 : text.find(':');
  decoder_name made{std::string(text.substr(0, colon)), decoder_settings{}};
  if (colon == std::string_view::npos)
    return made;
  decoder_settings::list all;
  for (std::size_t at = colon + 1; at <= text.size();) {
    const std::size_t end = end_of_setting(text, at, is_nested);
    const std::string_view one = text.substr(at, end - at);
    at = end + 1;
    if (is_race && all.empty()) {
      all.emplace_back("members", std::string(one));
      continue;
    }
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return reason("decoder \"" + std::string(text) + "\": \"" + std::string(one) + "\" is not a setting key=value");
    const std::string key(one.substr(0, equals));
    if (std::ranges::any_of(all, [&](const auto &other) { return other.first == key; }))
      return reason("decoder \"" + std::string(text) + "\": the setting " + key + " is listed twice");
    all.emplace_back(key, std::string(one.substr(equals + 1)));
  }
  made.settings = decoder_settings(std::move(all));
  return made;
}

std::string without_parentheses(std::string_view inner) {
  std::string name(inner);
  const std::size_t open = name.find('(');
  if (open != std::string::npos && name.ends_with(')') && open < name.find(':')) {
    name[open] = ':';
    name.pop_back();
  }
  return name;
}

std::string with_setting(std::string_view name, std::string_view key, std::string_view value) {
  const bool has_settings = has_other_names(name) || name.find(".so:") != std::string_view::npos ||
                            (name.find(':') != std::string_view::npos && !name.ends_with(".so"));
  return std::string(name) + (has_settings ? "," : ":") + std::string(key) + "=" + std::string(value);
}

std::string path_in(const std::string &folder, std::string_view path) {
  if (path.starts_with('/'))
    return std::string(path);
  while (path.starts_with("./"))
    path = path.substr(std::min(path.find_first_not_of('/', 1), path.size()));
  return folder + (folder.ends_with('/') ? "" : "/") + std::string(path);
}

namespace {

bool ends_with_setting(std::string_view text, std::string_view setting) {
  if (!text.ends_with(setting))
    return false;
  text.remove_suffix(setting.size());
  return text.ends_with(':') || text.ends_with(',') || text.ends_with('(');
}

} // namespace

std::string with_folder(std::string_view name, const std::string &folder) {
  std::string result;
  for (std::size_t at = 0; at < name.size();) {
    const std::string_view before = name.substr(0, at);
    const bool is_file =
        name[at] != ',' && (ends_with_setting(before, "heralds=") || ends_with_setting(before, "predecoder=model=") ||
                            before.ends_with("model-gpu:weights=") || before.ends_with("model-gpu(weights="));
    const bool begins = is_file || before.empty() || before.ends_with("race:") || before.ends_with("race(") ||
                        before.ends_with('|') || before.ends_with("inner=");
    const std::size_t end = begins ? std::max(std::min(name.find_first_of(":(,|)", at), name.size()), at + 1) : at + 1;
    const std::string token(name.substr(at, end - at));
    result +=
        is_file || (begins && decoder_name{token, decoder_settings{}}.is_plugin()) ? path_in(folder, token) : token;
    at = end;
  }
  return result;
}

bool decoder_name::is_plugin() const noexcept { return name.find('/') != std::string::npos || name.ends_with(".so"); }

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/qec_expected.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime {

/// The settings of a decoder, as text. A factory asks for each setting that it knows, and then for error(): a setting
/// that was not asked for is unknown.
class decoder_settings {
public:
  using list = std::vector<std::pair<std::string, std::string>>;
  explicit decoder_settings(list all = {}) : all_(std::move(all)), used_(all_.size(), false) {}

  /// The value of a setting, or the given one if it is absent. A bad value is kept for check(). `text` returns any
  /// text; `choice` one of `allowed`; `number` and `real` a number between lowest and highest.
  [[nodiscard]] std::string text(std::string_view key, std::string_view otherwise);
  [[nodiscard]] std::string choice(std::string_view key, std::string_view otherwise,
                                   const std::vector<std::string_view> &allowed);
  [[nodiscard]] std::uint64_t number(std::string_view key, std::uint64_t otherwise, std::uint64_t lowest,
                                     std::uint64_t highest);
  [[nodiscard]] double real(std::string_view key, double otherwise, double lowest, double highest);
  [[nodiscard]] bool flag(std::string_view key) { return number(key, 0, 0, 1) != 0; }

  /// Fails with the first bad value, or with an unknown setting and the list of the known ones.
  [[nodiscard]] expected<> check() const;
  /// The settings that were not asked for. A plug-in gets them.
  [[nodiscard]] list rest() const;

private:
  const std::string *find(std::string_view key);
  void refuse(std::string_view key, std::string_view value, const std::string &wanted);

  list all_;
  std::vector<bool> used_;
  std::vector<std::string> known_;
  std::string bad_value_;
};

/// "bp-osd:osd_order=7,max_iterations=60" in its parts.
struct decoder_name {
  std::string name;
  decoder_settings settings;
  /// Settings begin after the first `.so:`, else after the first `:`. Refused: a setting without `=`, without a key,
  /// or listed twice. "race:A(x=1,y=2)|B,mode=best": the first setting of a race is `members`, without this key. A
  /// decoder in the name of another one, a member or the inner one of sliding-window, may have its settings in
  /// parentheses; their commas belong to it: "sliding-window:inner=race(A|B(x=1),mode=best),mode=parallel".
  [[nodiscard]] static expected<decoder_name> parse(std::string_view text);
  /// Whether the name is the path of a plug-in: it has a `/` or ends in `.so`.
  [[nodiscard]] bool is_plugin() const noexcept;
};

/// A decoder in the name of another one as a name of its own: "race(A|B(x=1),mode=best)" is "race:A|B(x=1),mode=best".
/// A name without parentheses stays.
[[nodiscard]] std::string without_parentheses(std::string_view inner);

/// The name with one more setting.
[[nodiscard]] std::string with_setting(std::string_view name, std::string_view key, std::string_view value);

/// A path that begins in `folder`, unless it begins with a `/`. The result has a `/`; "./" at its begin is left out:
/// "./a.so" in "." is "./a.so".
[[nodiscard]] std::string path_in(const std::string &folder, std::string_view path);

/// The name with `folder` before each relative path of a plug-in, of heralds or of a network in it, also of members and
/// inner decoders.
[[nodiscard]] std::string with_folder(std::string_view name, const std::string &folder);

} // namespace cudaq::qec::realtime

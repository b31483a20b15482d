// SPDX-License-Identifier: Apache-2.0
// What a step that can fail returns: a value or nothing, or the reason for its failure.
//
//   expected<std::string> text = read_whole_file(path);       if (expected<> result = check(o); result.failed())
//   if (text.failed())                                          return result;
//     return text.reason();
//   parse(*text);
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_status.h"

#include <concepts>
#include <optional>
#include <string>
#include <utility>

namespace cudaq::realtime::detail {

/// Why a step failed: a status other than CUDAQ_OK, and a text.
struct reason {
  reason(cudaq_status_t why, std::string explained) : status(why), text(std::move(explained)) {}
  /// Of a model, a file or a setting that is refused, where no caller needs a status.
  explicit reason(std::string explained) : text(std::move(explained)) {}

  cudaq_status_t status = CUDAQ_ERR_INVALID_ARG;
  std::string text;
};

/// A value, or the reason why there is none. There is no conversion to bool: a condition says ok() or failed().
template <class T = void>
class expected;

/// Nothing, or the reason of a failure.
template <>
class [[nodiscard]] expected<void> {
public:
  expected() = default;
  expected(detail::reason why) : reason_(std::move(why)) {}
  expected(cudaq_status_t status, std::string text) : reason_{status, std::move(text)} {}

  [[nodiscard]] bool ok() const noexcept { return reason_.status == CUDAQ_OK; }
  [[nodiscard]] bool failed() const noexcept { return !ok(); }
  /// After a success: CUDAQ_OK and an empty text.
  [[nodiscard]] cudaq_status_t status() const noexcept { return reason_.status; }
  [[nodiscard]] const std::string &text() const noexcept { return reason_.text; }
  /// To return it as the reason of another failure.
  [[nodiscard]] const detail::reason &reason() const noexcept { return reason_; }

private:
  detail::reason reason_{CUDAQ_OK, {}};
};

template <class T>
class [[nodiscard]] expected : public expected<> {
public:
  template <std::convertible_to<T> Value = T>
  expected(Value &&value) : value_(std::forward<Value>(value)) {}
  expected(detail::reason why) : expected<>(std::move(why)) {}

  /// The value. Only after a success.
  T &operator*() noexcept { return *value_; }
  const T &operator*() const noexcept { return *value_; }
  T *operator->() noexcept { return &*value_; }
  const T *operator->() const noexcept { return &*value_; }

private:
  std::optional<T> value_;
};

} // namespace cudaq::realtime::detail

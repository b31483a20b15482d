// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace cudaq::qec::realtime {

/// A value, or an error text.
template <typename T>
struct or_error {
  std::optional<T> value;
  std::string error;

  or_error(T v) : value(std::move(v)) {}
  static or_error failure(std::string text) { return or_error(std::move(text), 0); }

  explicit operator bool() const noexcept { return value.has_value(); }
  T &operator*() { return *value; }
  const T &operator*() const { return *value; }
  T *operator->() { return &*value; }
  const T *operator->() const { return &*value; }

private:
  or_error(std::string text, int) : error(std::move(text)) {}
};

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace cudaq::qec::realtime::detail {

/// The text of a stop_report: findings, separated by "; ". A stop must not fail, so its text needs no allocation:
/// findings that do not fit are left out.
class stop_text {
public:
  bool empty() const { return size_ == 0; }
  const char *c_str() const { return text_.data(); }

  /// Appends a finding, by a printf format.
  [[gnu::format(printf, 2, 3)]] void add(const char *format, ...) noexcept {
    if (size_ != 0)
      append("; ");
    va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(text_.data() + size_, text_.size() - size_, format, arguments);
    va_end(arguments);
    size_ = std::min(size_ + static_cast<std::size_t>(std::max(length, 0)), text_.size() - 1);
  }

private:
  void append(const char *part) noexcept {
    const std::size_t length = std::min(std::strlen(part), text_.size() - 1 - size_);
    std::memcpy(text_.data() + size_, part, length);
    text_[size_ += length] = '\0';
  }

  std::array<char, 4096> text_{}; ///< room for a finding of each of 64 workers
  std::size_t size_ = 0;
};

} // namespace cudaq::qec::realtime::detail

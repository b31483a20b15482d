// SPDX-License-Identifier: Apache-2.0
// What all fuzz targets share: reading fields from the input, and reporting a property that does not hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace cudaq::realtime::test {

/// Ends the program if a property of the parser does not hold. The fuzzer keeps the input.
inline void require(bool holds, const char *property) {
  if (holds)
    return;
  std::fprintf(stderr, "does not hold: %s\n", property);
  std::abort();
}
inline void require(bool holds, const std::string &property) { require(holds, property.c_str()); }

/// Takes fields from the front of the input. After its end all fields are 0 and all texts are empty.
class fuzz_input {
public:
  fuzz_input(const std::uint8_t *data, std::size_t size) : left_(data, size) {}

  bool empty() const { return left_.empty(); }
  template <class Number>
  Number take() {
    Number value{};
    const std::size_t n = std::min(sizeof(value), left_.size());
    if (n != 0)
      std::memcpy(&value, left_.data(), n);
    left_ = left_.subspan(n);
    return value;
  }
  std::span<const std::uint8_t> bytes(std::size_t size) {
    const auto taken = left_.first(std::min(size, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  std::span<const std::uint8_t> rest() { return bytes(left_.size()); }
  /// The text before the next `separator`, or all that is left.
  std::string_view text_until(std::string_view separator) {
    const std::string_view all(reinterpret_cast<const char *>(left_.data()), left_.size());
    const std::size_t end = all.find(separator);
    const std::string_view taken = all.substr(0, end);
    left_ = left_.subspan(end == std::string_view::npos ? left_.size() : end + separator.size());
    return taken;
  }

private:
  std::span<const std::uint8_t> left_;
};

} // namespace cudaq::realtime::test

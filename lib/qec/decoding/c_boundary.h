// SPDX-License-Identifier: Apache-2.0
// What the C interfaces of decoders and streams share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace cudaq::qec::realtime {

/// The text with a 0 at its end, cut if `size` bytes are too few. Nothing is written to null, or to 0 bytes.
inline void write_text(std::string_view text, char *to, std::size_t size) noexcept {
  if (to == nullptr || size == 0)
    return;
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

/// Whether the caller's struct is one of this version of the library.
template <typename Struct>
bool has_known_size(const Struct *one) noexcept {
  return one != nullptr && one->struct_size == sizeof(Struct);
}

} // namespace cudaq::qec::realtime

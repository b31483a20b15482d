// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

namespace cudaq::realtime::detail {

/// The number in an enum that code of others has made, in C or by a cast: it may differ from all enumerators.
template <class Enum>
int number_in(const Enum &value) {
  int number = 0;
  static_assert(sizeof(number) == sizeof(value));
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

} // namespace cudaq::realtime::detail

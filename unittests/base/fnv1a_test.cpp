// SPDX-License-Identifier: Apache-2.0
// The values of the reference (draft-eastlake-fnv, test vectors of FNV-1a with 64 bits).
#include "lib/base/content_hash.h"

#include <gtest/gtest.h>
#include <span>
#include <string_view>

namespace cudaq::realtime::detail {
namespace {

TEST(Fnv1a, HasTheValuesOfTheReference) {
  EXPECT_EQ(fnv1a_64(std::string_view("")), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a_64(std::string_view("a")), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a_64(std::string_view("foobar")), 0x85944171f73967e8u);
}

TEST(Fnv1a, TakesBytesAboveSevenBitsAlikeFromTextAndNumbers) {
  const std::uint8_t bytes[] = {0x80, 0xFF};
  EXPECT_EQ(fnv1a_64(std::span(bytes)), fnv1a_64(std::string_view("\x80\xFF")));
}

} // namespace
} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/qec_test_support.h"

#include <random>

namespace cudaq::qec::realtime::test {
namespace {

using bytes = std::vector<std::uint8_t>;
using indices = std::vector<std::uint64_t>;

TEST(EventBits, UnpacksTheDocumentedExample) {
  indices events(10);
  const unpack_result good = unpack_events(bytes{0x05, 0x02}, 10, events);
  EXPECT_EQ(good.status, decode_status::ok);
  events.resize(good.count);
  EXPECT_EQ(events, (indices{0, 2, 9}));
  EXPECT_EQ(unpack_events(bytes{0x05, 0x04}, 10, events).status, decode_status::bad_detector_index);
}

TEST(EventBits, PackedAndUnpackedAgreeForEverySize) {
  std::mt19937 random(11);
  for (std::uint64_t size = 0; size <= 200; ++size)
    for (const unsigned one_in : {1U, 2U, 30U}) {
      indices events;
      for (std::uint64_t d = 0; d < size; ++d)
        if (random() % one_in == 0)
          events.push_back(d);
      bytes packed((size + 7) / 8, 0xFF);
      ASSERT_EQ(pack_events(events, size, packed), decode_status::ok);
      indices back(size);
      const unpack_result result = unpack_events(packed, size, back);
      ASSERT_EQ(result.status, decode_status::ok);
      back.resize(result.count);
      ASSERT_EQ(back, events) << "size " << size;
    }
}

TEST(EventBits, RefusesEverySingleBitPastTheLastDetector) {
  indices events(200);
  for (const std::uint64_t size : {0U, 1U, 7U, 8U, 24U, 63U, 64U, 65U, 120U})
    for (std::uint64_t bit = size; bit < 160; ++bit) {
      bytes packed(20);
      packed[bit / 8] = static_cast<std::uint8_t>(1U << (bit % 8));
      EXPECT_EQ(unpack_events(packed, size, events).status, decode_status::bad_detector_index) << size << " " << bit;
    }
}

TEST(EventBits, TakesZeroBytesPastTheLastDetector) {
  indices events(8);
  const unpack_result result = unpack_events(bytes{0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 8, events);
  EXPECT_EQ(result.status, decode_status::ok);
  EXPECT_EQ(result.count, 1U);
  EXPECT_EQ(events[0], 7U);
}

TEST(EventBits, RefusesShortBuffers) {
  indices events(2);
  bytes packed(1);
  EXPECT_EQ(unpack_events(bytes{0xFF}, 9, events).status, decode_status::buffer_too_small);
  EXPECT_EQ(unpack_events(bytes{0x07}, 8, events).status, decode_status::buffer_too_small);
  EXPECT_EQ(unpack_events(bytes{0x03}, 8, events).status, decode_status::ok);
  EXPECT_EQ(pack_events(indices{}, 9, packed), decode_status::buffer_too_small);
}

TEST(EventBits, PackRefusesBadAndRepeatedIndices) {
  bytes packed(2);
  EXPECT_EQ(pack_events(indices{9}, 9, packed), decode_status::bad_detector_index);
  EXPECT_EQ(pack_events(indices{3, 3}, 9, packed), decode_status::duplicate_detector_index);
}

} // namespace
} // namespace cudaq::qec::realtime::test

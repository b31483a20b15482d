// SPDX-License-Identifier: Apache-2.0
// Structs with a struct_size, for each size that a caller may pass; and words of the caller that are not aligned.
#include "unittests/support/api_fixture.h"

#include <cstddef>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint8_t kUntouched = 0xA5;

/// The ends of the fields of a struct.
using field_ends = std::vector<std::size_t>;

/// Ends of `count` fields of `size` bytes each, which begin at `at`.
void add_fields(field_ends &ends, std::size_t &at, std::size_t count, std::size_t size) {
  for (std::size_t n = 0; n < count; ++n)
    ends.push_back(at += size);
}
field_ends ends_of_options() {
  field_ends ends;
  std::size_t at = 0;
  add_fields(ends, at, 12, 4); // up to realtime_priority
  add_fields(ends, at, 2, 8);
  add_fields(ends, at, 4, 4);
  EXPECT_EQ(at, sizeof(cudaq_dispatcher_options_t));
  return ends;
}
field_ends ends_of_stats() {
  field_ends ends;
  std::size_t at = 0;
  add_fields(ends, at, 2, 4);
  add_fields(ends, at, 9 + CUDAQ_RPC_ERROR_COUNT + 5, 8); // up to heartbeat
  EXPECT_EQ(at, offsetof(cudaq_dispatcher_stats_t, cursor));
  add_fields(ends, at, 2, 4);
  add_fields(ends, at, 3, 8);
  EXPECT_EQ(at, sizeof(cudaq_dispatcher_stats_t));
  return ends;
}
field_ends ends_of_ring_options() {
  field_ends ends;
  std::size_t at = 0;
  add_fields(ends, at, 9, 4);
  EXPECT_EQ(at, sizeof(cudaq_ringbuffer_options_t));
  return ends;
}
/// The end of the last whole field.
std::size_t whole(const field_ends &ends, std::size_t size) {
  std::size_t end = 0;
  for (const std::size_t e : ends)
    end = e <= size ? e : end;
  return end;
}

/// Calls `fill(struct, size)` for each size, and checks which bytes it writes.
template <class T, class Fill>
void expect_whole_fields_written(const field_ends &ends, Fill &&fill) {
  for (std::uint32_t size = 4; size <= sizeof(T); size += 4) {
    alignas(T) std::uint8_t bytes[sizeof(T)];
    std::memset(bytes, kUntouched, sizeof(bytes));
    auto *const out = reinterpret_cast<T *>(bytes);
    CUDAQ_EXPECT_OK(fill(out, size));
    EXPECT_EQ(out->struct_size, size);
    for (std::size_t at = whole(ends, size); at < sizeof(T); ++at)
      EXPECT_EQ(bytes[at], kUntouched) << "byte " << at << " was written, struct_size " << size;
  }
}

// Known failure 57.
TEST(SizedStruct, IsWrittenInWholeFields) {
  expect_whole_fields_written<cudaq_dispatcher_options_t>(
      ends_of_options(),
      [](cudaq_dispatcher_options_t *out, std::uint32_t size) { return cudaq_dispatcher_options_init(out, size); });
  expect_whole_fields_written<cudaq_ringbuffer_options_t>(
      ends_of_ring_options(),
      [](cudaq_ringbuffer_options_t *out, std::uint32_t size) { return cudaq_ringbuffer_options_init(out, size); });
  bench b;
  expect_whole_fields_written<cudaq_dispatcher_stats_t>(ends_of_stats(),
                                                        [&](cudaq_dispatcher_stats_t *out, std::uint32_t size) {
                                                          out->struct_size = size;
                                                          return cudaq_dispatcher_get_stats(b.get(), out);
                                                        });
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_handler_times(b.get(), 1));
  b.on(1, [](cudaq_host_call_t &) { return 0; });
  b.start();
  field_ends ends_of_times;
  std::size_t at = 0;
  add_fields(ends_of_times, at, 2, 4);
  add_fields(ends_of_times, at, 6, 8); // all but the buckets: enough for the rule, and sizes up to all of them are many
  for (std::uint32_t size = 4; size <= at; size += 4) {
    cudaq_handler_times_t times;
    std::memset(&times, kUntouched, sizeof(times));
    times.struct_size = size;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_get_handler_times(b.get(), 1, &times));
    EXPECT_EQ(times.struct_size, size);
    for (std::size_t byte = whole(ends_of_times, size); byte < sizeof(times); ++byte)
      ASSERT_EQ(reinterpret_cast<const std::uint8_t *>(&times)[byte], kUntouched) << byte << ", size " << size;
  }
}

// The half of the field that the caller has holds a number that the library must not mix with its default.
TEST(SizedStruct, IsReadInWholeFields) {
  bench b;
  b.start();
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
  for (const std::size_t half : {offsetof(cudaq_dispatcher_options_t, block_interval_ns) + 4,
                                 offsetof(cudaq_dispatcher_options_t, grace_period_ns) + 4}) {
    cudaq_dispatcher_options_t given = default_options();
    given.block_interval_ns = half < offsetof(cudaq_dispatcher_options_t, grace_period_ns) ? 77 : 500000;
    given.grace_period_ns = 77;
    given.struct_size = static_cast<std::uint32_t>(half);
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(b.get(), &given));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(b.get()));
    const std::string text = b.dispatcher->dump();
    CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
    EXPECT_NE(text.find("block interval 500000 ns, grace period 5000000000 ns"), std::string::npos) << text;
  }
}

TEST(SizedStruct, IsRefusedWithASizeThatNoStructHas) {
  cudaq_dispatcher_options_t options;
  const std::uint32_t bad[] = {0, 1, 2, 3, 5, 50, sizeof(options) - 1, sizeof(options) + 4, UINT32_MAX};
  for (const std::uint32_t size : bad) {
    EXPECT_EQ(cudaq_dispatcher_options_init(&options, size), CUDAQ_ERR_INVALID_ARG) << size;
    EXPECT_TRUE(error_names({"struct_size is " + std::to_string(size)}));
  }
}

// Known failure 57.
TEST(ControlWords, AreRefusedUnlessAligned) {
  bench b;
  alignas(8) std::uint8_t memory[32] = {};
  for (std::size_t offset = 0; offset < 8; ++offset) {
    auto *const flag = reinterpret_cast<volatile int *>(memory + offset);
    auto *const stats = reinterpret_cast<std::uint64_t *>(memory + 16 + offset);
    auto *const good_flag = reinterpret_cast<volatile int *>(memory);
    auto *const good_stats = reinterpret_cast<std::uint64_t *>(memory + 16);
    EXPECT_EQ(cudaq_dispatcher_set_control(b.get(), flag, good_stats),
              offset % 4 == 0 ? CUDAQ_OK : CUDAQ_ERR_INVALID_ARG);
    if (offset % 4 != 0) {
      EXPECT_TRUE(error_names({"shutdown_flag", "not a multiple of 4"}));
    }
    EXPECT_EQ(cudaq_dispatcher_set_control(b.get(), good_flag, stats), offset == 0 ? CUDAQ_OK : CUDAQ_ERR_INVALID_ARG);
    if (offset != 0) {
      EXPECT_TRUE(error_names({"stats", "not a multiple of 8"}));
    }
  }
  // The words must outlive the dispatcher.
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(b.get(), &b.dispatcher->shutdown, &b.dispatcher->processed));
}

} // namespace
} // namespace cudaq::realtime::test

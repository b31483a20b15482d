// SPDX-License-Identifier: Apache-2.0
// The copies of the kernels before and after an inference, with the threads of a block one after another.
#include "lib/qec/services/service_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace cudaq::qec::realtime::test {
namespace {

// The lengths around the 8 words that a thread copies at a time, and odd ones; 9475 as a payload of d13.
TEST(ServiceCopy, FillsTheInputWithThePayloadAndZerosAndNothingElse) {
  constexpr std::size_t kInput = 9475;
  for (const std::uint32_t threads : {1u, 3u, 256u})
    for (const std::size_t given : {0u, 1u, 7u, 8u, 63u, 64u, 65u, 1536u, 1543u, 2048u, 9472u, 9475u, 9999u}) {
      std::vector<std::uint64_t> frame(1300), input(1300, ~std::uint64_t{0});
      auto *const bytes = reinterpret_cast<std::uint8_t *>(frame.data());
      auto *const seen = reinterpret_cast<std::uint8_t *>(input.data());
      std::iota(bytes, bytes + 8 * frame.size(), std::uint8_t{3});
      cudaq_rpc_header_t header{};
      header.arg_len = static_cast<std::uint32_t>(given);
      std::memcpy(bytes, &header, sizeof(header));
      experimental::service_queue q{};
      q.input = seen;
      q.input_bytes = kInput;
      for (std::uint32_t thread = 0; thread < threads; ++thread)
        detail::copy_input(q, bytes, thread, threads);
      const std::size_t copied = std::min(given, kInput);
      ASSERT_EQ(std::memcmp(seen, bytes + CUDAQ_RPC_HEADER_SIZE, copied), 0) << given << " with " << threads;
      ASSERT_TRUE(std::all_of(seen + copied, seen + kInput, [](std::uint8_t b) { return b == 0; })) << given;
      ASSERT_TRUE(std::all_of(seen + kInput, seen + 8 * input.size(), [](std::uint8_t b) { return b == 255; }))
          << given;
    }
}

} // namespace
} // namespace cudaq::qec::realtime::test

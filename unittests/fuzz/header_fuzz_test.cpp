// SPDX-License-Identifier: Apache-2.0
// Row 8: the same random headers in every run. ASan and UBSan also find errors that the guard bytes do not.
#include "unittests/fuzz/header_fuzz.h"

#include <gtest/gtest.h>
#include <random>

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  std::uint32_t slots, slot_size;
  std::size_t stride;
  bool in_place, strict, answer;
};
void PrintTo(const flavour &f, std::ostream *out) { *out << f.name; }

class HeaderFuzz : public ::testing::TestWithParam<flavour> {};

// Known failure 8.
TEST_P(HeaderFuzz, NeverLeavesTheSlotAndAnswersOnce) {
  const flavour &f = GetParam();
  header_fuzz fuzz(f.slots, f.slot_size, f.stride, f.in_place, f.strict, f.answer);
  std::mt19937_64 random(2026);
  const auto one_in = [&](std::uint64_t n) { return random() % n == 0; };
  const auto word = [&] { return static_cast<std::uint32_t>(random()); };
  for (int n = 0; n < 30000; ++n) {
    fuzzed_request r{};
    r.magic =
        one_in(8) ? (one_in(2) ? word() : CUDAQ_RPC_MAGIC_REQUEST ^ (1u << (word() % 32))) : CUDAQ_RPC_MAGIC_REQUEST;
    r.function_id = one_in(8) ? word() : word() % 5;
    const std::uint32_t edge = f.slot_size - 24 + word() % 3 - 1;
    r.arg_len = one_in(3)   ? word()
                : one_in(3) ? edge
                : one_in(4) ? 0xFFFFFFFFu - word() % 32
                            : word() % (f.slot_size + 8);
    r.request_id = word();
    r.ptp_timestamp = random();
    r.flag = one_in(4) ? random() : 0;
    const std::string problem = fuzz.step(r);
    ASSERT_EQ(problem, "") << "request " << n << ": magic " << r.magic << " function " << r.function_id << " arg_len "
                           << r.arg_len;
  }
}

INSTANTIATE_TEST_SUITE_P(Flavours, HeaderFuzz,
                         ::testing::Values(flavour{"OneSlot", 1, 64, 64, false, false, false},
                                           flavour{"HeaderOnly", 3, 24, 24, false, false, true},
                                           flavour{"HeaderOnlyInPlace", 2, 24, 64, true, false, true},
                                           flavour{"WideStride", 5, 61, 128, false, true, true},
                                           flavour{"WideStrideInPlace", 5, 61, 128, true, false, true},
                                           flavour{"OddSlotInPlace", 4, 25, 32, true, true, false},
                                           flavour{"Large", 3, 1024, 1032, false, false, true}),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test

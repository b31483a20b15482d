// SPDX-License-Identifier: Apache-2.0
// Runs each fuzz target over its corpus, without libFuzzer: every input, and every input cut off at up to 64 places.
#include "unittests/support/program_paths.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <vector>

// The targets: CMake gives each LLVMFuzzerTestOneInput a name of its own.
#define CUDAQ_FUZZ_TARGET(name, words) extern "C" int name##_fuzz_target(const std::uint8_t *data, std::size_t size);
#include <fuzz_targets.inc>
#undef CUDAQ_FUZZ_TARGET

namespace cudaq::realtime::test {
namespace {

using target = int (*)(const std::uint8_t *, std::size_t);
constexpr auto kMaxTime = std::chrono::seconds(10); // for one input; it takes a millisecond, and under ASan a few

void run(target run_target, const std::string &input, const std::string &name) {
  // A copy of exactly this size: the address sanitizer finds a read after the end.
  const std::vector<std::uint8_t> exact(input.begin(), input.end());
  const auto begin = std::chrono::steady_clock::now();
  run_target(exact.data(), exact.size());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kMaxTime) << name;
}

void replay(const std::string &name, target run_target) {
  std::size_t inputs = 0;
  for (const auto &entry : std::filesystem::directory_iterator(CUDAQ_FUZZ_CORPUS + ("/" + name))) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string input((std::istreambuf_iterator<char>(file)), {});
    ASSERT_TRUE(file) << entry.path();
    const std::size_t step = input.size() / 64 + 1;
    for (std::size_t size = 0; size < input.size(); size += step)
      run(run_target, input.substr(0, size), entry.path());
    run(run_target, input, entry.path());
    ++inputs;
  }
  EXPECT_GE(inputs, 3u) << "the corpus of " << name;
}

#define CUDAQ_FUZZ_TARGET(name, words)                                                                                 \
  TEST(Fuzz, words##ReplaysItsCorpus) { replay(#name, name##_fuzz_target); }
#include <fuzz_targets.inc>

} // namespace
} // namespace cudaq::realtime::test

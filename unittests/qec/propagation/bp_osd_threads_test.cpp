// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/propagation/bp_osd_test_support.h"

#include <atomic>
#include <thread>

namespace cudaq::qec::realtime::test {
namespace {

TEST(BpOsdThreads, WorkersWithTheirOwnInstanceGiveTheSameAnswers) {
  constexpr int kWorkers = 4;
  const oracle_set set("color_d3_p0.01");
  std::vector<answer> expected;
  const auto first = make_or_throw("bp-osd", set.dem_text);
  for (const auto &events : set.shots)
    expected.push_back(decode(*first, events));
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker)
    workers.emplace_back([&] {
      const auto with = make_or_throw("bp-osd", set.dem_text);
      for (std::size_t shot = 0; shot < set.shots.size(); ++shot)
        wrong += decode(*with, set.shots[shot]) != expected[shot];
    });
  for (std::thread &worker : workers)
    worker.join();
  EXPECT_EQ(wrong, 0U);
}

} // namespace
} // namespace cudaq::qec::realtime::test

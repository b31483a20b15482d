// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/qec_test_support.h"

#include <atomic>
#include <thread>

namespace cudaq::qec::realtime::test {
namespace {

class DecoderThreads : public testing::TestWithParam<std::string> {};

// Known failure 33.
TEST_P(DecoderThreads, WorkersWithTheirOwnInstanceShareNothing) {
  constexpr int kWorkers = 4;
  const shot_set set = load_committed(shot_set_name(GetParam() == "lookup" ? 3 : 5, "0.005"));
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker)
    workers.emplace_back([&set, &wrong] {
      // Built here, so that the construction also races with the decoding of the other threads.
      const auto with = make_or_throw(GetParam(), set.dem_text);
      std::vector<std::uint64_t> events(set.num_detectors);
      for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
        const std::size_t count = unpack_events(set.detection_row(shot), set.num_detectors, events).count;
        std::uint8_t out = 0;
        const decode_status status = with->decode(std::span(events).first(count), {&out, 1});
        wrong += status != decode_status::ok || out != set.prediction_row(shot)[0];
      }
    });
  for (std::thread &worker : workers)
    worker.join();
  EXPECT_EQ(wrong, 0U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DecoderThreads, testing::ValuesIn(decoder_kinds()), kind_name);

} // namespace
} // namespace cudaq::qec::realtime::test

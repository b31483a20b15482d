// SPDX-License-Identifier: Apache-2.0
// The body of the predecoding kernel, run on the CPU by groups of several sizes and compared with the CPU predecoder.
#include "kernels/qec/predecode_body.h"

#include "lib/qec/decoding/detector_graph.h"
#include "lib/qec/decoding/predecoder.h"
#include "unittests/qec/qec_test_support.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

namespace cudaq::qec::realtime::test {
namespace {

/// What the threads of a block share, on the CPU.
struct shared_group {
  explicit shared_group(std::uint32_t n) : threads(n), counts(n), barrier(n) {}
  const std::uint32_t threads;
  std::vector<std::uint32_t> counts;
  std::atomic<bool> any{false};
  std::barrier<> barrier;
};

class cpu_group {
public:
  cpu_group(shared_group &of, std::uint32_t thread) : of_(of), thread_(thread) {}
  std::uint32_t thread() const { return thread_; }
  std::uint32_t threads() const { return of_.threads; }
  void sync() const { of_.barrier.arrive_and_wait(); }
  bool any(bool mine) const {
    if (mine)
      of_.any = true;
    sync();
    return of_.any;
  }
  std::uint32_t sum_before(std::uint32_t mine, std::uint32_t, std::uint32_t &total) const {
    of_.counts[thread_] = mine;
    sync();
    total = std::accumulate(of_.counts.begin(), of_.counts.end(), std::uint32_t{0});
    return std::accumulate(of_.counts.begin(), of_.counts.begin() + thread_, std::uint32_t{0});
  }
  gpu::group_team<single_lane> team() const { return {thread_, threads(), {}}; }
  void clear_bits(std::uint32_t &word, std::uint32_t bits) const { std::atomic_ref(word) &= ~bits; }
  void flip_bits(std::uint32_t &word, std::uint32_t bits) const { std::atomic_ref(word) ^= bits; }
  std::uint32_t add(std::uint32_t &word, std::uint32_t n) const { return std::atomic_ref(word).fetch_add(n); }

private:
  shared_group &of_;
  const std::uint32_t thread_;
};

struct both {
  both(const std::string &name, const std::string &dem)
      : cpu(std::move(*make_predecoder(name, dem))), graph(detector_graph::from_text(dem)) {
    job.layout = cpu->layout();
    if (name == "local")
      job.graph = graph->view();
  }
  std::vector<std::uint64_t> room() const {
    return std::vector<std::uint64_t>((cpu->layout().bytes() + 15) / 8, 0xEEEEEEEEEEEEEEEEu);
  }
  /// Compares the outputs of both for a payload.
  void expect_equal(const std::vector<std::uint8_t> &shot, std::uint32_t threads) {
    std::vector<std::uint64_t> expected = room(), actual = room();
    const decode_status status = cpu->run(shot, expected);
    // The slot begins with a header. The words after the payload do not belong to the request.
    std::vector<std::uint64_t> slot(3 + std::max(shot.size() / 8 + 1, job.layout.dense_words()), ~std::uint64_t{0});
    const cudaq_rpc_header_t header{CUDAQ_RPC_MAGIC_REQUEST, 1, static_cast<std::uint32_t>(shot.size()), 2, 3};
    std::memcpy(slot.data(), &header, sizeof(header));
    std::ranges::copy(shot, reinterpret_cast<std::uint8_t *>(slot.data() + 3));
    std::vector<std::uint64_t> scratch(gpu::predecode_scratch::bytes(job.layout) / 8, 0xDDDDDDDDDDDDDDDDu);
    auto *const output = reinterpret_cast<std::uint8_t *>(actual.data());
    shared_group group(threads);
    std::vector<std::thread> others;
    for (std::uint32_t t = 1; t < threads; ++t)
      others.emplace_back([&, t] { gpu::predecode(cpu_group(group, t), job, slot.data(), output, scratch.data()); });
    gpu::predecode(cpu_group(group, 0), job, slot.data(), output, scratch.data());
    for (std::thread &t : others)
      t.join();
    if (status == decode_status::ok)
      ASSERT_EQ(actual, expected);
    else
      ASSERT_EQ(actual[0], static_cast<std::uint64_t>(status)) << "an error has a status and no events";
  }

  std::unique_ptr<predecoder> cpu;
  expected<detector_graph> graph;
  gpu::predecode_job job;
};

class PredecodeBody : public testing::TestWithParam<std::string> {};

TEST_P(PredecodeBody, WritesWhatTheCpuWritesForRecordedShots) {
  const shot_set set = load_committed(GetParam());
  for (const char *name : {"local", "passthrough"}) {
    both compared(name, set.dem_text);
    for (std::uint64_t shot = 0; shot < std::min<std::uint64_t>(set.shots, 40); ++shot) {
      const auto row = set.detection_row(shot);
      ASSERT_NO_FATAL_FAILURE(
          compared.expect_equal({row.begin(), row.end()}, static_cast<std::uint32_t>(1 + shot % 3)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, PredecodeBody, testing::ValuesIn(committed_sets()), kind_name);

TEST(PredecodeBody, MoreEventsThanTheGroupListsComeOutInOrder) {
  std::string dem; // pairs and boundaries in a long row
  for (int d = 0; d < 9000; d += 3)
    dem += "error(0.1) D" + std::to_string(d) + " D" + std::to_string(d + 1) + " L" + std::to_string(d % 70) + "\n" +
           "error(0.1) D" + std::to_string(d + 2) + " L3\n";
  both compared("local", dem);
  std::mt19937_64 random(1);
  for (const unsigned density : {0u, 40u, 60u, 90u, 100u}) {
    std::vector<std::uint8_t> shot(9000 / 8);
    for (int d = 0; d < 9000; ++d)
      shot[static_cast<std::size_t>(d / 8)] |= static_cast<std::uint8_t>((random() % 100 < density) << d % 8);
    ASSERT_NO_FATAL_FAILURE(compared.expect_equal(shot, 2)) << density;
  }
}

TEST(PredecodeBody, ShotsThatCannotBeAreRefusedAsOnTheCpu) {
  const std::string dem = "error(0.1) D0 D1 L0\nerror(0.1) D9\n"; // 10 detectors, 2 bytes
  for (const std::uint32_t threads : {1u, 3u}) {
    both compared("local", dem);
    for (const std::vector<std::uint8_t> &shot : std::vector<std::vector<std::uint8_t>>{{},
                                                                                        {0x03},
                                                                                        {0x03, 0x00},
                                                                                        {0x03, 0x04},
                                                                                        {0x03, 0x80},
                                                                                        {0x03, 0x00, 0x01},
                                                                                        {0x03, 0x02, 0x00},
                                                                                        {0, 0, 0, 0, 0, 0, 0, 0, 1},
                                                                                        {3, 0, 0, 0, 0, 0, 0, 0, 0}})
      ASSERT_NO_FATAL_FAILURE(compared.expect_equal(shot, threads)) << shot.size();
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

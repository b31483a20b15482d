// SPDX-License-Identifier: Apache-2.0
// relay-bp on a GPU: the answers of the CPU, ends before the end, several decoders.
#include "kernels/qec/relay_bp/relay_bp_gpu.h"
#include "lib/qec/decoders/relay_bp/relay_bp.h"
#include "unittests/gpu/support/gpu_test.h"
#include "unittests/qec/propagation/bp_osd_test_support.h"

namespace cudaq::realtime::test {
namespace {

using namespace cudaq::qec::realtime;
using cudaq::qec::realtime::gpu::relay_bp_gpu;
using cudaq::qec::realtime::gpu::relay_bp_gpu_limits;
using cudaq::qec::realtime::gpu::relay_variant;
using cudaq::qec::realtime::test::graph_or_throw;
using cudaq::qec::realtime::test::oracle_set;

relay_bp_options options_of(const std::string &setting) {
  auto name = decoder_name::parse("relay-bp-gpu:" + setting);
  const relay_bp_options options = relay_bp_options_of(name->settings, true);
  EXPECT_EQ(name->settings.check().text(), "");
  return options;
}

constexpr std::size_t kBlockBytes = 232448; ///< shared memory of a block of sm_90

class RelayBpGpu : public gpu_test {
protected:
  /// Compares all shots with the CPU.
  void expect_answers_of_the_cpu(const std::string &setting, relay_variant variant, const relay_bp_gpu_limits &limits) {
    const relay_bp_options options = options_of(setting);
    relay_bp_gpu tested(graph_, options, test_device(), limits);
    EXPECT_EQ(tested.layout().variant(), variant) << tested.description();
    relay_bp expected(graph_, options);
    for (const auto &events : set_.shots) {
      ASSERT_TRUE(syndrome_.set_events(events));
      ASSERT_EQ(tested.solve(syndrome_.bytes(), {}), expected.solve(syndrome_.bytes())) << tested.fault();
      ASSERT_EQ(tested.has_solution(), expected.has_solution());
      if (expected.has_solution()) {
        ASSERT_TRUE(std::ranges::equal(tested.correction(), expected.correction()));
        ASSERT_EQ(tested.weight(), expected.weight());
      }
    }
  }
  const oracle_set set_{"bicycle_72_r6_p0.003"};
  const tanner_graph graph_ = graph_or_throw(set_.dem_text);
  graph_syndrome syndrome_{graph_};
};

TEST_F(RelayBpGpu, GivesTheCorrectionsOfTheCpuBitForBit) {
  for (const std::string setting :
       {"mode=least_weight", "mode=least_weight,ensemble=4,num_sets=12,stop_nconv=2,seed=3",
        "mode=in_step,ensemble=7,alpha=0", "mode=least_weight,pre_iter=5,num_sets=2,set_max_iter=4"})
    for (const std::uint32_t blocks : {0U, 1U, 2U, 8U})
      expect_answers_of_the_cpu(setting, relay_variant::cluster, {blocks, SIZE_MAX});
}

TEST_F(RelayBpGpu, GivesTheSameWhereTheModelDoesNotFitIntoABlock) {
  const std::string setting = "mode=in_step,ensemble=3,num_sets=20";
  const auto job = gpu::relay_layout(graph_, options_of(setting), {}).job();
  const std::size_t shared = gpu::relay_memory_bytes(job, relay_variant::shared);
  expect_answers_of_the_cpu(setting, relay_variant::registers,
                            {1, gpu::relay_memory_bytes(job, relay_variant::registers)});
  expect_answers_of_the_cpu(setting, relay_variant::shared, {1, shared});
  expect_answers_of_the_cpu(setting, relay_variant::device, {1, shared - 1});
  EXPECT_THROW(relay_bp_gpu(graph_, options_of(setting), test_device(), {4, 1000}), std::runtime_error);
  for (const std::uint32_t blocks : {2U, 4U, 8U}) {
    const auto parts = gpu::relay_layout(graph_, options_of(setting), {kBlockBytes, blocks}).job();
    const auto less_than = [&](relay_variant v) { return gpu::relay_memory_bytes(parts, v) - 8; };
    expect_answers_of_the_cpu(setting, relay_variant::cluster_shared, {blocks, less_than(relay_variant::cluster)});
    expect_answers_of_the_cpu(setting, relay_variant::cluster_device,
                              {blocks, less_than(relay_variant::cluster_shared)});
  }
}

TEST_F(RelayBpGpu, TheFirstSolutionIsASolution) {
  relay_bp_gpu tested(graph_, options_of("mode=first,ensemble=8"), test_device());
  for (const auto &events : set_.shots) {
    ASSERT_TRUE(syndrome_.set_events(events));
    ASSERT_EQ(tested.solve(syndrome_.bytes(), {}), decode_status::ok) << tested.fault();
    std::vector<std::uint8_t> left(syndrome_.bytes().begin(), syndrome_.bytes().end());
    for (const std::uint32_t column : tested.correction())
      for (const std::uint32_t check : graph_.checks_of(column))
        left[check] ^= 1;
    ASSERT_EQ(left, std::vector<std::uint8_t>(left.size()));
  }
}

const std::string kEndless = "num_sets=1000000,stop_nconv=1000000,ensemble=4,";

TEST_F(RelayBpGpu, EndsAtItsDeadlineAndWhenItIsCancelled) {
  relay_bp_gpu tested(graph_, options_of(kEndless + "mode=least_weight"), test_device());
  ASSERT_TRUE(syndrome_.set_events(set_.shots.front()));
  for (int k = 0; k < 5; ++k) {
    EXPECT_EQ(tested.solve(syndrome_.bytes(), {monotonic_ns() + 3000000, nullptr}), decode_status::deadline);
    EXPECT_TRUE(tested.has_solution()) << "the best so far, after 3 ms";
    std::uint32_t cancel = 0;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      cancel_decode(cancel);
    });
    EXPECT_EQ(tested.solve(syndrome_.bytes(), {kNoDeadline, &cancel}), decode_status::cancelled);
    other.join();
  }
  EXPECT_EQ(tested.solve(syndrome_.bytes(), {1, nullptr}), decode_status::deadline) << "long ago";
}

TEST_F(RelayBpGpu, AfterADeadlineOrACancelTheNextAnswerIsThatOfTheCpu) {
  const relay_bp_options options = options_of("mode=least_weight,ensemble=2,num_sets=2000,stop_nconv=1000000");
  ASSERT_TRUE(syndrome_.set_events(set_.shots.front()));
  relay_bp expected(graph_, options);
  ASSERT_EQ(expected.solve(syndrome_.bytes()), decode_status::ok);
  const auto job = gpu::relay_layout(graph_, options, {}).job();
  const std::size_t shared = gpu::relay_memory_bytes(job, relay_variant::shared);
  for (const relay_bp_gpu_limits limits :
       {relay_bp_gpu_limits{0, SIZE_MAX}, relay_bp_gpu_limits{2, SIZE_MAX}, relay_bp_gpu_limits{8, SIZE_MAX},
        relay_bp_gpu_limits{1, gpu::relay_memory_bytes(job, relay_variant::registers)}, relay_bp_gpu_limits{1, shared},
        relay_bp_gpu_limits{1, shared - 1}}) {
    relay_bp_gpu tested(graph_, options, test_device(), limits);
    const auto expect_the_answer = [&] {
      ASSERT_EQ(tested.solve(syndrome_.bytes(), {}), decode_status::ok) << tested.fault();
      ASSERT_TRUE(std::ranges::equal(tested.correction(), expected.correction())) << tested.description();
      ASSERT_EQ(tested.weight(), expected.weight());
    };
    for (int k = 0; k < 2; ++k) {
      ASSERT_EQ(tested.solve(syndrome_.bytes(), {monotonic_ns() + 1000000, nullptr}), decode_status::deadline);
      ASSERT_NO_FATAL_FAILURE(expect_the_answer());
      std::uint32_t cancel = 1; // the kernel sees it in its first iterations
      ASSERT_EQ(tested.solve(syndrome_.bytes(), {kNoDeadline, &cancel}), decode_status::cancelled);
      ASSERT_NO_FATAL_FAILURE(expect_the_answer());
    }
  }
}

TEST_F(RelayBpGpu, SeveralDecodersShareAGpuAndEndWhileTheOthersRun) {
  relay_bp_gpu busy(graph_, options_of(kEndless + "mode=first"), test_device());
  graph_syndrome other_syndrome(graph_);
  ASSERT_TRUE(other_syndrome.set_events(set_.shots[1]));
  std::uint32_t cancel = 0;
  std::thread other([&] {
    EXPECT_EQ(busy.solve(other_syndrome.bytes(), {kNoDeadline, &cancel}), decode_status::cancelled);
  });
  for (int k = 0; k < 3; ++k) { // as exchanges of a server's decoder
    EXPECT_TRUE(finishes_within(kStartLimit, "making, using and ending a decoder", [&] {
      relay_bp_gpu next(graph_, options_of("mode=first,ensemble=4"), test_device());
      for (std::size_t shot = 0; shot < 20; ++shot) {
        EXPECT_TRUE(syndrome_.set_events(set_.shots[shot]));
        EXPECT_EQ(next.solve(syndrome_.bytes(), {}), decode_status::ok) << next.fault();
      }
    }));
  }
  cancel_decode(cancel);
  other.join();
}

TEST_F(RelayBpGpu, AreCountedAndOneMoreIsRefusedAtOnceWhereTheGpuIsFull) {
  relay_bp_gpu half(graph_, options_of("mode=in_step,ensemble=8"), test_device(), {8, SIZE_MAX});
  relay_bp_gpu beside(graph_, options_of("mode=in_step,ensemble=16"), test_device());
  ASSERT_TRUE(syndrome_.set_events(set_.shots.front()));
  EXPECT_EQ(half.solve(syndrome_.bytes(), {}), decode_status::ok) << half.fault();
  EXPECT_EQ(beside.solve(syndrome_.bytes(), {}), decode_status::ok) << beside.description() << beside.fault();
  const std::uint64_t begin = monotonic_ns();
  try {
    relay_bp_gpu(graph_, options_of("mode=in_step,ensemble=100"), test_device());
    ADD_FAILURE() << "made";
  } catch (const std::runtime_error &refused) {
    EXPECT_NE(std::string(refused.what()).find("other decoders of this process have taken 80"), std::string::npos)
        << refused.what();
  }
  EXPECT_LT(monotonic_ns() - begin, 1000000000U) << "before a launch, which would wait for room";
}

TEST_F(RelayBpGpu, IsRefusedWithTheReasonWithoutRoomOrDevice) {
  const auto refusal = [&](const std::string &setting, int device) -> std::string {
    try {
      relay_bp_gpu(graph_, options_of(setting), device);
      return "made";
    } catch (const std::runtime_error &reason) {
      return reason.what();
    }
  };
  EXPECT_NE(refusal("ensemble=1", 200).find("device 200 is not there"), std::string::npos);
  EXPECT_NE(refusal("ensemble=1024", test_device()).find("multiprocessors, and each chain needs one for each block"),
            std::string::npos);
}

} // namespace
} // namespace cudaq::realtime::test

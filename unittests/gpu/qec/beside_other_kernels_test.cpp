// SPDX-License-Identifier: Apache-2.0
// Resident workers and relay-bp-gpu where a launch cannot begin, where others are made at the same time, and at the end
// of a process.
#include "kernels/qec/relay_bp/relay_bp_gpu.h"
#include "unittests/gpu/qec/resident_rig.h"
#include "unittests/qec/propagation/bp_osd_test_support.h"

#include <barrier>
#include <unistd.h>

namespace cudaq::realtime::test {
namespace {

using cudaq::qec::realtime::test::graph_or_throw;
using cudaq::qec::realtime::test::oracle_set;
using gpu::relay_bp_gpu;

// Set before the driver reads it. Every test of this program runs with lazy loading.
[[maybe_unused]] const int kLazy = setenv("CUDA_MODULE_LOADING", "LAZY", 1);

/// Workers without a pipeline: begin() launches the blocks of all.
class started_workers {
public:
  started_workers(const gpu::resident_config &config, const gpu::resident_launcher &launch)
      : workers_(config, launch), first_(workers_.resources(0, kDecode, nullptr)) {}
  void begin() { first_.stage_begin_fn(first_.host_stage_data); }
  bool end() { return first_.stage_end_fn(first_.host_stage_data); }

private:
  gpu::resident_workers workers_;
  pipe::gpu_worker_resources first_;
};

template <class Call>
std::string refusal_of(Call &&call) {
  try {
    call();
  } catch (const std::exception &e) {
    return e.what();
  }
  return "";
}

class BesideOtherKernels : public gpu_test {
protected:
  static std::unique_ptr<relay_bp_gpu> decoder(const qec::tanner_graph &graph, std::uint32_t ensemble,
                                               const gpu::relay_bp_gpu_limits &limits = {}) {
    qec::relay_bp_options options;
    options.ensemble = ensemble;
    options.mode = qec::ensemble_mode::first;
    return std::make_unique<relay_bp_gpu>(graph, options, test_device(), limits);
  }
  static int attribute(cudaDeviceAttr which) {
    int value = 0;
    CUDA_EXPECT_OK(cudaDeviceGetAttribute(&value, which, test_device()));
    return value;
  }
  void expect_answer(relay_bp_gpu &tested) {
    qec::graph_syndrome syndrome(graph_);
    ASSERT_TRUE(syndrome.set_events(set_.shots.front()));
    EXPECT_EQ(tested.solve(syndrome.bytes(), {}), qec::decode_status::ok) << tested.fault();
  }

  const oracle_set set_{"bicycle_72_r6_p0.003"};
  const qec::tanner_graph graph_ = graph_or_throw(set_.dem_text);
};

TEST_F(BesideOtherKernels, ADecoderWithoutRoomIsRefusedInSecondsAndMadeWhenThereIsRoom) {
  const int processors = attribute(cudaDevAttrMultiProcessorCount);
  const auto fills_one = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) - 1024);
  decoder(graph_, 1).reset();          // loads the kernels
  std::deque<started_workers> holders; // of all multiprocessors
  for (int left = processors; left > 0; left -= 64)
    holders.emplace_back(resident_config_of(std::min(left, 64)), launch_add_one(nullptr, 32, fills_one)).begin();
  for (int k = 0; k < 3; ++k)
    EXPECT_TRUE(finishes_within(kStartLimit, "the refusal of a decoder", [&] {
      const std::string text = refusal_of([&] { decoder(graph_, 8); });
      EXPECT_NE(text.find(k == 0 ? "leave no room for the others" : "an earlier decoder wait for room"),
                std::string::npos)
          << text;
    }));
  EXPECT_TRUE(finishes_within(kStartLimit, "the end of the others", [&] {
    for (started_workers &h : holders)
      EXPECT_TRUE(h.end());
  }));
  // So many that the refused ones must have given their room back.
  std::unique_ptr<relay_bp_gpu> made;
  std::string text;
  EXPECT_TRUE(finishes_within(kDeadline, "making a decoder", [&] {
    EXPECT_TRUE(eventually([&] {
      text = refusal_of([&] { made = decoder(graph_, static_cast<std::uint32_t>(processors)); });
      return made != nullptr;
    })) << text;
    if (made != nullptr)
      expect_answer(*made);
    made.reset();
  }));
}

// A capture of a blocking stream leaves the legacy stream unusable.
TEST_F(BesideOtherKernels, ADecoderIsMadeWhileTheProgramCapturesABlockingStream) {
  cudaStream_t stream = nullptr;
  CUDA_ASSERT_OK(cudaStreamCreate(&stream));
  CUDA_ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_TRUE(finishes_within(kDeadline, "making a decoder", [&] { expect_answer(*decoder(graph_, 1)); }));
  cudaGraph_t graph = nullptr;
  CUDA_EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT_NE(graph, nullptr);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST_F(BesideOtherKernels, ALaunchThatIsRefusedIsReportedAndTheNextOneServes) {
  std::atomic<bool> refuses{true};
  const gpu::resident_launcher add_one = launch_add_one(nullptr, 32);
  started_workers tested(resident_config_of(4), [&](const auto &boxes, unsigned blocks, cudaStream_t stream) {
    return blocks != 0 && refuses ? cudaErrorLaunchOutOfResources : add_one(boxes, blocks, stream);
  });
  EXPECT_TRUE(finishes_within(kStartLimit, "a start after a refused one", [&] {
    const std::string text = refusal_of([&] { tested.begin(); });
    EXPECT_NE(text.find("launching the blocks"), std::string::npos) << text;
    EXPECT_TRUE(tested.end()) << "nothing runs";
    refuses = false;
    tested.begin();
    EXPECT_TRUE(tested.end());
  }));
}

// What a kernel may have belongs to the kernel, not to a launch.
TEST_F(BesideOtherKernels, WorkersOfOneTypeWithOtherSizesStartAtTheSameTime) {
  const auto max_bytes = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  std::barrier together(2);
  const auto restart = [&](std::size_t bytes) {
    started_workers tested(resident_config_of(1), launch_add_one(nullptr, 32, bytes));
    std::string text;
    for (int round = 0; round < 300; ++round) {
      together.arrive_and_wait();
      const std::string refused = refusal_of([&] {
        tested.begin();
        EXPECT_TRUE(tested.end());
      });
      if (text.empty() && !refused.empty())
        text = std::to_string(bytes) + " bytes, round " + std::to_string(round) + ": " + refused;
    }
    EXPECT_EQ(text, "");
    together.arrive_and_wait(); // memory is freed when no block runs
  };
  EXPECT_TRUE(finishes_within(kDeadline, "starts at the same time", [&] {
    std::thread other([&] {
      cudaSetDevice(test_device());
      restart(max_bytes - 1024);
    });
    restart(1024);
    other.join();
  }));
}

TEST_F(BesideOtherKernels, DecodersOfTwoModelsAreMadeAtTheSameTime) {
  const qec::tanner_graph small = graph_or_throw(oracle_set{"bicycle_72_capacity_p0.04"}.dem_text);
  std::barrier together(2);
  const auto make = [&](const qec::tanner_graph &graph) {
    std::string text;
    for (int round = 0; round < 20; ++round) {
      together.arrive_and_wait();
      std::unique_ptr<relay_bp_gpu> made;
      if (const std::string refused = refusal_of([&] { made = decoder(graph, 2); }); text.empty())
        text = refused;
      together.arrive_and_wait(); // both run, then both end
    }
    EXPECT_EQ(text, "");
  };
  EXPECT_TRUE(finishes_within(kDeadline, "decoders of two threads", [&] {
    std::thread other([&] { make(small); });
    make(graph_);
    other.join();
  }));
}

using BesideOtherKernelsDeathTest = BesideOtherKernels;

TEST_F(BesideOtherKernelsDeathTest, AProcessEndsWithADecoderThatIsNotDestroyed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        alarm(40); // a process that hangs is killed
        auto first = decoder(graph_, 1);
        auto second = decoder(graph_, 1);
        first.reset(); // its memory is kept: the other one runs
        static_cast<void>(second.release());
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

// In a process that has not loaded the kernels yet.
TEST_F(BesideOtherKernelsDeathTest, TheFirstDecoderBesideAKernelThatRunsIsRefusedUntilThatEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        alarm(60); // a process that hangs is killed
        cudaSetDevice(test_device());
        started_workers holder(resident_config_of(1), launch_add_one(nullptr, 32));
        holder.begin();
        gpu::relay_bp_gpu_limits limits;
        limits.load_limit = std::chrono::seconds(2);
        const std::string text = refusal_of([&] { decoder(graph_, 1, limits); });
        if (text.find("relay-bp-gpu: the device has not loaded the kernels in 2000 ms") == std::string::npos) {
          std::fprintf(stderr, "refused with: %s\n", text.c_str());
          std::_Exit(1);
        }
        holder.end();
        decoder(graph_, 1).reset();
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

class OtherDeviceIsCurrent : public gpu_test {
protected:
  OtherDeviceIsCurrent() : gpu_test(2, test_device() == 0 ? 1 : 0) {}
  const int caller_ = test_device() == 0 ? 1 : 0;
};

TEST_F(OtherDeviceIsCurrent, ADecoderDoesNotChangeIt) {
  const oracle_set set{"bicycle_72_r6_p0.003"};
  const qec::tanner_graph graph = graph_or_throw(set.dem_text);
  qec::graph_syndrome syndrome(graph);
  EXPECT_TRUE(finishes_within(kDeadline, "a decoder on another device", [&] {
    relay_bp_gpu tested(graph, {}, test_device());
    EXPECT_EQ(device_now(), caller_);
    for (std::size_t shot = 0; shot < 20; ++shot) {
      EXPECT_TRUE(syndrome.set_events(set.shots[shot]));
      EXPECT_EQ(tested.solve(syndrome.bytes(), {}), qec::decode_status::ok) << tested.fault();
    }
    EXPECT_EQ(device_now(), caller_);
  }));
  EXPECT_EQ(device_now(), caller_);
}

} // namespace
} // namespace cudaq::realtime::test

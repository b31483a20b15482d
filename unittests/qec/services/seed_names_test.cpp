// SPDX-License-Identifier: Apache-2.0
// The names and header paths of the specification refer to the classes of this library, and these are used as there.
#include "cudaq/qec/realtime/ai_decoder_service.h"
#include "cudaq/qec/realtime/ai_predecoder_service.h"
#include "cudaq/qec/realtime/decode_response.h"
#include "cudaq/qec/realtime/pipeline.h"
#include "cudaq/qec/utils/pipeline_benchmarks.h"
#include "cudaq/qec/utils/thread_pool.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <type_traits>

namespace {

namespace rt = cudaq::qec::realtime::experimental;
static_assert(std::is_same_v<cudaq::qec::AIDecoderService, rt::ai_decoder_service>);
static_assert(std::is_same_v<cudaq::qec::AIPreDecoderService, rt::ai_predecoder_service>);
static_assert(std::is_base_of_v<cudaq::qec::AIDecoderService, cudaq::qec::AIPreDecoderService>);
static_assert(std::is_same_v<cudaq::qec::PreDecoderJob, rt::predecoder_job>);
static_assert(std::is_same_v<cudaq::qec::pre_decoder_job, rt::pre_decoder_job>);
static_assert(std::is_same_v<rt::pre_decoder_job, rt::predecoder_job>);
static_assert(std::is_same_v<cudaq::qec::AIDecoderService::TensorBinding, rt::ai_decoder_service::tensor_binding>);
static_assert(std::is_same_v<cudaq::qec::utils::PipelineBenchmark, cudaq::qec::utils::pipeline_benchmark>);
static_assert(std::is_same_v<cudaq::qec::utils::ThreadPool, cudaq::qec::utils::thread_pool>);
static_assert(sizeof(cudaq::qec::realtime::DecodeResponse) == 8);

// The functions of the specification, with their signatures.
bool (cudaq::qec::AIPreDecoderService::*const poll)(cudaq::qec::PreDecoderJob &) =
    &cudaq::qec::AIPreDecoderService::poll_next_job;
void (cudaq::qec::AIPreDecoderService::*const release)(int) = &cudaq::qec::AIPreDecoderService::release_job;

// The constructors, with the arguments of the specification and without the optional ones.
using cudaq::qec::AIDecoderService;
using cudaq::qec::AIPreDecoderService;
static_assert(std::is_constructible_v<AIDecoderService, const char *, void **>);
static_assert(std::is_constructible_v<AIDecoderService, const std::string &, void **, const std::string &>);
static_assert(std::is_constructible_v<AIPreDecoderService, const char *, void **>);
static_assert(std::is_constructible_v<AIPreDecoderService, const std::string &, void **, int>);
static_assert(std::is_constructible_v<AIPreDecoderService, const std::string &, void **, int, const std::string &>);

// Names that programs of 2026 use.
void *(AIDecoderService::*const input)() const = &AIDecoderService::get_trt_input_ptr;

// The stream of the specification is a stream; no other pointer becomes device_launch.
template <class Argument, class = void>
constexpr bool captures = false;
template <class Argument>
constexpr bool captures<
    Argument, std::void_t<decltype(std::declval<AIPreDecoderService &>().capture_graph(std::declval<Argument>()))>> =
    true;
static_assert(captures<cudaStream_t> && captures<std::nullptr_t> && captures<bool>);
static_assert(!captures<void **> && !captures<const char *> && !captures<cudaGraphExec_t>);

// Known failure 64.
TEST(SeedNames, TheQueueOfAPredecoderHasDeviceAddresses) {
  const int *(AIPreDecoderService::*const index)() const = &AIPreDecoderService::get_device_queue_idx;
  const volatile int *(AIPreDecoderService::*const ready)() const = &AIPreDecoderService::get_device_ready_flags;
  EXPECT_NE(index, nullptr);
  EXPECT_NE(ready, nullptr);
}

TEST(SeedNames, AThreadPoolAndABenchmarkAreUsedAsInTheDesign) {
  ASSERT_NE(poll, nullptr);
  ASSERT_NE(release, nullptr);
  ASSERT_NE(input, nullptr);
  constexpr int kRequests = 100;
  cudaq::qec::utils::PipelineBenchmark bench("d13_r13_Z", kRequests);
  std::atomic<int> done{0};
  bench.start();
  {
    cudaq::qec::utils::ThreadPool pool(2);
    for (int i = 0; i < kRequests; ++i) {
      bench.mark_submit(static_cast<std::size_t>(i));
      pool.enqueue([&bench, &done, i] {
        bench.mark_complete(static_cast<std::size_t>(i));
        ++done;
      });
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (done != kRequests && std::chrono::steady_clock::now() < deadline)
      QEC_CPU_RELAX();
  }
  bench.stop();
  EXPECT_EQ(bench.compute_stats().completed, 100u);
  testing::internal::CaptureStdout();
  bench.report();
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_EQ(printed, bench.report_text());
  EXPECT_NE(printed.find("d13_r13_Z: submitted 100, completed 100, timed out 0"), std::string::npos);
}

} // namespace

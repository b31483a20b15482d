// SPDX-License-Identifier: Apache-2.0
// The AI services on a GPU with an engine that copies its input: the graph of the base class, and the queue to the CPU.
#include "unittests/gpu/graphs/host_graph_rig.h"
#include "unittests/gpu/support/gpu_test.h"

#include "cudaq/qec/realtime/ai_predecoder_service.h"
#include "cudaq/qec/realtime/gpu_services.h"

namespace cudaq::realtime::test {
namespace {

namespace pipe = cudaq::qec::realtime::experimental;

constexpr std::size_t kBytes = 2016; // d7, INT32 measurements

/// Frames in mapped memory, and the mailbox.
struct frames {
  const std::size_t bytes, stride;
  explicit frames(std::size_t n, std::size_t payload = kBytes)
      : bytes(payload), stride((CUDAQ_RPC_HEADER_SIZE + payload + 63) / 64 * 64), ring(n * stride), mailbox(1) {}
  std::uint8_t *at(std::size_t k) const { return ring.host + k * stride; }
  void fill(std::size_t k, std::uint32_t request) const {
    const cudaq_rpc_header_t header{CUDAQ_RPC_MAGIC_REQUEST, 1, static_cast<std::uint32_t>(bytes), request, request};
    std::memcpy(at(k), &header, sizeof(header));
    for (std::size_t i = 0; i < bytes; ++i)
      at(k)[sizeof(header) + i] = byte_of(request, i);
  }
  bool right(const void *answer, std::uint32_t request) const {
    for (std::size_t i = 0; i < bytes; ++i)
      if (static_cast<const std::uint8_t *>(answer)[i] != byte_of(request, i))
        return false;
    return true;
  }
  static std::uint8_t byte_of(std::uint32_t request, std::size_t i) {
    return static_cast<std::uint8_t>((request * 1000003 + i / 4) >> 8 * (i % 4));
  }
  mapped_array<std::uint8_t> ring;
  mapped_array<void *> mailbox;
};

class AiServiceOnGpu : public gpu_test {};

TEST_F(AiServiceOnGpu, TheGraphOfTheBaseClassAnswersInTheFrame) {
  // Less than each thread copies at a time, the measurements of d13 and some odd bytes, and several passes of a block.
  for (const std::size_t bytes : {kBytes, std::size_t{9472 + 3}, std::size_t{40000}}) {
    frames f(1, bytes);
    pipe::ai_decoder_service service(qec::realtime::gpu::passthrough_engine(bytes),
                                     qec::realtime::gpu::cuda_service_device(test_device()), f.mailbox.dev);
    service.set_slot_size(f.stride);
    service.capture_graph();
    f.mailbox.host[0] = f.ring.dev;
    side_stream stream;
    for (std::uint32_t request = 1; request <= 100; ++request) {
      f.fill(0, request);
      CUDA_ASSERT_OK(cudaGraphLaunch(service.get_executable_graph(), stream.get));
      CUDA_ASSERT_OK(stream.wait());
      cudaq_rpc_response_t header;
      std::memcpy(&header, f.at(0), sizeof(header));
      ASSERT_EQ(header.magic, CUDAQ_RPC_MAGIC_RESPONSE);
      ASSERT_EQ(header.request_id, request);
      ASSERT_EQ(header.result_len, bytes);
      ASSERT_TRUE(f.right(f.at(0) + sizeof(header), request));
    }
  }
}

TEST_F(AiServiceOnGpu, ThePredecodersQueueHandsOverEveryInferenceInOrder) {
  constexpr int kDepth = 4;
  constexpr std::uint32_t kRequests = 2000;
  frames f(2 * kDepth);
  pipe::ai_predecoder_service service(qec::realtime::gpu::passthrough_engine(kBytes),
                                      qec::realtime::gpu::cuda_service_device(test_device()), f.mailbox.dev, kDepth);
  service.capture_graph();
  service.set_ring({f.ring.host, f.ring.dev}, f.stride);
  side_stream stream;
  std::uint32_t received = 0, wrong = 0;
  pipe::predecoder_job job;
  const auto poll = [&] {
    if (!service.poll_next_job(job))
      return;
    wrong += job.origin_slot != static_cast<int>(received % (2 * kDepth)) ||
             job.ring_buffer_ptr != f.at(received % (2 * kDepth)) || !f.right(job.inference_data, received);
    service.release_job(job.slot_idx);
    ++received;
  };
  for (std::uint32_t k = 0; k < kRequests; ++k) {
    f.fill(k % (2 * kDepth), k);
    f.mailbox.host[0] = f.ring.dev + k % (2 * kDepth) * f.stride;
    CUDA_ASSERT_OK(cudaGraphLaunch(service.get_executable_graph(), stream.get));
    // The mailbox has only one word, so this launch must end before the next one.
    ASSERT_TRUE(eventually([&] { return cudaStreamQuery(stream.get) != cudaErrorNotReady; }));
    if (k >= kDepth - 1)
      poll();
  }
  EXPECT_TRUE(eventually([&] {
    poll();
    return received == kRequests;
  }));
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(service.refused(), 0);
}

TEST_F(AiServiceOnGpu, AFullQueueMakesTheGraphWaitUntilAnEntryIsFreeOrAStop) {
  frames f(1);
  pipe::ai_predecoder_service service(qec::realtime::gpu::passthrough_engine(kBytes),
                                      qec::realtime::gpu::cuda_service_device(test_device()), f.mailbox.dev, 1);
  service.capture_graph();
  f.fill(0, 7);
  f.mailbox.host[0] = f.ring.dev;
  side_stream stream;
  for (int k = 0; k < 2; ++k)
    CUDA_ASSERT_OK(cudaGraphLaunch(service.get_executable_graph(), stream.get));
  pipe::predecoder_job job;
  ASSERT_TRUE(eventually([&] { return service.poll_next_job(job); }));
  EXPECT_EQ(stream.wait(std::chrono::milliseconds(50)), cudaErrorNotReady);
  service.release_job(job.slot_idx);
  CUDA_EXPECT_OK(stream.wait());
  ASSERT_TRUE(service.poll_next_job(job)) << "the second job must be queued now";
  CUDA_ASSERT_OK(cudaGraphLaunch(service.get_executable_graph(), stream.get));
  EXPECT_EQ(stream.wait(std::chrono::milliseconds(50)), cudaErrorNotReady);
  service.stop();
  CUDA_EXPECT_OK(stream.wait());
  EXPECT_EQ(service.refused(), 1);
}

class AiServicesOnTwoGpus : public gpu_test {
protected:
  AiServicesOnTwoGpus() : gpu_test(2) {}
};

TEST_F(AiServicesOnTwoGpus, EachUsesItsDeviceAndLeavesTheCallersAlone) {
  const int other = test_device() == 0 ? 1 : 0;
  const auto here = qec::realtime::gpu::cuda_service_device(test_device());
  const auto there = qec::realtime::gpu::cuda_service_device(other);
  EXPECT_EQ(device_now(), test_device());
  for (const auto &[number, device] : {std::pair{test_device(), here}, std::pair{other, there}}) {
    const frames f(1);
    pipe::ai_decoder_service service(qec::realtime::gpu::passthrough_engine(kBytes), device, f.mailbox.dev);
    service.set_slot_size(f.stride);
    service.capture_graph();
    EXPECT_EQ(device_now(), test_device());
    f.mailbox.host[0] = f.ring.dev;
    f.fill(0, 5);
    const current_device on(number);
    const side_stream stream;
    CUDA_ASSERT_OK(cudaGraphLaunch(service.get_executable_graph(), stream.get));
    CUDA_ASSERT_OK(stream.wait());
    cudaq_rpc_response_t header;
    std::memcpy(&header, f.at(0), sizeof(header));
    EXPECT_EQ(header.magic, CUDAQ_RPC_MAGIC_RESPONSE);
    EXPECT_EQ(header.result_len, kBytes);
  }
  EXPECT_EQ(device_now(), test_device());
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The AI services with the constructors of the specification, as a program without TensorRT can use them.
#include "unittests/gpu/migration/pinned_ring.h"

#include "cudaq/qec/realtime/ai_predecoder_service.h"

namespace cudaq::realtime::migration {
namespace {

constexpr std::size_t kBytes = 64;

class ServiceProgram : public gpu_test {
protected:
  /// A request in slot 0, whose address the mailbox gets.
  static void fill(const pinned_ring &ring, std::uint32_t request) {
    const RPCHeader header{RPC_MAGIC_REQUEST, kFunction, kBytes, request, request};
    std::memcpy(ring.rx_data.host, &header, sizeof(header));
    std::memset(ring.rx_data.host + sizeof(header), static_cast<int>(request & 0xff), kBytes);
  }
  static bool right(const void *bytes, std::uint32_t request) {
    const auto *at = static_cast<const std::uint8_t *>(bytes);
    return std::all_of(at, at + kBytes, [&](std::uint8_t byte) { return byte == (request & 0xff); });
  }
};

// Known failure 64.
TEST_F(ServiceProgram, ADecoderServiceFromAPathAnswersInTheFrame) {
  pinned_ring ring;
  pinned<void *> mailbox;
  cudaq::qec::AIDecoderService service("passthrough:64", mailbox.dev);
  EXPECT_EQ(service.get_input_size(), kBytes);
  EXPECT_EQ(service.get_output_size(), kBytes);
  service.capture_graph();
  *mailbox.host = ring.rx_data.dev;
  side_stream stream;
  for (std::uint32_t n = 1; n <= 50; ++n) {
    fill(ring, n);
    CUDA_ASSERT_OK(cudaGraphLaunch(service.get_executable_graph(), stream.get));
    CUDA_ASSERT_OK(stream.wait());
    RPCResponse response;
    std::memcpy(&response, ring.rx_data.host, sizeof(response));
    ASSERT_EQ(response.magic, RPC_MAGIC_RESPONSE);
    ASSERT_EQ(response.request_id, n);
    ASSERT_TRUE(right(ring.rx_data.host + sizeof(response), n));
  }
}

TEST_F(ServiceProgram, APredecoderServiceFromAPathHandsJobsToTheCpu) {
  pinned_ring ring;
  pinned<void *> mailbox;
  cudaq::qec::AIPreDecoderService service("passthrough:64", mailbox.dev, 4);
  EXPECT_EQ(service.get_queue_depth(), 4);
  EXPECT_NE(service.get_device_queue_idx(), nullptr);
  EXPECT_NE(service.get_device_ready_flags(), nullptr);
  service.capture_graph();
  *mailbox.host = ring.rx_data.dev;
  side_stream stream;
  for (std::uint32_t n = 1; n <= 50; ++n) {
    fill(ring, n);
    CUDA_ASSERT_OK(cudaGraphLaunch(service.get_executable_graph(), stream.get));
    cudaq::qec::PreDecoderJob job;
    ASSERT_TRUE(eventually([&] { return service.poll_next_job(job); }));
    ASSERT_TRUE(right(job.inference_data, n));
    service.release_job(job.slot_idx);
    CUDA_ASSERT_OK(stream.wait());
  }
}

TEST_F(ServiceProgram, AModelThatCannotBeOpenedThrowsWithItsPath) {
  pinned<void *> mailbox;
  try {
    cudaq::qec::AIDecoderService service("/does/not/exist.onnx", mailbox.dev);
    ADD_FAILURE() << "a model that does not exist was opened";
  } catch (const std::runtime_error &e) {
    EXPECT_NE(std::string(e.what()).find("/does/not/exist.onnx"), std::string::npos) << e.what();
  }
}

} // namespace
} // namespace cudaq::realtime::migration

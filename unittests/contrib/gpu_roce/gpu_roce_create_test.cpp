// SPDX-License-Identifier: Apache-2.0
// create of the provider gpu-roce: options, what the sensor bridge is asked for, contexts, failures half-way.
#include "contrib/gpu_roce/gpu_roce_context.h"
#include "unittests/contrib/gpu_roce/gpu_roce_fixture.h"

#include <cstring>
#include <cuda_runtime_api.h>
#include <endian.h>

namespace cudaq::realtime::test {
namespace {

using detail::gpu_roce_context;

TEST_F(GpuRoceBridge, AsksTheSensorBridgeForTheDefaults) {
  ASSERT_EQ(create(), CUDAQ_OK) << error_text();
  const gpu_roce_log &log = script().last;
  EXPECT_EQ(log.device, "rocep1s0f0");
  EXPECT_EQ(log.peer_ip, "192.168.0.2");
  EXPECT_EQ(log.remote_qp, 2u);
  EXPECT_EQ(log.port, 1u);
  EXPECT_EQ(log.frame_size, 32u) << "the header and --payload-size";
  EXPECT_EQ(log.page_size, 384u);
  EXPECT_EQ(log.pages, 64u);
  EXPECT_TRUE(log.rx_only && log.tx_only && !log.forward && !log.cpu);
  EXPECT_EQ(endpoint(), "transport=gpu_roce qp=0x1c7 rkey=7700 buffer_addr=0x0 peer_ip=192.168.0.2 frame_size=32 "
                        "page_size=384");
  std::uint32_t slots = 0, size = 0;
  ASSERT_EQ(cudaq_bridge_get_ring_geometry(handle, &slots, &size), CUDAQ_OK);
  EXPECT_EQ(slots, 64u);
  EXPECT_EQ(size, 384u);
  EXPECT_EQ(script().monitors, 0) << "no kernel before connect";
}

TEST_F(GpuRoceBridge, PassesAllOptionsOn) {
  ASSERT_EQ(create({"program", "--device=mlx5_1", "--remote-qp=0x11", "--gpu", "3", "--page-size=512",
                    "--num-pages=128", "--payload-size", "100", "--cpu"}),
            CUDAQ_OK)
      << error_text();
  const gpu_roce_log &log = script().last;
  EXPECT_EQ(log.device, "mlx5_1");
  EXPECT_EQ(log.remote_qp, 0x11u);
  EXPECT_EQ(log.gpu, 3u);
  EXPECT_EQ(log.page_size, 512u);
  EXPECT_EQ(log.pages, 128u);
  EXPECT_EQ(log.frame_size, 124u);
  EXPECT_TRUE(log.cpu);
  int device = -1;
  ASSERT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 0) << "the caller's device is current again";
}

struct refusal {
  std::vector<std::string> arguments;
  const char *text;
};
class GpuRoceOptions : public GpuRoceBridge, public ::testing::WithParamInterface<refusal> {};

TEST_P(GpuRoceOptions, AreRefusedWithTheReason) {
  EXPECT_EQ(create(GetParam().arguments), CUDAQ_ERR_INVALID_ARG);
  EXPECT_NE(std::string(error_text()).find(GetParam().text), std::string::npos) << error_text();
  EXPECT_EQ(script().constructed, 0);
}
INSTANTIATE_TEST_SUITE_P(
    Each, GpuRoceOptions,
    ::testing::Values(refusal{{"-"}, "--peer-ip is missing"},
                      refusal{{"-", "--peer-ip", "bridge"}, "--peer-ip 'bridge': an IPv4"},
                      refusal{{"-", "--peer-ip", "0.0.0.0"}, "--peer-ip '0.0.0.0'"},
                      refusal{{"--strict", "--mtu"}, "'--mtu': the gpu-roce provider has no such option; --lenient"},
                      refusal{{"name", "stray", "--strict"}, "'stray': the gpu-roce provider has no such option"},
                      refusal{{"--unified=1"}, "--unified=1: this option has no value"},
                      refusal{{"-", "--peer-ip=1.2.3.4", "--gpu"}, "--gpu: the value is missing"},
                      refusal{{"--remote-qp", "0x1000000"}, "--remote-qp '0x1000000': a number from 1 to 16777215"},
                      refusal{{"--timeout", "0"}, "--timeout '0': a number from 1"},
                      refusal{{"--timeout", "1s"}, "--timeout '1s': a number"},
                      refusal{{"--page-size", "400"}, "--page-size 400: a multiple of 128"},
                      refusal{{"--payload-size", "361"}, "--payload-size 361: with the header of 24 bytes it must fit"},
                      refusal{{"--num-pages", "32"}, "--num-pages 32: a power of two from 64 to 4096"},
                      refusal{{"--num-pages", "96"}, "--num-pages 96: a power of two"},
                      refusal{{"--unified", "--num-pages", "2049"}, "--num-pages 2049: with --unified at most 2048"},
                      refusal{{"--unified", "--cpu"}, "--unified: not with --cpu"},
                      refusal{{"--forward", "--unified"}, "--forward: not with --unified"},
                      refusal{{"--device="}, "--device is empty"}));

TEST_F(GpuRoceBridge, NamesTheOptionsThatItIgnores) {
  EXPECT_EQ(create({"--mtu=1024"}), CUDAQ_OK) << error_text();
  EXPECT_TRUE(endpoint().ends_with(" ignored=1 ignored_options=--mtu")) << endpoint();
}

TEST_F(GpuRoceBridge, GivesARingOfTheGpu) {
  ASSERT_EQ(create(), CUDAQ_OK) << error_text();
  cudaq_ringbuffer_t ring{};
  ASSERT_EQ(cudaq_bridge_get_transport_context(handle, RING_BUFFER, &ring), CUDAQ_OK) << error_text();
  EXPECT_NE(ring.rx_data, nullptr);
  EXPECT_NE(ring.tx_data, ring.rx_data);
  EXPECT_NE(ring.rx_flags, ring.tx_flags);
  EXPECT_EQ(ring.rx_stride_sz, 384u);
  EXPECT_EQ(ring.tx_stride_sz, 384u);
  EXPECT_EQ(ring.rx_data_host, nullptr) << "the CPU cannot read it without --cpu";
  cudaq_unified_dispatch_ctx_t unified{};
  EXPECT_EQ(cudaq_bridge_get_transport_context(handle, UNIFIED, &unified), CUDAQ_ERR_UNSUPPORTED);
  cudaq_cpu_dataplane_t plane{};
  EXPECT_EQ(cudaq_bridge_get_cpu_dataplane(handle, &plane), CUDAQ_ERR_UNSUPPORTED);
}

TEST_F(GpuRoceBridge, GivesHostViewsWithCpu) {
  ASSERT_EQ(create({"--cpu"}), CUDAQ_OK) << error_text();
  cudaq_ringbuffer_t ring{};
  ASSERT_EQ(cudaq_bridge_get_transport_context(handle, RING_BUFFER, &ring), CUDAQ_OK) << error_text();
  EXPECT_EQ(ring.rx_data_host, ring.rx_data);
  EXPECT_EQ(ring.tx_data_host, ring.tx_data);
  EXPECT_EQ(ring.rx_flags_host, ring.rx_flags);
  EXPECT_EQ(ring.tx_flags_host, ring.tx_flags);
}

TEST_F(GpuRoceBridge, GivesTheHooksTheirContext) {
  ASSERT_EQ(create({"--unified", "--num-pages", "10"}), CUDAQ_OK) << error_text();
  EXPECT_EQ(script().last.pages, 20u) << "pages of requests, and as many of answers";
  EXPECT_FALSE(script().last.rx_only || script().last.tx_only);
  EXPECT_EQ(script().last.prepared_frame_size, 32u);
  EXPECT_EQ(script().last.prepared_key, htobe32(kDoubleKey));
  EXPECT_EQ(script().last.prepared_threads, 64u);
  cudaq_unified_dispatch_ctx_t unified{};
  std::memset(&unified, 0xEE, sizeof(unified));
  ASSERT_EQ(cudaq_bridge_get_transport_context(handle, UNIFIED, &unified), CUDAQ_OK) << error_text();
  EXPECT_EQ(unified.launch_fn, nullptr);
  const auto &context = *static_cast<const gpu_roce_context *>(unified.transport_ctx);
  EXPECT_EQ(context.magic, detail::kGpuRoceContextMagic);
  EXPECT_EQ(context.num_pages, 10u);
  EXPECT_EQ(context.frame_size, 32u);
  EXPECT_EQ(context.key, kDoubleKey);
  EXPECT_EQ(context.blue_flame, 1u);
  EXPECT_NE(context.queue_pair, nullptr);
  EXPECT_EQ(context.received + context.sent, 0u);
  cudaq_ringbuffer_t ring{};
  EXPECT_EQ(cudaq_bridge_get_transport_context(handle, RING_BUFFER, &ring), CUDAQ_ERR_UNSUPPORTED);
}

TEST_F(GpuRoceBridge, LeavesTheSendingToTheProxyOfAnIntegratedGpu) {
  script().integrated = true;
  ASSERT_EQ(create({"--unified"}), CUDAQ_OK) << error_text();
  cudaq_unified_dispatch_ctx_t unified{};
  ASSERT_EQ(cudaq_bridge_get_transport_context(handle, UNIFIED, &unified), CUDAQ_OK);
  EXPECT_EQ(static_cast<const gpu_roce_context *>(unified.transport_ctx)->blue_flame, 0u);
}

TEST_F(GpuRoceBridge, HasNothingToDispatchWithForward) {
  ASSERT_EQ(create({"--forward", "--num-pages", "5"}), CUDAQ_OK) << error_text();
  EXPECT_TRUE(script().last.forward);
  cudaq_ringbuffer_t ring{};
  EXPECT_EQ(cudaq_bridge_get_transport_context(handle, RING_BUFFER, &ring), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_NE(std::string(error_text()).find("--forward"), std::string::npos) << error_text();
  ASSERT_EQ(cudaq_bridge_connect(handle), CUDAQ_OK) << error_text();
  EXPECT_EQ(cudaq_bridge_launch(handle), CUDAQ_OK) << error_text();
}

TEST_F(GpuRoceBridge, DoesNotDestroyATransceiverThatDidNotStart) {
  script().start_fails = true;
  EXPECT_EQ(create({"--device", "nosuch"}), CUDAQ_ERR_INTERNAL);
  EXPECT_NE(std::string(error_text()).find("did not start on --device nosuch, --gpu 0"), std::string::npos)
      << error_text();
  EXPECT_EQ(script().destroyed, 0);
  EXPECT_EQ(script().closes, 0);
  script().start_fails = false, script().start_throws = true;
  EXPECT_EQ(create(), CUDAQ_ERR_INTERNAL);
  EXPECT_NE(std::string(error_text()).find("start threw"), std::string::npos) << error_text();
  EXPECT_EQ(script().destroyed, 0);
  script().start_throws = false, script().construct_throws = true;
  EXPECT_EQ(create(), CUDAQ_ERR_INTERNAL);
  EXPECT_NE(std::string(error_text()).find("pipe call failed"), std::string::npos) << error_text();
  script().construct_throws = false;
  EXPECT_EQ(create(), CUDAQ_OK) << error_text();
}

TEST_F(GpuRoceBridge, FreesAllIfALaterStepFails) {
  const auto fails = [&](const std::vector<std::string> &arguments, cudaq_status_t status, const char *text) {
    const int before = script().destroyed;
    EXPECT_EQ(create(arguments), status);
    EXPECT_NE(std::string(error_text()).find(text), std::string::npos) << error_text();
    EXPECT_EQ(script().destroyed, before + 1) << text;
    EXPECT_TRUE(script().not_destroyed.empty());
  };
  script().fewer_pages = true;
  fails({}, CUDAQ_ERR_INTERNAL, "made 63 pages of 384 bytes, not 64 of 384");
  script().fewer_pages = false, script().no_gpu_queue_pair = true;
  fails({"--unified"}, CUDAQ_ERR_INTERNAL, "no queue pair for the GPU");
  script().no_gpu_queue_pair = false, script().prepare_fails = true;
  fails({"--unified"}, CUDAQ_ERR_INTERNAL, "did not post the receive requests");
  script().prepare_fails = false;
  for (const char *call : {"cudaDeviceGetAttribute", "cudaStreamSynchronize", "cudaHostAlloc"}) {
    script().cuda_fails = call;
    fails({"--unified"}, CUDAQ_ERR_CUDA, call);
  }
}

} // namespace
} // namespace cudaq::realtime::test

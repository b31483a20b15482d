// SPDX-License-Identifier: Apache-2.0
// connect, launch, disconnect and destroy of the provider gpu-roce: the monitor thread, wrong orders, a sensor bridge
// that fails or does not end.
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"
#include "unittests/contrib/gpu_roce/gpu_roce_fixture.h"
#include "unittests/support/program_paths.h"
#include "unittests/support/threads_named.h"

#include <cstring>
#include <dlfcn.h>

namespace cudaq::realtime::test {
namespace {

/// Waits until the provider has no thread of its own.
bool soon_without_monitor() {
  return eventually([] { return threads_named("cudaq-gpu-roce").empty(); });
}

TEST_F(GpuRoceBridge, RunsTheMonitorFromConnectToDisconnect) {
  ASSERT_EQ(create(), CUDAQ_OK) << error_text();
  ASSERT_EQ(cudaq_bridge_connect(handle), CUDAQ_OK) << error_text();
  EXPECT_EQ(threads_named("cudaq-gpu-roce").size(), 1U);
  EXPECT_TRUE(eventually([] { return script().monitors == 1; }));
  ASSERT_EQ(cudaq_bridge_launch(handle), CUDAQ_OK) << error_text();
  ASSERT_EQ(cudaq_bridge_disconnect(handle), CUDAQ_OK) << error_text();
  EXPECT_TRUE(soon_without_monitor());
  EXPECT_EQ(script().closes, 1);
  EXPECT_EQ(script().destroyed, 0) << "the ring is there until destroy";
  ASSERT_EQ(destroy(), CUDAQ_OK) << error_text();
  EXPECT_EQ(script().destroyed, 1);
}

TEST_F(GpuRoceBridge, DestroysWithoutConnect) {
  ASSERT_EQ(create({"--unified"}), CUDAQ_OK) << error_text();
  ASSERT_EQ(destroy(), CUDAQ_OK) << error_text();
  EXPECT_EQ(script().destroyed, 1);
  EXPECT_EQ(script().monitors, 0);
}

TEST_F(GpuRoceBridge, LaunchReportsAMonitorThatHasFailed) {
  ASSERT_EQ(create(), CUDAQ_OK) << error_text();
  script().monitor_throws = true;
  ASSERT_EQ(cudaq_bridge_connect(handle), CUDAQ_OK) << error_text();
  ASSERT_TRUE(soon_without_monitor());
  EXPECT_EQ(cudaq_bridge_launch(handle), CUDAQ_ERR_INTERNAL);
  EXPECT_NE(std::string(error_text()).find("has ended: poll returned ret=-1"), std::string::npos) << error_text();
}

TEST_F(GpuRoceBridge, DisconnectReportsAMonitorThatStays) {
  ASSERT_EQ(create({"--timeout=1"}), CUDAQ_OK) << error_text();
  script().monitor_stays = true;
  ASSERT_EQ(cudaq_bridge_connect(handle), CUDAQ_OK) << error_text();
  EXPECT_EQ(cudaq_bridge_disconnect(handle), CUDAQ_ERR_TIMEOUT);
  EXPECT_NE(std::string(error_text()).find("monitor of the sensor bridge did not end within 1 s"), std::string::npos)
      << error_text();
  script().monitor_stays = false;
  EXPECT_TRUE(eventually([&] { return cudaq_bridge_disconnect(handle) == CUDAQ_OK; })) << error_text();
  EXPECT_EQ(script().closes, 1);
}

TEST_F(GpuRoceBridge, DestroyReportsAKernelThatStays) {
  ASSERT_EQ(create({"--timeout=1"}), CUDAQ_OK) << error_text();
  ASSERT_EQ(cudaq_bridge_connect(handle), CUDAQ_OK) << error_text();
  ASSERT_TRUE(eventually([&] { return cudaq_bridge_disconnect(handle) == CUDAQ_OK; })) << error_text();
  script().destroy_waits = true;
  EXPECT_EQ(cudaq_bridge_destroy(handle), CUDAQ_ERR_TIMEOUT);
  EXPECT_NE(std::string(error_text()).find("a kernel of the sensor bridge still runs"), std::string::npos)
      << error_text();
  cudaq_ringbuffer_t ring{};
  EXPECT_EQ(cudaq_bridge_get_transport_context(handle, RING_BUFFER, &ring), CUDAQ_ERR_STATE);
  script().destroy_waits = false;
  EXPECT_TRUE(eventually([&] { return destroy() == CUDAQ_OK; })) << error_text();
  EXPECT_EQ(script().destroyed, 1);
}

std::int32_t increment(cudaq_host_call_t *call, void *) {
  const auto *const from = static_cast<const std::uint8_t *>(call->payload);
  auto *const to = static_cast<std::uint8_t *>(call->result);
  for (std::uint32_t i = 0; i < call->payload_len; ++i)
    to[i] = static_cast<std::uint8_t>(from[i] + 1);
  call->result_len = call->payload_len;
  return 0;
}

/// The test is the adapter and the kernels of the sensor bridge: it writes pages and rx flags, takes tx flags.
TEST_F(GpuRoceBridge, GivesARingThatADispatcherOfTheHostServes) {
  ASSERT_EQ(create({"--cpu"}), CUDAQ_OK) << error_text();
  cudaq_ringbuffer_t ring{};
  ASSERT_EQ(cudaq_bridge_get_transport_context(handle, RING_BUFFER, &ring), CUDAQ_OK) << error_text();
  cudaq_dispatcher_config_t config{};
  ASSERT_EQ(cudaq_bridge_get_ring_geometry(handle, &config.num_slots, &config.slot_size), CUDAQ_OK);
  config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  config.skip_tx_markers = 1;
  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *dispatcher = nullptr;
  volatile int shutdown = 0;
  std::uint64_t processed = 0;
  constexpr std::uint32_t kFunction = 77, kMessages = 200;
  ASSERT_EQ(cudaq_dispatch_manager_create(&manager), CUDAQ_OK);
  ASSERT_EQ(cudaq_dispatcher_create(manager, &config, &dispatcher), CUDAQ_OK) << error_text();
  EXPECT_EQ(cudaq_dispatcher_set_ringbuffer(dispatcher, &ring), CUDAQ_OK) << error_text();
  EXPECT_EQ(cudaq_dispatcher_set_host_handler_v2(dispatcher, kFunction, increment, nullptr, nullptr), CUDAQ_OK);
  EXPECT_EQ(cudaq_dispatcher_set_control(dispatcher, &shutdown, &processed), CUDAQ_OK);
  EXPECT_EQ(cudaq_dispatcher_start(dispatcher), CUDAQ_OK) << error_text();
  ASSERT_EQ(cudaq_bridge_connect(handle), CUDAQ_OK) << error_text();
  ASSERT_EQ(cudaq_bridge_launch(handle), CUDAQ_OK) << error_text();
  for (std::uint32_t id = 0; id < kMessages; ++id) {
    const std::uint32_t slot = id % config.num_slots;
    std::uint8_t *const page = ring.rx_data_host + slot * ring.rx_stride_sz;
    const cudaq_rpc_header_t header{CUDAQ_RPC_MAGIC_REQUEST, kFunction, 8, id, 0};
    std::memcpy(page, &header, sizeof(header));
    std::memset(page + sizeof(header), static_cast<int>(id), 8);
    cudaq_host_ringbuffer_signal_slot(&ring, slot);
    cudaq_tx_status_t status = CUDAQ_TX_EMPTY;
    ASSERT_TRUE(eventually([&] {
      status = cudaq_host_ringbuffer_poll_tx_flag(&ring, slot, nullptr);
      return status != CUDAQ_TX_EMPTY && status != CUDAQ_TX_IN_FLIGHT;
    })) << id;
    ASSERT_EQ(status, CUDAQ_TX_READY);
    cudaq_rpc_response_t answer;
    const std::uint8_t *const frame = ring.tx_data_host + slot * ring.tx_stride_sz;
    std::memcpy(&answer, frame, sizeof(answer));
    ASSERT_EQ(answer.status, 0);
    ASSERT_EQ(answer.request_id, id);
    ASSERT_EQ(frame[sizeof(answer) + 7], static_cast<std::uint8_t>(id + 1));
    cudaq_host_ringbuffer_clear_slot(&ring, slot);
  }
  EXPECT_EQ(cudaq_dispatcher_destroy(dispatcher), CUDAQ_OK) << error_text();
  EXPECT_EQ(processed, kMessages);
  EXPECT_EQ(cudaq_dispatch_manager_destroy(manager), CUDAQ_OK);
}

/// The table itself, without the loader, which keeps the order.
class GpuRoceTable : public GpuRoceBridge {
protected:
  GpuRoceTable() {
    void *const library = ::dlopen(CUDAQ_GPU_ROCE_PROVIDER, RTLD_NOW | RTLD_LOCAL);
    table =
        reinterpret_cast<cudaq_realtime_get_bridge_interface_fn_t>(::dlsym(library, CUDAQ_REALTIME_BRIDGE_GETTER))();
    text = reinterpret_cast<cudaq_realtime_get_bridge_error_fn_t>(::dlsym(library, CUDAQ_REALTIME_BRIDGE_ERROR_GETTER));
    char option[] = "--peer-ip=10.0.0.1";
    char *argv[] = {option};
    EXPECT_EQ(table->create(&raw, 1, argv), CUDAQ_OK) << text();
  }
  ~GpuRoceTable() override { EXPECT_EQ(table->destroy(raw), CUDAQ_OK) << text(); }

  void refuses(cudaq_status_t status, cudaq_status_t expected, const std::string &part) const {
    EXPECT_EQ(status, expected);
    EXPECT_NE(std::string(text()).find(part), std::string::npos) << text();
  }

  cudaq_realtime_bridge_interface_t *table = nullptr;
  cudaq_realtime_get_bridge_error_fn_t text = nullptr;
  cudaq_realtime_bridge_handle_t raw = nullptr;
};

TEST_F(GpuRoceTable, RefusesAWrongOrder) {
  refuses(table->launch(raw), CUDAQ_ERR_STATE, "launch before connect");
  ASSERT_EQ(table->connect(raw), CUDAQ_OK) << text();
  refuses(table->connect(raw), CUDAQ_ERR_STATE, "an instance connects once");
  ASSERT_EQ(table->launch(raw), CUDAQ_OK) << text();
  refuses(table->launch(raw), CUDAQ_ERR_STATE, "launch is called once");
  ASSERT_EQ(table->disconnect(raw), CUDAQ_OK) << text();
  ASSERT_EQ(table->disconnect(raw), CUDAQ_OK) << text();
  refuses(table->connect(raw), CUDAQ_ERR_STATE, "cancelled by disconnect");
  refuses(table->launch(raw), CUDAQ_ERR_STATE, "launch is called once, after connect");
}

TEST_F(GpuRoceTable, RefusesToConnectAfterDisconnect) {
  ASSERT_EQ(table->disconnect(raw), CUDAQ_OK);
  refuses(table->connect(raw), CUDAQ_ERR_STATE, "cancelled by disconnect");
  EXPECT_EQ(script().monitors, 0);
}

TEST_F(GpuRoceTable, RefusesNullArguments) {
  char line[8];
  std::uint32_t number = 0;
  const auto invalid = CUDAQ_ERR_INVALID_ARG;
  refuses(table->create(nullptr, 0, nullptr), invalid, "handle is NULL");
  refuses(table->create(&raw, 1, nullptr), invalid, "argv is NULL");
  refuses(table->connect(nullptr), invalid, "handle is NULL");
  refuses(table->get_transport_context(raw, RING_BUFFER, nullptr), invalid, "out is NULL");
  refuses(table->get_endpoint_info(raw, line, sizeof(line)), invalid, "length is 8: the line needs");
  refuses(table->get_endpoint_info(raw, nullptr, 100), invalid, "buffer is NULL");
  refuses(table->get_ring_geometry(raw, &number, nullptr), invalid, "slot_size is NULL");
}

} // namespace
} // namespace cudaq::realtime::test

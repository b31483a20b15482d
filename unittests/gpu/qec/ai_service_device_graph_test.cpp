// SPDX-License-Identifier: Apache-2.0
// The graph of an AI decoder service as a handler of the graph scheduler: request, inference and answer without the
// CPU.
#include "unittests/gpu/graphs/device_graph_dispatcher.h"

#include "cudaq/qec/realtime/ai_decoder_service.h"
#include "cudaq/qec/realtime/gpu_services.h"

namespace cudaq::realtime::test {
namespace {

namespace pipe = cudaq::qec::realtime::experimental;
namespace gpu = cudaq::qec::realtime::gpu;

constexpr std::uint32_t kFunction = 500;
constexpr std::size_t kBytes = 2016; // d7, INT32 measurements

/// Several services as the graphs of one function. They must outlive the dispatcher, because freeing their memory waits
/// for every kernel.
class service_graphs {
public:
  service_graphs(std::size_t num_services, std::size_t bytes) : contexts_(num_services), entries_(num_services) {
    for (std::size_t i = 0; i < num_services; ++i) {
      auto &service = services_.emplace_back(std::make_unique<pipe::ai_decoder_service>(
          gpu::passthrough_engine(bytes), gpu::cuda_service_device(test_device()), mapped_word<void *>()));
      service->set_graph_io(contexts_.get + i);
      service->capture_graph(true);
      entries_[i].function_id = kFunction;
      entries_[i].dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
      entries_[i].handler.graph_exec = service->get_executable_graph();
      contexts.push_back(contexts_.get + i);
    }
    table_ = std::make_unique<device_array<cudaq_function_entry_t>>(entries_);
  }
  cudaq_function_table_t table() const { return {table_->get, static_cast<std::uint32_t>(entries_.size())}; }

  std::vector<void *> contexts;

private:
  device_array<GraphIOContext> contexts_;
  std::vector<cudaq_function_entry_t> entries_;
  std::vector<std::unique_ptr<pipe::ai_decoder_service>> services_;
  std::unique_ptr<device_array<cudaq_function_entry_t>> table_;
};

class AiServiceAsDeviceGraph : public device_graph_test {
protected:
  void serve(const ring_shape &shape, std::size_t num_services, std::uint32_t requests) {
    const host_ring ring(shape, CUDAQ_MEMORY_MAPPED);
    const service_graphs services(num_services, kBytes);
    graph_dispatcher dispatcher(manager_.get, ring, services.table(), services.contexts);
    const call_result started = CUDAQ_RESULT_WITHIN(kStartLimit, cudaq_dispatcher_start(dispatcher.get));
    ASSERT_EQ(started.status, CUDAQ_OK) << started.text;
    std::uint32_t sent = 0, received = 0, wrong = 0;
    const auto makes_progress = [&] {
      const std::uint32_t before = sent + received;
      const std::uint32_t to = sent % shape.num_slots, from = received % shape.num_slots;
      if (sent < requests && cudaq_host_ringbuffer_slot_available(&ring.ring, to) == 1)
        send(ring, to, sent++);
      if (received < sent && cudaq_host_ringbuffer_poll_tx_flag(&ring.ring, from, nullptr) == CUDAQ_TX_READY) {
        wrong += !right(ring, from, received++);
        cudaq_host_ringbuffer_clear_slot(&ring.ring, from);
      }
      return sent + received != before;
    };
    while (received < requests && eventually(makes_progress)) {
    }
    ASSERT_EQ(received, requests) << dispatcher.dump();
    EXPECT_EQ(wrong, 0u);
    // A graph publishes before its scheduler counts it.
    EXPECT_TRUE(eventually([&] { return dispatcher.stats().launches == requests; })) << dispatcher.stats().launches;
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatcher.get));
  }

  /// Every third request is longer than the model's input. Every fifth of the others is shorter.
  static std::uint32_t size_of(std::uint32_t k) {
    return k % 3 == 2 ? kBytes + 4 : k % 5 == 4 ? 400 : static_cast<std::uint32_t>(kBytes);
  }
  static std::uint32_t word(std::uint32_t k, std::uint32_t i) { return k * 1000003 + i; }
  static void send(const host_ring &ring, std::uint32_t slot, std::uint32_t k) {
    std::vector<std::uint32_t> payload(size_of(k) / 4);
    for (std::uint32_t i = 0; i < payload.size(); ++i)
      payload[i] = word(k, i);
    CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring.ring, slot, kFunction, payload.data(), size_of(k), k,
                                                            ~std::uint64_t{k}));
    cudaq_host_ringbuffer_signal_slot(&ring.ring, slot);
  }
  static bool right(const host_ring &ring, std::uint32_t slot, std::uint32_t k) {
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    if (cudaq_host_ringbuffer_read_rpc_response(&ring.ring, slot, &header, &result) != CUDAQ_OK ||
        header.request_id != k || header.ptp_timestamp != ~std::uint64_t{k})
      return false;
    if (size_of(k) != kBytes)
      return header.status == CUDAQ_RPC_ERR_BAD_ARG_LEN && header.result_len == 0;
    if (header.status != 0 || header.result_len != kBytes)
      return false;
    for (std::uint32_t i = 0; i < kBytes / 4; ++i) {
      std::uint32_t value;
      std::memcpy(&value, static_cast<const std::uint8_t *>(result) + 4 * i, 4);
      if (value != word(k, i))
        return false;
    }
    return true;
  }

  manager_handle manager_;
};

// Known failure 23.
TEST_F(AiServiceAsDeviceGraph, EveryRequestHasItsOwnAnswer) { serve({4, 2048, false}, 1, 3000); }
TEST_F(AiServiceAsDeviceGraph, ServesInPlace) { serve({4, 2048, true}, 1, 3000); }
TEST_F(AiServiceAsDeviceGraph, APoolOfServicesServesSideBySide) { serve({16, 2048, false}, 4, 5000); }

TEST_F(AiServiceAsDeviceGraph, AnAnswerThatNoSlotHoldsIsRefused) {
  const host_ring ring({2, 256, false}, CUDAQ_MEMORY_MAPPED);
  const service_graphs services(1, kBytes);
  graph_dispatcher dispatcher(manager_.get, ring, services.table(), services.contexts);
  const call_result started = CUDAQ_RESULT_WITHIN(kStartLimit, cudaq_dispatcher_start(dispatcher.get));
  ASSERT_EQ(started.status, CUDAQ_OK) << started.text;
  const std::uint32_t payload = 1;
  CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring.ring, 0, kFunction, &payload, 4, 9, 9));
  cudaq_host_ringbuffer_signal_slot(&ring.ring, 0);
  ASSERT_TRUE(eventually([&] { return cudaq_host_ringbuffer_poll_tx_flag(&ring.ring, 0, nullptr) == CUDAQ_TX_READY; }));
  cudaq_rpc_response_t header{};
  const void *result = nullptr;
  CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_read_rpc_response(&ring.ring, 0, &header, &result));
  EXPECT_EQ(header.status, CUDAQ_RPC_ERR_RESULT_TOO_LARGE);
  EXPECT_EQ(header.result_len, 0u);
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatcher.get));
}

} // namespace
} // namespace cudaq::realtime::test

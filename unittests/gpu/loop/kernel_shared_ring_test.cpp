// SPDX-License-Identifier: Apache-2.0
// Host dispatchers and kernels that share one ring.
#include "unittests/gpu/support/checked_device_functions.h"

namespace cudaq::realtime::test {
namespace {

[[maybe_unused]] const int kQueues = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); // several kernels that do not end

constexpr std::uint32_t kEach = 2;         ///< functions per dispatcher
constexpr std::uint32_t kFirstHostId = 40; ///< above the ids of the device functions (1, 2, ...)

gpu_setup shared_setup(const kernel_kind &kind, const host_ring &ring, std::uint32_t first_function) {
  gpu_setup setup = setup_of(kind, ring);
  setup.entries = checked_device_functions::table(kind, first_function, kEach);
  setup.shared_ring = true;
  return setup;
}

struct flavour {
  const char *name;
  ring_shape shape;
  std::vector<kernel_kind> kernels;
  std::uint32_t messages = 100000;
  bool kernel_is_default_owner = false;
};
void PrintTo(const flavour &f, std::ostream *out) { *out << f.name; }

class KernelSharedRing : public gpu_test, public ::testing::WithParamInterface<flavour> {};

// Known failure 14.
TEST_P(KernelSharedRing, AnswersInterleavedRequestsOnceAndInOrderPerFunction) {
  const flavour &f = GetParam();
  const std::uint32_t messages = messages_or(f.messages);
  const auto of_kernels = static_cast<std::uint32_t>(f.kernels.size()) * kEach;
  const host_ring ring(f.shape, CUDAQ_MEMORY_MAPPED);
  const manager_handle manager;
  checked_device_functions functions(of_kernels, messages);
  std::vector<std::unique_ptr<checked_function>> on_host;
  const auto host = make_shared_host(manager.get, ring, 0, !f.kernel_is_default_owner);
  traffic_plan plan;
  for (std::uint32_t k = 0; k < of_kernels; ++k)
    plan.functions.push_back(functions.function(k));
  for (std::uint32_t k = 0; k < kEach; ++k) {
    on_host.push_back(std::make_unique<checked_function>(kFirstHostId + k, messages));
    serve_checked(*host, *on_host[k]);
    plan.functions.push_back(on_host[k].get());
  }
  plan.messages = messages;
  plan.unknown_of_100 = 10;
  std::vector<std::unique_ptr<gpu_dispatcher>> kernels;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(host->get));
  for (std::uint32_t n = 0; n < f.kernels.size(); ++n) {
    kernels.push_back(std::make_unique<gpu_dispatcher>(manager.get, shared_setup(f.kernels[n], ring, n * kEach)));
    kernels[n]->options.default_owner = n == 0 && f.kernel_is_default_owner;
    kernels[n]->options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
    ASSERT_NO_FATAL_FAILURE(kernels[n]->expect_start());
  }
  traffic load(ring, plan);
  load.run();
  std::uint64_t responded = 0;
  for (const auto &kernel : kernels) {
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(kernel->get));
    const cudaq_dispatcher_stats_t stats = kernel->stats();
    EXPECT_EQ(stats.received, stats.responded);
    EXPECT_EQ(stats.in_flight, 0u);
    EXPECT_EQ(stats.unexpected_flag_values, 0u);
    EXPECT_GT(stats.responded, 0u);
    responded += stats.responded;
  }
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(host->get));
  functions.collect();
  load.expect_clean();
  EXPECT_EQ(responded + host->stats().responded, messages);
}

INSTANTIATE_TEST_SUITE_P(
    Flavours, KernelSharedRing,
    ::testing::Values(flavour{"TwoSlots", {2, 128, false}, {kFifo32}}, flavour{"FourSlots", {4, 128, false}, {kFifo32}},
                      flavour{"ManySlots", {64, 256, false}, {kFifo32}},
                      flavour{"ManySlotsInPlace", {64, 512, true}, {kFifo128}},
                      flavour{"LongFrames", {32, 4096, false}, {kFifo256}, 10000},
                      flavour{"Cooperative", {64, 256, false}, {kCooperative1x128}},
                      flavour{"CooperativeGrid", {16, 256, false}, {kCooperative4x64}},
                      flavour{"TwoRegular", {64, 128, false}, {kFifo32, kFifo128}},
                      flavour{"RegularAndCooperative", {64, 128, true}, {kFifo32, kCooperative4x64}},
                      flavour{"KernelIsDefaultOwner", {64, 128, false}, {kFifo32}, 100000, true}),
    [](const auto &tested) { return std::string(tested.param.name); });

class KernelSharedRingMember : public gpu_test {
protected:
  void prepare() override {
    ring_ = std::make_unique<host_ring>(ring_shape{8, 128, false}, CUDAQ_MEMORY_MAPPED);
    manager_ = std::make_unique<manager_handle>();
    functions_ = std::make_unique<checked_device_functions>(2 * kEach, 100000);
  }
  std::unique_ptr<host_ring> ring_;
  std::unique_ptr<manager_handle> manager_;
  std::unique_ptr<checked_device_functions> functions_;
};

// Known failure 14.
TEST_F(KernelSharedRingMember, IsRefusedAFunctionThatAnotherServes) {
  gpu_dispatcher first(manager_->get, shared_setup(kFifo32, *ring_, 0));
  gpu_dispatcher same(manager_->get, shared_setup(kCooperative1x128, *ring_, 1));
  ASSERT_NO_FATAL_FAILURE(first.expect_start());
  const call_result refused = same.start();
  EXPECT_EQ(refused.status, CUDAQ_ERR_INVALID_ARG);
  EXPECT_NE(refused.text.find("function_id 0x00000002: another dispatcher"), std::string::npos) << refused.text;
  const auto host = make_shared_host(manager_->get, *ring_);
  serve_checked(*host, *functions_->function(0));
  EXPECT_EQ(cudaq_dispatcher_start(host->get), CUDAQ_ERR_INVALID_ARG);
  EXPECT_NE(std::strstr(cudaq_last_error_message(), "0x00000001"), nullptr) << cudaq_last_error_message();
}

TEST_F(KernelSharedRingMember, AndAKernelWithoutTheModeExcludeEachOther) {
  gpu_dispatcher shared(manager_->get, shared_setup(kFifo32, *ring_, 0));
  gpu_dispatcher alone(manager_->get, setup_of(kFifo32, *ring_));
  ASSERT_NO_FATAL_FAILURE(shared.expect_start());
  EXPECT_EQ(alone.start().status, CUDAQ_ERR_STATE);
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(shared.get));
  ASSERT_NO_FATAL_FAILURE(alone.expect_start());
  EXPECT_EQ(shared.start().status, CUDAQ_ERR_STATE);
}

const volatile std::uint64_t *flags_given = nullptr;
void launch_and_report(volatile uint64_t *rx_flags, volatile uint64_t *tx_flags, uint8_t *rx_data, uint8_t *tx_data,
                       size_t rx_stride, size_t tx_stride, cudaq_function_entry_t *table, size_t count,
                       volatile int *shutdown_flag, uint64_t *stats, size_t num_slots, uint32_t blocks,
                       uint32_t threads, cudaStream_t stream) {
  flags_given = rx_flags;
  launch_own_kernel(rx_flags, tx_flags, rx_data, tx_data, rx_stride, tx_stride, table, count, shutdown_flag, stats,
                    num_slots, blocks, threads, stream);
}

TEST_F(KernelSharedRingMember, OfTheProgramIsRefused) {
  gpu_dispatcher dispatcher(manager_->get, shared_setup(kFifo32, *ring_, 0));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_launch_fn(dispatcher.get, launch_and_report));
  const call_result refused = dispatcher.start();
  EXPECT_EQ(refused.status, CUDAQ_ERR_UNSUPPORTED);
  EXPECT_NE(flags_given, nullptr);
  EXPECT_NE(flags_given, ring_->ring.rx_flags) << "a foreign kernel must not get a ring that others serve";
  EXPECT_NE(refused.text.find("launched no kernel of the library"), std::string::npos) << refused.text;
}

TEST_F(KernelSharedRingMember, StopsAndRestartsInTraffic) {
  const auto host = make_shared_host(manager_->get, *ring_, 0,
                                     false); // not a default owner: that one would answer while the kernel is stopped
  checked_function on_host(kFirstHostId, 100000);
  serve_checked(*host, on_host);
  gpu_dispatcher kernel(manager_->get, shared_setup(kFifo32, *ring_, 0));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(host->get));
  ASSERT_NO_FATAL_FAILURE(kernel.expect_start());
  traffic_plan plan;
  plan.functions = {functions_->function(0), functions_->function(1), &on_host};
  plan.messages = messages_or(100000);
  traffic load(*ring_, plan);
  load.run_in_background();
  while (load.collected() < plan.messages && !HasFailure()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(kernel.get));
    EXPECT_EQ(kernel.start().status, CUDAQ_OK);
  }
  load.wait();
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(kernel.get));
  functions_->collect();
  load.expect_clean();
}

TEST_F(KernelSharedRingMember, EndedByTheCallersFlagLeavesItsRequestsToTheDefaultOwner) {
  const auto host = make_shared_host(manager_->get, *ring_);
  gpu_dispatcher kernel(manager_->get, shared_setup(kFifo32, *ring_, 0));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(host->get));
  ASSERT_NO_FATAL_FAILURE(kernel.expect_start());
  gpu_client client(ring_->ring, ring_->shape().num_slots);
  EXPECT_NE(client.call(1, some_bytes(16, 1), 1).header.status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
  kernel.raise_callers_flag();
  EXPECT_TRUE(eventually([&] { return kernel.state() == CUDAQ_DISPATCHER_STOPPED; }));
  for (std::uint32_t id = 2; id < 20; ++id) // several laps, without a call of stop
    EXPECT_EQ(client.call(1, some_bytes(16, id), id).header.status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
}

// cudaq_dispatch_kernel_set_shared_ring_mode is used for launches without a dispatcher.
TEST_F(KernelSharedRingMember, LaunchedDirectlyLeavesOthersRequestsInPlace) {
  int occupancy = 0;
  CUDA_ASSERT_OK(cudaq_dispatch_kernel_query_occupancy(&occupancy, 32)); // this call loads the kernels
  const cudaq_ringbuffer_t &r = ring_->ring;
  for (const kernel_kind &kind : {kFifo32, kCooperative1x128}) {
    SCOPED_TRACE(kind.name);
    const auto launch =
        kind.cooperative() ? cudaq_launch_dispatch_kernel_cooperative : cudaq_launch_dispatch_kernel_regular;
    const device_array<cudaq_function_entry_t> table(checked_device_functions::table(kind, 0, kEach));
    const side_stream stream;
    volatile int *const flag = mapped_word<int>();
    auto *const stats = mapped_word<std::uint64_t>();
    CUDA_EXPECT_OK(cudaq_dispatch_kernel_set_shared_ring_mode(1));
    launch(r.rx_flags, r.tx_flags, r.rx_data, r.tx_data, r.rx_stride_sz, r.tx_stride_sz, table.get, kEach, flag, stats,
           ring_->shape().num_slots, kind.blocks, kind.threads, stream.get);
    CUDA_EXPECT_OK(cudaq_dispatch_kernel_set_shared_ring_mode(0));
    gpu_client client(r, ring_->shape().num_slots);
    const std::uint32_t foreign = client.send(kFirstHostId, some_bytes(16, 0), 1);
    for (std::uint32_t id = 2; id < 8; ++id)
      EXPECT_EQ(client.call(1 + id % kEach, some_bytes(16, id), id).header.request_id, id);
    EXPECT_NE(client.slots->rx_flag(foreign), 0u);
    EXPECT_EQ(client.slots->tx_flag(foreign), 0u);
    store_release(r.rx_flags_host[foreign], std::uint64_t{0}); // as if its dispatcher had served it
    client.set_next_slot(foreign);
    EXPECT_EQ(client.call(2, some_bytes(16, 9), 9).header.request_id, 9u) << "the refill";
    store_release(*flag, 1);
    CUDA_EXPECT_OK(stream.wait());
    EXPECT_EQ(detail::load_relaxed(*stats), 7u);
  }
}

class KernelSharedRingFault : public gpu_test {};

// Nothing is freed, because the device cannot be used any more.
// Known failures 9, 14.
TEST_F(KernelSharedRingFault, LeavesItsRequestsToTheDefaultOwner) {
  cudaq_dispatch_manager_t *manager = nullptr;
  CUDAQ_ASSERT_OK(cudaq_dispatch_manager_create(&manager));
  auto *ring = new host_ring({4, 256, false}, CUDAQ_MEMORY_MAPPED); // never freed
  gpu_client client(ring->ring, 4);
  const auto host = make_shared_host(manager, *ring);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(host->get));
  {
    gpu_setup setup = setup_of(kFifo32, *ring);
    setup.shared_ring = true;
    gpu_dispatcher dispatcher(manager, setup);
    dispatcher.fault_expected = true;
    ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
    EXPECT_NE(client.call(id_of(handler::reverse), some_bytes(4, 1), 1).header.status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
    const std::uint32_t trapped = client.send(id_of(handler::trap), some_bytes(4, 1), 2);
    EXPECT_EQ(client.collect(trapped).header.status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
    EXPECT_EQ(dispatcher.state(), CUDAQ_DISPATCHER_FAILED);
    for (std::uint32_t id = 3; id < 12; ++id)
      EXPECT_EQ(client.call(id_of(handler::reverse), some_bytes(4, id), id).header.status,
                CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
    EXPECT_EQ(CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatcher.get)).status, CUDAQ_ERR_CUDA);
    dispatcher.end_observation();
    (void)CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatcher_destroy(dispatcher.get));
    dispatcher.get = nullptr; // destroyed, or leaked because of the fault
  }
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(host->get));
}

/// Arrays that are allocated by cudaHostAlloc, or plain memory that cudaHostRegister has pinned.
class pinned_arrays {
public:
  explicit pinned_arrays(bool registered) : registered_(registered) {}
  ~pinned_arrays() {
    for (void *array : arrays_)
      if (registered_) {
        CUDA_EXPECT_OK(cudaHostUnregister(array));
        std::free(array);
      } else {
        CUDA_EXPECT_OK(cudaFreeHost(array));
      }
  }
  pinned_arrays(const pinned_arrays &) = delete;
  pinned_arrays &operator=(const pinned_arrays &) = delete;

  /// Sets both addresses of a new zeroed array.
  template <class T>
  void add(std::size_t bytes, T *&host, T *&device) {
    void *at = nullptr, *seen = nullptr;
    if (registered_) {
      at = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
      CUDA_EXPECT_OK(cudaHostRegister(at, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable));
    } else {
      CUDA_EXPECT_OK(cudaHostAlloc(&at, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
    }
    std::memset(at, 0, bytes);
    arrays_.push_back(at);
    CUDA_EXPECT_OK(cudaHostGetDevicePointer(&seen, at, 0));
    host = static_cast<T *>(at);
    device = static_cast<T *>(seen);
  }

private:
  const bool registered_;
  std::vector<void *> arrays_;
};

class KernelSharedRingViews : public gpu_test {};

// As existing programs do: the kernel's struct has device pointers only, the host dispatcher's has host pointers only.
// Known failures 14, 61.
TEST_F(KernelSharedRingViews, AKernelAndAHostDispatcherShareARingEachWithItsOwnView) {
  for (const bool registered : {false, true}) {
    constexpr std::uint32_t kSlots = 16, kMessages = 2000;
    const host_ring shape({kSlots, 256, false}, CUDAQ_MEMORY_MAPPED); // only its geometry is used
    pinned_arrays arrays(registered);
    cudaq_ringbuffer_t whole{};
    whole.rx_stride_sz = whole.tx_stride_sz = 256;
    arrays.add(kSlots * 8, whole.rx_flags_host, whole.rx_flags);
    arrays.add(kSlots * 8, whole.tx_flags_host, whole.tx_flags);
    arrays.add(kSlots * 256, whole.rx_data_host, whole.rx_data);
    arrays.add(kSlots * 256, whole.tx_data_host, whole.tx_data);
    cudaq_ringbuffer_t for_device = whole, for_host = whole;
    for_device.rx_flags_host = for_device.tx_flags_host = nullptr;
    for_device.rx_data_host = for_device.tx_data_host = nullptr;
    for_host.rx_flags = for_host.tx_flags = nullptr;
    for_host.rx_data = for_host.tx_data = nullptr;
    const manager_handle manager;
    checked_device_functions functions(kEach, kMessages);
    checked_function on_host(kFirstHostId, kMessages);
    const auto host = make_shared_host(manager.get, shape, 0, true);
    serve_checked(*host, on_host);
    gpu_dispatcher kernel(manager.get, shared_setup(kFifo32, shape, 0));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(host->get, &for_host));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(kernel.get, &for_device));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(host->get));
    ASSERT_NO_FATAL_FAILURE(kernel.expect_start());
    std::vector<std::uint8_t> payload(kCheckedHeader);
    for (std::uint32_t n = 0; n < kMessages && !HasFailure(); ++n) {
      const std::uint32_t slot = n % kSlots, id = n % 2 == 0 ? kFirstHostId : 1;
      fill_frame(payload.data(), kCheckedHeader, n / 2, kRequestSalt);
      CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&whole, slot, id, payload.data(), kCheckedHeader, n, 0));
      cudaq_host_ringbuffer_signal_slot(&whole, slot);
      ASSERT_TRUE(eventually([&] {
        return cudaq_host_ringbuffer_poll_tx_flag(&whole, slot, nullptr) == CUDAQ_TX_READY;
      })) << kernel.dump();
      cudaq_rpc_response_t header{};
      const void *result = nullptr;
      CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_read_rpc_response(&whole, slot, &header, &result));
      EXPECT_EQ(header.request_id, n);
      EXPECT_EQ(header.status, 0);
      cudaq_host_ringbuffer_clear_slot(&whole, slot);
    }
    EXPECT_TRUE(eventually([&] { return kernel.stats().responded == kMessages / 2; })) << kernel.dump();
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(kernel.get));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(host->get));
  }
}

TEST_F(KernelSharedRingViews, ARingInDeviceMemoryIsRefusedWithTheArrayAndTheReason) {
  const host_ring shape({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  const device_array<std::uint64_t> flags(4);
  const manager_handle manager;
  gpu_dispatcher kernel(manager.get, shared_setup(kFifo32, shape, 0));
  cudaq_ringbuffer_t ring = shape.ring;
  ring.tx_flags = flags.get;
  ring.tx_flags_host = nullptr;
  EXPECT_EQ(cudaq_dispatcher_set_ringbuffer(kernel.get, &ring), CUDAQ_ERR_INVALID_ARG);
  const std::string text = cudaq_last_error_message();
  EXPECT_NE(text.find("ringbuffer->tx_flags_host is NULL"), std::string::npos) << text;
  EXPECT_NE(text.find("device memory, which has no host address"), std::string::npos) << text;
}

} // namespace
} // namespace cudaq::realtime::test

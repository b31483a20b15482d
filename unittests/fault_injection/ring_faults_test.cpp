// SPDX-License-Identifier: Apache-2.0
// Ring memory of each kind, the small functions of the C API, and a check of the injection itself.
#include "unittests/fault_injection/dispatch_script.h"

#include "cudaq/realtime/detail/ring/ring_record.h"

namespace cudaq::realtime::test {
namespace {

bool has_cuda_memory() { return (cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_CUDA_MEMORY) != 0; }

class ring_life : public dispatch_script {
public:
  explicit ring_life(const cudaq_ringbuffer_options_t &with) : dispatch_script(0) {
    ring_options.memory_kind = with.memory_kind;
    ring_options.in_place = with.in_place;
    ring_options.hugepages = with.hugepages;
    ring_options.numa_node = with.numa_node;
    ring_options.device_id = with.device_id;
  }
  std::vector<step> steps() override { return {make_ring(), destroy_ring()}; }
};

class RingFaults : public ::testing::Test {
protected:
  void SetUp() override { CUDAQ_ASSERT_OK(cudaq_ringbuffer_options_init(&options_, sizeof(options_))); }
  void expect_no_loss(std::uint64_t least, const std::vector<std::string> &calls) {
    sweep_all_faults([this] { return std::make_unique<ring_life>(options_); }, least, calls);
  }
  cudaq_ringbuffer_options_t options_{};
};

TEST_F(RingFaults, CostNoHostMemory) { expect_no_loss(3, {"operator new", "mmap", "munmap"}); }

TEST_F(RingFaults, CostNoHugePagesOfANode) {
  options_.hugepages = 1;
  options_.numa_node = 0;
  expect_no_loss(4, {"operator new", "mmap", "munmap", "mbind"});
}

TEST_F(RingFaults, CostNoMappedMemoryOfAnotherDevice) {
  if (!has_cuda_memory())
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  options_.memory_kind = CUDAQ_MEMORY_MAPPED;
  options_.device_id = 1;
  expect_no_loss(15, {"operator new", "cudaGetDevice", "cudaSetDevice", "cuCtxPushCurrent", "cudaHostAlloc",
                      "cudaHostGetDevicePointer", "cudaFreeHost"});
}

/// CUDA frees this memory only when no graph runs on the device any more.
TEST_F(RingFaults, AMappedRingThatALoopHasLeftToAGraphIsFreedAtTheSecondAttempt) {
  if (!has_cuda_memory())
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  options_.memory_kind = CUDAQ_MEMORY_MAPPED;
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  options_.num_slots = kSlots, options_.slot_size = kSlotBytes;
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_create(&options_, &memory, &ring));
  detail::find_record(ring.rx_flags_host)->owner.store(detail::kOwnerLeftAGraph);
  fake_cuda::lose_device(cudaErrorUnknown);
  EXPECT_EQ(cudaq_ringbuffer_destroy(memory), CUDAQ_ERR_CUDA);
  EXPECT_EQ(detail::find_record(ring.rx_flags_host)->owner.load(), detail::kOwnerLeftAGraph) << "as before";
  fake_cuda::lose_device(cudaSuccess);
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
  fake_cuda::clean_up();
}

TEST_F(RingFaults, CostNoDeviceMemory) {
  if (!has_cuda_memory())
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  options_.memory_kind = CUDAQ_MEMORY_DEVICE;
  expect_no_loss(20, {"operator new", "cudaStreamCreateWithFlags", "cudaMallocAsync", "cudaMemcpyAsync",
                      "cudaStreamSynchronize", "cudaFreeAsync", "cudaStreamDestroy"});
}

/// A ring whose requests lie in device memory, and a producer's handle on it.
class producer_life : public dispatch_script {
public:
  explicit producer_life(std::uint32_t memory_kind) : dispatch_script(0) { ring_options.memory_kind = memory_kind; }
  ~producer_life() override {
    if (producer_ != nullptr)
      (void)cudaq_ringbuffer_producer_close(producer_);
  }
  std::vector<step> steps() override {
    return {make_ring(),
            {"cudaq_ringbuffer_get_info",
             [this] {
               cudaq_ringbuffer_info_t info{};
               info.struct_size = sizeof(info);
               return cudaq_ringbuffer_get_info(memory, &info);
             }},
            {"cudaq_ringbuffer_producer_open", [this] { return cudaq_ringbuffer_producer_open(memory, &producer_); }},
            {"cudaq_ringbuffer_producer_send",
             [this] { return cudaq_ringbuffer_producer_send(producer_, 1, nullptr, 0, 0, 0, 0, nullptr); }},
            close(CUDAQ_OK),
            destroy_ring()};
  }

protected:
  /// CUDAQ_ERR_STATE: a slot is claimed.
  step close(status expected) {
    step s{"cudaq_ringbuffer_producer_close", [this] { return forget(producer_, cudaq_ringbuffer_producer_close); }};
    return expected == CUDAQ_OK ? s : refused(std::move(s), expected);
  }
  cudaq_ringbuffer_producer_t *producer_ = nullptr;
};

/// The handle of a ring that another process could have made: each way to write a request, and each refusal.
class opened_ring_life : public producer_life {
public:
  opened_ring_life() : producer_life(CUDAQ_MEMORY_HOST) {}
  std::vector<step> steps() override {
    return {make_ring(),
            refused(open(CUDAQ_MEMORY_DEVICE), CUDAQ_ERR_UNSUPPORTED),
            open(CUDAQ_MEMORY_HOST),
            refused(write(0), CUDAQ_ERR_INVALID_ARG),
            claim(3),
            write(0),
            {"cudaq_ringbuffer_producer_payload",
             [this] {
               void *payload = nullptr;
               std::size_t bytes = 0;
               return cudaq_ringbuffer_producer_payload(producer_, 1, &payload, &bytes);
             }},
            write_header(1, 8),
            refused(write_header(1, kSlotBytes), CUDAQ_ERR_INVALID_ARG),
            refused(commit(0, kSlots + 1), CUDAQ_ERR_INVALID_ARG),
            commit(0, 2),
            close(CUDAQ_ERR_STATE),
            abort(2),
            refused(abort(2), CUDAQ_ERR_INVALID_ARG),
            refused({"cudaq_ringbuffer_producer_claim",
                     [this] { return cudaq_ringbuffer_producer_claim(producer_, 1, nullptr, nullptr); }},
                    CUDAQ_ERR_INVALID_ARG),
            send(CUDAQ_OK),
            send(CUDAQ_ERR_TIMEOUT),
            close(CUDAQ_OK),
            destroy_ring()};
  }

private:
  step open(std::uint32_t kind) {
    return {"cudaq_ringbuffer_producer_open_ring",
            [this, kind] { return cudaq_ringbuffer_producer_open_ring(&ring, kSlots, kind, &producer_); }};
  }
  step claim(std::uint32_t slots) {
    return {"cudaq_ringbuffer_producer_claim", [this, slots] {
              std::uint32_t first = 0, count = 0;
              const status result = cudaq_ringbuffer_producer_claim(producer_, slots, &first, &count);
              return result != CUDAQ_OK || count == slots ? result : CUDAQ_ERR_TIMEOUT;
            }};
  }
  step write(std::uint32_t slot) {
    return {"cudaq_ringbuffer_producer_write",
            [this, slot] { return cudaq_ringbuffer_producer_write(producer_, slot, 1, "1234", 4, 0, 0); }};
  }
  step write_header(std::uint32_t slot, std::uint32_t bytes) {
    return {"cudaq_ringbuffer_producer_write_header",
            [this, slot, bytes] { return cudaq_ringbuffer_producer_write_header(producer_, slot, 1, bytes, 0, 0); }};
  }
  step commit(std::uint32_t slot, std::uint32_t count) {
    return {"cudaq_ringbuffer_producer_commit",
            [this, slot, count] { return cudaq_ringbuffer_producer_commit(producer_, slot, count); }};
  }
  step abort(std::uint32_t slot) {
    return {"cudaq_ringbuffer_producer_abort",
            [this, slot] { return cudaq_ringbuffer_producer_abort(producer_, slot); }};
  }
  /// CUDAQ_ERR_TIMEOUT: the ring is full.
  step send(status expected) {
    step s{"cudaq_ringbuffer_producer_send",
           [this] { return cudaq_ringbuffer_producer_send(producer_, 1, nullptr, 0, 0, 0, 0, nullptr); }};
    return expected == CUDAQ_OK ? s : refused(std::move(s), expected);
  }
};

TEST(ProducerFaults, CostNoSlotOfARing) {
  sweep_all_faults([] { return std::make_unique<opened_ring_life>(); }, 8, {"operator new", "mmap", "munmap"});
}

TEST_F(RingFaults, CostNoRequestsInDeviceMemory) {
  if (!has_cuda_memory())
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  for (const std::uint32_t kind : {CUDAQ_MEMORY_DEVICE_RX, CUDAQ_MEMORY_AUTO}) {
    sweep_all_faults([kind] { return std::make_unique<producer_life>(kind); }, 20,
                     {"operator new", "cudaStreamCreateWithFlags", "cudaMallocManaged", "cudaMemAdvise",
                      "cudaMemcpyAsync", "cudaHostAlloc", "cudaStreamSynchronize", "cudaFreeHost", "cudaFree",
                      "cudaStreamDestroy"});
  }
}

/// Functions that check their arguments only.
class refusals : public dispatch_script {
public:
  refusals() : dispatch_script(0) {}
  std::vector<step> steps() override {
    return {make_manager(),
            {"cudaq_dispatch_manager_reserve_blocks",
             [this] { return cudaq_dispatch_manager_reserve_blocks(manager, 1, 3); }},
            refused({"cudaq_dispatch_manager_reserve_blocks",
                     [this] { return cudaq_dispatch_manager_reserve_blocks(manager, -1, 3); }},
                    CUDAQ_ERR_INVALID_ARG),
            refused({"cudaq_dispatcher_options_init", [] { return cudaq_dispatcher_options_init(nullptr, 8); }},
                    CUDAQ_ERR_INVALID_ARG),
            refused({"cudaq_ringbuffer_options_init", [] { return cudaq_ringbuffer_options_init(nullptr, 8); }},
                    CUDAQ_ERR_INVALID_ARG),
            refused({"cudaq_dispatcher_create",
                     [this] {
                       cudaq_dispatcher_t *out = nullptr;
                       cudaq_dispatcher_config_t config = host_config({0, kSlotBytes, false});
                       return cudaq_dispatcher_create(manager, &config, &out);
                     }},
                    CUDAQ_ERR_INVALID_ARG),
            refused({"cudaq_ringbuffer_create", [this] { return cudaq_ringbuffer_create(nullptr, &memory, &ring); }},
                    CUDAQ_ERR_INVALID_ARG),
            refused({"cudaq_host_ringbuffer_write_rpc_request",
                     [this] { return cudaq_host_ringbuffer_write_rpc_request(&ring, 0, 1, nullptr, 0, 0, 0); }},
                    CUDAQ_ERR_INVALID_ARG),
            refused({"cudaq_host_ringbuffer_read_rpc_response",
                     [this] { return cudaq_host_ringbuffer_read_rpc_response(&ring, 0, nullptr, nullptr); }},
                    CUDAQ_ERR_INVALID_ARG),
            destroy_manager()};
  }
};

TEST(RefusalFaults, CostTheTextButNotTheStatus) {
  fault_sweep sweep([] { return std::make_unique<refusals>(); });
  sweep.each_call();
  sweep.expect_at_least(6, {"operator new"});
}

TEST(FaultPoints, AreReachedByTheLibraryAndByTheStandardLibrary) {
  const auto fails = [](std::uint64_t n, auto &&body) {
    faults::arm(n);
    try {
      body();
    } catch (const std::exception &) {
    }
    return faults::disarm() != 0;
  };
  EXPECT_TRUE(fails(1, [] { ::operator delete(::operator new(4)); }));
  EXPECT_TRUE(fails(1, [] { ::operator delete[](::operator new[](4, std::nothrow)); }));
  EXPECT_TRUE(fails(1, [] { static_cast<void>(std::string(100, 'x').c_str()); }));
  EXPECT_TRUE(fails(1, [] { ::operator delete (::operator new (4, std::align_val_t{256}), std::align_val_t{256}); }));
  const std::uint64_t threads = faults::injected("pthread_create");
  for (std::uint64_t n = 1; n < 10 && faults::injected("pthread_create") == threads; ++n)
    fails(n, [] { std::thread([] {}).join(); });
  EXPECT_EQ(faults::injected("pthread_create"), threads + 1) << "std::thread calls another function";
  const faults::exempt_scope here;
  EXPECT_FALSE(fails(1, [] { ::operator delete(::operator new(4)); }));
}

} // namespace
} // namespace cudaq::realtime::test

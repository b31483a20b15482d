// SPDX-License-Identifier: Apache-2.0
// Rings when their device is lost, and when the process ends while a kernel serves them: on a CUDA runtime without a
// GPU, whose device memory the CPU can write.
#include "unittests/environment/child_process.h"
#include "unittests/support/fake_cuda.h"
#include "unittests/support/sanitized.h"

#include "cudaq/realtime/daemon/dispatcher/ring_producer.h"

#include <cstdlib>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kSlots = 4;

cudaq_status_t make_ring(std::uint32_t kind, cudaq_ringbuffer_memory_t *&memory, cudaq_ringbuffer_t &ring) {
  cudaq_ringbuffer_options_t o;
  cudaq_ringbuffer_options_init(&o, sizeof(o));
  o.num_slots = kSlots;
  o.slot_size = 64;
  o.memory_kind = kind;
  return cudaq_ringbuffer_create(&o, &memory, &ring);
}

volatile int *current_flag = nullptr; ///< launch functions have no user pointer

/// A kernel of the program: it runs until the caller's flag is set, or until the device is lost.
cudaError_t launch(const cudaq_dispatch_launch_params_t *p) {
  fake_cuda::launch(p->stream, [flag = current_flag] {
    while (detail::load_acquire(*flag) == 0 && !fake_cuda::device_is_lost())
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  });
  return cudaSuccess;
}

/// A kernel on a ring, and a producer's handle on the ring.
struct served_ring {
  explicit served_ring(std::uint32_t memory_kind = CUDAQ_MEMORY_DEVICE_RX)
      : kind(memory_kind), words(static_cast<std::uint64_t *>(fake_cuda::allocate(16, cudaMemoryTypeHost))) {}

  cudaq_status_t start() {
    current_flag = reinterpret_cast<volatile int *>(words);
    cudaq_dispatcher_config_t config{};
    config.num_slots = kSlots;
    config.slot_size = 64;
    config.threads_per_block = 32;
    entry.function_id = 1;
    entry.handler.device_fn_ptr = this;
    const cudaq_function_table_t table{&entry, 1};
    const cudaq_dispatcher_options_t options = default_options();
    const std::function<cudaq_status_t()> calls[] = {
        [&] { return make_ring(kind, memory, ring); },
        [&] { return cudaq_ringbuffer_producer_open(memory, &producer); },
        [&] { return cudaq_dispatch_manager_create(&manager); },
        [&] { return cudaq_dispatcher_create(manager, &config, &dispatcher); },
        [&] { return cudaq_dispatcher_set_ringbuffer(dispatcher, &ring); },
        [&] { return cudaq_dispatcher_set_function_table(dispatcher, &table); },
        [&] { return cudaq_dispatcher_set_control(dispatcher, current_flag, words + 1); },
        [&] { return cudaq_dispatcher_set_options(dispatcher, &options); },
        [&] { return cudaq_dispatcher_set_launch_fn_v2(dispatcher, launch); },
        [&] { return cudaq_dispatcher_start(dispatcher); },
        [&] { return send(); }};
    for (const auto &call : calls)
      if (const cudaq_status_t status = call(); status != CUDAQ_OK)
        return status;
    return CUDAQ_OK;
  }
  cudaq_status_t send() { return cudaq_ringbuffer_producer_send(producer, 1, "abc", 3, 7, 0, 0, nullptr); }

  /// Refused because the dispatcher runs. The handle is closed.
  void expect_kept_by_the_dispatcher() const {
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(cudaq_ringbuffer_destroy(memory), CUDAQ_ERR_STATE);
      EXPECT_TRUE(error_names({"a dispatcher runs on the ring", "cudaq_dispatcher_stop"}));
    }
  }

  std::uint32_t kind;
  std::uint64_t *words;
  cudaq_function_entry_t entry{}; ///< each start reads it
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  cudaq_ringbuffer_producer_t *producer = nullptr;
  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *dispatcher = nullptr;
};

bool has_cuda_memory() { return (cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_CUDA_MEMORY) != 0; }
bool has_device_path() { return (cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_DEVICE_PATH) != 0; }

class LostDevice : public ::testing::Test {
protected:
  void TearDown() override {
    fake_cuda::lose_device(cudaSuccess);
    EXPECT_EQ(fake_cuda::violations(), "");
    EXPECT_EQ(fake_cuda::clean_up(), 0);
  }
  /// A destroy that fails keeps the ring: it can be repeated.
  static void expect_kept(cudaq_ringbuffer_memory_t *memory) {
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(cudaq_ringbuffer_destroy(memory), CUDAQ_ERR_CUDA);
      EXPECT_TRUE(error_names({"cudaq_ringbuffer_destroy"}));
    }
    cudaq_ringbuffer_info_t info{};
    info.struct_size = sizeof(info);
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_get_info(memory, &info));
  }
};

TEST_F(LostDevice, LeavesRingsThatCanBeReportedAndDestroyedLater) {
  if (!has_cuda_memory())
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  for (const std::uint32_t kind : {CUDAQ_MEMORY_MAPPED, CUDAQ_MEMORY_DEVICE, CUDAQ_MEMORY_DEVICE_RX}) {
    cudaq_ringbuffer_memory_t *memory = nullptr, *other = nullptr;
    cudaq_ringbuffer_t ring{}, unused{};
    CUDAQ_ASSERT_OK(make_ring(kind, memory, ring));
    fake_cuda::lose_device(cudaErrorECCUncorrectable);
    expect_kept(memory);
    for (const std::uint32_t refused :
         {CUDAQ_MEMORY_MAPPED, CUDAQ_MEMORY_DEVICE, CUDAQ_MEMORY_DEVICE_RX, CUDAQ_MEMORY_AUTO}) {
      EXPECT_EQ(make_ring(refused, other, unused), CUDAQ_ERR_CUDA) << refused;
      EXPECT_EQ(other, nullptr);
    }
    CUDAQ_ASSERT_OK(make_ring(CUDAQ_MEMORY_HOST, other, unused)); // needs no device
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(other));
    fake_cuda::lose_device(cudaSuccess);
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
  }
}

TEST_F(LostDevice, EndsARunWithoutWaitingAndItsHandleCanBeClosed) {
  if (!has_device_path())
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  served_ring s;
  CUDAQ_ASSERT_OK(s.start());
  fake_cuda::lose_device(cudaErrorLaunchFailure);
  CUDAQ_EXPECT_OK(s.send()); // the requests lie where the CPU can write them
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(cudaq_dispatcher_stop(s.dispatcher), CUDAQ_ERR_CUDA);
  EXPECT_TRUE(error_names({"cudaq_dispatcher_stop"}));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(s.dispatcher)); // the error is reported once
  CUDAQ_EXPECT_OK(cudaq_dispatch_manager_destroy(s.manager));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
  EXPECT_EQ(cudaq_ringbuffer_destroy(s.memory), CUDAQ_ERR_STATE);
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_close(s.producer));
  expect_kept(s.memory);
  EXPECT_TRUE(eventually(fake_cuda::idle));
  fake_cuda::lose_device(cudaSuccess);
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(s.memory));
  fake_cuda::release(s.words);
}

// Before, the call waited for the kernel without limit.
TEST_F(LostDevice, AKernelThatRunsKeepsItsRingUntilItIsStopped) {
  if (!has_device_path())
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  for (const std::uint32_t kind : {CUDAQ_MEMORY_MAPPED, CUDAQ_MEMORY_DEVICE_RX})
    for (const bool lost : {false, true}) {
      served_ring s(kind);
      CUDAQ_ASSERT_OK(s.start());
      CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_close(s.producer));
      if (lost)
        fake_cuda::lose_device(cudaErrorLaunchFailure);
      s.expect_kept_by_the_dispatcher();
      EXPECT_EQ(cudaq_dispatcher_stop(s.dispatcher), lost ? CUDAQ_ERR_CUDA : CUDAQ_OK);
      if (lost) { // the ring is as before: of a device that comes back it can be served again
        expect_kept(s.memory);
        EXPECT_TRUE(eventually(fake_cuda::idle));
        fake_cuda::lose_device(cudaSuccess);
        CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(s.dispatcher)); // the fault is reported once
      }
      CUDAQ_ASSERT_OK(cudaq_dispatcher_start(s.dispatcher));
      s.expect_kept_by_the_dispatcher();
      CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(s.dispatcher));
      CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(s.memory));
      CUDAQ_EXPECT_OK(cudaq_dispatch_manager_destroy(s.manager));
      fake_cuda::release(s.words);
    }
}

// The destroy calls in the wrong order: each is refused, and the right one succeeds later.
TEST_F(LostDevice, ADeviceThatIsThereRefusesAWrongOrderOfDestroyCalls) {
  if (!has_device_path())
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  served_ring s;
  CUDAQ_ASSERT_OK(s.start());
  EXPECT_EQ(cudaq_ringbuffer_destroy(s.memory), CUDAQ_ERR_STATE);
  EXPECT_EQ(cudaq_dispatch_manager_destroy(s.manager), CUDAQ_ERR_STATE);
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_close(s.producer)); // before the dispatcher's end
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(s.dispatcher));      // stops it
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(s.memory));
  CUDAQ_EXPECT_OK(cudaq_dispatch_manager_destroy(s.manager));
  fake_cuda::release(s.words);
}

// The destructors of the process run, while a kernel serves a ring on which a handle is open.
TEST(ProcessExit, WithARingThatAKernelServesNeitherHangsNorCrashes) {
  if (!has_device_path())
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  if (kSanitized)
    GTEST_SKIP() << "the sanitizer looks for leaks at the end of the process, and the ring is left on purpose";
  CUDAQ_EXPECT_GOOD_CHILD([]() -> std::string {
    static served_ring s;
    if (s.start() != CUDAQ_OK)
      return last_error();
    std::exit(0);
  });
  CUDAQ_EXPECT_GOOD_CHILD([]() -> std::string { // on a thread that is not the main thread, while another one sends
    static served_ring s;
    if (s.start() != CUDAQ_OK)
      return last_error();
    std::thread([] {
      for (;;)
        (void)s.send();
    }).detach();
    std::thread([] { std::exit(0); }).join();
    return "exit has returned";
  });
}

} // namespace
} // namespace cudaq::realtime::test

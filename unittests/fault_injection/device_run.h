// SPDX-License-Identifier: Apache-2.0
// A dispatcher on the device path that runs without a GPU: CPU threads play the library's kernel, on a CUDA runtime of
// the tests. One object at a time.
#pragma once

#include "unittests/loop/loop_host.h"
#include "unittests/support/api_fixture.h"
#include "unittests/support/fake_cuda/fake_cuda.h"

#include "cudaq/realtime/detail/kernel_abi/launch_state.h"

#include <pthread.h>

namespace cudaq::realtime::test {

/// Sleeps after a look that finds nothing: tests share few cores.
struct resting_thread_group : single_thread_group {
  static std::uint32_t ballot(bool vote) {
    if (!vote)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    return vote;
  }
};

struct device_run_shape {
  const char *name = "";
  std::uint32_t ordering = CUDAQ_ORDERING_FIFO;
  std::uint32_t blocks = 1, threads = 32;
  ring_shape ring{8, 256, false};
};
inline void PrintTo(const device_run_shape &s, std::ostream *out) { *out << s.name; }

class device_run : public dispatcher_view {
public:
  static constexpr std::uint32_t kFn = 77;

  explicit device_run(const device_run_shape &of)
      : words_(static_cast<std::uint64_t *>(fake_cuda::allocate(2 * sizeof(std::uint64_t), cudaMemoryTypeHost))),
        shutdown(*new (words_) int(0)), ring(of.ring, CUDAQ_MEMORY_MAPPED), client(ring), options(default_options()),
        shape_(of) {
    the_one = this;
    words_[1] = 0;
    cudaq_dispatcher_config_t config{}; // zeros select the device path, a regular kernel, and device calls
    config.num_blocks = of.blocks;
    config.threads_per_block = of.threads;
    config.num_slots = of.ring.num_slots;
    config.slot_size = of.ring.slot_size;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_create(manager_.get, &config, &get));
#if !defined(CUDAQ_TEST_WITHOUT_OBSERVER)
    observer_ = std::make_unique<dispatcher_observer>(get, observed_path::device);
#endif
    entry_.function_id = kFn;
    entry_.handler.device_fn_ptr = reinterpret_cast<void *>(&handle);
    const cudaq_function_table_t table{&entry_, 1};
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(get, &ring.ring));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_function_table(get, &table));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(get, &shutdown, words_ + 1));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_launch_fn_v2(get, launch));
    options.ordering = of.ordering;
  }
  ~device_run() {
    closed.open();
    cudaq_dispatcher_stop(get); // under observation
    observer_.reset();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(get));
    fake_cuda::release(words_);
    the_one = nullptr;
  }
  device_run(const device_run &) = delete;
  device_run &operator=(const device_run &) = delete;

  cudaq_status_t start() {
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(get, &options));
    return cudaq_dispatcher_start(get);
  }

private:
  static inline device_run *the_one = nullptr; ///< handlers and launch functions of a device have no argument for it
  manager_handle manager_;
  std::uint64_t *const words_;

public:
  volatile int &shutdown; ///< the caller's flag
  host_ring ring;
  ring_client client;
  cudaq_dispatcher_options_t options; ///< start() sets them
  gate closed;                        ///< handlers wait in it
  bool launch_fails = false;
  bool launch_exits = false; ///< ends the thread of start

private:
  static int handle(const void *, void *, std::uint32_t, std::uint32_t, std::uint32_t *result_len) {
    the_one->closed.pass();
    *result_len = 0;
    return 0;
  }
  static cudaError_t launch(const cudaq_dispatch_launch_params_t *p) {
    if (the_one->launch_fails)
      return cudaErrorLaunchOutOfResources;
    if (the_one->launch_exits)
      pthread_exit(nullptr);
    auto &state = *static_cast<cudaq_dispatch_launch_state_t *>(p->state);
    state.taken = state.resident_blocks = 1;
    const device_run_shape &s = the_one->shape_;
    const bool any = state.params.any_order;
    const std::uint32_t useful = (s.ring.num_slots + 31) / 32; // as the launch on a device
    const std::uint32_t groups = std::min(num_loops(any, s.blocks, s.threads), any ? useful : 1);
    fake_cuda::launch(p->stream, [params = state.params, groups, any, bytes = s.ring.slot_size] {
      std::vector<group_memory> memories(groups);
      std::vector<std::thread> threads;
      for (std::uint32_t g = 0; g < groups; ++g) {
        memories[g].lay_out(bytes, any);
        threads.emplace_back([&params, &memory = memories[g], g, groups, any] {
          const ring_transport<resting_thread_group, thread_scope_system> transport(params.ring, params.first_slot);
          any ? run_group<true, resting_thread_group>(params, g, groups, memory, transport)
              : run_group<false, resting_thread_group>(params, g, groups, memory, transport);
        });
      }
      for (std::thread &t : threads)
        t.join();
    });
    return cudaSuccess;
  }

  const device_run_shape shape_;
  cudaq_function_entry_t entry_{};
  std::unique_ptr<dispatcher_observer> observer_;
};

/// Skips the test in a library without the device path. At its end nothing of the device is left.
class device_run_test : public ::testing::Test {
protected:
  void SetUp() override {
    if ((cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_DEVICE_PATH) == 0)
      GTEST_SKIP() << "this library was built without the CUDA runtime";
  }
  void TearDown() override {
    fake_cuda::lose_device(cudaSuccess);
    EXPECT_EQ(fake_cuda::violations(), "");
    EXPECT_EQ(fake_cuda::clean_up(), 0);
  }
};

} // namespace cudaq::realtime::test

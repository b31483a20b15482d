// SPDX-License-Identifier: Apache-2.0
// A thousand starts and stops, and a hundred new dispatchers: memory, files and threads do not grow.
#include "unittests/gpu/support/gpu_dispatcher.h"

#include <dirent.h>

namespace cudaq::realtime::test {
namespace {

struct holdings {
  std::size_t device_bytes = 0, pool_bytes = 0, files = 0, threads = 0;

  static std::size_t entries_in(const char *path) {
    std::size_t n = 0;
    if (DIR *directory = opendir(path)) {
      while (readdir(directory) != nullptr)
        ++n;
      closedir(directory);
    }
    return n;
  }
  /// Called while no kernel runs.
  static holdings now() {
    std::size_t free = 0, total = 0;
    std::uint64_t in_pool = 0;
    cudaMemPool_t pool = nullptr;
    CUDA_EXPECT_OK(cudaDeviceSynchronize());
    CUDA_EXPECT_OK(cudaDeviceGetDefaultMemPool(&pool, test_device()));
    CUDA_EXPECT_OK(cudaMemPoolTrimTo(pool, 0));
    CUDA_EXPECT_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &in_pool));
    CUDA_EXPECT_OK(cudaMemGetInfo(&free, &total));
    return {total - free, in_pool, entries_in("/proc/self/fd"), entries_in("/proc/self/task")};
  }
  void expect_no_more_than(const holdings &before) const {
    EXPECT_LE(device_bytes, before.device_bytes); // valid only while no other program uses the device
    EXPECT_LE(pool_bytes, before.pool_bytes);
    EXPECT_LE(files, before.files);
    // A joined thread may be in the list of the process for a moment.
    EXPECT_TRUE(eventually([&] { return entries_in("/proc/self/task") <= before.threads; }));
  }
};

class KernelLeak : public gpu_test, public ::testing::WithParamInterface<kernel_kind> {};

// Known failure 12.
TEST_P(KernelLeak, AThousandStartsAndStopsLeakNothing) {
  manager_handle manager;
  host_ring ring({3, 256, false}, CUDAQ_MEMORY_MAPPED);
  gpu_dispatcher dispatcher(manager.get, setup_of(GetParam(), ring));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(dispatcher.get, &dispatcher.options));
  gpu_client client(ring.ring, 3);
  holdings before;
  for (std::uint32_t cycle = 0; cycle < 1020; ++cycle) {
    if (cycle == 20)
      before = holdings::now();
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher.get));
    if (cycle % 10 == 0) {
      ASSERT_NO_FATAL_FAILURE(expect_serves(client, cycle));
    }
    CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(dispatcher.get));
  }
  holdings::now().expect_no_more_than(before);
  EXPECT_EQ(dispatcher.processed(), 102u);
}

TEST_P(KernelLeak, DispatchersMadeAnewLeakNothing) {
  manager_handle manager;
  host_ring ring({3, 256, false}, CUDAQ_MEMORY_MAPPED);
  holdings before;
  for (std::uint32_t cycle = 0; cycle < 120; ++cycle) {
    if (cycle == 20)
      before = holdings::now();
    gpu_dispatcher dispatcher(manager.get, setup_of(GetParam(), ring));
    ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
    gpu_client client(ring.ring, 3);
    ASSERT_NO_FATAL_FAILURE(expect_serves(client, cycle));
  }
  holdings::now().expect_no_more_than(before);
}

INSTANTIATE_TEST_SUITE_P(Kinds, KernelLeak, ::testing::ValuesIn(each_kind()), name_of_kind);

} // namespace
} // namespace cudaq::realtime::test

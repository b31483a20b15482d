// SPDX-License-Identifier: Apache-2.0
// A program that loads the library by dlopen and unloads it, a thousand times, and threads that outlive the library.
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "unittests/support/sanitized.h"

#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace cudaq::realtime::test {
namespace {

/// The library and the functions that the tests call; no symbol is bound at link time.
struct loaded_library {
  loaded_library() : handle(dlopen(CUDAQ_LIBRARY, RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr)
      ADD_FAILURE() << dlerror();
    bind(version, "cudaq_realtime_version");
    bind(last_error, "cudaq_last_error_message");
    bind(manager_create, "cudaq_dispatch_manager_create");
    bind(manager_destroy, "cudaq_dispatch_manager_destroy");
    bind(ring_init, "cudaq_ringbuffer_options_init");
    bind(ring_create, "cudaq_ringbuffer_create");
    bind(ring_destroy, "cudaq_ringbuffer_destroy");
  }
  void unload() { EXPECT_EQ(dlclose(handle), 0) << dlerror(); }

  /// Calls that succeed and calls that store an error text, also of the CUDA runtime in the library.
  void use() const {
    cudaq_dispatch_manager_t *manager = nullptr;
    EXPECT_EQ(manager_create(&manager), CUDAQ_OK);
    EXPECT_EQ(manager_destroy(manager), CUDAQ_OK);
    EXPECT_EQ(manager_destroy(nullptr), CUDAQ_ERR_INVALID_ARG);
    EXPECT_NE(std::strstr(last_error(), "is NULL"), nullptr) << last_error();
  }
  void use_rings() const {
    for (const std::uint32_t kind : {CUDAQ_MEMORY_HOST, CUDAQ_MEMORY_MAPPED}) {
      cudaq_ringbuffer_options_t options;
      EXPECT_EQ(ring_init(&options, sizeof(options)), CUDAQ_OK);
      options.num_slots = 4;
      options.slot_size = 64;
      options.memory_kind = kind;
      cudaq_ringbuffer_memory_t *memory = nullptr;
      cudaq_ringbuffer_t ring;
      if (ring_create(&options, &memory, &ring) == CUDAQ_OK) {
        EXPECT_EQ(ring_destroy(memory), CUDAQ_OK);
      } else { // there is no GPU
        EXPECT_EQ(kind, static_cast<std::uint32_t>(CUDAQ_MEMORY_MAPPED)) << last_error();
      }
    }
  }

  void *handle;
  decltype(&cudaq_realtime_version) version = nullptr;
  decltype(&cudaq_last_error_message) last_error = nullptr;
  decltype(&cudaq_dispatch_manager_create) manager_create = nullptr;
  decltype(&cudaq_dispatch_manager_destroy) manager_destroy = nullptr;
  decltype(&cudaq_ringbuffer_options_init) ring_init = nullptr;
  decltype(&cudaq_ringbuffer_create) ring_create = nullptr;
  decltype(&cudaq_ringbuffer_destroy) ring_destroy = nullptr;

private:
  template <class Function>
  void bind(Function &function, const char *name) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    EXPECT_NE(function, nullptr) << name;
  }
};

bool is_loaded() {
  void *const handle = dlopen(CUDAQ_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  if (handle != nullptr)
    dlclose(handle);
  return handle != nullptr;
}

std::size_t resident_pages() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident;
}

TEST(LoadAndUnload, AThousandTimesNeedsNoMoreMemory) {
#if defined(CUDAQ_TEST_EMULATED)
  constexpr bool keeps_memory = true; // an emulator keeps the code that it has translated
#else
  constexpr bool keeps_memory = kSanitized;
#endif
  const int times = keeps_memory ? 100 : 1000;
  std::size_t after_some = 0;
  for (int k = 0; k < times; ++k) {
    loaded_library library;
    library.use();
    if (k % 100 == 0)
      library.use_rings();
    library.unload();
    if (k == times / 10)
      after_some = resident_pages();
  }
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (!keeps_memory) {
    EXPECT_LT(resident_pages() * page, after_some * page + (std::size_t{1} << 20));
  }
}

TEST(LoadAndUnload, TheLibraryIsReallyUnloaded) {
  ASSERT_FALSE(is_loaded());
  loaded_library library;
  library.use();
  EXPECT_TRUE(is_loaded());
  library.unload();
  EXPECT_FALSE(is_loaded());
}

// The error text is thread-local. It has no destructor, so the end of a thread calls nothing in an unloaded library.
TEST(LoadAndUnload, AThreadWithAnErrorTextMayEndAfterTheLibraryIsUnloaded) {
  for (int k = 0; k < 20; ++k) {
    loaded_library library;
    std::promise<void> used, unloaded;
    std::thread user([&] {
      library.use();
      library.use_rings();
      used.set_value();
      unloaded.get_future().wait_for(std::chrono::seconds(20));
    });
    used.get_future().wait_for(std::chrono::seconds(20));
    library.unload();
    EXPECT_FALSE(is_loaded());
    unloaded.set_value();
    user.join();
  }
}

TEST(LoadAndUnload, ManyThreadsMayLoadAndUseItAtTheSameTime) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int k = 0; k < 50; ++k) {
        loaded_library library;
        library.use();
        library.unload();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace
} // namespace cudaq::realtime::test

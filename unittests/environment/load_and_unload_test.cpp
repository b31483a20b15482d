// SPDX-License-Identifier: Apache-2.0
// A program that loads the library by dlopen and unloads it, a thousand times, and threads that outlive the library.
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include "unittests/support/program_paths.h"
#include "unittests/support/sanitized.h"

#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kFunction = 5;

/// A v1 handler: answers with the payload, each byte plus one.
void add_one(const void *rx_slot, void *tx_slot, std::size_t) {
  cudaq_rpc_header_t request;
  std::memcpy(&request, rx_slot, sizeof(request));
  const cudaq_rpc_response_t response{CUDAQ_RPC_MAGIC_RESPONSE, 0, request.arg_len, 0, 0};
  std::memcpy(tx_slot, &response, sizeof(response));
  for (std::uint32_t i = 0; i < request.arg_len; ++i)
    static_cast<std::uint8_t *>(tx_slot)[sizeof(response) + i] =
        static_cast<std::uint8_t>(static_cast<const std::uint8_t *>(rx_slot)[sizeof(request) + i] + 1);
}

/// The library and the functions that the tests call; no symbol is bound at link time.
struct loaded_library {
  loaded_library() : handle(dlopen(CUDAQ_LIBRARY, RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr)
      ADD_FAILURE() << dlerror();
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

  /// A host dispatcher that starts, answers some requests, and stops. pool: handler threads; 0: its own thread.
  void serve(std::uint32_t pool) const {
    cudaq_ringbuffer_options_t ring_options;
    ASSERT_EQ(ring_init(&ring_options, sizeof(ring_options)), CUDAQ_OK);
    ring_options.num_slots = 4;
    ring_options.slot_size = 64;
    cudaq_ringbuffer_memory_t *memory = nullptr;
    cudaq_ringbuffer_t ring;
    ASSERT_EQ(ring_create(&ring_options, &memory, &ring), CUDAQ_OK) << last_error();
    cudaq_dispatcher_config_t config{};
    config.num_slots = 4;
    config.slot_size = 64;
    config.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
    config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
    cudaq_function_entry_t entry{};
    entry.function_id = kFunction;
    entry.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
    entry.handler.host_fn = add_one;
    const cudaq_function_table_t table{&entry, 1};
    volatile int shutdown = 0;
    std::uint64_t processed = 0;
    cudaq_dispatcher_options_t options;
    EXPECT_EQ(options_init(&options, sizeof(options)), CUDAQ_OK);
    options.wait_policy = CUDAQ_WAIT_SPIN_YIELD;
    options.handler_pool_size = pool;
    cudaq_dispatch_manager_t *manager = nullptr;
    cudaq_dispatcher_t *dispatcher = nullptr;
    EXPECT_EQ(manager_create(&manager), CUDAQ_OK);
    ASSERT_EQ(dispatcher_create(manager, &config, &dispatcher), CUDAQ_OK) << last_error();
    EXPECT_EQ(set_ring(dispatcher, &ring), CUDAQ_OK) << last_error();
    EXPECT_EQ(set_table(dispatcher, &table), CUDAQ_OK) << last_error();
    EXPECT_EQ(set_control(dispatcher, &shutdown, &processed), CUDAQ_OK) << last_error();
    EXPECT_EQ(set_options(dispatcher, &options), CUDAQ_OK) << last_error();
    ASSERT_EQ(start(dispatcher), CUDAQ_OK) << last_error();
    for (std::uint32_t n = 0; n < 6; ++n)
      call(ring, n % 4, n);
    EXPECT_EQ(stop(dispatcher), CUDAQ_OK) << last_error();
    EXPECT_EQ(processed, 6u);
    EXPECT_EQ(dispatcher_destroy(dispatcher), CUDAQ_OK);
    EXPECT_EQ(manager_destroy(manager), CUDAQ_OK);
    EXPECT_EQ(ring_destroy(memory), CUDAQ_OK);
  }
  void call(const cudaq_ringbuffer_t &ring, std::uint32_t slot, std::uint32_t id) const {
    const std::uint8_t payload[] = {1, 2, 3};
    EXPECT_EQ(write_request(&ring, slot, kFunction, payload, sizeof(payload), id, 0), CUDAQ_OK) << last_error();
    signal(&ring, slot);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (poll(&ring, slot, nullptr) != CUDAQ_TX_READY && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    ASSERT_EQ(read_response(&ring, slot, &header, &result), CUDAQ_OK) << last_error();
    EXPECT_EQ(header.status, 0);
    EXPECT_EQ(header.request_id, id);
    ASSERT_EQ(header.result_len, sizeof(payload));
    EXPECT_EQ(std::memcmp(result, "\2\3\4", sizeof(payload)), 0);
    clear(&ring, slot);
  }

  void *handle;
  const decltype(&cudaq_realtime_version) version = find("cudaq_realtime_version");
  const decltype(&cudaq_last_error_message) last_error = find("cudaq_last_error_message");
  const decltype(&cudaq_dispatch_manager_create) manager_create = find("cudaq_dispatch_manager_create");
  const decltype(&cudaq_dispatch_manager_destroy) manager_destroy = find("cudaq_dispatch_manager_destroy");
  const decltype(&cudaq_ringbuffer_options_init) ring_init = find("cudaq_ringbuffer_options_init");
  const decltype(&cudaq_ringbuffer_create) ring_create = find("cudaq_ringbuffer_create");
  const decltype(&cudaq_ringbuffer_destroy) ring_destroy = find("cudaq_ringbuffer_destroy");
  const decltype(&cudaq_dispatcher_create) dispatcher_create = find("cudaq_dispatcher_create");
  const decltype(&cudaq_dispatcher_destroy) dispatcher_destroy = find("cudaq_dispatcher_destroy");
  const decltype(&cudaq_dispatcher_set_ringbuffer) set_ring = find("cudaq_dispatcher_set_ringbuffer");
  const decltype(&cudaq_dispatcher_set_function_table) set_table = find("cudaq_dispatcher_set_function_table");
  const decltype(&cudaq_dispatcher_set_control) set_control = find("cudaq_dispatcher_set_control");
  const decltype(&cudaq_dispatcher_options_init) options_init = find("cudaq_dispatcher_options_init");
  const decltype(&cudaq_dispatcher_set_options) set_options = find("cudaq_dispatcher_set_options");
  const decltype(&cudaq_dispatcher_start) start = find("cudaq_dispatcher_start");
  const decltype(&cudaq_dispatcher_stop) stop = find("cudaq_dispatcher_stop");
  const decltype(&cudaq_host_ringbuffer_write_rpc_request) write_request =
      find("cudaq_host_ringbuffer_write_rpc_request");
  const decltype(&cudaq_host_ringbuffer_signal_slot) signal = find("cudaq_host_ringbuffer_signal_slot");
  const decltype(&cudaq_host_ringbuffer_poll_tx_flag) poll = find("cudaq_host_ringbuffer_poll_tx_flag");
  const decltype(&cudaq_host_ringbuffer_read_rpc_response) read_response =
      find("cudaq_host_ringbuffer_read_rpc_response");
  const decltype(&cudaq_host_ringbuffer_clear_slot) clear = find("cudaq_host_ringbuffer_clear_slot");

private:
  /// A function of the library, as the type that is wanted.
  struct found {
    template <class Function>
    operator Function() const { // NOLINT(google-explicit-constructor)
      return reinterpret_cast<Function>(address);
    }
    void *address;
  };
  found find(const char *name) const {
    void *const address = handle != nullptr ? dlsym(handle, name) : nullptr;
    EXPECT_NE(address, nullptr) << name;
    return {address};
  }
};

bool is_loaded() {
  void *const handle = dlopen(CUDAQ_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  if (handle != nullptr)
    dlclose(handle);
  return handle != nullptr;
}

std::size_t threads_of_process() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto &task : std::filesystem::directory_iterator("/proc/self/task"))
    ++n;
  return n;
}

std::size_t resident_pages() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident;
}

#if defined(CUDAQ_TEST_EMULATED)
constexpr bool kKeepsMemory = true; // an emulator keeps the code that it has translated
#else
constexpr bool kKeepsMemory = kSanitized;
#endif

/// At most 1 MB more. Sanitizers and emulators keep memory.
void expect_no_more_memory_than(std::size_t pages_before) {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (!kKeepsMemory) {
    EXPECT_LT(resident_pages() * page, pages_before * page + (std::size_t{1} << 20));
  }
}

TEST(LoadAndUnload, AThousandTimesNeedsNoMoreMemory) {
  const int times = kKeepsMemory ? 100 : 1000;
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
  expect_no_more_memory_than(after_some);
}

// Each round has a library of its own, whose threads have run and ended before it is unloaded.
TEST(LoadAndUnload, ADispatcherServesInEachLoadedLibrary) {
  const std::size_t threads_before = threads_of_process();
  const std::uint32_t rounds = kKeepsMemory ? 20 : 100;
  std::size_t after_some = 0;
  for (std::uint32_t k = 0; k < rounds; ++k) {
    loaded_library library;
    ASSERT_NO_FATAL_FAILURE(library.serve(k % 3));
    library.unload();
    ASSERT_FALSE(is_loaded());
    if (k == rounds / 10)
      after_some = resident_pages();
  }
  // A joined thread may be in the process's list for a moment.
  for (int tries = 0; threads_of_process() != threads_before && tries < 2000; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(threads_of_process(), threads_before);
  expect_no_more_memory_than(after_some);
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

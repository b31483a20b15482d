// SPDX-License-Identifier: Apache-2.0
// The library's threads neither allocate nor lock under traffic, and a start that runs out of memory leaves no thread
// and can be repeated. Both are tested by interposition of malloc and pthread_mutex_lock in this program.
#include "unittests/host_dispatcher/threads_of.h"
#include "unittests/support/counted_memory.h"

#include <mutex>

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  std::uint32_t pool;
  bool shared;
  bool in_place;
  std::uint32_t wait;
};

std::int32_t copy_or_throw(cudaq_host_call_t *call, void *) {
  std::memcpy(call->result, call->payload, call->payload_len);
  call->result_len = call->payload_len;
  return 0;
}

void v1_copy(const void *rx_slot, void *tx_slot, std::size_t) {
  cudaq_rpc_header_t request;
  std::memcpy(&request, rx_slot, sizeof(request));
  const cudaq_rpc_response_t response{CUDAQ_RPC_MAGIC_RESPONSE, 0, request.arg_len, 0, 0};
  std::memmove(static_cast<std::uint8_t *>(tx_slot) + 24, static_cast<const std::uint8_t *>(rx_slot) + 24,
               request.arg_len);
  std::memcpy(tx_slot, &response, sizeof(response));
}

class HotPath : public ::testing::TestWithParam<flavour> {
protected:
  void SetUp() override {
    if (kSanitized)
      GTEST_SKIP() << "sanitizers interpose the same functions";
    exempt = true;
  }
  std::unique_ptr<host_dispatcher_handle> make(const host_ring &ring) {
    const flavour &f = GetParam();
    cudaq_dispatcher_config_t config = host_config(ring.shape());
    config.shared_ring_mode = f.shared;
    auto made = std::make_unique<host_dispatcher_handle>(
        manager.get, ring, std::vector<cudaq_function_entry_t>{host_entry("v1", v1_copy)}, config);
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_host_handler_v2(made->get, 2, copy_or_throw, nullptr, nullptr));
    cudaq_dispatcher_options_t options = default_options();
    options.handler_pool_size = f.pool;
    options.wait_policy = f.wait;
    options.default_owner = f.shared;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(made->get, &options));
    return made;
  }
  manager_handle manager;
};

TEST_P(HotPath, CountersSeeWhatAThreadDoes) {
  counting.store(true);
  std::thread other([] {
    delete new std::vector<int>(10);
    std::mutex mutex;
    const std::lock_guard lock(mutex);
  });
  other.join();
  counting.store(false);
  EXPECT_GE(allocations.exchange(0), 4u);
  EXPECT_GE(locks.exchange(0), 1u);
}

TEST_P(HotPath, NeitherAllocatesNorLocks) {
  host_ring ring({8, 128, GetParam().in_place});
  const auto dispatcher = make(ring);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher->get));
  ring_client client(ring);
  const std::vector<std::uint8_t> payload{1, 2, 3};
  client.call(2, payload);
  counting.store(true);
  for (std::uint32_t id = 0; id < 5000; ++id) {
    if (id % 50 == 0)
      client.send(99, payload, id); // unknown function, dropped
    if (id % 1000 == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(2)); // gives the loop some idle turns
    client.call(id % 2 ? 2 : fnv1a_hash("v1"), payload, id);
  }
  counting.store(false);
  EXPECT_EQ(allocations.load(), 0u);
  EXPECT_EQ(locks.load(), 0u);
}

// Makes each allocation of start fail once, one allocation per start.
TEST_P(HotPath, OfAStartThatRunsOutOfMemoryCanBeStartedAgain) {
  host_ring ring({8, 128, GetParam().in_place});
  int failures = 0;
  for (int n = 0; n < 500; ++n) {
    const auto dispatcher = make(ring);
    fail_after = n;
    const cudaq_status_t first = cudaq_dispatcher_start(dispatcher->get);
    const bool all_succeeded = fail_after >= 0;
    fail_after = -1;
    if (!all_succeeded && first != CUDAQ_OK) {
      ++failures;
      EXPECT_EQ(first, CUDAQ_ERR_INTERNAL);
      ASSERT_TRUE(soon_without_threads_named("cudaq-")) << "allocation " << n << " left a thread running";
      ASSERT_EQ(cudaq_dispatcher_start(dispatcher->get), CUDAQ_OK)
          << "allocation " << n << ": " << cudaq_last_error_message();
    }
    ring_client client(ring);
    client.set_next_slot(0);
    EXPECT_EQ(client.call(2, {7}, 5).header.request_id, 5u);
    if (all_succeeded)
      break;
  }
  EXPECT_GT(failures, 0);
}

INSTANTIATE_TEST_SUITE_P(Flavours, HotPath,
                         ::testing::Values(flavour{"Inline", 0, false, false, CUDAQ_WAIT_SPIN_YIELD},
                                           flavour{"InlineInPlaceBlock", 0, false, true, CUDAQ_WAIT_BLOCK},
                                           flavour{"Pool", 2, false, false, CUDAQ_WAIT_SPIN_YIELD},
                                           flavour{"Shared", 0, true, true, CUDAQ_WAIT_SPIN_YIELD},
                                           flavour{"SharedPool", 2, true, false, CUDAQ_WAIT_SPIN_YIELD}),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test

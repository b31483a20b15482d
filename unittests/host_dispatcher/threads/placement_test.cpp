// SPDX-License-Identifier: Apache-2.0
// On which cores the library's threads run, and what start does if the system refuses a placement.
#include "unittests/host_dispatcher/threads_of.h"

namespace cudaq::realtime::test {
namespace {

class Placement : public ::testing::Test {
protected:
  Placement() { options = default_options(); }
  cudaq_status_t start() {
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(dispatcher.get, &options));
    return cudaq_dispatcher_start(dispatcher.get);
  }
  void expect_service() {
    EXPECT_EQ(client.call(fnv1a_hash("reverse"), {1, 2}, 3).result, (std::vector<std::uint8_t>{2, 1}));
  }
  static void expect_no_thread() { EXPECT_TRUE(soon_without_threads_named("cudaq-")); }
  void expect_refused(const char *field) {
    EXPECT_NE(start(), CUDAQ_OK);
    EXPECT_NE(std::strstr(cudaq_last_error_message(), field), nullptr) << cudaq_last_error_message();
    expect_no_thread();
    options = default_options();
    CUDAQ_EXPECT_OK(start());
    expect_service();
  }

  host_ring ring;
  manager_handle manager;
  host_dispatcher_handle dispatcher{
      manager.get, ring, {host_entry("reverse", reverse_handler)}, host_config(ring.shape())};
  ring_client client{ring};
  cudaq_dispatcher_options_t options;
};

// Known failure 29.
TEST_F(Placement, PutsDispatcherAndPoolOnTheirCores) {
  const std::vector<int> allowed = cores_of(0);
  int base = -1; // two neighbouring cores for the pool
  for (std::size_t c = 0; c + 1 < allowed.size() && base < 0; ++c)
    base = allowed[c + 1] == allowed[c] + 1 ? allowed[c] : -1;
  options.dispatcher_core = allowed.back();
  options.handler_core_base = base < 0 ? allowed[0] : base;
  options.handler_pool_size = base < 0 ? 1 : 2;
  CUDAQ_ASSERT_OK(start());
  expect_service();
  const std::vector<thread_seen> loop = threads_named("cudaq-dispatch"), pool = threads_named("cudaq-pool-");
  ASSERT_EQ(loop.size(), 1u);
  EXPECT_EQ(cores_of(loop[0].tid), std::vector<int>{options.dispatcher_core});
  ASSERT_EQ(pool.size(), options.handler_pool_size);
  for (const thread_seen &t : pool)
    EXPECT_EQ(cores_of(t.tid), std::vector<int>{options.handler_core_base + std::atoi(t.name.c_str() + 11)}) << t.name;
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(dispatcher.get));
  expect_no_thread();
  EXPECT_EQ(cores_of(0), allowed) << "the caller's cores must not change";
}

TEST_F(Placement, RefusesACoreThatDoesNotExist) {
  options.dispatcher_core = 1000;
  expect_refused("1000");
}

TEST_F(Placement, RefusesACoreBeyondTheKernelsNumbers) {
  options.dispatcher_core = 1 << 30;
  expect_refused("core");
}

// Thread 0 of the pool gets its core, but thread 1 does not.
TEST_F(Placement, RefusesAPoolThatFitsOnlyInPart) {
  const std::vector<int> allowed = cores_of(0);
  options.handler_core_base = allowed.back();
  options.handler_pool_size = 64;
  expect_refused("core");
}

TEST_F(Placement, RefusesADispatcherCoreWhenThePoolAlreadyRuns) {
  options.handler_pool_size = 3;
  options.dispatcher_core = 1000;
  expect_refused("1000");
}

TEST_F(Placement, RefusesANodeThatDoesNotExist) {
  options.numa_node = 999;
  expect_refused("numa_node");
}

TEST_F(Placement, AppliesTheRealtimePriorityOrSaysWhyNot) {
  options.realtime_priority = 5;
  if (start() != CUDAQ_OK) {
    EXPECT_NE(std::strstr(cudaq_last_error_message(), "realtime_priority 5"), nullptr) << cudaq_last_error_message();
    expect_no_thread();
    options.realtime_priority = 0;
    CUDAQ_EXPECT_OK(start());
    expect_service();
    return;
  }
  const std::vector<thread_seen> loop = threads_named("cudaq-dispatch");
  ASSERT_EQ(loop.size(), 1u);
  sched_param param{};
  EXPECT_EQ(sched_getscheduler(loop[0].tid), SCHED_FIFO);
  sched_getparam(loop[0].tid, &param);
  EXPECT_EQ(param.sched_priority, 5);
  expect_service();
}

// A loop on the caller's thread that cannot apply a placement must return an error instead of ignoring the option.
TEST_F(Placement, OfALoopOnTheCallersThreadIsNotIgnored) {
  volatile int shutdown = 1; // a loop that starts ends immediately
  std::uint64_t processed = 0;
  const cudaq_dispatcher_config_t config = host_config(ring.shape());
  cudaq_function_entry_t entry = host_entry("reverse", reverse_handler);
  const cudaq_function_table_t table{&entry, 1};
  options.dispatcher_core = 1000;
  EXPECT_NE(cudaq_host_dispatcher_loop(&config, &ring.ring, &table, nullptr, 0, &options, &shutdown, &processed),
            CUDAQ_OK);
  options.dispatcher_core = CUDAQ_CORE_ANY;
  options.handler_pool_size = 1;
  options.handler_core_base = 1000;
  EXPECT_NE(cudaq_host_dispatcher_loop(&config, &ring.ring, &table, nullptr, 0, &options, &shutdown, &processed),
            CUDAQ_OK);
  expect_no_thread();
}

} // namespace
} // namespace cudaq::realtime::test

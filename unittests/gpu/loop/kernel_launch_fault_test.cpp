// SPDX-License-Identifier: Apache-2.0
// Launches that fail and handlers that fault. After a fault the process cannot use the device any more: one process per
// test.
#include "unittests/gpu/support/gpu_dispatcher.h"

namespace cudaq::realtime::test {
namespace {

class LaunchFault : public gpu_test {
protected:
  manager_handle manager_;
};

// Known failure 22.
TEST_F(LaunchFault, FailedLaunchIsAnErrorOfStart) {
  host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  gpu_dispatcher dispatcher(manager_.get, setup_of(kFifo32, ring));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_launch_fn(dispatcher.get, launch_too_many_threads));
  const call_result started = dispatcher.start();
  EXPECT_EQ(started.status, CUDAQ_ERR_CUDA) << started.text;
  EXPECT_NE(started.text, "");
  EXPECT_EQ(dispatcher.processed(), 0u);
  // The failed start changed nothing: with a working launch function the dispatcher starts.
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_launch_fn(dispatcher.get, cudaq_launch_dispatch_kernel_regular));
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  gpu_client client(ring.ring, 4);
  expect_serves(client, 1);
}

TEST_F(LaunchFault, LaunchFunctionThatLaunchesNothingIsAnError) {
  host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  gpu_dispatcher dispatcher(manager_.get, setup_of(kFifo32, ring));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_launch_fn(dispatcher.get, launch_nothing));
  const call_result started = dispatcher.start();
  EXPECT_NE(started.status, CUDAQ_OK);
  EXPECT_NE(started.text, "");
}

TEST_F(LaunchFault, ProgramWithoutDeviceHooksLinksAndStartNamesWhatIsMissing) {
  const host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  const device_array<std::uint64_t> context(1);
  gpu_setup setup = setup_of(kUnified, ring);
  setup.transport_ctx = context.get;
  gpu_dispatcher dispatcher(manager_.get, setup);
  const call_result started = dispatcher.start();
  EXPECT_EQ(started.status, CUDAQ_ERR_INTERNAL);
  EXPECT_NE(started.text.find("linked without device hooks"), std::string::npos) << started.text;
}

TEST_F(LaunchFault, ErrorOfALaunchFunctionIsPassedOn) {
  host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  gpu_dispatcher dispatcher(manager_.get, setup_of(kFifo32, ring));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_launch_fn_v2(dispatcher.get, launch_refused));
  const call_result started = dispatcher.start();
  EXPECT_EQ(started.status, CUDAQ_ERR_CUDA);
  EXPECT_NE(started.text.find("cudaErrorInvalidConfiguration"), std::string::npos) << started.text;
}

TEST_F(LaunchFault, LaunchFunctionsOfTheNewFormServe) {
  for (const kernel_kind &kind : {kFifo32, kCooperative4x64}) {
    host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
    gpu_dispatcher dispatcher(manager_.get, setup_of(kind, ring));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_launch_fn_v2(dispatcher.get, kind.cooperative()
                                                                          ? cudaq_launch_dispatch_kernel_cooperative_v2
                                                                          : cudaq_launch_dispatch_kernel_regular_v2));
    ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
    gpu_client client(ring.ring, 4);
    for (std::uint32_t id = 0; id < 10; ++id)
      ASSERT_NO_FATAL_FAILURE(expect_serves(client, id, id * 20));
    EXPECT_TRUE(eventually([&] { return dispatcher.stats().responded == 10; }));
  }
}

// A user's own kernel, of which the library has no code. start verifies that it runs, and stop ends it.
TEST_F(LaunchFault, OwnKernelOfAUserStartsAndStops) {
  host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  gpu_dispatcher dispatcher(manager_.get, setup_of(kFifo32, ring));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_launch_fn(dispatcher.get, launch_own_kernel));
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  EXPECT_EQ(dispatcher.state(), CUDAQ_DISPATCHER_RUNNING);
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatcher.get));
  EXPECT_EQ(dispatcher.state(), CUDAQ_DISPATCHER_STOPPED);
}

TEST_F(LaunchFault, NothingStartsWithABadTable) {
  host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  gpu_setup setup = setup_of(kFifo32, ring);
  const std::vector<cudaq_function_entry_t> good = all_handlers(kFifo32);
  {
    setup.entries = good;
    setup.entries.push_back(good[0]);
    gpu_dispatcher dispatcher(manager_.get, setup);
    EXPECT_EQ(dispatcher.start().status, CUDAQ_ERR_INVALID_ARG) << "two entries for one function";
  }
  {
    setup.entries = good;
    setup.entries[1].handler.device_fn_ptr = nullptr;
    gpu_dispatcher dispatcher(manager_.get, setup);
    EXPECT_EQ(dispatcher.start().status, CUDAQ_ERR_INVALID_ARG) << "no handler";
  }
  {
    setup.entries = good;
    gpu_dispatcher dispatcher(manager_.get, setup);
    EXPECT_EQ(cudaq_dispatcher_set_launch_fn(dispatcher.get, nullptr), CUDAQ_ERR_INVALID_ARG);
    EXPECT_EQ(cudaq_dispatcher_set_launch_fn_v2(dispatcher.get, nullptr), CUDAQ_ERR_INVALID_ARG);
    ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start()); // the launch function that was set before is still in use
  }
}

class HandlerFault : public gpu_test, public ::testing::WithParamInterface<kernel_kind> {};

// After a fault each call returns soon and reports the fault. Nothing is freed, because the device cannot be used any
// more.
// Known failure 9.
TEST_P(HandlerFault, TrapIsReportedAndNothingHangs) {
  cudaq_dispatch_manager_t *manager = nullptr;
  CUDAQ_ASSERT_OK(cudaq_dispatch_manager_create(&manager));
  auto *ring = new host_ring({4, 256, false}, CUDAQ_MEMORY_MAPPED); // never freed
  gpu_client client(ring->ring, 4);
  {
    gpu_dispatcher dispatcher(manager, setup_of(GetParam(), *ring));
    dispatcher.fault_expected = true;
    ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
    ASSERT_NO_FATAL_FAILURE(expect_serves(client, 1));
    client.send(id_of(handler::trap), some_bytes(4, 1), 2);
    EXPECT_TRUE(eventually([&] { return dispatcher.state() == CUDAQ_DISPATCHER_FAILED; }, kOneSecond));
    EXPECT_NE(dispatcher.dump().find("cudaError"), std::string::npos) << dispatcher.dump();
    const call_result stopped = CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatcher.get));
    EXPECT_EQ(stopped.status, CUDAQ_ERR_CUDA);
    EXPECT_NE(stopped.text.find("cudaError"), std::string::npos) << stopped.text;
    EXPECT_NE(CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatcher_start(dispatcher.get)).status, CUDAQ_OK);
    std::uint64_t processed = 0;
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_get_processed(dispatcher.get, &processed));
    EXPECT_EQ(processed, 1u);
    dispatcher.end_observation();
    const auto begin = std::chrono::steady_clock::now();
    (void)CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatcher_destroy(dispatcher.get));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kOneSecond);
    dispatcher.get = nullptr; // destroyed, or leaked because of the fault
  }
  (void)CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatch_manager_destroy(manager));
}

INSTANTIATE_TEST_SUITE_P(Kinds, HandlerFault, ::testing::ValuesIn(each_kind()), name_of_kind);

} // namespace
} // namespace cudaq::realtime::test

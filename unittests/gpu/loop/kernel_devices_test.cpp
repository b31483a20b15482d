// SPDX-License-Identifier: Apache-2.0
// A dispatcher uses the GPU of its configuration and does not change the caller's current device.
#include "unittests/gpu/support/gpu_dispatcher.h"

namespace cudaq::realtime::test {
namespace {

/// Creates, uses and destroys a dispatcher on `device` while `current` is the caller's current device. No call may
/// change the current device.
void live_on(int device, int current, const kernel_kind &kind) {
  const current_device caller(current);
  manager_handle manager;
  host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED, device);
  EXPECT_EQ(device_now(), current);
  gpu_setup setup = setup_of(kind, ring);
  setup.device_id = device;
  auto dispatcher = std::make_unique<gpu_dispatcher>(manager.get, setup);
  EXPECT_EQ(device_now(), current);
  // Starts on this thread, because the test checks the current device of this thread.
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(dispatcher->get, &dispatcher->options));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher->get));
  EXPECT_EQ(device_now(), current);
  gpu_client client(ring.ring, 4);
  for (std::uint32_t id = 0; id < 100; ++id)
    ASSERT_NO_FATAL_FAILURE(expect_serves(client, id));
  EXPECT_EQ(dispatcher->state(), CUDAQ_DISPATCHER_RUNNING);
  EXPECT_TRUE(eventually([&] { return dispatcher->stats().dispatched == 100; })) << dispatcher->stats().dispatched;
  EXPECT_EQ(device_now(), current);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(dispatcher->get));
  EXPECT_EQ(device_now(), current);
  if (!kind.unified()) { // a start that fails
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_launch_fn(dispatcher->get, launch_nothing));
    EXPECT_NE(cudaq_dispatcher_start(dispatcher->get), CUDAQ_OK);
    EXPECT_EQ(device_now(), current);
  }
  dispatcher->end_observation();
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(dispatcher->get));
  EXPECT_EQ(device_now(), current);
  dispatcher->get = nullptr;
}

class KernelDevices : public gpu_test, public ::testing::WithParamInterface<kernel_kind> {};
// Known failure 10.
TEST_P(KernelDevices, CallersDeviceStays) { live_on(test_device(), test_device(), GetParam()); }
TEST_P(KernelDevices, DeviceThatIsNotThereIsRefused) {
  manager_handle manager;
  host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  gpu_setup setup = setup_of(GetParam(), ring);
  setup.wrong_device_id = 4711;
  gpu_dispatcher dispatcher(manager.get, setup);
  const call_result started = dispatcher.start();
  EXPECT_NE(started.status, CUDAQ_OK);
  EXPECT_NE(started.text, "");
  EXPECT_EQ(device_now(), test_device());
}
INSTANTIATE_TEST_SUITE_P(Kinds, KernelDevices, ::testing::ValuesIn(each_kind()), name_of_kind);

class TwoDevices : public gpu_test, public ::testing::WithParamInterface<kernel_kind> {
protected:
  TwoDevices() : gpu_test(2) {}
};
// Known failure 10.
TEST_P(TwoDevices, CallersDeviceStaysWhileAnotherOneWorks) {
  live_on(1, 0, GetParam());
  live_on(0, 1, GetParam());
}
TEST_P(TwoDevices, DispatchersOfBothServeAtOnce) {
  manager_handle manager;
  host_ring ring0({4, 256, false}, CUDAQ_MEMORY_MAPPED, 0), ring1({4, 256, false}, CUDAQ_MEMORY_MAPPED, 1);
  gpu_setup setup0 = setup_of(GetParam(), ring0), setup1 = setup_of(GetParam(), ring1);
  setup0.device_id = 0;
  setup1.device_id = 1;
  gpu_dispatcher first(manager.get, setup0), second(manager.get, setup1);
  ASSERT_NO_FATAL_FAILURE(first.expect_start());
  ASSERT_NO_FATAL_FAILURE(second.expect_start());
  gpu_client client0(ring0.ring, 4), client1(ring1.ring, 4);
  for (std::uint32_t id = 0; id < 500; ++id) {
    const std::vector<std::uint8_t> a = some_bytes(33, id), b = some_bytes(34, id);
    const std::uint32_t slot0 = client0.send(id_of(handler::reverse), a, id);
    const std::uint32_t slot1 = client1.send(id_of(handler::reverse), b, id);
    ASSERT_NO_FATAL_FAILURE(expect_reversed(client0.collect(slot0), a, id));
    ASSERT_NO_FATAL_FAILURE(expect_reversed(client1.collect(slot1), b, id));
  }
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(first.get));
  ASSERT_NO_FATAL_FAILURE(expect_serves(client1, 1)); // the stop ended the other dispatcher only
  EXPECT_EQ(device_now(), test_device());
}
INSTANTIATE_TEST_SUITE_P(Kinds, TwoDevices, ::testing::ValuesIn(each_kind()), name_of_kind);

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Schedulers with one stream each. This test has its own process because the driver reads the number of hardware queues
// only once.
#include "unittests/gpu/graphs/device_graph_rig.h"

namespace cudaq::realtime::test {
namespace {

[[maybe_unused]] const int kQueues =
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); // each stream holds a kernel that does not end

class DeviceGraphStreams : public device_graph_test {};

TEST_F(DeviceGraphStreams, EachSchedulerMayHaveItsOwn) {
  scheduler_options o;
  o.own_streams = true;
  run_mixed({8, 256, false}, {graph_of(100), graph_of(101), call_of(1)}, 5000, 8, o);
}

} // namespace
} // namespace cudaq::realtime::test

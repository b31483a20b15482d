// SPDX-License-Identifier: Apache-2.0
// Graph schedulers on two devices at the same time. For graph workers of the host dispatcher, kernels and pipelines see
// CUDAQ_TEST_DEVICE in docs/testing.md: with it all tests run on another device than 0.
#include "unittests/gpu/graphs/device_graph_dispatcher.h"

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kMessages = 3000;
std::uint32_t by_turns(std::uint32_t m) { return m % 3; }

/// A ring, graphs and a dispatcher on one device, made and freed while it is current.
struct on_one_device {
  explicit on_one_device(int which) : device(which) {
    const current_device here(which);
    ring = std::make_unique<host_ring>(ring_shape{16, 256, false}, CUDAQ_MEMORY_MAPPED, which);
    graphs = std::make_unique<graph_set>(std::vector{graph_of(100, 1), graph_of(100, 2), call_of(1)}, 256, kMessages);
    dispatcher = std::make_unique<graph_dispatcher>(manager.get, *ring, *graphs);
    load = std::make_unique<graph_traffic>(*ring, *graphs);
  }
  ~on_one_device() {
    const current_device here(device);
    load.reset();
    dispatcher.reset();
    graphs.reset();
    ring.reset();
  }

  const int device;
  manager_handle manager;
  std::unique_ptr<host_ring> ring;
  std::unique_ptr<graph_set> graphs;
  std::unique_ptr<graph_dispatcher> dispatcher;
  std::unique_ptr<graph_traffic> load;
};

class TwoDeviceGraphs : public device_graph_test {
protected:
  TwoDeviceGraphs() : device_graph_test(2) {}
};

// Known failure 10.
TEST_F(TwoDeviceGraphs, SchedulersOfBothServeAtOnce) {
  on_one_device first(0), second(1);
  ASSERT_NO_FATAL_FAILURE(first.dispatcher->expect_start());
  ASSERT_NO_FATAL_FAILURE(second.dispatcher->expect_start());
  EXPECT_EQ(device_now(), test_device());
  std::thread other([&] { second.load->run(kMessages, 16, by_turns); });
  first.load->run(kMessages, 16, by_turns);
  other.join();
  for (const on_one_device *d : {&first, &second}) {
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(d->dispatcher->get));
    const current_device here(d->device);
    d->load->expect_clean();
    EXPECT_EQ(d->dispatcher->stats().responded, kMessages);
  }
  EXPECT_EQ(device_now(), test_device());
}

} // namespace
} // namespace cudaq::realtime::test

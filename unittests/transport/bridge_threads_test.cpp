// SPDX-License-Identifier: Apache-2.0
// Many handles at a time, and many threads on one handle.
#include "unittests/transport/bridge_fixture.h"

#include <random>

namespace cudaq::realtime::test {
namespace {

TEST(BridgeThreads, DifferentHandlesLiveAtTheSameTime) {
  constexpr int kThreads = 8, kInstances = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < kInstances; ++i) {
        double_bridge b({}, "double_v" + std::to_string(1 + (t + i) % 3));
        CUDAQ_EXPECT_OK(cudaq_bridge_connect(b.handle));
        CUDAQ_EXPECT_OK(cudaq_bridge_launch(b.handle));
        CUDAQ_EXPECT_OK(cudaq_bridge_disconnect(b.handle));
        b.destroy();
        EXPECT_EQ(b.script.logged(), "create connect launch disconnect destroy");
      }
    });
  for (std::thread &t : threads)
    t.join();
}

TEST(BridgeThreads, ProviderThatWaitsHoldsUpNoOtherHandle) {
  double_script held;
  held.does = {{"create", act::hold}};
  cudaq_realtime_bridge_handle_t held_handle = nullptr;
  std::thread creator([&] { CUDAQ_EXPECT_OK(create_double(held_handle, held)); });
  EXPECT_TRUE(eventually([&] { return held.inside.load() == 1; }));
  double_bridge launching({{"launch", act::hold}});
  CUDAQ_ASSERT_OK(cudaq_bridge_connect(launching.handle));
  std::thread launcher([&] { CUDAQ_EXPECT_OK(cudaq_bridge_launch(launching.handle)); });
  double_bridge connecting({{"connect", act::hold}});
  EXPECT_EQ(cudaq_bridge_connect_timeout(connecting.handle, 0), CUDAQ_ERR_TIMEOUT);

  double_bridge free; // of the same library
  ASSERT_NO_FATAL_FAILURE(bring_to(free, "disconnected"));
  free.destroy();

  held.released = launching.script.released = connecting.script.released = true;
  creator.join();
  launcher.join();
  CUDAQ_EXPECT_OK(cudaq_bridge_destroy(held_handle));
}

TEST(BridgeThreads, RandomCallsOfManyThreadsOnOneHandleAreOrderedOrRefused) {
  for (unsigned round = 0; round < 30; ++round) {
    double_bridge b({{"connect", round % 2 == 0 ? act::succeed : act::wait_for_disconnect}});
    std::vector<std::thread> threads;
    std::atomic<bool> destroyed{false};
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(100 * round + t);
        for (int i = 0; i < 40; ++i) {
          const bridge_call &c = all_calls()[random() % all_calls().size()];
          const bool destroys = c.name == std::string("destroy");
          const cudaq_status_t status = c.call(b.handle);
          if (destroys && status == CUDAQ_OK)
            EXPECT_FALSE(destroyed.exchange(true)) << "two threads have destroyed it";
          else if (status == CUDAQ_ERR_TIMEOUT)
            EXPECT_STREQ(c.name, "connect");
          else if (status == CUDAQ_ERR_INVALID_ARG)
            EXPECT_TRUE(destroyed || error_names({"destroy"}));
          else
            EXPECT_TRUE(status == CUDAQ_OK || status == CUDAQ_ERR_STATE) << status << cudaq_last_error_message();
        }
      });
    for (std::thread &t : threads)
      t.join();
    EXPECT_EQ(b.script.overlaps.load(), 0) << b.script.logged();
    if (destroyed)
      b.handle = nullptr;
  }
}

} // namespace
} // namespace cudaq::realtime::test

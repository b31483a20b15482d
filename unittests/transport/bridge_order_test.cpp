// SPDX-License-Identifier: Apache-2.0
// Which call is allowed in which state, and the state after a refusal and after a failure.
#include "unittests/transport/bridge_fixture.h"

#include <random>

namespace cudaq::realtime::test {
namespace {

struct row {
  const char *state;
  std::vector<std::string> allowed;
};
const row kRows[] = {
    {"created",
     {"connect", "disconnect", "destroy", "get_transport_context", "get_cpu_dataplane", "get_endpoint_info",
      "get_ring_geometry", "set_function_table"}},
    {"connecting", {"connect", "disconnect"}},
    {"connected",
     {"launch", "disconnect", "destroy", "get_transport_context", "get_cpu_dataplane", "get_endpoint_info",
      "get_ring_geometry", "set_function_table"}},
    {"launched",
     {"disconnect", "destroy", "get_transport_context", "get_cpu_dataplane", "get_endpoint_info", "get_ring_geometry"}},
    {"disconnected",
     {"disconnect", "destroy", "get_transport_context", "get_cpu_dataplane", "get_endpoint_info", "get_ring_geometry"}},
};

TEST(BridgeOrder, EachStateAllowsTheCallsOfTheTable) {
  for (const row &r : kRows)
    for (const bridge_call &c : all_calls()) {
      SCOPED_TRACE(std::string(r.state) + " " + c.name);
      double_bridge b;
      ASSERT_NO_FATAL_FAILURE(bring_to(b, r.state));
      const std::string before = b.script.logged();
      const cudaq_status_t status = c.call(b.handle);
      if (std::find(r.allowed.begin(), r.allowed.end(), c.name) == r.allowed.end()) {
        EXPECT_EQ(status, CUDAQ_ERR_STATE);
        EXPECT_TRUE(error_names({std::string("the state is ") + r.state,
                                 "allowed: ", "the order is create, connect, launch, disconnect, destroy"}));
        EXPECT_EQ(b.script.logged(), before) << "the provider was called";
      } else if (std::string(r.state) == "connecting" && std::string(c.name) == "connect") {
        EXPECT_EQ(status, CUDAQ_ERR_TIMEOUT);
      } else {
        EXPECT_EQ(status, CUDAQ_OK) << cudaq_last_error_message();
        if (std::string(c.name) == "destroy")
          b.handle = nullptr;
      }
    }
}

TEST(BridgeOrder, UnknownAndDestroyedHandlesAreRefusedByEachCall) {
  double_bridge b;
  const cudaq_realtime_bridge_handle_t destroyed = b.handle;
  b.destroy();
  char anything;
  for (const cudaq_realtime_bridge_handle_t handle :
       {destroyed, static_cast<void *>(nullptr), static_cast<void *>(&anything)})
    for (const bridge_call &c : all_calls()) {
      EXPECT_EQ(c.call(handle), CUDAQ_ERR_INVALID_ARG) << c.name;
      EXPECT_TRUE(
          error_names({std::string("cudaq_bridge_") + c.name, handle == nullptr ? "handle is NULL" : "handle is 0x"}));
    }
  double_bridge next;
  EXPECT_NE(next.handle, destroyed) << "a handle is used once";
}

TEST(BridgeOrder, DisconnectBeforeConnectRefusesAConnectThatComesLater) {
  double_bridge b;
  CUDAQ_EXPECT_OK(cudaq_bridge_disconnect(b.handle));
  EXPECT_EQ(cudaq_bridge_connect(b.handle), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"the state is disconnected"}));
  b.destroy();
  EXPECT_EQ(b.script.logged(), "create destroy") << "a provider that was not connected is not disconnected";
}

TEST(BridgeOrder, DestroyDisconnectsFirst) {
  for (const char *state : {"connected", "launched"}) {
    double_bridge b;
    ASSERT_NO_FATAL_FAILURE(bring_to(b, state));
    b.destroy();
    EXPECT_TRUE(b.script.logged().ends_with(" disconnect destroy")) << b.script.logged();
  }
}

TEST(BridgeOrder, DisconnectIsCalledOnce) {
  double_bridge b;
  ASSERT_NO_FATAL_FAILURE(bring_to(b, "launched"));
  CUDAQ_EXPECT_OK(cudaq_bridge_disconnect(b.handle));
  CUDAQ_EXPECT_OK(cudaq_bridge_disconnect(b.handle));
  b.destroy();
  EXPECT_EQ(b.script.logged(), "create connect launch disconnect destroy");
}

TEST(BridgeOrder, FailedLaunchMayBeRepeated) {
  double_bridge b({{"launch", act::fail_once}});
  CUDAQ_ASSERT_OK(cudaq_bridge_connect(b.handle));
  EXPECT_EQ(cudaq_bridge_launch(b.handle), CUDAQ_ERR_CUDA);
  EXPECT_TRUE(error_names({"cudaq_bridge_launch", "the double fails in launch"}));
  CUDAQ_EXPECT_OK(cudaq_bridge_launch(b.handle));
}

TEST(BridgeOrder, FailedDisconnectMayBeRepeated) {
  double_bridge b({{"disconnect", act::fail_once}});
  ASSERT_NO_FATAL_FAILURE(bring_to(b, "launched"));
  EXPECT_EQ(cudaq_bridge_disconnect(b.handle), CUDAQ_ERR_CUDA);
  EXPECT_EQ(cudaq_bridge_launch(b.handle), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"the state is launched"}));
  CUDAQ_EXPECT_OK(cudaq_bridge_disconnect(b.handle));
  b.destroy();
  EXPECT_EQ(b.script.logged(), "create connect launch disconnect disconnect destroy");
}

TEST(BridgeOrder, DisconnectThatAlwaysFailsDoesNotKeepTheHandle) {
  double_bridge b({{"disconnect", act::fail}});
  ASSERT_NO_FATAL_FAILURE(bring_to(b, "launched"));
  EXPECT_EQ(cudaq_bridge_destroy(b.handle), CUDAQ_ERR_CUDA);
  EXPECT_TRUE(error_names({"cudaq_bridge_destroy", "the double fails in disconnect"}));
  b.destroy();
  EXPECT_EQ(b.script.logged(), "create connect launch disconnect destroy");
}

TEST(BridgeOrder, FailedDestroyKeepsTheHandle) {
  for (const act does : {act::fail_once, act::throw_error, act::bad_status}) {
    double_bridge b({{"destroy", does}});
    EXPECT_EQ(cudaq_bridge_destroy(b.handle), does == act::fail_once ? CUDAQ_ERR_CUDA : CUDAQ_ERR_INTERNAL);
    std::uint32_t slots = 0, size = 0;
    CUDAQ_EXPECT_OK(cudaq_bridge_get_ring_geometry(b.handle, &slots, &size));
    b.script.does["destroy"] = act::succeed;
    b.destroy();
  }
}

TEST(BridgeOrder, ExceptionsAndForeignStatusesOfEachEntryBecomeAStatusAndAText) {
  for (const bridge_call &c : all_calls())
    for (const act does : {act::throw_error, act::throw_int, act::bad_status, act::negative_status}) {
      SCOPED_TRACE(c.name);
      double_bridge b({{c.name, does}});
      const std::string name = c.name;
      if (name == "launch" || name == "disconnect") {
        CUDAQ_ASSERT_OK(cudaq_bridge_connect(b.handle));
      }
      const auto returned = [&] { // connect may not return within its time-out on a busy machine
        cudaq_status_t status = c.call(b.handle);
        while (status == CUDAQ_ERR_TIMEOUT)
          status = c.call(b.handle);
        return status;
      };
      EXPECT_EQ(returned(), CUDAQ_ERR_INTERNAL);
      EXPECT_TRUE(error_names({"cudaq_bridge_" + name, "provider", name}));
      EXPECT_TRUE(error_names({does == act::throw_error ? "the double threw"
                               : does == act::throw_int ? "not a std::exception"
                                                        : "no cudaq_status_t"}));
      b.script.does.clear();
    }
}

TEST(BridgeOrder, SecondCallOfAHandleIsRefusedWhileOneRuns) {
  double_bridge b({{"launch", act::hold}});
  CUDAQ_ASSERT_OK(cudaq_bridge_connect(b.handle));
  std::thread launcher([&] { CUDAQ_EXPECT_OK(cudaq_bridge_launch(b.handle)); });
  EXPECT_TRUE(eventually([&] { return b.script.logged().ends_with("launch"); }));
  for (const bridge_call &c : all_calls()) {
    EXPECT_EQ(c.call(b.handle), CUDAQ_ERR_STATE) << c.name;
    EXPECT_TRUE(error_names({"launch runs on another thread"}));
  }
  b.script.released = true;
  launcher.join();
}

// Many handles at a time, and many threads on one handle.

TEST(BridgeThreads, DifferentHandlesOfEachVersionLiveAtTheSameTime) {
  constexpr int kThreads = 8, kInstances = 50;
  static constexpr const char *names[] = {"double_v1", "double_v2", "double_v3", "double_bare"};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < kInstances; ++i) {
        double_bridge b({}, names[(t + i) % 4]);
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

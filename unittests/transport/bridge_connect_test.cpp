// SPDX-License-Identifier: Apache-2.0
// connect: its thread, its deadline, how disconnect cancels it, and what is reported when.
#include "unittests/support/processes/process_signals.h"
#include "unittests/transport/bridge_fixture.h"

namespace cudaq::realtime::test {
namespace {

TEST(BridgeConnect, ProvidersConnectRunsOnAThreadOfTheLoader) {
  double_bridge b;
  CUDAQ_EXPECT_OK(cudaq_bridge_connect(b.handle));
  const std::lock_guard lock(b.script.mutex);
  EXPECT_NE(b.script.connect_thread, std::this_thread::get_id());
}

TEST(BridgeConnect, DeadlinePassesAndTheCallMayBeRepeated) {
  double_bridge b({{"connect", act::hold}});
  for (const std::uint64_t timeout : {std::uint64_t{0}, ms(1), ms(50)}) {
    EXPECT_EQ(cudaq_bridge_connect_timeout(b.handle, timeout), CUDAQ_ERR_TIMEOUT);
    EXPECT_TRUE(error_names({"cudaq_bridge_connect_timeout", "time limit", "call connect again"}));
  }
  EXPECT_EQ(cudaq_bridge_destroy(b.handle), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"the state is connecting", "disconnect cancels it"}));
  b.script.released = true;
  CUDAQ_EXPECT_OK(cudaq_bridge_connect_timeout(b.handle, UINT64_MAX));
  EXPECT_EQ(b.script.logged(), "create connect") << "one attempt for all calls";
  EXPECT_EQ(cudaq_bridge_connect(b.handle), CUDAQ_ERR_STATE) << "the success was reported";
  EXPECT_TRUE(error_names({"the state is connected", "allowed: created"}));
}

TEST(BridgeConnect, LaunchMayFollowATimeOutWithoutAnotherConnect) {
  double_bridge b({{"connect", act::hold}});
  EXPECT_EQ(cudaq_bridge_connect_timeout(b.handle, 0), CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(cudaq_bridge_launch(b.handle), CUDAQ_ERR_STATE);
  b.script.released = true;
  EXPECT_TRUE(eventually([&] { return cudaq_bridge_launch(b.handle) == CUDAQ_OK; })) << cudaq_last_error_message();
  EXPECT_EQ(cudaq_bridge_connect(b.handle), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"the state is launched"}));
}

TEST(BridgeConnect, FailureIsReportedWithTheProvidersTextAndMayBeRepeated) {
  double_bridge b({{"connect", act::fail_once}});
  EXPECT_EQ(cudaq_bridge_connect(b.handle), CUDAQ_ERR_CUDA);
  EXPECT_TRUE(error_names({"cudaq_bridge_connect", "connect: the double fails in connect"}));
  CUDAQ_EXPECT_OK(cudaq_bridge_connect(b.handle));
  CUDAQ_EXPECT_OK(cudaq_bridge_launch(b.handle));
}

TEST(BridgeConnect, FailureAfterATimeOutIsReportedByTheNextCall) {
  double_bridge b({{"connect", act::hold_then_fail}});
  EXPECT_EQ(cudaq_bridge_connect_timeout(b.handle, ms(1)), CUDAQ_ERR_TIMEOUT);
  ASSERT_TRUE(b.connect_runs());
  b.script.released = true;
  EXPECT_TRUE(eventually([&] { return cudaq_bridge_launch(b.handle) == CUDAQ_ERR_STATE && error_names({"created"}); }));
  EXPECT_EQ(cudaq_bridge_connect(b.handle), CUDAQ_ERR_CUDA);
  EXPECT_TRUE(error_names({"the double fails in connect"}));
  EXPECT_EQ(b.script.logged(), "create connect");
  b.script.does["connect"] = act::succeed;
  CUDAQ_EXPECT_OK(cudaq_bridge_connect(b.handle));
  EXPECT_EQ(b.script.logged(), "create connect connect");
}

TEST(BridgeConnectDeathTest, ConnectThatEndsItsThreadIsNamedAtTheEndOfTheProcess) {
  expect_end_of_process(
      [] {
        double_bridge b({{"connect", act::end_thread}});
        (void)cudaq_bridge_connect(b.handle);
      },
      ".*: connect has ended its thread");
}

TEST(BridgeConnect, DisconnectCancelsItFromAnotherThread) {
  double_bridge b({{"connect", act::wait_for_disconnect}});
  cudaq_status_t connected = CUDAQ_OK;
  std::string text;
  std::thread waiting([&] {
    connected = cudaq_bridge_connect(b.handle); // without a time limit
    text = cudaq_last_error_message();
  });
  EXPECT_TRUE(b.connect_runs());
  CUDAQ_EXPECT_OK(cudaq_bridge_disconnect(b.handle));
  waiting.join();
  EXPECT_EQ(connected, CUDAQ_ERR_STATE);
  EXPECT_NE(text.find("disconnect was called on another thread"), std::string::npos) << text;
  EXPECT_EQ(cudaq_bridge_connect(b.handle), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"the state is disconnected"}));
  b.destroy();
  EXPECT_EQ(b.script.logged(), "create connect disconnect destroy");
}

TEST(BridgeConnect, DisconnectThatTheProviderRefusesLetsItGoOn) {
  double_bridge b({{"connect", act::hold}, {"disconnect", act::fail_once}});
  EXPECT_EQ(cudaq_bridge_connect_timeout(b.handle, 0), CUDAQ_ERR_TIMEOUT);
  ASSERT_TRUE(b.connect_runs());
  EXPECT_EQ(cudaq_bridge_disconnect(b.handle), CUDAQ_ERR_CUDA);
  EXPECT_TRUE(error_names({"cudaq_bridge_disconnect", "the double fails in disconnect"}));
  EXPECT_EQ(cudaq_bridge_connect_timeout(b.handle, ms(1)), CUDAQ_ERR_TIMEOUT);
  b.script.released = true;
  CUDAQ_EXPECT_OK(cudaq_bridge_connect(b.handle));
}

/// connect, and a disconnect as early as possible, which the provider refuses. Sets `before` if disconnect came before
/// connect was called: the loader then may call connect only after the refusal.
void refuse_a_cancel(bool &before) {
  double_bridge b({{"connect", act::hold}, {"disconnect", act::hold_then_fail}});
  cudaq_status_t connected = CUDAQ_ERR_INTERNAL;
  std::string text;
  std::thread connecting([&] {
    connected = cudaq_bridge_connect(b.handle);
    text = cudaq_last_error_message();
  });
  std::thread cancelling([&] {
    EXPECT_TRUE(eventually([&] {
      EXPECT_EQ(cudaq_bridge_launch(b.handle), CUDAQ_ERR_STATE);
      return error_names({"the state is connecting"});
    }));
    EXPECT_EQ(cudaq_bridge_disconnect(b.handle), CUDAQ_ERR_CUDA);
  });
  EXPECT_TRUE(eventually([&] { return b.script.disconnecting.load(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(10)); // the loader's thread comes to connect, or waits
  b.script.released = true;
  cancelling.join();
  connecting.join();
  CUDAQ_EXPECT_OK(connected) << text;
  before = b.script.logged() == "create disconnect connect";
  EXPECT_TRUE(before || b.script.logged() == "create connect disconnect") << b.script.logged();
  b.script.does["disconnect"] = act::succeed;
}

TEST(BridgeConnect, DisconnectThatIsRefusedBeforeConnectIsCalledLetsItBegin) {
  bool before = false;
  EXPECT_TRUE(eventually([&] {
    refuse_a_cancel(before);
    return before || HasFailure();
  })) << "connect was always called first";
}

// Takes 5 s: disconnect waits so long for the provider.
TEST(BridgeConnect, SeveralThreadsWaitForOneAttempt) {
  double_bridge b({{"connect", act::hold_then_fail}});
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { failed += cudaq_bridge_connect(b.handle) == CUDAQ_ERR_CUDA; });
  EXPECT_TRUE(b.connect_runs());
  // A thread that calls connect only after the failure was reported starts another attempt, which fails, too.
  b.script.released = true;
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(failed.load(), 4);
}

TEST(BridgeConnect, CancelAtAnyMomentEndsConnect) {
  for (int i = 0; i < 200; ++i) {
    double_bridge b({{"connect", act::wait_for_disconnect}});
    cudaq_status_t connected = CUDAQ_OK;
    std::thread waiting([&] { connected = cudaq_bridge_connect(b.handle); });
    for (int spin = 0; spin < i % 20; ++spin)
      std::this_thread::yield();
    CUDAQ_EXPECT_OK(cudaq_bridge_disconnect(b.handle));
    waiting.join();
    ASSERT_EQ(connected, CUDAQ_ERR_STATE);
    b.destroy();
  }
}

// At the end of a process the loader's list stays, and its thread is not waited for.
TEST(BridgeConnectDeathTest, ProcessMayExitWhileConnectWaits) {
#if !defined(CUDAQ_TEST_EMULATED) // the emulator does not start programs
  GTEST_FLAG_SET(death_test_style, "threadsafe");
#endif
  EXPECT_EXIT(
      {
        auto *const script = new double_script;
        script->does["connect"] = act::hold;
        cudaq_realtime_bridge_handle_t handle = nullptr;
        const bool ready = create_double(handle, *script) == CUDAQ_OK &&
                           cudaq_bridge_connect_timeout(handle, 1000000) == CUDAQ_ERR_TIMEOUT;
        std::exit(ready ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// A kernel that serves clients of the provider shm in the ring shape. This process is the server. Each client is a
// process of its own, shm_peer, which uses no CUDA. The requests are in pinned memory, or in the memory of the GPU,
// where the client maps them through Vulkan.
//
// CUDAQ_SOAK_MESSAGES: number of messages of the load test.
#include "unittests/gpu/support/checked_device_functions.h"
#include "unittests/transport/shm/peers.h"

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kFunction = 1; ///< the id of checked function 0

class ShmKernel : public gpu_test, public ::testing::WithParamInterface<const char *> {
protected:
  static std::vector<std::string> options(const std::string &name, std::uint32_t num_slots) {
    std::vector<std::string> all{"--name",      name,  "--pinned",   "--num-slots", std::to_string(num_slots),
                                 "--slot-size", "256", "--requests", GetParam()};
    if (std::string(GetParam()) == "gpu")
      all.insert(all.end(), {"--gpu", std::to_string(test_device())});
    return all;
  }
  struct session {
    explicit session(const char *subject, std::uint32_t messages, std::uint32_t num_slots = 8)
        : name(own_name(subject)), provider(options(name, num_slots)), functions(1, messages) {
      EXPECT_EQ(provider.status, CUDAQ_OK) << provider.text;
      if (provider.status != CUDAQ_OK)
        return;
      gpu_setup setup;
      setup.shape = {num_slots, 256, false};
      EXPECT_EQ(provider.table->get_transport_context(provider.handle, RING_BUFFER, &setup.ring), CUDAQ_OK);
      dispatcher = std::make_unique<gpu_dispatcher>(manager.get, setup);
    }
    /// The last line of a client that sends one request with a number.
    std::string call(std::uint32_t function_id, std::int32_t number) const {
      peer_client client({"call", name, std::to_string(function_id), std::to_string(number)});
      const std::string text = client.line();
      EXPECT_EQ(client.wait(), 0) << text;
      return text;
    }

    const std::string name;
    manager_handle manager;
    provider_handle provider; // its memory is freed after the kernel has ended
    checked_device_functions functions;
    std::unique_ptr<gpu_dispatcher> dispatcher;
  };
  static std::vector<std::string> send(const session &s, std::uint64_t count, std::uint32_t window) {
    return {"send", s.name, std::to_string(count), std::to_string(window), std::to_string(kFunction)};
  }
};

TEST_P(ShmKernel, AnswersEveryMessageOfAnotherProcess) {
  const std::uint32_t messages = messages_or(100000);
  session s("load", messages);
  ASSERT_NE(s.dispatcher, nullptr);
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  peer_client client(send(s, messages, 8));
  EXPECT_EQ(client.done(), messages);
  // The frame that moves the cursor back after the client has ended.
  EXPECT_TRUE(eventually([&] { return s.dispatcher->stats().dropped_bad_magic == 1; }));
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(s.dispatcher->get));
  s.functions.collect();
  const checked_function &seen = *s.functions.function(0);
  EXPECT_EQ(seen.calls, messages);
  EXPECT_EQ(seen.corrupt, 0u);
  EXPECT_EQ(seen.doubled, 0u);
  EXPECT_EQ(seen.out_of_order, 0u);
  const cudaq_dispatcher_stats_t stats = s.dispatcher->stats();
  EXPECT_EQ(stats.responded, messages);
  EXPECT_EQ(stats.in_flight, 0u);
}

// Each call is a client of its own: the ring goes from one to the next, and each begins at slot 0.
TEST_P(ShmKernel, AnswersErrorsAndDropsUnknownFunctions) {
  session s("errors", 1, 3);
  ASSERT_NE(s.dispatcher, nullptr);
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  EXPECT_EQ(s.call(id_of(handler::own_status), -17), "ANSWER -17 0");
  EXPECT_EQ(s.call(id_of(handler::own_status), 5), "ANSWER 5 0");
  EXPECT_EQ(s.call(kUnknownId, 1), "DROPPED");
  EXPECT_EQ(s.call(id_of(handler::reverse), 1), "ANSWER 0 4");
  EXPECT_TRUE(eventually([&] { return s.dispatcher->stats().dropped_unknown_function == 1; }));
}

TEST_P(ShmKernel, UnknownFunctionsAreAnsweredIfTheServerWantsIt) {
  session s("unknown", 1);
  ASSERT_NE(s.dispatcher, nullptr);
  s.dispatcher->options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  EXPECT_EQ(s.call(kUnknownId, 1), "ANSWER " + std::to_string(CUDAQ_RPC_ERR_NO_SUCH_FUNCTION) + " 0");
}

// A client is killed with requests and answers in the ring. The next one gets the ring, cleared, and only its own
// answers.
TEST_P(ShmKernel, AKilledClientIsReplaced) {
  session s("killed", 1u << 22);
  ASSERT_NE(s.dispatcher, nullptr);
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  for (int round = 0; round < 5; ++round) {
    peer_client killed({"stream", s.name, "8", std::to_string(kFunction)});
    ASSERT_EQ(killed.line(), "GO");
    ::usleep(static_cast<useconds_t>(3000 * round + 500));
    killed.kill();
    peer_client next(send(s, 300, 5));
    ASSERT_EQ(next.done(), 300u) << "round " << round;
  }
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(s.dispatcher->get));
  s.functions.collect();
  EXPECT_EQ(s.functions.function(0)->corrupt, 0u);
}

TEST_P(ShmKernel, EndsWithAClientInTheMiddleOfItsRequests) {
  session s("stopped", 1u << 22);
  ASSERT_NE(s.dispatcher, nullptr);
  ASSERT_NO_FATAL_FAILURE(s.dispatcher->expect_start());
  peer_client client({"stream", s.name, "8", std::to_string(kFunction)});
  ASSERT_EQ(client.line(), "GO");
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(s.dispatcher->get));
  s.dispatcher.reset();
  s.provider.destroy();
  EXPECT_EQ(client.line().rfind("GONE ", 0), 0u);
  EXPECT_EQ(client.wait(), 3);
}

INSTANTIATE_TEST_SUITE_P(Requests, ShmKernel, ::testing::Values("host", "gpu"),
                         [](const auto &tested) { return std::string(tested.param); });

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Late answers, several rings, and jobs completed on the wrong dispatcher.
#include "unittests/host_dispatcher/traffic.h"

namespace cudaq::realtime::test {
namespace {

/// Delays the request with id `delayed_id`, and answers with its payload, whose first byte is changed by `salt`.
struct delayer {
  std::uint32_t delayed_id = 0;
  std::uint8_t salt = 0;
  spin_gate gate;
  static std::int32_t serve(cudaq_host_call_t *call, void *user) {
    auto &self = *static_cast<delayer *>(user);
    if (call->job.request_id == self.delayed_id)
      self.gate.pass();
    std::memcpy(call->result, call->payload, call->payload_len);
    static_cast<std::uint8_t *>(call->result)[0] ^= self.salt;
    call->result_len = call->payload_len;
    return 0;
  }
};

class LateAnswer : public ::testing::TestWithParam<std::uint32_t> {};

// After its own time-out the client keeps the slot until the late answer has come. Then it sends its next request. Two
// rings use the same request ids at the same time.
// Known failure 16.
TEST_P(LateAnswer, IsNeverTakenForTheAnswerOfAnotherRequest) {
  constexpr ring_shape shape{4, 64, false};
  host_ring rings[2]{host_ring{shape}, host_ring{shape}};
  manager_handle manager;
  delayer handlers[2];
  std::unique_ptr<host_dispatcher_handle> dispatchers[2];
  for (int r = 0; r < 2; ++r) {
    dispatchers[r] = std::make_unique<host_dispatcher_handle>(
        manager.get, rings[r], std::vector<cudaq_function_entry_t>{}, host_config(shape));
    handlers[r].delayed_id = r == 0 ? 20 : 0xFFFFFFFF;
    handlers[r].salt = static_cast<std::uint8_t>(r + 1);
    cudaq_dispatcher_options_t options = default_options();
    options.handler_pool_size = GetParam();
    options.ordering = CUDAQ_ORDERING_ANY;
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(dispatchers[r]->get, &options));
    CUDAQ_ASSERT_OK(
        cudaq_dispatcher_set_host_handler_v2(dispatchers[r]->get, 1, delayer::serve, &handlers[r], nullptr));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatchers[r]->get));
  }
  const auto client_of = [&](int r) {
    ring_client client(rings[r]);
    std::uint32_t timed_out = 0;
    for (std::uint32_t id = 0; id < 1020 && !::testing::Test::HasFailure(); ++id) {
      const std::vector<std::uint8_t> payload{static_cast<std::uint8_t>(id), static_cast<std::uint8_t>(id >> 8)};
      const std::uint32_t slot = client.send(1, payload, id);
      answer got;
      const bool in_time =
          eventually([&] { return client.try_collect(slot, got); },
                     id == handlers[r].delayed_id ? std::chrono::milliseconds(5) : std::chrono::milliseconds(20000));
      if (!in_time) {
        ++timed_out;
        EXPECT_EQ(id, handlers[r].delayed_id);
        handlers[r].gate.open.store(true);
        got = client.collect(slot); // waits for the late answer before the slot is used again
      }
      ASSERT_EQ(got.header.request_id, id);
      ASSERT_EQ(got.result,
                (std::vector<std::uint8_t>{static_cast<std::uint8_t>(payload[0] ^ handlers[r].salt), payload[1]}));
    }
    EXPECT_EQ(timed_out, r == 0 ? 1u : 0u);
  };
  std::thread other(client_of, 1);
  client_of(0);
  other.join();
}

INSTANTIATE_TEST_SUITE_P(Pool, LateAnswer, ::testing::Values(0u, 2u),
                         [](const auto &tested) { return tested.param == 0 ? "Inline" : "Pool"; });

/// Keeps its last call.
struct keeper {
  cudaq_host_call_t call{};
  std::atomic<std::uint32_t> kept{0};
  static std::int32_t serve(cudaq_host_call_t *call, void *user) {
    auto &self = *static_cast<keeper *>(user);
    self.call = *call;
    ++self.kept;
    return CUDAQ_HOST_CALL_DEFERRED;
  }
};

class SharedDeferred : public ::testing::Test {
protected:
  std::unique_ptr<host_dispatcher_handle> make(std::uint32_t function, cudaq_host_handler_v2_t handler, void *user) {
    cudaq_dispatcher_config_t config = host_config(ring.shape());
    config.shared_ring_mode = 1;
    auto made =
        std::make_unique<host_dispatcher_handle>(manager.get, ring, std::vector<cudaq_function_entry_t>{}, config);
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_host_handler_v2(made->get, function, handler, user, nullptr));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_start(made->get));
    return made;
  }
  static std::int32_t at_once(cudaq_host_call_t *, void *) { return 0; }
  static std::int32_t soon(cudaq_host_call_t *, void *) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return 0;
  }

  host_ring ring{{8, 64, false}};
  manager_handle manager;
  ring_client client{ring};
};

// Two dispatchers share one job table. Only the dispatcher whose handler got a job may complete it.
TEST_F(SharedDeferred, IsRefusedOnAnotherDispatcherOfTheRing) {
  keeper kept;
  const auto a = make(1, keeper::serve, &kept), b = make(2, at_once, nullptr);
  const std::uint32_t slot = client.send(1, {}, 7);
  ASSERT_TRUE(eventually([&] { return kept.kept.load() == 1; }));
  EXPECT_NE(cudaq_host_complete_deferred(b->get, &kept.call.job, 0, 0), CUDAQ_OK);
  EXPECT_EQ(a->stats().in_flight, 1u);
  EXPECT_EQ(b->stats().in_flight, 0u);
  cudaq_host_complete_deferred(a->get, &kept.call.job, 0, 0);
  EXPECT_EQ(client.collect(slot).header.request_id, 7u);
}

// A member that stops gives up only its own job, although the slots around it change their owners.
TEST_F(SharedDeferred, GivenUpByStopLeavesTheOthersRequestsAlone) {
  keeper kept;
  const auto a = make(1, keeper::serve, &kept), b = make(2, soon, nullptr);
  for (std::uint32_t round = 0; round < 8 && !HasFailure(); ++round) {
    client.send(1, {}, round);
    ASSERT_TRUE(eventually([&] { return kept.kept.load() == round + 1; }));
    const std::uint32_t given_up = kept.call.job.slot;
    std::atomic<bool> end{false};
    std::thread traffic([&] {
      for (std::uint32_t id = 0; !end.load(); ++id) {
        if (client.next_slot() == given_up)
          client.set_next_slot((given_up + 1) % ring.shape().num_slots);
        EXPECT_EQ(client.call(2, {}, id).header.status, 0);
      }
    });
    std::thread late([&] {
      if (round % 2 != 0) // near the end of the grace period
        std::this_thread::sleep_for(std::chrono::microseconds(14800 + 5 * round));
      else
        std::this_thread::sleep_for(std::chrono::milliseconds(18));
      cudaq_host_complete_deferred(a->get, &kept.call.job, 0, 0);
    });
    const cudaq_status_t stopped = cudaq_dispatcher_stop_timeout(a->get, 15000000);
    // Within this time the slot that was being served when stop read the ring is used again.
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    late.join();
    end.store(true);
    traffic.join();
    const answer got = client.collect(given_up);
    EXPECT_EQ(got.header.request_id, round);
    EXPECT_TRUE(got.header.status == 0 || got.header.status == CUDAQ_RPC_ERR_SHUTTING_DOWN);
    if (stopped != CUDAQ_OK)
      break; // the machine is too busy for this short deadline
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(a->get));
  }
}

} // namespace
} // namespace cudaq::realtime::test

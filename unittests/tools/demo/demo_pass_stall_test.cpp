// SPDX-License-Identifier: Apache-2.0
// A pass of the demo with handlers that misbehave: it must end and report the error.
#include "tools/demo/demo_pass.h"
#include "tools/services/host_service.h"
#include "tools/shots/shot_plan.h"
#include "unittests/support/program_paths.h"

#include <gtest/gtest.h>
#include <string>

namespace cudaq::realtime::tools {
namespace {

class DemoPass : public ::testing::Test {
protected:
  /// The limit without an answer only ends a hang, if a test does not wait for it.
  pass_result run(cudaq_host_handler_v2_t handler, unsigned client_threads, std::uint64_t timeout_ns = 50'000'000'000) {
    ring_service_config c;
    c.num_slots = 4;
    c.slot_bytes = 64;
    c.options = default_options();
    c.options.wait_policy = CUDAQ_WAIT_SPIN_YIELD;
    c.options.grace_period_ns = 100'000'000;
    host_service service(c, kDecodeFunctionId, handler, nullptr, nullptr);
    const shot_plan plan(shots_, 0);
    pass_config config;
    config.label = "test";
    config.shots = 20;
    config.timeout_ns = timeout_ns;
    config.client_threads = client_threads;
    return run_pass(service, plan, config);
  }
  [[nodiscard]] static bool mentions(const pass_result &r, const std::string &text) {
    for (const std::string &problem : r.problems)
      if (problem.find(text) != std::string::npos)
        return true;
    return false;
  }

  const qec::shot_set shots_ = load_shots(CUDAQ_TEST_DATA, "d3", "0.005");
};

TEST_F(DemoPass, EndsWithTheStateOfBothSidesWhenNothingIsAnswered) {
  for (const unsigned client_threads : {1u, 2u}) {
    const auto never = [](cudaq_host_call_t *, void *) -> std::int32_t { return CUDAQ_HOST_CALL_DEFERRED; };
    const pass_result r = run(never, client_threads, 300'000'000);
    EXPECT_TRUE(r.stalled);
    EXPECT_EQ(r.sent, 4u) << "a full ring";
    EXPECT_EQ(r.answered, 0u);
    EXPECT_TRUE(mentions(r, "stalled"));
    EXPECT_NE(r.dump.find("request 0 in slot 0"), std::string::npos) << r.dump;
    EXPECT_GT(r.dump.size(), 200u) << "it must contain the dispatcher's state";
  }
}

TEST_F(DemoPass, CountsAndDescribesWrongCorrections) {
  const auto wrong = [](cudaq_host_call_t *call, void *) -> std::int32_t {
    static_cast<std::uint8_t *>(call->result)[0] = 0x55;
    call->result_len = 1;
    return 0;
  };
  const pass_result r = run(wrong, 1);
  EXPECT_EQ(r.answered, 20u);
  EXPECT_EQ(r.mismatches, 20u);
  EXPECT_TRUE(mentions(r, "20 corrections"));
  ASSERT_FALSE(r.notes.empty());
  EXPECT_NE(r.notes[0].find("correction 55"), std::string::npos) << r.notes[0];
}

TEST_F(DemoPass, TakesAnAnswerOfTheWrongLengthForWrong) {
  const auto empty = [](cudaq_host_call_t *, void *) -> std::int32_t { return 0; };
  EXPECT_EQ(run(empty, 1).mismatches, 20u);
}

TEST_F(DemoPass, NamesTheErrorThatAnAnswerCarries) {
  const auto refuse = [](cudaq_host_call_t *, void *) -> std::int32_t { return 3; };
  const pass_result r = run(refuse, 1);
  EXPECT_EQ(r.bad_status, 20u);
  EXPECT_EQ(r.stats.handler_errors, 20u);
  EXPECT_TRUE(mentions(r, "20 answers report an error"));
  ASSERT_FALSE(r.notes.empty());
  EXPECT_NE(r.notes[0].find("no error of the model"), std::string::npos) << r.notes[0];
}

} // namespace
} // namespace cudaq::realtime::tools

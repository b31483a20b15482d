// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/server/server_threads_support.h"

#include <cstdlib>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

constexpr decoder_limits kPlain{.id = 1};

std::vector<decoder_setup> two_setups(unsigned shift) {
  std::vector<decoder_setup> setups;
  setups.push_back({{.id = 1, .queue_length = 16}, unit_for(rotated_model(4, shift))});
  setups.push_back({{.id = 2}, unit_for(rotated_model(4, shift))});
  return setups;
}

/// Sends shots in two parts to a decoder and asks for each answer, until `stop`. Throws if an answer is not that of the
/// old or the new decoder, or is a status.
void send_shots(decoding_server &server, std::uint64_t id, const rt::shared_word<std::uint32_t> &stop,
                rt::shared_word<std::uint64_t> &shots) {
  requester client(server);
  for (std::uint64_t counter = 0; stop.load() == 0; shots.add(1)) {
    const bool good =
        client.call(kEnqueueFunctionId, enqueue_payload(id, counter++, "10")) == answered(server_status::ok) &&
        client.call(kEnqueueFunctionId, enqueue_payload(id, counter++, "00")) == answered(server_status::ok);
    const full_answer got = client.call(kGetCorrectionsFunctionId, get_payload(id, 4, true));
    if (!good || (got != answered(server_status::ok, "1000") && got != answered(server_status::ok, "0100")))
      throw std::runtime_error("decoder " + std::to_string(id) + ": status " + std::to_string(got.status));
  }
}

// Known failure 35.
TEST(ServerReload, LosesNoRequestInManySwapsUnderLoad) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr unsigned kSwaps = 100;
#else
  constexpr unsigned kSwaps = 1000;
#endif
  started_server running(two_setups(0));
  decoding_server &server = running.server;
  rt::shared_word<std::uint32_t> stop;
  std::string problems[2];
  rt::shared_word<std::uint64_t> shots[2];
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      try {
        send_shots(server, t + 1, stop, shots[t]);
      } catch (const std::exception &e) {
        problems[t] = e.what();
      }
    });
  unsigned applied = 0;
  for (unsigned swap = 1; swap <= kSwaps; ++swap) {
    const reload_result result = server.reload(two_setups(swap % 2), soon());
    EXPECT_EQ(result.outcome, reload_outcome::applied) << result.reason;
    applied += result.outcome == reload_outcome::applied;
    const std::uint64_t before[2] = {shots[0].load(), shots[1].load()};
    const auto both_went_on = [&] { return shots[0].load() > before[0] && shots[1].load() > before[1]; };
    if (!rt::wait_until(soon(), both_went_on))
      break;
  }
  stop.store(1);
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(problems[0], "");
  EXPECT_EQ(problems[1], "");
  EXPECT_EQ(applied, kSwaps);
  for (unsigned t = 0; t < 2; ++t) {
    EXPECT_EQ(server.decoders()[t]->counts().exchanges, kSwaps);
    EXPECT_EQ(server.decoders()[t]->counts().by_status[static_cast<std::size_t>(server_status::busy)], 0u);
  }
}

TEST(ServerReload, UsesTheNewDecoderFromTheNextShotOn) {
  decoding_server server(one_setup(kPlain, unit_for(rotated_model(4))));
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 0, "1000")), answered(server_status::ok));
  EXPECT_EQ(server.reload(one_setup(kPlain, unit_for(rotated_model(4, 1))), soon()).outcome, reload_outcome::applied);
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(1, 4, true)), answered(server_status::ok, "1000"));
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 1, "1000")), answered(server_status::ok));
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(1, 4, true)), answered(server_status::ok, "0100"));
}

TEST(ServerReload, TakesEverythingBackIfAShotDoesNotEnd) {
  std::vector<decoder_setup> setups = two_setups(0), other = two_setups(1);
  setups[0].limits.queue_length = other[0].limits.queue_length = 0;
  decoding_server server(std::move(setups));
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 0, "10")), answered(server_status::ok));
  const reload_result result = server.reload(std::move(other), soon(0));
  EXPECT_EQ(result.outcome, reload_outcome::busy);
  EXPECT_EQ(result.reason, "a decoder was inside a shot until the deadline");
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 1, "00")), answered(server_status::ok));
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(2, 0, "1000")), answered(server_status::ok));
  for (const std::uint64_t id : {1U, 2U})
    EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(id, 4)), answered(server_status::ok, "1000")) << id;
}

TEST(ServerReload, WaitsForTheReturnToTheOldDecoder) {
  started_server running(two_setups(0));
  decoding_server &server = running.server;
  // As a reload does whose deadline passes while decoder 2 is in a shot that it has begun with the new model.
  served_decoder &second = *server.decoders()[1];
  second.offer(unit_for(rotated_model(4, 1)));
  ASSERT_TRUE(second.is_offer_accepted());
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(2, 0, "10")), answered(server_status::ok));
  second.take_back();
  EXPECT_EQ(server.reload(two_setups(2), soon()).outcome, reload_outcome::busy);
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(2, 1, "00")), answered(server_status::ok));
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(2, 4, true)), answered(server_status::ok, "0100"));
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(2, 2, "1000")), answered(server_status::ok));
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(2, 4)), answered(server_status::ok, "1000"));
  EXPECT_EQ(server.reload(two_setups(2), soon()).outcome, reload_outcome::applied);
}

TEST(ServerReload, RefusesOtherIdsLimitsAndShapes) {
  decoding_server server(one_setup(kPlain, unit_for(rotated_model(4))));
  const auto refused = [&](const decoder_limits &limits, std::unique_ptr<decoding_unit> unit) {
    const reload_result result = server.reload(one_setup(limits, std::move(unit)), soon());
    EXPECT_EQ(result.outcome, reload_outcome::rejected);
    return result.reason;
  };
  EXPECT_EQ(refused({.id = 2}, unit_for(rotated_model(4))),
            "decoders[0] (id 2): the running server has id 1 in this place; ids and their order are fixed");
  EXPECT_EQ(
      refused({.id = 1, .queue_length = 3}, unit_for(rotated_model(4))),
      "decoders[0] (id 1): counter, queue_length and age_limit_us are fixed; start the server again to change them");
  EXPECT_EQ(refused(kPlain, unit_for(rotated_model(5))),
            "decoders[0] (id 1): the new model has 5 bits per shot, 5 detectors and 5 observables, the running one has "
            "4 bits per shot, 4 detectors and 4 observables; these are fixed");
  EXPECT_EQ(server.reload(two_setups(1), soon()).reason, "it has 2 decoders, the running one has 1");
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 0, "1000")), answered(server_status::ok));
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(1, 4)), answered(server_status::ok, "1000"));
}

} // namespace

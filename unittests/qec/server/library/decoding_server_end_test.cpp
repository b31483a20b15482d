// SPDX-License-Identifier: Apache-2.0
// The end of a decoding server while requests are in flight, and threads that use it at once.
#include "unittests/qec/server/library/embedded_server.h"
#include "unittests/qec/stream/gated_plugin_support.h"

#include <atomic>
#include <thread>

namespace {

using namespace cudaq::qec::realtime::test;

/// Requests whose answers are counted. It must live until all are answered.
struct open_shots {
  std::atomic<unsigned> ok = 0, other = 0;
  std::uint8_t events = 0, observables = 0;

  cudaq_status_t submit(const embedded_server &server) {
    // Without a result of its own: all write the same byte, one after the other.
    const cudaq_qec_decoding_server_request_t shot{CUDAQ_QEC_DECODE, 0, 0, &events, 1, &observables, 1};
    return cudaq_qec_decoding_server_submit(
        server.get(), &shot,
        [](void *self, std::int32_t status, std::uint64_t bytes) {
          auto &here = *static_cast<open_shots *>(self);
          ++(status == 0 && bytes == 1 ? here.ok : here.other);
        },
        this);
  }
};

std::string gated_config(const std::string &more = "") {
  return config_of(std::string(CUDAQ_TEST_GATED_PLUGIN) + ":gated=1", "error(0.1) D0 L0", more);
}

/// Declared after a server: it waits for its decodes, also after an ASSERT.
struct open_at_end {
  const gate &of_decodes;
  ~open_at_end() { of_decodes.open(); }
};

/// A function that takes an answer and does not return before it may.
struct held_answer {
  std::atomic<bool> is_there = false, may_return = false, has_returned = false;
  static void take(void *self, std::int32_t, std::uint64_t) {
    auto &here = *static_cast<held_answer *>(self);
    here.is_there = true;
    cudaq::realtime::detail::wait_until(soon(), [&] { return here.may_return.load(); });
    here.has_returned = true;
  }
};

TEST(DecodingServerEnd, DrainAnswersTheRequestsInFlight) {
  const gate gate;
  const unsigned before = gate.begun();
  open_shots shots;
  embedded_server server(gated_config());
  const open_at_end after{gate};
  for (int k = 0; k < 3; ++k)
    ASSERT_EQ(shots.submit(server), CUDAQ_OK) << error();
  ASSERT_TRUE(gate.wait_for_begun(before + 1));
  EXPECT_EQ(cudaq_qec_decoding_server_drain(server.get(), 0, 0), CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(error(), "decoder 7 did not end; 3 requests have no answer");
  EXPECT_EQ(shots.ok + shots.other, 0u);
  gate.open();
  EXPECT_EQ(cudaq_qec_decoding_server_drain(server.get(), kLong, kLong), CUDAQ_OK) << error();
  EXPECT_EQ(shots.ok, 3u) << "they were taken before the end";
  EXPECT_EQ(server.call(CUDAQ_QEC_DECODE, {0}).status, -CUDAQ_QEC_SERVER_NOT_READY);
  EXPECT_EQ(shots.submit(server), CUDAQ_OK);
  EXPECT_EQ(shots.other, 1u) << "what is refused at once is answered once, too";
}

TEST(DecodingServerEnd, DestroyAnswersTheRequestsInFlight) {
  const gate gate;
  const unsigned before = gate.begun();
  open_shots shots;
  embedded_server server(gated_config());
  const open_at_end after{gate};
  for (int k = 0; k < 3; ++k)
    ASSERT_EQ(shots.submit(server), CUDAQ_OK) << error();
  ASSERT_TRUE(gate.wait_for_begun(before + 1));
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // so that destroy has begun, mostly
    gate.open();
  });
  server.destroy();
  EXPECT_EQ(shots.ok + shots.other, 3u) << "each request is answered before the end of destroy";
  EXPECT_EQ(shots.ok, 3u);
  opener.join();
  EXPECT_EQ(gate.alive(), 0);
}

TEST(DecodingServerEnd, DrainWaitsForAnAnswerInsideSubmit) {
  held_answer answer;
  embedded_server server(config_of("lookup", "error(0.1) D0 L0", "queue_length: 0"));
  std::thread requester([&] {
    std::uint8_t events = 0, observables = 0;
    const cudaq_qec_decoding_server_request_t shot{CUDAQ_QEC_DECODE, 0, 0, &events, 1, &observables, 1};
    EXPECT_EQ(cudaq_qec_decoding_server_submit(server.get(), &shot, &held_answer::take, &answer), CUDAQ_OK);
  });
  EXPECT_TRUE(cudaq::realtime::detail::wait_until(soon(), [&] { return answer.is_there.load(); }));
  EXPECT_EQ(cudaq_qec_decoding_server_drain(server.get(), 0, 0), CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(error(), "a function that takes answers did not end, inside a call of submit");
  answer.may_return = true;
  EXPECT_EQ(cudaq_qec_decoding_server_drain(server.get(), 0, kLong), CUDAQ_OK) << error();
  EXPECT_TRUE(answer.has_returned);
  requester.join();
}

TEST(DecodingServerEnd, DrainNamesADecoderThatDecodesInsideSubmit) {
  const gate gate;
  const unsigned before = gate.begun();
  open_shots shots;
  embedded_server server(gated_config("queue_length: 0"));
  std::thread requester([&] { EXPECT_EQ(shots.submit(server), CUDAQ_OK) << error(); });
  EXPECT_TRUE(gate.wait_for_begun(before + 1));
  EXPECT_EQ(cudaq_qec_decoding_server_drain(server.get(), 0, 0), CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(error(), "decoder 7 did not end; 1 request has no answer");
  gate.open();
  EXPECT_EQ(cudaq_qec_decoding_server_drain(server.get(), 0, kLong), CUDAQ_OK) << error();
  EXPECT_EQ(shots.ok, 1u);
  requester.join();
}

/// Its first answer comes while the server lives, and is held until the end has begun. Then it sends a second request.
struct request_at_the_end {
  embedded_server *server = nullptr;
  std::uint8_t events = 0, observables = 0;
  cudaq_status_t submitted = CUDAQ_ERR_INTERNAL, counted = CUDAQ_ERR_INTERNAL;
  unsigned answers = 0;
  std::int32_t status = 0;
  std::uint64_t requests = 0;

  cudaq_status_t submit(cudaq_qec_decoding_server_answered_t answered) {
    const cudaq_qec_decoding_server_request_t shot{CUDAQ_QEC_DECODE, 0, 0, &events, 1, &observables, 1};
    return cudaq_qec_decoding_server_submit(server->get(), &shot, answered, this);
  }
  [[nodiscard]] bool server_ends() const {
    const cudaq_qec_describe_decoder_t with_state{7, 1};
    cudaq_qec_decoder_description_t description{};
    const cudaq_qec_decoding_server_request_t query{
        CUDAQ_QEC_DESCRIBE_DECODER, 0, 0, &with_state, sizeof with_state, &description, sizeof description};
    const auto ignored = [](void *, std::int32_t, std::uint64_t) {};
    return cudaq_qec_decoding_server_submit(server->get(), &query, ignored, nullptr) == CUDAQ_OK &&
           description.server_state == CUDAQ_QEC_SERVER_ENDS;
  }
  static void first(void *self, std::int32_t, std::uint64_t) {
    auto &here = *static_cast<request_at_the_end *>(self);
    cudaq::realtime::detail::wait_until(soon(), [&] { return here.server_ends(); });
    here.submitted = here.submit(&second);
    cudaq_qec_decoding_server_counts_t counts{};
    counts.struct_size = sizeof counts;
    here.counted = cudaq_qec_decoding_server_get_counts(here.server->get(), 7, &counts);
    here.requests = counts.requests;
  }
  static void second(void *self, std::int32_t status, std::uint64_t) {
    auto &here = *static_cast<request_at_the_end *>(self);
    ++here.answers;
    here.status = status;
  }
};

TEST(DecodingServerEnd, ACallbackMaySubmitAndCountWhileTheServerIsDestroyed) {
  request_at_the_end request;
  embedded_server server(config_of("lookup", "error(0.1) D0 L0"));
  request.server = &server;
  ASSERT_EQ(request.submit(&request_at_the_end::first), CUDAQ_OK) << error();
  server.destroy();
  EXPECT_EQ(request.submitted, CUDAQ_OK);
  EXPECT_EQ(request.counted, CUDAQ_OK);
  EXPECT_GE(request.requests, 1u);
  EXPECT_EQ(request.answers, 1u);
  EXPECT_EQ(request.status, -CUDAQ_QEC_SERVER_NOT_READY);
}

TEST(DecodingServerEnd, ACallbackMaySubmitTheNextRequest) {
  struct chain {
    embedded_server *server = nullptr;
    std::atomic<unsigned> left = 100;
    std::uint8_t events = 1, observables = 0;
    static void next(void *self, std::int32_t, std::uint64_t) {
      auto &here = *static_cast<chain *>(self);
      if (--here.left == 0)
        return;
      const cudaq_qec_decoding_server_request_t shot{CUDAQ_QEC_DECODE, 0, 0, &here.events, 1, &here.observables, 1};
      if (cudaq_qec_decoding_server_submit(here.server->get(), &shot, &next, self) != CUDAQ_OK)
        here.left = 1000000; // the test runs into its deadline
    }
  } shots;
  embedded_server server(config_of("lookup", "error(0.1) D0 L0"));
  shots.server = &server;
  ++shots.left;
  chain::next(&shots, 0, 0);
  EXPECT_TRUE(cudaq::realtime::detail::wait_until(soon(), [&] { return shots.left == 0; }));
  EXPECT_EQ(server.counts().shots, 100u);
}

TEST(DecodingServerEnd, ThreadsUseOneServerAtOnce) {
  constexpr unsigned kThreads = 3, kShots = 100;
  embedded_server server(config_of("lookup", kTwoDetectors));
  std::atomic<unsigned> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const std::uint8_t bits = t % 2 == 0 ? 0b01 : 0b10;
      for (unsigned k = 0; k < kShots; ++k)
        wrong += server.call(CUDAQ_QEC_DECODE, {bits}) == answer{0, {bits}} ? 0 : 1;
    });
  threads.emplace_back([&] {
    const std::string same = config_of("lookup", kTwoDetectors);
    for (unsigned k = 0; k < 5; ++k) {
      wrong += cudaq_qec_decoding_server_reload(server.get(), same.c_str(), kLong) == CUDAQ_OK ? 0 : 1;
      wrong += server.counts().requests <= kThreads * kShots ? 0 : 1;
    }
  });
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(server.counts().shots, kThreads * kShots);
  EXPECT_EQ(server.counts().reloads, 5u);
}

} // namespace

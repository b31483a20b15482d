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

std::string gated_config() { return config_of(std::string(CUDAQ_TEST_GATED_PLUGIN) + ":gated=1", "error(0.1) D0 L0"); }

TEST(DecodingServerEnd, DrainAnswersTheRequestsInFlight) {
  const gate gate;
  const unsigned before = gate.begun();
  embedded_server server(gated_config());
  open_shots shots;
  for (int k = 0; k < 3; ++k)
    ASSERT_EQ(shots.submit(server), CUDAQ_OK) << error();
  ASSERT_TRUE(gate.wait_for_begun(before + 1));
  EXPECT_EQ(cudaq_qec_decoding_server_drain(server.get(), 0, 0), CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(error(), "decoder 7 did not end; its requests may have no answer");
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
  embedded_server server(gated_config());
  open_shots shots;
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

TEST(DecodingServerEnd, ACallbackMaySubmitTheNextRequest) {
  embedded_server server(config_of("lookup", "error(0.1) D0 L0"));
  struct chain {
    embedded_server *server;
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
  } shots{&server};
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

// SPDX-License-Identifier: Apache-2.0
// A server process and client processes: messages, counts, many clients.
//
//   CUDAQ_TEST_SHM_MESSAGES=N   messages of the long run (10^6; 2 * 10^4 under a sanitizer)
#include "unittests/support/program_paths.h"
#include "unittests/support/sanitized.h"
#include "unittests/transport/shm/peers.h"
#include "unittests/transport/shm/shm_traffic.h"

namespace cudaq::realtime::test {
namespace {

class ShmProcesses : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Shape, ShmProcesses, ::testing::Values("ring", "unified"));

TEST_P(ShmProcesses, IncrementAString) {
  const std::string name = own_name("increment");
  peer_server server(GetParam(), name);
  shm_client client(name);
  ASSERT_EQ(client.status, CUDAQ_OK) << client.text;
  client.send(0, kIncrement, "HAL", 3, 5);
  ASSERT_EQ(cudaq_shm_client_wait(client.get, 0, kPatience), CUDAQ_OK) << cudaq_shm_client_error();
  cudaq_rpc_response_t header{};
  const void *result = nullptr;
  ASSERT_EQ(cudaq_host_ringbuffer_read_rpc_response(&client.ring, 0, &header, &result), CUDAQ_OK);
  EXPECT_EQ(std::string(static_cast<const char *>(result), header.result_len), "IBM");
  EXPECT_EQ(header.request_id, 5u);
  EXPECT_EQ(header.ptp_timestamp, 12u);
  EXPECT_EQ(server.stop(), 1u);
  EXPECT_EQ(cudaq_shm_client_alive(client.get), 0);
}

TEST_P(ShmProcesses, TheExampleInCGetsItsAnswer) {
  const std::string name = own_name("example");
  peer_server server(GetParam(), name);
  started_program example({CUDAQ_SHM_EXAMPLE, name, std::to_string(kIncrement)});
  EXPECT_EQ(example.line(), "0: status 0, IBM");
  EXPECT_EQ(example.wait(), 0);
}

TEST_P(ShmProcesses, ABurstGoesRoundTheRing) {
  const std::string name = own_name("burst");
  peer_server server(GetParam(), name);
  shm_client client(name);
  ASSERT_EQ(client.status, CUDAQ_OK) << client.text;
  checked_traffic traffic(client, client.num_slots);
  EXPECT_EQ(traffic.exchange(5 * client.num_slots + 3), CUDAQ_OK) << traffic.wrong;
  EXPECT_EQ(server.stop(), 5 * client.num_slots + 3);
}

TEST_P(ShmProcesses, BadMagicAndUnknownFunctionsAreDroppedAndTheSlotIsFree) {
  const std::string name = own_name("bad");
  peer_server server(GetParam(), name);
  shm_client client(name);
  ASSERT_EQ(client.status, CUDAQ_OK) << client.text;
  ASSERT_EQ(cudaq_host_ringbuffer_write_rpc_request(&client.ring, 0, kChecked, nullptr, 0, 1, 0), CUDAQ_OK);
  client.ring.rx_data_host[0] ^= 0xFF;
  cudaq_shm_client_signal(client.get, 0);
  EXPECT_EQ(cudaq_shm_client_wait(client.get, 0, kPatience), CUDAQ_ERR_UNSUPPORTED) << cudaq_shm_client_error();
  client.send(1, 0xBADF00D, nullptr, 0, 2);
  EXPECT_EQ(cudaq_shm_client_wait(client.get, 1, kPatience), CUDAQ_ERR_UNSUPPORTED) << cudaq_shm_client_error();
  client.send(2, kIncrement, "a", 1, 3);
  EXPECT_EQ(cudaq_shm_client_wait(client.get, 2, kPatience), CUDAQ_OK) << cudaq_shm_client_error();
  EXPECT_EQ(server.stop(), 3u);
}

TEST_P(ShmProcesses, OneRingServesManyClientsAfterEachOther) {
  const std::string name = own_name("after");
  peer_server server(GetParam(), name, {"--max-clients=1"});
  std::uint64_t sent = 0;
  for (int i = 0; i < 5; ++i) {
    peer_client client({"send", name, std::to_string(100 + i), "8"});
    sent += client.done();
  }
  EXPECT_EQ(sent, 510u);
  const std::uint64_t processed = server.stop();
  if (std::string(GetParam()) == "unified") {
    EXPECT_EQ(processed, sent);
  } else { // and the frames that move the cursor back to slot 0; the last one may come after the stop
    EXPECT_GE(processed, sent + 4);
    EXPECT_LE(processed, sent + 5);
  }
}

TEST(ShmTraffic, AMillionMessagesArriveInOrderAndIntact) {
  const std::string name = own_name("million");
  const std::uint64_t count = number_from("CUDAQ_TEST_SHM_MESSAGES", kSanitized ? 20'000 : 1'000'000);
  peer_server server("unified", name, {"--num-slots=64", "--max-clients=2"});
  peer_client one({"send", name, std::to_string(count / 2), "64"});
  peer_client two({"send", name, std::to_string(count - count / 2), "64"});
  const std::chrono::seconds limit(30 + count / 10'000);
  EXPECT_EQ(one.done(limit) + two.done(limit), count);
  EXPECT_EQ(server.stop(), count);
}

TEST(ShmTraffic, ClientsAndServerThatSleepLoseNothing) {
  const std::string name = own_name("sleep");
  peer_server server("unified", name, {"--wait-us=10000", "--max-clients=3"});
  const std::string count = kSanitized ? "300" : "3000";
  std::vector<std::unique_ptr<peer_client>> clients;
  for (int i = 0; i < 3; ++i) // one message at a time: each end sleeps before each message, if it has the time
    clients.push_back(std::make_unique<peer_client>(std::vector<std::string>{"send", name, count, "1", "block"}));
  for (auto &c : clients)
    EXPECT_EQ(c->done(), std::stoull(count));
  server.stop();
}

} // namespace
} // namespace cudaq::realtime::test

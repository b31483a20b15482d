// SPDX-License-Identifier: Apache-2.0
// A server process and client processes: messages, counts, many clients, and processes that are killed at any moment,
// that fork, or that have no standard streams.
//
//   CUDAQ_TEST_SHM_MESSAGES=N   messages of the long run (10^6; 2 * 10^4 under a sanitizer)
//   CUDAQ_TEST_SHM_KILLS=N      clients that are killed (20), and servers (3)
#include "unittests/environment/child_process.h"
#include "unittests/support/sanitized.h"
#include "unittests/transport/shm/peers.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <fcntl.h>
#include <memory>
#include <random>
#include <thread>

namespace cudaq::realtime::test {
namespace {

using std::chrono::microseconds;

class ShmProcesses : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Shape, ShmProcesses, ::testing::Values("ring", "unified"));

TEST_P(ShmProcesses, TheExampleInCGetsItsAnswer) {
  const std::string name = own_name("example");
  peer_server server(GetParam(), name);
  started_program example({CUDAQ_SHM_EXAMPLE, name, std::to_string(kIncrement)});
  EXPECT_EQ(example.line(), "0: status 0, IBM");
  EXPECT_EQ(example.wait(), 0);
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

TEST(ShmRingShape, NamesTheUnifiedShapeToASecondClient) {
  const std::string name = own_name("second");
  peer_server server("ring", name, {});
  const shm_client first(name);
  ASSERT_EQ(first.status, CUDAQ_OK) << first.text;
  const shm_client second(name, CUDAQ_WAIT_SPIN_YIELD, 0);
  EXPECT_EQ(second.status, CUDAQ_ERR_TIMEOUT);
  EXPECT_NE(second.text.find("all 1 rings of the server are in use (the ring shape has one; the server's --unified"),
            std::string::npos)
      << second.text;
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

TEST(ShmCrash, KilledClientsHarmNoOtherClientAndTheirRingIsUsedAgain) {
  const std::string name = own_name("kill");
  peer_server server("unified", name, {"--max-clients=3"});
  peer_client a({"stream", name, "8"}), b({"stream", name, "3"});
  ASSERT_EQ(a.line(), "GO");
  ASSERT_EQ(b.line(), "GO");
  std::mt19937 random(1);
  const std::uint64_t kills = number_from("CUDAQ_TEST_SHM_KILLS", 20);
  for (std::uint64_t i = 0; i < kills; ++i) {
    peer_client victim({"stream", name, "8"}); // always in the third ring
    ASSERT_EQ(victim.line(), "GO") << "kill " << i;
    std::this_thread::sleep_for(microseconds(random() % 3000));
    victim.kill();
    ASSERT_TRUE(server.runs());
  }
  a.close_input();
  b.close_input();
  const std::uint64_t answered = a.done() + b.done();
  EXPECT_GT(answered, 2u);
  EXPECT_GE(server.stop(), answered + kills);
}

/// Kills a server of `shape` again and again, each time with requests of all its `clients` open.
void kill_servers(const std::string &shape, const std::string &name, unsigned clients, std::uint32_t seed) {
  std::mt19937 random(seed);
  for (std::uint64_t i = 0; i < number_from("CUDAQ_TEST_SHM_KILLS", 3); ++i) {
    peer_server server(shape, name);
    std::vector<std::unique_ptr<peer_client>> streams;
    for (unsigned n = 0; n < clients; ++n) {
      streams.push_back(std::make_unique<peer_client>(std::vector<std::string>{"stream", name, n == 0 ? "8" : "1"}));
      ASSERT_EQ(streams.back()->line(), "GO") << "kill " << i;
    }
    std::this_thread::sleep_for(microseconds(random() % 5000));
    server.kill();
    for (const auto &stream : streams) {
      EXPECT_EQ(stream->line().rfind("GONE ", 0), 0u) << "kill " << i;
      EXPECT_EQ(stream->wait(), 3);
    }
  }
  peer_server next(shape, name);
  peer_client client({"send", name, "100", "8"});
  EXPECT_EQ(client.done(), 100u);
}

TEST(ShmCrash, AKilledServerIsNoticedAndItsNameServesAgain) { kill_servers("unified", own_name("server"), 2, 3); }

TEST(ShmCrash, AKilledServerOfTheRingShapeIsNoticedAndItsNameServesAgain) {
  kill_servers("ring", own_name("ringserver"), 1, 4); // its one ring has one client at a time
}

TEST(ShmCrash, AStoppedClientDelaysNoOtherOneAndGoesOn) {
  const std::string name = own_name("stopped");
  peer_server server("unified", name, {"--max-clients=2"});
  peer_client stopped({"stream", name, "8"});
  ASSERT_EQ(stopped.line(), "GO");
  stopped.signal(SIGSTOP);
  peer_client other({"send", name, "2000", "8"});
  EXPECT_EQ(other.done(), 2000u);
  stopped.signal(SIGCONT);
  stopped.close_input();
  EXPECT_GT(stopped.done(), 0u);
  server.stop();
}

TEST(ShmCrash, AServerAndItsClientsMayStartInAnyOrder) {
  const std::string name = own_name("order");
  peer_client early({"send", name, "50", "8"});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  peer_server server("unified", name);
  EXPECT_EQ(early.done(), 50u);
}

// The child has the ring of its parent, and must not use it.
TEST(ShmFork, AChildIsRefusedAndItsParentGoesOn) {
  const std::string name = own_name("fork");
  peer_server server("unified", name);
  shm_client client(name);
  ASSERT_EQ(client.status, CUDAQ_OK) << client.text;
  client.send(0, kIncrement, "HAL", 3, 5);
  EXPECT_EQ(status_in_child([&] {
              cudaq_ringbuffer_t ring;
              int wrong = cudaq_shm_client_wait(client.get, 0, kPatience) == CUDAQ_ERR_STATE ? 0 : 1;
              wrong += std::string(cudaq_shm_client_error()).find("fork") == std::string::npos ? 2 : 0;
              wrong += cudaq_shm_client_ring(client.get, &ring, nullptr, nullptr) == CUDAQ_ERR_STATE ? 0 : 4;
              wrong += cudaq_shm_client_alive(client.get) == 0 ? 0 : 8;
              cudaq_shm_client_signal(client.get, 1); // a slot without a frame: the server would drop it
              wrong += cudaq_shm_client_detach(client.get) == CUDAQ_OK ? 0 : 16;
              return wrong;
            }),
            0);
  EXPECT_EQ(cudaq_shm_client_alive(client.get), 1) << "detach of the child closed the connection of its parent";
  ASSERT_EQ(cudaq_shm_client_wait(client.get, 0, kPatience), CUDAQ_OK) << cudaq_shm_client_error();
  EXPECT_NE(cudaq_host_ringbuffer_slot_available(&client.ring, 1), 0) << "the child signalled a slot of its parent";
  EXPECT_EQ(server.stop(), 1u);
}

/// A process without standard streams, as daemons are: what it prints must not reach a ring.
std::string serve_and_attach(const std::vector<std::string> &options) {
  for (const int number : {0, 1, 2})
    close(number);
  const std::string name = own_name("closed");
  std::vector<std::string> words{"--name", name};
  words.insert(words.end(), options.begin(), options.end());
  const provider_handle provider(words);
  if (provider.status != CUDAQ_OK)
    return provider.text;
  const shm_client client(name);
  if (client.status != CUDAQ_OK)
    return client.text;
  for (const int number : {0, 1, 2})
    if (fcntl(number, F_GETFD) >= 0)
      return "descriptor " + std::to_string(number) + " belongs to the ring";
  return "";
}

TEST(ShmClosedStreams, ARingHasNoDescriptorOfAStandardStream) {
  CUDAQ_EXPECT_GOOD_CHILD([] { return serve_and_attach({}); });
  CUDAQ_EXPECT_GOOD_CHILD([] { return serve_and_attach({"--unified", "--max-clients=3"}); });
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Processes that are killed at any moment. Nothing is lost for the others.
//
//   CUDAQ_TEST_SHM_KILLS=N   clients that are killed (20), and servers (3)
#include "unittests/support/sanitized.h"
#include "unittests/transport/shm/peers.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace cudaq::realtime::test {
namespace {

using std::chrono::microseconds;

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

TEST(ShmCrash, TheOneRingOfTheRingShapeSurvivesKilledClients) {
  const std::string name = own_name("killring");
  peer_server server("ring", name);
  std::mt19937 random(2);
  for (std::uint64_t i = 0; i < number_from("CUDAQ_TEST_SHM_KILLS", 20); ++i) {
    peer_client victim({"stream", name, "8"});
    ASSERT_EQ(victim.line(), "GO") << "kill " << i;
    std::this_thread::sleep_for(microseconds(random() % 3000));
    victim.kill();
  }
  peer_client last({"send", name, "1000", "8"});
  EXPECT_EQ(last.done(), 1000u);
  server.stop();
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

} // namespace
} // namespace cudaq::realtime::test

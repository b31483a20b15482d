// SPDX-License-Identifier: Apache-2.0
// --exchange-qp of the provider gpu-roce: callers over TCP, time limits, cancel, a sensor bridge that starts slowly.
#include "unittests/contrib/gpu_roce/gpu_roce_fixture.h"
#include "unittests/support/program_paths.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kPeer = 0x0A090001; // 10.9.0.1

class caller {
public:
  explicit caller(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET, to.sin_port = htons(port), to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr *>(&to), sizeof(to)), 0);
    const timeval limit{30, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  ~caller() { ::close(socket_); }
  caller(const caller &) = delete;
  caller &operator=(const caller &) = delete;

  void send(std::uint32_t queue_pair, std::uint32_t address, std::size_t bytes = 12) const {
    const std::uint32_t words[3] = {htonl(queue_pair), htonl(99), htonl(address)};
    EXPECT_EQ(::send(socket_, words, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
  }
  /// Empty: the connection was closed.
  std::vector<std::uint32_t> reply() const {
    std::vector<std::uint32_t> words(3);
    if (::recv(socket_, words.data(), 12, MSG_WAITALL) != 12)
      return {};
    for (std::uint32_t &word : words)
      word = ntohl(word);
    return words;
  }

private:
  int socket_;
};

class GpuRoceExchange : public GpuRoceBridge {
protected:
  void create_listening(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"-", "--exchange-qp", "--exchange-port=0"});
    ASSERT_EQ(create(more), CUDAQ_OK) << error_text();
    const std::string line = endpoint(), key = "exchange_port=";
    ASSERT_EQ(line.rfind("transport=gpu_roce exchange_port=", 0), 0u) << line;
    port = static_cast<std::uint16_t>(std::stoi(line.substr(line.find(key) + key.size())));
  }
  std::uint16_t port = 0;
};

TEST_F(GpuRoceExchange, ConnectsToTheQueuePairOfTheCaller) {
  create_listening();
  EXPECT_EQ(script().constructed, 0);
  std::thread peer([this] {
    const caller c(port);
    c.send(0x77, kPeer);
    EXPECT_EQ(c.reply(), (std::vector<std::uint32_t>{kDoubleQueuePair, kDoubleKey, INADDR_LOOPBACK}));
    EXPECT_EQ(script().starts, 1) << "the queue pair receives before the peer knows it";
  });
  EXPECT_EQ(cudaq_bridge_connect(handle), CUDAQ_OK) << error_text();
  peer.join();
  EXPECT_EQ(script().last.remote_qp, 0x77u);
  EXPECT_EQ(script().last.peer_ip, "10.9.0.1");
  EXPECT_NE(endpoint().find("qp=0x1c7 rkey=7700 buffer_addr=0x0 peer_ip=10.9.0.1 "), std::string::npos);
  EXPECT_EQ(cudaq_bridge_launch(handle), CUDAQ_OK) << error_text();
}

TEST_F(GpuRoceExchange, GivesTheRingBeforeConnect) {
  create_listening();
  std::thread peer([this] {
    const caller c(port);
    c.send(0x77, kPeer);
    EXPECT_EQ(c.reply().size(), 3u);
  });
  cudaq_ringbuffer_t ring{};
  EXPECT_EQ(cudaq_bridge_get_transport_context(handle, RING_BUFFER, &ring), CUDAQ_OK) << error_text();
  peer.join();
  EXPECT_NE(ring.rx_data, nullptr);
  EXPECT_EQ(cudaq_bridge_connect(handle), CUDAQ_OK) << error_text();
  EXPECT_EQ(script().constructed, 1);
}

TEST_F(GpuRoceExchange, PassesOverCallersThatAreNoPeers) {
  create_listening({"--peer-ip=10.9.0.1"});
  std::thread peers([this] {
    const caller silent(port);
    const caller short_one(port);
    short_one.send(0x77, kPeer, 5);
    for (const auto &[queue_pair, address] :
         {std::pair{0u, kPeer}, {0x1000000u, kPeer}, {0x77u, 0u}, {0x77u, kPeer + 1}}) {
      const caller wrong(port);
      wrong.send(queue_pair, address);
      EXPECT_TRUE(wrong.reply().empty());
    }
    const caller right(port);
    right.send(0x78, kPeer);
    EXPECT_EQ(right.reply().size(), 3u);
  });
  EXPECT_EQ(cudaq_bridge_connect(handle), CUDAQ_OK) << error_text();
  peers.join();
  EXPECT_EQ(script().last.remote_qp, 0x78u);
  EXPECT_EQ(script().constructed, 1);
}

TEST_F(GpuRoceExchange, HasATimeLimit) {
  create_listening({"--timeout=1"});
  EXPECT_EQ(cudaq_bridge_connect(handle), CUDAQ_ERR_TIMEOUT);
  EXPECT_NE(std::string(error_text()).find("no peer has sent its queue pair"), std::string::npos) << error_text();
  EXPECT_EQ(script().constructed, 0);
}

TEST_F(GpuRoceExchange, IsCancelledByDisconnect) {
  create_listening();
  cudaq_status_t connected = CUDAQ_OK;
  std::atomic<bool> connects{false};
  std::thread waits([&] {
    connects.store(true);
    connected = cudaq_bridge_connect(handle);
  });
  const caller silent(port); // so the cancel also meets a caller that is being read
  EXPECT_TRUE(eventually([&] { return connects.load(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(cudaq_bridge_disconnect(handle), CUDAQ_OK) << error_text();
  waits.join();
  EXPECT_EQ(connected, CUDAQ_ERR_STATE);
  EXPECT_EQ(script().constructed, 0);
  EXPECT_EQ(destroy(), CUDAQ_OK) << error_text();
}

TEST_F(GpuRoceExchange, WaitsForASlowStart) {
  create_listening();
  script().start_waits = true;
  const caller peer(port);
  peer.send(0x77, kPeer);
  EXPECT_EQ(cudaq_bridge_connect_timeout(handle, 100'000'000), CUDAQ_ERR_TIMEOUT);
  script().start_waits = false;
  EXPECT_EQ(cudaq_bridge_connect(handle), CUDAQ_OK) << error_text();
  EXPECT_EQ(peer.reply().size(), 3u);
  EXPECT_EQ(script().constructed, 1);
}

TEST_F(GpuRoceExchange, EndsWhatItHasStartedIfCancelledMeanwhile) {
  create_listening();
  script().start_waits = true;
  const caller peer(port);
  peer.send(0x77, kPeer);
  cudaq_status_t connected = CUDAQ_OK;
  std::thread waits([&] { connected = cudaq_bridge_connect(handle); });
  EXPECT_TRUE(eventually([] { return script().starts_under_way == 1; }));
  std::thread releases([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    script().start_waits = false;
  });
  EXPECT_EQ(cudaq_bridge_disconnect(handle), CUDAQ_OK) << error_text();
  waits.join();
  releases.join();
  EXPECT_EQ(connected, CUDAQ_ERR_STATE);
  EXPECT_EQ(destroy(), CUDAQ_OK) << error_text();
  EXPECT_EQ(script().destroyed, 1);
}

TEST_F(GpuRoceExchange, TakesTheNextCallerAfterAFailedStart) {
  create_listening();
  script().start_fails = true;
  {
    const caller first(port);
    first.send(0x77, kPeer);
    EXPECT_EQ(cudaq_bridge_connect(handle), CUDAQ_ERR_INTERNAL);
  }
  script().start_fails = false;
  const caller second(port);
  second.send(0x79, kPeer);
  EXPECT_EQ(cudaq_bridge_connect(handle), CUDAQ_OK) << error_text();
  EXPECT_EQ(second.reply().size(), 3u);
  EXPECT_EQ(script().last.remote_qp, 0x79u);
}

TEST_F(GpuRoceExchange, ConnectsOrEndsAfterAStartThatThrewNoStdException) {
  for (const bool connects_again : {true, false}) {
    create_listening();
    script().construct_throws_number = true;
    {
      const caller first(port);
      first.send(0x77, kPeer);
      EXPECT_EQ(cudaq_bridge_connect(handle), CUDAQ_ERR_INTERNAL);
      EXPECT_NE(std::string(error_text()).find("is not a std::exception"), std::string::npos) << error_text();
    }
    script().construct_throws_number = false;
    if (connects_again) {
      const caller second(port);
      second.send(0x79, kPeer);
      EXPECT_EQ(cudaq_bridge_connect(handle), CUDAQ_OK) << error_text();
    }
    ASSERT_EQ(destroy(), CUDAQ_OK) << error_text();
  }
}

TEST_F(GpuRoceExchange, RefusesAPortThatIsTaken) {
  create_listening();
  cudaq_realtime_bridge_handle_t other = nullptr;
  std::string option = "--exchange-port=" + std::to_string(port), exchange = "--exchange-qp";
  char *argv[] = {exchange.data(), option.data()};
  EXPECT_EQ(cudaq_bridge_create_from_library(&other, CUDAQ_GPU_ROCE_PROVIDER, 2, argv), CUDAQ_ERR_INTERNAL);
  EXPECT_NE(std::string(error_text()).find(option.substr(0, 15)), std::string::npos) << error_text();
}

} // namespace
} // namespace cudaq::realtime::test

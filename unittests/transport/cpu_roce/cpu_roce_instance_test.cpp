// SPDX-License-Identifier: Apache-2.0
// The instance: the rendezvous over TCP, peers that come, vanish and return, strangers, and both shapes under a
// dispatcher. Over the test double of an adapter.
#include "unittests/support/provider_dispatcher.h"
#include "unittests/support/sanitized.h"
#include "unittests/transport/cpu_roce/cpu_roce_rig.h"
#include "unittests/transport/cpu_roce/rendezvous_call.h"
#include "unittests/transport/no_files_left.h"

#include <fcntl.h>
#include <map>

namespace cudaq::realtime::test {
namespace {

struct CpuRoceInstance : ::testing::Test {
  ~CpuRoceInstance() override {
    for (const int fd : open)
      close(fd);
    if (connecting.joinable()) {
      (void)instance->disconnect();
      connecting.join();
    }
  }
  void start(const detail::cpu_roce_options &options = rig_options()) {
    instance = std::make_unique<detail::cpu_roce_instance>();
    ASSERT_EQ(instance->open(options, opener_of(adapter)).text(), "");
    const std::string &line = instance->endpoint();
    const std::size_t at = line.find(" port=");
    port = at == std::string::npos ? 0 : static_cast<std::uint32_t>(std::stoul(line.substr(at + 6)));
  }
  void connect_in_the_background() {
    connecting = std::thread([this] { result = instance->connect(); });
  }
  int stranger(const std::string &bytes) {
    const int fd = rendezvous_connect("127.0.0.1", port);
    EXPECT_GE(fd, 0);
    open.push_back(fd);
    EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    return fd;
  }
  std::optional<call_numbers> call(std::uint32_t qp = 0x77, int *socket = nullptr) {
    const int fd = rendezvous_connect("127.0.0.1", port);
    EXPECT_GE(fd, 0);
    EXPECT_TRUE(rendezvous_send(fd, {qp, 0, 0x7F000001}));
    const std::optional<call_numbers> reply = rendezvous_receive(fd);
    if (socket != nullptr)
      *socket = fd;
    else
      close(fd);
    return reply;
  }

  std::shared_ptr<rdma_double_state> adapter = std::make_shared<rdma_double_state>();
  std::unique_ptr<detail::cpu_roce_instance> instance;
  std::uint32_t port = 0;
  std::thread connecting;
  detail::expected<> result;
  std::vector<int> open;
};

TEST_F(CpuRoceInstance, ReportsWhereACallerConnects) {
  start();
  const std::string &line = instance->endpoint();
  EXPECT_EQ(line, "transport=cpu_roce port=" + std::to_string(port) +
                      " roce_ip=127.0.0.1 frame_size=256 qp_type=uc mtu=4096");
  EXPECT_NE(port, 0u);
}

TEST_F(CpuRoceInstance, ReceivesBeforeItReplies) {
  start();
  connect_in_the_background();
  const std::optional<call_numbers> reply = call(0x99);
  ASSERT_TRUE(reply);
  EXPECT_TRUE(adapter->connected());
  EXPECT_EQ(adapter->receives(), 8u);
  EXPECT_EQ(adapter->peer().qp, 0x99u);
  EXPECT_EQ(reply->qp, 0x101u);
  EXPECT_EQ(reply->rkey, 0x5678u);
  EXPECT_EQ(reply->address, 0x7F000001u);
  connecting.join();
  EXPECT_EQ(result.text(), "");
  EXPECT_EQ(instance->disconnect().text(), "");
}

TEST_F(CpuRoceInstance, ADisconnectCancelsConnectAndNamesTheLastRefusal) {
  start();
  adapter->refuse_start = true;
  connect_in_the_background();
  EXPECT_FALSE(call());
  EXPECT_TRUE(eventually([&] { return instance->counters().callers_refused.value() == 1; }));
  EXPECT_EQ(instance->disconnect().text(), "");
  connecting.join();
  EXPECT_EQ(result.status(), CUDAQ_ERR_STATE);
  EXPECT_NE(result.text().find("the double refuses to start"), std::string::npos) << result.text();
  EXPECT_EQ(instance->connect().status(), CUDAQ_ERR_STATE) << "disconnect may come first";
}

TEST_F(CpuRoceInstance, StrangersDelayNoPeer) {
  start();
  connect_in_the_background();
  for (int i = 0; i < 12; ++i)
    stranger(i % 2 == 0 ? "" : "12345"); // slow ones, more than may wait
  const std::vector<std::string> wrong = {"GET / HTTP/1.1\r\n\r\n", std::string(12, '\0'), std::string(12, '\xFF'),
                                          std::string(13, '\1')};
  for (const std::string &bytes : wrong)
    EXPECT_FALSE(rendezvous_receive(stranger(bytes))) << bytes.size();
  EXPECT_EQ(adapter->num_pairs(), 0u);
  EXPECT_TRUE(call());
  connecting.join();
  EXPECT_EQ(result.text(), "");
  EXPECT_TRUE(eventually([&] { return instance->counters().callers_refused.value() == 16; }))
      << "slow callers are closed after their time";
}

TEST_F(CpuRoceInstance, ACallerWaitsWithoutLoadWhileTheProcessHasNoFileLeft) {
  if (kSanitized)
    GTEST_SKIP() << "the sanitizer opens files itself";
  using namespace std::chrono_literals;
  start();
  const int caller = rendezvous_connect("127.0.0.1", port); // in the system's queue
  open.push_back(caller);
  ASSERT_TRUE(rendezvous_send(caller, {0x77, 0, 0x7F000001}));
  {
    const no_files_left limit;
    const auto begin = detail::steady_clock::now();
    connect_in_the_background();
    const detail::counter &attempts = instance->counters().callers_delayed;
    ASSERT_TRUE(eventually([&] { return attempts.value() >= 4; }));
    const std::uint64_t tried = attempts.value(); // each is followed by a pause, however busy the machine is
    EXPECT_LE(tried, 1u + static_cast<std::uint64_t>((detail::steady_clock::now() - begin) /
                                                     detail::rendezvous::kAcceptPause));
    EXPECT_EQ(adapter->num_pairs(), 0u);
  }
  EXPECT_TRUE(rendezvous_receive(caller)) << "it has waited, and is not lost";
  connecting.join();
  EXPECT_EQ(result.text(), "");
  EXPECT_EQ(instance->counters().callers_refused.value(), 0u);
}

TEST_F(CpuRoceInstance, APeerThatKeepsItsConnectionIsNotReplaced) {
  start();
  connect_in_the_background();
  int first = -1;
  ASSERT_TRUE(call(0x77, &first));
  connecting.join();
  EXPECT_FALSE(call(0x78));
  EXPECT_EQ(adapter->peer().qp, 0x77u);
  close(first);
  EXPECT_TRUE(eventually([&] { return call(0x79).has_value(); }));
  EXPECT_EQ(adapter->peer().qp, 0x79u);
  EXPECT_EQ(instance->counters().peers.value(), 2u);
  EXPECT_EQ(instance->counters().newest_address.load(), adapter->peer().address);
}

TEST_F(CpuRoceInstance, APeerWhoseQueuePairFailsCanCallAgain) {
  detail::cpu_roce_options options = rig_options();
  options.unified = options.reliable = true;
  start(options);
  connect_in_the_background();
  int first = -1;
  ASSERT_TRUE(call(0x77, &first));
  connecting.join();
  EXPECT_EQ(instance->launch().text(), "");
  adapter->fail("retry exceeded");
  std::uint32_t slot = 0;
  const cudaq_cpu_dataplane_t plane = instance->dataplane();
  EXPECT_EQ(plane.rx_poll(plane.ctx, &slot), CUDAQ_RX_EMPTY);
  EXPECT_FALSE(rendezvous_receive(first)) << "it learns that its connection has ended";
  close(first);
  EXPECT_TRUE(eventually([&] { return call(0x78).has_value(); }));
  EXPECT_EQ(instance->counters().peers_lost.value(), 1u);
}

TEST_F(CpuRoceInstance, EachOfManyPeersGetsAQueuePairOfItsOwn) {
  start();
  connect_in_the_background();
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < 50; ++i) {
    std::optional<call_numbers> reply;
    ASSERT_TRUE(eventually([&] { return (reply = call(0x100 + i)).has_value(); }));
    EXPECT_NE(reply->qp, last);
    last = reply->qp;
  }
  EXPECT_EQ(instance->counters().peers.value(), 50u);
}

TEST_F(CpuRoceInstance, ASensorBridgeNeedsNoCallAndItsConnectionIsMadeAgain) {
  detail::cpu_roce_options options = rig_options();
  options.sensor_bridge = options.unified = true;
  options.peer_ip = "127.0.0.9";
  options.peer_address = 0x7F000009;
  options.remote_qp = 0x42;
  start(options);
  EXPECT_EQ(instance->endpoint(), "transport=cpu_roce qp_config=hsb_fpga peer_ip=127.0.0.9 qp=0x101 rkey=22136 "
                                  "buffer_addr=0x0 frame_size=256 qp_type=uc mtu=4096");
  EXPECT_TRUE(adapter->connected()) << "from create on";
  EXPECT_EQ(adapter->peer().qp, 0x42u);
  EXPECT_EQ(instance->connect().text(), "");
  EXPECT_EQ(instance->launch().text(), "");
  adapter->fail("a local error");
  const cudaq_cpu_dataplane_t plane = instance->dataplane();
  std::uint32_t slot = 9;
  EXPECT_EQ(plane.rx_poll(plane.ctx, &slot), CUDAQ_RX_EMPTY);
  ASSERT_TRUE(eventually([&] { return adapter->connected(); }));
  EXPECT_EQ(adapter->num_pairs(), 1u) << "the bridge knows its number";
  adapter->write(1, request_frame(3), 1);
  EXPECT_TRUE(eventually([&] { return plane.rx_poll(plane.ctx, &slot) == CUDAQ_RX_READY; }));
  EXPECT_EQ(slot, 1u);
  EXPECT_EQ(plane.tx_publish(plane.ctx, 0), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(plane.tx_publish(plane.ctx, 1), CUDAQ_OK);
  EXPECT_EQ(instance->disconnect().text(), "");
}

constexpr std::uint32_t kRequests = 2000;

/// A peer that obeys the rule of credits: many requests over the wrap. Some have a wrong magic, while no other is open.
void play_peer(CpuRoceInstance &t, std::uint32_t &dropped) {
  std::map<std::uint32_t, std::uint32_t> open; // slot of each request, by its id
  std::uint32_t used = 0;                      // bits of the slots
  for (std::uint32_t sent = 0, done = 0; done < kRequests;) {
    const std::uint32_t next = (sent + dropped) % 4;
    if (open.empty() && dropped < sent / 500) {
      t.adapter->write(next, request_frame(0, {}, 5, 1), next);
      ++dropped;
      ASSERT_TRUE(eventually([&] { return t.instance->counters().unanswered.value() == dropped; }));
      continue;
    }
    if (sent < kRequests && dropped == sent / 500 && (used >> next & 1) == 0) {
      const auto payload = std::vector<std::uint8_t>(1 + sent % 200, static_cast<std::uint8_t>(sent));
      ASSERT_TRUE(t.adapter->write(next, request_frame(sent, payload), next)) << "a credit has its receive";
      open[sent++] = next;
      used |= 1u << next;
      continue;
    }
    std::vector<std::uint8_t> frame;
    ASSERT_TRUE(eventually([&] { return !(frame = t.adapter->take_frame()).empty(); }));
    const cudaq_rpc_response_t header = response_of(frame);
    ASSERT_EQ(header.status, 0);
    ASSERT_EQ(open.count(header.request_id), 1u);
    ASSERT_EQ(header.result_len, 1 + header.request_id % 200);
    ASSERT_EQ(frame[CUDAQ_RPC_HEADER_SIZE], static_cast<std::uint8_t>(header.request_id + 1));
    used &= ~(1u << open[header.request_id]);
    open.erase(header.request_id);
    ++done;
  }
}

/// A dispatcher over the instance, and a peer.
void serve_many(CpuRoceInstance &t, bool unified, bool reliable) {
  detail::cpu_roce_options options = rig_options();
  options.unified = unified;
  options.reliable = reliable;
  t.start(options);
  t.connect_in_the_background();
  ASSERT_TRUE(t.call());
  t.connecting.join();
  cudaq_dispatcher_config_t config = host_config({4, 256, false});
  config.skip_tx_markers = !unified;
  const cudaq_cpu_dataplane_t plane = t.instance->dataplane();
  std::uint32_t dropped = 0;
  {
    const provider_dispatcher dispatcher(config, t.instance->ring(), unified ? &plane : nullptr,
                                         function_v2(5, increment_handler));
    ASSERT_EQ(t.instance->launch().text(), "");
    play_peer(t, dropped);
  }
  EXPECT_EQ(t.instance->disconnect().text(), "");
  const detail::cpu_roce_counters &c = t.instance->counters();
  EXPECT_EQ(c.received.value(), kRequests + dropped);
  EXPECT_EQ(c.replied.value(), kRequests);
  EXPECT_EQ(c.answered_busy.value() + c.overwritten.value() + c.orphaned.value(), 0u);
}

struct CpuRoceShapes : CpuRoceInstance, ::testing::WithParamInterface<std::tuple<bool, bool>> {};
INSTANTIATE_TEST_SUITE_P(UnifiedAndReliable, CpuRoceShapes, ::testing::Combine(::testing::Bool(), ::testing::Bool()));

TEST_P(CpuRoceShapes, ServeManyRequests) { serve_many(*this, std::get<0>(GetParam()), std::get<1>(GetParam())); }

} // namespace
} // namespace cudaq::realtime::test

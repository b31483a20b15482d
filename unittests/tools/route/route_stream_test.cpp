// SPDX-License-Identifier: Apache-2.0
// A stream over the router: it stays at its node, and is lost with it.
#include "cudaq/qec/realtime/decoding_server_wire.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/route/routed_servers.h"

#include <array>

namespace cudaq::realtime::tools::test {
namespace {

constexpr std::uint32_t kBeginTail = 0x21CDC649, kGetCommitted = 0x75DD3F12, kName = CUDAQ_QEC_GET_DECODER_NAME,
                        kDescribe = CUDAQ_QEC_DESCRIBE_DECODER;

/// Head, repetition and tail are one round of one detector, which only an error with the observable flips: corrections
/// are the XOR of the rounds. Commit 2, buffer 1.
constexpr const char *kStream = "decoders:\n  - id: 6\n    type: sliding-window:inner=lookup,commit=2,buffer=1\n"
                                "    stream: true\n    age_limit_us: 60000000\n    dem: |\n"
                                "      detector(0) D0\n      error(0.1) D0 L0\n      shift_detectors(1) 1\n"
                                "      repeat 9 {\n      detector(0) D0\n      error(0.1) D0 L0\n"
                                "      shift_detectors(1) 1\n      }\n      detector(0) D0\n      error(0.1) D0 L0\n";

class RouteStream : public testing::Test {
protected:
  void SetUp() override {
    if (no_yaml())
      GTEST_SKIP() << "this build has no YAML parser";
    write(path("node.yaml"), kStream);
    start_node();
    write(path("route.yaml"), "nodes: [{name: a, decoders: [6], port: " + std::to_string(port_.number()) +
                                  "}]\ntls: tcp\nlost_after_ms: 20000\nanswer_limit_ms: 60000\nreconnect_ms: 50\n");
    router_ = std::make_unique<running_program>(
        std::vector<std::string>{"route", "--config", path("route.yaml"), "--transport", CUDAQ_TEST_SOCKET_PROVIDER,
                                 "--", "--socket=" + path("front.sock").string()},
        path("stderr"));
    ASSERT_TRUE(router_->line().starts_with("CUDAQ_REALTIME_ROUTER_READY ")) << errors();
    ASSERT_TRUE(contains(router_->line(), "state=joined")) << errors();
    peer_ = std::make_unique<socket_peer>(path("front.sock"));
  }
  void start_node() {
    node_ = std::make_unique<running_program>(
        std::vector<std::string>{"serve", "--config", path("node.yaml"), "--transport", "ucx", "--wait", "block", "--",
                                 "--port=" + std::to_string(port_.number()), "--tls=tcp"},
        path("stderr"));
    const std::string ready = node_->line();
    ASSERT_TRUE(ready.starts_with("QEC_DECODING_SERVER_READY ")) << errors();
  }
  std::filesystem::path path(const std::string &name) const { return folder_.path() / name; }
  std::string errors() const { return read_file(path("stderr")); }

  std::int32_t enqueue(std::uint8_t bit) {
    return peer_->call(kEnqueue, joined(numbers({6, ++counter_, 0, 1}), {bit})).status;
  }
  static bytes committed(std::uint64_t wait = 0) { return numbers({6, 1, 0, wait}); }

  scratch_folder folder_;
  reserved_port port_;
  std::uint64_t counter_ = 0;
  std::unique_ptr<running_program> node_, router_;
  std::unique_ptr<socket_peer> peer_;
};

TEST_F(RouteStream, HasItsFramesAndReadsThatWaitFromItsNode) {
  EXPECT_EQ(enqueue(1), 0) << errors();
  EXPECT_EQ(enqueue(0), 0);
  peer_->send_frame(kGetCommitted, committed(2));
  peer_->send_frame(kEnqueue, joined(numbers({6, ++counter_, 0, 1}), {0}));
  const wire_answer first = peer_->receive(), second = peer_->receive();
  EXPECT_EQ(first.status, 0);
  EXPECT_EQ(second.status, 0);
  EXPECT_EQ((first.result.empty() ? second : first).result, joined(numbers({2, 3}), {1}));
  EXPECT_EQ(peer_->call(kBeginTail, numbers({6, ++counter_})).status, 0);
  EXPECT_EQ(enqueue(1), 0);
  EXPECT_EQ(peer_->call(kGetCommitted, committed()).result, joined(numbers({4, 4}), {0}));
  EXPECT_EQ(enqueue(1), 7) << "after the end";
}

TEST_F(RouteStream, IsDescribedByItsNode) {
  const wire_answer name = peer_->call(kName, numbers({6}));
  EXPECT_EQ(name.status, 0) << errors();
  EXPECT_EQ(std::string(name.result.begin(), name.result.end()),
            "sliding-window:inner=lookup,commit=2,buffer=1,rounds=time,mode=sequential");
  const wire_answer description = peer_->call(kDescribe, numbers({6}));
  EXPECT_EQ(description.status, 0);
  EXPECT_FALSE(description.result.empty());
  EXPECT_EQ(peer_->call(kName, numbers({7})).status, 1) << "no node has this decoder";
  EXPECT_EQ(peer_->call(kName, {}).status, 2) << "the router has no decoder of its own";
}

TEST_F(RouteStream, IsDroppedWithItsNodeUntilAReset) {
  EXPECT_EQ(enqueue(1), 0) << errors();
  peer_->send_frame(kGetCommitted, committed(2));
  std::this_thread::sleep_for(std::chrono::milliseconds(100)); // it should wait at the node, but need not
  node_.reset();
  EXPECT_EQ(peer_->receive().status, kDroppedStatus) << "a read that waits is answered";
  EXPECT_EQ(enqueue(0), kDroppedStatus);
  EXPECT_EQ(peer_->call(kGetCommitted, committed()).status, kDroppedStatus);
  start_node();
  const auto joined_again = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimitMs);
  std::int32_t status = kNotReadyStatus;
  for (; status == kNotReadyStatus && std::chrono::steady_clock::now() < joined_again;
       status = peer_->call(kReset, numbers({6})).status) {
    EXPECT_EQ(enqueue(0), kDroppedStatus) << "also when the node is there again";
    EXPECT_EQ(peer_->call(kBeginTail, numbers({6, 99})).status, kDroppedStatus);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ASSERT_EQ(status, 0) << errors();
  counter_ = 0;
  for (const std::uint8_t bit : std::array<std::uint8_t, 3>{0, 1, 1})
    EXPECT_EQ(enqueue(bit), 0);
  EXPECT_EQ(peer_->call(kGetCommitted, committed(2)).result, joined(numbers({2, 3}), {1}))
      << "nothing of the old stream is in it";
}

} // namespace
} // namespace cudaq::realtime::tools::test

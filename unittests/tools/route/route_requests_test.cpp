// SPDX-License-Identifier: Apache-2.0
// Requests through the router: repeated ones, streams, soft values.
#include "cudaq/qec/realtime/decoding_server_wire.h"
#include "unittests/qec/server/readout/server_readout_support.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/route/routed_servers.h"

#include <array>

namespace cudaq::realtime::tools::test {
namespace {

// A stream over the router: it stays at its node, and is lost with it.

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

// A request that is sent again through the router: the node's decoder knows it by the requester's id and time.

TEST(RouteRepeat, IsExecutedOnceByTheNode) {
  if (no_yaml())
    GTEST_SKIP() << "this build has no YAML parser";
  const scratch_folder folder;
  routed_servers servers(folder.path(), 1, "tcp");
  servers.start_router("lost_after_ms: 20000\nanswer_limit_ms: 20000\n");
  servers.wait_joined();
  detail::datagram_client_options options;
  options.port = servers.router_port();
  detail::datagram_client client;
  ASSERT_TRUE(client.open(options, detail::make_udp_wire(options.slot_size)).ok());
  const auto call = [&](std::uint32_t id, std::uint32_t function, const bytes &payload) {
    EXPECT_TRUE(client.send(id, function, payload, 1000 + id));
    const auto reply = client.receive_within(std::chrono::milliseconds(kLimitMs));
    return reply ? wire_answer{reply->header.status, id, {reply->result.begin(), reply->result.end()}} : wire_answer{};
  };
  const bytes read = joined(numbers({0, 4}), {1});
  ASSERT_EQ(call(1, kReset, numbers({0})).status, 0) << servers.errors();
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(call(2, kEnqueue, enqueue(1, 0b0110, 0)).status, 0) << again;
  for (int again = 0; again < 2; ++again) {
    const wire_answer got = call(3, kGet, read);
    EXPECT_EQ(got.status, 0);
    EXPECT_EQ(got.result, bytes{0b0110}) << again;
  }
  EXPECT_EQ(call(4, kGet, read).result, bytes{0}) << "another request";
}

// Soft values through the router, to a node whose decoder takes them.

namespace of_server = cudaq::qec::realtime::test;

TEST(RouteReadout, TheNodeHasTheValuesOfItsRequests) {
  if (no_yaml())
    GTEST_SKIP() << "this build has no YAML parser";
  const scratch_folder folder;
  const auto path = [&](const char *name) { return folder.path() / name; };
  write(path("model.dem"), of_server::kReadoutModel);
  write(path("readout.txt"), of_server::readout_text());
  write(path("node.yaml"), "decoders: [{id: 6, type: bp-osd, dem_file: model.dem, age_limit_us: 60000000,\n"
                           "  decoder_custom_args: {readout: readout.txt}}]\n");
  const reserved_port port;
  running_program node({"serve", "--config", path("node.yaml"), "--transport", "ucx", "--wait", "block", "--",
                        "--port=" + std::to_string(port.number()), "--tls=tcp"},
                       path("stderr"));
  ASSERT_TRUE(node.line().starts_with("QEC_DECODING_SERVER_READY ")) << read_file(path("stderr"));
  write(path("route.yaml"), "nodes: [{name: a, decoders: [6], port: " + std::to_string(port.number()) +
                                "}]\nfunctions: [{name: qec_decode, node: a}]\ntls: tcp\nlost_after_ms: 20000\n"
                                "answer_limit_ms: 60000\n");
  running_program router({"route", "--config", path("route.yaml"), "--transport", CUDAQ_TEST_SOCKET_PROVIDER, "--",
                          "--socket=" + path("front.sock").string()},
                         path("stderr"));
  ASSERT_TRUE(router.line().starts_with("CUDAQ_REALTIME_ROUTER_READY ")) << read_file(path("stderr"));
  ASSERT_TRUE(contains(router.line(), "state=joined")) << read_file(path("stderr"));
  socket_peer peer(path("front.sock"));
  const of_server::readout_shot sure{"10", {12, 12, 3}, {0, 0, 0, 0, 0}}, unsure{"10", {3, 7, 8}, {0, 0, 0, 0, 0}};
  std::uint64_t counter = 0;
  for (const auto &[shot, answer] : {std::pair{sure, 1}, {unsure, 0}})
    for (const auto kind : of_server::kAllKinds) {
      EXPECT_EQ(peer.call(CUDAQ_QEC_ENQUEUE_READOUT, of_server::readout_payload(6, ++counter, shot, kind)).status, 0);
      EXPECT_EQ(peer.call(kGet, of_server::get_payload(6, 1, true)).result, bytes{static_cast<std::uint8_t>(answer)});
      EXPECT_EQ(peer.call(CUDAQ_QEC_DECODE, of_server::one_shot_payload(shot, kind)).result,
                bytes{static_cast<std::uint8_t>(answer)});
      EXPECT_EQ(peer.call(CUDAQ_QEC_DECODE_READOUT, of_server::readout_payload(6, 0, shot, kind)).result,
                bytes{static_cast<std::uint8_t>(answer)});
    }
  EXPECT_EQ(peer.call(CUDAQ_QEC_DECODE_READOUT, of_server::readout_payload(7, 0, sure, of_server::kAllKinds[0])).status,
            -CUDAQ_QEC_SERVER_INVALID_DECODER)
      << "as a server says it";
  EXPECT_EQ(peer.call(kEnqueue, of_server::enqueue_payload(6, ++counter, "10")).status, CUDAQ_QEC_SERVER_BAD_REQUEST);
  const wire_answer described = peer.call(CUDAQ_QEC_DESCRIBE_DECODER, numbers({6, 3}));
  ASSERT_EQ(described.result.size(), sizeof(cudaq_qec_readout_description_t));
  cudaq_qec_readout_description_t description;
  std::memcpy(&description, described.result.data(), sizeof description);
  EXPECT_EQ(description.num_measurements, 3u);
  EXPECT_EQ(description.num_flags, 5u);
  EXPECT_EQ(description.soft_kinds, 7u);
}

} // namespace
} // namespace cudaq::realtime::tools::test

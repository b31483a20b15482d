// SPDX-License-Identifier: Apache-2.0
// What serve says about a decode that does not end. The plug-in of these is busy for ten minutes if detector 3 fires.
#include "tools/serve/decode_log.h"
#include "unittests/tools/serve/serve_fixture.h"
#include "unittests/transport/datagram/udp_peer.h"

#include <limits>

namespace cudaq::realtime::tools::test {
namespace {

using namespace std::chrono_literals;

TEST(LongDecode, IsAHundredDeadlinesAndAtLeastASecond) {
  EXPECT_EQ(long_decode(1'000'000), 1s);
  EXPECT_EQ(long_decode(50'000'000), 5s);
  EXPECT_EQ(long_decode(0), 10s);
  EXPECT_GT(long_decode(std::numeric_limits<std::uint64_t>::max()), 24h);
}

class ServeLongDecode : public Serve, public testing::WithParamInterface<unsigned> {
protected:
  void SetUp() override {
    Serve::SetUp();
    const std::string more = "    queue_length: " + std::to_string(GetParam()) + "\n    deadline_us: 1000\n";
    write(yaml(), "decoders:\n  - id: 6\n    type: " + std::string(CUDAQ_TEST_STUCK_DECODER) + "\n    dem: |\n" +
                      model(0) + more + "  - id: 7\n    type: lookup\n    dem: |\n" + model(0) + more);
  }
  std::size_t lines() const {
    const std::string text = read_file(err());
    std::size_t found = 0;
    for (std::size_t at = text.find("the decode of a request"); at != std::string::npos;
         at = text.find("the decode of a request", at + 1))
      ++found;
    return found;
  }
};

TEST_P(ServeLongDecode, IsReportedOnceWithTimeAndDeadline) {
  running_program server(arguments({"--wait", "block"}), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(peer.call(kOneShot, {1}).status, 0);
  ASSERT_EQ(peer.call(kEnqueue, enqueue(0, 0b1000, 7)).status, 0) << "the other decoder ends";
  const std::size_t before = lines(); // a decode without a core for a second is a long one, too
  EXPECT_TRUE(before == 0 || std::chrono::steady_clock::now() - begin > 900ms) << read_file(err());
  peer.send_frame(kOneShot, {0b1000});
  server.until([&] { return lines() != before; });
  for (int more = 0; more < 6; ++more) // with a queue the last ones are BUSY
    peer.send_frame(kOneShot, {1});
  std::this_thread::sleep_for(1500ms); // several looks, longer than the least time
  const std::string text = read_file(err());
  EXPECT_EQ(lines(), before + 1) << text;
  EXPECT_TRUE(contains(text, "cudaq-realtime: decoder 6: the decode of a request has taken ")) << text;
  EXPECT_TRUE(contains(text, " so far, its deadline is 1.00 ms; later requests for this decoder wait\n")) << text;
}

/// Not BUSY of the server, after which the requester would send its bits in another request.
TEST_F(Serve, HasNoRoomForACopyOfARequestThatFillsTheQueue) {
  write(yaml(), "decoders:\n  - id: 6\n    type: " + std::string(CUDAQ_TEST_STUCK_DECODER) + "\n    dem: |\n" +
                    model(0) + "    queue_length: 1\n");
  running_program server({"serve", "--config", yaml(), "--transport", CUDAQ_UDP_PROVIDER, "--", "--port=0"}, err());
  const std::string ready = server.line();
  ASSERT_TRUE(contains(ready, "QEC_DECODING_SERVER_READY")) << read_file(err());
  realtime::test::udp_peer peer(static_cast<std::uint32_t>(std::stoul(value_in(ready, "port"))));
  const bytes frame = realtime::test::request_bytes(kEnqueue, 1, enqueue(1, 0b1000), 256, 1000);
  peer.send(frame); // is being decoded
  peer.send(frame);
  const auto answer = peer.receive();
  ASSERT_TRUE(answer.has_value());
  const std::int32_t status = realtime::test::response_header(*answer).status;
  EXPECT_EQ(status, CUDAQ_RPC_ERR_BUSY);
}

INSTANTIATE_TEST_SUITE_P(QueueLengths, ServeLongDecode, testing::Values(0U, 4U));

} // namespace
} // namespace cudaq::realtime::tools::test

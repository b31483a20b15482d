// SPDX-License-Identifier: Apache-2.0
// Requesters that keep as many slots of the transport as they get, and another one whose decoder is free. The slots are
// those that a user gets without an option.
#include "unittests/support/program_paths.h"
#include "unittests/tools/serve/serve_fixture.h"
#include "unittests/transport/datagram/udp_peer.h"

namespace cudaq::realtime::tools::test {
namespace {

using realtime::test::udp_peer;

/// Over UDP, with these options of the provider. Decoder 1 is a stream, 5 may not end, 6 is free.
class ServeSlots : public Serve, public testing::WithParamInterface<const char *> {
protected:
  void SetUp() override {
    Serve::SetUp();
    const std::string part = "      detector(0) D0\n      error(0.1) D0 L0\n      shift_detectors(1) 1\n";
    write(yaml(), "decoders:\n  - id: 1\n    type: sliding-window:inner=lookup,commit=2,buffer=1\n    stream: true\n"
                  "    queue_length: 200\n    age_limit_us: 600000000\n    dem: |\n" +
                      part + "      repeat 100 {\n" + part + "      }\n" + part +
                      "  - id: 5\n    type: " + std::string(CUDAQ_TEST_STUCK_DECODER) + "\n    dem: |\n" + model(0) +
                      "  - id: 6\n    type: lookup\n    dem: |\n" + model(0));
  }
  std::vector<std::string> over_udp() const {
    std::vector<std::string> all{"serve",       "--config", yaml(), "--transport", CUDAQ_UDP_PROVIDER,
                                 "--end-limit", "0",        "--",   "--port=0"};
    if (*GetParam() != '\0')
      all.emplace_back(GetParam());
    return all;
  }
  /// Each answer comes, though others keep slots.
  static void use_the_free_decoder(std::uint32_t port) {
    udp_peer peer(port);
    for (std::uint32_t k = 0; k < 20; ++k) {
      peer.send(realtime::test::request_bytes(kEnqueue, k + 1, enqueue(k, 1), 256, 5000 + k));
      const auto answer = peer.receive();
      ASSERT_TRUE(answer.has_value()) << k;
      EXPECT_EQ(realtime::test::response_header(*answer).request_id, k + 1);
      EXPECT_EQ(realtime::test::response_header(*answer).status, 0);
    }
  }
};

TEST_P(ServeSlots, AreFreeForOtherDecodersWhileAHundredReadsWait) {
  running_program server(over_udp(), err());
  const std::string ready = server.line();
  ASSERT_TRUE(contains(ready, " slots=8 ")) << ready << read_file(err());
  const auto port = static_cast<std::uint32_t>(std::stoul(value_in(ready, "port")));
  udp_peer reader(port);
  for (std::uint32_t k = 0; k < 100; ++k)
    reader.send(realtime::test::request_bytes(0x75DD3F12, k + 1, numbers({1, 1, 0, 2}), 256, 1000 + k));
  for (std::uint32_t busy = 0; busy < 90; ++busy) {
    const auto answer = reader.receive();
    ASSERT_TRUE(answer.has_value()) << busy;
    EXPECT_EQ(realtime::test::response_header(*answer).status, 5);
  }
  use_the_free_decoder(port);
}

TEST_P(ServeSlots, AreFreeForOtherDecodersWhileAReadWaitsAndFunctionsThatTheServerDoesNotHaveCome) {
  running_program server(over_udp(), err());
  const std::string ready = server.line();
  ASSERT_TRUE(contains(ready, " slots=8 ")) << ready << read_file(err());
  const auto port = static_cast<std::uint32_t>(std::stoul(value_in(ready, "port")));
  udp_peer reader(port), stranger(port);
  reader.send(realtime::test::request_bytes(0x75DD3F12, 1, numbers({1, 1, 0, 2}), 256, 1000));
  for (std::uint32_t k = 0; k < 20; ++k) { // more than a lap
    stranger.send(realtime::test::request_bytes(0x12345678, k + 1, {}, 256, 2000 + k));
    const auto answer = stranger.receive();
    ASSERT_TRUE(answer.has_value()) << k;
    EXPECT_EQ(realtime::test::response_header(*answer).status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
  }
  use_the_free_decoder(port);
}

/// A ring stops before the slot of a request that is executed.
class ServeSlotsInAnyOrder : public ServeSlots {};

TEST_P(ServeSlotsInAnyOrder, AreFreeForOtherDecodersWhileABlockedRequestIsRepeated) {
  running_program server(over_udp(), err());
  const std::string ready = server.line();
  ASSERT_TRUE(contains(ready, " slots=8 ")) << ready << read_file(err());
  const auto port = static_cast<std::uint32_t>(std::stoul(value_in(ready, "port")));
  udp_peer repeater(port);
  for (std::uint32_t k = 0; k < 100; ++k)
    repeater.send(realtime::test::request_bytes(kEnqueue, 1, enqueue(1, 0b1000, 5), 256, 1000));
  for (std::uint32_t copy = 0; copy < 90; ++copy) {
    const auto answer = repeater.receive();
    ASSERT_TRUE(answer.has_value()) << copy;
    EXPECT_EQ(realtime::test::response_header(*answer).status, CUDAQ_RPC_ERR_BUSY);
  }
  use_the_free_decoder(port);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ServeSlotsInAnyOrder, testing::Values("--unified"),
                         [](const auto &) { return std::string("Unified"); });
INSTANTIATE_TEST_SUITE_P(Shapes, ServeSlots, testing::Values("", "--unified"),
                         [](const testing::TestParamInfo<const char *> &of) {
                           return std::string(*of.param == '\0' ? "Ring" : "Unified");
                         });

} // namespace
} // namespace cudaq::realtime::tools::test

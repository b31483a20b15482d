// SPDX-License-Identifier: Apache-2.0
// The client in C of docs/examples, with a server over UDP that loses datagrams, and without a server.
#include "unittests/tools/common/two_terminals.h"
#include "unittests/tools/serve/serve_fixture.h"
#include "unittests/transport/datagram/lossy_relay.h"

namespace cudaq::realtime::tools::test {
namespace {

class DecodingClient : public Serve {
protected:
  std::unique_ptr<running_program> client(std::uint32_t port, int shots) const {
    return std::make_unique<running_program>(
        std::vector<std::string>{"127.0.0.1", std::to_string(port), "6", "256", std::to_string(shots)},
        folder_.path() / "client.err", "", CUDAQ_TEST_DECODING_CLIENT);
  }
  std::string client_err() const { return read_file(folder_.path() / "client.err"); }
};

TEST_F(DecodingClient, LosesNoCorrectionOnALinkThatLosesDatagrams) {
  running_program server({"serve", "--config", yaml(), "--transport", CUDAQ_UDP_PROVIDER, "--", "--port=0"}, err());
  const std::string ready = server.line();
  ASSERT_TRUE(contains(ready, "QEC_DECODING_SERVER_READY")) << read_file(err());
  realtime::test::lossy_relay relay(static_cast<std::uint32_t>(std::stoul(value_in(ready, "port"))), {0.1, 0.1, 0.05},
                                    3);
  constexpr int kShots = 40;
  const auto program = client(relay.port(), kShots);
  const char *const expected[] = {"01", "02", "04", "08"}; // each detector has an observable of its own
  for (int shot = 0; shot < kShots; ++shot)
    ASSERT_EQ(program->line(), "shot " + std::to_string(shot) + ": detector " + std::to_string(shot % 4) +
                                   ", corrections " + expected[shot % 4])
        << client_err();
  EXPECT_EQ(program->wait(), 0) << client_err();
  EXPECT_TRUE(contains(client_err(), "requests were sent again"));
  EXPECT_FALSE(contains(client_err(), "\n0 requests"));
  EXPECT_GT(relay.lost(), 0u);
}

TEST_F(DecodingClient, EndsEarlyIfNothingListens) {
  const std::uint32_t port = unused_udp_port();
  const auto program = client(port, 1);
  EXPECT_EQ(program->wait(), 1);
  EXPECT_TRUE(contains(client_err(), "no server listens there")) << client_err();
}

} // namespace
} // namespace cudaq::realtime::tools::test

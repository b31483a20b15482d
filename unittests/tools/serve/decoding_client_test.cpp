// SPDX-License-Identifier: Apache-2.0
// The client in C of docs/examples, with a server over UDP that loses datagrams, and without a server.
#include "cudaq/qec/realtime/decoding_server_wire.h"
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

/// Answers the client's next frame with this status, and returns its id and time.
std::pair<std::uint32_t, std::uint64_t> answer_next(const detail::udp_socket &socket, std::int32_t status) {
  cudaq_rpc_header_t request{};
  detail::udp_address from;
  const auto has_come = [&] {
    from.length = sizeof(from.bytes);
    return ::recvfrom(socket.fd(), &request, sizeof(request), MSG_DONTWAIT, from.get(), &from.length) ==
           static_cast<ssize_t>(sizeof(request));
  };
  EXPECT_TRUE(realtime::test::eventually(has_come));
  const std::uint32_t id = request.request_id;
  const std::uint64_t time = request.ptp_timestamp;
  const cudaq_rpc_response_t answer = {CUDAQ_RPC_MAGIC_RESPONSE, status, 0, id, time};
  EXPECT_EQ(::sendto(socket.fd(), &answer, sizeof(answer), 0, from.get(), from.length),
            static_cast<ssize_t>(sizeof(answer)));
  return {id, time};
}

TEST_F(DecodingClient, SendsAnotherRequestAfterBusyAndTheSameFrameIfThereWasNoRoomForIt) {
  detail::udp_address any;
  detail::udp_socket server;
  ASSERT_EQ(detail::udp_address_of("any", "127.0.0.1", 0, any).text(), "");
  ASSERT_EQ(server.open(any, 0).text(), "");
  const auto program = client(server.port(), 1);
  const auto first = answer_next(server, CUDAQ_QEC_SERVER_BUSY);
  auto second = first;
  while (second == first && !HasFailure()) // the client may have repeated the first one before its answer
    second = answer_next(server, CUDAQ_RPC_ERR_BUSY);
  EXPECT_NE(second.first, first.first);
  EXPECT_GT(second.second, first.second);
  EXPECT_EQ(answer_next(server, CUDAQ_QEC_SERVER_INVALID_DECODER), second);
  EXPECT_EQ(program->wait(), 1);
  EXPECT_TRUE(contains(client_err(), "describe_decoder: status 1")) << client_err();
}

TEST_F(DecodingClient, EndsEarlyIfNothingListens) {
  const std::uint32_t port = unused_udp_port();
  const auto program = client(port, 1);
  EXPECT_EQ(program->wait(), 1);
  EXPECT_TRUE(contains(client_err(), "no server listens at 127.0.0.1, port")) << client_err();
}

} // namespace
} // namespace cudaq::realtime::tools::test

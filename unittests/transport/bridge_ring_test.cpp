// SPDX-License-Identifier: Apache-2.0
// Providers of each version serve requests end to end: a peer on a local socket, the provider's ring, a dispatcher.
#include "unittests/support/provider_dispatcher.h"
#include "unittests/transport/bridge_fixture.h"

#include <optional>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace cudaq::realtime::test {
namespace {

/// The control system at the other end of the socket.
class socket_peer {
public:
  explicit socket_peer(const std::string &path) : fd_(socket(AF_UNIX, SOCK_SEQPACKET, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const timeval limit{20, 0};
    for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO})
      EXPECT_EQ(setsockopt(fd_, SOL_SOCKET, option, &limit, sizeof(limit)), 0);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr *>(&address), sizeof(address)), 0);
  }
  ~socket_peer() { close(fd_); }
  socket_peer(const socket_peer &) = delete;
  socket_peer &operator=(const socket_peer &) = delete;

  void request(std::uint32_t function, std::uint32_t id, const std::string &payload,
               std::uint32_t magic = CUDAQ_RPC_MAGIC_REQUEST) {
    cudaq_rpc_header_t header{};
    header.magic = magic;
    header.function_id = function;
    header.arg_len = static_cast<std::uint32_t>(payload.size());
    header.request_id = id;
    raw(std::string(reinterpret_cast<const char *>(&header), sizeof(header)) + payload);
  }
  void raw(const std::string &message) {
    EXPECT_EQ(send(fd_, message.data(), message.size(), MSG_NOSIGNAL), static_cast<ssize_t>(message.size()));
  }
  /// The next answer: its header, and the result.
  std::pair<cudaq_rpc_response_t, std::string> answer() {
    char frame[4096];
    cudaq_rpc_response_t header{};
    const ssize_t n = recv(fd_, frame, sizeof(frame), 0);
    if (n < static_cast<ssize_t>(sizeof(header))) {
      ADD_FAILURE() << "no answer: " << n;
      return {};
    }
    std::memcpy(&header, frame, sizeof(header));
    return {header, std::string(frame + sizeof(header), static_cast<std::size_t>(n) - sizeof(header))};
  }

private:
  int fd_;
};

/// A server in the order of docs/transport/transports.md, up to the start of the dispatcher.
class BridgeRing : public ::testing::TestWithParam<int> {
protected:
  void SetUp() override {
    path_ = "/tmp/bridge_ring." + std::to_string(getpid()) + "." + std::to_string(GetParam());
    std::string options[] = {"--socket=" + path_, "--num-slots=4", "--slot-size=128"};
    char *argv[] = {options[0].data(), options[1].data(), options[2].data()};
    CUDAQ_ASSERT_OK(cudaq_bridge_create_from_library(
        &bridge_, double_library("socket_v" + std::to_string(GetParam())).c_str(), 3, argv));
    cudaq_dispatcher_config_t config = host_config({4, 128, false});
    if (GetParam() >= 2) {
      config.num_slots = config.slot_size = 0;
      CUDAQ_ASSERT_OK(cudaq_bridge_get_ring_geometry(bridge_, &config.num_slots, &config.slot_size));
      char endpoint[256];
      CUDAQ_ASSERT_OK(cudaq_bridge_get_endpoint_info(bridge_, endpoint, sizeof(endpoint)));
      EXPECT_EQ(endpoint, "transport=socket path=" + path_);
    }
    config.skip_tx_markers = 1;
    auto ring = cudaq_ringbuffer_t{};
    CUDAQ_ASSERT_OK(cudaq_bridge_get_transport_context(bridge_, RING_BUFFER, &ring));
    dispatcher_.emplace(config, ring, nullptr, function_v2(7, increment_handler));
  }
  void TearDown() override {
    dispatcher_.reset();
    CUDAQ_EXPECT_OK(cudaq_bridge_disconnect(bridge_));
    CUDAQ_EXPECT_OK(cudaq_bridge_destroy(bridge_));
    EXPECT_NE(access(path_.c_str(), F_OK), 0) << "the provider has left its socket";
  }
  void connect_and_launch() {
    CUDAQ_ASSERT_OK(cudaq_bridge_connect_timeout(bridge_, ms(20000)));
    CUDAQ_ASSERT_OK(cudaq_bridge_launch(bridge_));
  }

  std::string path_;
  cudaq_realtime_bridge_handle_t bridge_ = nullptr;
  std::optional<provider_dispatcher> dispatcher_;
};

TEST_P(BridgeRing, ServesRequestsOfAPeer) {
  EXPECT_EQ(cudaq_bridge_connect_timeout(bridge_, ms(1)), CUDAQ_ERR_TIMEOUT) << "there is no peer yet";
  socket_peer peer(path_);
  ASSERT_NO_FATAL_FAILURE(connect_and_launch());
  for (std::uint32_t id = 1; id <= 1000; ++id) {
    const std::string payload(id % 104, static_cast<char>('a' + id % 20));
    peer.request(7, id, payload);
    const auto [header, result] = peer.answer();
    ASSERT_EQ(header.request_id, id);
    ASSERT_EQ(header.status, 0);
    ASSERT_EQ(result, std::string(id % 104, static_cast<char>('b' + id % 20)));
  }
}

TEST_P(BridgeRing, ServesABurstThatIsLongerThanTheRing) {
  socket_peer peer(path_);
  ASSERT_NO_FATAL_FAILURE(connect_and_launch());
  constexpr std::uint32_t kBurst = 60;
  for (std::uint32_t id = 1; id <= kBurst; ++id)
    peer.request(7, id, std::string(8, static_cast<char>(id)));
  for (std::uint32_t id = 1; id <= kBurst; ++id) {
    const auto [header, result] = peer.answer();
    ASSERT_EQ(header.request_id, id);
    ASSERT_EQ(result, std::string(8, static_cast<char>(id + 1)));
  }
}

TEST_P(BridgeRing, AnswersNeitherBadFramesNorUnknownFunctions) {
  socket_peer peer(path_);
  ASSERT_NO_FATAL_FAILURE(connect_and_launch());
  peer.request(7, 1, "abc", 0x12345678); // wrong magic
  peer.request(8, 2, "abc");             // unknown function
  peer.raw("short");
  peer.raw(std::string(129, 'x')); // longer than a slot
  peer.request(7, 3, "abc");
  const auto [header, result] = peer.answer();
  EXPECT_EQ(header.request_id, 3u);
  EXPECT_EQ(result, "bcd");
}

TEST_P(BridgeRing, AnswersAndCountsARequestThatIsLongerThanASlot) {
  socket_peer peer(path_);
  ASSERT_NO_FATAL_FAILURE(connect_and_launch());
  peer.request(7, 4, std::string(105, 'x')); // one byte more than a slot
  const auto [header, result] = peer.answer();
  EXPECT_EQ(header.request_id, 4u);
  EXPECT_EQ(header.status, CUDAQ_RPC_ERR_BAD_ARG_LEN);
  if (GetParam() >= 2) {
    char endpoint[256];
    CUDAQ_ASSERT_OK(cudaq_bridge_get_endpoint_info(bridge_, endpoint, sizeof(endpoint)));
    EXPECT_EQ(endpoint, "transport=socket path=" + path_ + " too_long=1");
  }
}

TEST_P(BridgeRing, HasOneShapeOnly) {
  cudaq_unified_dispatch_ctx_t unified;
  EXPECT_EQ(cudaq_bridge_get_transport_context(bridge_, UNIFIED, &unified), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_TRUE(error_names({"this provider has the shape ring"}));
  cudaq_cpu_dataplane_t plane;
  EXPECT_EQ(cudaq_bridge_get_cpu_dataplane(bridge_, &plane), CUDAQ_ERR_UNSUPPORTED);
}

TEST_P(BridgeRing, ConnectIsCancelledWhileNoPeerComes) {
  cudaq_status_t connected = CUDAQ_OK;
  std::thread waiting([&] { connected = cudaq_bridge_connect(bridge_); });
  CUDAQ_EXPECT_OK(cudaq_bridge_disconnect(bridge_));
  waiting.join();
  EXPECT_EQ(connected, CUDAQ_ERR_STATE);
}

TEST_P(BridgeRing, WrongOptionIsRefusedWithTheProvidersText) {
  std::string option = "--no-such-option=1";
  char *argv[] = {option.data()};
  cudaq_realtime_bridge_handle_t other = nullptr;
  EXPECT_EQ(cudaq_bridge_create_from_library(&other, double_library("socket_v" + std::to_string(GetParam())).c_str(), 1,
                                             argv),
            CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"option --no-such-option=1: allowed: --socket=PATH"}));
  EXPECT_EQ(other, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Versions, BridgeRing, ::testing::Values(1, 2, 3), ::testing::PrintToStringParamName());

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The end of a node over UCX while others connect to it.
#include "unittests/support/program_paths.h"
#include "unittests/transport/datagram/datagram_provider_library.h"

#include <arpa/inet.h>
#include <array>
#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>
#include <iterator>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::test {
namespace {

/// A connection on which no request of UCX has arrived yet.
class half_connection {
public:
  explicit half_connection(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr *>(&address), sizeof address), 0);
  }
  ~half_connection() { close(fd_); }
  half_connection(const half_connection &) = delete;
  half_connection &operator=(const half_connection &) = delete;
  /// UCX calls its listener after these: the length of the request, a status, and the request.
  void complete() const {
    std::array<std::uint8_t, 80> request{64};
    (void)send(fd_, request.data(), request.size(), MSG_NOSIGNAL); // fails when the node has ended the connection
  }

private:
  const int fd_;
};

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

// UCX 1.13 uses its listener also after its end, when such a request arrives: the process ended by SIGSEGV.
TEST(UcxNode, EndsWhileConnectionsBecomeRequests) {
  const datagram_provider_library library(CUDAQ_UCX_PROVIDER);
  ASSERT_NE(library.table, nullptr) << library.error;
  std::ptrdiff_t before = 0;
  for (int round = 0; round < 100; ++round) {
    cudaq_realtime_bridge_handle_t node = nullptr;
    ASSERT_EQ(library.create({"--tls=tcp"}, node), CUDAQ_OK) << library.error_text();
    {
      std::vector<std::unique_ptr<half_connection>> connections;
      for (int k = 0; k < 64; ++k)
        connections.push_back(std::make_unique<half_connection>(
            static_cast<std::uint16_t>(std::stoi(value_of(library.endpoint(node), "port")))));
      ASSERT_EQ(library.table->disconnect(node), CUDAQ_OK); // from here on it accepts no request
      std::thread requester([&] {
        for (const auto &connection : connections)
          connection->complete();
      });
      EXPECT_EQ(library.table->destroy(node), CUDAQ_OK);
      requester.join();
    }
    if (round == 0) // UCX keeps some for the next node
      before = open_descriptors();
  }
  EXPECT_EQ(open_descriptors(), before) << "a connection was left open";
}

} // namespace
} // namespace cudaq::realtime::test

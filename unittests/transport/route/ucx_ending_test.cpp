// SPDX-License-Identifier: Apache-2.0
// The end of a node over UCX while others connect to it.
#include "unittests/support/host_fixture.h"
#include "unittests/support/program_paths.h"
#include "unittests/transport/no_files_left.h"
#include "unittests/transport/provider_library.h"
#include "unittests/transport/route/loopback_socket.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>

namespace cudaq::realtime::test {
namespace {

std::ptrdiff_t entries_of(const char *folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}
std::ptrdiff_t open_descriptors() { return entries_of("/proc/self/fd"); }

/// UCX calls its listener after these: the length of the request, a status, and the request.
void complete(const loopback_socket &connection) {
  std::array<std::uint8_t, 80> request{64};
  (void)send(connection.fd(), request.data(), request.size(), MSG_NOSIGNAL); // fails when the node has ended it
}

/// UCX 1.13 uses its listener also after its end, when such a request arrives: the process ended by SIGSEGV.
struct UcxNode : ::testing::Test {
  static constexpr int kConnections = 64;

  static void SetUpTestSuite() { // UCX reads these when it is loaded
    setenv("UCX_LOG_LEVEL", "warn", 1);
    setenv("UCX_LOG_FILE", log_path().c_str(), 1);
    setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 1); // of the provider's variables, which --tls=tcp does not use
  }
  static std::string log_path() { return ::testing::TempDir() + "ucx_node_test." + std::to_string(getpid()); }
  static void TearDownTestSuite() { std::filesystem::remove(log_path()); }

  void SetUp() override {
    library = std::make_unique<provider_library>(CUDAQ_UCX_PROVIDER);
    ASSERT_NE(library->table, nullptr) << library->error;
    threads = entries_of("/proc/self/task");
    descriptors = open_descriptors();
  }
  void TearDown() override {
    EXPECT_TRUE(eventually([&] { return entries_of("/proc/self/task") <= threads; })) << "a thread of UCX stays";
    EXPECT_EQ(open_descriptors(), descriptors);
  }
  static std::string printed() {
    std::fflush(nullptr); // UCX's file, too
    std::ifstream log(log_path());
    EXPECT_TRUE(log.is_open());
    return {std::istreambuf_iterator<char>(log), {}};
  }
  /// A node to which kConnections were made, on which no request has arrived yet.
  void create() {
    ASSERT_EQ(library->create({"--tls=tcp"}, node), CUDAQ_OK) << library->error_text();
    port = static_cast<std::uint16_t>(std::stoi(value_of(library->endpoint(node), "port")));
    for (int k = 0; k < kConnections; ++k)
      connections.push_back(std::make_unique<loopback_socket>(loopback_socket::connected_to(port)));
  }
  /// Completes the requests, and makes others, while the node ends.
  void destroy() {
    ASSERT_EQ(library->table->disconnect(node), CUDAQ_OK); // from here on it accepts no request
    std::atomic<bool> stop{false};
    std::thread requester([&] {
      for (const auto &connection : connections)
        complete(*connection);
      while (!stop)
        if (const int fd = loopback_socket::connected_to(port); fd >= 0)
          complete(loopback_socket(fd));
    });
    EXPECT_EQ(library->table->destroy(node), CUDAQ_OK);
    stop = true;
    requester.join();
    connections.clear();
  }

  std::unique_ptr<provider_library> library;
  std::ptrdiff_t threads = 0, descriptors = 0;
  cudaq_realtime_bridge_handle_t node = nullptr;
  std::uint16_t port = 0;
  std::vector<std::unique_ptr<loopback_socket>> connections;
};

TEST_F(UcxNode, EndsWhileConnectionsBecomeRequests) {
  const std::size_t before = printed().size();
  for (int round = 0; round < 100; ++round) {
    ASSERT_NO_FATAL_FAILURE(create());
    destroy();
  }
  EXPECT_EQ(printed().substr(before), "");
}

// UCX prints what it cannot open then.
TEST_F(UcxNode, EndsWithoutAFreeDescriptor) {
  for (int round = 0; round < 50; ++round) {
    const std::ptrdiff_t none = open_descriptors();
    ASSERT_NO_FATAL_FAILURE(create());
    ASSERT_TRUE(eventually([&] { return open_descriptors() >= none + 2 * kConnections; })) << "they are accepted";
    const no_files_left limit;
    destroy();
  }
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The sockets of a listener, found among the descriptors of the process. The listener and its owner are of the test.
#include "lib/transport/ucx/tcp_listening.h"
#include "unittests/support/host_fixture.h"
#include "unittests/support/sanitized.h"
#include "unittests/transport/no_files_left.h"
#include "unittests/transport/route/loopback_socket.h"

#include <array>
#include <atomic>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace cudaq::realtime::detail::test {
namespace {

using realtime::test::eventually;
using realtime::test::loopback_socket;
using realtime::test::no_files_left;

/// Listens, and closes what it has accepted when the other side, or a shutdown, ends it: as UCX's thread does.
class server {
public:
  explicit server(in_addr_t address = htonl(INADDR_LOOPBACK)) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    at_.sin_family = AF_INET;
    at_.sin_addr.s_addr = address;
    socklen_t bytes = sizeof at_;
    EXPECT_EQ(bind(listener_.fd(), reinterpret_cast<const sockaddr *>(&at_), bytes), 0);
    EXPECT_EQ(listen(listener_.fd(), 16), 0);
    EXPECT_EQ(getsockname(listener_.fd(), reinterpret_cast<sockaddr *>(&at_), &bytes), 0);
  }
  ~server() { run_until_empty(); }
  /// A client's socket, whose connection is accepted.
  int connect() {
    const int client = loopback_socket::connected_to(ntohs(at_.sin_port));
    accepted_.push_back(accept(listener_.fd(), nullptr, nullptr));
    EXPECT_GE(accepted_.back(), 0);
    return client;
  }
  /// The owner's thread: it ends when it has closed all.
  void run() {
    thread_ = std::thread([this] {
      for (const int fd : accepted_) {
        pollfd end{fd, POLLRDHUP, 0};
        EXPECT_EQ(poll(&end, 1, 50000), 1);
        close(fd);
      }
    });
  }
  void run_until_empty() {
    if (!thread_.joinable())
      run();
    thread_.join();
    accepted_.clear();
  }
  const sockaddr_in &address() const { return at_; }
  int fd() const { return listener_.fd(); }

private:
  loopback_socket listener_;
  sockaddr_in at_{};
  std::vector<int> accepted_;
  std::thread thread_;
};

/// Those of a listener at this address.
struct sockets_of : tcp_listening {
  explicit sockets_of(const sockaddr_in &address) {
    EXPECT_EQ(reserve().text(), "");
    EXPECT_EQ(find(address).text(), "");
  }
};

bool is_open(const loopback_socket &socket) {
  char byte;
  return recv(socket.fd(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

TEST(TcpListening, FindsTheSocketThatListens) {
  const server one, other, everywhere(INADDR_ANY);
  for (const server *each : {&one, &other, &everywhere}) {
    sockets_of sockets(each->address());
    EXPECT_EQ(sockets.listener(), each->fd());
    EXPECT_TRUE(sockets.end_accepted()) << "nothing was accepted";
  }
}

TEST(TcpListening, HasNoSocketOfAnotherKind) {
  const loopback_socket datagrams(socket(AF_INET, SOCK_DGRAM, 0));
  sockaddr_in address = realtime::test::loopback(0);
  socklen_t bytes = sizeof address;
  ASSERT_EQ(bind(datagrams.fd(), reinterpret_cast<const sockaddr *>(&address), bytes), 0);
  ASSERT_EQ(getsockname(datagrams.fd(), reinterpret_cast<sockaddr *>(&address), &bytes), 0);
  sockets_of sockets(address);
  EXPECT_EQ(sockets.listener(), -1);
}

TEST(TcpListening, EndsOnlyWhatItsListenerHasAccepted) {
  for (const in_addr_t at : {htonl(INADDR_LOOPBACK), INADDR_ANY}) {
    server ending(at), other;
    const loopback_socket first(ending.connect()), second(ending.connect()), of_other(other.connect());
    sockets_of sockets(ending.address());
    EXPECT_TRUE(is_open(first));
    EXPECT_FALSE(sockets.end_accepted()) << "the owner has closed nothing";
    EXPECT_TRUE(eventually([&] { return !is_open(first) && !is_open(second); }));
    EXPECT_FALSE(sockets.end_accepted());
    ending.run_until_empty();
    EXPECT_TRUE(sockets.end_accepted());
    EXPECT_TRUE(is_open(of_other));
    const loopback_socket later(ending.connect()); // it listens still
    shutdown(later.fd(), SHUT_RDWR);
    shutdown(of_other.fd(), SHUT_RDWR);
    ending.run_until_empty();
  }
}

TEST(TcpListening, KnowsNothingBeforeItHasLooked) {
  tcp_listening sockets;
  const loopback_socket unbound(socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(sockets.reserve().text(), "");
  EXPECT_FALSE(sockets.known());
  EXPECT_FALSE(sockets.end_accepted());
}

// Sockets of other threads get the numbers that the owner closes.
TEST(TcpListening, EndsNoSocketThatGetsTheNumberOfOne) {
  if (realtime::test::kSanitized)
    GTEST_SKIP() << "ThreadSanitizer reports a copy of a descriptor that its owner closes meanwhile";
  server ending;
  std::atomic<bool> stop{false};
  std::atomic<int> ended{0};
  std::thread others([&] {
    while (!stop) {
      std::array<int, 2> pair{};
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
      char byte = 0;
      if (recv(pair[0], &byte, 1, MSG_DONTWAIT) == 0)
        ++ended;
      close(pair[0]);
      close(pair[1]);
    }
  });
  sockets_of sockets(ending.address());
  for (int round = 0; round < 50; ++round) {
    std::vector<std::unique_ptr<loopback_socket>> clients;
    for (int k = 0; k < 8; ++k)
      clients.push_back(std::make_unique<loopback_socket>(ending.connect()));
    ending.run();
    EXPECT_TRUE(eventually([&] { return sockets.end_accepted(); }));
    ending.run_until_empty();
  }
  stop = true;
  others.join();
  EXPECT_EQ(ended, 0);
}

TEST(TcpListening, LeavesTheLocksOfFilesAlone) {
  const loopback_socket file(memfd_create("locked", MFD_CLOEXEC)); // fcntl's locks end with any descriptor of the file
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  ASSERT_EQ(fcntl(file.fd(), F_SETLK, &whole), 0);
  server ending;
  sockets_of sockets(ending.address());
  EXPECT_TRUE(sockets.end_accepted());
  whole.l_pid = 0;
  ASSERT_EQ(fcntl(file.fd(), F_OFD_GETLK, &whole), 0); // of locks of another kind: those of this process count, too
  EXPECT_EQ(whole.l_type, F_WRLCK);
}

TEST(TcpListening, NeedsNoFreeDescriptorAtTheEnd) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UndefinedBehaviorSanitizer opens a pipe when it looks at an object for the first time";
#endif
  server ending;
  const loopback_socket client(ending.connect());
  sockets_of sockets(ending.address());
  const no_files_left limit;
  EXPECT_FALSE(sockets.end_accepted());
  EXPECT_TRUE(eventually([&] { return !is_open(client); }));
  ending.run_until_empty();
  EXPECT_TRUE(sockets.end_accepted());
}

TEST(TcpListening, RefusesToBeginWithoutFreeDescriptors) {
  tcp_listening sockets;
  const no_files_left limit;
  const expected<> refused = sockets.reserve();
  EXPECT_EQ(refused.status(), CUDAQ_ERR_INTERNAL);
  EXPECT_EQ(refused.text(), "the descriptors of this process cannot be read from /proc/self/fd: Too many open files");
  EXPECT_FALSE(sockets.end_accepted()) << "it cannot look";
}

TEST(TcpListening, DoesNotTakeWhatItCannotSeeAsEnded) {
  server ending;
  const loopback_socket client(ending.connect());
  sockets_of sockets(ending.address());
  rlimit before{}, none{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  none.rlim_max = before.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0); // no number can be used for a copy
  EXPECT_FALSE(sockets.end_accepted());
  EXPECT_TRUE(is_open(client));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(sockets.end_accepted());
  EXPECT_FALSE(is_open(client));
}

} // namespace
} // namespace cudaq::realtime::detail::test

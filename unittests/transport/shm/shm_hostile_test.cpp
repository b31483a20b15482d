// SPDX-License-Identifier: Apache-2.0
// Clients that mean harm: they write garbage into all memory that they share, and break the attach protocol.
#include "unittests/support/sanitized.h"
#include "unittests/support/test_scale.h"
#include "unittests/transport/shm/attach_by_hand.h"
#include "unittests/transport/shm/peers.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <array>
#include <filesystem>
#include <iterator>

namespace cudaq::realtime::test {
namespace {

/// The peer closes the connection in time.
bool is_closed(const file_handle &socket) {
  timeval limit{20, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  char byte = 0;
  const ssize_t got = ::recv(socket.get(), &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET); // reset: it did not read all
}

TEST(ShmHostile, GarbageInSharedMemoryHarmsNoOtherClient) {
  const std::string name = own_name("scribble");
  for (const char *wait : {"--wait-us=0", "--wait-us=500"}) {
    peer_server server("unified", name, {"--max-clients=3", wait});
    peer_client good({"stream", name, "8"});
    ASSERT_EQ(good.line(), "GO");
    for (int seed = 0; seed < (kSanitized ? 2 : 4); ++seed) {
      peer_client one({"scribble", name, std::to_string(seed)}), two({"scribble", name, std::to_string(seed + 100)});
      ASSERT_EQ(one.line(), "GO");
      ASSERT_EQ(two.line(), "GO");
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
      one.kill(); // its ring is used by the next one
      two.close_input();
      EXPECT_EQ(two.wait(), 0);
      ASSERT_TRUE(server.runs());
    }
    peer_client later({"send", name, "500", "8"}); // in a ring that was full of garbage
    EXPECT_EQ(later.done(), 500u);
    good.close_input();
    EXPECT_GT(good.done(), 1u);
    server.stop();
  }
}

TEST(ShmHostile, AClientThatKeepsItsMemoryCannotReachItsSuccessor) {
  if (kEmulated)
    GTEST_SKIP() << "qemu-user makes no second mapping of the same memory";
  const std::string name = own_name("keeps");
  peer_server server("unified", name, {"--max-clients=1"});
  shm_client old(name);
  ASSERT_EQ(old.status, CUDAQ_OK) << old.text;
  void *kept = ::mremap(const_cast<std::uint64_t *>(old.ring.rx_flags_host) - 16, 0, 4096, MREMAP_MAYMOVE); // a copy
  ASSERT_NE(kept, MAP_FAILED) << std::strerror(errno);
  old.detach();
  shm_client next(name);
  ASSERT_EQ(next.status, CUDAQ_OK) << next.text;
  std::memset(kept, 0xFF, 4096);
  checked_traffic traffic(next, next.num_slots);
  EXPECT_EQ(traffic.exchange(100), CUDAQ_OK) << traffic.wrong;
  ::munmap(kept, 4096);
  EXPECT_EQ(server.stop(), 100u) << "a request of the old client was served";
}

TEST(ShmHostile, AServerWhoseMemoryMayShrinkIsRefused) {
  const std::string name = own_name("unsealed");
  attach_answer what = honest_answer();
  const lying_server server(name, [&] { return what; });
  EXPECT_EQ(shm_client(name, CUDAQ_WAIT_SPIN_YIELD, 0).text, "");
  what.seals = F_SEAL_GROW;
  const shm_client refused(name, CUDAQ_WAIT_SPIN_YIELD, 0);
  EXPECT_NE(refused.text.find("lays out its memory in an unknown way"), std::string::npos) << refused.text;
}

TEST(ShmHostile, ASegmentCannotBeShrunk) {
  const std::string name = own_name("shrink");
  peer_server server("unified", name);
  const file_handle socket = connected(name);
  file_handle files[2];
  ASSERT_EQ(attach_by_hand(socket, files).status, CUDAQ_OK);
  for (const file_handle &file : files) {
    ASSERT_TRUE(file);
    EXPECT_NE(::ftruncate(file.get(), 0), 0) << "the server's next access would be its last";
    EXPECT_NE(::ftruncate(file.get(), 1 << 30), 0);
    ::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20); // allowed; reads as 0
  }
  peer_client other({"send", name, "100", "8"});
  EXPECT_EQ(other.done(), 100u);
  server.stop();
}

TEST(ShmHostile, WrongAttachRequestsAreClosedOrRefused) {
  const std::string name = own_name("junk");
  peer_server server("unified", name, {"--max-clients=1"});
  detail::shm_attach_request request;
  for (const std::size_t bytes : {std::size_t{1}, sizeof(request) - 1, sizeof(request) + 1}) {
    const file_handle socket = connected(name);
    std::vector<char> junk(bytes, 'j');
    ASSERT_TRUE(detail::send_message(socket.get(), junk.data(), junk.size()));
    EXPECT_TRUE(is_closed(socket));
  }
  const file_handle foreign = connected(name);
  request.magic = 1;
  ASSERT_TRUE(detail::send_message(foreign.get(), &request, sizeof(request)));
  EXPECT_TRUE(is_closed(foreign));

  request = {};
  request.version = 2;
  file_handle files[2];
  EXPECT_EQ(attach_by_hand(connected(name), files, request).status, CUDAQ_ERR_UNSUPPORTED);
  EXPECT_FALSE(files[0]);
  server.stop();
}

TEST(ShmHostile, AllFilesThatComeWithAMessageAreClosed) {
  if (kEmulated)
    GTEST_SKIP() << "qemu-user does not tell the receiver that the list of files was cut";
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  for (std::size_t count = 0; count <= 6; ++count) {
    int pair[2] = {-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    const file_handle sender(pair[0]), receiver(pair[1]);
    char word[8] = "attach", got[8] = {};
    const std::array<int, 6> files{0, 0, 0, 0, 0, 0};
    union {
      cmsghdr header;
      char bytes[CMSG_SPACE(sizeof(files))];
    } control{};
    iovec part{word, sizeof(word)};
    msghdr m{};
    m.msg_iov = &part, m.msg_iovlen = 1;
    if (count != 0) {
      m.msg_control = control.bytes, m.msg_controllen = CMSG_SPACE(count * sizeof(int));
      cmsghdr *head = CMSG_FIRSTHDR(&m);
      head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(count * sizeof(int));
      std::memcpy(CMSG_DATA(head), files.data(), count * sizeof(int));
    }
    ASSERT_EQ(::sendmsg(sender.get(), &m, 0), static_cast<ssize_t>(sizeof(word)));
    const auto before = open_files();
    file_handle one[1];
    const std::size_t bytes = detail::receive_some(receiver.get(), got, sizeof(got), one);
    EXPECT_EQ(bytes, count <= detail::kShmMaxFiles ? sizeof(word) : 0) << count;
    one[0].reset();
    EXPECT_EQ(open_files(), before) << count << " files";
  }
}

/// Descriptors that are sent and not received: they count for this user until the sockets close.
class descriptors_on_their_way {
public:
  explicit descriptors_on_their_way(std::size_t messages) {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    from_.reset(pair[0]), to_.reset(pair[1]);
    constexpr std::size_t kEach = 250; // the system takes 253
    alignas(cmsghdr) char control[CMSG_SPACE(kEach * sizeof(int))] = {};
    char byte = 0;
    iovec part{&byte, 1};
    msghdr m{};
    m.msg_iov = &part, m.msg_iovlen = 1;
    m.msg_control = control, m.msg_controllen = sizeof(control);
    cmsghdr *const head = CMSG_FIRSTHDR(&m);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(kEach * sizeof(int));
    const std::vector<int> same(kEach, to_.get());
    std::memcpy(CMSG_DATA(head), same.data(), kEach * sizeof(int));
    for (std::size_t n = 0; n < messages; ++n)
      EXPECT_EQ(::sendmsg(from_.get(), &m, MSG_DONTWAIT), 1) << std::strerror(errno);
  }

private:
  detail::file_handle from_, to_;
};

TEST(ShmHostile, AClientLearnsThatDescriptorsCannotBeSentAndGetsItsRingAfterThat) {
  const std::string name = own_name("onway");
  // Who may exceed the limits of resources has no limit of descriptors on their way.
  const std::string as_user = ::geteuid() == 0 ? "setpriv --bounding-set=-sys_resource,-sys_admin " : "";
  if (std::system((as_user + "true 2>/dev/null").c_str()) != 0) // NOLINT: no other thread runs
    GTEST_SKIP() << "setpriv (util-linux) is missing, or may not take capabilities away";
  server_process server(name, {"/bin/sh", "-c",
                               "ulimit -n 100 && exec " + as_user + CUDAQ_SHM_PEER + " server unified --name " + name +
                                   " --max-clients 1"});
  ASSERT_EQ(server.line().rfind("READY ", 0), 0U);
  {
    const descriptors_on_their_way flood(1);
    const shm_client refused(name, CUDAQ_WAIT_SPIN_YIELD, 200'000'000);
    EXPECT_EQ(refused.status, CUDAQ_ERR_TIMEOUT);
    EXPECT_NE(refused.text.find("the descriptors of its memory cannot be sent"), std::string::npos) << refused.text;
  }
  const shm_client client(name);
  EXPECT_EQ(client.status, CUDAQ_OK) << client.text;
}

TEST(ShmHostile, SilentConnectionsExpireAndClientsStillAttach) {
  const std::string name = own_name("silent");
  peer_server server("unified", name);
  std::vector<file_handle> silent;
  for (int i = 0; i < 100; ++i) // more than the server keeps at a time
    silent.push_back(connected(name));
  peer_client client({"send", name, "10", "8"});
  EXPECT_EQ(client.done(), 10u);
  EXPECT_TRUE(is_closed(silent[0]));
  server.stop();
}

TEST(ShmHostile, AClientThatSendsAfterItsAttachLosesItsRing) {
  const std::string name = own_name("talks");
  peer_server server("unified", name, {"--max-clients=1"});
  const file_handle socket = connected(name);
  detail::shm_attach_request request;
  file_handle files[2];
  attach_by_hand(socket, files);
  ASSERT_TRUE(detail::send_message(socket.get(), &request, sizeof(request)));
  EXPECT_TRUE(is_closed(socket));
  peer_client other({"send", name, "10", "8"});
  EXPECT_EQ(other.done(), 10u);
  server.stop();
}

} // namespace
} // namespace cudaq::realtime::test

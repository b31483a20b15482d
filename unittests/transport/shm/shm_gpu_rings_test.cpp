// SPDX-License-Identifier: Apache-2.0
// Rings with requests in the memory of a GPU (--requests gpu): server and client processes with a double of a GPU
// (shm_gpu_double.cpp), and what the real libraries refuse. On a GPU: unittests/gpu/transport.
#include "lib/transport/shm/shm_attach.h"
#include "unittests/support/host_fixture.h"
#include "unittests/support/program_paths.h"
#include "unittests/support/sanitized.h"
#include "unittests/transport/shm/peers.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>

namespace cudaq::realtime::test {
namespace {

using detail::file_handle;

class gpu_server : public started_program {
public:
  explicit gpu_server(const std::string &name, const std::vector<std::string> &options = {})
      : started_program(words({CUDAQ_SHM_GPU_SERVER, name}, options)), name_(name), host_refusal(line()) {
    EXPECT_EQ(line(), "READY") << host_refusal;
  }
  ~gpu_server() {
    started_program::kill();
    for (const char *suffix : {".sock", ".lock"})
      ::unlink(("/dev/shm/cudaq-realtime-" + name_ + suffix).c_str());
  }
  struct drops {
    int magic = -1, unknown = -1;
  };
  /// Ends the server in order. What its loop has dropped: a frame without magic for each client that has ended, though
  /// the one of the last client may not have come in time.
  drops stop() {
    close_input();
    drops d;
    const std::string dropped = line();
    EXPECT_EQ(std::sscanf(dropped.c_str(), "DROPPED %d %d", &d.magic, &d.unknown), 2) << dropped;
    EXPECT_EQ(line(), "CLEAN");
    EXPECT_EQ(wait(), 0);
    return d;
  }

private:
  const std::string name_;

public:
  const std::string host_refusal; ///< why a host dispatcher does not take the ring
};

started_program gpu_client(std::vector<std::string> words) {
  words.insert(words.begin(), CUDAQ_SHM_GPU_CLIENT);
  return started_program(std::move(words));
}

/// A client of 'send' with checked function 1.
void expect_sends(const std::string &name, std::uint32_t count, std::uint32_t window) {
  started_program client = gpu_client({"send", name, std::to_string(count), std::to_string(window), "1"});
  EXPECT_EQ(client.line(), "DONE " + std::to_string(count));
  EXPECT_EQ(client.wait(), 0);
}

file_handle connected(const std::string &name) {
  file_handle socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const sockaddr_un address = detail::shm_address(name);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)), 0);
  return socket;
}

TEST(ShmGpuRings, AHandleInAnotherProcessSendsEveryMessage) {
  for (const char *slots : {"1", "3", "64"}) {
    const std::string name = own_name("gpu");
    gpu_server server(name, {"--num-slots", slots});
    expect_sends(name, kSanitized ? 500 : 5000, 8);
    const gpu_server::drops dropped = server.stop();
    EXPECT_LE(dropped.magic, 1) << slots << " slots";
    EXPECT_EQ(dropped.unknown, 0) << slots << " slots";
  }
}

// The stores of tx and of rx = 0 are seen in any order. A client must not take an answer that is on its way for a drop.
TEST(ShmGpuRings, AClientTakesNoSlotForFreeBeforeItsLap) {
  const std::string name = own_name("gpuearly");
  const gpu_server server(name, {"--num-slots", "4"});
  started_program client = gpu_client({"early", name});
  EXPECT_EQ(client.line(), "EARLY pending taken, free available");
  EXPECT_EQ(client.wait(), 0);
}

// Each one begins at slot 0, where the server has moved the cursor by a frame without magic.
TEST(ShmGpuRings, ClientsFollowOneAnotherAlsoAfterAKill) {
  const std::string name = own_name("gpukill");
  gpu_server server(name, {"--num-slots", "5"});
  const int rounds = kSanitized ? 3 : 8;
  for (int round = 0; round < rounds; ++round) {
    started_program killed = gpu_client({"stream", name, "5", "1"});
    ASSERT_EQ(killed.line(), "GO") << "round " << round;
    ::usleep(static_cast<useconds_t>(700 * round));
    killed.kill();
    expect_sends(name, 23, 3);
  }
  started_program unknown = gpu_client({"call", name, "77", "1"});
  EXPECT_EQ(unknown.line(), "DROPPED") << "its lap has come, though no answer";
  EXPECT_EQ(unknown.wait(), 0);
  expect_sends(name, 10, 5);
  const gpu_server::drops dropped = server.stop();
  EXPECT_GE(dropped.magic, 2 * rounds + 1);
  EXPECT_LE(dropped.magic, 2 * rounds + 2);
  EXPECT_EQ(dropped.unknown, 1);
}

// Counts that no lap will reach: without the clearing, the next client would wait without limit.
TEST(ShmGpuRings, CountsThatAClientHasOverwrittenAreClearedForTheNext) {
  const std::string name = own_name("gpucounts");
  gpu_server server(name, {"--num-slots", "4"});
  expect_sends(name, 10, 4);
  std::chrono::steady_clock::time_point left; // before the socket is closed: this thread may lose its core after that
  {
    file_handle socket;
    detail::shm_attach_request request;
    detail::shm_gpu_reply reply;
    file_handle files[detail::kShmMaxFiles];
    ASSERT_TRUE(eventually([&] { // the ring of the client before becomes free
      socket = connected(name);
      return detail::send_message(socket.get(), &request, sizeof(request)) &&
             detail::receive_some(socket.get(), &reply, sizeof(reply), files) == sizeof(reply);
    }));
    ASSERT_EQ(reply.reply.status, CUDAQ_OK) << reply.reply.text;
    ASSERT_EQ(reply.reply.version, detail::kShmGpuVersion);
    void *const at = ::mmap(nullptr, reply.requests.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, files[2].get(), 0);
    ASSERT_NE(at, MAP_FAILED);
    auto *const words = static_cast<std::uint64_t *>(at);
    for (std::uint64_t i = 0; i < 4; ++i)
      words[detail::lap_distance(4) + i] = 1000 + i;
    std::memset(static_cast<std::uint8_t *>(at) + reply.reply.layout.rx_data, 0xFF, 8); // it has written a frame
    ::munmap(at, reply.requests.bytes);
    left = std::chrono::steady_clock::now();
  }
  expect_sends(name, 50, 4);
  EXPECT_GT(std::chrono::steady_clock::now() - left, std::chrono::milliseconds(500))
      << "the server waits for laps: those of a device may be on their way";
  server.stop();
}

TEST(ShmGpuRings, AHostDispatcherRefusesTheRing) {
  gpu_server server(own_name("gpuhost"));
  EXPECT_EQ(server.host_refusal.rfind("HOST ", 0), 0u);
  EXPECT_NE(server.host_refusal.find("across the bus"), std::string::npos) << server.host_refusal;
}

detail::shm_attach_reply reply_to_an_older_client(const std::string &name, std::span<file_handle> files) {
  const file_handle socket = connected(name);
  detail::shm_attach_request request;
  request.accepts = 0; // it was reserved
  EXPECT_TRUE(detail::send_message(socket.get(), &request, sizeof(request)));
  detail::shm_attach_reply reply{};
  EXPECT_TRUE(detail::receive_message(socket.get(), &reply, sizeof(reply), files));
  EXPECT_EQ(reply.version, detail::kShmVersion);
  return reply;
}

TEST(ShmGpuRings, AClientOfAnOlderLibraryIsRefusedInItsOwnVersion) {
  const std::string name = own_name("gpuold");
  gpu_server server(name);
  file_handle files[2];
  const detail::shm_attach_reply reply = reply_to_an_older_client(name, files);
  EXPECT_EQ(reply.status, CUDAQ_ERR_UNSUPPORTED);
  EXPECT_NE(std::string(reply.text).find("older"), std::string::npos) << reply.text;
  EXPECT_FALSE(files[0]);
}

TEST(ShmGpuRings, AClientOfAnOlderLibraryStillGetsARingInHostMemory) {
  const std::string name = own_name("hostold");
  peer_server server("ring", name);
  file_handle files[2];
  const detail::shm_attach_reply reply = reply_to_an_older_client(name, files);
  EXPECT_EQ(reply.status, CUDAQ_OK);
  EXPECT_TRUE(files[0] && files[1]);
}

/// Vulkan finds no driver in this process.
class without_vulkan {
public:
  without_vulkan() {
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
      const char *const before = std::getenv(kNames[i]);
      before_[i] = before == nullptr ? "" : before;
      ::setenv(kNames[i], "/nowhere.json", 1);
    }
  }
  ~without_vulkan() {
    for (std::size_t i = 0; i < std::size(kNames); ++i)
      before_[i].empty() ? ::unsetenv(kNames[i]) : ::setenv(kNames[i], before_[i].c_str(), 1);
  }
  without_vulkan(const without_vulkan &) = delete;
  without_vulkan &operator=(const without_vulkan &) = delete;

private:
  static constexpr const char *kNames[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"};
  std::string before_[2];
};

TEST(ShmGpuRings, AClientThatCannotMapTheMemoryGetsTheReason) {
  const without_vulkan here;
  const std::string name = own_name("gpureal");
  gpu_server server(name);
  const shm_client client(name);
  EXPECT_EQ(client.status, CUDAQ_ERR_UNSUPPORTED);
  EXPECT_NE(client.text.find("cannot map it"), std::string::npos) << client.text;
  EXPECT_NE(client.text.find("ulkan"), std::string::npos) << client.text;
  expect_sends(name, 10, 4); // the ring is free again
}

// The real client library, on a device of Vulkan: Debian's mesa-vulkan-drivers has one without a GPU.
TEST(ShmGpuRings, AClientMapsTheMemoryOfAVulkanDevice) {
  if (kSanitized)
    GTEST_SKIP() << "the drivers of Vulkan are not built with the sanitizer";
  const std::string name = own_name("gpuvulkan");
  started_program trial({CUDAQ_SHM_GPU_SERVER, name, "--gpu", "1"});
  const std::string first = trial.line();
  if (first.rfind("REFUSED", 0) == 0)
    GTEST_SKIP() << first;
  trial.kill();
  gpu_server server(name, {"--gpu", "1", "--num-slots", "5"});
  for (int round = 0; round < 2; ++round) {
    peer_client killed({"stream", name, "5", "1"});
    ASSERT_EQ(killed.line(), "GO");
    killed.kill();
    peer_client client({"send", name, kSanitized ? "200" : "2000", "5", "1"});
    EXPECT_EQ(client.done(), kSanitized ? 200u : 2000u);
  }
  server.stop();
}

/// Answers one request of attach in a way of its own.
class wrong_server {
public:
  using reply_function = std::function<void(int socket)>;
  wrong_server(const std::string &name, reply_function reply) : path_(detail::shm_path(name, "sock")) {
    listener_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const sockaddr_un address = detail::shm_address(name);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    thread_ = std::thread([this, reply = std::move(reply)] {
      pollfd ready{listener_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 60000) <= 0)
        return;
      const file_handle client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      detail::shm_attach_request request;
      file_handle files[1];
      if (detail::receive_message(client.get(), &request, sizeof(request), files))
        reply(client.get());
    });
  }
  ~wrong_server() {
    thread_.join();
    ::unlink(path_.c_str());
  }
  wrong_server(const wrong_server &) = delete;
  wrong_server &operator=(const wrong_server &) = delete;

private:
  const std::string path_;
  file_handle listener_;
  std::thread thread_;
};

TEST(ShmGpuRings, WrongRepliesOfAServerAreRefused) {
  const without_vulkan here;
  const std::string name = own_name("gpuwrong");
  const std::uint64_t page = detail::shm_page(false);
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const file_handle segment(::memfd_create("segment", kFlags)), bell(::memfd_create("bell", kFlags));
  detail::shm_gpu_reply good;
  good.reply.version = detail::kShmGpuVersion;
  good.reply.layout = detail::make_gpu_layout(4, 256, page);
  good.requests.bytes = 2u << 20;
  ASSERT_EQ(::ftruncate(segment.get(), static_cast<off_t>(good.reply.layout.bytes)), 0);
  ASSERT_EQ(::ftruncate(bell.get(), static_cast<off_t>(page)), 0);
  for (const file_handle *const file : {&segment, &bell}) // else the client refuses them: the server could shrink them
    ASSERT_EQ(::fcntl(file->get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const auto refused = [&](const char *words, detail::shm_gpu_reply reply, std::size_t bytes, std::size_t count) {
    const int files[] = {segment.get(), bell.get(), bell.get()};
    const wrong_server server(name, [&](int socket) { detail::send_message(socket, &reply, bytes, files, count); });
    const shm_client client(name);
    EXPECT_EQ(client.status, CUDAQ_ERR_UNSUPPORTED) << words;
    EXPECT_NE(client.text.find(words), std::string::npos) << client.text;
  };
  refused("sends no memory of a GPU", good, sizeof(good), 2);
  detail::shm_gpu_reply wrong = good;
  wrong.requests.bytes = detail::gpu_bytes(good.reply.layout) - 1;
  refused("has the size of its ring", wrong, sizeof(wrong), 3);
  refused("cannot map it", good, sizeof(good), 3); // the file is no memory of a GPU
  refused("attach protocol", good, sizeof(good.reply), 3);
  wrong = good;
  wrong.reply.version = 3;
  refused("has version 3", wrong, sizeof(wrong), 3);
  wrong = good;
  wrong.reply.layout.rx_flags = 64;
  refused("unknown way", wrong, sizeof(wrong), 3);
  wrong = good;
  wrong.reply.version = detail::kShmVersion; // its layout is that of a ring in host memory
  refused("unknown way", wrong, sizeof(wrong.reply), 2);
}

void expect_refused(std::vector<std::string> arguments, const std::string &part_of_the_text) {
  arguments.insert(arguments.begin(), {"--name", own_name("gpuoptions")});
  const provider_handle provider(arguments);
  EXPECT_EQ(provider.status, CUDAQ_ERR_INVALID_ARG) << part_of_the_text;
  EXPECT_NE(provider.text.find(part_of_the_text), std::string::npos) << provider.text;
}

TEST(ShmGpuRings, OptionsThatDoNotFitAreNamed) {
  expect_refused({"--requests", "gpu", "--pinned", "--unified"}, "unified shape");
  expect_refused({"--requests", "gpu"}, "give --pinned");
  expect_refused({"--requests", "disk"}, "disk");
  expect_refused({"--gpu", "1"}, "--pinned and --requests gpu");
  expect_refused({"--gpu", "1", "--requests", "host"}, "--pinned and --requests gpu");
}

TEST(ShmGpuRings, WithoutAGpuCreateSaysSo) {
  const provider_handle provider({"--name", own_name("nogpu"), "--requests", "gpu", "--pinned"});
  if (provider.status == CUDAQ_OK)
    GTEST_SKIP() << "this machine has a GPU whose memory clients can map";
  EXPECT_TRUE(provider.text.find("--pinned") != std::string::npos ||
              provider.text.find("--requests is gpu") != std::string::npos)
      << provider.text;
}

TEST(ShmGpuRings, TheLapsLieWhereTheLibraryLooksForThem) {
  for (std::uint32_t slots = 1; slots <= 65536; slots = slots * 3 + 1) {
    const detail::shm_layout at = detail::make_gpu_layout(slots, 264, 4096);
    ASSERT_EQ(at.tx_flags % detail::kPageBytes, detail::kFlagsOffsetInPage) << slots;
    ASSERT_LE(at.tx_flags + 2 * detail::flag_bytes(slots), at.tx_data) << slots;
    ASSERT_EQ(at.tx_data % 4096, 0u) << slots;
    ASSERT_EQ(at.rx_data % 64, 0u) << slots;
    ASSERT_GE(at.rx_data, 2 * detail::flag_bytes(slots)) << slots;
    ASSERT_EQ(at.stride, 320u);
  }
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Rings with requests in the memory of a GPU (--requests gpu): server and client processes with a double of a GPU
// (shm_gpu_double.cpp), and what the real libraries refuse. On a GPU: unittests/gpu/transport.
#include "unittests/support/host_fixture.h"
#include "unittests/support/program_paths.h"
#include "unittests/support/sanitized.h"
#include "unittests/transport/shm/attach_by_hand.h"
#include "unittests/transport/shm/peers.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <cstdio>
#include <cstdlib>

namespace cudaq::realtime::test {
namespace {

class gpu_server : public server_process {
public:
  explicit gpu_server(const std::string &name, const std::vector<std::string> &options = {})
      : server_process(name, words({CUDAQ_SHM_GPU_SERVER, name}, options)), host_refusal(line()) {
    EXPECT_EQ(line(), "READY") << host_refusal;
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

TEST(ShmGpuRings, AHandleInAnotherProcessSendsEveryMessage) {
  const struct {
    const char *slots;
    std::uint32_t messages; // both processes spin: on busy cores each full ring costs a time slice
  } rows[] = {{"1", 500}, {"3", 1500}, {"64", 5000}};
  for (const auto &[slots, messages] : rows) {
    const std::string name = own_name("gpu");
    gpu_server server(name, {"--num-slots", slots});
    expect_sends(name, kSanitized ? messages / 10 : messages, 8);
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
  detail::shm_attach_request request;
  request.accepts = 0; // it was reserved
  const detail::shm_attach_reply reply = attach_by_hand(connected(name), files, request);
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

TEST(ShmGpuRings, WrongRepliesOfAServerAreRefused) {
  const without_vulkan here;
  const std::string name = own_name("gpuwrong");
  const auto refused = [&](const char *words, const std::function<void(attach_answer &)> &change) {
    attach_answer what = honest_answer_on_gpu(256);
    what.requests.bytes = 2u << 20;
    what.gpu_bytes = 0; // the file is no memory of a GPU
    change(what);
    const lying_server server(name, [&] { return what; });
    const shm_client client(name);
    EXPECT_EQ(client.status, CUDAQ_ERR_UNSUPPORTED) << words;
    EXPECT_NE(client.text.find(words), std::string::npos) << client.text;
  };
  refused("cannot map it", [](attach_answer &) {});
  refused("sends no memory of a GPU", [](attach_answer &a) { a.files = 2; });
  refused("has the size of its ring",
          [](attach_answer &a) { a.requests.bytes = detail::gpu_bytes(a.reply.layout) - 1; });
  refused("attach protocol", [](attach_answer &a) { a.bytes = sizeof(a.reply); });
  refused("has version 3", [](attach_answer &a) { a.reply.version = 3; });
  refused("unknown way", [](attach_answer &a) { a.reply.layout.rx_flags = 64; });
  refused("unknown way", [](attach_answer &a) { // its layout is that of a ring in host memory
    a.reply.version = detail::kShmVersion;
    a.bytes = sizeof(a.reply);
    a.files = 2;
  });
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

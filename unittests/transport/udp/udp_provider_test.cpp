// SPDX-License-Identifier: Apache-2.0
// The provider's table, called as a loader calls it.
#include "unittests/support/program_paths.h"
#include "unittests/support/threads_named.h"
#include "unittests/transport/datagram/datagram_provider_library.h"
#include "unittests/transport/datagram/udp_peer.h"

#include <fstream>
#include <sched.h>

namespace cudaq::realtime::test {
namespace {

const datagram_provider_library &library() {
  static const datagram_provider_library loaded(CUDAQ_UDP_PROVIDER);
  return loaded;
}

struct UdpProvider : ::testing::Test {
  void SetUp() override { ASSERT_NE(library().table, nullptr) << library().error; }
  void TearDown() override {
    if (handle != nullptr) {
      EXPECT_EQ(library().table->destroy(handle), CUDAQ_OK) << library().error_text();
    }
  }
  cudaq_status_t create(const std::vector<std::string> &words) { return library().create(words, handle); }
  static ::testing::AssertionResult refused_with(const std::vector<std::string> &words) {
    const std::string text = library().error_text();
    for (const std::string &word : words)
      if (text.find(word) == std::string::npos)
        return ::testing::AssertionFailure() << "'" << text << "' does not contain '" << word << "'";
    return ::testing::AssertionSuccess();
  }

  cudaq_realtime_bridge_handle_t handle = nullptr;
};

TEST_F(UdpProvider, RefusesWithATextWhatItCannotOpen) {
  cudaq_realtime_bridge_handle_t none = nullptr;
  EXPECT_EQ(library().create({"--bind", "example.org"}, none), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(refused_with({"--bind 'example.org'", "numeric"}));
  EXPECT_EQ(library().create({"--bind", "192.0.2.1"}, none), CUDAQ_ERR_INTERNAL);
  EXPECT_TRUE(refused_with({"--bind 192.0.2.1", "refused"}));
  ASSERT_EQ(create({}), CUDAQ_OK);
  const std::string port = value_of(library().endpoint(handle), "port");
  EXPECT_EQ(library().create({"--port", port}, none), CUDAQ_ERR_INTERNAL);
  EXPECT_TRUE(refused_with({"--port " + port, "in use"}));
  EXPECT_EQ(none, nullptr);
}

TEST_F(UdpProvider, NamesItsAddressAndTakesASizeOfSlotsAsItIs) {
  ASSERT_EQ(create({"--slot-size=100"}), CUDAQ_OK) << library().error_text();
  const std::string line = library().endpoint(handle);
  EXPECT_EQ(value_of(line, "address"), "127.0.0.1");
  EXPECT_EQ(value_of(line, "frame_size"), "100");
  std::uint32_t slots = 0, size = 0;
  EXPECT_EQ(library().table->get_ring_geometry(handle, &slots, &size), CUDAQ_OK);
  EXPECT_EQ(size, 100u);
}

TEST_F(UdpProvider, MakesPinnedRingsOrSaysWhyNot) {
  cudaq_realtime_bridge_handle_t pinned = nullptr;
  const cudaq_status_t status = library().create({"--pinned-rings"}, pinned);
  if (status == CUDAQ_OK) { // a machine with a GPU
    EXPECT_EQ(library().table->destroy(pinned), CUDAQ_OK);
    return;
  }
  EXPECT_TRUE(status == CUDAQ_ERR_CUDA || status == CUDAQ_ERR_UNSUPPORTED) << status;
  EXPECT_TRUE(refused_with({"--pinned-rings", "--num-slots 8"}));
}

TEST_F(UdpProvider, ReturnsNoRequestToALoopAfterDisconnect) {
  ASSERT_EQ(create({"--unified"}), CUDAQ_OK);
  cudaq_cpu_dataplane_t plane{};
  ASSERT_EQ(library().table->get_cpu_dataplane(handle, &plane), CUDAQ_OK);
  EXPECT_EQ(library().table->launch(handle), CUDAQ_OK);
  EXPECT_EQ(library().table->disconnect(handle), CUDAQ_OK);
  udp_peer peer(static_cast<std::uint32_t>(std::stoul(value_of(library().endpoint(handle), "port"))));
  peer.send(request_bytes(1, 1, {1}));
  std::uint32_t slot = 0;
  for (int n = 0; n < 100; ++n)
    EXPECT_EQ(plane.rx_poll(plane.ctx, &slot), CUDAQ_RX_EMPTY);
  EXPECT_EQ(library().table->launch(handle), CUDAQ_OK);
  EXPECT_TRUE(eventually([&] { return plane.rx_poll(plane.ctx, &slot) == CUDAQ_RX_READY; }));
}

/// The list of cores in /proc of each thread of this process with this name.
std::vector<std::string> cores_of_threads(const std::string &name) {
  std::vector<std::string> all;
  for (const thread_seen &seen : threads_named(name)) {
    std::ifstream status("/proc/self/task/" + std::to_string(seen.tid) + "/status");
    const std::string key = "Cpus_allowed_list:\t";
    for (std::string line; std::getline(status, line);)
      if (line.rfind(key, 0) == 0)
        all.push_back(line.substr(key.size()));
  }
  return all;
}

TEST_F(UdpProvider, RunsItsThreadOnTheCoreAndNoOtherThread) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  int last = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed))
      last = core;
  if (CPU_COUNT(&allowed) < 2)
    GTEST_SKIP() << "this process may use one core only: there the option makes no difference";
  ASSERT_EQ(create({}), CUDAQ_OK);
  ASSERT_EQ(library().table->launch(handle), CUDAQ_OK) << library().error_text();
  const std::vector<std::string> anywhere = cores_of_threads("cudaq-udp");
  ASSERT_EQ(anywhere.size(), 1u);
  EXPECT_NE(anywhere[0], std::to_string(last)) << "without the option";
  EXPECT_EQ(library().table->destroy(handle), CUDAQ_OK);
  handle = nullptr;
  EXPECT_TRUE(eventually([] { return threads_named("cudaq-udp").empty(); }));

  ASSERT_EQ(create({"--core", std::to_string(last)}), CUDAQ_OK);
  ASSERT_EQ(library().table->launch(handle), CUDAQ_OK) << library().error_text();
  EXPECT_EQ(cores_of_threads("cudaq-udp"), std::vector<std::string>{std::to_string(last)});
  cpu_set_t now;
  ASSERT_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
  EXPECT_TRUE(CPU_EQUAL(&now, &allowed)) << "the caller's thread stays where it was";
}

TEST_F(UdpProvider, RefusesACoreThatTheMachineDoesNotHave) {
  ASSERT_EQ(create({"--core", "1000"}), CUDAQ_OK);
  EXPECT_NE(library().table->launch(handle), CUDAQ_OK);
  EXPECT_TRUE(refused_with({"core 1000"}));
}

TEST_F(UdpProvider, CountsByEndpoint) {
  ASSERT_EQ(create({}), CUDAQ_OK);
  const std::string line = library().endpoint(handle);
  cudaq_udp_statistics_t all;
  ASSERT_EQ(library().table->launch(handle), CUDAQ_OK);
  udp_peer peer(static_cast<std::uint32_t>(std::stoul(value_of(line, "port"))));
  peer.send(bytes(5));
  peer.send(bytes(256));
  peer.send(bytes(257));
  EXPECT_TRUE(eventually([&] { // a datagram is counted as received first
    return library().statistics(line, all) == CUDAQ_OK && all.dropped_short + all.dropped_magic + all.dropped_long == 3;
  }));
  EXPECT_EQ(all.received, 3u);
  EXPECT_EQ(all.struct_size, sizeof(all));
  EXPECT_EQ(all.dropped_short, 1u);
  EXPECT_EQ(all.dropped_magic, 1u);
  EXPECT_EQ(all.dropped_long, 1u);
  EXPECT_EQ(all.accepted, 0u);
  EXPECT_EQ(library().statistics("transport=udp port=1", all), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(refused_with({"no instance has this line"}));
}

} // namespace
} // namespace cudaq::realtime::test

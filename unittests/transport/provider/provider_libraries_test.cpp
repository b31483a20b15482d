// SPDX-License-Identifier: Apache-2.0
// What only one provider has, by its table: addresses and lines, threads on cores, counters by the line of an instance.
// What all have: provider_table_test.cpp.
#include "unittests/support/program_paths.h"
#include "unittests/support/threads_named.h"
#include "unittests/transport/datagram/udp_peer.h"
#include "unittests/transport/provider_library.h"

#include <fstream>
#include <sched.h>

namespace cudaq::realtime::test {
namespace {

/// A library, and an instance that is destroyed at the end.
struct LibraryTest : ::testing::Test {
  explicit LibraryTest(const char *path) : library(path) {}
  void SetUp() override { ASSERT_NE(library.table, nullptr) << library.error; }
  void TearDown() override { destroy(); }
  void destroy() {
    if (handle != nullptr) {
      EXPECT_EQ(library.table->destroy(handle), CUDAQ_OK) << library.error_text();
    }
    handle = nullptr;
  }
  cudaq_status_t create(const std::vector<std::string> &words) { return library.create(words, handle); }
  std::string line() const { return library.endpoint(handle); }
  void expect_refused(const std::vector<std::string> &words, cudaq_status_t status,
                      const std::vector<std::string> &texts) const {
    cudaq_realtime_bridge_handle_t none = nullptr;
    EXPECT_EQ(library.create(words, none), status) << words.back();
    EXPECT_TRUE(last_error_names(texts));
    EXPECT_EQ(none, nullptr);
  }
  ::testing::AssertionResult last_error_names(const std::vector<std::string> &words) const {
    const std::string text = library.error_text();
    for (const std::string &word : words)
      if (text.find(word) == std::string::npos)
        return ::testing::AssertionFailure() << "'" << text << "' does not contain '" << word << "'";
    return ::testing::AssertionSuccess();
  }

  const provider_library library;
  cudaq_realtime_bridge_handle_t handle = nullptr;
};

struct UdpProvider : LibraryTest {
  UdpProvider() : LibraryTest(CUDAQ_UDP_PROVIDER) {}
  std::uint32_t port() const { return static_cast<std::uint32_t>(std::stoul(value_of(line(), "port"))); }
};

TEST_F(UdpProvider, RefusesWithATextWhatItCannotOpen) {
  expect_refused({"--bind", "example.org"}, CUDAQ_ERR_INVALID_ARG, {"--bind 'example.org'", "numeric"});
  expect_refused({"--bind", "192.0.2.1"}, CUDAQ_ERR_INTERNAL, {"--bind 192.0.2.1", "refused"});
  ASSERT_EQ(create({}), CUDAQ_OK);
  const std::string used = std::to_string(port());
  expect_refused({"--port", used}, CUDAQ_ERR_INTERNAL, {"--port " + used, "in use"});
}

TEST_F(UdpProvider, NamesItsAddressAndTakesASizeOfSlotsAsItIs) {
  ASSERT_EQ(create({"--slot-size=100"}), CUDAQ_OK) << library.error_text();
  EXPECT_EQ(value_of(line(), "address"), "127.0.0.1");
  EXPECT_EQ(value_of(line(), "frame_size"), "100");
  std::uint32_t slots = 0, size = 0;
  EXPECT_EQ(library.table->get_ring_geometry(handle, &slots, &size), CUDAQ_OK);
  EXPECT_EQ(size, 100u);
}

TEST_F(UdpProvider, MakesPinnedRingsOrSaysWhyNot) {
  const cudaq_status_t status = create({"--pinned-rings"});
  if (status == CUDAQ_OK) // a machine with a GPU
    return;
  EXPECT_TRUE(status == CUDAQ_ERR_CUDA || status == CUDAQ_ERR_UNSUPPORTED) << status;
  EXPECT_TRUE(last_error_names({"--pinned-rings", "--num-slots 8"}));
}

TEST_F(UdpProvider, ReturnsNoRequestToALoopAfterDisconnect) {
  ASSERT_EQ(create({"--unified"}), CUDAQ_OK);
  cudaq_cpu_dataplane_t plane{};
  ASSERT_EQ(library.table->get_cpu_dataplane(handle, &plane), CUDAQ_OK);
  EXPECT_EQ(library.table->launch(handle), CUDAQ_OK);
  EXPECT_EQ(library.table->disconnect(handle), CUDAQ_OK);
  udp_peer peer(port());
  peer.send(request_bytes(1, 1, {1}));
  std::uint32_t slot = 0;
  for (int n = 0; n < 100; ++n)
    EXPECT_EQ(plane.rx_poll(plane.ctx, &slot), CUDAQ_RX_EMPTY);
  EXPECT_EQ(library.table->launch(handle), CUDAQ_OK);
  EXPECT_TRUE(eventually([&] { return plane.rx_poll(plane.ctx, &slot) == CUDAQ_RX_READY; }));
}

/// The list of cores in /proc of each thread of this process with this name.
std::vector<std::string> cores_of_threads(const std::string &name) {
  std::vector<std::string> all;
  for (const thread_seen &seen : threads_named(name)) {
    std::ifstream status("/proc/self/task/" + std::to_string(seen.tid) + "/status");
    const std::string key = "Cpus_allowed_list:\t";
    for (std::string text; std::getline(status, text);)
      if (text.rfind(key, 0) == 0)
        all.push_back(text.substr(key.size()));
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
  ASSERT_EQ(library.table->launch(handle), CUDAQ_OK) << library.error_text();
  const std::vector<std::string> anywhere = cores_of_threads("cudaq-udp");
  ASSERT_EQ(anywhere.size(), 1u);
  EXPECT_NE(anywhere[0], std::to_string(last)) << "without the option";
  destroy();
  EXPECT_TRUE(eventually([] { return threads_named("cudaq-udp").empty(); }));

  ASSERT_EQ(create({"--core", std::to_string(last)}), CUDAQ_OK);
  ASSERT_EQ(library.table->launch(handle), CUDAQ_OK) << library.error_text();
  EXPECT_EQ(cores_of_threads("cudaq-udp"), std::vector<std::string>{std::to_string(last)});
  cpu_set_t now;
  ASSERT_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
  EXPECT_TRUE(CPU_EQUAL(&now, &allowed)) << "the caller's thread stays where it was";
}

TEST_F(UdpProvider, RefusesACoreThatTheMachineDoesNotHave) {
  ASSERT_EQ(create({"--core", "1000"}), CUDAQ_OK);
  EXPECT_NE(library.table->launch(handle), CUDAQ_OK);
  EXPECT_TRUE(last_error_names({"core 1000"}));
}

TEST_F(UdpProvider, CountsByEndpoint) {
  ASSERT_EQ(create({}), CUDAQ_OK);
  cudaq_udp_statistics_t all;
  ASSERT_EQ(library.table->launch(handle), CUDAQ_OK);
  udp_peer peer(port());
  for (const std::size_t size : {5u, 256u, 257u})
    peer.send(bytes(size));
  EXPECT_TRUE(eventually([&] { // a datagram is counted as received first
    return library.statistics(line(), all) == CUDAQ_OK && all.dropped_short + all.dropped_magic + all.dropped_long == 3;
  }));
  EXPECT_EQ(all.received, 3u);
  EXPECT_EQ(all.struct_size, sizeof(all));
  EXPECT_EQ(all.dropped_short, 1u);
  EXPECT_EQ(all.dropped_magic, 1u);
  EXPECT_EQ(all.dropped_long, 1u);
  EXPECT_EQ(all.accepted, 0u);
  EXPECT_EQ(library.statistics("transport=udp port=1", all), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(last_error_names({"no instance has this line"}));
}

struct RoceProvider : LibraryTest {
  RoceProvider() : LibraryTest(CUDAQ_ROCE_PROVIDER) {}
};

TEST_F(RoceProvider, ReportsWhereAPeerWrites) {
  ASSERT_EQ(create({"--port=0", "--qp=0xABC", "--rkey=9", "--mtu=1024"}), CUDAQ_OK) << library.error_text();
  EXPECT_EQ(value_of(line(), "transport"), "roce");
  EXPECT_EQ(value_of(line(), "frame_size"), "256");
  EXPECT_EQ(value_of(line(), "qp"), "0xabc");
  EXPECT_EQ(value_of(line(), "rkey"), "0x9");
  EXPECT_EQ(value_of(line(), "buffer_addr"), "0x0");
  cudaq_roce_statistics_t packets;
  EXPECT_EQ(library.packets(line(), packets), CUDAQ_OK);
  EXPECT_EQ(packets.packets, 0u);
  EXPECT_EQ(library.packets("transport=roce", packets), CUDAQ_ERR_INVALID_ARG);
}

TEST_F(RoceProvider, RefusesAnAddressThatNoIcrcCanHave) {
  for (const char *address : {"0.0.0.0", "::1"})
    expect_refused({"--port=0", "--bind", address}, CUDAQ_ERR_INVALID_ARG, {"one IPv4 address"});
}

#if defined(CUDAQ_CPU_ROCE_PROVIDER)
/// On a machine that need not have an RDMA adapter.
struct CpuRoceLibrary : LibraryTest {
  CpuRoceLibrary() : LibraryTest(CUDAQ_CPU_ROCE_PROVIDER) {}
};

TEST_F(CpuRoceLibrary, SaysThatThereIsNoSuchAdapter) {
  EXPECT_EQ(library.table->version, 2) << "a loader of version 2 refuses a higher one";
  EXPECT_EQ(library.table->set_function_table, nullptr);
  EXPECT_NE(create({"--device=no_such_adapter"}), CUDAQ_OK);
  EXPECT_EQ(handle, nullptr);
  EXPECT_TRUE(last_error_names({"--device no_such_adapter"}));
}

TEST_F(CpuRoceLibrary, HasNoCountsOfAnInstanceThatDoesNotExist) {
  ASSERT_TRUE(library.counts_messages());
  cudaq_cpu_roce_statistics_t counts;
  EXPECT_EQ(library.messages("transport=cpu_roce", counts), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(last_error_names({"no instance has this line"}));
}
#endif

} // namespace
} // namespace cudaq::realtime::test

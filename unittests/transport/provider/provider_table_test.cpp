// SPDX-License-Identifier: Apache-2.0
// Every provider refuses a wrong call with the same status and the same text, after its own name.
#include "unittests/transport/provider_library.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <iterator>
#include <set>
#include <unistd.h>

namespace cudaq::realtime::test {
namespace {

/// udp from /.../libcudaq-realtime-bridge-udp.so; gpu-roce from the library on doubles of contrib.
std::string name_in(const std::string &path) {
  const std::string prefix = "libcudaq-realtime-bridge-", file = path.substr(path.rfind('/') + 1);
  return file.starts_with(prefix) ? file.substr(prefix.size(), file.rfind(".so") - prefix.size()) : "gpu-roce";
}

struct ProviderTable : ::testing::TestWithParam<const char *> {
  void SetUp() override { ASSERT_NE(library.table, nullptr) << library.error; }
  void TearDown() override {
    if (handle != nullptr) {
      EXPECT_EQ(library.table->disconnect(handle), CUDAQ_OK) << library.error_text();
      EXPECT_EQ(library.table->destroy(handle), CUDAQ_OK) << library.error_text();
    }
  }
  void refuses(cudaq_status_t found, cudaq_status_t expected, const std::string &text) const {
    EXPECT_EQ(found, expected);
    EXPECT_EQ(library.error_text(), name + " " + text);
  }

  const std::string name = name_in(GetParam());
  const provider_library library{GetParam()};
  cudaq_realtime_bridge_handle_t handle = nullptr;
};

TEST_P(ProviderTable, NamesTheEntryAndItsMissingHandle) {
  const auto *t = library.table;
  const auto invalid = CUDAQ_ERR_INVALID_ARG;
  char line[100];
  std::uint32_t slots = 0, size = 0;
  cudaq_cpu_dataplane_t plane{};
  cudaq_ringbuffer_t ring{};
  refuses(t->create(nullptr, 0, nullptr), invalid, "create: handle is NULL");
  refuses(t->create(&handle, 1, nullptr), invalid, "create: argc 1: argv is NULL");
  refuses(t->destroy(nullptr), invalid, "destroy: handle is NULL");
  refuses(t->connect(nullptr), invalid, "connect: handle is NULL");
  refuses(t->launch(nullptr), invalid, "launch: handle is NULL");
  refuses(t->disconnect(nullptr), invalid, "disconnect: handle is NULL");
  refuses(t->get_transport_context(nullptr, RING_BUFFER, &ring), invalid, "get_transport_context: handle is NULL");
  refuses(t->get_cpu_dataplane(nullptr, &plane), invalid, "get_cpu_dataplane: handle is NULL");
  refuses(t->get_endpoint_info(nullptr, line, sizeof(line)), invalid, "get_endpoint_info: handle is NULL");
  refuses(t->get_ring_geometry(nullptr, &slots, &size), invalid, "get_ring_geometry: handle is NULL");
}

TEST_P(ProviderTable, RefusesUnknownOptionsIfItIsStrict) {
  EXPECT_EQ(library.create({"--no-such-option=1", "--strict"}, handle), CUDAQ_ERR_INVALID_ARG);
  const std::string text = library.error_text();
  EXPECT_NE(text.find("create: '--no-such-option=1': the "), std::string::npos) << text;
  EXPECT_NE(text.find(" provider has no such option"), std::string::npos) << text;
  EXPECT_EQ(handle, nullptr);
}

/// The providers whose instances need neither an adapter nor a network; with both shapes.
struct ProviderShapes : ProviderTable {
  void create(bool unified, std::vector<std::string> words = {}) {
    if (name == "shm")
      words.insert(words.end(), {"--name", "t" + std::to_string(::getpid()) + "-table"});
    else
      words.emplace_back("--port=0"); // that of roce is fixed: two tests may run at the same time
    if (unified)
      words.emplace_back("--unified");
    ASSERT_EQ(library.create(words, handle), CUDAQ_OK) << library.error_text();
  }
};

TEST_P(ProviderShapes, NameWhatIsMissingAndWhatIsTooShort) {
  create(true);
  const auto *t = library.table;
  const auto invalid = CUDAQ_ERR_INVALID_ARG;
  char line[8];
  std::uint32_t number = 0;
  refuses(t->get_transport_context(handle, UNIFIED, nullptr), invalid, "get_transport_context: out is NULL");
  refuses(t->get_cpu_dataplane(handle, nullptr), invalid, "get_cpu_dataplane: out is NULL");
  refuses(t->get_endpoint_info(handle, nullptr, 100), invalid, "get_endpoint_info: buffer is NULL");
  const std::string bytes = std::to_string(library.endpoint(handle).size() + 1);
  refuses(t->get_endpoint_info(handle, line, sizeof(line)), invalid,
          "get_endpoint_info: length is 8: the line needs a buffer of " + bytes + " bytes");
  refuses(t->get_ring_geometry(handle, nullptr, &number), invalid, "get_ring_geometry: num_slots is NULL");
  refuses(t->get_ring_geometry(handle, &number, nullptr), invalid, "get_ring_geometry: slot_size is NULL");
  cudaq_ringbuffer_t ring{};
  for (const int kind : {2, -1})
    refuses(t->get_transport_context(handle, static_cast<cudaq_realtime_transport_context_t>(kind), &ring), invalid,
            "get_transport_context: context_type is " + std::to_string(kind) +
                ", allowed: 0 (RING_BUFFER), 1 (UNIFIED)");
}

TEST_P(ProviderShapes, RefuseTheOtherShape) {
  const auto *t = library.table;
  cudaq_ringbuffer_t ring{};
  cudaq_unified_dispatch_ctx_t unified{};
  cudaq_cpu_dataplane_t plane{};
  create(true);
  refuses(t->get_transport_context(handle, RING_BUFFER, &ring), CUDAQ_ERR_UNSUPPORTED,
          "get_transport_context: context_type 0: this instance has the shape unified (1); --unified chooses");
  std::memset(static_cast<void *>(&unified), 0xFF, sizeof(unified));
  EXPECT_EQ(t->get_transport_context(handle, UNIFIED, &unified), CUDAQ_OK);
  EXPECT_TRUE(unified.launch_fn == nullptr && unified.transport_ctx == nullptr);
  EXPECT_EQ(t->get_cpu_dataplane(handle, &plane), CUDAQ_OK);
  EXPECT_TRUE(plane.rx_poll != nullptr && plane.tx_publish != nullptr && plane.ring.rx_flags_host != nullptr);
  EXPECT_EQ(plane.tx_publish(plane.ctx, 3), CUDAQ_ERR_INVALID_ARG);
  ASSERT_EQ(t->disconnect(handle), CUDAQ_OK);
  ASSERT_EQ(t->destroy(handle), CUDAQ_OK);
  handle = nullptr;
  create(false);
  refuses(t->get_transport_context(handle, UNIFIED, &unified), CUDAQ_ERR_UNSUPPORTED,
          "get_transport_context: context_type 1: this instance has the shape ring (0); --unified chooses");
  refuses(t->get_cpu_dataplane(handle, &plane), CUDAQ_ERR_UNSUPPORTED,
          "get_cpu_dataplane: this instance has the shape ring; --unified makes a dataplane");
  EXPECT_EQ(t->get_transport_context(handle, RING_BUFFER, &ring), CUDAQ_OK);
  EXPECT_NE(ring.rx_flags_host, nullptr);
}

TEST_P(ProviderShapes, DescribeThemselvesAfterCreate) {
  create(false, {"--num-slots=4", "--slot-size", "512"});
  const std::string line = library.endpoint(handle);
  EXPECT_EQ(value_of(line, "transport"), name);
  EXPECT_EQ(value_of(line, "frame_size"), "512");
  std::uint32_t slots = 0, size = 0;
  EXPECT_EQ(library.table->get_ring_geometry(handle, &slots, &size), CUDAQ_OK);
  EXPECT_EQ(slots, 4u);
  EXPECT_EQ(size, 512u);
}

// As a server of the existing system that hands over its whole argv.
TEST_P(ProviderShapes, TakeTheArgumentsOfAWholeProgram) {
  create(false, {"./rpc_server", "--verbose=1", "--timeout", "60", "--num-slots=4"});
  const std::string line = library.endpoint(handle);
  EXPECT_EQ(value_of(line, "ignored"), "2");
  EXPECT_EQ(value_of(line, "ignored_options"), "--verbose,--timeout");
  std::uint32_t slots = 0, size = 0;
  EXPECT_EQ(library.table->get_ring_geometry(handle, &slots, &size), CUDAQ_OK);
  EXPECT_EQ(slots, 4u);
  EXPECT_EQ(size, 256u);
}

/// Those over datagrams: there is no peer whose end a disconnect would be. It ends the clients of shm for good.
struct ProviderReconnects : ProviderShapes {};

TEST_P(ProviderReconnects, LaunchAndDisconnectRepeatedlyWithoutAConnection) {
  create(false, {"--replay-window=64"});
  EXPECT_EQ(library.table->disconnect(handle), CUDAQ_OK);
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(library.table->connect(handle), CUDAQ_OK);
    EXPECT_EQ(library.table->launch(handle), CUDAQ_OK) << library.error_text();
    EXPECT_EQ(library.table->launch(handle), CUDAQ_ERR_STATE);
    EXPECT_EQ(library.table->disconnect(handle), CUDAQ_OK);
  }
  EXPECT_EQ(library.table->launch(handle), CUDAQ_OK);
  EXPECT_EQ(library.table->destroy(handle), CUDAQ_OK) << "it ends the thread";
  handle = nullptr;
}

constexpr const char *kProviders[] = {CUDAQ_PROVIDERS};

/// The paths of those with one of these names.
std::vector<const char *> providers(const std::set<std::string> &names) {
  std::vector<const char *> found;
  std::copy_if(std::begin(kProviders), std::end(kProviders), std::back_inserter(found),
               [&](const char *path) { return names.contains(name_in(path)); });
  return found;
}

std::string test_name(const ::testing::TestParamInfo<const char *> &info) {
  std::string name = name_in(info.param);
  for (char &letter : name)
    if (letter == '-')
      letter = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ProviderTable, ::testing::ValuesIn(kProviders), test_name);
// Of a list of one provider there may be none.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ProviderShapes);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ProviderReconnects);
INSTANTIATE_TEST_SUITE_P(All, ProviderShapes, ::testing::ValuesIn(providers({"shm", "udp", "roce"})), test_name);
INSTANTIATE_TEST_SUITE_P(All, ProviderReconnects, ::testing::ValuesIn(providers({"udp", "roce"})), test_name);

} // namespace
} // namespace cudaq::realtime::test

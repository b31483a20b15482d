// SPDX-License-Identifier: Apache-2.0
// What the loader makes of a provider's outputs, and of entries that a provider does not have.
#include "unittests/transport/bridge_fixture.h"

namespace cudaq::realtime::test {
namespace {

const char *const kOfVersion2[] = {"get_cpu_dataplane", "get_endpoint_info", "get_ring_geometry"};

cudaq_status_t call_entry(double_bridge &b, const std::string &name) {
  for (const bridge_call &c : all_calls())
    if (name == c.name)
      return c.call(b.handle);
  ADD_FAILURE() << name;
  return CUDAQ_OK;
}

TEST(BridgeGetters, EntriesOfLaterVersionsAreNotRead) {
  double_bridge v1({}, "double_v1"); // its table ends before an unreadable page
  for (const char *entry : kOfVersion2) {
    EXPECT_EQ(call_entry(v1, entry), CUDAQ_ERR_UNSUPPORTED) << entry;
    EXPECT_TRUE(error_names({"libbridge_double_v1.so", "its table has version 1", entry, "is of version 2"}));
  }
  for (const char *name : {"double_v1", "double_v2"}) {
    double_bridge b({}, name);
    EXPECT_EQ(call_entry(b, "set_function_table"), CUDAQ_OK) << name;
    EXPECT_EQ(b.script.logged(), "create") << name;
  }
  double_bridge v2({}, "double_v2");
  for (const char *entry : kOfVersion2)
    EXPECT_EQ(call_entry(v2, entry), CUDAQ_OK) << entry;
}

TEST(BridgeGetters, EntriesThatAreNullAreUnsupportedExceptSetFunctionTable) {
  double_bridge b({}, "double_bare");
  for (const char *entry : kOfVersion2) {
    EXPECT_EQ(call_entry(b, entry), CUDAQ_ERR_UNSUPPORTED) << entry;
    EXPECT_TRUE(error_names({"it has no", entry}));
  }
  EXPECT_EQ(call_entry(b, "set_function_table"), CUDAQ_OK);
}

TEST(BridgeGetters, NullOutputsAreRefusedByName) {
  double_bridge b;
  char line[8];
  std::uint32_t n;
  EXPECT_EQ(cudaq_bridge_get_transport_context(b.handle, RING_BUFFER, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"out is NULL"}));
  EXPECT_EQ(cudaq_bridge_get_cpu_dataplane(b.handle, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"out is NULL"}));
  EXPECT_EQ(cudaq_bridge_get_endpoint_info(b.handle, nullptr, 8), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"buffer is NULL"}));
  EXPECT_EQ(cudaq_bridge_get_endpoint_info(b.handle, line, 0), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"length is 0"}));
  EXPECT_EQ(cudaq_bridge_get_ring_geometry(b.handle, nullptr, &n), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"num_slots is NULL"}));
  EXPECT_EQ(cudaq_bridge_get_ring_geometry(b.handle, &n, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"slot_size is NULL"}));
  EXPECT_EQ(b.script.logged(), "create");
}

TEST(BridgeGetters, UnknownContextIsRefused) {
  double_bridge b;
  cudaq_ringbuffer_t ring;
  for (const int type : {2, -1}) {
    EXPECT_EQ(
        cudaq_bridge_get_transport_context(b.handle, static_cast<cudaq_realtime_transport_context_t>(type), &ring),
        CUDAQ_ERR_INVALID_ARG);
    EXPECT_TRUE(error_names({"context_type is " + std::to_string(type), "allowed: 0 (RING_BUFFER), 1 (UNIFIED)"}));
  }
}

template <class T>
T dirty() {
  T t;
  std::memset(static_cast<void *>(&t), 0xAB, sizeof(t));
  return t;
}

TEST(BridgeGetters, FieldsThatTheProviderLeavesOutAreZero) {
  double_bridge b({{"get_transport_context", act::leave_out},
                   {"get_cpu_dataplane", act::leave_out},
                   {"get_ring_geometry", act::leave_out},
                   {"get_endpoint_info", act::leave_out}});
  auto ring = dirty<cudaq_ringbuffer_t>();
  CUDAQ_ASSERT_OK(cudaq_bridge_get_transport_context(b.handle, RING_BUFFER, &ring));
  EXPECT_NE(ring.rx_flags_host, nullptr);
  EXPECT_EQ(ring.tx_flags_host, nullptr);
  EXPECT_EQ(ring.rx_data, nullptr);
  EXPECT_EQ(ring.tx_stride_sz, 0u);
  auto unified = dirty<cudaq_unified_dispatch_ctx_t>();
  CUDAQ_ASSERT_OK(cudaq_bridge_get_transport_context(b.handle, UNIFIED, &unified));
  EXPECT_EQ(unified.launch_fn, nullptr);
  EXPECT_EQ(unified.transport_ctx, nullptr);
  auto plane = dirty<cudaq_cpu_dataplane_t>();
  CUDAQ_ASSERT_OK(cudaq_bridge_get_cpu_dataplane(b.handle, &plane));
  EXPECT_EQ(plane.ctx, nullptr);
  EXPECT_EQ(plane.rx_poll, nullptr);
  EXPECT_EQ(plane.ring.tx_data_host, nullptr);
  std::uint32_t slots = 0xABABABAB, size = 0xABABABAB;
  CUDAQ_ASSERT_OK(cudaq_bridge_get_ring_geometry(b.handle, &slots, &size));
  EXPECT_EQ(slots, 4u);
  EXPECT_EQ(size, 0u);
  char line[16];
  std::memset(line, 'y', sizeof(line));
  CUDAQ_ASSERT_OK(cudaq_bridge_get_endpoint_info(b.handle, line, sizeof(line)));
  EXPECT_STREQ(line, "");
}

TEST(BridgeGetters, BothFieldsOfTheUnifiedContextAreWritten) {
  double_bridge b;
  auto unified = dirty<cudaq_unified_dispatch_ctx_t>();
  CUDAQ_ASSERT_OK(cudaq_bridge_get_transport_context(b.handle, UNIFIED, &unified));
  EXPECT_EQ(unified.launch_fn, nullptr);
  EXPECT_NE(unified.transport_ctx, nullptr);
}

TEST(BridgeGetters, OutputsStayAsTheyWereAfterAnError) {
  double_bridge b({{"get_transport_context", act::fail},
                   {"get_cpu_dataplane", act::throw_error},
                   {"get_ring_geometry", act::fail},
                   {"get_endpoint_info", act::fail}});
  auto ring = dirty<cudaq_ringbuffer_t>();
  auto plane = dirty<cudaq_cpu_dataplane_t>();
  std::uint32_t slots = 7, size = 8;
  char line[4] = "abc";
  EXPECT_EQ(cudaq_bridge_get_transport_context(b.handle, RING_BUFFER, &ring), CUDAQ_ERR_CUDA);
  EXPECT_TRUE(error_names({"get_transport_context: the double fails"}));
  EXPECT_EQ(cudaq_bridge_get_cpu_dataplane(b.handle, &plane), CUDAQ_ERR_INTERNAL);
  EXPECT_EQ(cudaq_bridge_get_ring_geometry(b.handle, &slots, &size), CUDAQ_ERR_CUDA);
  EXPECT_EQ(cudaq_bridge_get_endpoint_info(b.handle, line, sizeof(line)), CUDAQ_ERR_CUDA);
  const auto ring_before = dirty<cudaq_ringbuffer_t>();
  const auto plane_before = dirty<cudaq_cpu_dataplane_t>();
  EXPECT_EQ(std::memcmp(&ring, &ring_before, sizeof(ring)), 0);
  EXPECT_EQ(std::memcmp(&plane, &plane_before, sizeof(plane)), 0);
  EXPECT_EQ(slots, 7u);
  EXPECT_EQ(size, 8u);
  EXPECT_STREQ(line, "abc");
}

TEST(BridgeGetters, EndpointEndsWithZeroAndStaysInItsBuffer) {
  double_bridge b;
  const std::string whole = "transport=double port=1";
  for (const std::size_t length : {std::size_t{1}, std::size_t{5}, whole.size(), whole.size() + 1, std::size_t{200}}) {
    std::vector<char> buffer(length + 4, 'z');
    CUDAQ_ASSERT_OK(cudaq_bridge_get_endpoint_info(b.handle, buffer.data(), length));
    EXPECT_EQ(std::string(buffer.data()), whole.substr(0, length - 1));
    EXPECT_EQ(std::string(buffer.data() + length, 4), "zzzz");
  }
  b.script.unterminated_endpoint = true;
  for (const std::size_t length : {std::size_t{1}, std::size_t{100}, std::size_t{100000}}) {
    std::vector<char> buffer(length, 'z');
    CUDAQ_ASSERT_OK(cudaq_bridge_get_endpoint_info(b.handle, buffer.data(), length));
    EXPECT_EQ(std::strlen(buffer.data()), std::min<std::size_t>(length, 65536) - 1);
  }
  b.script.unterminated_endpoint = false;
  char line[64]; // a length that no memory has
  CUDAQ_EXPECT_OK(cudaq_bridge_get_endpoint_info(b.handle, line, SIZE_MAX));
  EXPECT_EQ(line, whole);
}

TEST(BridgeGetters, SetFunctionTableChecksArgumentsBeforeTheHandle) {
  cudaq_function_entry_t entry{};
  const cudaq_function_table_t good{&entry, 1}, no_entries{nullptr, 1}, empty{&entry, 0};
  char unknown;
  double_bridge b({}, "double_v1");
  for (void *const handle : {static_cast<void *>(&unknown), static_cast<void *>(nullptr), b.handle}) {
    EXPECT_EQ(cudaq_bridge_set_function_table(handle, nullptr), CUDAQ_ERR_INVALID_ARG);
    EXPECT_TRUE(error_names({"table is NULL"}));
    EXPECT_EQ(cudaq_bridge_set_function_table(handle, &no_entries), CUDAQ_ERR_INVALID_ARG);
    EXPECT_TRUE(error_names({"table->entries is NULL"}));
    EXPECT_EQ(cudaq_bridge_set_function_table(handle, &empty), CUDAQ_ERR_INVALID_ARG);
    EXPECT_TRUE(error_names({"table->count is 0"}));
  }
  EXPECT_EQ(cudaq_bridge_set_function_table(&unknown, &good), CUDAQ_ERR_INVALID_ARG);
  CUDAQ_EXPECT_OK(cudaq_bridge_set_function_table(b.handle, &good));
  double_bridge v3;
  CUDAQ_EXPECT_OK(cudaq_bridge_set_function_table(v3.handle, &good));
  EXPECT_EQ(v3.script.logged(), "create set_function_table");
}

} // namespace
} // namespace cudaq::realtime::test

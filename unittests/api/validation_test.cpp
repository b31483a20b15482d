// SPDX-License-Identifier: Apache-2.0
// Each rule of configuration, ring and table. A refusal names the field.
#include "unittests/support/api_fixture.h"

namespace cudaq::realtime::test {
namespace {

struct refusal {
  const char *name;
  std::function<void(cudaq_dispatcher_config_t &)> spoil;
  cudaq_status_t status;
  std::vector<std::string> words;
};
void PrintTo(const refusal &r, std::ostream *out) { *out << r.name; }

class ConfigRules : public ::testing::TestWithParam<refusal> {};

// Known failure 8.
TEST_P(ConfigRules, IsRefusedWithTheFieldNamed) {
  manager_handle manager;
  cudaq_dispatcher_config_t config = host_config({});
  GetParam().spoil(config);
  cudaq_dispatcher_t *const untouched = reinterpret_cast<cudaq_dispatcher_t *>(0x8);
  cudaq_dispatcher_t *out = untouched;
  ASSERT_EQ(cudaq_dispatcher_create(manager.get, &config, &out), GetParam().status);
  EXPECT_TRUE(error_names(GetParam().words));
  EXPECT_TRUE(error_names({"cudaq_dispatcher_create: "}));
  EXPECT_EQ(out, untouched);
}

template <class Enum>
void set_raw(Enum &field, int value) {
  std::memcpy(&field, &value, sizeof(value));
}
using config_t = cudaq_dispatcher_config_t;

INSTANTIATE_TEST_SUITE_P(
    Rules, ConfigRules,
    ::testing::Values(
        refusal{"ZeroSlots", [](config_t &c) { c.num_slots = 0; }, CUDAQ_ERR_INVALID_ARG, {"config->num_slots is 0"}},
        refusal{"TooManySlots",
                [](config_t &c) { c.num_slots = (1u << 24) + 1; },
                CUDAQ_ERR_INVALID_ARG,
                {"config->num_slots is 16777217"}},
        refusal{"SlotsMax",
                [](config_t &c) { c.num_slots = 0xFFFFFFFFu; },
                CUDAQ_ERR_INVALID_ARG,
                {"config->num_slots is 4294967295"}},
        refusal{
            "SlotSize23", [](config_t &c) { c.slot_size = 23; }, CUDAQ_ERR_INVALID_ARG, {"config->slot_size is 23"}},
        refusal{"SlotSize1", [](config_t &c) { c.slot_size = 1; }, CUDAQ_ERR_INVALID_ARG, {"config->slot_size is 1"}},
        refusal{"BadKernelType",
                [](config_t &c) { set_raw(c.kernel_type, 3); },
                CUDAQ_ERR_INVALID_ARG,
                {"config->kernel_type is 3"}},
        refusal{"NegativeKernelType",
                [](config_t &c) { set_raw(c.kernel_type, -1); },
                CUDAQ_ERR_INVALID_ARG,
                {"config->kernel_type"}},
        refusal{"BadMode",
                [](config_t &c) { set_raw(c.dispatch_mode, 7); },
                CUDAQ_ERR_INVALID_ARG,
                {"config->dispatch_mode is 7"}},
        refusal{"BadPath",
                [](config_t &c) { set_raw(c.dispatch_path, 2); },
                CUDAQ_ERR_INVALID_ARG,
                {"config->dispatch_path is 2"}},
        refusal{"Cooperative",
                [](config_t &c) { c.kernel_type = CUDAQ_KERNEL_COOPERATIVE; },
                CUDAQ_ERR_UNSUPPORTED,
                {"config->kernel_type is 1"}}),
    [](const auto &tested) { return std::string(tested.param.name); });

struct ring_refusal {
  const char *name;
  std::function<void(cudaq_ringbuffer_t &, cudaq_dispatcher_config_t &)> spoil;
  std::vector<std::string> words;
};
void PrintTo(const ring_refusal &r, std::ostream *out) { *out << r.name; }

class RingRules : public ::testing::TestWithParam<ring_refusal> {};

// Known failure 8.
TEST_P(RingRules, IsRefusedWithTheFieldNamed) {
  host_ring memory({8, 256, false});
  manager_handle manager;
  cudaq_dispatcher_config_t config = host_config(memory.shape());
  cudaq_ringbuffer_t ring = memory.ring;
  GetParam().spoil(ring, config);
  cudaq_dispatcher_t *d = nullptr;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_create(manager.get, &config, &d));
  EXPECT_EQ(cudaq_dispatcher_set_ringbuffer(d, &ring), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names(GetParam().words));
  EXPECT_TRUE(error_names({"cudaq_dispatcher_set_ringbuffer: "}));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(d));
}

using ring_t = cudaq_ringbuffer_t;
std::uint8_t *bytes(volatile std::uint64_t *p) {
  return reinterpret_cast<std::uint8_t *>(reinterpret_cast<std::uintptr_t>(p));
}
volatile std::uint64_t *flags(std::uint8_t *p) { return reinterpret_cast<volatile std::uint64_t *>(p); }

INSTANTIATE_TEST_SUITE_P(
    Rules, RingRules,
    ::testing::Values(
        ring_refusal{"NoRxFlags", [](ring_t &r, config_t &) { r.rx_flags_host = nullptr; }, {"rx_flags_host is NULL"}},
        ring_refusal{"NoTxFlags", [](ring_t &r, config_t &) { r.tx_flags_host = nullptr; }, {"tx_flags_host is NULL"}},
        ring_refusal{"NoRxData", [](ring_t &r, config_t &) { r.rx_data_host = nullptr; }, {"rx_data_host is NULL"}},
        ring_refusal{"HalfInPlace",
                     [](ring_t &r, config_t &) { r.tx_data = r.tx_data_host; r.tx_data_host = nullptr; },
                     {"tx_data_host is NULL", "tx_data"}},
        ring_refusal{"SameFlags", [](ring_t &r, config_t &) { r.tx_flags_host = r.rx_flags_host; },
                     {"rx_flags_host and tx_flags_host are the same"}},
        ring_refusal{"RxFlagsMisaligned",
                     [](ring_t &r, config_t &) { r.rx_flags_host = flags(bytes(r.rx_flags_host) + 4); },
                     {"rx_flags_host", "not a multiple of 8"}},
        ring_refusal{"TxFlagsMisaligned",
                     [](ring_t &r, config_t &) { r.tx_flags_host = flags(bytes(r.tx_flags_host) + 1); },
                     {"tx_flags_host", "not a multiple of 8"}},
        ring_refusal{"RxDataMisaligned", [](ring_t &r, config_t &) { r.rx_data_host += 2; },
                     {"rx_data_host", "not a multiple of 8"}},
        ring_refusal{"TxDataMisaligned", [](ring_t &r, config_t &) { r.tx_data_host += 7; },
                     {"tx_data_host", "not a multiple of 8"}},
        ring_refusal{"NoStride", [](ring_t &r, config_t &c) { r.rx_stride_sz = r.tx_stride_sz = c.slot_size = 0; },
                     {"rx_stride_sz is 0"}},
        ring_refusal{"RxStrideShort", [](ring_t &r, config_t &) { r.rx_stride_sz = 16; }, {"rx_stride_sz is 16"}},
        ring_refusal{"RxStrideOdd", [](ring_t &r, config_t &) { r.rx_stride_sz = 260; },
                     {"rx_stride_sz is 260", "multiple of 8"}},
        ring_refusal{"TxStrideOdd", [](ring_t &r, config_t &) { r.tx_stride_sz = 257; },
                     {"tx_stride_sz is 257", "multiple of 8"}},
        ring_refusal{"TxStrideZero", [](ring_t &r, config_t &) { r.tx_stride_sz = 0; }, {"tx_stride_sz is 0"}},
        ring_refusal{"SlotLargerThanRxStride", [](ring_t &r, config_t &) { r.rx_stride_sz = 248; },
                     {"rx_stride_sz is 248", "slot_size 256"}},
        ring_refusal{"SlotLargerThanTxStride",
                     [](ring_t &, config_t &c) { c.slot_size = 257; }, {"stride", "slot_size 257"}},
        ring_refusal{"InPlaceWithOtherTxStride",
                     [](ring_t &r, config_t &) { r.tx_data_host = nullptr; r.tx_stride_sz = 128; },
                     {"tx_stride_sz is 128", "in place"}},
        ring_refusal{"StrideOver4GiB", [](ring_t &r, config_t &c) { c.slot_size = 0; r.rx_stride_sz = 1ull << 32; },
                     {"rx_stride_sz is 4294967296"}},
        ring_refusal{"StrideTimesSlotsOverflows", [](ring_t &r, config_t &) { r.rx_stride_sz = 1ull << 61; },
                     {"rx_stride_sz"}},
        ring_refusal{"StrideReachesRoundTheAddressSpace",
                     [](ring_t &r, config_t &) { r.rx_stride_sz = (1ull << 61) - 8; },
                     {"rx_stride_sz"}},
        ring_refusal{"DataOverlap", [](ring_t &r, config_t &) { r.tx_data_host = r.rx_data_host + 256; },
                     {"rx_data_host and tx_data_host overlap"}},
        ring_refusal{"DataOverlapBackwards", [](ring_t &r, config_t &) { r.rx_data_host = r.tx_data_host + 7 * 256; },
                     {"rx_data_host and tx_data_host overlap"}},
        ring_refusal{"FlagsOverlap", [](ring_t &r, config_t &) { r.tx_flags_host = r.rx_flags_host + 7; },
                     {"rx_flags_host and tx_flags_host overlap"}},
        ring_refusal{"FlagsInsideData", [](ring_t &r, config_t &) { r.tx_flags_host = flags(r.rx_data_host + 2040); },
                     {"tx_flags_host and rx_data_host overlap"}}),
    [](const auto &tested) { return std::string(tested.param.name); });

TEST(HostPathConfig, MayNameNoDeviceAndNoStrideOfRequests) {
  host_ring memory({4, 64, false});
  manager_handle manager;
  cudaq_dispatcher_config_t config = host_config(memory.shape());
  config.device_id = -1;
  for (const bool by_slot_size : {true, false}) {
    host_ring named(memory.shape());
    const std::size_t stride = named.ring.rx_stride_sz;
    named.ring.rx_stride_sz = 0;
    config.slot_size = by_slot_size ? static_cast<std::uint32_t>(stride) : 0;
    host_dispatcher_handle dispatcher(manager.get, named, {host_entry("reverse", reverse_handler)}, config);
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher.get));
    named.ring.rx_stride_sz = stride;
    ring_client client(named);
    for (int k = 0; k < 9; ++k)
      EXPECT_EQ(client.call(fnv1a_hash("reverse"), {1, 2}).result, (std::vector<std::uint8_t>{2, 1}));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(dispatcher.get));
  }
}

/// Starts a dispatcher with the table `entries`, which must be refused. Then the same dispatcher runs with a good
/// table.
void expect_table_refused(std::vector<cudaq_function_entry_t> entries, const std::vector<std::string> &words) {
  bench b({4, 128, false});
  const cudaq_function_table_t table{entries.data(), static_cast<std::uint32_t>(entries.size())};
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_function_table(b.get(), &table));
  EXPECT_EQ(cudaq_dispatcher_start(b.get()), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names(words));
  EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_WIRED);
  entries.resize(1);
  entries[0] = host_entry("good", reverse_handler);
  const cudaq_function_table_t good{entries.data(), 1};
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_function_table(b.get(), &good));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(b.get()));
  EXPECT_EQ(b.client.call(fnv1a_hash("good"), {1, 2}).result, (std::vector<std::uint8_t>{2, 1}));
}

cudaq_function_entry_t graph_entry(std::uint32_t id, std::uint64_t key) {
  cudaq_function_entry_t e{};
  e.function_id = id;
  e.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
  e.routing_key = key;
  return e;
}

// Known failure 8.
TEST(TableRules, RefusesNullHandlerBadModeAndBadSchemaCounts) {
  const cudaq_function_entry_t good = host_entry("a", reverse_handler);
  expect_table_refused({good, host_entry("b", nullptr)}, {"table->entries[1].handler.host_fn is NULL"});
  cudaq_function_entry_t bad = good;
  bad.dispatch_mode = 3;
  expect_table_refused({bad}, {"table->entries[0].dispatch_mode is 3"});
  bad = good;
  bad.schema.num_args = 9;
  expect_table_refused({bad}, {"schema.num_args is 9", "at most 8"});
  bad = good;
  bad.schema.num_results = 255;
  expect_table_refused({bad}, {"schema.num_results is 255", "at most 4"});
}

TEST(TableRules, RefusesDuplicatesAndMixedModes) {
  const cudaq_function_entry_t good = host_entry("a", reverse_handler);
  expect_table_refused({good, host_entry("b", reverse_handler), good}, {"entries", "0", "2", "same routing key"});
  cudaq_function_entry_t keyed = good;
  keyed.routing_key = 5; // a key means nothing here: only GRAPH_LAUNCH entries of one id and key are a pool
  expect_table_refused({good, keyed}, {"0x", "same routing key"});
  cudaq_function_entry_t mixed = good;
  mixed.function_id = 1;
  expect_table_refused({graph_entry(1, 5), mixed}, {"0x00000001", "different dispatch modes"});
}

TEST(TableRules, RefusesNullEntriesWithACount) {
  bench b;
  const cudaq_function_table_t table{nullptr, 3};
  EXPECT_EQ(cudaq_dispatcher_set_function_table(b.get(), &table), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"table->entries is NULL", "count is 3"}));
}

TEST(TableRules, RefusesAV2HandlerWhoseIdTheTableCarriesToo) {
  bench b({4, 128, false}, {host_entry("a", reverse_handler)});
  b.on(fnv1a_hash("a"), [](cudaq_host_call_t &) { return 0; });
  EXPECT_EQ(cudaq_dispatcher_start(b.get()), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"0xe40c292c", "v2"}));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_host_handler_v2(b.get(), fnv1a_hash("a"), nullptr, nullptr, nullptr));
  b.start();
  EXPECT_EQ(b.client.call(fnv1a_hash("a"), {7}).header.status, 0);
}

TEST(TableRules, RefusesAV2HandlerWithABadSchema) {
  bench b;
  cudaq_handler_schema_t schema{};
  schema.num_results = 5;
  const auto handler = [](cudaq_host_call_t *, void *) -> std::int32_t { return 0; };
  EXPECT_EQ(cudaq_dispatcher_set_host_handler_v2(b.get(), 1, handler, nullptr, &schema), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"schema.num_results is 5"}));
}

TEST(TableRules, IsASnapshotTakenAtStart) {
  std::vector<cudaq_function_entry_t> entries{host_entry("a", reverse_handler)};
  bench b;
  const cudaq_function_table_t table{entries.data(), 1};
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_function_table(b.get(), &table));
  b.start();
  entries[0] = {};
  EXPECT_EQ(b.client.call(fnv1a_hash("a"), {1, 2}).result, (std::vector<std::uint8_t>{2, 1}));
}

// Known failure 8.
TEST(Loop, SizesThatDoNotFitAreRefusedByTheCxxForm) {
  host_ring ring({4, 128, false});
  volatile int flag = 1;
  std::uint64_t stats = 0;
  HostDispatcherConfig good = loop_over(ring.ring);
  good.rx_stride_sz = good.tx_stride_sz = 128;
  good.num_slots = 4;
  good.shutdown_flag = &flag;
  good.stats_counter = &stats;
  CUDAQ_EXPECT_OK(host_dispatcher_loop(good));
  HostDispatcherConfig bad = good;
  bad.num_slots = (1ull << 32) + 4;
  EXPECT_EQ(host_dispatcher_loop(bad), CUDAQ_ERR_INVALID_ARG);
  bad = good;
  bad.slot_size = (1ull << 32) + 128; // far larger than the stride
  EXPECT_EQ(host_dispatcher_loop(bad), CUDAQ_ERR_INVALID_ARG) << "slot_size";
  std::vector<cudaq_function_entry_t> entries{host_entry("a", reverse_handler)};
  bad = good;
  bad.function_table = entries.data();
  bad.function_table_count = 1ull << 32;
  EXPECT_EQ(host_dispatcher_loop(bad), CUDAQ_ERR_INVALID_ARG) << "function_table_count";
}

} // namespace
} // namespace cudaq::realtime::test

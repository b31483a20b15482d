// SPDX-License-Identifier: Apache-2.0
// The rows of docs/migration.md that say "same", written from the text of the specification: the signatures as printed
// there, the values of the wire, and the lines of its examples. The layout of the structs is in unittests/abi, what the
// AI services look like in unittests/qec/services/seed_names_test.cpp.
#include "cudaq/realtime/daemon/bridge/bridge_interface.h"
#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"
#include "cudaq/realtime/daemon/dispatcher/dispatch_modes.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"

#include <cstring>
#include <gtest/gtest.h>
#include <type_traits>

// Partners forward-declare the structs by their tags.
struct cudaq_ringbuffer_t;
struct cudaq_function_entry_t;
struct cudaq_function_table_t;
struct cudaq_dispatcher_config_t;
struct cudaq_handler_schema_t;
struct cudaq_type_desc_t;
struct cudaq_dispatch_graph_context;

namespace {

template <class Is, class Specified>
constexpr bool same = std::is_same_v<Is, Specified>;

// Types of functions. Extern "C" is not part of the type for this compiler.
using launch = void(volatile uint64_t *rx_flags, volatile uint64_t *tx_flags, uint8_t *rx_data, uint8_t *tx_data,
                    size_t rx_stride_sz, size_t tx_stride_sz, cudaq_function_entry_t *function_table, size_t func_count,
                    volatile int *shutdown_flag, uint64_t *stats, size_t num_slots, uint32_t num_blocks,
                    uint32_t threads_per_block, cudaStream_t stream);
static_assert(same<cudaq_dispatch_launch_fn_t, launch *>);
static_assert(same<decltype(cudaq_launch_dispatch_kernel_regular), launch>);
static_assert(same<decltype(cudaq_launch_dispatch_kernel_cooperative), launch>);
static_assert(same<cudaq_unified_launch_fn_t,
                   void (*)(void *, cudaq_function_entry_t *, size_t, volatile int *, uint64_t *, cudaStream_t)>);
static_assert(same<cudaq_host_rpc_fn_t, void (*)(const void *rx_slot, void *tx_slot, size_t slot_size)>);
static_assert(same<cudaq::realtime::DeviceRPCFunction,
                   int (*)(const void *, void *, std::uint32_t, std::uint32_t, std::uint32_t *)>);

// Functions of the host API.
static_assert(same<decltype(cudaq_dispatch_manager_create), cudaq_status_t(cudaq_dispatch_manager_t **)>);
static_assert(same<decltype(cudaq_dispatch_manager_destroy), cudaq_status_t(cudaq_dispatch_manager_t *)>);
static_assert(
    same<decltype(cudaq_dispatcher_create),
         cudaq_status_t(cudaq_dispatch_manager_t *, const cudaq_dispatcher_config_t *, cudaq_dispatcher_t **)>);
static_assert(same<decltype(cudaq_dispatcher_destroy), cudaq_status_t(cudaq_dispatcher_t *)>);
static_assert(
    same<decltype(cudaq_dispatcher_set_ringbuffer), cudaq_status_t(cudaq_dispatcher_t *, const cudaq_ringbuffer_t *)>);
static_assert(same<decltype(cudaq_dispatcher_set_function_table),
                   cudaq_status_t(cudaq_dispatcher_t *, const cudaq_function_table_t *)>);
static_assert(
    same<decltype(cudaq_dispatcher_set_control), cudaq_status_t(cudaq_dispatcher_t *, volatile int *, uint64_t *)>);
static_assert(
    same<decltype(cudaq_dispatcher_set_launch_fn), cudaq_status_t(cudaq_dispatcher_t *, cudaq_dispatch_launch_fn_t)>);
static_assert(same<decltype(cudaq_dispatcher_set_unified_launch),
                   cudaq_status_t(cudaq_dispatcher_t *, cudaq_unified_launch_fn_t, void *)>);
static_assert(same<decltype(cudaq_dispatcher_set_mailbox), cudaq_status_t(cudaq_dispatcher_t *, void **)>);
static_assert(same<decltype(cudaq_dispatcher_start), cudaq_status_t(cudaq_dispatcher_t *)>);
static_assert(same<decltype(cudaq_dispatcher_stop), cudaq_status_t(cudaq_dispatcher_t *)>);
static_assert(same<decltype(cudaq_dispatcher_get_processed), cudaq_status_t(cudaq_dispatcher_t *, uint64_t *)>);
static_assert(same<decltype(cudaq_host_release_worker), cudaq_status_t(cudaq_dispatcher_t *, int)>);
static_assert(same<decltype(cudaq_dispatch_kernel_query_occupancy), cudaError_t(int *, uint32_t)>);
static_assert(same<decltype(cudaq_dispatch_kernel_cooperative_query_occupancy), cudaError_t(int *, uint32_t)>);
static_assert(same<decltype(cudaq_dispatch_kernel_set_shared_ring_mode), cudaError_t(uint32_t)>);
static_assert(same<decltype(cudaq_create_dispatch_graph_regular),
                   cudaError_t(volatile uint64_t *, volatile uint64_t *, uint8_t *, uint8_t *, size_t, size_t,
                               cudaq_function_entry_t *, size_t, void *, volatile int *, uint64_t *, size_t, uint32_t,
                               uint32_t, cudaStream_t, cudaq_dispatch_graph_context **)>);
static_assert(same<decltype(cudaq_launch_dispatch_graph), cudaError_t(cudaq_dispatch_graph_context *, cudaStream_t)>);
static_assert(same<decltype(cudaq_destroy_dispatch_graph), cudaError_t(cudaq_dispatch_graph_context *)>);
static_assert(
    same<decltype(cudaq_host_ringbuffer_write_rpc_request),
         cudaq_status_t(const cudaq_ringbuffer_t *, uint32_t, uint32_t, const void *, uint32_t, uint32_t, uint64_t)>);
static_assert(same<decltype(cudaq_host_ringbuffer_signal_slot), void(const cudaq_ringbuffer_t *, uint32_t)>);
static_assert(
    same<decltype(cudaq_host_ringbuffer_poll_tx_flag), cudaq_tx_status_t(const cudaq_ringbuffer_t *, uint32_t, int *)>);
static_assert(same<decltype(cudaq_host_ringbuffer_slot_available), int(const cudaq_ringbuffer_t *, uint32_t)>);
static_assert(same<decltype(cudaq_host_ringbuffer_clear_slot), void(const cudaq_ringbuffer_t *, uint32_t)>);

// Values.
static_assert(CUDAQ_OK == 0 && CUDAQ_ERR_INVALID_ARG == 1 && CUDAQ_ERR_INTERNAL == 2 && CUDAQ_ERR_CUDA == 3 &&
              CUDAQ_ERR_UNSUPPORTED == 4);
static_assert(CUDAQ_DISPATCH_PATH_DEVICE == 0 && CUDAQ_DISPATCH_PATH_HOST == 1);
static_assert(CUDAQ_TX_EMPTY == 0 && CUDAQ_TX_IN_FLIGHT == 1 && CUDAQ_TX_ERROR == 2 && CUDAQ_TX_READY == 3);
static_assert(CUDAQ_KERNEL_REGULAR == 0 && CUDAQ_KERNEL_COOPERATIVE == 1 && CUDAQ_KERNEL_UNIFIED == 2);
static_assert(CUDAQ_DISPATCH_DEVICE_CALL == 0 && CUDAQ_DISPATCH_GRAPH_LAUNCH == 1 && CUDAQ_DISPATCH_HOST_CALL == 2);
static_assert(CUDAQ_TYPE_UINT8 == 0x10 && CUDAQ_TYPE_INT32 == 0x11 && CUDAQ_TYPE_INT64 == 0x12 &&
              CUDAQ_TYPE_FLOAT32 == 0x13 && CUDAQ_TYPE_FLOAT64 == 0x14 && CUDAQ_TYPE_ARRAY_UINT8 == 0x20 &&
              CUDAQ_TYPE_ARRAY_INT32 == 0x21 && CUDAQ_TYPE_ARRAY_FLOAT32 == 0x22 && CUDAQ_TYPE_ARRAY_FLOAT64 == 0x23 &&
              CUDAQ_TYPE_BIT_PACKED == 0x30);
static_assert(cudaq::realtime::TYPE_BIT_PACKED == 0x30 && cudaq::realtime::TYPE_ARRAY_FLOAT32 == 0x22 &&
              sizeof(cudaq::realtime::PayloadTypeID) == 1);
static_assert(CUDAQ_RPC_MAGIC_REQUEST == 0x43555152 && CUDAQ_RPC_MAGIC_RESPONSE == 0x43555153 &&
              CUDAQ_RPC_HEADER_SIZE == 24);
static_assert(CUDAQ_TX_FLAG_IN_FLIGHT == 0xEEEEEEEEEEEEEEEEull && CUDAQ_TX_FLAG_ERROR_TAG == 0xDEAD);
static_assert(cudaq::realtime::fnv1a_hash("a") == 0xE40C292Cu, "the published value of FNV-1a");

// The bridge.
static_assert(RING_BUFFER == 0 && UNIFIED == 1 && CUDAQ_RX_READY == 0 && CUDAQ_RX_EMPTY == 1);
static_assert(same<decltype(cudaq_cpu_dataplane_t::rx_poll), cudaq_rx_status_t (*)(void *, uint32_t *)>);
static_assert(same<decltype(cudaq_cpu_dataplane_t::tx_publish), cudaq_status_t (*)(void *, uint32_t)>);
static_assert(same<decltype(cudaq_bridge_create_from_library),
                   cudaq_status_t(cudaq_realtime_bridge_handle_t *, const char *, int, char **)>);
static_assert(
    same<decltype(cudaq_bridge_get_endpoint_info), cudaq_status_t(cudaq_realtime_bridge_handle_t, char *, size_t)>);
static_assert(std::is_empty_v<cudaq::realtime::DeviceCallMode> && std::is_empty_v<cudaq::realtime::GraphLaunchMode>);

constexpr std::uint32_t MOCK_DECODE_FUNCTION_ID = cudaq::realtime::fnv1a_hash("mock_decode");

TEST(SpecifiedNames, TheLinesThatFillATableAndASchema) {
  cudaq_function_entry_t entries[2]{};
  entries[0].handler.device_fn_ptr = nullptr;
  entries[0].function_id = MOCK_DECODE_FUNCTION_ID;
  entries[0].dispatch_mode = CUDAQ_DISPATCH_DEVICE_CALL;
  entries[0].schema.num_args = 1;
  entries[0].schema.args[0] = {CUDAQ_TYPE_BIT_PACKED, {0}, 16, 128};
  entries[0].schema.num_results = 1;
  entries[0].schema.results[0] = {CUDAQ_TYPE_UINT8, {0}, 1, 1};
  entries[1].schema.args[0] = {cudaq::realtime::TYPE_BIT_PACKED, {0}, 16, 128};
  entries[1].schema.args[1] = {CUDAQ_TYPE_ARRAY_FLOAT32, {0}, 64, 16};
  cudaq_function_table_t table{};
  table.entries = entries;
  table.count = 2;
  EXPECT_EQ(table.entries[0].schema.args[0].num_elements, 128u);
  EXPECT_EQ(entries[1].schema.args[0].size_bytes, entries[0].schema.args[0].size_bytes);
}

// "Building and sending an RPC message" and "reading the response": the same bytes as those of the slot helpers.
TEST(SpecifiedNames, TheLinesThatWriteARequestAndReadAResponse) {
  constexpr std::size_t slot_size = 64;
  alignas(16) std::uint8_t by_hand[slot_size] = {}, by_helper[slot_size] = {};
  std::uint64_t rx_flag = 0, tx_flag = 0;
  const std::uint8_t measurements[] = {1, 0, 1};
  auto *header = reinterpret_cast<cudaq::realtime::RPCHeader *>(by_hand);
  header->magic = cudaq::realtime::RPC_MAGIC_REQUEST;
  header->function_id = MOCK_DECODE_FUNCTION_ID;
  header->arg_len = sizeof(measurements);
  header->request_id = 5;
  header->ptp_timestamp = 0;
  std::memcpy(by_hand + sizeof(cudaq::realtime::RPCHeader), measurements, sizeof(measurements));

  cudaq_ringbuffer_t ring{};
  ring.rx_flags_host = &rx_flag, ring.tx_flags_host = &tx_flag;
  ring.rx_data_host = ring.tx_data_host = by_helper;
  ring.rx_stride_sz = ring.tx_stride_sz = slot_size;
  EXPECT_EQ(cudaq_host_ringbuffer_slot_available(&ring, 0), 1);
  EXPECT_EQ(cudaq_host_ringbuffer_write_rpc_request(&ring, 0, MOCK_DECODE_FUNCTION_ID, measurements,
                                                    sizeof(measurements), 5, 0),
            CUDAQ_OK);
  EXPECT_EQ(std::memcmp(by_hand, by_helper, slot_size), 0);
  cudaq_host_ringbuffer_signal_slot(&ring, 0);
  EXPECT_EQ(rx_flag, reinterpret_cast<std::uint64_t>(by_helper));
  EXPECT_EQ(cudaq_host_ringbuffer_slot_available(&ring, 0), 0);

  int error = -1;
  EXPECT_EQ(cudaq_host_ringbuffer_poll_tx_flag(&ring, 0, &error), CUDAQ_TX_EMPTY);
  tx_flag = CUDAQ_TX_FLAG_IN_FLIGHT;
  EXPECT_EQ(cudaq_host_ringbuffer_poll_tx_flag(&ring, 0, &error), CUDAQ_TX_IN_FLIGHT);
  tx_flag = std::uint64_t{CUDAQ_TX_FLAG_ERROR_TAG} << 48 | 700;
  EXPECT_EQ(cudaq_host_ringbuffer_poll_tx_flag(&ring, 0, &error), CUDAQ_TX_ERROR);
  EXPECT_EQ(error, 700);
  tx_flag = reinterpret_cast<std::uint64_t>(by_helper);
  EXPECT_EQ(cudaq_host_ringbuffer_poll_tx_flag(&ring, 0, nullptr), CUDAQ_TX_READY);
  cudaq_host_ringbuffer_clear_slot(&ring, 0);
  EXPECT_EQ(tx_flag, 0u);
}

} // namespace

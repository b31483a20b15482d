// SPDX-License-Identifier: Apache-2.0
// Row 27: every stride and slot size from 24 to 1024 and every offset of the arrays is either refused with a text, or
// serves full slots without a write to the guard bytes around them.
#include "unittests/support/api_fixture.h"

namespace cudaq::realtime::test {
namespace {

constexpr std::uint8_t kGuard = 0xA5;
constexpr std::size_t kSlots = 3, kRoom = 64;

struct geometry {
  std::size_t rx_stride, tx_stride, slot_size, rx_offset, tx_offset;
  bool in_place;
};

/// A ring in exactly the bytes that the geometry needs. They lie on the heap, so that ASan reports an access beyond
/// them.
class guarded_ring {
public:
  explicit guarded_ring(const geometry &g)
      : rx_(g.rx_offset + kSlots * g.rx_stride, kGuard), tx_(g.tx_offset + kSlots * g.tx_stride, kGuard), g_(g) {
    ring.rx_flags_host = rx_flags_.data();
    ring.tx_flags_host = tx_flags_.data();
    ring.rx_data_host = rx_.data() + g.rx_offset;
    ring.tx_data_host = g.in_place ? nullptr : tx_.data() + g.tx_offset;
    ring.rx_stride_sz = g.rx_stride;
    ring.tx_stride_sz = g.in_place ? 0 : g.tx_stride;
  }
  /// Returns true if no byte between the first `usable` bytes of a slot and its stride was written.
  bool guards_whole(std::size_t usable) const {
    for (std::size_t s = 0; s < kSlots; ++s)
      for (std::size_t i = usable; i < g_.rx_stride || i < g_.tx_stride; ++i)
        if ((i < g_.rx_stride && rx_[g_.rx_offset + s * g_.rx_stride + i] != kGuard) ||
            (i < g_.tx_stride && tx_[g_.tx_offset + s * g_.tx_stride + i] != kGuard))
          return false;
    return true;
  }
  cudaq_ringbuffer_t ring{};

private:
  std::vector<std::uint64_t> rx_flags_ = std::vector<std::uint64_t>(kSlots);
  std::vector<std::uint64_t> tx_flags_ = std::vector<std::uint64_t>(kSlots);
  std::vector<std::uint8_t> rx_, tx_;
  geometry g_;
};

void fill_result(const void *rx_slot, void *tx_slot, std::size_t slot_size) {
  cudaq_rpc_header_t request;
  std::memcpy(&request, rx_slot, sizeof(request));
  const auto length = static_cast<std::uint32_t>(slot_size - sizeof(request));
  std::vector<std::uint8_t> result(length, static_cast<std::uint8_t>(request.request_id));
  const cudaq_rpc_response_t response{CUDAQ_RPC_MAGIC_RESPONSE, 0, length, 0, 0};
  std::memcpy(tx_slot, &response, sizeof(response));
  if (length != 0)
    std::memcpy(static_cast<std::uint8_t *>(tx_slot) + sizeof(response), result.data(), length);
}

std::int32_t fill_result_v2(cudaq_host_call_t *call, void *) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(call->payload) % 8, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(call->result) % 8, 0u);
  std::memset(call->result, static_cast<int>(call->job.request_id), call->max_result_len);
  call->result_len = call->max_result_len;
  return 0;
}

/// Wires a new dispatcher to the geometry and serves two laps of full slots. Returns false if the geometry was refused.
bool serves(cudaq_dispatch_manager_t *manager, const geometry &g) {
  guarded_ring memory(g);
  cudaq_dispatcher_config_t config = host_config({kSlots, static_cast<std::uint32_t>(g.slot_size), false});
  cudaq_dispatcher_t *d = nullptr;
  volatile int flag = 0;
  std::uint64_t stats = 0;
  if (cudaq_dispatcher_create(manager, &config, &d) != CUDAQ_OK) {
    EXPECT_LT(g.slot_size, 24u) << cudaq_last_error_message();
    return false;
  }
  cudaq_function_entry_t entry = host_entry("fill", fill_result);
  const cudaq_function_table_t table{&entry, 1};
  const cudaq_dispatcher_options_t options = default_options();
  const cudaq_status_t status = cudaq_dispatcher_set_ringbuffer(d, &memory.ring);
  if (status != CUDAQ_OK) {
    EXPECT_EQ(status, CUDAQ_ERR_INVALID_ARG);
    EXPECT_TRUE(error_names({"ringbuffer->"}));
  } else {
    const std::size_t usable = g.slot_size != 0 ? g.slot_size
                               : g.in_place     ? g.rx_stride
                                                : std::min(g.rx_stride, g.tx_stride);
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_function_table(d, &table));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(d, &flag, &stats));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(d, &options));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_host_handler_v2(d, 2, fill_result_v2, nullptr, nullptr));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_start(d));
    const std::vector<std::uint8_t> payload(usable - 24, 7);
    for (std::uint32_t n = 0; n < 2 * kSlots; ++n) {
      const std::uint32_t slot = n % std::uint32_t{kSlots};
      EXPECT_TRUE(eventually([&] { return cudaq_host_ringbuffer_slot_available(&memory.ring, slot) == 1; }));
      CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&memory.ring, slot, n % 2 ? 2 : fnv1a_hash("fill"),
                                                              payload.data(),
                                                              static_cast<std::uint32_t>(payload.size()), n, n));
      cudaq_host_ringbuffer_signal_slot(&memory.ring, slot);
      EXPECT_TRUE(eventually(
          [&] { return cudaq_host_ringbuffer_poll_tx_flag(&memory.ring, slot, nullptr) == CUDAQ_TX_READY; }));
      cudaq_rpc_response_t header;
      const void *result = nullptr;
      CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_read_rpc_response(&memory.ring, slot, &header, &result));
      EXPECT_EQ(header.status, 0);
      EXPECT_EQ(header.result_len, usable - 24);
      EXPECT_EQ(header.request_id, n);
      for (std::size_t i = 0; i < header.result_len; ++i)
        if (static_cast<const std::uint8_t *>(result)[i] != n)
          ADD_FAILURE() << "byte " << i << " of the result of request " << n;
      cudaq_host_ringbuffer_clear_slot(&memory.ring, slot);
    }
    EXPECT_TRUE(memory.guards_whole(usable));
  }
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(d));
  return status == CUDAQ_OK;
}

// Known failure 27.
TEST(Geometry, EveryStrideFrom16To1024IsRefusedOrServed) {
  manager_handle manager;
  for (std::size_t stride = 16; stride <= 1024; ++stride)
    for (const bool in_place : {false, true})
      EXPECT_EQ(serves(manager.get, {stride, stride, 0, 0, 0, in_place}), stride >= 24 && stride % 8 == 0) << stride;
}

TEST(Geometry, UnequalStridesUseTheSmaller) {
  manager_handle manager;
  for (std::size_t stride = 24; stride <= 1024; stride += 200) {
    EXPECT_TRUE(serves(manager.get, {stride, 1024, 0, 0, 0, false})) << stride;
    EXPECT_TRUE(serves(manager.get, {1024, stride, 0, 0, 0, false})) << stride;
  }
}

TEST(Geometry, EverySlotSizeBelowTheStrideLeavesTheRestOfItAlone) {
  manager_handle manager;
  for (std::size_t slot = 1; slot <= 160; ++slot)
    for (const bool in_place : {false, true})
      EXPECT_EQ(serves(manager.get, {152, 152, slot, 0, 0, in_place}), slot >= 24 && slot <= 152) << slot;
}

TEST(Geometry, EveryOffsetOfTheDataArraysIsRefusedOrServed) {
  manager_handle manager;
  for (std::size_t offset = 0; offset < kRoom; ++offset) {
    EXPECT_EQ(serves(manager.get, {72, 72, 0, offset, 0, false}), offset % 8 == 0) << offset;
    EXPECT_EQ(serves(manager.get, {72, 72, 0, 0, offset, false}), offset % 8 == 0) << offset;
    EXPECT_EQ(serves(manager.get, {72, 72, 0, offset, 0, true}), offset % 8 == 0) << offset;
  }
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// A ring as programs of the existing system make it, and their side of the protocol.
#pragma once

#include "cudaq/realtime/detail/base/flag_word.h"
#include "unittests/gpu/migration/programs.h"
#include "unittests/gpu/support/gpu_test.h"

namespace cudaq::realtime::migration {

using namespace cudaq::realtime::test;

/// Zeroed mapped memory. Never freed: freeing it would wait for every kernel.
template <class T>
struct pinned {
  explicit pinned(std::size_t n = 1) {
    CUDA_EXPECT_OK(cudaHostAlloc(reinterpret_cast<void **>(&host), n * sizeof(T), cudaHostAllocMapped));
    CUDA_EXPECT_OK(cudaHostGetDevicePointer(reinterpret_cast<void **>(&dev), host, 0));
    std::memset(static_cast<void *>(host), 0, n * sizeof(T));
  }
  T *host = nullptr, *dev = nullptr;
};

constexpr std::uint32_t kSlots = 8, kSlotSize = 256;
constexpr std::uint32_t kFunction = fnv1a_hash("increment");

/// RX and TX are separate.
struct pinned_ring {
  pinned<std::uint64_t> rx_flags{kSlots}, tx_flags{kSlots};
  pinned<std::uint8_t> rx_data{kSlots * kSlotSize}, tx_data{kSlots * kSlotSize};

  cudaq_ringbuffer_t device_only() const {
    cudaq_ringbuffer_t r{};
    r.rx_flags = rx_flags.dev, r.tx_flags = tx_flags.dev;
    r.rx_data = rx_data.dev, r.tx_data = tx_data.dev;
    r.rx_stride_sz = r.tx_stride_sz = kSlotSize;
    return r;
  }
  cudaq_ringbuffer_t host_only() const {
    cudaq_ringbuffer_t r{};
    r.rx_flags_host = rx_flags.host, r.tx_flags_host = tx_flags.host;
    r.rx_data_host = rx_data.host, r.tx_data_host = tx_data.host;
    r.rx_stride_sz = r.tx_stride_sz = kSlotSize;
    return r;
  }
  cudaq_ringbuffer_t both() const {
    cudaq_ringbuffer_t r = device_only();
    const cudaq_ringbuffer_t host = host_only();
    r.rx_flags_host = host.rx_flags_host, r.tx_flags_host = host.tx_flags_host;
    r.rx_data_host = host.rx_data_host, r.tx_data_host = host.tx_data_host;
    return r;
  }
  void send(std::uint32_t slot, std::uint32_t function_id, std::uint32_t word, std::uint32_t request_id) const {
    const cudaq_ringbuffer_t r = host_only();
    ASSERT_TRUE(eventually([&] { return cudaq_host_ringbuffer_slot_available(&r, slot) == 1; })) << "slot " << slot;
    ASSERT_EQ(
        cudaq_host_ringbuffer_write_rpc_request(&r, slot, function_id, &word, sizeof(word), request_id, request_id),
        CUDAQ_OK);
    cudaq_host_ringbuffer_signal_slot(&r, slot);
  }
  /// Waits for the answer, checks that it belongs to the request, and gives the slot back.
  void expect(std::uint32_t slot, std::int32_t status, std::uint32_t word, std::uint32_t request_id) const {
    const cudaq_ringbuffer_t r = host_only();
    ASSERT_TRUE(eventually([&] { return cudaq_host_ringbuffer_poll_tx_flag(&r, slot, nullptr) == CUDAQ_TX_READY; }))
        << "no answer in slot " << slot;
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    std::uint32_t got = 0;
    ASSERT_EQ(cudaq_host_ringbuffer_read_rpc_response(&r, slot, &header, &result), CUDAQ_OK);
    std::memcpy(&got, result, sizeof(got));
    EXPECT_EQ(header.status, status);
    EXPECT_EQ(header.request_id, request_id);
    EXPECT_EQ(header.ptp_timestamp, request_id);
    if (status == 0) {
      EXPECT_EQ(header.result_len, sizeof(got));
      EXPECT_EQ(got, word);
    }
    cudaq_host_ringbuffer_clear_slot(&r, slot);
  }
};

} // namespace cudaq::realtime::migration

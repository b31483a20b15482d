// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unittests/qec/pipeline/pipeline_rig.h"

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"

namespace cudaq::qec::realtime::test {

/// A ring that the pipeline did not create. This class is its producer and its consumer.
class foreign_ring {
public:
  foreign_ring(std::uint32_t num_slots, bool in_place) : slots_(num_slots) {
    cudaq_ringbuffer_options_t o;
    EXPECT_EQ(cudaq_ringbuffer_options_init(&o, sizeof(o)), CUDAQ_OK);
    o.num_slots = num_slots;
    o.slot_size = 256;
    o.in_place = in_place;
    EXPECT_EQ(cudaq_ringbuffer_create(&o, &memory_, &ring), CUDAQ_OK) << cudaq_last_error_message();
  }
  ~foreign_ring() { EXPECT_EQ(cudaq_ringbuffer_destroy(memory_), CUDAQ_OK); }
  foreign_ring(const foreign_ring &) = delete;
  foreign_ring &operator=(const foreign_ring &) = delete;

  bool send(std::uint64_t k, std::uint32_t function = kFunction) {
    const auto slot = static_cast<std::uint32_t>(k % slots_);
    if (cudaq_host_ringbuffer_slot_available(&ring, slot) == 0)
      return false;
    const std::vector<std::uint8_t> payload = payload_of(k, 8 + k % 64);
    EXPECT_EQ(cudaq_host_ringbuffer_write_rpc_request(&ring, slot, function, payload.data(),
                                                      static_cast<std::uint32_t>(payload.size()),
                                                      static_cast<std::uint32_t>(k), k),
              CUDAQ_OK);
    cudaq_host_ringbuffer_signal_slot(&ring, slot);
    return true;
  }
  /// Collects the answer to request k. Returns false if there is no answer yet. A wrong answer fails the test.
  bool receive(std::uint64_t k, std::int32_t expected_status = 0) {
    const auto slot = static_cast<std::uint32_t>(k % slots_);
    const cudaq_tx_status_t flag = cudaq_host_ringbuffer_poll_tx_flag(&ring, slot, nullptr);
    if (flag != CUDAQ_TX_READY)
      return false;
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    EXPECT_EQ(cudaq_host_ringbuffer_read_rpc_response(&ring, slot, &header, &result), CUDAQ_OK);
    EXPECT_EQ(header.request_id, static_cast<std::uint32_t>(k));
    EXPECT_EQ(header.ptp_timestamp, k);
    EXPECT_EQ(header.status, expected_status);
    const std::vector<std::uint8_t> expected = payload_of(k, 8 + k % 64);
    if (expected_status == 0) {
      EXPECT_EQ(header.result_len, expected.size());
      EXPECT_EQ(std::memcmp(result, expected.data(), expected.size()), 0);
    }
    cudaq_host_ringbuffer_clear_slot(&ring, slot);
    return true;
  }

  bool is_free(std::uint64_t k) const {
    return cudaq_host_ringbuffer_slot_available(&ring, static_cast<std::uint32_t>(k % slots_)) != 0;
  }

  cudaq_ringbuffer_t ring{};

private:
  std::uint32_t slots_;
  cudaq_ringbuffer_memory_t *memory_ = nullptr;
};

} // namespace cudaq::qec::realtime::test

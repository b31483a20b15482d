// SPDX-License-Identifier: Apache-2.0
// cudaq_host_ringbuffer_slot_available on a ring with requests in device memory: it waits for the lap, too. Host memory
// stands for the device's.
#include "cudaq/realtime/detail/ring/ring_record.h"
#include "unittests/support/api_fixture.h"

#include <array>

namespace cudaq::realtime::test {
namespace {

/// Laid out as cudaq_ringbuffer_create does it: rx flags, counts, slots; record, tx flags, laps, slots.
class ring_with_laps {
public:
  static constexpr std::uint32_t kSlots = 4;
  static constexpr std::size_t kDistance = detail::lap_distance(kSlots);

  ring_with_laps() {
    std::uint8_t *const tx = answers_.data() + detail::kFlagsOffsetInPage;
    record = new (tx - sizeof(detail::ring_record)) detail::ring_record{};
    record->magic[0] = detail::kRecordMagic[0], record->magic[1] = detail::kRecordMagic[1];
    record->self = reinterpret_cast<std::uint64_t>(record);
    record->lap_offset = kDistance;
    ring.rx_flags_host = reinterpret_cast<volatile std::uint64_t *>(requests_.data());
    ring.tx_flags_host = reinterpret_cast<volatile std::uint64_t *>(tx);
    ring.rx_data_host = requests_.data() + 2 * detail::flag_bytes(kSlots);
    ring.tx_data_host = tx + 2 * detail::flag_bytes(kSlots);
    ring.rx_stride_sz = ring.tx_stride_sz = 64;
  }
  volatile std::uint64_t &count(std::uint32_t i) const { return ring.rx_flags_host[i + kDistance]; }
  volatile std::uint64_t &lap(std::uint32_t i) const { return ring.tx_flags_host[i + kDistance]; }
  bool available(std::uint32_t i) const { return cudaq_host_ringbuffer_slot_available(&ring, i) == 1; }

  cudaq_ringbuffer_t ring{};
  detail::ring_record *record = nullptr;

private:
  alignas(detail::kPageBytes) std::array<std::uint8_t, 2 * detail::kPageBytes> answers_{};
  alignas(detail::kPageBytes) std::array<std::uint8_t, detail::kPageBytes> requests_{};
};

TEST(SlotAvailableWithLaps, WaitsForTheLapAndForTheCollectionOfTheAnswer) {
  ring_with_laps r;
  for (std::uint64_t lap = 1; lap <= 3; ++lap) {
    EXPECT_TRUE(r.available(2));
    cudaq_host_ringbuffer_signal_slot(&r.ring, 2);
    EXPECT_FALSE(r.available(2)) << "not taken";
    r.count(2) = lap;
    r.ring.rx_flags_host[2] = 0;
    EXPECT_FALSE(r.available(2)) << "both flags are 0, but tx may be on its way";
    r.ring.tx_flags_host[2] = 1;
    EXPECT_FALSE(r.available(2)) << "answered";
    r.lap(2) = lap;
    EXPECT_FALSE(r.available(2)) << "not collected";
    cudaq_host_ringbuffer_clear_slot(&r.ring, 2);
  }
  EXPECT_TRUE(r.available(2));
}

// A client of another process has mapped the ring: the record holds the address that the server's mapping has.
TEST(SlotAvailableWithLaps, WaitsForTheLapInAMappingOfAnotherProcess) {
  ring_with_laps r;
  r.record->self += 1 << 20;
  EXPECT_TRUE(r.available(1));
  r.count(1) = 1;
  EXPECT_FALSE(r.available(1)) << "both flags are 0, but tx may be on its way";
  r.lap(1) = 1;
  EXPECT_TRUE(r.available(1));
}

// The record may be in memory that another process writes.
TEST(SlotAvailableWithLaps, ReadsNoLapOutsideTheRing) {
  ring_with_laps r;
  for (const std::uint64_t distance :
       {ring_with_laps::kDistance * 2, std::uint64_t{1} << 40, UINT64_MAX, UINT64_MAX / sizeof(std::uint64_t)}) {
    r.record->lap_offset = distance;
    EXPECT_TRUE(r.available(3)) << distance << ": the flags alone";
    r.ring.tx_flags_host[3] = 1;
    EXPECT_FALSE(r.available(3)) << distance;
    r.ring.tx_flags_host[3] = 0;
  }
}

} // namespace
} // namespace cudaq::realtime::test

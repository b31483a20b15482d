// SPDX-License-Identifier: Apache-2.0
// Rings whose requests lie in device memory, as far as a machine without a device can say: which options and which
// dispatchers are refused, and the texts.
#include "cudaq/realtime/detail/ring/ring_record.h"
#include "lib/api/validation.h"
#include "unittests/support/api_fixture.h"
#include "unittests/support/lap_ring.h"

#include <array>

namespace cudaq::realtime::test {
namespace {

cudaq_ringbuffer_options_t ring_options(cudaq_memory_kind_t kind) {
  cudaq_ringbuffer_options_t o;
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_options_init(&o, sizeof(o)));
  o.memory_kind = kind;
  o.num_slots = 4;
  o.slot_size = 64;
  return o;
}

cudaq_status_t create(const cudaq_ringbuffer_options_t &o) {
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  const cudaq_status_t status = cudaq_ringbuffer_create(&o, &memory, &ring);
  if (status == CUDAQ_OK) {
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
  }
  return status;
}

TEST(RingKinds, RequestsInDeviceMemoryAreNotInPlace) {
  cudaq_ringbuffer_options_t o = ring_options(CUDAQ_MEMORY_DEVICE_RX);
  o.in_place = 1;
  EXPECT_EQ(create(o), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_TRUE(error_names({"in_place is 1", "memory_kind is 3", "use in_place 0"}));
}

TEST(RingKinds, OnlyRequestsInDeviceMemoryAreRegisteredWithANic) {
  cudaq_ringbuffer_options_t o = ring_options(CUDAQ_MEMORY_HOST);
  o.nic_registration = 1;
  EXPECT_EQ(create(o), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_TRUE(error_names({"nic_registration is 1", "memory_kind is 0"}));
  o = ring_options(CUDAQ_MEMORY_DEVICE_RX);
  o.nic_registration = 2;
  EXPECT_EQ(create(o), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"nic_registration is 2"}));
}

TEST(RingKinds, HugePagesAndNodesBelongToHostMemory) {
  for (const cudaq_memory_kind_t kind : {CUDAQ_MEMORY_DEVICE_RX, CUDAQ_MEMORY_AUTO}) {
    cudaq_ringbuffer_options_t o = ring_options(kind);
    o.hugepages = 1;
    EXPECT_EQ(create(o), CUDAQ_ERR_UNSUPPORTED);
    EXPECT_TRUE(error_names({"hugepages"}));
  }
}

// On a CUDA runtime without a GPU: unittests/fault_injection/device_rings_test.cpp; with one:
// unittests/gpu/loop/kernel_device_rx_test.cpp.
TEST(RingKinds, AMachineMakesThemOrSaysWhyNot) {
  for (const cudaq_memory_kind_t kind : {CUDAQ_MEMORY_DEVICE_RX, CUDAQ_MEMORY_AUTO}) {
    const cudaq_ringbuffer_options_t o = ring_options(kind);
    cudaq_ringbuffer_memory_t *memory = nullptr;
    cudaq_ringbuffer_t ring{};
    const cudaq_status_t status = cudaq_ringbuffer_create(&o, &memory, &ring);
    if (status != CUDAQ_OK) {
      EXPECT_TRUE(status == CUDAQ_ERR_UNSUPPORTED || status == CUDAQ_ERR_CUDA) << status;
      EXPECT_GT(std::strlen(cudaq_last_error_message()), std::strlen("cudaq_ringbuffer_create: ") + 10);
      EXPECT_EQ(memory, nullptr);
      continue;
    }
    cudaq_ringbuffer_info_t info{};
    info.struct_size = sizeof(info);
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_get_info(memory, &info));
    const bool in_device = info.memory_kind == CUDAQ_MEMORY_DEVICE_RX;
    EXPECT_TRUE(in_device || (kind == CUDAQ_MEMORY_AUTO && info.memory_kind == CUDAQ_MEMORY_MAPPED))
        << info.memory_kind;
    EXPECT_EQ(in_device, info.mapping_source != CUDAQ_MAPPING_NONE);
    EXPECT_EQ(in_device, info.writes_ordering >= 100);
    EXPECT_EQ(std::string(info.reason).find(in_device ? "mapping by " : "mapped memory, because "), 0u) << info.reason;
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
  }
}

/// Memory with a record, as cudaq_ringbuffer_create lays it before the tx flags of such a ring.
class ring_with_record {
public:
  ring_with_record() : laps_(4, 64, true) {
    auto *const flags = reinterpret_cast<std::uint64_t *>(page_.data() + detail::kFlagsOffsetInPage);
    auto *const record =
        new (page_.data() + detail::kFlagsOffsetInPage - sizeof(detail::ring_record)) detail::ring_record{};
    std::memcpy(record->magic, detail::kRecordMagic, sizeof(record->magic));
    record->self = reinterpret_cast<std::uint64_t>(record);
    record->lap_offset = detail::flag_bytes(4) / sizeof(std::uint64_t);
    ring.rx_flags = ring.rx_flags_host = laps_.view.rx_flags;
    ring.tx_flags = ring.tx_flags_host = flags;
    ring.rx_data = ring.rx_data_host = laps_.view.rx_data;
    ring.tx_data = ring.tx_data_host = laps_.view.tx_data;
    ring.rx_stride_sz = ring.tx_stride_sz = laps_.view.rx_stride;
  }
  cudaq_ringbuffer_t ring{};

private:
  lap_ring laps_;
  alignas(detail::kPageBytes) std::array<std::uint8_t, detail::kPageBytes> page_{};
};

TEST(RingKinds, TheHostPathAndSharedRingsRefuseThem) {
  const auto memory = std::make_unique<ring_with_record>();
  cudaq_dispatcher_config_t config = host_config({4, 64, false});
  detail::expected<> result = detail::validate_host_ring(memory->ring, config, config.num_slots);
  EXPECT_EQ(result.status(), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_NE(result.text().find("dispatch_path is 1 (host)"), std::string::npos) << result.text();
  EXPECT_NE(result.text().find("memory_kind 1 (mapped)"), std::string::npos) << result.text();
  config.dispatch_path = CUDAQ_DISPATCH_PATH_DEVICE;
  EXPECT_TRUE(detail::validate_device_ring(memory->ring, config).ok());
  config.num_slots = 40;
  result = detail::validate_device_ring(memory->ring, config);
  EXPECT_EQ(result.status(), CUDAQ_ERR_INVALID_ARG);
  EXPECT_NE(result.text().find("num_slots is 40"), std::string::npos) << result.text();
  config.num_slots = 4;
  config.shared_ring_mode = 1;
  result = detail::validate_device_ring(memory->ring, config);
  EXPECT_EQ(result.status(), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_NE(result.text().find("shared_ring_mode is set"), std::string::npos) << result.text();
}

} // namespace
} // namespace cudaq::realtime::test

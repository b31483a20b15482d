// SPDX-License-Identifier: Apache-2.0
// Rings of a device and of a host dispatcher of which each caller gives its own view only: how the library finds the
// host addresses, and that both are the same ring.
#include "lib/api/host_views.h"
#include "unittests/api/device_path_fixture.h"

#include <map>

namespace cudaq::realtime::test {
namespace {

/// Plays CUDA: allocations that a device sees at other addresses than the host.
struct fake_memory {
  struct allocation {
    std::size_t bytes;
    std::uint8_t *host;
    const char *what;
  };
  std::map<std::uintptr_t, allocation> at;

  /// `host` NULL: device memory. Returns the device's address.
  template <class T>
  T *map(T *host, std::size_t bytes, std::uintptr_t device, const char *what = "device memory") {
    at[device] = {bytes, const_cast<std::uint8_t *>(reinterpret_cast<const volatile std::uint8_t *>(host)), what};
    return reinterpret_cast<T *>(device);
  }
  detail::host_place operator()(const volatile void *p) const {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    const auto above = at.upper_bound(address);
    if (above == at.begin())
      return {nullptr, "unknown memory"};
    const auto &[first, a] = *std::prev(above);
    if (address >= first + a.bytes)
      return {nullptr, "unknown memory"};
    return {a.host == nullptr ? nullptr : a.host + (address - first), a.what};
  }
};

class RingViews : public ::testing::Test {
protected:
  static constexpr std::uint32_t kSlots = 8;
  RingViews() {
    config.num_slots = kSlots;
    config.shared_ring_mode = 1;
    ring.rx_flags = memory.map(rx_flags, sizeof(rx_flags), 0x10000);
    ring.tx_flags = memory.map(tx_flags, sizeof(tx_flags), 0x20000);
    ring.rx_data = memory.map(rx, sizeof(rx), 0x30000);
    ring.tx_data = memory.map(tx, sizeof(tx), 0x40000);
    ring.rx_stride_sz = ring.tx_stride_sz = 64;
  }
  void expect_refused(const std::vector<std::string> &words) {
    const detail::expected<> result = detail::find_host_views(ring, config, memory);
    EXPECT_EQ(result.status(), CUDAQ_ERR_INVALID_ARG);
    for (const std::string &word : words)
      EXPECT_NE(result.text().find(word), std::string::npos) << word << " in: " << result.text();
  }

  volatile std::uint64_t rx_flags[kSlots] = {}, tx_flags[kSlots] = {};
  std::uint8_t rx[kSlots * 64] = {}, tx[kSlots * 64] = {};
  fake_memory memory;
  cudaq_dispatcher_config_t config{};
  cudaq_ringbuffer_t ring{};
};

// Known failure 61.
TEST_F(RingViews, AreFoundForEachArrayThatIsPinnedAndMapped) {
  EXPECT_TRUE(detail::find_host_views(ring, config, memory).ok());
  EXPECT_EQ(ring.rx_flags_host, rx_flags);
  EXPECT_EQ(ring.tx_flags_host, tx_flags);
  EXPECT_EQ(ring.rx_data_host, rx);
  EXPECT_EQ(ring.tx_data_host, tx);
}

TEST_F(RingViews, ThatTheCallerHasSetStay) {
  volatile std::uint64_t own[kSlots] = {};
  ring.tx_flags_host = own;
  EXPECT_TRUE(detail::find_host_views(ring, config, memory).ok());
  EXPECT_EQ(ring.tx_flags_host, own);
  EXPECT_EQ(ring.rx_data_host, rx);
}

TEST_F(RingViews, OfARingInPlaceAreOneArray) {
  ring.tx_data = ring.rx_data;
  EXPECT_TRUE(detail::find_host_views(ring, config, memory).ok());
  EXPECT_EQ(ring.tx_data_host, rx);
}

TEST_F(RingViews, ThatDoNotExistAreNamedWithTheKindOfMemory) {
  memory.at[0x30000] = {sizeof(rx), nullptr, "device memory, which has no host address"};
  expect_refused({"ringbuffer->rx_data_host is NULL", "config->shared_ring_mode is 1", "rx_data is 0x30000",
                  "device memory, which has no host address", "set rx_data_host"});
  memory.at.erase(0x20000);
  ring.tx_flags_host = nullptr;
  expect_refused({"ringbuffer->tx_flags_host is NULL", "unknown memory"});
}

TEST_F(RingViews, AnArrayThatIsNotMappedToItsEndIsRefused) {
  memory.at[0x40000].bytes = sizeof(tx) - 64;
  expect_refused({"ringbuffer->tx_data_host is NULL", "no address for the end of the array"});
  std::uint8_t elsewhere[64] = {};
  memory.map(elsewhere, sizeof(elsewhere), 0x40000 + sizeof(tx) - 64);
  ring.tx_data_host = nullptr;
  expect_refused({"tx_data_host is NULL", "another allocation"});
}

// Two dispatchers of one ring. The struct of the first also has device views, as one that is made for a device has; the
// struct of the second has host views only.
// Known failure 61.
TEST(SharedRingViews, OneRingIsRecognisedWithAndWithoutDeviceViews) {
  manager_handle manager;
  const host_ring memory({8, 256, false});
  cudaq_ringbuffer_t whole = memory.ring, host_only = memory.ring;
  whole.rx_flags = memory.ring.rx_flags_host;
  whole.tx_flags = memory.ring.tx_flags_host;
  whole.rx_data = memory.ring.rx_data_host + (std::size_t{1} << 32); // as cudaHostRegister may map it
  whole.tx_data = memory.ring.tx_data_host + (std::size_t{1} << 32);
  host_only.rx_flags = host_only.tx_flags = nullptr;
  host_only.rx_data = host_only.tx_data = nullptr;
  for (const bool whole_first : {true, false}) {
    cudaq_dispatcher_config_t config = host_config(memory.shape());
    config.shared_ring_mode = 1;
    volatile int flags[2] = {};
    std::uint64_t stats[2] = {};
    cudaq_function_entry_t entries[2]{};
    cudaq_dispatcher_t *d[2] = {};
    for (std::uint32_t i = 0; i < 2; ++i) {
      entries[i].function_id = i + 1;
      entries[i].dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
      entries[i].handler.host_fn = [](const void *, void *, std::size_t) {};
      const cudaq_function_table_t table{&entries[i], 1};
      CUDAQ_ASSERT_OK(cudaq_dispatcher_create(manager.get, &config, &d[i]));
      CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(d[i], (i == 0) == whole_first ? &whole : &host_only));
      CUDAQ_ASSERT_OK(cudaq_dispatcher_set_function_table(d[i], &table));
      CUDAQ_ASSERT_OK(cudaq_dispatcher_set_control(d[i], &flags[i], &stats[i]));
    }
    CUDAQ_EXPECT_OK(cudaq_dispatcher_start(d[0]));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_start(d[1]));
    for (cudaq_dispatcher_t *one : d)
      CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(one));
  }
}

} // namespace
} // namespace cudaq::realtime::test

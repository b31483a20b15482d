// SPDX-License-Identifier: Apache-2.0
// The rules of the device path for configuration, ring and options. A refusal names the field. No device is needed.
#include "unittests/api/device_path_fixture.h"

namespace cudaq::realtime::test {
namespace {

using config_t = cudaq_dispatcher_config_t;
using ring_t = cudaq_ringbuffer_t;

// Known failure 24.
TEST(NoCuda, DevicePathIsRefusedByALibraryWithoutTheRuntime) {
  if (has_device_path())
    GTEST_SKIP() << "this library was built with the CUDA runtime";
  manager_handle manager;
  const config_t config = device_config();
  cudaq_dispatcher_t *d = nullptr;
  EXPECT_EQ(cudaq_dispatcher_create(manager.get, &config, &d), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_TRUE(error_names({"config->dispatch_path is 0", "without the CUDA runtime"}));
}

class DeviceConfigRules : public device_path_test {};
class DeviceRingRules : public device_path_test {};
class DeviceOptionRules : public device_path_test {};

void expect_config_refused(const std::function<void(config_t &)> &spoil, cudaq_status_t status,
                           const std::vector<std::string> &words) {
  manager_handle manager;
  config_t config = device_config();
  spoil(config);
  cudaq_dispatcher_t *d = nullptr;
  EXPECT_EQ(cudaq_dispatcher_create(manager.get, &config, &d), status) << words[0];
  EXPECT_TRUE(error_names(words));
  EXPECT_EQ(d, nullptr);
}

// Known failure 8.
TEST_F(DeviceConfigRules, RefusesAUnifiedKernelOnASharedRing) {
  expect_config_refused(
      [](config_t &c) {
        c.shared_ring_mode = 1;
        c.kernel_type = CUDAQ_KERNEL_UNIFIED;
      },
      CUDAQ_ERR_UNSUPPORTED, {"config->shared_ring_mode is 1", "config->kernel_type is 2 (unified)"});
}

TEST_F(DeviceConfigRules, RefusesWhatIsWrong) {
  expect_config_refused([](config_t &c) { c.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL; }, CUDAQ_ERR_INVALID_ARG,
                        {"config->dispatch_mode is 2", "config->dispatch_path is 0"});
  expect_config_refused([](config_t &c) { c.threads_per_block = 1025; }, CUDAQ_ERR_INVALID_ARG,
                        {"config->threads_per_block is 1025", "1..1024"});
  expect_config_refused([](config_t &c) { c.num_blocks = 65536; }, CUDAQ_ERR_INVALID_ARG,
                        {"config->num_blocks is 65536"});
  expect_config_refused([](config_t &c) { c.device_id = -1; }, CUDAQ_ERR_INVALID_ARG, {"config->device_id is -1"});
  for (const cudaq_kernel_type_t kernel : {CUDAQ_KERNEL_REGULAR, CUDAQ_KERNEL_COOPERATIVE})
    expect_config_refused(
        [=](config_t &c) {
          c.kernel_type = kernel;
          c.num_slots = 0;
        },
        CUDAQ_ERR_INVALID_ARG, {"config->num_slots is 0"});
}

TEST_F(DeviceConfigRules, AcceptsEveryKernelTypeAndAUnifiedOneWithoutSlots) {
  for (const cudaq_kernel_type_t kernel : {CUDAQ_KERNEL_REGULAR, CUDAQ_KERNEL_COOPERATIVE, CUDAQ_KERNEL_UNIFIED}) {
    config_t config = device_config(kernel == CUDAQ_KERNEL_UNIFIED ? ring_shape{0, 0} : ring_shape{8, 256});
    config.kernel_type = kernel;
    config.threads_per_block = 1024;
    const device_parts accepted(config);
    EXPECT_EQ(accepted.state(), CUDAQ_DISPATCHER_CREATED);
  }
}

void expect_ring_refused(const std::function<void(ring_t &, config_t &)> &spoil,
                         const std::vector<std::string> &words) {
  host_ring memory({8, 256, false});
  ring_t ring = with_device_view(memory.ring);
  ring.rx_flags_host = ring.tx_flags_host = nullptr; // device memory has no host view
  ring.rx_data_host = ring.tx_data_host = nullptr;
  config_t config = device_config(memory.shape());
  spoil(ring, config);
  device_parts parts(config);
  EXPECT_EQ(cudaq_dispatcher_set_ringbuffer(parts.d, &ring), CUDAQ_ERR_INVALID_ARG) << words[0];
  EXPECT_TRUE(error_names(words));
}

// Known failure 8.
TEST_F(DeviceRingRules, RefusesMissingAndMisalignedArrays) {
  expect_ring_refused([](ring_t &r, config_t &) { r.rx_flags = nullptr; }, {"ringbuffer->rx_flags is NULL", "device"});
  expect_ring_refused([](ring_t &r, config_t &) { r.tx_flags = nullptr; }, {"ringbuffer->tx_flags is NULL"});
  expect_ring_refused([](ring_t &r, config_t &) { r.rx_data = nullptr; }, {"ringbuffer->rx_data is NULL"});
  expect_ring_refused([](ring_t &r, config_t &) { r.tx_data = nullptr; }, {"ringbuffer->tx_data is NULL", "in place"});
  expect_ring_refused([](ring_t &r, config_t &) { r.tx_flags = r.rx_flags; },
                      {"rx_flags and tx_flags are the same array"});
  expect_ring_refused([](ring_t &r, config_t &) { r.rx_data += 4; }, {"ringbuffer->rx_data", "not a multiple of 8"});
  expect_ring_refused([](ring_t &r, config_t &) { r.tx_data += 1; }, {"ringbuffer->tx_data", "not a multiple of 8"});
  expect_ring_refused([](ring_t &r, config_t &) { r.rx_flags = reinterpret_cast<volatile std::uint64_t *>(0x1004); },
                      {"ringbuffer->rx_flags", "not a multiple of 8"});
}

TEST_F(DeviceRingRules, RefusesStridesThatTheHostPathRefuses) {
  expect_ring_refused([](ring_t &r, config_t &) { r.rx_stride_sz = 16; }, {"rx_stride_sz is 16"});
  expect_ring_refused([](ring_t &r, config_t &) { r.tx_stride_sz = 260; }, {"tx_stride_sz is 260", "multiple of 8"});
  expect_ring_refused([](ring_t &, config_t &c) { c.slot_size = 257; }, {"rx_stride_sz is 256", "slot_size 257"});
  expect_ring_refused([](ring_t &r, config_t &) { r.rx_stride_sz = 1ull << 32; }, {"rx_stride_sz is 4294967296"});
  expect_ring_refused(
      [](ring_t &r, config_t &) {
        r.tx_data = r.rx_data;
        r.tx_stride_sz = 128;
      },
      {"tx_stride_sz is 128", "in place"});
}

TEST_F(DeviceRingRules, RefusesOverlapOfDeviceAddresses) {
  expect_ring_refused([](ring_t &r, config_t &) { r.tx_data = r.rx_data + 256; }, {"rx_data and tx_data overlap"});
  expect_ring_refused([](ring_t &r, config_t &) { r.tx_flags = r.rx_flags + 7; }, {"rx_flags and tx_flags overlap"});
  expect_ring_refused([](ring_t &r, config_t &) { r.tx_data = reinterpret_cast<std::uint8_t *>(~std::uintptr_t{7}); },
                      {"tx_data reaches beyond the address space"});
}

TEST_F(DeviceRingRules, RefusesASharedRingThatTheHostDoesNotSee) {
  using array = std::uint8_t *ring_t::*;
  const host_ring memory({8, 256, false});
  config_t config = device_config(memory.shape());
  config.shared_ring_mode = 1;
  device_parts parts(config);
  const ring_t whole = with_device_view(memory.ring);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(parts.d, &whole));
  const auto refused = [&](const ring_t &r, const std::vector<std::string> &words) {
    EXPECT_EQ(cudaq_dispatcher_set_ringbuffer(parts.d, &r), CUDAQ_ERR_INVALID_ARG) << words[0];
    EXPECT_TRUE(error_names(words));
  };
  ring_t r = whole;
  r.rx_flags_host = nullptr;
  refused(r, {"ringbuffer->rx_flags_host is NULL", "config->shared_ring_mode is 1", "the host routes"});
  r = whole;
  r.tx_flags_host = nullptr;
  refused(r, {"ringbuffer->tx_flags_host is NULL", "the host routes"});
  for (const auto &[field, name] : {std::pair<array, const char *>{&ring_t::rx_data_host, "rx_data_host is NULL"},
                                    {&ring_t::tx_data_host, "tx_data_host is NULL"}}) {
    r = whole;
    r.*field = nullptr;
    refused(r, {name, "the host routes"});
  }
  r = whole;
  r.rx_data_host += 4;
  refused(r, {"ringbuffer->rx_data_host", "not a multiple of 8"});
}

TEST_F(DeviceRingRules, InPlaceEndsAtWhatAKernelCanStage) {
  host_ring memory({2, 16640, true}); // with a stride of 16640
  ring_t ring = with_device_view(memory.ring);
  ring.tx_data = ring.rx_data;
  config_t config = device_config({2, 16512});
  {
    device_parts fits(config);
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(fits.d, &ring));
    ring.tx_stride_sz = 0;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(fits.d, &ring));
  }
  for (const std::uint32_t size : {16513u, 0u}) {
    config.slot_size = size;
    device_parts large(config);
    EXPECT_EQ(cudaq_dispatcher_set_ringbuffer(large.d, &ring), CUDAQ_ERR_INVALID_ARG);
    EXPECT_TRUE(error_names({"in place", size == 0 ? "16640" : "16513", "at most 16512"}));
  }
}

void expect_options_refused(const config_t &config, const std::function<void(cudaq_dispatcher_options_t &)> &spoil,
                            cudaq_status_t status, const std::vector<std::string> &words) {
  device_parts parts(config);
  parts.wire("rtcl");
  cudaq_dispatcher_options_t options = default_options();
  spoil(options);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(parts.d, &options));
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(cudaq_dispatcher_start(parts.d), status) << words[0];
    EXPECT_TRUE(error_names(words));
    EXPECT_EQ(parts.state(), CUDAQ_DISPATCHER_WIRED);
    EXPECT_EQ(parts.flag, 5) << "an error must change nothing";
  }
}

// Known failure 8.
TEST_F(DeviceOptionRules, RefusesAtStartWhatAKernelCannotDo) {
  using options_t = cudaq_dispatcher_options_t;
  config_t cooperative = device_config();
  cooperative.kernel_type = CUDAQ_KERNEL_COOPERATIVE;
  expect_options_refused(cooperative, [](options_t &o) { o.ordering = CUDAQ_ORDERING_ANY; }, CUDAQ_ERR_INVALID_ARG,
                         {"options->ordering is 1", "cooperative"});
  const config_t regular = device_config();
  expect_options_refused(regular, [](options_t &o) { o.handler_pool_size = 3; }, CUDAQ_ERR_UNSUPPORTED,
                         {"options->handler_pool_size is 3", "device path"});
  expect_options_refused(regular, [](options_t &o) { o.dispatcher_core = 0; }, CUDAQ_ERR_UNSUPPORTED,
                         {"dispatcher_core", "device path"});
  expect_options_refused(regular, [](options_t &o) { o.realtime_priority = 1; }, CUDAQ_ERR_UNSUPPORTED,
                         {"realtime_priority"});
  expect_options_refused(regular, [](options_t &o) { o.default_owner = 1; }, CUDAQ_ERR_INVALID_ARG,
                         {"options->default_owner is 1"});
  config_t shared = device_config();
  shared.shared_ring_mode = 1;
  expect_options_refused(shared, [](options_t &o) { o.ordering = CUDAQ_ORDERING_ANY; }, CUDAQ_ERR_UNSUPPORTED,
                         {"options->ordering is 1", "config->shared_ring_mode is 1", "in order"});
  expect_options_refused(shared, [](options_t &o) { o.handler_core_base = 0; }, CUDAQ_ERR_UNSUPPORTED,
                         {"handler_core_base", "routes a shared ring"});
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The memory of a GPU for servers of the tests: device 0 is a file in memory, device 1 is a device of Vulkan.
#pragma once

#include "lib/transport/shm/shm_cuda.h"

namespace cudaq::realtime::test {

/// Device 1. The reason says what of Vulkan the machine lacks.
detail::expected<> make_vulkan_double(std::uint64_t bytes, std::unique_ptr<detail::shm_device_memory> &out);

} // namespace cudaq::realtime::test

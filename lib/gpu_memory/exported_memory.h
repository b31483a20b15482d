// SPDX-License-Identifier: Apache-2.0
// Device memory that one process has made and another one maps for its CPU. The second process needs Vulkan, and no
// CUDA.
#pragma once

#include "lib/base/error_text.h"

#include <cstdint>
#include <memory>

namespace cudaq::realtime::detail {

/// What the second process must know beside a descriptor of the memory: Vulkan imports it only into the same device,
/// under the same driver, with the same size and type. It is sent as it is.
struct exported_memory {
  std::uint8_t device_uuid[16] = {};
  std::uint8_t driver_uuid[16] = {};
  std::uint64_t bytes = 0; ///< of the allocation
  std::uint32_t memory_type = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(exported_memory) == 48);

/// The mapping of such memory. The destructor unmaps it.
class imported_mapping {
public:
  virtual ~imported_mapping() = default;
  imported_mapping(const imported_mapping &) = delete;
  imported_mapping &operator=(const imported_mapping &) = delete;
  std::uint8_t *host() const { return host_; }

protected:
  imported_mapping() = default;
  std::uint8_t *host_ = nullptr;
};

/// Maps it. `descriptor`: -1 after the call if it belongs to Vulkan then, else the caller closes it. The reason says
/// what this process or its machine lacks.
expected<> map_exported_memory(const exported_memory &memory, int &descriptor, std::unique_ptr<imported_mapping> &out);

} // namespace cudaq::realtime::detail

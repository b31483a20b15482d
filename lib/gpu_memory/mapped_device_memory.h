// SPDX-License-Identifier: Apache-2.0
// Device memory that the CPU can write through a mapping. There are several ways to get one. Each needs something that
// a machine may lack, so all libraries are opened at run time, and each way says why it failed.
#pragma once

#include "lib/gpu_memory/exported_memory.h"

#include <memory>
#include <vector>

namespace cudaq::realtime::detail {

class mapped_device_memory;

struct mapping_request {
  int device = 0;
  std::size_t bytes = 0;
  bool nic_registration = false; ///< only ways whose memory can be registered with a NIC
  bool exportable = false;       ///< only ways whose memory another process can map
  /// Gets the memory of ways that failed after they had allocated it. Null: it is freed at once.
  std::vector<std::unique_ptr<mapped_device_memory>> *refused = nullptr;
};

/// Name of a source for users.
const char *name_of(cudaq_mapping_source_t source);

/// Zeroed memory. The destructor unmaps and frees it; CUDA waits there for all kernels of the device.
class mapped_device_memory {
public:
  virtual ~mapped_device_memory() = default;
  mapped_device_memory(const mapped_device_memory &) = delete;
  mapped_device_memory &operator=(const mapped_device_memory &) = delete;

  std::uint8_t *host() const { return host_; }
  std::uint8_t *device() const { return device_; }
  cudaq_mapping_source_t source() const { return source_; }
  /// A new descriptor of memory that is exportable, and its record for another process. The caller closes the
  /// descriptor.
  virtual expected<> export_to(exported_memory & /*out*/, int & /*descriptor*/) const {
    return make_reason(CUDAQ_ERR_UNSUPPORTED, "memory mapped by %s cannot be mapped by another process",
                       name_of(source_));
  }
  int ordering() const { return ordering_; } ///< cudaDevAttrGPUDirectRDMAWritesOrdering

protected:
  explicit mapped_device_memory(cudaq_mapping_source_t source) : source_(source) {}
  std::uint8_t *host_ = nullptr, *device_ = nullptr;

private:
  friend expected<> map_device_memory(const mapping_request &, std::unique_ptr<mapped_device_memory> &, std::string &);
  cudaq_mapping_source_t source_;
  int ordering_ = 0;
};

/// Tries all ways in order. `why`: why the ways before the taken one failed; if none works, the returned reason says
/// this of all of them.
expected<> map_device_memory(const mapping_request &request, std::unique_ptr<mapped_device_memory> &out,
                             std::string &why);

} // namespace cudaq::realtime::detail

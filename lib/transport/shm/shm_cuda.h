// SPDX-License-Identifier: Apache-2.0
// All that the server asks of CUDA: pages that a GPU reads and writes, and memory of a GPU that clients write. Nothing
// else of the provider knows of CUDA, so that a test may put a double in its place.
#pragma once

#include "lib/gpu_memory/exported_memory.h"
#include "lib/transport/shm/shm_attach.h"

#include <memory>

namespace cudaq::realtime::detail {

/// Registers pages with CUDA, at the same address for all devices. The reasons name --pinned. `device_id`: the device
/// whose context the call uses, and makes if the device has none; -1: the calling thread's.
expected<> pin_pages(int device_id, std::uint8_t *at, std::uint64_t bytes);
void unpin_pages(int device_id, std::uint8_t *at);

/// The requests of a ring in the memory of a GPU, zeroed: the addresses for this process's CPU and for its device, and
/// the descriptor and the record with which a client maps the memory. The destructor frees it; CUDA waits there for all
/// kernels of the device.
class shm_device_memory {
public:
  virtual ~shm_device_memory() = default;
  shm_device_memory(const shm_device_memory &) = delete;
  shm_device_memory &operator=(const shm_device_memory &) = delete;

  std::uint8_t *host() const { return host_; }
  std::uint8_t *device() const { return device_; }
  const exported_memory &exported() const { return exported_; }
  int file() const { return file_.get(); }

protected:
  shm_device_memory() = default;
  std::uint8_t *host_ = nullptr, *device_ = nullptr;
  exported_memory exported_;
  file_handle file_;
};

/// The reasons name --requests.
expected<> make_device_memory(int device, std::uint64_t bytes, std::unique_ptr<shm_device_memory> &out);

} // namespace cudaq::realtime::detail

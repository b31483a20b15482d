// SPDX-License-Identifier: Apache-2.0
// A GPU that is none, for the processes of shm_gpu_rings_test.cpp: its memory is a file in memory (memfd), which a
// client maps. It stands in for shm_cuda.cpp in the server and for vulkan_import.cpp in the client. Memory that is
// pinned needs nothing here, because the "device" is a thread.
#include "unittests/transport/shm/shm_gpu_double.h"

#include "unittests/support/sanitized.h"

#include <cstring>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint8_t kDevice[16] = {'a', ' ', 'd', 'o', 'u', 'b', 'l', 'e'};

std::uint8_t *map_file(int file, std::uint64_t bytes) {
  void *const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::uint8_t *>(at);
}

/// The CPU's mapping and the device's one have different addresses, as on a GPU. With a sanitizer they are one mapping:
/// it takes two addresses for two words, and does not see that a flag orders what is written before it.
class double_memory : public shm_device_memory {
public:
  explicit double_memory(std::uint64_t bytes) {
    file_.reset(::memfd_create("gpu-double", MFD_CLOEXEC));
    if (!file_ || ::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0)
      return;
    std::memcpy(exported_.device_uuid, kDevice, sizeof(kDevice));
    exported_.bytes = bytes;
    host_ = map_file(file_.get(), bytes);
    device_ = test::kSanitized ? host_ : map_file(file_.get(), bytes);
  }
  ~double_memory() override {
    if (host_ != nullptr)
      ::munmap(host_, exported_.bytes);
    if (device_ != nullptr && device_ != host_)
      ::munmap(device_, exported_.bytes);
  }
};

class double_mapping : public imported_mapping {
public:
  double_mapping(int file, std::uint64_t bytes) : bytes_(bytes) { host_ = map_file(file, bytes); }
  ~double_mapping() override {
    if (host_ != nullptr)
      ::munmap(host_, bytes_);
  }

private:
  std::uint64_t bytes_;
};

} // namespace

expected<> pin_pages(int, std::uint8_t *, std::uint64_t) { return {}; }
void unpin_pages(int, std::uint8_t *) {}

expected<> make_device_memory(int device, std::uint64_t bytes, std::unique_ptr<shm_device_memory> &out) {
#ifdef CUDAQ_TEST_VULKAN_DOUBLE
  if (device == 1)
    return test::make_vulkan_double(bytes, out);
#endif
  if (device != 0)
    return make_reason(CUDAQ_ERR_UNSUPPORTED, "--requests is gpu: there is no device %d", device);
  out = std::make_unique<double_memory>(bytes);
  return out->host() != nullptr && out->device() != nullptr
             ? expected<>{}
             : make_reason(CUDAQ_ERR_INTERNAL, "no memory for the double of a GPU");
}

expected<> map_exported_memory(const exported_memory &memory, int &descriptor, std::unique_ptr<imported_mapping> &out) {
  if (std::memcmp(memory.device_uuid, kDevice, sizeof(kDevice)) != 0)
    return {CUDAQ_ERR_UNSUPPORTED, "not the double of a GPU"};
  if (struct stat found{}; // a driver knows the size of what it imports
      ::fstat(descriptor, &found) != 0 || static_cast<std::uint64_t>(found.st_size) != memory.bytes)
    return {CUDAQ_ERR_UNSUPPORTED, "the memory has another size"};
  out = std::make_unique<double_mapping>(descriptor, memory.bytes);
  ::close(descriptor); // an import takes it
  descriptor = -1;
  return out->host() != nullptr ? expected<>{} : make_reason(CUDAQ_ERR_INTERNAL, "mmap of the double");
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/shm/shm_segment.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#ifdef CUDAQ_REALTIME_HAS_CUDART
#include <cuda_runtime_api.h>
#endif

namespace cudaq::realtime::detail {

namespace {

void *const kRefused = MAP_FAILED; // NOLINT: the system's name for it is a cast

status_or_reason make_sealed_file(std::uint64_t bytes, unsigned flags, file_handle &out) {
  file_handle file(::memfd_create("cudaq-realtime-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
  if (!file)
    return system_refused("memfd_create", errno);
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    return system_refused("ftruncate of a segment", errno);
  // All memory now, or a refusal now: a later access without memory would end the process.
  if (const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); error != 0)
    return system_refused("posix_fallocate of a segment", error);
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return system_refused("sealing a segment", errno);
  out = std::move(file);
  return {};
}

status_or_reason map_part(std::uint8_t *at, std::uint64_t bytes, int file, std::uint64_t offset) {
  const int populate = bytes <= 1u << 24 ? MAP_POPULATE : 0;
  if (::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | populate, file, static_cast<off_t>(offset)) ==
      kRefused)
    return system_refused("mmap of a segment", errno);
  return {};
}

} // namespace

shm_memory::~shm_memory() {
  for (std::uint32_t k = 0; k < files_.size(); ++k)
    unmap(k);
  if (reserved_ != nullptr)
    ::munmap(reserved_, reserved_bytes_);
  if (bell_ != nullptr)
    ::munmap(bell_, shm_page(false));
}

status_or_reason shm_memory::reserve(const shm_options &o) {
  huge_ = o.huge_pages, pinned_ = o.pinned;
  page_ = shm_page(huge_);
  layout_ = make_shm_layout(o.num_slots, o.slot_size, page_);
  window_ = shm_window(layout_, page_), span_ = shm_span(layout_, page_);
  files_.resize(o.max_clients);
  pinned_parts_.assign(o.max_clients, 0);
  // One window more: the array of requests begins after the head of a segment, and must end before the answers.
  answers_at_ = window_ * (o.max_clients + 1);
  reserved_bytes_ = answers_at_ + window_ * o.max_clients + page_; // one page more, to align the base
  void *range = ::mmap(nullptr, reserved_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == kRefused)
    return system_refused("mmap of the address range", errno);
  reserved_ = static_cast<std::uint8_t *>(range);
  const std::uint64_t misaligned = reinterpret_cast<std::uintptr_t>(reserved_) % page_;
  base_ = reserved_ + (misaligned == 0 ? 0 : page_ - misaligned);

  if (status_or_reason found = make_sealed_file(shm_page(false), 0, bell_file_))
    return found;
  void *bell = ::mmap(nullptr, shm_page(false), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, bell_file_.get(), 0);
  if (bell == kRefused)
    return system_refused("mmap of the bell", errno);
  bell_ = static_cast<shm_bell *>(bell);
  return {};
}

status_or_reason shm_memory::map(std::uint32_t k) {
  status_or_reason found = make_sealed_file(layout_.bytes, huge_ ? MFD_HUGETLB | MFD_HUGE_2MB : 0, files_[k]);
  if (!found)
    found = map_part(requests(k), layout_.tx_data, files_[k].get(), 0);
  if (!found)
    found = map_part(answers(k), layout_.bytes - layout_.tx_data, files_[k].get(), layout_.tx_data);
  if (found && huge_)
    found = make_reason(CUDAQ_ERR_UNSUPPORTED,
                        "--huge-pages: the system gave no huge pages of 2 MiB (%s); reserve %llu of them for each "
                        "client in /proc/sys/vm/nr_hugepages, or leave the option out",
                        found.text.c_str(), static_cast<unsigned long long>(layout_.bytes / page_));
  if (!found && pinned_) {
    found = pin(requests(k), layout_.tx_data);
    pinned_parts_[k] = found ? 0 : 1;
    if (!found)
      found = pin(answers(k), layout_.bytes - layout_.tx_data);
    pinned_parts_[k] = static_cast<std::uint8_t>(pinned_parts_[k] + (found ? 0 : 1));
  }
  if (found)
    unmap(k);
  return found;
}

status_or_reason shm_memory::pin([[maybe_unused]] std::uint8_t *at, [[maybe_unused]] std::uint64_t bytes) {
#ifdef CUDAQ_REALTIME_HAS_CUDART
  cudaError_t error = cudaHostRegister(at, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable);
  if (error != cudaSuccess)
    return make_reason(CUDAQ_ERR_CUDA, "--pinned: cudaHostRegister: %s; leave the option out on a machine without CUDA",
                       cudaGetErrorString(error));
  void *device = nullptr;
  error = cudaHostGetDevicePointer(&device, at, 0);
  if (error == cudaSuccess && device == at)
    return {};
  cudaHostUnregister(at);
  return make_reason(CUDAQ_ERR_UNSUPPORTED,
                     "--pinned: the device sees the memory at another address than the host (%s), so one base does "
                     "not address the slots of all clients",
                     cudaGetErrorString(error));
#else
  return {CUDAQ_ERR_UNSUPPORTED, "--pinned: this build has no CUDA (CUDAQ_REALTIME_ENABLE_CUDA)"};
#endif
}

void shm_memory::unpin(std::uint32_t k) {
#ifdef CUDAQ_REALTIME_HAS_CUDART
  if (pinned_parts_[k] > 0)
    cudaHostUnregister(requests(k));
  if (pinned_parts_[k] > 1)
    cudaHostUnregister(answers(k));
#endif
  pinned_parts_[k] = 0;
}

/// Makes the addresses a reservation again. If the system refuses it, the memory stays mapped: its addresses must not
/// become free.
void shm_memory::forget(std::uint8_t *at, std::uint64_t bytes) {
  ::mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void shm_memory::unmap(std::uint32_t k) {
  if (!files_[k])
    return;
  unpin(k);
  forget(requests(k), layout_.tx_data);
  forget(answers(k), layout_.bytes - layout_.tx_data);
  files_[k].reset();
}

void shm_memory::clear(std::uint32_t k) {
  std::uint8_t *at = requests(k);
  std::memset(at, 0, sizeof(shm_head));
  std::memset(at + layout_.rx_data, 0, layout_.tx_data - layout_.rx_data);
  std::memset(answers(k), 0, layout_.bytes - layout_.tx_data);
  // Last: a dispatcher polls the flags all the time, and takes its next request after it has seen these stores.
  for (const std::uint64_t flags : {layout_.tx_flags, layout_.rx_flags})
    for (std::uint32_t i = 0; i < layout_.num_slots; ++i)
      store_release<std::uint64_t>(reinterpret_cast<volatile std::uint64_t *>(at + flags)[i], 0);
}

bool shm_memory::has_frames(std::uint32_t k) const {
  const std::uint8_t *frame = requests(k) + layout_.rx_data;
  for (std::uint32_t i = 0; i < layout_.num_slots; ++i, frame += layout_.stride) {
    std::uint64_t first = 0;
    std::memcpy(&first, frame, sizeof(first));
    if (first != 0)
      return true;
  }
  return false;
}

} // namespace cudaq::realtime::detail

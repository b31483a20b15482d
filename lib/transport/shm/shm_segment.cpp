// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/shm/shm_segment.h"

#include "cudaq/realtime/detail/base/slot_memory.h"
#include "lib/base/descriptor.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>

namespace cudaq::realtime::detail {

namespace {

void *const kRefused = MAP_FAILED; // NOLINT: the system's name for it is a cast

expected<> make_sealed_file(std::uint64_t bytes, unsigned flags, file_handle &out) {
  file_handle file(::memfd_create("cudaq-realtime-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
  if (!file)
    return system_refused("memfd_create", errno);
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    return system_refused("ftruncate of a segment", errno);
  if (const int error = reserve_bytes(file.get(), bytes); error != 0)
    return system_refused("posix_fallocate of a segment", error);
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return system_refused("sealing a segment", errno);
  out = std::move(file);
  return {};
}

expected<> map_part(std::uint8_t *at, std::uint64_t bytes, int file, std::uint64_t offset) {
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

expected<> shm_memory::reserve(const shm_options &o) {
  huge_ = o.huge_pages, pinned_ = o.pinned;
  requests_on_gpu_ = o.requests_on_gpu, gpu_number_ = o.gpu;
  pinning_gpu_ = o.gpu_given || o.requests_on_gpu ? o.gpu : -1;
  page_ = shm_page(huge_);
  layout_ = requests_on_gpu_ ? make_gpu_layout(o.num_slots, o.slot_size, page_)
                             : make_shm_layout(o.num_slots, o.slot_size, page_);
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

  if (expected<> result = make_sealed_file(shm_page(false), 0, bell_file_); result.failed())
    return result;
  void *bell = ::mmap(nullptr, shm_page(false), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, bell_file_.get(), 0);
  if (bell == kRefused)
    return system_refused("mmap of the bell", errno);
  bell_ = static_cast<shm_bell *>(bell);
  return {};
}

expected<> shm_memory::map(std::uint32_t k) {
  expected<> result = make_sealed_file(layout_.bytes, huge_ ? MFD_HUGETLB | MFD_HUGE_2MB : 0, files_[k]);
  if (result.ok())
    result = map_part(requests(k), layout_.tx_data, files_[k].get(), 0);
  if (result.ok())
    result = map_part(answers(k), layout_.bytes - layout_.tx_data, files_[k].get(), layout_.tx_data);
  if (result.failed() && huge_)
    result = make_reason(CUDAQ_ERR_UNSUPPORTED,
                         "--huge-pages: the system gave no huge pages of 2 MiB (%s); reserve %llu of them for each "
                         "client in /proc/sys/vm/nr_hugepages, or leave the option out",
                         result.text().c_str(), static_cast<unsigned long long>(layout_.bytes / page_));
  if (result.ok() && pinned_) {
    result = pin_pages(pinning_gpu_, requests(k), layout_.tx_data);
    pinned_parts_[k] = result.failed() ? 0 : 1;
    if (result.ok())
      result = pin_pages(pinning_gpu_, answers(k), layout_.bytes - layout_.tx_data);
    pinned_parts_[k] = static_cast<std::uint8_t>(pinned_parts_[k] + (result.failed() ? 0 : 1));
  }
  if (result.ok() && requests_on_gpu_)
    result = make_gpu_part();
  if (result.failed())
    unmap(k);
  return result;
}

/// The memory of the requests, and the record by which the library finds the laps. Once: the memory stays.
expected<> shm_memory::make_gpu_part() {
  if (gpu_ == nullptr)
    if (expected<> result = make_device_memory(gpu_number_, gpu_bytes(layout_), gpu_); result.failed())
      return result;
  write_record(0);
  return {};
}

/// Its owner word, which is the dispatcher's, stays as it is. Words that are right are not written: a dispatcher may be
/// reading them.
void shm_memory::write_record(std::uint32_t k) {
  auto *const record = reinterpret_cast<ring_record *>(requests(k) + layout_.tx_flags) - 1;
  const auto set = [](std::uint64_t &word, std::uint64_t value) {
    if (load_relaxed(word) != value)
      store_relaxed(word, value);
  };
  set(record->magic[0], kRecordMagic[0]);
  set(record->magic[1], kRecordMagic[1]);
  set(record->self, reinterpret_cast<std::uintptr_t>(record));
  set(record->lap_offset, lap_distance(layout_.num_slots));
  set(record->requests, reinterpret_cast<std::uintptr_t>(rx_data(k)));
}

void shm_memory::unpin(std::uint32_t k) {
  if (pinned_parts_[k] > 0)
    unpin_pages(pinning_gpu_, requests(k));
  if (pinned_parts_[k] > 1)
    unpin_pages(pinning_gpu_, answers(k));
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
  std::memset(requests(k), 0, sizeof(shm_head));
  std::memset(rx_data(k), 0, layout_.num_slots * layout_.stride);
  std::memset(answers(k), 0, layout_.bytes - layout_.tx_data);
  if (gpu_ != nullptr) {
    write_record(k);
    for (volatile std::uint64_t *flags : {tx_flags(k), rx_flags(k)}) // laps and counts
      for (std::uint32_t i = 0; i < layout_.num_slots; ++i)
        store_release<std::uint64_t>(flags[lap_distance(layout_.num_slots) + i], 0);
    fence_posted_stores();
  }
  // Last: a dispatcher polls the flags all the time, and takes its next request after it has seen these stores.
  for (volatile std::uint64_t *flags : {tx_flags(k), rx_flags(k)})
    for (std::uint32_t i = 0; i < layout_.num_slots; ++i)
      store_release<std::uint64_t>(flags[i], 0);
  if (gpu_ != nullptr)
    fence_posted_stores();
}

bool shm_memory::has_frames(std::uint32_t k) const {
  const std::uint8_t *frame = rx_data(k);
  for (std::uint32_t i = 0; i < layout_.num_slots; ++i, frame += layout_.stride) {
    std::uint64_t first = 0; // of memory of a GPU: a read across the bus, about 1 us
    std::memcpy(&first, frame, sizeof(first));
    if (first != 0)
      return true;
  }
  return false;
}

bool shm_memory::laps_agree(std::uint32_t k) const {
  if (gpu_ == nullptr)
    return true;
  const std::uint64_t distance = lap_distance(layout_.num_slots);
  fence_posted_loads(); // the counts after the rx flags: they are final only when these are 0
  for (std::uint32_t i = 0; i < layout_.num_slots; ++i)
    if (load_relaxed(rx_flags(k)[distance + i]) != load_acquire(tx_flags(k)[distance + i]))
      return false;
  return true;
}

} // namespace cudaq::realtime::detail

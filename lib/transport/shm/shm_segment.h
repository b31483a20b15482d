// SPDX-License-Identifier: Apache-2.0
// The memory of a server: one segment for each client, all mapped into two ranges of addresses (shm_layout.h), and the
// memory of the server's bell.
//
// A segment is an anonymous file (memfd) of which a client gets a descriptor. Its size is sealed: if a client could
// shrink the file, the server's next access would end in SIGBUS. Addresses without a segment are reserved and without
// access.
#pragma once

#include "lib/transport/shm/shm_cuda.h"
#include "lib/transport/shm/shm_options.h"

#include <vector>

namespace cudaq::realtime::detail {

class shm_memory {
public:
  shm_memory() = default;
  shm_memory(const shm_memory &) = delete;
  shm_memory &operator=(const shm_memory &) = delete;
  ~shm_memory();

  /// Reserves the range and makes the bell. Once.
  expected<> reserve(const shm_options &options);
  /// Maps a new segment, filled with 0, for client k. With `pinned`, CUDA gets its pages locked; with `requests_on_gpu`
  /// the requests get memory of a GPU.
  expected<> map(std::uint32_t k);
  /// Returns the segment of client k to the system. No thread may use it.
  void unmap(std::uint32_t k);
  /// Fills the segment of client k with 0. A dispatcher may poll the flags meanwhile.
  void clear(std::uint32_t k);
  /// True if the first word of some request is not 0: then client k has written a frame since the last clear.
  bool has_frames(std::uint32_t k) const;
  /// False: the lap of some slot is not its count. If all flags are 0, then a lap is still on its way, or a client has
  /// written into the counts. True without laps.
  bool laps_agree(std::uint32_t k) const;

  const shm_layout &layout() const { return layout_; }
  std::uint32_t span() const { return span_; }
  std::uint64_t window() const { return window_; }
  /// The segment of client k up to its tx_data, and its tx_data.
  std::uint8_t *requests(std::uint32_t k) const { return base_ + k * window_; }
  std::uint8_t *answers(std::uint32_t k) const { return requests(k) + answers_at_; }
  /// The CPU's addresses of the parts of client k's ring, wherever they are.
  volatile std::uint64_t *rx_flags(std::uint32_t k) const { return words(request_side(k) + layout_.rx_flags); }
  volatile std::uint64_t *tx_flags(std::uint32_t k) const { return words(requests(k) + layout_.tx_flags); }
  std::uint8_t *rx_data(std::uint32_t k) const { return request_side(k) + layout_.rx_data; }
  /// Not NULL: the requests are in the memory of a GPU. Ring shape only, so there is one client.
  const shm_device_memory *gpu() const { return gpu_.get(); }
  bool is_mapped(std::uint32_t k) const { return static_cast<bool>(files_[k]); }
  int file(std::uint32_t k) const { return files_[k].get(); }
  shm_bell &bell() const { return *bell_; }
  int bell_file() const { return bell_file_.get(); }

private:
  static volatile std::uint64_t *words(std::uint8_t *at) { return reinterpret_cast<volatile std::uint64_t *>(at); }
  std::uint8_t *request_side(std::uint32_t k) const { return gpu_ != nullptr ? gpu_->host() : requests(k); }
  expected<> make_gpu_part();
  void write_record(std::uint32_t k);
  void unpin(std::uint32_t k);
  void forget(std::uint8_t *at, std::uint64_t bytes);

  shm_layout layout_;
  std::uint64_t window_ = 0, page_ = 0;
  std::uint64_t answers_at_ = 0; ///< from the first range to the second
  std::uint32_t span_ = 0;
  bool huge_ = false, pinned_ = false, requests_on_gpu_ = false;
  int gpu_number_ = 0;
  int pinning_gpu_ = -1; ///< of pin_pages
  std::unique_ptr<shm_device_memory> gpu_;
  std::uint8_t *reserved_ = nullptr, *base_ = nullptr;
  std::uint64_t reserved_bytes_ = 0;
  std::vector<file_handle> files_;         ///< by client
  std::vector<std::uint8_t> pinned_parts_; ///< by client: 0 to 2
  shm_bell *bell_ = nullptr;
  file_handle bell_file_;
};

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// The flight recorder of a server: its last requests, in a file that is mapped into the memory. The file has each
// request from its arrival on, also after the process was killed: the request that ended it is in the file without an
// answer. After a failure of the machine the file may be old.
#pragma once

#include "lib/base/ticks.h"
#include "lib/qec/decoding/qec_expected.h"
#include "lib/qec/server/record/record_file.h"
#include "lib/qec/server/record/request_moments.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace cudaq::qec::realtime {

/// Threads: any number at once. No function waits for another thread.
class request_recorder {
public:
  struct sizes {
    std::uint64_t records = 0; ///< the number that is kept; rounded up to a power of two
    std::uint64_t bytes = 0;   ///< of the longest request and its answer, without a frame
  };
  /// Makes the file, for its owner only, and reserves all of it on the disk. A recording that is there becomes
  /// `path`.1; another file is refused, and so are a link and a file that a server writes to. `ticks` must live longer.
  /// Fails as CUDAQ_ERR_INVALID_ARG if the path is wrong, as CUDAQ_ERR_UNSUPPORTED if the system has refused it: a full
  /// disk, a limit. Throws std::bad_alloc.
  static expected<std::unique_ptr<request_recorder>> create(const std::string &path, const sizes &size,
                                                            std::uint64_t boot_id,
                                                            const cudaq::realtime::detail::tick_clock &ticks);
  /// Whether create would find a folder to write to, and no file that it refuses, now: `path`, and `path`.1 if it would
  /// take that name. Changes nothing; a server may write to the file. Fails with the statuses of create.
  static expected<> check(const std::string &path);
  request_recorder(const request_recorder &) = delete;
  request_recorder &operator=(const request_recorder &) = delete;
  ~request_recorder(); ///< the file stays

  /// A request has come. Returns its mark, for the other functions; 0 if it has no place, because an earlier request
  /// with the same place is just being written.
  [[nodiscard]] std::uint64_t add_request(std::uint32_t function_id, std::span<const std::uint8_t> payload,
                                          std::uint32_t request_id, std::uint64_t timestamp,
                                          std::uint64_t arrived) noexcept;
  /// Its answer, before the requester gets it. False: a later request has taken the place. Then and after a mark of 0
  /// there is nothing more to do; else end() must follow.
  [[nodiscard]] bool add_answer(std::uint64_t mark, std::int32_t status, std::span<const std::uint8_t> result) noexcept;
  /// The requester has its answer. A moment that is 0 is that of the arrival.
  void end(const request_moments &moments, std::uint64_t answered) noexcept;

private:
  request_recorder(int descriptor, std::byte *begin, const record_file_head &head,
                   const cudaq::realtime::detail::tick_clock &ticks);
  [[nodiscard]] record_head &place(std::uint64_t number) const noexcept;
  void copy(record_head &to, std::uint64_t offset, std::span<const std::uint8_t> from,
            std::uint32_t &kept) const noexcept;

  const int descriptor_; ///< holds the lock of the file
  std::byte *const begin_;
  const std::uint64_t mask_, place_bytes_, bytes_;
  const cudaq::realtime::detail::tick_clock &ticks_;
  const std::uint64_t start_;                                            ///< in ticks
  alignas(64) cudaq::realtime::detail::shared_word<std::uint64_t> next_; ///< number of the next request
};

} // namespace cudaq::qec::realtime

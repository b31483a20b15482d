// SPDX-License-Identifier: Apache-2.0
// The last requests that changed a decoder's state, or were refused, and their answers. A request that was sent again
// because its answer was lost gets the same answer, and is not executed twice. docs/transport/server.md, "Repeated
// requests".
//
// A repeated request is equal to the first one in all its bytes. Equal bytes alone are no proof: a requester that uses
// one id for all requests, or the number of a slot, sends equal requests that are all meant. So the time or the id must
// also show that it is the same one. An example, a line for each request of a decoder; all but the last one are kept:
//
//   id   time   request
//   7    900    get_corrections, clear
//   8    910    enqueue
//   7    900    get_corrections, clear   no other request has this time: the answer of the first line
//   9    0      get_corrections, clear
//   9    0      get_corrections, clear   no time, but the last one was equal, and no other request has this id: its
//                                        answer
//   9    0      reset                    another request: executed
//   9    0      reset                    two requests had the id 9, so ids do not tell requests apart: executed
#pragma once

#include "lib/base/runner.h"
#include "lib/qec/server/session/wire_requests.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace cudaq::qec::realtime {

/// Not for two threads at once. It allocates in the constructor only.
class replay_cache {
public:
  using time = cudaq::realtime::detail::steady_clock::time_point;
  static constexpr std::size_t kRequests = CUDAQ_QEC_REPEAT_REQUESTS;
  /// Longer than requesters repeat: the last repeat may have been long on its way.
  static constexpr std::chrono::seconds kLife{2 * CUDAQ_QEC_REPEAT_SECONDS};

  /// What shows that an equal request is the same one, sent again. By its time: no other request that is kept has it,
  /// or none has both its time and its id, and times differ. By its id: it is the last one, and no other has its id. By
  /// its counter, which was used: it is the last one. An older one with that counter and no time may as well be that of
  /// a requester that was started again, whose bits are new ones.
  enum class proof : std::uint8_t { time, time_or_id, time_or_counter };
  struct kept_answer {
    std::int32_t status = 0;
    std::span<const std::uint8_t> bytes; ///< valid until the next keep
  };

  /// `answer_bytes`: of the longest answer. Throws std::bad_alloc.
  explicit replay_cache(std::size_t answer_bytes);
  [[nodiscard]] static std::uint64_t bytes(std::size_t answer_bytes) noexcept {
    return sizeof(replay_cache) + kRequests * answer_bytes;
  }

  /// The answer to the request that `again` repeats, or nothing. Never for requests with neither id nor time.
  [[nodiscard]] std::optional<kept_answer> find(const wire_request &again, proof wanted, time now) const noexcept;
  /// After a request was executed or refused, once. `answer`: at most answer_bytes.
  void keep(const wire_request &request, std::int32_t status, std::span<const std::uint8_t> answer, time now) noexcept;

private:
  struct record {
    std::uint64_t timestamp = 0;
    std::uint64_t content = 0;
    time arrival;
    std::int32_t status = 0;
    std::uint32_t bytes = 0;
  };

  [[nodiscard]] std::uint8_t *answer_of(std::size_t place) const noexcept {
    return answers_.get() + place * answer_bytes_;
  }

  const std::size_t answer_bytes_;
  std::uint64_t count_ = 0;                    ///< request n is at n % kRequests
  std::array<std::uint32_t, kRequests> ids_{}; ///< apart from the records, because each search reads all of them
  std::array<record, kRequests> records_{};
  std::unique_ptr<std::uint8_t[]> answers_;
};

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
// The last requests of a session whose requests have no sequence number: known by their time, or their id.
//
// A copy of a request is equal to it in all its bytes. Equal bytes alone are no proof: a requester that uses one id for
// all requests, or the number of a slot, sends equal requests that are all meant. So the time or the id must also show
// that it is the same one. An example, a line for each request of a decoder; all but the last one are kept:
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
#include "lib/session/request_state.h"

#include <chrono>
#include <memory>
#include <span>
#include <vector>

namespace cudaq::realtime::detail {

/// One with neither id nor time has no state: it is executed as it comes.
struct request_identity {
  std::uint32_t id = 0;
  std::uint64_t time = 0;    ///< of its first copy; 0: none
  std::uint64_t content = 0; ///< a hash of all other bytes
};

/// What shows that an equal request is the same one. By its time: no other request that is kept has it, or none has
/// both its time and its id, and times differ. By its id: it is the last one, and no other has its id. By its counter,
/// which was used: it is the last one. An older one with that counter and no time may as well be that of a requester
/// that was started again, whose bits are new ones.
enum class request_proof : std::uint8_t { time, time_or_id, time_or_counter };

/// Not for two threads at once. It allocates in the constructor only.
class recent_requests {
public:
  using time = steady_clock::time_point;
  struct found {
    request_state state = request_state::unseen;
    std::int32_t status = 0;
    std::span<const std::uint8_t> answer; ///< valid until the next add
  };

  /// `count`: requests that are kept, for `life` each. `answer_bytes`: of the longest answer. Throws std::bad_alloc.
  recent_requests(std::uint32_t count, std::chrono::nanoseconds life, std::size_t answer_bytes);
  [[nodiscard]] static std::uint64_t bytes(std::uint32_t count, std::size_t answer_bytes) noexcept {
    return sizeof(recent_requests) + count * (sizeof(std::uint32_t) + sizeof(record) + answer_bytes);
  }

  /// The request that `again` is a copy of; `unseen`: none.
  [[nodiscard]] found find(const request_identity &again, request_proof wanted, time now) const noexcept;
  /// A request that is in this state from now on; the oldest one is forgotten. `answer`: at most answer_bytes.
  void add(const request_identity &request, request_state state, std::int32_t status,
           std::span<const std::uint8_t> answer, time now) noexcept;

private:
  struct record {
    std::uint64_t time = 0, content = 0;
    recent_requests::time arrival;
    std::int32_t status = 0;
    std::uint32_t bytes = 0;
    request_state state = request_state::unseen;
  };
  /// The newest equal request, and what the others have of its identity.
  struct evidence {
    std::uint64_t age = 0; ///< requests after it
    bool id_is_used = false, time_is_used = false, both_are_used = false, times_differ = false;
    bool is_there = false;
  };

  [[nodiscard]] evidence search(const request_identity &again) const noexcept;
  [[nodiscard]] static bool proves(const evidence &e, const request_identity &again, request_proof wanted) noexcept;
  [[nodiscard]] std::size_t place_of(std::uint64_t age) const noexcept { return (count_ - 1 - age) % records_.size(); }

  const std::chrono::nanoseconds life_;
  const std::size_t answer_bytes_;
  std::uint64_t count_ = 0;        ///< request n is at n % size
  std::vector<std::uint32_t> ids_; ///< apart from the records, because each search reads all of them
  std::vector<record> records_;
  std::unique_ptr<std::uint8_t[]> answers_; ///< no memory until it is used
};

} // namespace cudaq::realtime::detail

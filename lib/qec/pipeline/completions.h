// SPDX-License-Identifier: Apache-2.0
// The consumer: one turn finds answered requests and calls the completion handler for each. On the pipeline's own ring
// the answers are found by their tx flags, in any order, so that no slow request holds up a fast one; on an external
// ring, whose flags somebody else collects, the workers tell.
#pragma once

#include "lib/qec/pipeline/bounded_queue.h"
#include "lib/qec/pipeline/pipeline_ring.h"

namespace cudaq::qec::realtime::detail {

struct answered_request {
  std::uint64_t request_id = 0;
  std::uint32_t slot = 0;
  std::int32_t status = 0;
  int error = 0;
};

class completions {
public:
  explicit completions(pipeline_ring &ring);

  /// While no thread takes turns.
  void call(const experimental::completion_callback *handler) { handler_ = handler; }

  /// One look; the work count is the number of completions.
  std::uint32_t turn();

  // --- external rings, from any thread: no call waits or allocates, however far behind the handler is ---

  /// A worker may take one more request: the handler is not too far behind.
  bool has_room() const { return is_below(room_); }
  /// After has_room, when the worker has the request: its completion will be told.
  void expect() { expected_.add(); }
  /// Of what was expected; there is room. (None: counted as lost.)
  void tell(const answered_request &told) noexcept;
  /// Of a request that no worker has had, and that was open at a stop: there is room.
  void tell_unexpected(const answered_request &told) noexcept;
  /// Of a launch that has failed, which could not be held up: lost, and counted so, where the handler is too far
  /// behind.
  void tell_failed_launch(const answered_request &told) noexcept;

  std::uint64_t completed() const { return completed_.value(); }
  std::uint64_t given_up() const { return given_up_.value(); }
  std::uint64_t handler_errors() const { return handler_errors_.value(); }
  std::uint64_t lost() const { return lost_.value(); }
  /// The handler is running, for reports.
  bool in_handler() const { return in_handler_.peek() != 0; }

private:
  bool collect(std::uint64_t ticket);
  void deliver(const experimental::completion &c);
  void deliver(const answered_request &told);
  bool is_below(std::uint64_t bound) const { return expected_.value() < completed_.value() + lost_.value() + bound; }

  pipeline_ring &ring_;
  const experimental::completion_callback *handler_ = nullptr;
  std::uint64_t oldest_ = 0; ///< no ticket below it is open
  const std::uint64_t room_; ///< completions that the handler may be behind
  bounded_queue<answered_request> told_;
  counter expected_; ///< told, or still to be told
  counter completed_, given_up_, handler_errors_, lost_;
  shared_word<std::uint32_t> in_handler_;
};

} // namespace cudaq::qec::realtime::detail

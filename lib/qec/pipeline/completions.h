// SPDX-License-Identifier: Apache-2.0
// The consumer: one turn finds answered requests and calls the completion handler for each. On the pipeline's own
// ring it finds the answers by their tx flags, in any order, so that a slow request does not delay a fast one. On an
// external ring another consumer collects the flags; there the threads that answer put the completions into a queue.
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

  /// The dispatcher that answers the ring's requests; before the first turn.
  void set_dispatcher(const cudaq_dispatcher_t *dispatcher) { dispatcher_ = dispatcher; }
  /// Sets the handler; only while no thread takes turns.
  void set_handler(const experimental::completion_callback *handler) { handler_ = handler; }

  /// Polls all open requests once. Returns the number of completions.
  std::uint32_t turn();

  // --- external rings, from any thread: no call waits or allocates, however late the handler is ---

  /// A worker may take one more request: the handler is not too late.
  bool has_room() const { return is_below(room_); }
  /// Called after has_room(), when the worker has a request: reserves the place of its completion.
  void expect() { expected_.add(); }
  /// Queues a completion that was expected, so there is room. (A full queue would count it as lost.)
  void enqueue(const answered_request &queued) noexcept;
  /// Queues the completion of a failed launch. Launches do not wait for the handler: if the handler is too late, the
  /// completion is lost and counted as lost.
  void enqueue_failed_launch(const answered_request &queued) noexcept;

  std::uint64_t completed() const { return completed_.value(); }
  std::uint64_t given_up() const { return given_up_.value(); }
  std::uint64_t handler_errors() const { return handler_errors_.value(); }
  std::uint64_t lost() const { return lost_.value(); }
  /// For reports: the handler is running.
  bool in_handler() const { return in_handler_.peek() != 0; }

private:
  bool collect(std::uint64_t ticket);
  bool device_has_failed() const;
  void deliver(const experimental::completion &c);
  void deliver(const answered_request &queued);
  bool is_below(std::uint64_t bound) const { return expected_.value() < completed_.value() + lost_.value() + bound; }

  pipeline_ring &ring_;
  const cudaq_dispatcher_t *dispatcher_ = nullptr;
  const experimental::completion_callback *handler_ = nullptr;
  std::uint64_t oldest_ = 0; ///< no smaller ticket is open
  const std::uint64_t room_; ///< queued completions from which on workers take no request
  bounded_queue<answered_request> queued_;
  counter expected_; ///< completions that were queued, lost, or will be queued
  counter completed_, given_up_, handler_errors_, lost_;
  shared_word<std::uint32_t> in_handler_;
};

} // namespace cudaq::qec::realtime::detail

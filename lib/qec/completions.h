// SPDX-License-Identifier: Apache-2.0
// The consumer: one turn finds answered requests and calls the completion handler for each. On the pipeline's own ring the
// answers are found by their tx flags, in any order, so that no slow request holds up a fast one; on an external ring, whose
// flags somebody else collects, the workers tell.
#pragma once

#include "lib/qec/bounded_queue.h"
#include "lib/qec/pipeline_ring.h"
#include "lib/support/runner.h"

#include <deque>

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

  /// While nobody turns.
  void call(const experimental::completion_callback *handler) { handler_ = handler; }

  /// One look; the work count is the number of completions.
  std::uint32_t turn();

  /// From any thread. Waits for room: who answers faster than the handler counts is held up when it is so far behind. The
  /// consumer's own thread, in the handler, keeps its completions for itself instead. A completion is lost, and counted
  /// so, when there is no room and nobody waits any longer.
  void tell(const answered_request &told) noexcept;
  void wait_for_room() { waits_until_.store(0); }
  void wait_no_longer_than(cudaq::realtime::detail::steady_clock::time_point end) {
    waits_until_.store(static_cast<std::uint64_t>(end.time_since_epoch().count()));
  }

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
  bool may_wait() const;
  bool keep(const answered_request &told) noexcept;

  pipeline_ring &ring_;
  const experimental::completion_callback *handler_ = nullptr;
  std::uint64_t oldest_ = 0; ///< no ticket below it is open
  bounded_queue<answered_request> told_;
  std::deque<answered_request> kept_;      ///< told by the handler when told_ was full; the consumer's own
  shared_word<std::uint64_t> waits_until_; ///< steady_clock, 0: for ever
  counter completed_, given_up_, handler_errors_, lost_;
  shared_word<std::uint32_t> in_handler_;
};

} // namespace cudaq::qec::realtime::detail

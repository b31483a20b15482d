// SPDX-License-Identifier: Apache-2.0
// A request router with its thread: requests from the thread of a dispatcher go in, answers come out on the router's
// thread.
//
//   dispatcher thread   submit: copies the request into the memory of its entry, appends the entry to the inbox
//   router thread       turn: link.progress, router.received; inbox -> router.submit -> link.send; router.tick
//
// The inbox is a ring with one writer and one reader. It holds every entry once, so it is never full.
#pragma once

#include "lib/base/runner.h"
#include "lib/transport/route/node_link.h"
#include "lib/transport/route/request_router.h"

#include <memory>
#include <string>

namespace cudaq::realtime::detail {

class router_engine final : private router_port {
public:
  /// Called on the router's thread.
  struct events {
    std::function<void(std::uint32_t entry, std::int32_t status, std::span<const std::uint8_t> result)> answer;
    std::function<void(std::uint32_t node, node_state state, const std::string &carrier)> state_changed;
  };

  /// `entry_bytes`: most bytes of a request's payload. Throws std::bad_alloc.
  router_engine(route_table table, const router_limits &limits, std::uint32_t entry_bytes, node_link &link,
                events receiver);
  /// Ends the thread if stop has not.
  ~router_engine() override { stop_.store(1); }

  expected<> start(cudaq_wait_policy_t wait);
  /// One thread. `entry` has no open request. False: the payload is longer than entry_bytes; there is no answer then.
  bool submit(std::uint32_t entry, std::uint32_t function_id, std::span<const std::uint8_t> payload,
              std::uint64_t timestamp, std::uint32_t request_id = 0);
  /// Requests that come from now on are answered not_ready.
  void close() noexcept { closed_.store(1); }
  /// Any thread. A bit for each node in `mask` (64 nodes): see request_router::drain.
  void drain(std::uint64_t mask) noexcept { drained_.store(mask); }
  /// Says bye to the nodes and answers the open requests, on the router's thread. The thread goes on: later requests
  /// are answered not_ready.
  void leave() noexcept { leave_.store(1); }
  /// Every request that was submitted has its answer.
  [[nodiscard]] bool idle() const noexcept {
    const std::uint64_t answered = answered_.value(); // read first: then no request was open when it was read
    return submitted_.value() == answered;
  }
  /// The same as leave, and ends the thread. Nothing is submitted after it. False: it still runs at the deadline.
  bool stop(steady_clock::time_point deadline);

  /// One turn, with a time; returns its work count. For tests without a thread, too.
  std::uint32_t turn(request_router::time now);

  [[nodiscard]] const request_router &router() const noexcept { return router_; }
  [[nodiscard]] std::uint64_t submitted() const noexcept { return submitted_.value(); }

private:
  bool connect(std::uint32_t node) override { return link_.connect(node); }
  void disconnect(std::uint32_t node) override { link_.disconnect(node); }
  void send(std::uint32_t node, const route_header &header, std::span<const std::uint8_t> payload) override {
    link_.send(node, header, payload);
  }
  void answer(std::uint32_t entry, std::int32_t status, std::span<const std::uint8_t> result) override;
  void state_changed(std::uint32_t node, node_state state) override;
  std::uint32_t turn_on_thread();
  void run(cudaq_wait_policy_t wait);
  void end_sessions();

  struct inbox_entry {
    std::uint32_t function_id = 0, length = 0;
    std::uint64_t timestamp = 0;
    std::uint32_t request_id = 0;
  };

  const std::uint32_t entries_, entry_bytes_;
  node_link &link_;
  const events events_;
  request_router router_;
  std::vector<std::uint8_t> payloads_;
  std::vector<inbox_entry> requests_;  ///< by entry
  std::vector<std::uint32_t> inbox_;   ///< entries, at head modulo its size
  shared_word<std::uint64_t> written_; ///< by the dispatcher's thread
  std::uint64_t read_ = 0;             ///< by the router's thread
  request_router::time now_{};         ///< of the turn
  std::uint64_t drained_before_ = 0;
  bool left_ = false;
  node_link::message_receiver on_message_;
  node_link::failure_receiver on_failure_;
  counter submitted_, answered_;
  shared_word<std::uint64_t> drained_;
  shared_word<std::uint32_t> closed_, leave_, stop_;
  loop_thread thread_;
};

} // namespace cudaq::realtime::detail

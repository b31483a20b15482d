// SPDX-License-Identifier: Apache-2.0
// The slots, the credits, and the connection with one peer: what both shapes of the provider share.
//
// A slot is a credit of the peer: it may write into the slot while it has the credit, and gets the credit back with the
// answer. The way of a request, in a ring of 2 slots with UC (4 receives are posted):
//
//   slot 0: free      write to slot 0 with immediate 0     3 receives; the header is checked and noted
//   slot 0: ready     poll() returns 0
//   slot 0: taken     the dispatcher executes it. A write to slot 0 now breaks the rule: it takes a receive, which is
//                     posted again at once, is answered BUSY, and marks the slot as overwritten
//   slot 0: taken     answer(0): the frame is sent from TX slot 0; 4 receives again
//   slot 0: free      the peer has the answer, and may write
//
// With RC one receive is posted for each free slot, so a peer that has no credit waits in its adapter.
//
// The connection: a queue pair is attached by the thread that connects peers, and taken back by it when the dispatcher
// holds no slot any more. In between, the loop uses it.
#pragma once

#include "lib/base/runner.h"
#include "lib/transport/cpu_roce/cpu_roce_counters.h"
#include "lib/transport/cpu_roce/cpu_roce_options.h"
#include "lib/transport/cpu_roce/rdma_port.h"

#include <array>
#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

namespace cudaq::realtime::detail {

/// Any thread may call anything: a mutex protects all. poll does not wait for it.
class cpu_roce_exchange {
public:
  cpu_roce_exchange(const cpu_roce_options &options, const cudaq_ringbuffer_t &ring);

  const cpu_roce_options &options() const { return options_; }
  cpu_roce_counters &counters() { return counters_; }
  std::uint8_t *rx_slot(std::uint32_t slot) const { return ring_.rx_data_host + slot * ring_.rx_stride_sz; }
  volatile std::uint64_t &rx_flag(std::uint32_t slot) const { return ring_.rx_flags_host[slot]; }
  volatile std::uint64_t &tx_flag(std::uint32_t slot) const { return ring_.tx_flags_host[slot]; }
  /// The memory that the port must register, and the most requests that are posted at a time.
  rdma_memory memory();
  std::uint32_t max_receives() const { return options_.receives(); }
  std::uint32_t max_sends() const { return 2 * options_.num_slots + kRefusals; }

  // --- the thread that connects peers ---
  /// `pair` is started with max_receives() receives.
  void attach(std::unique_ptr<rdma_queue_pair> pair);
  /// Ends the connection. True: `out` has the queue pair, if there was one, and no slot is in use. False: the
  /// dispatcher holds slots still, after the deadline, or `give_up` returned true; the connection has ended all the
  /// same.
  bool take_back(steady_clock::time_point deadline, const std::function<bool()> &give_up,
                 std::unique_ptr<rdma_queue_pair> &out);
  bool connected();
  /// Why the adapter has ended the connection; "" if it has not.
  std::string why_broken();

  /// Entries of the list of requests, with those that poll has returned: at most two for each slot.
  std::size_t ready_entries();

  // --- the control thread ---
  /// From now on poll returns requests.
  void launch();
  /// The end of it. Waits 100 ms at most until the answers are sent, and ends the connection.
  void disconnect();

  // --- the loop ---
  /// The slot of a request that has arrived; the dispatcher has it until answer or drop.
  std::optional<std::uint32_t> poll();
  /// Sends the frame in TX slot `slot`, or `status` if it is not 0. After it, the slot is the peer's.
  expected<> answer(std::uint32_t slot, std::int32_t status = 0);
  /// The dispatcher has dropped the request.
  expected<> drop(std::uint32_t slot);

  /// Refusals that may wait to be sent at the same time.
  static constexpr std::uint32_t kRefusals = 16;

private:
  enum class phase : std::uint8_t {
    free,   ///< the peer may write
    ready,  ///< a request has arrived, and waits for poll
    taken,  ///< the dispatcher has it
    waiting ///< the answer waits, because the adapter has no room for it
  };
  struct exchange_slot {
    phase in = phase::free;
    bool overwritten = false;
    std::uint32_t request_id = 0;
    std::uint64_t ptp_timestamp = 0;
  };

  // All below: mutex_ is held.
  bool up() const { return pair_ != nullptr && !ended_; }
  void reap();
  void arrived(std::uint32_t immediate, std::uint32_t bytes);
  bool fits(std::uint32_t slot, const cudaq_rpc_header_t &header, std::uint32_t bytes);
  void refuse(const cudaq_rpc_header_t &header, std::int32_t status);
  void refuse_overwritten(std::uint32_t slot);
  void mark_overwritten(std::uint32_t slot);
  void complete_frame(std::uint32_t slot, std::int32_t status);
  void send_or_wait(std::uint32_t slot);
  void send_waiting();
  void send_answer(std::uint32_t slot);
  void send(const std::uint8_t *frame, bool refusal);
  void sent();
  void receive_again();
  void free_slot(std::uint32_t slot);
  void break_connection(const char *reason);
  void forget();
  expected<> check_taken(std::uint32_t slot) const;
  std::uint8_t *tx_slot(std::uint32_t slot) const { return ring_.tx_data_host + slot * ring_.tx_stride_sz; }
  std::uint8_t *refusal(std::uint32_t i) { return refusals_.data() + std::size_t{i} * options_.frame_size; }

  const cpu_roce_options options_;
  const cudaq_ringbuffer_t ring_;
  cpu_roce_counters counters_;
  std::mutex mutex_;
  std::unique_ptr<rdma_queue_pair> pair_;
  bool ended_ = true; ///< the pair is not used: it is broken, or its end has begun
  bool launched_ = false;
  std::string why_broken_;
  std::vector<exchange_slot> slots_;
  std::uint32_t num_taken_ = 0;
  std::vector<std::uint32_t> ready_; ///< in the order of arrival, from next_ready_ on
  std::size_t next_ready_ = 0;
  std::vector<std::uint32_t> waiting_; ///< in the order of answer
  std::vector<std::uint8_t> sends_;    ///< posted and not completed, as a ring: 1 for a refusal
  std::uint32_t first_send_ = 0, num_sends_ = 0;
  std::vector<std::uint8_t> refusals_;
  std::uint32_t first_refusal_ = 0, num_refusals_ = 0; ///< in use, as a ring
};

} // namespace cudaq::realtime::detail

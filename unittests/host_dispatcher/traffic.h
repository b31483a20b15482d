// SPDX-License-Identifier: Apache-2.0
// Checked traffic: requests of random size with a sequence number and a checksum, handlers that check and record what
// they receive, and a producer and a consumer thread. Lost, doubled, torn, mixed-up and reordered messages are counted.
#pragma once

#include "unittests/support/checked_payload.h"
#include "unittests/support/host_fixture.h"
#include "unittests/support/test_scale.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>

namespace cudaq::realtime::test {

/// A host dispatcher without functions on a shared ring. As the default owner it answers unknown ids.
inline std::unique_ptr<host_dispatcher_handle> make_shared_host(cudaq_dispatch_manager_t *manager,
                                                                const host_ring &ring, std::uint32_t pool = 0,
                                                                bool default_owner = true) {
  cudaq_dispatcher_config_t config = host_config(ring.shape());
  config.shared_ring_mode = 1;
  auto made = std::make_unique<host_dispatcher_handle>(manager, ring, std::vector<cudaq_function_entry_t>{}, config);
  cudaq_dispatcher_options_t options = default_options();
  options.handler_pool_size = pool;
  options.default_owner = default_owner;
  options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(made->get, &options));
  return made;
}

/// A function under load: a handler that checks each request and counts errors.
class checked_function {
public:
  checked_function(std::uint32_t function_id, std::uint32_t max_messages)
      : id(function_id), served_(std::make_unique<std::atomic<std::uint8_t>[]>(max_messages)), size_(max_messages) {}

  /// The v2 handler; `user` is the function.
  static std::int32_t serve(cudaq_host_call_t *call, void *user) {
    return static_cast<checked_function *>(user)->serve_one(*call);
  }

  /// The v1 handler of all functions in `v1_by_id`.
  static void serve_v1(const void *rx_slot, void *tx_slot, std::size_t slot_size) {
    cudaq_rpc_header_t request;
    std::memcpy(&request, rx_slot, sizeof(request));
    std::uint8_t payload[4096]; // a copy, because in place the answer overwrites the request
    std::memcpy(payload, static_cast<const std::uint8_t *>(rx_slot) + sizeof(request), request.arg_len);
    cudaq_host_call_t call{};
    call.payload = payload;
    call.payload_len = request.arg_len;
    call.result = static_cast<std::uint8_t *>(tx_slot) + CUDAQ_RPC_HEADER_SIZE;
    call.max_result_len = static_cast<std::uint32_t>(slot_size) - CUDAQ_RPC_HEADER_SIZE;
    const std::int32_t status = v1_by_id[request.function_id]->serve_one(call);
    const cudaq_rpc_response_t response{CUDAQ_RPC_MAGIC_RESPONSE, status, call.result_len, 0, 0};
    std::memcpy(tx_slot, &response, sizeof(response));
  }
  static inline checked_function *v1_by_id[64] = {};

  const std::uint32_t id;
  std::chrono::nanoseconds busy{0}; ///< the least time that a call takes

  std::atomic<std::uint64_t> calls{0}, corrupt{0}, doubled{0}, out_of_order{0}, side_by_side{0};

private:
  std::int32_t serve_one(cudaq_host_call_t &call) {
    if (inside_.fetch_add(1) != 0)
      ++side_by_side;
    std::uint32_t sequence = 0;
    if (!intact_frame(call.payload, call.payload_len, kRequestSalt, sequence) || sequence >= size_) {
      ++corrupt;
    } else {
      if (served_[sequence].fetch_add(1) != 0)
        ++doubled;
      if (expected_.exchange(sequence + 1) != sequence)
        ++out_of_order;
      call.result_len = fill_frame(static_cast<std::uint8_t *>(call.result),
                                   checked_result_size(sequence, call.max_result_len), sequence, result_salt(id));
    }
    if (busy.count() != 0)
      for (const auto end = std::chrono::steady_clock::now() + busy; std::chrono::steady_clock::now() < end;)
        std::this_thread::yield();
    ++calls;
    inside_.fetch_sub(1);
    return 0;
  }

  std::unique_ptr<std::atomic<std::uint8_t>[]> served_;
  const std::uint32_t size_;
  std::atomic<std::uint32_t> expected_{0};
  std::atomic<int> inside_{0};
};

/// Adds a checked function to a dispatcher that is not running.
inline void serve_checked(const host_dispatcher_handle &dispatcher, checked_function &function) {
  CUDAQ_EXPECT_OK(
      cudaq_dispatcher_set_host_handler_v2(dispatcher.get, function.id, checked_function::serve, &function, nullptr));
}

struct traffic_plan {
  std::vector<checked_function *> functions;
  std::uint32_t messages = 10000;
  std::uint32_t unknown_of_100 = 0; ///< share of requests with an id that no dispatcher serves
  std::uint32_t unknown_id = 0x0badf00d;
  bool unknown_answered = true; ///< false: unknown ids are dropped
  bool random_slots = false;    ///< false: slots are filled in ring order
  std::uint32_t first_slot = 0;
  std::uint32_t seed = 1;
};

/// Traffic for all of these functions, and 3 % for an unknown function.
inline traffic_plan traffic_for(const std::vector<std::unique_ptr<checked_function>> &functions,
                                std::uint32_t messages) {
  traffic_plan plan;
  plan.messages = messages;
  plan.unknown_of_100 = 3;
  for (const auto &f : functions)
    plan.functions.push_back(f.get());
  return plan;
}

/// Runs the plan's traffic once through a ring.
class traffic {
public:
  traffic(const host_ring &ring, traffic_plan plan)
      : ring_(ring), plan_(std::move(plan)), sent_to_(plan_.functions.size()), table_(ring.shape().num_slots),
        next_(plan_.first_slot) {}

  /// Runs the producer and the consumer until every request is answered. Ends after 20 s without progress.
  void run() {
    std::thread producer([this] { produce(); });
    consume();
    producer.join();
  }
  /// run() in two halves, for tests that act during the traffic.
  void run_in_background() {
    background_ = std::thread([this] { run(); });
  }
  void wait() { background_.join(); }
  std::uint64_t collected() const { return collected_.load(); }
  std::uint32_t next_slot() const { return next_; }

  /// Fails the test if any error was counted. `ordered`: each function got its requests in order. `exclusive`: each
  /// function ran one call at a time.
  void expect_clean(bool ordered = true, bool exclusive = true) const {
    EXPECT_FALSE(stuck_) << "no progress: sent " << sent_.load() << ", collected " << collected_.load();
    EXPECT_EQ(foreign_, 0u) << "answers to another request";
    EXPECT_EQ(torn_, 0u) << "answers with a wrong checksum";
    EXPECT_EQ(refused_, 0u) << "answers with an unexpected status, the last one " << last_status_ << " "
                            << cudaq_rpc_status_string(last_status_);
    EXPECT_EQ(collected_.load() + dropped_.load(), plan_.messages);
    for (std::size_t f = 0; f < plan_.functions.size(); ++f) {
      const checked_function &function = *plan_.functions[f];
      EXPECT_EQ(function.corrupt.load(), 0u) << "function " << f;
      EXPECT_EQ(function.doubled.load(), 0u) << "function " << f;
      EXPECT_EQ(function.calls.load(), sent_to_[f]) << "function " << f;
      EXPECT_TRUE(!ordered || function.out_of_order.load() == 0) << function.out_of_order.load() << ", function " << f;
      EXPECT_TRUE(!exclusive || function.side_by_side.load() == 0)
          << function.side_by_side.load() << ", function " << f;
    }
    for (std::uint32_t i = 0; i < ring_.shape().num_slots && !stuck_; ++i)
      EXPECT_TRUE(eventually([&] { return free(i); })) << "slot " << i << " never became free";
  }

private:
  struct entry {
    std::uint32_t function = 0, sequence = 0, request_id = 0;
    std::uint64_t timestamp = 0;
    bool known = false;
  };
  bool free(std::uint32_t slot) const { return cudaq_host_ringbuffer_slot_available(&ring_.ring, slot) == 1; }

  bool find_slot(std::uint32_t &slot, std::mt19937 &random) {
    const std::uint32_t n = ring_.shape().num_slots;
    if (!plan_.random_slots) {
      slot = next_;
      return free(slot);
    }
    for (std::uint32_t tries = 0; tries < n; ++tries)
      if (slot = static_cast<std::uint32_t>(random() % n); free(slot))
        return true;
    return false;
  }

  void produce() {
    std::mt19937 random(plan_.seed);
    const std::uint32_t max_size = ring_.shape().slot_size - CUDAQ_RPC_HEADER_SIZE;
    std::vector<std::uint8_t> payload(max_size);
    for (std::uint32_t m = 0; m < plan_.messages; ++m) {
      std::uint32_t slot = 0;
      if (!eventually([&] { return stuck_ || find_slot(slot, random); }) || stuck_)
        return;
      entry &e = table_[slot];
      e.known = random() % 100 >= plan_.unknown_of_100;
      e.request_id = m * 2654435761u + plan_.seed;
      e.timestamp = ~std::uint64_t{m};
      e.function = static_cast<std::uint32_t>(random() % plan_.functions.size());
      e.sequence = e.known ? static_cast<std::uint32_t>(sent_to_[e.function]++) : m;
      const std::uint32_t size = kCheckedHeader + static_cast<std::uint32_t>(random()) % (max_size - 7);
      fill_frame(payload.data(), size, e.sequence, kRequestSalt);
      if (!e.known && !plan_.unknown_answered)
        ++dropped_;
      CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(
          &ring_.ring, slot, e.known ? plan_.functions[e.function]->id : plan_.unknown_id, payload.data(), size,
          e.request_id, e.timestamp));
      ++sent_;
      cudaq_host_ringbuffer_signal_slot(&ring_.ring, slot);
      next_ = (slot + 1) % ring_.shape().num_slots;
    }
    all_sent_.store(true);
  }

  void consume() {
    auto last_progress = std::chrono::steady_clock::now();
    for (std::uint32_t slot = 0, idle = 0; !all_sent_.load() || collected_.load() + dropped_.load() < plan_.messages;
         slot = slot + 1 == ring_.shape().num_slots ? 0 : slot + 1) {
      if (collect(slot)) {
        ++collected_;
        idle = 0;
      } else if (++idle > 2 * ring_.shape().num_slots) {
        const auto now = std::chrono::steady_clock::now();
        if (idle == 2 * ring_.shape().num_slots + 1)
          last_progress = now;
        if (now - last_progress > kDeadline) {
          stuck_ = true;
          return;
        }
        std::this_thread::yield();
      }
    }
  }

  bool collect(std::uint32_t slot) {
    if (cudaq_host_ringbuffer_poll_tx_flag(&ring_.ring, slot, nullptr) != CUDAQ_TX_READY)
      return false;
    const entry e = table_[slot];
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    std::uint32_t sequence = 0;
    if (cudaq_host_ringbuffer_read_rpc_response(&ring_.ring, slot, &header, &result) != CUDAQ_OK) {
      ++torn_;
    } else if (header.request_id != e.request_id || header.ptp_timestamp != e.timestamp) {
      ++foreign_;
    } else if (header.status != (e.known ? 0 : CUDAQ_RPC_ERR_NO_SUCH_FUNCTION)) {
      ++refused_;
      last_status_ = header.status;
    } else if (e.known &&
               (!intact_frame(result, header.result_len, result_salt(plan_.functions[e.function]->id), sequence) ||
                sequence != e.sequence)) {
      ++torn_;
    }
    cudaq_host_ringbuffer_clear_slot(&ring_.ring, slot);
    return true;
  }

  const host_ring &ring_;
  const traffic_plan plan_;
  std::vector<std::uint64_t> sent_to_;
  std::vector<entry> table_;
  std::thread background_;
  std::atomic<std::uint64_t> sent_{0}, collected_{0}, dropped_{0};
  std::atomic<bool> all_sent_{false}, stuck_{false};
  std::uint64_t foreign_ = 0, torn_ = 0, refused_ = 0;
  std::int32_t last_status_ = 0;
  std::uint32_t next_;
};

/// Blocks a handler until the test opens it.
struct spin_gate {
  std::atomic<bool> open{false};
  std::atomic<int> waiting{0};
  void pass() {
    ++waiting;
    eventually([this] { return open.load(); });
  }
};

} // namespace cudaq::realtime::test

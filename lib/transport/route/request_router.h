// SPDX-License-Identifier: Apache-2.0
// The rules of the router, without network, thread and clock: which node gets a request, when a node is lost, and what
// each request is answered. docs/transport/route.md has the promises.
//
// The life of one request, with two nodes; node 1 has the key 7 and one credit:
//
//   submit(entry 4, enqueue, key 7)   node 1 is joined, wire slot 0 is free: send request(E, slot 0, generation 1)
//   submit(entry 5, enqueue, key 7)   no credit: entry 5 waits in the queue of node 1
//   received answer(E, 0, 1)          answer(entry 4); wire slot 0 is free: entry 5 is sent with generation 2
//   tick, no message for too long     node 1 is lost: answer(entry 5, lost), key 7 is lost, disconnect(node 1)
//   received answer(E, 0, 2)          node 1 has no session with the epoch E: dropped and counted
//   tick, later                       connect(node 1), send hello(epoch E + 1); welcome: node 1 is joined
//   submit(enqueue, key 7)            answer lost, without the node
//   submit(reset, key 7)              is sent; when the node has answered 0, key 7 is in use again
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "cudaq/realtime/detail/base/shared_word.h"
#include "lib/transport/route/route_wire.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace cudaq::realtime::detail {

/// What the router itself answers. Positive numbers are those of the decoding server (docs/transport/server_wire.md);
/// for functions that are not of it, they are negative.
enum class route_status : std::int32_t {
  unknown_key = 1, ///< no node has this key
  bad_request = 2, ///< not executed: too short to have a key, or longer than the node takes
  not_ready = 4,   ///< not executed: the node is not there, or ends, or is drained; or the router ends
  lost = 6,        ///< the node was lost with the key's state. The request may have been executed. Reset the key
  /// This frame was not executed: the node has no credit left and its queue is full, or the frame waited too long. An
  /// earlier frame of the request may be at the node, so it is the library's BUSY and not the server's (5).
  busy = CUDAQ_RPC_ERR_BUSY
};

/// A function that is routed.
struct route_function {
  std::uint32_t function_id = 0;
  bool by_key = true;         ///< by the first 8 bytes of the payload; else to `node`
  std::uint32_t node = 0;     ///< if not by_key
  bool resets = false;        ///< brings a lost key into use again
  bool server_status = false; ///< the status numbers as they are, not negative
  bool has_state = true;      ///< false: it does not use the state of its key, so it is sent for a lost key, too
};

struct route_key {
  std::uint64_t key = 0;
  std::uint32_t node = 0;
};

struct route_table {
  std::uint32_t num_nodes = 0;
  std::vector<route_function> functions;
  std::vector<route_key> keys; ///< each once
};

/// A number that no other process can guess. Throws std::runtime_error if the system has none.
std::uint64_t secret_number();

struct router_limits {
  using duration = std::chrono::nanoseconds;
  duration heartbeat = std::chrono::milliseconds(100);
  duration lost_after = std::chrono::milliseconds(1000); ///< without a message of the node
  duration reconnect = std::chrono::milliseconds(200);   ///< pause between attempts
  duration answer_limit = std::chrono::seconds(10);      ///< of one request; 0: none
  std::uint32_t max_credits = 1024;                      ///< of one node
  std::uint32_t queue_length = 64;                       ///< requests that wait for a credit of one node
  std::uint32_t num_entries = 0;                         ///< requests that can be open
  /// The numbers of sessions, and of the router at each node. A node that could guess those of another node could
  /// answer for it, or take its session over.
  std::function<std::uint64_t()> draw = secret_number;
};

enum class node_state : std::uint8_t {
  absent,     ///< no connection; the next attempt has a time
  connecting, ///< hello was sent
  joined,
  leaving ///< it has sent bye: no new requests, its answers are awaited
};

/// What the router lets others do. No function may call the router back.
class router_port {
public:
  virtual ~router_port() = default;
  /// Begins a connection. False: it cannot; the router tries again later.
  virtual bool connect(std::uint32_t node) = 0;
  virtual void disconnect(std::uint32_t node) = 0;
  virtual void send(std::uint32_t node, const route_header &header, std::span<const std::uint8_t> payload) = 0;
  /// The one answer of the request in this entry, which is free from now on. `result` is valid during the call.
  virtual void answer(std::uint32_t entry, std::int32_t status, std::span<const std::uint8_t> result) = 0;
  virtual void state_changed(std::uint32_t node, node_state state) = 0;
};

/// Written by the router's thread, read by any.
struct route_node_counters {
  counter forwarded, answered; ///< requests that were sent; answers that were delivered
  counter lost;                ///< requests that were sent and answered `lost`
  counter refused;             ///< requests for the node that were not sent
  counter late;                ///< answers that came too late
  counter joins, losses;
  shared_word<std::uint32_t> state; ///< a node_state
};

/// One thread uses it, except `counters`.
class request_router {
public:
  using time = std::chrono::nanoseconds; ///< since any fixed moment; never goes back

  request_router(route_table table, const router_limits &limits, router_port &port);

  /// `entry` is free. `payload` stays valid and unchanged until its answer.
  void submit(std::uint32_t entry, std::uint32_t function_id, std::span<const std::uint8_t> payload,
              std::uint64_t timestamp, time now, std::uint32_t request_id = 0);
  /// A message that has arrived. `from`: the node whose connection it came over, if the message names it; those of an
  /// earlier version's nodes do not. A session whose messages have named it takes no others.
  void received(std::optional<std::uint32_t> from, std::span<const std::uint8_t> message, time now);
  /// The connection of this node has failed.
  void connection_failed(std::uint32_t node, time now);
  /// Call it often, after received() has got the messages that have arrived.
  void tick(time now);

  /// No new requests for this node: they are answered not_ready. It still answers those that it has.
  void drain(std::uint32_t node, bool on) { nodes_[node].drained = on; }
  /// No new requests at all, from now on.
  void close() noexcept { closed_ = true; }
  [[nodiscard]] bool idle() const noexcept { return open_ == 0; }
  /// The end: closes, and says bye to all nodes.
  void send_bye();
  /// Call it after send_bye(): disconnects, and answers the open requests.
  void leave(time now);

  [[nodiscard]] node_state state(std::uint32_t node) const { return nodes_[node].state; }
  [[nodiscard]] const route_node_counters &counters(std::uint32_t node) const { return nodes_[node].counts; }
  /// Messages that no session of this router could have sent: of an older session, or malformed.
  [[nodiscard]] const counter &stray_messages() const { return strays_; }

private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  enum class wire_phase : std::uint8_t { free, open, abandoned };
  struct wire_slot {
    wire_phase phase = wire_phase::free;
    std::uint32_t entry = kNone;
    std::uint64_t generation = 0;
  };
  struct entry_record {
    bool open = false;
    std::uint32_t function = 0; ///< index
    std::uint32_t key = kNone;  ///< index
    std::span<const std::uint8_t> payload;
    std::uint64_t timestamp = 0;
    time since{};
    std::uint64_t refused_before = 0; ///< key_record::refused at submit
    std::uint32_t request_id = 0;     ///< the requester's
  };
  struct key_record {
    std::uint64_t key = 0;
    std::uint32_t node = 0;
    bool used = false; ///< the node may have state of it
    bool lost = false; ///< only a reset is sent
    /// A reset that was sent after this generation brings it into use again. So does each copy of the reset: the
    /// requester goes on after the first answer. Generations rise in the order of sending.
    std::uint64_t reset_after = 0;
    std::uint64_t refused = 0; ///< requests that came while it was lost, and were refused
  };
  struct node_record {
    node_state state = node_state::absent;
    bool drained = false, met = false; ///< met: it has joined before
    std::uint64_t router_id = 0;       ///< the router's number at this node, for all its sessions
    std::uint64_t epoch = 0;
    bool names_connection = false; ///< each message of this session does
    std::uint32_t max_payload = 0;
    time last_message{}, pinged{}, next{}; ///< next: attempt to connect; in other states the end of waiting
    std::vector<wire_slot> slots;
    std::vector<std::uint32_t> free_slots;
    std::deque<std::uint32_t> queue; ///< entries that wait for a credit
    std::vector<std::uint32_t> keys; ///< indices
    std::uint32_t in_flight = 0;
    route_node_counters counts;
  };

  key_record *find_key(std::uint64_t key);
  const route_function *find_function(std::uint32_t id, std::uint32_t &index) const;
  void answer_own(std::uint32_t entry, route_status status);
  void refuse(node_record &node, std::uint32_t entry, route_status status);
  void refuse_lost(node_record &node, std::uint32_t entry);
  void forward(std::uint32_t node, std::uint32_t entry);
  void send_waiting(std::uint32_t node);
  void set_state(std::uint32_t node, node_state state);
  std::uint64_t new_number() const;
  void begin(std::uint32_t node, time now);
  void lose(std::uint32_t node, time now);
  void lose_keys(node_record &node, bool all);
  void handle_welcome(std::uint32_t node, const route_header &header, time now);
  void handle_answer(std::uint32_t node, const route_header &header, std::span<const std::uint8_t> result);
  void expire(std::uint32_t node, time now);
  void expire_queue(node_record &node, time now);
  void tick_node(std::uint32_t node, time now);
  route_header header_for(std::uint32_t node, route_kind kind) const;

  const router_limits limits_;
  router_port &port_;
  std::vector<route_function> functions_;
  std::vector<key_record> keys_; ///< sorted
  std::vector<node_record> nodes_;
  std::vector<entry_record> entries_;
  std::uint32_t open_ = 0;
  std::uint64_t generation_ = 0; ///< of all slots: a number is used once
  time last_tick_{}, next_expiry_{};
  bool ticked_ = false, closed_ = false;
  counter strays_;
};

} // namespace cudaq::realtime::detail

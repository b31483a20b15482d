// SPDX-License-Identifier: Apache-2.0
// A router and its nodes in one thread, with a network and a clock of the test's own: what was sent arrives in order,
// at the time that the test wants; nodes die, stop and go on. Every rule of the answers is checked at each answer.
#pragma once

#include "lib/transport/route/node_sessions.h"
#include "lib/transport/route/request_router.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace cudaq::realtime::detail::test {

using namespace std::chrono_literals;
using bytes = std::vector<std::uint8_t>;
using sim_time = request_router::time;

inline constexpr std::uint32_t kAdd = 11, kResetKey = 12, kPlain = 13, kQuestion = 14; ///< functions
inline constexpr std::uint32_t kNodeSlots = 8, kNodeSlotSize = 64;

inline bytes words(std::initializer_list<std::uint64_t> values) {
  bytes out(values.size() * 8);
  std::size_t at = 0;
  for (const std::uint64_t value : values) {
    std::memcpy(out.data() + at, &value, 8);
    at += 8;
  }
  return out;
}
inline std::uint64_t word_at(std::span<const std::uint8_t> data, std::size_t index) {
  std::uint64_t value = 0;
  std::memcpy(&value, data.data() + 8 * index, 8);
  return value;
}

inline bytes message_of(const route_header &header, std::span<const std::uint8_t> payload) {
  const auto *const begin = reinterpret_cast<const std::uint8_t *>(&header);
  bytes message(begin, begin + sizeof header);
  message.insert(message.end(), payload.begin(), payload.end());
  return message;
}

/// A connection that exists at both ends until one of them closes it.
struct wire {
  std::uint64_t id = 0;
  std::deque<bytes> to_node, to_router;
  bool router_end = true, node_end = false; ///< node_end: accepted and not closed
  bool accepted = false;
};

/// A process of a node: sessions, and a handler with a count for each key. Requests: key, serial. The answer of kAdd is
/// the new count.
class simulated_node final : public node_port {
public:
  simulated_node(std::uint32_t max_routers, std::set<std::uint64_t> &executed) : executed_(executed) {
    rx_.resize(kNodeSlots * kNodeSlotSize);
    tx_.resize(kNodeSlots * kNodeSlotSize);
    flags_.resize(kNodeSlots);
    ring.rx_data_host = rx_.data();
    ring.tx_data_host = tx_.data();
    ring.rx_flags_host = flags_.data();
    ring.rx_stride_sz = ring.tx_stride_sz = kNodeSlotSize;
    session_limits limits;
    limits.num_slots = kNodeSlots;
    limits.slot_size = kNodeSlotSize;
    limits.max_routers = max_routers;
    limits.silence = 3s;
    sessions = std::make_unique<node_sessions>(limits, ring, static_cast<node_port &>(*this));
  }

  void send(std::uint64_t connection, const route_header &header, std::span<const std::uint8_t> payload) override {
    const auto found = wires.find(connection);
    if (found == wires.end() || !found->second->node_end)
      return;
    found->second->to_router.push_back(message_of(header, payload));
  }
  void close(std::uint64_t connection) override { wires[connection]->node_end = false; }

  /// Takes at most `most` messages from each connection; `newest_first`: from that of the present session before those
  /// of older ones.
  void receive(sim_time now, std::size_t max_count = SIZE_MAX, bool newest_first = false) {
    std::vector<std::shared_ptr<wire>> all;
    for (const auto &[id, one] : wires)
      all.push_back(one);
    if (newest_first)
      std::reverse(all.begin(), all.end());
    for (const auto &one : all) {
      if (!one->accepted) {
        one->accepted = one->node_end = true;
        sessions->connected(one->id, now);
      }
      for (std::size_t n = 0; n < max_count && one->node_end && !one->to_node.empty(); ++n) {
        const bytes message = std::move(one->to_node.front());
        one->to_node.pop_front();
        route_header header;
        std::span<const std::uint8_t> payload;
        const bool hello = read_route_message(message, header, payload) && header.kind == route_kind::hello;
        sessions->received(hello ? one->id : 0, message, now);
      }
      if (one->node_end && !one->router_end && one->to_node.empty()) {
        one->node_end = false;
        sessions->disconnected(one->id);
      }
    }
  }
  void take_all() {
    std::uint32_t slot = 0;
    while (sessions->take(slot))
      taken.push_back(slot);
  }
  /// Executes and answers the oldest request that was taken. False: there is none.
  bool execute_one() {
    if (taken.empty())
      return false;
    const std::uint32_t slot = taken.front();
    taken.pop_front();
    cudaq_rpc_header_t request{};
    std::memcpy(&request, rx_.data() + slot * kNodeSlotSize, sizeof request);
    const std::span<const std::uint8_t> payload(rx_.data() + slot * kNodeSlotSize + sizeof request, request.arg_len);
    EXPECT_TRUE(executed_.insert(word_at(payload, 1)).second) << "executed twice";
    std::uint64_t &count = counts[word_at(payload, 0)];
    bytes result;
    if (request.function_id == kResetKey)
      count = 0;
    else if (request.function_id == kQuestion)
      result = words({count});
    else
      result = words({++count});
    cudaq_rpc_response_t response{};
    response.magic = CUDAQ_RPC_MAGIC_RESPONSE;
    response.result_len = static_cast<std::uint32_t>(result.size());
    std::memcpy(tx_.data() + slot * kNodeSlotSize, &response, sizeof response);
    std::copy(result.begin(), result.end(), tx_.data() + slot * kNodeSlotSize + sizeof response);
    EXPECT_TRUE(sessions->publish(slot));
    return true;
  }
  void work(sim_time now) {
    receive(now);
    take_all();
    while (execute_one()) {
    }
    sessions->tick(now);
  }

  cudaq_ringbuffer_t ring{};
  std::unique_ptr<node_sessions> sessions;
  std::map<std::uint64_t, std::shared_ptr<wire>> wires;
  std::map<std::uint64_t, std::uint64_t> counts;
  std::deque<std::uint32_t> taken;

private:
  bytes rx_, tx_;
  std::vector<std::uint64_t> flags_;
  std::set<std::uint64_t> &executed_;
};

/// For router_limits::draw: a run has the same numbers each time.
inline std::function<std::uint64_t()> counted_from(std::uint64_t first) {
  return [next = first]() mutable { return next++; };
}

struct given_answer {
  std::int32_t status = 0;
  bytes result;
};

class route_world : public router_port {
public:
  explicit route_world(std::uint32_t num_nodes, const std::function<void(router_limits &)> &change = {}) {
    route_table table;
    table.num_nodes = num_nodes;
    table.functions = {{kAdd, true, 0, false, true},
                       {kResetKey, true, 0, true, true},
                       {kPlain, false, 0, false, false},
                       {kQuestion, true, 0, false, true, false}};
    for (std::uint32_t key = 0; key < 4 * num_nodes; ++key)
      table.keys.push_back({key, key % num_nodes});
    limits.num_entries = 64;
    limits.draw = counted_from(1000);
    if (change)
      change(limits);
    nodes.resize(num_nodes);
    wires.resize(num_nodes);
    dead.assign(num_nodes, false);
    answers.resize(limits.num_entries);
    payloads.resize(limits.num_entries);
    open.assign(limits.num_entries, false);
    for (std::uint32_t node = 0; node < num_nodes; ++node)
      start_node(node);
    router = std::make_unique<request_router>(table, limits, static_cast<router_port &>(*this));
  }

  bool connect(std::uint32_t node) override {
    auto made = std::make_shared<wire>();
    made->id = ++last_wire;
    wires[node] = made;
    if (nodes[node])
      nodes[node]->wires[made->id] = made;
    return true;
  }
  void disconnect(std::uint32_t node) override {
    if (wires[node])
      wires[node]->router_end = false;
    if (wires[node])
      old_wires.push_back(wires[node]);
    wires[node].reset();
  }
  void send(std::uint32_t node, const route_header &header, std::span<const std::uint8_t> payload) override {
    ASSERT_TRUE(wires[node]);
    EXPECT_EQ(header.length, payload.size());
    wires[node]->to_node.push_back(message_of(header, payload));
  }
  void answer(std::uint32_t entry, std::int32_t status, std::span<const std::uint8_t> result) override {
    ASSERT_TRUE(open[entry]) << "a second answer";
    open[entry] = false;
    answers[entry] = given_answer{status, bytes(result.begin(), result.end())};
    if (on_answer)
      on_answer(entry, *answers[entry]);
  }
  void state_changed(std::uint32_t, node_state) override {}

  void start_node(std::uint32_t node) {
    nodes[node] = std::make_unique<simulated_node>(2, executed);
    dead[node] = false;
  }
  /// The process ends; connections to it are refused or silent.
  void kill_node(std::uint32_t node) {
    nodes[node].reset();
    dead[node] = true;
  }
  void deliver_to_router(std::uint32_t node, std::size_t max_count = SIZE_MAX) {
    for (std::size_t n = 0; n < max_count && wires[node] && !wires[node]->to_router.empty(); ++n) {
      const bytes message = std::move(wires[node]->to_router.front());
      wires[node]->to_router.pop_front();
      router->received(names_connection ? std::optional(node) : std::nullopt, message, now);
    }
  }
  /// Everything that is on its way arrives, and is worked on.
  void settle(sim_time step = 10ms) {
    for (int round = 0; round < 4; ++round) {
      now += step / 4;
      for (std::uint32_t node = 0; node < nodes.size(); ++node)
        if (nodes[node])
          nodes[node]->work(now);
      for (std::uint32_t node = 0; node < nodes.size(); ++node)
        deliver_to_router(node);
      router->tick(now);
    }
  }
  void settle_for(sim_time time) {
    for (const sim_time end = now + time; now < end;)
      settle();
  }
  /// The nodes are there, but their decoders hang.
  void hold(sim_time time) {
    for (const sim_time end = now + time; now < end;) {
      now += 10ms;
      for (std::uint32_t node = 0; node < nodes.size(); ++node) {
        nodes[node]->receive(now);
        nodes[node]->take_all();
        deliver_to_router(node);
      }
      router->tick(now);
    }
  }
  /// Only the router's side goes on: it hears nothing.
  void silence(sim_time time) {
    for (const sim_time end = now + time; now < end;) {
      now += 10ms;
      router->tick(now);
    }
  }
  std::uint32_t submit(std::uint32_t function, std::uint64_t key, std::uint32_t request_id = 0,
                       std::uint64_t time = 0) {
    const auto entry = static_cast<std::uint32_t>(std::find(open.begin(), open.end(), false) - open.begin());
    EXPECT_LT(entry, open.size());
    open[entry] = true;
    answers[entry].reset();
    payloads[entry] = words({key, ++serial});
    router->submit(entry, function, payloads[entry], time, now, request_id);
    return entry;
  }
  /// -9999: no answer yet.
  std::int32_t status(std::uint32_t entry) const { return answers[entry] ? answers[entry]->status : -9999; }
  /// The first word of the answer.
  std::uint64_t result(std::uint32_t entry) const { return word_at(answers[entry]->result, 0); }
  /// A request that arrives, and its answer, if it has one. The status.
  std::int32_t call(std::uint32_t function, std::uint64_t key) {
    const std::uint32_t entry = submit(function, key);
    settle();
    return status(entry);
  }
  /// The node's process ends, which is noticed, and another one joins.
  void restart_node(std::uint32_t node) {
    kill_node(node);
    silence(3s);
    start_node(node);
    settle_for(2s);
    EXPECT_EQ(router->state(node), node_state::joined);
  }

  router_limits limits;
  sim_time now{1s};
  std::uint64_t serial = 0, last_wire = 0;
  bool names_connection = false; ///< each message to the router does
  std::vector<std::unique_ptr<simulated_node>> nodes;
  std::vector<std::shared_ptr<wire>> wires, old_wires;
  std::vector<bool> dead;
  std::set<std::uint64_t> executed;
  std::vector<bool> open;
  std::vector<bytes> payloads;
  std::vector<std::optional<given_answer>> answers;
  std::function<void(std::uint32_t entry, const given_answer &)> on_answer;
  std::unique_ptr<request_router> router;
};

/// The nodes have joined.
struct joined_world : route_world {
  explicit joined_world(std::uint32_t num_nodes, const std::function<void(router_limits &)> &change = {})
      : route_world(num_nodes, change) {
    settle();
  }
};

inline constexpr std::int32_t kNoAnswer = -9999, kUnknownKey = 1, kBadRequest = 2, kNotReady = 4, kLost = 6,
                              kBusy = -1011;

} // namespace cudaq::realtime::detail::test

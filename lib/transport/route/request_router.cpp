// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/route/request_router.h"

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <random>

namespace cudaq::realtime::detail {
namespace {

/// A status that ends the request. A node may send any number, also the one by which a handler defers its answer: the
/// dispatcher would take it as such, and the request would never be answered.
std::int32_t final_status(std::int32_t of_node) {
  return of_node == CUDAQ_HOST_CALL_DEFERRED ? std::int32_t{CUDAQ_RPC_ERR_NO_RESPONSE} : of_node;
}

} // namespace

std::uint64_t secret_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

request_router::request_router(route_table table, const router_limits &limits, router_port &port)
    : limits_(limits), port_(port), functions_(std::move(table.functions)), nodes_(table.num_nodes),
      entries_(limits.num_entries) {
  for (node_record &node : nodes_)
    node.router_id = new_number();
  for (const route_key &key : table.keys)
    keys_.push_back({key.key, key.node});
  std::sort(keys_.begin(), keys_.end(), [](const key_record &a, const key_record &b) { return a.key < b.key; });
  for (std::uint32_t k = 0; k < keys_.size(); ++k)
    nodes_[keys_[k].node].keys.push_back(k);
}

request_router::key_record *request_router::find_key(std::uint64_t key) {
  const auto found =
      std::lower_bound(keys_.begin(), keys_.end(), key,
                       [](const key_record &record, std::uint64_t wanted) { return record.key < wanted; });
  return found != keys_.end() && found->key == key ? &*found : nullptr;
}

const route_function *request_router::find_function(std::uint32_t id, std::uint32_t &index) const {
  for (index = 0; index < functions_.size(); ++index) // a handful
    if (functions_[index].function_id == id)
      return &functions_[index];
  return nullptr;
}

void request_router::answer_own(std::uint32_t entry, route_status status) {
  const auto number = static_cast<std::int32_t>(status);
  entries_[entry].open = false;
  --open_;
  const bool as_it_is = number < 0 || functions_[entries_[entry].function].server_status;
  port_.answer(entry, as_it_is ? number : -number, {});
}

void request_router::refuse(node_record &node, std::uint32_t entry, route_status status) {
  node.counts.refused.bump();
  answer_own(entry, status);
}

/// A reset that was sent before this request does not help any more: this request belongs after it.
void request_router::refuse_lost(node_record &node, std::uint32_t entry) {
  keys_[entries_[entry].key].reset_after = generation_;
  refuse(node, entry, route_status::lost);
}

void request_router::submit(std::uint32_t entry, std::uint32_t function_id, std::span<const std::uint8_t> payload,
                            std::uint64_t timestamp, time now, std::uint32_t request_id) {
  entry_record &record = entries_[entry];
  record = {true, 0, kNone, payload, timestamp, now, 0, request_id};
  ++open_;
  const route_function *const function = find_function(function_id, record.function);
  if (function == nullptr) { // the caller registers only functions of the table
    record.function = 0;
    return answer_own(entry, route_status::unknown_key);
  }
  std::uint32_t target = function->node;
  if (function->by_key) {
    std::uint64_t number = 0;
    if (payload.size() < sizeof number)
      return answer_own(entry, route_status::bad_request);
    std::memcpy(&number, payload.data(), sizeof number);
    key_record *const key = find_key(number);
    if (key == nullptr)
      return answer_own(entry, route_status::unknown_key);
    target = key->node;
    if (function->has_state) {
      record.key = static_cast<std::uint32_t>(key - keys_.data());
      if (key->lost && !function->resets) {
        ++key->refused; // a reset that waits in the queue does not help either
        return refuse_lost(nodes_[target], entry);
      }
      record.refused_before = key->refused;
    }
  }
  node_record &node = nodes_[target];
  if (closed_ || node.drained || node.state != node_state::joined)
    return refuse(node, entry, route_status::not_ready);
  if (payload.size() > node.max_payload)
    return refuse(node, entry, route_status::bad_request);
  if (node.free_slots.empty() || !node.queue.empty()) {
    if (node.queue.size() >= limits_.queue_length)
      return refuse(node, entry, route_status::busy);
    try {
      node.queue.push_back(entry);
    } catch (const std::bad_alloc &) { // as if it were full
      refuse(node, entry, route_status::busy);
    }
    return;
  }
  forward(target, entry);
}

void request_router::forward(std::uint32_t index, std::uint32_t entry) {
  node_record &node = nodes_[index];
  entry_record &record = entries_[entry];
  const route_function &function = functions_[record.function];
  const std::uint32_t slot = node.free_slots.back();
  node.free_slots.pop_back();
  node.slots[slot] = {wire_phase::open, entry, ++generation_};
  ++node.in_flight;
  node.counts.forwarded.bump();
  if (record.key != kNone) {
    key_record &key = keys_[record.key];
    key.used = true;
    if (function.resets && key.refused != record.refused_before)
      key.reset_after = generation_; // a request that belongs after this reset was refused
  }
  route_header header = header_for(index, route_kind::request);
  header.slot = slot;
  header.length = static_cast<std::uint32_t>(record.payload.size());
  header.generation = generation_;
  header.function_id = function.function_id;
  header.timestamp = record.timestamp;
  header.status = static_cast<std::int32_t>(record.request_id);
  port_.send(index, header, record.payload);
}

void request_router::send_waiting(std::uint32_t index) {
  node_record &node = nodes_[index];
  while (!node.queue.empty() && !node.free_slots.empty()) {
    const std::uint32_t entry = node.queue.front();
    node.queue.pop_front();
    const entry_record &record = entries_[entry];
    // The key can be lost while its request waits: an earlier request of it had no answer in time. A reset that waits
    // now came later, so the refusal says nothing about it.
    if (record.key != kNone && keys_[record.key].lost && !functions_[record.function].resets)
      refuse_lost(node, entry);
    else
      forward(index, entry);
  }
}

route_header request_router::header_for(std::uint32_t node, route_kind kind) const {
  route_header header;
  header.kind = kind;
  header.node = static_cast<std::uint16_t>(node);
  header.epoch = nodes_[node].epoch;
  return header;
}

void request_router::set_state(std::uint32_t index, node_state state) {
  nodes_[index].state = state;
  nodes_[index].counts.state.store(static_cast<std::uint32_t>(state));
  port_.state_changed(index, state);
}

/// Not 0, which means that there is no session.
std::uint64_t request_router::new_number() const {
  const std::uint64_t number = limits_.draw();
  return number != 0 ? number : 1;
}

void request_router::begin(std::uint32_t index, time now) {
  node_record &node = nodes_[index];
  std::uint64_t epoch = 0;
  try {
    epoch = new_number();
  } catch (const std::exception &) { // the system has no number now
  }
  if (epoch == 0 || !port_.connect(index)) {
    node.next = now + limits_.reconnect;
    return;
  }
  node.epoch = epoch;
  node.names_connection = false;
  node.next = now + limits_.lost_after;
  set_state(index, node_state::connecting);
  route_header header = header_for(index, route_kind::hello);
  header.generation = node.router_id;
  port_.send(index, header, {});
}

void request_router::lose_keys(node_record &node, bool all) {
  for (const std::uint32_t k : node.keys) {
    keys_[k].lost = keys_[k].lost || keys_[k].used || all;
    keys_[k].reset_after = generation_;
  }
}

void request_router::lose(std::uint32_t index, time now) {
  node_record &node = nodes_[index];
  lose_keys(node, false);
  const node_state before = node.state;
  node.epoch = 0; // messages of the old session that still arrive have another epoch
  port_.disconnect(index);
  node.next = now + limits_.reconnect;
  if (before == node_state::joined || before == node_state::leaving)
    node.counts.losses.bump();
  std::vector<wire_slot> slots;
  slots.swap(node.slots);
  node.free_slots.clear();
  node.in_flight = 0;
  for (const wire_slot &slot : slots)
    if (slot.phase == wire_phase::open) {
      node.counts.lost.bump();
      answer_own(slot.entry, route_status::lost);
    }
  while (!node.queue.empty()) { // in place: another queue would need memory, and this must not end half-way
    const std::uint32_t entry = node.queue.front();
    node.queue.pop_front();
    const std::uint32_t key = entries_[entry].key;
    refuse(node, entry, key != kNone && keys_[key].lost ? route_status::lost : route_status::not_ready);
  }
  set_state(index, node_state::absent);
}

void request_router::connection_failed(std::uint32_t node, time now) {
  if (nodes_[node].state != node_state::absent)
    lose(node, now);
}

void request_router::handle_welcome(std::uint32_t index, const route_header &header, time now) {
  node_record &node = nodes_[index];
  if (node.state != node_state::connecting || header.slot == 0)
    return strays_.bump();
  const std::uint32_t credits = std::min(header.slot, limits_.max_credits);
  node.slots.assign(credits, {});
  node.free_slots.clear();
  for (std::uint32_t slot = credits; slot-- > 0;)
    node.free_slots.push_back(slot);
  node.max_payload = header.function_id;
  // Another router has used the node, perhaps this one before it was started again: its decoders may have state.
  if (header.status == 0)
    lose_keys(node, true);
  node.pinged = now;
  node.counts.joins.bump();
  set_state(index, node_state::joined);
}

void request_router::handle_answer(std::uint32_t index, const route_header &header,
                                   std::span<const std::uint8_t> result) {
  node_record &node = nodes_[index];
  const std::int32_t status = final_status(header.status);
  if (header.slot >= node.slots.size() || node.slots[header.slot].generation != header.generation ||
      node.slots[header.slot].phase == wire_phase::free)
    return strays_.bump();
  wire_slot &slot = node.slots[header.slot];
  const bool abandoned = slot.phase == wire_phase::abandoned;
  const std::uint32_t entry = slot.entry;
  slot.phase = wire_phase::free;
  node.free_slots.push_back(header.slot);
  --node.in_flight;
  if (abandoned) {
    node.counts.late.bump();
  } else {
    const entry_record &record = entries_[entry];
    if (record.key != kNone && functions_[record.function].resets && status == 0 &&
        slot.generation > keys_[record.key].reset_after)
      keys_[record.key].lost = false;
    node.counts.answered.bump();
    entries_[entry].open = false;
    --open_;
    port_.answer(entry, status, result);
  }
  if (node.state == node_state::joined)
    send_waiting(index);
}

void request_router::received(std::optional<std::uint32_t> from, std::span<const std::uint8_t> message, time now) {
  route_header header;
  std::span<const std::uint8_t> payload;
  if (!read_route_message(message, header, payload) || header.node >= nodes_.size() || header.epoch == 0 ||
      nodes_[header.node].epoch != header.epoch)
    return strays_.bump();
  node_record &node = nodes_[header.node];
  if (from.has_value() ? *from != header.node : node.names_connection)
    return strays_.bump();
  node.names_connection = from.has_value();
  node.last_message = now;
  switch (header.kind) {
  case route_kind::welcome:
    return handle_welcome(header.node, header, now);
  case route_kind::answer:
    return handle_answer(header.node, header, payload);
  case route_kind::pong:
    return;
  case route_kind::refuse:
    return lose(header.node, now);
  case route_kind::bye:
    if (node.state != node_state::joined)
      return lose(header.node, now);
    lose_keys(node, false);
    node.next = now + limits_.lost_after;
    while (!node.queue.empty()) {
      const std::uint32_t entry = node.queue.front();
      node.queue.pop_front();
      refuse(node, entry, route_status::not_ready);
    }
    return set_state(header.node, node_state::leaving);
  default:
    return strays_.bump();
  }
}

void request_router::expire(std::uint32_t index, time now) {
  node_record &node = nodes_[index];
  for (wire_slot &slot : node.slots) {
    if (slot.phase != wire_phase::open || now - entries_[slot.entry].since <= limits_.answer_limit)
      continue;
    slot.phase = wire_phase::abandoned; // the credit comes back with the late answer
    if (const std::uint32_t k = entries_[slot.entry].key; k != kNone) {
      keys_[k].lost = true;
      keys_[k].reset_after = std::max(keys_[k].reset_after, slot.generation); // a later reset is still valid
    }
    node.counts.lost.bump();
    answer_own(slot.entry, route_status::lost);
  }
  expire_queue(node, now);
}

void request_router::expire_queue(node_record &node, time now) {
  while (!node.queue.empty() && now - entries_[node.queue.front()].since > limits_.answer_limit) {
    const std::uint32_t entry = node.queue.front();
    node.queue.pop_front();
    refuse(node, entry, route_status::busy);
  }
}

void request_router::tick_node(std::uint32_t index, time now) {
  node_record &node = nodes_[index];
  switch (node.state) {
  case node_state::absent:
    if (!closed_ && now >= node.next)
      begin(index, now);
    return;
  case node_state::connecting:
    if (now >= node.next)
      lose(index, now);
    return;
  case node_state::leaving:
    if (node.in_flight == 0 || now >= node.next)
      lose(index, now);
    return;
  case node_state::joined:
    if (now - node.last_message > limits_.lost_after)
      return lose(index, now);
    if (now - node.pinged >= limits_.heartbeat) {
      node.pinged = now;
      port_.send(index, header_for(index, route_kind::ping), {});
    }
    return;
  }
}

void request_router::tick(time now) {
  // A router that was stopped itself, or had no core, has not looked: that says nothing about the nodes. But each look
  // counts as one heartbeat, so that a router whose every turn is long notices a lost node, too.
  if (const time since = now - last_tick_; ticked_ && since > limits_.heartbeat)
    for (node_record &node : nodes_) {
      node.last_message = std::min(now, node.last_message + (since - limits_.heartbeat));
      node.next += node.state == node_state::absent ? time{0} : since - limits_.heartbeat;
    }
  ticked_ = true;
  last_tick_ = now;
  const bool expiry = limits_.answer_limit.count() > 0 && now >= next_expiry_;
  if (expiry)
    next_expiry_ = now + std::max(limits_.answer_limit / 16, time{1});
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (expiry)
      expire(node, now);
    tick_node(node, now);
  }
}

void request_router::send_bye() {
  close();
  for (std::uint32_t node = 0; node < nodes_.size(); ++node)
    if (nodes_[node].state != node_state::absent)
      port_.send(node, header_for(node, route_kind::bye), {});
}

void request_router::leave(time now) {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node)
    connection_failed(node, now);
}

} // namespace cudaq::realtime::detail

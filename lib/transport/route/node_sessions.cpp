// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/route/node_sessions.h"

#include <algorithm>
#include <cstring>

namespace cudaq::realtime::detail {

node_sessions::node_sessions(const session_limits &limits, const cudaq_ringbuffer_t &ring, node_port &port)
    : limits_(limits), ring_(ring), port_(port), slots_(limits.num_slots) {
  for (std::uint32_t slot = limits.num_slots; slot-- > 0;)
    free_.push_back(slot);
  ready_.reserve(limits.num_slots);
}

void node_sessions::connected(std::uint64_t connection, time now) { connections_.push_back({connection, now}); }

void node_sessions::disconnected(std::uint64_t connection) {
  std::erase_if(connections_, [connection](const open_connection &c) { return c.id == connection; });
  for (std::size_t i = sessions_.size(); i-- > 0;)
    if (sessions_[i].connection == connection)
      end(i);
  welcome_waiting(); // for the credits that are free now
}

node_sessions::session *node_sessions::find(std::uint64_t epoch) {
  const auto found =
      std::find_if(sessions_.begin(), sessions_.end(), [epoch](const session &s) { return s.epoch == epoch; });
  return found == sessions_.end() ? nullptr : &*found;
}

// A request that was taken stays in its slot until its answer, which then finds no session.
void node_sessions::end(std::size_t index) {
  const std::uint64_t epoch = sessions_[index].epoch;
  sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(index));
  std::erase_if(ready_, [this, epoch](std::uint32_t slot) {
    if (slots_[slot].epoch != epoch)
      return false;
    counters_.discarded.bump();
    release(slot);
    return true;
  });
}

void node_sessions::release(std::uint32_t slot) {
  slots_[slot].phase = slot_phase::free;
  free_.push_back(slot);
}

std::uint32_t node_sessions::taken_of_ended(std::uint64_t router_id, bool only_this_router) const {
  return static_cast<std::uint32_t>(std::count_if(slots_.begin(), slots_.end(), [&](const slot_record &slot) {
    const bool live =
        std::any_of(sessions_.begin(), sessions_.end(), [&](const session &s) { return s.epoch == slot.epoch; });
    return slot.phase == slot_phase::taken && !live && (!only_this_router || slot.router_id == router_id);
  }));
}

void node_sessions::begin(std::uint64_t connection, const route_header &header, time now) {
  if (connection == 0 || header.epoch == 0 || find(header.epoch) != nullptr)
    return counters_.strays.bump();
  for (std::size_t i = sessions_.size(); i-- > 0;)
    if (sessions_[i].router_id == header.generation || sessions_[i].connection == connection) {
      if (sessions_[i].connection != connection)
        port_.close(sessions_[i].connection);
      end(i);
    }
  std::erase_if(connections_, [connection](const open_connection &c) { return c.id == connection; });
  if (sessions_.size() >= limits_.max_routers) {
    route_header no;
    no.kind = route_kind::refuse;
    no.node = header.node;
    no.epoch = header.epoch;
    port_.send(connection, no, {});
    connections_.push_back({connection, now});
    return;
  }
  session made;
  made.connection = connection;
  made.epoch = header.epoch;
  made.router_id = header.generation;
  made.node = header.node;
  made.credits = limits_.num_slots / limits_.max_routers;
  made.busy.assign(made.credits, false);
  made.last_message = now;
  sessions_.push_back(std::move(made));
  counters_.sessions.bump();
  welcome_waiting();
}

void node_sessions::welcome_waiting() {
  for (session &waiting : sessions_) {
    if (waiting.welcomed || taken_of_ended(waiting.router_id, true) != 0)
      continue;
    std::uint32_t promised = taken_of_ended(0, false);
    for (const session &other : sessions_)
      promised += other.welcomed ? other.credits : 0;
    if (promised + waiting.credits > limits_.num_slots)
      continue;
    waiting.welcomed = true;
    route_header header;
    header.kind = route_kind::welcome;
    header.node = waiting.node;
    header.epoch = waiting.epoch;
    header.slot = waiting.credits;
    header.function_id = limits_.slot_size - static_cast<std::uint32_t>(sizeof(cudaq_rpc_header_t));
    header.status = !used_ || (!used_by_several_ && used_by_ == waiting.router_id) ? 1 : 0;
    port_.send(waiting.connection, header, {});
  }
}

void node_sessions::received(std::uint64_t connection, std::span<const std::uint8_t> message, time now) {
  route_header header;
  std::span<const std::uint8_t> payload;
  if (!read_route_message(message, header, payload))
    return counters_.strays.bump();
  if (header.kind == route_kind::hello)
    return begin(connection, header, now);
  session *const owner = find(header.epoch);
  if (owner == nullptr || (connection != 0 ? connection != owner->connection : owner->names_connection))
    return counters_.strays.bump();
  owner->names_connection = connection != 0;
  owner->last_message = now;
  switch (header.kind) {
  case route_kind::request:
    return accept_request(*owner, header, payload);
  case route_kind::ping:
    header.kind = route_kind::pong;
    header.node = owner->node;
    header.length = 0;
    return port_.send(owner->connection, header, {});
  case route_kind::bye: {
    const std::uint64_t leaving = owner->connection;
    end(static_cast<std::size_t>(owner - sessions_.data()));
    connections_.push_back({leaving, now});
    return welcome_waiting();
  }
  default:
    return counters_.strays.bump();
  }
}

void node_sessions::accept_request(session &owner, const route_header &header, std::span<const std::uint8_t> payload) {
  const std::size_t max_payload = limits_.slot_size - sizeof(cudaq_rpc_header_t);
  // A router that keeps to its credits never gets here with one of these.
  if (!owner.welcomed || header.slot >= owner.credits || owner.busy[header.slot] || payload.size() > max_payload ||
      free_.empty())
    return counters_.strays.bump();
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  ready_.push_back(slot); // has room for all
  owner.busy[header.slot] = true;
  slots_[slot] = {slot_phase::ready, owner.epoch, owner.router_id, header.generation, header.slot};
  cudaq_rpc_header_t request{};
  request.magic = CUDAQ_RPC_MAGIC_REQUEST;
  request.function_id = header.function_id;
  request.arg_len = header.length;
  // As it is, also 0: with a number of the node's own, a repetition of a request without an id would be another one.
  request.request_id = static_cast<std::uint32_t>(header.status);
  request.ptp_timestamp = header.timestamp;
  std::memcpy(rx_slot(slot), &request, sizeof request);
  if (!payload.empty())
    std::memcpy(rx_slot(slot) + sizeof request, payload.data(), payload.size());
  used_by_several_ = used_by_several_ || (used_ && used_by_ != owner.router_id);
  used_ = true;
  used_by_ = owner.router_id;
  counters_.requests.bump();
}

bool node_sessions::take(std::uint32_t &slot) {
  if (ready_.empty())
    return false;
  slot = ready_.front();
  ready_.erase(ready_.begin());
  slots_[slot].phase = slot_phase::taken;
  store_release<std::uint64_t>(ring_.rx_flags_host[slot], 1);
  return true;
}

void node_sessions::answer(std::uint32_t slot, std::int32_t status, std::span<const std::uint8_t> result) {
  const slot_record record = slots_[slot];
  release(slot);
  session *const owner = find(record.epoch);
  if (owner == nullptr) {
    counters_.discarded.bump();
    return welcome_waiting();
  }
  owner->busy[record.wire_slot] = false;
  route_header header;
  header.kind = route_kind::answer;
  header.node = owner->node;
  header.epoch = record.epoch;
  header.slot = record.wire_slot;
  header.length = static_cast<std::uint32_t>(result.size());
  header.generation = record.generation;
  header.status = status;
  counters_.answers.bump();
  port_.send(owner->connection, header, result);
}

bool node_sessions::publish(std::uint32_t slot) {
  if (slot >= slots_.size() || slots_[slot].phase != slot_phase::taken)
    return false;
  store_release<std::uint64_t>(ring_.rx_flags_host[slot], 0);
  const std::uint8_t *const frame = ring_.tx_data_host + slot * ring_.tx_stride_sz;
  cudaq_rpc_response_t response{};
  std::memcpy(&response, frame, sizeof response);
  const bool whole =
      response.magic == CUDAQ_RPC_MAGIC_RESPONSE && response.result_len <= limits_.slot_size - sizeof response;
  if (whole)
    answer(slot, response.status, {frame + sizeof response, response.result_len});
  else
    answer(slot, CUDAQ_RPC_ERR_NO_RESPONSE, {});
  return true;
}

void node_sessions::take_back_dropped() {
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot)
    if (slots_[slot].phase == slot_phase::taken && load_acquire(ring_.rx_flags_host[slot]) == 0)
      answer(slot, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION, {}); // why a dispatcher drops a request with the right magic
}

void node_sessions::tick(time now) {
  take_back_dropped();
  for (std::size_t i = sessions_.size(); i-- > 0;)
    if (now - sessions_[i].last_message > limits_.silence) {
      port_.close(sessions_[i].connection);
      end(i);
      welcome_waiting();
    }
  std::erase_if(connections_, [this, now](const open_connection &idle) {
    if (now - idle.since <= limits_.silence)
      return false;
    port_.close(idle.id);
    return true;
  });
}

void node_sessions::close() {
  take_back_dropped();
  while (!ready_.empty()) {
    const std::uint32_t slot = ready_.front();
    ready_.erase(ready_.begin());
    answer(slot, CUDAQ_RPC_ERR_SHUTTING_DOWN, {});
  }
  for (const session &owner : sessions_) {
    route_header header;
    header.kind = route_kind::bye;
    header.node = owner.node;
    header.epoch = owner.epoch;
    port_.send(owner.connection, header, {});
  }
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
#include "lib/host_dispatcher/handler_table.h"

namespace cudaq::realtime::detail {

void expect_frame(const slot_ring &ring, std::uint32_t slot) {
  if (!ring.in_place()) // in place, the request's magic is there
    write_header(ring.tx_slot(slot), response{});
}

handler_result frame_answer(const slot_ring &ring, std::uint32_t slot) {
  const response frame = read_header<response>(ring.tx_slot(slot));
  if (frame.magic != CUDAQ_RPC_MAGIC_RESPONSE || is_protocol_status(frame.status))
    return {true, CUDAQ_RPC_ERR_NO_RESPONSE, 0};
  return {true, frame.status, frame.result_len};
}

namespace {

bool is_graph_of(const cudaq_function_entry_t &e, std::uint32_t function_id, std::uint64_t routing_key) {
  return e.dispatch_mode == CUDAQ_DISPATCH_GRAPH_LAUNCH && e.function_id == function_id && e.routing_key == routing_key;
}

/// The entries that the routes are built from. positions[k] is the number of entry k, counted over the table, then the
/// v2 handlers, then the workers.
std::vector<cudaq_function_entry_t> servable_entries(const cudaq_function_table_t &table,
                                                     const std::vector<v2_handler> &v2,
                                                     const std::vector<cudaq_host_worker_t> &workers,
                                                     std::vector<std::uint32_t> &positions) {
  std::vector<cudaq_function_entry_t> entries;
  std::uint32_t position = 0;
  const auto add = [&](const cudaq_function_entry_t &e) {
    entries.push_back(e);
    positions.push_back(position);
  };
  const auto add_graph = [&](const cudaq_function_entry_t &e) {
    for (const cudaq_function_entry_t &known : entries)
      if (is_graph_of(known, e.function_id, e.routing_key))
        return;
    add(e);
  };
  for (std::uint32_t e = 0; e < table.count; ++e, ++position)
    table.entries[e].dispatch_mode == CUDAQ_DISPATCH_GRAPH_LAUNCH ? add_graph(table.entries[e]) : add(table.entries[e]);
  cudaq_function_entry_t entry{};
  entry.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  for (const v2_handler &h : v2) {
    entry.function_id = h.function_id;
    entry.schema = h.schema;
    add(entry);
    ++position;
  }
  entry = {};
  entry.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
  for (const cudaq_host_worker_t &w : workers) {
    entry.function_id = w.function_id;
    entry.routing_key = w.routing_key;
    add_graph(entry);
    ++position;
  }
  return entries;
}

} // namespace

expected<> handler_table::prepare(const cudaq_function_table_t &table, const std::vector<v2_handler> &v2,
                                  const std::vector<cudaq_host_worker_t> &workers, const judge_rules &rules,
                                  std::uint32_t max_result_len) {
  std::vector<std::uint32_t> positions;
  const std::vector<cudaq_function_entry_t> entries = servable_entries(table, v2, workers, positions);
  const auto count = static_cast<std::uint32_t>(entries.size());
  const function_index::build_result built = index_.build(entries.data(), count);
  if (built.what != function_index::problem::none) {
    const std::uint32_t first = positions[built.first], second = positions[built.second];
    return make_reason(CUDAQ_ERR_INVALID_ARG, "function table: entries %u and %u carry function_id 0x%08x %s%s", first,
                       second, entries[built.first].function_id,
                       built.what == function_index::problem::duplicate ? "with the same routing key"
                                                                        : "in different dispatch modes",
                       first >= table.count || second >= table.count
                           ? " (numbers after the table's entries count the v2 handlers, then the graph workers)"
                           : "");
  }
  view_ = index_.view();
  rules_ = rules;
  max_result_len_ = max_result_len;
  may_defer_ = !v2.empty() || !workers.empty();
  handlers_.assign(view_.num_routes, {});
  for (std::uint32_t r = 0; r < view_.num_routes; ++r) {
    const function_route &route = view_.routes[r];
    if (route.mode != CUDAQ_DISPATCH_HOST_CALL)
      continue;
    const std::uint32_t e = positions[route.entry];
    if (e < table.count)
      handlers_[r].v1 = entries[route.entry].handler.host_fn;
    else
      handlers_[r] = {nullptr, v2[e - table.count].fn, v2[e - table.count].user};
  }
  return {};
}

handler_result handler_table::run(const slot_ring &ring, std::uint32_t slot, const request &r, std::uint32_t route,
                                  std::uint64_t generation, thread_counters &here) const {
  const handler &h = handlers_[route];
  if (h.v1 == nullptr && h.v2 == nullptr) // a graph without a worker
    return {true, CUDAQ_RPC_ERR_WORKER_UNAVAILABLE, 0};
  handler_result response;
  here.enter(slot, r.function_id);
  try {
    response = must_return(
        [&] { return h.v2 != nullptr ? run_v2(ring, slot, r, h, generation, here) : run_v1(ring, slot, h); },
        "the handler of function", r.function_id);
  } catch (...) {
    response = {true, CUDAQ_RPC_ERR_HANDLER_THREW, 0};
  }
  here.leave();
  return response;
}

handler_result handler_table::run_v1(const slot_ring &ring, std::uint32_t slot, const handler &h) const {
  expect_frame(ring, slot);
  h.v1(ring.rx_slot(slot), ring.tx_slot(slot), ring.slot_size);
  return frame_answer(ring, slot);
}

handler_result handler_table::run_v2(const slot_ring &ring, std::uint32_t slot, const request &r, const handler &h,
                                     std::uint64_t generation, thread_counters &here) const {
  const void *payload = ring.rx_slot(slot) + CUDAQ_RPC_HEADER_SIZE;
  if (!here.scratch.empty()) // in place the result overwrites the payload
    payload = std::memcpy(here.scratch.data(), payload, r.arg_len);
  cudaq_host_call_t call{};
  call.payload = payload;
  call.result = ring.tx_slot(slot) + CUDAQ_RPC_HEADER_SIZE;
  call.payload_len = r.arg_len;
  call.max_result_len = max_result_len_;
  call.function_id = r.function_id;
  call.ptp_timestamp = r.ptp_timestamp;
  call.job = {generation, slot, r.request_id};
  const std::int32_t status = h.v2(&call, h.user);
  if (!is_protocol_status(status)) [[likely]]
    return {true, status, call.result_len};
  if (status == CUDAQ_HOST_CALL_DEFERRED)
    return {false, status, call.result_len};
  return {true, CUDAQ_RPC_ERR_NO_RESPONSE, 0};
}

} // namespace cudaq::realtime::detail

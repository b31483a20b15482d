// SPDX-License-Identifier: Apache-2.0
#include "lib/host_dispatcher/executor.h"

namespace cudaq::realtime::detail {

finding executor::prepare(const cudaq_function_table_t &table, const std::vector<v2_handler> &v2,
                          const judge_rules &rules) {
  std::vector<cudaq_function_entry_t> entries(table.entries, table.entries + table.count);
  for (const v2_handler &h : v2) {
    cudaq_function_entry_t entry{};
    entry.function_id = h.function_id;
    entry.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
    entry.schema = h.schema;
    entries.push_back(entry);
  }
  const auto count = static_cast<std::uint32_t>(entries.size());
  const function_index::outcome built = index_.build(entries.data(), count);
  if (built.what != function_index::problem::none)
    return make_finding(
        CUDAQ_ERR_INVALID_ARG, "function table: entries %u and %u carry function_id 0x%08x %s%s", built.first,
        built.second, entries[built.first].function_id,
        built.what == function_index::problem::duplicate ? "with the same routing key" : "in different dispatch modes",
        built.first >= table.count || built.second >= table.count ? " (positions behind the table are v2 handlers)"
                                                                  : "");
  view_ = index_.view();
  rules_ = rules;
  may_defer_ = !v2.empty();
  handlers_.assign(view_.num_routes, {});
  for (std::uint32_t r = 0; r < view_.num_routes; ++r) {
    const std::uint32_t e = view_.routes[r].entry;
    if (e >= table.count)
      handlers_[r] = {nullptr, v2[e - table.count].fn, v2[e - table.count].user};
    else if (entries[e].dispatch_mode == CUDAQ_DISPATCH_HOST_CALL)
      handlers_[r].v1 = entries[e].handler.host_fn;
  }
  return {};
}

outcome executor::checked(const slot_ring &ring, std::uint32_t route, const outcome &said) const {
  if (said.result_len > ring.max_payload())
    return {true, CUDAQ_RPC_ERR_RESULT_TOO_LARGE, 0};
  if (rules_.check_schema && said.status == CUDAQ_RPC_OK && contradicts_results(view_.routes[route], said.result_len))
    return {true, CUDAQ_RPC_ERR_SCHEMA_MISMATCH, 0};
  return said;
}

outcome executor::run(const slot_ring &ring, std::uint32_t slot, const request &r, std::uint32_t route,
                      std::uint64_t generation, lane &here) const noexcept {
  const handler &h = handlers_[route];
  outcome said;
  here.enter(slot, r.function_id);
  try {
    said = h.v2 != nullptr ? run_v2(ring, slot, r, h, generation, here) : run_v1(ring, slot, h);
  } catch (...) {
    said = {true, CUDAQ_RPC_ERR_HANDLER_THREW, 0};
  }
  here.leave();
  return said.now ? checked(ring, route, said) : said;
}

outcome executor::run_v1(const slot_ring &ring, std::uint32_t slot, const handler &h) const {
  std::uint8_t *tx_slot = ring.tx_slot(slot);
  if (!ring.in_place()) // else the last answer's magic would pass for this one's
    write_header(tx_slot, response{});
  h.v1(ring.rx_slot(slot), tx_slot, ring.slot_size);
  const response frame = read_header<response>(tx_slot);
  if (frame.magic != CUDAQ_RPC_MAGIC_RESPONSE)
    return {true, CUDAQ_RPC_ERR_NO_RESPONSE, 0};
  return {true, frame.status, frame.result_len};
}

outcome executor::run_v2(const slot_ring &ring, std::uint32_t slot, const request &r, const handler &h,
                         std::uint64_t generation, lane &here) const {
  const void *payload = ring.rx_slot(slot) + CUDAQ_RPC_HEADER_SIZE;
  if (ring.in_place()) // the result goes where the payload stands
    payload = std::memcpy(here.scratch.data(), payload, r.arg_len);
  cudaq_host_call_t call{};
  call.payload = payload;
  call.result = ring.tx_slot(slot) + CUDAQ_RPC_HEADER_SIZE;
  call.payload_len = r.arg_len;
  call.max_result_len = ring.max_payload();
  call.function_id = r.function_id;
  call.ptp_timestamp = r.ptp_timestamp;
  call.job = {generation, slot, r.request_id};
  const std::int32_t status = h.v2(&call, h.user);
  return {status != CUDAQ_HOST_CALL_DEFERRED, status, call.result_len};
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// What is to be done with a request, decided from its header alone, before any handler sees it.
#pragma once

#include "cudaq/realtime/detail/ring/function_index.h"

namespace cudaq::realtime::detail {

/// How a dispatcher treats doubtful requests.
struct judge_rules {
  std::uint8_t served_modes = 0; ///< bit m: entries with dispatch mode m are served
  bool answer_unknown = false;   ///< answer an unknown function id instead of dropping the request
  bool check_schema = false;
  bool strict_flag_values = false;
};

enum class verdict : std::uint8_t {
  serve,           ///< `route` serves it
  answer,          ///< answer with `status`, no handler
  drop_magic,      ///< no request frame: nothing in it can be trusted, not even the id
  drop_unknown,    ///< no such function, and the policy is to stay silent
  drop_flag_value, ///< strict: the flag was not the slot's address
};

struct judgement {
  verdict what = verdict::serve;
  std::int32_t status = CUDAQ_RPC_OK;
  std::uint32_t route = function_index_view::kNone;
};

/// Arguments that contradict the schema. Says nothing about a zeroed schema or behind a variable size.
CUDAQ_REALTIME_HOST_DEVICE inline bool contradicts_args(const function_route &route, std::uint32_t arg_len) {
  if (!route.args_stated)
    return false;
  return route.args_fixed ? arg_len != route.args_bytes : arg_len < route.args_bytes;
}

/// Results that contradict the schema.
CUDAQ_REALTIME_HOST_DEVICE inline bool contradicts_results(const function_route &route, std::uint32_t result_len) {
  return route.results_fixed && result_len != route.results_bytes;
}

/// Judges the request `r`. `expected_flag`: its rx flag was the slot's own address; `max_payload`: of the ring;
/// `payload`: its payload, or a copy of the first 8 bytes; `index`: a function_index_view, or what answers like one.
/// The order of the tests is the order in which fields become trustworthy: flag, magic, length, function, mode, schema.
template <class Index>
CUDAQ_REALTIME_HOST_DEVICE inline judgement judge(const request &r, bool expected_flag, std::uint32_t max_payload,
                                                  const std::uint8_t *payload, const Index &index,
                                                  const judge_rules &rules) {
  if (rules.strict_flag_values && !expected_flag)
    return {verdict::drop_flag_value};
  if (r.magic != CUDAQ_RPC_MAGIC_REQUEST)
    return {verdict::drop_magic};
  const function_bucket run = index.bucket(r.function_id);
  if (run.count == 0)
    return rules.answer_unknown ? judgement{verdict::answer, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION}
                                : judgement{verdict::drop_unknown};
  if (r.arg_len > max_payload)
    return {verdict::answer, CUDAQ_RPC_ERR_BAD_ARG_LEN};
  const std::uint32_t route = index.find_in(run, r, payload);
  if (route == function_index_view::kNone) // the function exists, but not for this routing key
    return {verdict::answer, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION};
  if ((rules.served_modes >> run.mode & 1u) == 0)
    return {verdict::answer, CUDAQ_RPC_ERR_MODE_NOT_SERVED, route};
  if (rules.check_schema && contradicts_args(index.routes[route], r.arg_len))
    return {verdict::answer, CUDAQ_RPC_ERR_SCHEMA_MISMATCH, route};
  return {verdict::serve, CUDAQ_RPC_OK, route};
}

/// The same for a request that stands in slot `i` under the flag value `flag`.
template <class Ring>
CUDAQ_REALTIME_HOST_DEVICE inline judgement judge_slot(const Ring &ring, std::uint32_t i, std::uint64_t flag,
                                                       const request &r, const function_index_view &index,
                                                       const judge_rules &rules) {
  return judge(r, ring.is_own_address(i, flag), ring.max_payload(), ring.rx_slot(i) + CUDAQ_RPC_HEADER_SIZE, index,
               rules);
}

} // namespace cudaq::realtime::detail

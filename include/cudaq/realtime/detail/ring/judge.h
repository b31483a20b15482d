// SPDX-License-Identifier: Apache-2.0
// Decides how a request is treated, from its header alone, before a handler is called.
#pragma once

#include "cudaq/realtime/detail/ring/function_index.h"

namespace cudaq::realtime::detail {

/// How a dispatcher treats invalid and unknown requests.
struct judge_rules {
  std::uint8_t served_modes = 0; ///< bit m: entries with dispatch mode m are served
  bool answer_unknown = false;   ///< answer an unknown function id instead of dropping the request
  bool check_schema = false;
  bool strict_flag_values = false;
};

enum class verdict : std::uint8_t {
  serve,           ///< call the handler of `route`
  answer,          ///< answer with `status`, call no handler
  drop_magic,      ///< not a request frame: no field of it is valid, its id included
  drop_unknown,    ///< unknown function id, and the policy is to drop such requests
  drop_flag_value, ///< strict flag values: the flag was not the slot's address
};

struct judgement {
  verdict what = verdict::serve;
  std::int32_t status = CUDAQ_RPC_OK;
  std::uint32_t route = function_index_view::kNone;
};

/// True if the arguments contradict the schema. Always false for a zeroed schema. With an argument of variable size
/// only the minimum length is checked.
CUDAQ_REALTIME_HOST_DEVICE inline bool contradicts_args(const function_route &route, std::uint32_t arg_len) {
  if (!route.args_stated)
    return false;
  return route.args_fixed ? arg_len != route.args_bytes : arg_len < route.args_bytes;
}

/// True if the results contradict the schema.
CUDAQ_REALTIME_HOST_DEVICE inline bool contradicts_results(const function_route &route, std::uint32_t result_len) {
  return route.results_fixed && result_len != route.results_bytes;
}

/// Judges the request `r`.
///   expected_flag  its rx flag was the slot's own address
///   max_payload    of the ring
///   payload        its payload, or a copy of the first 8 bytes
///   index          a function_index_view, or a type with the same members
/// The tests are in the order in which fields become trustworthy: flag, magic, function, length, routing key, mode,
/// schema.
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
  if (route == function_index_view::kNone) // the function id exists, but not with this routing key
    return {verdict::answer, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION};
  if ((rules.served_modes >> run.mode & 1u) == 0)
    return {verdict::answer, CUDAQ_RPC_ERR_MODE_NOT_SERVED, route};
  if (rules.check_schema && contradicts_args(index.routes[route], r.arg_len))
    return {verdict::answer, CUDAQ_RPC_ERR_SCHEMA_MISMATCH, route};
  return {verdict::serve, CUDAQ_RPC_OK, route};
}

/// The same for a request `r` in slot `i` with the flag value `flag`.
template <class Ring>
CUDAQ_REALTIME_HOST_DEVICE inline judgement judge_slot(const Ring &ring, std::uint32_t i, std::uint64_t flag,
                                                       const request &r, const function_index_view &index,
                                                       const judge_rules &rules) {
  return judge(r, ring.is_own_address(i, flag), ring.max_payload(), ring.rx_slot(i) + CUDAQ_RPC_HEADER_SIZE, index,
               rules);
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/request_gate.h"

#include "lib/base/content_hash.h"

#include <algorithm>
#include <cstring>

namespace cudaq::realtime::detail {
namespace {

using action = gate_decision::action;

/// What a repeated request has in common: all but request_id and ptp_timestamp, which may be the time of each attempt.
std::uint64_t content_of(const cudaq_rpc_header_t &header, std::span<const std::uint8_t> bytes) {
  const std::span<const std::uint8_t> payload = bytes.subspan(CUDAQ_RPC_HEADER_SIZE);
  return content_hash(std::uint64_t{header.function_id} << 32 | header.arg_len,
                      payload.first(std::min<std::size_t>(payload.size(), header.arg_len)));
}

bool is_busy(std::span<const std::uint8_t> frame) {
  cudaq_rpc_response_t header;
  if (frame.size() < sizeof(header))
    return false;
  std::memcpy(&header, frame.data(), sizeof(header));
  return header.magic == CUDAQ_RPC_MAGIC_RESPONSE && header.status == CUDAQ_RPC_ERR_BUSY;
}

} // namespace

request_gate::request_gate(const datagram_options &options, datagram_counters &counters)
    : slot_size_(options.slot_size), counters_(counters) {
  if (options.replay_window != 0)
    windows_.emplace(options.replay_window, options.max_peers, options.slot_size,
                     std::chrono::milliseconds(options.peer_timeout_ms), counters);
}

gate_decision request_gate::judge(const received_frame &datagram, bool room, peer_windows::time now) {
  counters_.received.bump();
  gate_decision decision;
  const std::size_t size = datagram.bytes.size();
  if (size < sizeof(decision.header)) {
    counters_.dropped_short.bump();
    return decision;
  }
  std::memcpy(&decision.header, datagram.bytes.data(), sizeof(decision.header));
  if (decision.header.magic != CUDAQ_RPC_MAGIC_REQUEST) {
    (datagram.cut ? counters_.dropped_long : counters_.dropped_magic).bump();
    return decision;
  }
  if (datagram.cut)
    return answer(decision, counters_.dropped_long, CUDAQ_RPC_ERR_BAD_ARG_LEN);
  // A length that no slot has is left to the dispatcher, which answers the same status and counts it.
  const std::uint32_t arg_len = decision.header.arg_len;
  if (arg_len <= slot_size_ - CUDAQ_RPC_HEADER_SIZE && arg_len > size - CUDAQ_RPC_HEADER_SIZE)
    return answer(decision, counters_.answered_truncated, CUDAQ_RPC_ERR_BAD_ARG_LEN);
  if (windows_)
    return judge_once(decision, datagram, room, now);
  if (!room)
    return answer(decision, counters_.answered_busy, CUDAQ_RPC_ERR_BUSY);
  counters_.accepted.bump();
  decision.what = action::accept;
  return decision;
}

gate_decision request_gate::judge_once(gate_decision decision, const received_frame &datagram, bool room,
                                       peer_windows::time now) {
  const std::uint64_t content = content_of(decision.header, datagram.bytes);
  const auto found = windows_->find(*datagram.from, decision.header.request_id, content, now);
  if (!found) {
    counters_.dropped_peers.bump();
    return decision;
  }
  switch (rule_for_copies(found->state)) {
  case copy_rule::execute:
    if (!room)
      return answer(decision, counters_.answered_busy, CUDAQ_RPC_ERR_BUSY);
    windows_->begin(found->key, content);
    counters_.accepted.bump();
    decision.what = action::accept;
    decision.key = found->key;
    return decision;
  case copy_rule::repeat:
    counters_.replays.bump();
    decision.what = action::answer;
    decision.replay = found->answer;
    return decision;
  case copy_rule::reject:
    return answer(decision, found->state == request_state::stale ? counters_.answered_stale : counters_.answered_reused,
                  CUDAQ_RPC_ERR_REQUEST_ID);
  case copy_rule::wait:
  case copy_rule::drop:
    break;
  }
  counters_.dropped_duplicates.bump();
  return decision;
}

void request_gate::answered(const request_key &key, std::span<const std::uint8_t> frame) {
  if (!windows_)
    return;
  if (is_busy(frame))
    windows_->forget(key);
  else
    windows_->keep(key, frame);
}

gate_decision request_gate::answer(gate_decision decision, counter &reason, std::int32_t status) {
  reason.bump();
  decision.what = action::answer;
  decision.status = status;
  return decision;
}

} // namespace cudaq::realtime::detail

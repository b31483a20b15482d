// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/replay_plan.h"

#include "lib/qec/server/record/answer_check.h"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

/// It reads or changes what earlier requests have left in the decoder.
bool needs_session(qec::wire_function function) {
  using enum qec::wire_function;
  return qec::has_counter(function) || function == get_corrections || function == get_committed;
}

} // namespace

std::string function_name(std::uint32_t function_id) {
  static constexpr std::pair<std::uint32_t, const char *> kNames[] = {
      {CUDAQ_QEC_ENQUEUE_SYNDROMES, "enqueue_syndromes"},
      {CUDAQ_QEC_ENQUEUE_READOUT, "enqueue_readout"},
      {CUDAQ_QEC_GET_CORRECTIONS, "get_corrections"},
      {CUDAQ_QEC_RESET_DECODER, "reset_decoder"},
      {CUDAQ_QEC_BEGIN_TAIL, "begin_tail"},
      {CUDAQ_QEC_GET_COMMITTED, "get_committed"},
      {CUDAQ_QEC_DESCRIBE_DECODER, "describe_decoder"},
      {CUDAQ_QEC_GET_DECODER_NAME, "get_decoder_name"},
      {CUDAQ_QEC_DECODE, "qec_decode"},
      {CUDAQ_QEC_DECODE_READOUT, "qec_decode_readout"}};
  for (const auto &[id, name] : kNames)
    if (id == function_id)
      return name;
  return fmt::format("function {:#010x}", function_id);
}

std::optional<qec::recorded_request> replay_plan::next() {
  while (at_ < recording_.size()) {
    const std::size_t index = at_++;
    if (std::exchange(next_number_, recording_.number(index) + 1) != recording_.number(index)) {
      has_begin_ = false;
      reset_.clear();
    }
    std::optional<qec::recorded_request> request = recording_.read(index);
    if (!request || request->payload.size() != request->payload_bytes) {
      ++left_out_.unreadable;
      has_begin_ = false;
      reset_.clear();
    } else if (is_played(*request)) {
      return request;
    }
  }
  return {};
}

bool replay_plan::is_copy(std::uint64_t decoder, const identity &request) {
  auto &[all, oldest] = last_[decoder];
  if (std::ranges::find(all, request) != all.end())
    return true;
  if (all.size() < CUDAQ_QEC_REPEAT_REQUESTS)
    all.push_back(request);
  else
    all[std::exchange(oldest, (oldest + 1) % all.size())] = request;
  return false;
}

bool replay_plan::is_played(const qec::recorded_request &recorded) {
  const qec::read_result read = qec::read_request(recorded.function_id, recorded.payload);
  const qec::wire_request &request = read.request;
  if (recorded.is_answered && qec::was_not_executed(recorded.function_id, recorded.status)) {
    ++left_out_.not_executed;
    return false;
  }
  if (read.status == qec::server_status::ok && qec::changes_state(request) && recorded.timestamp != 0 &&
      is_copy(request.decoder_id, {recorded.request_id, recorded.timestamp, request.content})) {
    ++left_out_.copies;
    return false;
  }
  if (!read.knows_decoder)
    return true;
  if (request.function == qec::wire_function::reset && read.status == qec::server_status::ok)
    reset_.insert(request.decoder_id);
  if (!needs_session(request.function) || has_begin_ || reset_.contains(request.decoder_id))
    return true;
  ++left_out_.without_begin;
  return false;
}

} // namespace cudaq::realtime::tools

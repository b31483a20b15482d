// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/record/answer_check.h"

#include "lib/qec/server/session/decoder_session.h"
#include "lib/qec/server/session/wire_requests.h"

#include <algorithm>

namespace cudaq::qec::realtime {
namespace {

server_status status_of(std::uint32_t function_id, std::int32_t status) noexcept {
  // Only of a shot in one request the numbers differ.
  const bool is_one_shot = function_id == kOneShotFunctionId || function_id == kOneShotReadoutFunctionId;
  return counted_status(is_one_shot ? wire_function::one_shot : wire_function::enqueue, status);
}

/// The part of a result that two runs have in common.
std::span<const std::uint8_t> lasting_part(std::uint32_t function_id, std::span<const std::uint8_t> result) noexcept {
  if (function_id == kDescribeFunctionId)
    return result.first(std::min(result.size(), kModelFactsBytes));
  if (function_id == kGetCommittedFunctionId)
    return result.subspan(std::min(result.size(), kCommittedHeadBytes));
  return result;
}

/// Rounds that were final, of an answer to get_committed.
std::span<const std::uint8_t> final_rounds(std::span<const std::uint8_t> result) noexcept {
  return result.first(std::min(result.size(), sizeof(cudaq_qec_committed_t::committed_through)));
}

} // namespace

bool was_not_executed(std::uint32_t function_id, std::int32_t status) noexcept {
  const server_status why = status_of(function_id, status);
  return why == server_status::busy || why == server_status::not_ready;
}

answer_verdict compare_answers(std::uint32_t function_id, const given_answer &first,
                               const given_answer &second) noexcept {
  for (const given_answer *answer : {&first, &second})
    if (was_not_executed(function_id, answer->status) ||
        status_of(function_id, answer->status) == server_status::deadline)
      return answer_verdict::depends_on_time;
  if (first.status != second.status)
    return answer_verdict::other_status;
  if (function_id == kNameFunctionId && !std::ranges::equal(first.result, second.result))
    return answer_verdict::depends_on_time;
  if (function_id == kGetCommittedFunctionId &&
      !std::ranges::equal(final_rounds(first.result), final_rounds(second.result)))
    return answer_verdict::depends_on_time;
  const auto a = lasting_part(function_id, first.result), b = lasting_part(function_id, second.result);
  if (a.size() != b.size())
    return answer_verdict::other_length;
  return std::ranges::equal(a, b) ? answer_verdict::equal : answer_verdict::other_bits;
}

} // namespace cudaq::qec::realtime

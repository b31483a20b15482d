// SPDX-License-Identifier: Apache-2.0
// Two answers to one request, of two runs or of two decoders: a replayed recording, a decoder in the shadow of another.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace cudaq::qec::realtime {

/// What a comparison found. `depends_on_time`: the answers may differ although both decoders are right: one is BUSY,
/// NOT_READY or DEADLINE, describes the server, or reads a stream at another round.
enum class answer_verdict : std::uint8_t { equal, depends_on_time, other_status, other_length, other_bits };
inline constexpr std::string_view kAnswerVerdicts[] = {"equal", "depends on time", "other status", "other length",
                                                       "other bits"};

struct given_answer {
  std::int32_t status = 0; ///< of the wire
  std::span<const std::uint8_t> result;
};

/// `function_id`: of the request, which was the same. Any thread; allocates nothing.
[[nodiscard]] answer_verdict compare_answers(std::uint32_t function_id, const given_answer &first,
                                             const given_answer &second) noexcept;

/// Whether the request of this answer was not executed, or only its first copy: BUSY and NOT_READY. A replay leaves it
/// out.
[[nodiscard]] bool was_not_executed(std::uint32_t function_id, std::int32_t status) noexcept;

} // namespace cudaq::qec::realtime

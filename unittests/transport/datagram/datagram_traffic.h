// SPDX-License-Identifier: Apache-2.0
// Numbered messages whose answers are checked: number, checksum, and how often the server has executed each.
#pragma once

#include "lib/transport/datagram/datagram_client.h"
#include "unittests/support/test_scale.h"
#include "unittests/transport/datagram/datagram_service.h"

#include <chrono>
#include <gtest/gtest.h>
#include <vector>

namespace cudaq::realtime::test {

struct traffic_result {
  std::uint64_t answered = 0, wrong = 0, executed_twice = 0;
};

/// The payload of a message: its number, then bytes that follow from it.
inline std::vector<std::uint8_t> payload_of(std::uint64_t number, std::size_t words = 5) {
  std::vector<std::uint8_t> payload(words * sizeof(number));
  std::uint64_t word = number;
  for (std::size_t at = 0; at < payload.size(); at += sizeof(word)) {
    std::memcpy(payload.data() + at, &word, sizeof(word));
    word = (word ^ word >> 31) * 0x9E3779B97F4A7C15u + at;
  }
  return payload;
}

/// Sends messages first .. first + count - 1, as many at a time as the client's window holds. Ends early if no answer
/// comes for `patience`.
inline traffic_result send_messages(detail::datagram_client &client, std::uint64_t first, std::uint64_t count,
                                    std::size_t payload_words = 5,
                                    std::chrono::seconds patience = std::chrono::seconds(30)) {
  traffic_result result;
  std::uint64_t next = first;
  while (result.answered < count) {
    while (next < first + count &&
           client.send(static_cast<std::uint32_t>(next), kRecord, payload_of(next, payload_words), next))
      ++next;
    auto reply = client.receive_within(patience);
    if (!reply)
      break;
    for (; reply; reply = client.receive()) {
      ++result.answered;
      record_answer answer{};
      if (reply->header.status == 0 && reply->result.size() == sizeof(answer))
        std::memcpy(&answer, reply->result.data(), sizeof(answer));
      const std::uint64_t number = reply->header.ptp_timestamp;
      result.wrong += static_cast<std::uint32_t>(number) != reply->header.request_id || answer.number != number ||
                      answer.checksum != checksum_of(payload_of(number, payload_words));
      result.executed_twice += answer.executions != 1;
    }
  }
  return result;
}

/// The messages and the kills of a campaign.
inline std::uint64_t campaign_messages(std::uint64_t usual) { return number_from("CUDAQ_UDP_MESSAGES", usual); }
inline std::uint64_t campaign_kills(std::uint64_t usual) { return number_from("CUDAQ_UDP_KILLS", usual); }

} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The window beside an oracle that remembers everything. peer_windows_test.cpp has the rules one by one.
#include "lib/session/sequence_window.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint32_t kWindow = 8, kSessions = 3, kAnswerBytes = 4;

/// What a session has sent, by positions that do not wrap.
struct seen_session {
  struct request {
    std::uint64_t content = 0;
    request_state state = request_state::unseen;
    std::uint8_t answer = 0;
  };
  std::map<std::int64_t, request> requests;
  std::int64_t newest = 0; ///< position; valid if requests is not empty

  request_state expected(std::int64_t position, std::uint64_t content) const {
    if (requests.empty() || position > newest)
      return request_state::unseen;
    if (newest - position >= kWindow)
      return request_state::stale;
    const auto at = requests.find(position);
    if (at == requests.end())
      return request_state::unseen;
    return at->second.content == content ? at->second.state : request_state::reused;
  }
};

TEST(SequenceWindow, KnowsWhatAnOracleKnows) {
  std::mt19937 random(7);
  const auto pick = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); };
  for (const std::uint32_t first : {0u, 0x7FFFFFF0u, 0xFFFFFFF0u}) { // numbers wrap
    sequence_window window(kWindow, kSessions, kAnswerBytes);
    std::map<std::uint32_t, seen_session> sessions;
    for (int step = 0; step < 20000; ++step) {
      const std::uint32_t session = pick(kSessions);
      seen_session &seen = sessions[session];
      if (pick(200) == 0) {
        window.restart(session);
        seen = {};
      }
      const std::int64_t base = seen.requests.empty() ? 100 : seen.newest;
      const std::int64_t position = base + pick(24) - (pick(6) == 0 ? 4 : 16); // sometimes far ahead, mostly before it
      const std::uint32_t number = first + static_cast<std::uint32_t>(position);
      const std::uint64_t content = 5 + (pick(10) == 0 ? 1 : 0);
      const auto found = window.find(session, number, content);
      ASSERT_EQ(found.state, seen.expected(position, content)) << step;
      if (found.state == request_state::unseen && pick(3) != 0) { // else there is no room: nothing is remembered
        const bool reordered = !seen.requests.empty() && position < seen.newest;
        EXPECT_EQ(window.begin(session, number, content), reordered);
        seen.newest = seen.requests.empty() ? position : std::max(seen.newest, position);
        seen.requests[position] = {content, request_state::executing, 0};
      } else if (found.state == request_state::answered) {
        ASSERT_EQ(found.answer.size(), kAnswerBytes);
        EXPECT_EQ(found.answer[3], seen.requests.at(position).answer);
      }
      if (seen.requests.empty() || pick(2) == 0)
        continue;
      // One of them ends, perhaps after it has left the window.
      const auto ends = std::next(seen.requests.begin(), pick(static_cast<std::uint32_t>(seen.requests.size())));
      if (ends->second.state != request_state::executing)
        continue;
      const std::uint32_t its_number = first + static_cast<std::uint32_t>(ends->first);
      const auto byte = static_cast<std::uint8_t>(random());
      const std::uint8_t answer[kAnswerBytes] = {0, 0, 0, byte};
      const bool closes = pick(4) == 0;
      if (closes)
        window.close(session, its_number);
      else
        window.keep(session, its_number, answer);
      ends->second.state = closes ? request_state::closed : request_state::answered;
      ends->second.answer = byte;
    }
  }
}

} // namespace
} // namespace cudaq::realtime::detail

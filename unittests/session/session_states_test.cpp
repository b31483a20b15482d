// SPDX-License-Identifier: Apache-2.0
// The states of a request that comes again: their table, the requests that are remembered, and the window of numbers
// beside an oracle that remembers everything.
#include "lib/session/remembered_requests.h"
#include "lib/session/request_state.h"
#include "lib/session/sequence_window.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <random>

namespace cudaq::realtime::detail {
namespace {

using namespace std::chrono_literals;

using enum request_state;
constexpr request_state kStates[] = {unseen, executing, answered, refused, closed, stale, reused};
constexpr request_event kEvents[] = {request_event::begin, request_event::answer, request_event::refuse,
                                     request_event::close, request_event::forget};
static_assert(std::size(kStates) == kRequestStates && std::size(kEvents) == kRequestEvents);

TEST(RequestState, BeginsOnceAndEndsOnce) {
  for (const request_state from : kStates)
    for (const request_event event : kEvents) {
      const request_state to = after(from, event);
      const bool has_ended = from == answered || from == refused || from == closed;
      if (has_ended || to == from) {
        EXPECT_EQ(to, event == request_event::forget && has_ended ? unseen : from) << "the first end counts";
        continue;
      }
      const bool begins = from == unseen && event == request_event::begin;
      EXPECT_EQ(to == executing, begins);
      EXPECT_EQ(to == answered, from == executing && event == request_event::answer) << "only what was executed";
      EXPECT_EQ(to == closed, from == executing && event == request_event::close);
      EXPECT_EQ(to == refused, event == request_event::refuse);
    }
}

TEST(RequestState, IsForgottenForAnotherRequest) {
  for (const request_state from : {unseen, executing, answered, refused, closed})
    EXPECT_EQ(after(from, request_event::forget), unseen);
}

TEST(RequestState, FindingsWithoutARecordHaveNoEvents) {
  for (const request_event event : kEvents) {
    EXPECT_EQ(after(stale, event), stale);
    EXPECT_EQ(after(reused, event), reused);
  }
}

TEST(RequestState, OnlyANewRequestIsExecuted) {
  for (const request_state state : kStates)
    EXPECT_EQ(rule_for_copies(state) == copy_rule::execute, state == unseen);
  EXPECT_EQ(rule_for_copies(executing), copy_rule::wait);
  EXPECT_EQ(rule_for_copies(answered), copy_rule::repeat);
  EXPECT_EQ(rule_for_copies(refused), copy_rule::repeat);
  EXPECT_EQ(rule_for_copies(closed), copy_rule::drop);
  EXPECT_EQ(rule_for_copies(stale), copy_rule::reject);
  EXPECT_EQ(rule_for_copies(reused), copy_rule::reject);
}

constexpr std::uint32_t kCount = 64;
constexpr auto kLife = 60s;

struct RecentRequests : testing::Test {
  void add(std::uint32_t id, std::uint64_t time, std::uint64_t content = 7, std::uint8_t answer = 0) {
    kept->add({id, time, content}, request_state::answered, 0, {&answer, 1}, now);
  }
  request_state state(std::uint32_t id, std::uint64_t time, request_proof wanted = request_proof::time,
                      std::uint64_t content = 7) const {
    return kept->find({id, time, content}, wanted, now).state;
  }

  std::optional<recent_requests> kept{std::in_place, kCount, kLife, std::size_t{1}};
  recent_requests::time now = recent_requests::time{} + 1h;
};

TEST_F(RecentRequests, RemembersTheLastOnesForTheirLife) {
  for (std::uint32_t id = 1; id <= kCount + 1; ++id)
    add(id, 1000 + id, 7, static_cast<std::uint8_t>(id));
  EXPECT_EQ(state(1, 1001, request_proof::time_or_counter), request_state::unseen) << "the oldest one";
  now += kLife;
  for (std::uint32_t id = 2; id <= kCount + 1; ++id) {
    const auto found = kept->find({id, 1000 + id, 7}, request_proof::time, now);
    ASSERT_EQ(found.state, request_state::answered) << id;
    EXPECT_EQ(found.answer[0], id);
  }
  now += 1ns;
  for (std::uint32_t id = 2; id <= kCount + 1; ++id)
    EXPECT_EQ(state(id, 1000 + id), request_state::unseen);
}

TEST_F(RecentRequests, HasNoStateForARequestWithoutIdAndTime) {
  add(0, 0);
  for (const request_proof wanted : {request_proof::time, request_proof::time_or_id, request_proof::time_or_counter})
    EXPECT_EQ(state(0, 0, wanted), request_state::unseen);
}

/// Each row: the requests that are kept, then the copy, and whether each proof holds. 0 as a time: none.
TEST_F(RecentRequests, NeedsAProofBesideEqualBytes) {
  struct identity {
    std::uint32_t id;
    std::uint64_t time;
    std::uint64_t content;
  };
  struct row {
    const char *what;
    std::vector<identity> before;
    identity copy;
    bool by_time, by_id, by_counter;
  };
  const row rows[] = {
      {"its time is its own", {{7, 900, 1}, {8, 910, 2}}, {7, 900, 1}, true, true, true},
      {"other bytes", {{7, 900, 1}}, {7, 900, 2}, false, false, false},
      {"another id", {{7, 900, 1}}, {8, 900, 1}, false, false, false},
      {"sent at one time with different ids", {{7, 900, 1}, {8, 900, 1}, {9, 901, 1}}, {8, 900, 1}, true, true, true},
      {"one time for all, ids differ", {{7, 900, 1}, {8, 900, 1}}, {8, 900, 1}, false, true, true},
      {"one time and one id for all", {{7, 900, 1}, {7, 900, 2}}, {7, 900, 2}, false, false, true},
      {"two requests with its time and its id",
       {{7, 900, 1}, {7, 900, 2}, {9, 901, 1}},
       {7, 900, 2},
       false,
       false,
       false},
      {"no time, the last one", {{7, 900, 1}, {9, 0, 1}}, {9, 0, 1}, false, true, true},
      {"no time, not the last one", {{9, 0, 1}, {7, 900, 1}}, {9, 0, 1}, false, false, false},
      {"no time, an id for several", {{9, 0, 2}, {9, 0, 1}}, {9, 0, 1}, false, false, true},
      {"no id, its time", {{0, 900, 1}, {0, 901, 1}}, {0, 900, 1}, true, true, true},
  };
  for (const row &r : rows) {
    kept.emplace(kCount, kLife, std::size_t{1});
    for (const identity &i : r.before)
      add(i.id, i.time, i.content);
    const auto proven = [&](request_proof wanted) {
      return state(r.copy.id, r.copy.time, wanted, r.copy.content) == request_state::answered;
    };
    EXPECT_EQ(proven(request_proof::time), r.by_time) << r.what;
    EXPECT_EQ(proven(request_proof::time_or_id), r.by_id) << r.what;
    EXPECT_EQ(proven(request_proof::time_or_counter), r.by_counter) << r.what;
  }
}

struct RememberedRequests : testing::Test {
  remembered_requests memory{kCount, kLife, 1};
  remembered_requests::time now = remembered_requests::time{} + 1h;
  const request_identity request{5, 500, 1};
  const std::uint8_t answer[1] = {42};
};

TEST_F(RememberedRequests, KnowsACopyInTheQueueAndGivesItTheAnswer) {
  EXPECT_EQ(memory.arrive(request, true, now), request_state::unseen);
  EXPECT_EQ(memory.arrive(request, true, now), request_state::executing);
  EXPECT_EQ(memory.arrive(request, false, now), request_state::executing) << "an earlier one came in";
  EXPECT_EQ(memory.find(request, request_proof::time, now).state, request_state::unseen) << "the turn of the first";
  memory.answer(request, 3, answer, now);
  const auto found = memory.find(request, request_proof::time, now);
  ASSERT_EQ(found.state, request_state::answered) << "the turn of the copy";
  EXPECT_EQ(found.status, 3);
  EXPECT_EQ(found.answer[0], 42);
}

TEST_F(RememberedRequests, RefusesAllCopiesOfARequestThatFoundNoRoom) {
  EXPECT_EQ(memory.arrive(request, false, now), request_state::unseen);
  EXPECT_EQ(memory.arrive(request, true, now), request_state::refused) << "also when there is room again";
}

TEST_F(RememberedRequests, RefusesOnceWhatWasGivenUp) {
  EXPECT_TRUE(memory.refuse(request, 5, now));
  EXPECT_FALSE(memory.refuse(request, 4, now)) << "the first refusal counts";
  EXPECT_EQ(memory.find(request, request_proof::time, now).state, request_state::refused);
  EXPECT_EQ(memory.find(request, request_proof::time, now).status, 5);
  EXPECT_FALSE(memory.refuse({5, 0, 1}, 5, now)) << "without a time no copy can be known";
}

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

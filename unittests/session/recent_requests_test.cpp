// SPDX-License-Identifier: Apache-2.0
#include "lib/session/remembered_requests.h"

#include <gtest/gtest.h>
#include <optional>

namespace cudaq::realtime::detail {
namespace {

using namespace std::chrono_literals;

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

} // namespace
} // namespace cudaq::realtime::detail

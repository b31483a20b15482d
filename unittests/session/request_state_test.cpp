// SPDX-License-Identifier: Apache-2.0
#include "lib/session/request_state.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::detail {
namespace {

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

} // namespace
} // namespace cudaq::realtime::detail

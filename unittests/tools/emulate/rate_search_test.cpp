// SPDX-License-Identifier: Apache-2.0
// The search for the highest rate, over servers that are functions.
#include "tools/emulate/search/rate_search.h"

#include <gtest/gtest.h>
#include <map>

namespace cudaq::realtime::tools {
namespace {

/// A server that keeps each rate up to `kept`.
struct made_up_server {
  double kept = 0;
  std::map<double, int> runs; ///< by rate
  int interrupted_after = -1; ///< runs; -1: never

  std::optional<rate_trial> play(double rate) {
    if (interrupted_after >= 0 && interrupted_after-- == 0)
      return std::nullopt;
    ++runs[rate];
    rate_trial trial;
    trial.rate = rate;
    if (rate > kept)
      trial.failure = "1 shot late";
    return trial;
  }
  rate_search_result search(const rate_search &how = {}) {
    return search_rate(how, [this](double rate) { return play(rate); });
  }
};

TEST(RateSearch, FindsTheRateThatIsKeptWithItsPrecision) {
  for (const double kept : {3.0, 999.0, 1000.0, 1001.0, 54321.0, 9.9e6}) {
    made_up_server server{kept, {}};
    const rate_search_result found = server.search();
    EXPECT_FALSE(found.ended);
    EXPECT_LE(found.highest, kept);
    EXPECT_GT(found.highest * 1.02, kept);
    EXPECT_GT(found.failed, kept);
    EXPECT_LE(found.failed, found.highest * 1.02);
    EXPECT_EQ(server.runs.at(found.highest), 3);
    EXPECT_LT(server.runs.size(), 40u);
  }
}

TEST(RateSearch, PlaysEachRateAgainAndTakesItOnlyIfEachRunHolds) {
  made_up_server server{1e9, {}};
  const rate_search_result found = search_rate({}, [&](double rate) {
    std::optional<rate_trial> trial = server.play(rate);
    if (rate > 5000 && server.runs[rate] == 3) // the last of its runs
      trial->failure = "p99.9";
    return trial;
  });
  EXPECT_LE(found.highest, 5000);
  EXPECT_GT(found.highest, 4900);
  EXPECT_EQ(server.runs.at(found.failed), 3);
}

TEST(RateSearch, EndsARateAtItsFirstRunThatFails) {
  made_up_server server{1500, {}};
  server.search();
  EXPECT_EQ(server.runs.at(2000), 1);
}

TEST(RateSearch, FindsNoneIfTheLowestRateFails) {
  made_up_server server{0.5, {}};
  const rate_search_result found = server.search();
  EXPECT_EQ(found.highest, 0);
  EXPECT_EQ(found.failed, 1);
  EXPECT_FALSE(found.trials.back().failure.empty());
}

TEST(RateSearch, EndsAtTheHighestRateThatItMayPlay) {
  made_up_server server{1e12, {}};
  rate_search how;
  how.highest = 50'000;
  const rate_search_result found = server.search(how);
  EXPECT_EQ(found.highest, 50'000);
  EXPECT_EQ(found.failed, 0);
}

TEST(RateSearch, KeepsWhatItHasFoundWhenARunIsEndedAtAnyTime) {
  made_up_server whole{5000, {}};
  const std::size_t all = whole.search().trials.size();
  for (int after = 0; after < static_cast<int>(all); ++after) {
    made_up_server server{5000, {}, after};
    const rate_search_result found = server.search();
    EXPECT_TRUE(found.ended);
    EXPECT_EQ(found.trials.size(), static_cast<std::size_t>(after));
    EXPECT_LE(found.highest, 5000);
    EXPECT_EQ(found.highest != 0, after >= 3);
  }
}

} // namespace
} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "lib/base/similar_words.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::detail {
namespace {

using words = std::vector<std::string>;

TEST(SimilarWords, CountEachKindOfMistakeOnce) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("demo", "demo"), 0u);
  EXPECT_EQ(edit_distance("demo", ""), 4u);
  EXPECT_EQ(edit_distance("dmo", "demo"), 1u);   // a letter is missing
  EXPECT_EQ(edit_distance("deemo", "demo"), 1u); // one too many
  EXPECT_EQ(edit_distance("dimo", "demo"), 1u);  // another one
  EXPECT_EQ(edit_distance("deom", "demo"), 1u);  // two exchanged
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(SimilarWords, AreOnlyTheNearWordsBestFirst) {
  const words known = {"decode", "demo", "doctor", "info", "latency"};
  EXPECT_EQ(similar_words("decodes", known), words{"decode"});
  EXPECT_EQ(similar_words("deco", known), (words{"decode", "demo"}));
  EXPECT_EQ(similar_words("lat", known), words{"latency"}) << "the beginning of a word";
  EXPECT_EQ(similar_words("zzz", known), words{});
  EXPECT_EQ(similar_words("", known), words{});
}

TEST(SimilarWords, TakeADashForAnUnderscore) {
  EXPECT_EQ(similar_words("--obs-inn", {"--obs_in", "--out"}), words{"--obs_in"});
}

TEST(SimilarWords, AreAtMostThree) {
  EXPECT_EQ(similar_words("ax", {"aa", "ab", "ac", "ad"}).size(), 3u);
  EXPECT_EQ(did_you_mean({}), "");
  EXPECT_EQ(did_you_mean({"a"}), " Did you mean a?");
  EXPECT_EQ(did_you_mean({"a", "b", "c"}), " Did you mean a, b or c?");
}

} // namespace
} // namespace cudaq::realtime::detail

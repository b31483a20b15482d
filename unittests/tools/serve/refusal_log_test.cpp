// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/refusal_log.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

TEST(RefusalLine, CountsWhatHasGrownSinceTheLineBefore) {
  EXPECT_EQ(refusal_line({}, {}), "");
  EXPECT_EQ(refusal_line({}, {3001, 0, 0}), "messages that were not taken: 3001 answered BUSY by a decoder");
  EXPECT_EQ(refusal_line({3001, 2, 7}, {3004, 4, 27}),
            "messages that were not taken: 3 answered BUSY by a decoder, 2 answered BUSY by the transport, 20 dropped "
            "because they are no requests");
  EXPECT_EQ(refusal_line({3001, 2, 7}, {3001, 2, 7}), "");
  EXPECT_EQ(refusal_line({0, 0, 7}, {}), "") << "a provider whose counts cannot be read any more";
}

class RefusalLog : public testing::Test {
protected:
  /// What `poll` prints, without the time and the words that each line has.
  template <class Poll>
  static std::string printed(const Poll &poll) {
    testing::internal::CaptureStderr();
    poll();
    const std::string text = testing::internal::GetCapturedStderr(), words = "messages that were not taken: ";
    const std::size_t at = text.find(words);
    return at == std::string::npos ? text : text.substr(at + words.size());
  }
  std::string at_second(int seconds, const refusal_counts &counts) {
    now_ = counts;
    return printed([&] { log_.poll(begin_ + std::chrono::seconds(seconds)); });
  }
  std::string at_end(const refusal_counts &counts) {
    now_ = counts;
    return printed([&] { log_.poll_at_end(); });
  }

private:
  refusal_counts now_;
  refusal_log log_{[this] { return now_; }};
  const refusal_log::clock::time_point begin_ = refusal_log::clock::now();
};

TEST_F(RefusalLog, HasALineAtOnceThenOneAMinuteAndOneAtTheEnd) {
  EXPECT_EQ(at_second(0, {}), "");
  EXPECT_EQ(at_second(1, {3, 0, 0}), "3 answered BUSY by a decoder\n");
  EXPECT_EQ(at_second(2, {4, 0, 0}), "");
  EXPECT_EQ(at_second(60, {4, 0, 2}), "");
  EXPECT_EQ(at_second(61, {4, 0, 2}), "1 answered BUSY by a decoder, 2 dropped because they are no requests\n");
  EXPECT_EQ(at_second(121, {4, 0, 2}), "") << "nothing is new";
  EXPECT_EQ(at_second(122, {4, 1, 2}), "1 answered BUSY by the transport\n");
  EXPECT_EQ(at_end({5, 1, 2}), "1 answered BUSY by a decoder\n");
  EXPECT_EQ(at_end({5, 1, 2}), "");
}

// The counts of a transport cannot be read while it ends, those of decoders can.
TEST_F(RefusalLog, CountsNothingTwiceAfterACountThatCouldNotBeRead) {
  EXPECT_EQ(at_second(0, {0, 7, 9}), "7 answered BUSY by the transport, 9 dropped because they are no requests\n");
  EXPECT_EQ(at_second(60, {1, 0, 0}), "1 answered BUSY by a decoder\n");
  EXPECT_EQ(at_second(120, {1, 8, 9}), "1 answered BUSY by the transport\n");
}

} // namespace
} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/live_pages.h"

#include <deque>
#include <gtest/gtest.h>

namespace cudaq::realtime::tools {
namespace {

using cudaq::qec::realtime::request_moments;
using cudaq::qec::realtime::stage_times;

std::size_t count(const std::string &text, const std::string &part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++found;
  return found;
}

/// The times of decoders of which each has answered so many requests.
class TimesPage : public testing::Test {
protected:
  std::string page(const std::vector<int> &answered, const std::string &name = "") {
    std::vector<timed_decoder> decoders;
    for (const int requests : answered) {
      const stage_times &times = times_.emplace_back(clock_);
      for (int k = 0; k < requests; ++k)
        times_.back().record({.arrived = 0, .accepted = 0, .queued = 0, .taken = 5000, .decoded = 20000}, 21000, false);
      decoders.push_back({decoders.size(), name, &times});
    }
    return times_page(decoders);
  }

private:
  const detail::tick_clock clock_ = detail::tick_clock::measured();
  std::deque<stage_times> times_;
};

TEST_F(TimesPage, HasAPictureAndARowForEachStage) {
  const std::string text = page({37});
  EXPECT_EQ(count(text, "<h2>Decoder 0</h2>"), 1u) << text;
  EXPECT_EQ(count(text, "<svg "), 1u);
  for (const std::string stage : {"accepted", "queued", "taken", "decoded", "answered", "whole"}) {
    EXPECT_EQ(count(text, "<tr><td>" + stage + "</td><td>37</td><td>"), 1u) << stage << text;
    EXPECT_EQ(count(text, ">" + stage + "</text>"), 1u) << stage;
  }
  EXPECT_EQ(count(text, "<meta http-equiv=\"refresh\" content=\"5\">"), 1u);
  EXPECT_EQ(count(text, "answered no request"), 0u);
}

TEST_F(TimesPage, EscapesTheNamesOfDecoders) {
  const std::string text = page({1}, "plugin:</h2><script>\"&.so");
  EXPECT_EQ(count(text, "<h2>Decoder 0: plugin:&lt;/h2&gt;&lt;script&gt;&quot;&amp;.so</h2>"), 1u) << text;
  EXPECT_EQ(count(text, "<script"), 0u);
}

TEST_F(TimesPage, CountsTheDecodersThatItDoesNotShow) {
  const std::string none = page({0, 0});
  EXPECT_EQ(count(none, "<p>2 decoders have answered no request so far.</p>"), 1u) << none;
  EXPECT_EQ(count(none, "<svg") + count(none, "<h2>"), 0u);
  std::vector<int> many(20, 1);
  many.front() = 0;
  const std::string text = page(many);
  EXPECT_EQ(count(text, "<h2>Decoder "), 16u);
  EXPECT_EQ(count(text, "<h2>Decoder 16</h2>"), 1u) << "the first one has nothing to show";
  EXPECT_EQ(count(text, "<p>3 decoders have no room here: see the counters.</p>"), 1u);
  EXPECT_EQ(count(text, "<p>1 decoder has answered no request so far.</p>"), 1u);
}

TEST(StreamsPage, DrawsTheLagOfEachDecoderWithStreams) {
  const std::string text = streams_page({4, 17});
  EXPECT_EQ(count(text, "const decoders = ['4','17',];"), 1u) << text;
  EXPECT_EQ(count(text, "<svg id=\"lag\" "), 1u);
  EXPECT_EQ(count(text, "fetch('/metrics'"), 1u);
  EXPECT_EQ(count(text, "http-equiv"), 0u) << "the page keeps what it has read";
  EXPECT_EQ(count(text, "src="), 0u) << "all of it is in the page";
}

TEST(StreamsPage, IsATextWithoutStreamsAndHasRoomForSomeOnly) {
  const std::string none = streams_page({});
  EXPECT_EQ(count(none, "<p>No decoder of this server takes streams.</p>"), 1u) << none;
  EXPECT_EQ(count(none, "<script") + count(none, "<svg"), 0u);
  const std::string many = streams_page(std::vector<std::uint64_t>(17, 1000));
  EXPECT_EQ(count(many, "'1000',"), 16u);
  EXPECT_EQ(count(many, "<p>1 decoder has no room here: see the counters.</p>"), 1u) << many;
}

} // namespace
} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/trace/run_trace.h"
#include "unittests/tools/trace/trace_events.h"

#include <sstream>

namespace cudaq::realtime::tools::test {
namespace {

const trace_names kNames{"a \"run\"", "sender", "collector", "worker", {"wait", "work", "back"}};

std::string text_of(const std::vector<traced_run> &runs) {
  std::ostringstream text;
  write_trace(text, runs);
  return text.str();
}

TEST(RunTrace, HasATrackForEachThreadAndSlot) {
  run_trace trace(3);
  *trace.at(0) = {1'000'000'000'001,
                  1'000'000'000'101,
                  1'000'000'000'201,
                  1'000'000'000'301,
                  1'000'000'000'401,
                  1'000'000'000'501,
                  0,
                  1};
  *trace.at(1) = {1'000'000'000'151,
                  1'000'000'000'171,
                  1'000'000'000'351,
                  1'000'000'000'451,
                  1'000'000'000'551,
                  1'000'000'000'601,
                  1,
                  0};
  const checked_trace read(text_of({{kNames, &trace}}));
  EXPECT_EQ(read.runs().at(1), "a \"run\"");
  EXPECT_EQ(read.track_names(1),
            (std::set<std::string>{"sender", "collector", "worker 0", "worker 1", "slot 0", "slot 1"}));
  EXPECT_EQ(read.requests(1, "request", "slot"), (std::set<std::uint64_t>{0, 1})) << "2 was not answered";
  EXPECT_EQ(read.events().size(), 14u) << "of each request: itself, its three parts, and three threads";
  EXPECT_EQ(read.events().front().name, "request") << "the outer range comes first";
  EXPECT_EQ(read.events().front().begin_ns, 0);
  EXPECT_EQ(read.events().front().end_ns, 400) << "to the nanosecond";
}

TEST(RunTrace, LeavesOutTheTimesThatAreNotKnown) {
  run_trace trace(1);
  *trace.at(0) = {10, 20, 0, 0, 30, 40, 5, 0};
  const checked_trace read(text_of({{{"emulate", "client", "client", "", {}}, &trace}}));
  EXPECT_EQ(read.track_names(1), (std::set<std::string>{"client", "slot 5"}));
  EXPECT_EQ(read.events().size(), 3u);
}

// The clock of the second request is read before the first one was collected, and its slot was free after that.
TEST(RunTrace, RequestsOfASlotAreOneAfterTheOther) {
  run_trace trace(2);
  *trace.at(0) = {100, 110, 120, 130, 200, 210, 0, 0};
  *trace.at(1) = {190, 230, 240, 250, 260, 270, 0, 0};
  const checked_trace read(text_of({{kNames, &trace}}));
  for (const trace_event &e : read.events())
    if (e.name == "request" && e.request == 1) {
      EXPECT_EQ(e.begin_ns, 100);
      EXPECT_EQ(e.end_ns, 160);
    }
}

TEST(RunTrace, HasRoomForTheFirstRequests) {
  run_trace unknown(0), long_run(run_trace::kMaxRequests * 7), short_run(5);
  for (run_trace *const trace : {&unknown, &long_run}) {
    EXPECT_NE(trace->at(run_trace::kMaxRequests - 1), nullptr);
    EXPECT_EQ(trace->at(run_trace::kMaxRequests), nullptr);
  }
  EXPECT_EQ(short_run.at(5), nullptr);
  const checked_trace empty(text_of({{kNames, &short_run}}));
  EXPECT_TRUE(empty.events().empty());
}

} // namespace
} // namespace cudaq::realtime::tools::test

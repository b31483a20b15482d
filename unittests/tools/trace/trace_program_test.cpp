// SPDX-License-Identifier: Apache-2.0
// The traces of `demo` and `pipeline`: each request is there, on the tracks of its slot and of its threads.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"
#include "unittests/tools/trace/trace_events.h"

namespace cudaq::realtime::tools::test {
namespace {

std::string trace_of(const std::string &arguments) {
  const scratch_folder folder;
  const std::string file = (folder.path() / "run.json").string();
  const program_result r = run_program(arguments + " --trace " + file);
  EXPECT_EQ(r.exit_code, 0) << arguments << "\n" << r.err;
  return read_file(file);
}

void expect_all_requests(const checked_trace &trace, int run, std::size_t requests,
                         const std::vector<std::pair<std::string, std::string>> &events) {
  for (const auto &[name, track] : events) {
    const auto found = trace.requests(run, name, track);
    EXPECT_EQ(found.size(), requests) << name << " on " << track;
    if (!found.empty()) {
      EXPECT_EQ(*found.rbegin(), requests - 1) << "they are numbered from 0";
    }
  }
}

TEST(TraceProgram, TheDemoHasEachRequestOfBothPasses) {
  if (!has_decoders())
    GTEST_SKIP() << "this build has no decoders";
  const checked_trace trace(trace_of("demo --config d3 --decoder lookup --shots 1500 --slots 5 --client-threads 2"));
  EXPECT_EQ(trace.runs(), (std::map<int, std::string>{{1, "pass 1"}, {2, "pass 2"}}));
  for (const int run : {1, 2}) {
    expect_all_requests(trace, run, 1500,
                        {{"request", "slot"},
                         {"send", "sender"},
                         {"decode", "dispatcher"},
                         {"decode", "slot"},
                         {"wait for the handler", "slot"},
                         {"wait for the client", "slot"},
                         {"collect", "collector"}});
    EXPECT_EQ(trace.track_names(run), (std::set<std::string>{"sender", "collector", "dispatcher", "slot 0", "slot 1",
                                                             "slot 2", "slot 3", "slot 4"}));
  }
}

TEST(TraceProgram, TheDemoHasTheThreadsOfItsPool) {
  if (!has_decoders())
    GTEST_SKIP() << "this build has no decoders";
  const checked_trace trace(
      trace_of("demo --config d3 --decoder lookup --shots 3000 --workers 2 --client-threads 1 --rate 0"));
  expect_all_requests(trace, 1, 3000,
                      {{"request", "slot"}, {"send", "client"}, {"decode", "handler thread"}, {"collect", "client"}});
}

TEST(TraceProgram, ThePipelineHasItsStages) {
  if (!has_decoders())
    GTEST_SKIP() << "this build has no decoders";
  const std::string model = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  const checked_trace trace(trace_of("pipeline --shots 1000 --workers 2 --slots 7 --decoder lookup --dem " + model +
                                     ".dem --in " + model + ".dets.b8"));
  expect_all_requests(trace, 1, 1000,
                      {{"request", "slot"},
                       {"A dispatch and engine", "slot"},
                       {"B matching", "slot"},
                       {"C consumer", "slot"},
                       {"B matching", "worker"},
                       {"send", "submitting thread"},
                       {"collect", "consumer"}});
}

} // namespace
} // namespace cudaq::realtime::tools::test

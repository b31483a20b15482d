// SPDX-License-Identifier: Apache-2.0
// Graph workers of the host dispatcher on a GPU, with checked traffic, for each combination of: who publishes the
// answer, how the graph finds its slot, in place or apart, markers on or off, rings down to one slot.
#include "unittests/gpu/graphs/host_graph_rig.h"

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  std::uint32_t completion;
  std::uint32_t workers; ///< per function
  ring_shape shape;
  bool markers = true;
  bool by_mailbox = false;
  bool staged = false;
  std::uint32_t when_busy = CUDAQ_BUSY_WORKERS_WAIT;
  std::uint32_t messages = 20000;
  std::uint32_t functions = 2;
};
void PrintTo(const flavour &f, std::ostream *out) { *out << f.name; }

class HostGraphs : public gpu_test, public ::testing::WithParamInterface<flavour> {};

// Known failures 3, 4.
TEST_P(HostGraphs, AnswerEveryRequestOnceAndWhole) {
  const flavour &f = GetParam();
  const std::uint32_t messages = messages_or(f.messages);
  const host_ring ring(f.shape, CUDAQ_MEMORY_MAPPED);
  checked_device_functions functions(f.functions, messages);
  graph_plan plan;
  plan.shape = f.shape;
  plan.markers = f.markers;
  plan.when_busy = f.when_busy;
  plan.functions = &functions;
  for (std::uint32_t k = 0; k < f.functions; ++k)
    for (std::uint32_t w = 0; w < f.workers; ++w)
      plan.workers.push_back({k, f.completion, 0, f.by_mailbox, f.staged});
  graph_rig rig(ring, plan);
  ASSERT_NO_FATAL_FAILURE(rig.expect_start());
  traffic_plan load_plan;
  for (std::uint32_t k = 0; k < f.functions; ++k)
    load_plan.functions.push_back(functions.function(k));
  load_plan.messages = messages;
  load_plan.unknown_of_100 = 2;
  traffic load(ring, load_plan);
  const auto begin = std::chrono::steady_clock::now();
  load.run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(rig.dispatcher->get));
  functions.collect();
  const bool alone = f.workers == 1;
  load.expect_clean(alone, alone);
  const cudaq_dispatcher_stats_t stats = rig.dispatcher->stats();
  EXPECT_EQ(stats.responded, messages) << rig.dispatcher->dump();
  EXPECT_EQ(stats.launches, stats.dispatched);
  EXPECT_EQ(stats.in_flight, 0u);
  EXPECT_EQ(stats.hook_failures, 0u);
  if (f.completion == CUDAQ_WORKER_CALLER_PUBLISHES) {
    EXPECT_EQ(rig.completed_by_stage.load(), stats.launches);
  }
  if (f.staged) {
    std::uint64_t copies = 0;
    for (std::uint32_t w = 0; w < plan.workers.size(); ++w)
      copies += rig.staged_copies(w);
    EXPECT_EQ(copies, stats.launches);
  }
  std::printf("%s: %.0f requests per second\n", f.name, messages / took.count());
}

constexpr std::uint32_t kLibrary = CUDAQ_WORKER_LIBRARY_PUBLISHES, kGraph = CUDAQ_WORKER_GRAPH_PUBLISHES,
                        kCaller = CUDAQ_WORKER_CALLER_PUBLISHES;

INSTANTIATE_TEST_SUITE_P(
    Flavours, HostGraphs,
    ::testing::Values(
        flavour{"Library", kLibrary, 1, {16, 128, false}}, flavour{"LibraryInPlace", kLibrary, 2, {16, 256, true}},
        flavour{"LibraryTwoSlotsNoMarkers", kLibrary, 2, {2, 128, false}, false},
        flavour{"LibraryOneSlot", kLibrary, 1, {1, 128, true}, true, false, false, 0, 5000},
        flavour{"LibraryMailbox", kLibrary, 2, {16, 128, false}, true, true},
        flavour{"LibraryMailboxInPlaceNoMarkers", kLibrary, 2, {8, 128, true}, false, true},
        flavour{"LibraryStaged", kLibrary, 2, {16, 1024, false}, true, false, true},
        flavour{
            "LibraryPassFunction", kLibrary, 1, {16, 128, false}, true, false, false, CUDAQ_BUSY_WORKERS_PASS_FUNCTION},
        flavour{"Graph", kGraph, 1, {16, 128, false}}, flavour{"GraphNoMarkers", kGraph, 2, {16, 128, false}, false},
        flavour{"GraphInPlaceTwoSlots", kGraph, 2, {2, 256, true}},
        flavour{"GraphInPlaceNoMarkers", kGraph, 4, {64, 128, true}, false, false, false, CUDAQ_BUSY_WORKERS_PASS_KEY},
        flavour{"GraphStaged", kGraph, 2, {16, 4096, false}, true, false, true, 0, 5000},
        flavour{"Caller", kCaller, 1, {16, 128, false}},
        flavour{"CallerMailboxNoMarkers", kCaller, 2, {16, 128, false}, false, true},
        flavour{"CallerInPlaceTwoSlots", kCaller, 2, {2, 256, true}},
        flavour{
            "CallerPassFunction", kCaller, 4, {64, 128, true}, false, false, false, CUDAQ_BUSY_WORKERS_PASS_FUNCTION}),
    [](const auto &tested) { return std::string(tested.param.name); });

// With the flavours above 10^6 requests in total. CUDAQ_SOAK_MESSAGES=1000000 sends so many for each flavour.
constexpr std::uint32_t kMany = 200000;
INSTANTIATE_TEST_SUITE_P(
    Many, HostGraphs,
    ::testing::Values(flavour{"OneWorker", kLibrary, 1, {64, 128, false}, true, false, false, 0, kMany / 2, 1},
                      flavour{"EightWorkers", kGraph, 4, {64, 128, false}, true, false, false, 0, kMany, 2},
                      flavour{"EightWorkersCaller", kCaller, 4, {64, 128, false}, true, false, false, 0, kMany, 2},
                      flavour{"SixtyFourWorkers",
                              kLibrary,
                              8,
                              {256, 128, false},
                              true,
                              false,
                              false,
                              CUDAQ_BUSY_WORKERS_PASS_FUNCTION,
                              kMany,
                              8}),
    [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test

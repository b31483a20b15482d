// SPDX-License-Identifier: Apache-2.0
// The scheduler's state alone: when it retries a launch, and when it does not.
#include "cudaq/realtime/detail/ring/function_index_builder.h"
#include "kernels/graphs/completion_poller.h"
#include "kernels/graphs/graph_block.h"

#include <gtest/gtest.h>

#include <set>

namespace cudaq::realtime::test {
namespace {

using namespace detail;

constexpr std::uint32_t kSlots = 16;

/// A fake runtime: which execs it refuses to launch, and its clock.
struct runtime {
  std::set<std::uint64_t> refuses;
  std::uint32_t attempts = 0;
  std::uint64_t now = 1'000'000'000;
};
struct scripted_launcher {
  runtime *of;
  int launch(std::uint64_t exec) const {
    ++of->attempts;
    return of->refuses.count(exec) != 0;
  }
  static int relaunch() { return 0; }
  std::uint64_t now_ns() const { return of->now; }
};

using numbers = std::vector<std::uint32_t>;

/// Function 1 has a pool of the first `first` graphs, and each further function has one graph. Graph g has exec g + 1
/// and context g, if `exec_of` and `context_of` do not set others.
class GraphSchedulerState : public ::testing::Test {
protected:
  void make(std::uint32_t graphs, std::uint32_t first = 1, const numbers &context_of = {},
            const numbers &exec_of = {}) {
    contexts_.resize(graphs);
    std::vector<cudaq_function_entry_t> entries(graphs);
    for (std::uint32_t g = 0; g < graphs; ++g) {
      entries[g].function_id = g < first ? 1 : g - first + 2;
      entries[g].dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
      entries[g].handler.graph_exec =
          reinterpret_cast<cudaGraphExec_t>(std::uint64_t{exec_of.empty() ? g + 1 : exec_of[g]});
    }
    std::vector<cudaq_function_entry_t> kept = entries;
    keep_one_of_each_pool(kept);
    ASSERT_EQ(index_.build(kept.data(), static_cast<std::uint32_t>(kept.size())).what, function_index::problem::none);
    plan_.dispatch.ring = {flags_, tx_flags_, slots_, slots_, 64, 64, 0, kSlots, 64};
    plan_.graphs = bind_graphs(entries, index_.view());
    for (graph_binding &b : plan_.graphs)
      b.io = reinterpret_cast<std::uint64_t>(&contexts_[context_of.empty() ? b.entry : context_of[b.entry]]);
    plan_.triggered = triggered;
    plan_.report = &report;
    block_ = make_graph_block(plan_, index_.view(), layout_);
    view_ = std::make_unique<graph_state_view>(layout_, block_.data(), block_.data());
    scheduler = std::make_unique<graph_scheduler_state<scripted_launcher>>(*view_, plan_.dispatch.ring,
                                                                           scripted_launcher{&cuda});
    scheduler->begin_execution();
  }
  /// Route r belongs to function r + 1, because routes are sorted by id.
  void accept(std::uint32_t slot, std::uint32_t function) { scheduler->accept(slot, function - 1); }
  void complete(std::uint32_t graph) {
    view_->graphs[graph].phase = static_cast<std::uint32_t>(graph_phase::completed);
    ++view_->state.completed;
    scheduler->collect<single_thread_group>();
  }
  std::vector<std::uint32_t> pump() {
    std::vector<std::uint32_t> failed;
    scheduler->pump([&](std::uint32_t slot) { failed.push_back(slot); });
    return failed;
  }
  graph_scheduler_words &state() { return view_->state; }
  /// The graph writes its done word, and the poller reads it once.
  void answer(std::uint32_t graph) {
    view_->done_words[graph] = view_->graphs[graph].launch_number;
    completion_poller<single_thread_group, thread_scope_system>(*view_, plan_.dispatch.ring).round();
  }
  std::uint64_t &rx_flag(std::uint32_t slot) { return flags_[slot]; }
  std::uint64_t tx_flag(std::uint32_t slot) const { return tx_flags_[slot]; }
  numbers in_flight() const {
    numbers found;
    for (std::uint32_t g = 0; g < view_->num_graphs; ++g)
      if (view_->graphs[g].phase == static_cast<std::uint32_t>(graph_phase::in_flight))
        found.push_back(g);
    return found;
  }

  const graph_state_view &view() const { return *view_; }

  runtime cuda;
  std::uint64_t triggered = 0; ///< exec of the triggered graph
  graph_report report{};
  std::unique_ptr<graph_scheduler_state<scripted_launcher>> scheduler;

private:
  std::uint64_t flags_[kSlots] = {}, tx_flags_[kSlots] = {};
  alignas(16) std::uint8_t slots_[kSlots * 64] = {};
  std::vector<GraphIOContextV2> contexts_;
  function_index index_;
  graph_plan plan_;
  graph_layout layout_;
  graph_block block_{0};
  std::unique_ptr<graph_state_view> view_;
};

// Known failure 3.
TEST_F(GraphSchedulerState, ThePollerGivesTheSlotUpAndTheSchedulerTakesTheGraphBack) {
  make(1);
  rx_flag(3) = 7;
  EXPECT_FALSE(view().holds(3));
  accept(3, 1);
  accept(5, 1); // waits
  EXPECT_TRUE(view().holds(3) && view().holds(5));
  EXPECT_TRUE(scheduler->backlog());
  answer(0);
  EXPECT_EQ(rx_flag(3), 0u);
  EXPECT_NE(tx_flag(3), 0u);
  EXPECT_FALSE(view().holds(3));
  EXPECT_TRUE(view().holds(5));
  EXPECT_EQ(view().graphs[0].phase, static_cast<std::uint32_t>(graph_phase::completed));
  EXPECT_EQ(scheduler->collect<single_thread_group>(), 1u);
  pump();
  EXPECT_EQ(in_flight(), numbers{0});
  EXPECT_EQ(view().graphs[0].slot, 5u);
  EXPECT_FALSE(scheduler->backlog());
  EXPECT_EQ(tx_flag(5), 0u);
  answer(0);
  EXPECT_EQ(scheduler->collect<single_thread_group>(), 1u);
  EXPECT_TRUE(scheduler->drained());
  EXPECT_FALSE(view().holds(5));
}

TEST_F(GraphSchedulerState, ABacklogWithoutAnIdleInstanceIsNeitherTriedNorHurriedFor) {
  make(2);
  accept(0, 1);
  accept(1, 1); // waits
  accept(2, 2);
  complete(1);
  EXPECT_FALSE(scheduler->anything_to_try());
  EXPECT_FALSE(scheduler->retries_soon());
  const std::uint32_t before = cuda.attempts;
  pump();
  EXPECT_EQ(cuda.attempts, before);
  complete(0);
  EXPECT_TRUE(scheduler->retries_soon());
  EXPECT_TRUE(pump().empty());
  EXPECT_EQ(cuda.attempts, before + 1);
  EXPECT_FALSE(scheduler->anything_to_try());
}

TEST_F(GraphSchedulerState, NothingIsTriedBeyondTheBudgetOrWhileTheOnlyContextIsTaken) {
  make(2, 1, {0, 0});
  accept(0, 1);
  accept(1, 2);
  EXPECT_FALSE(scheduler->anything_to_try());
  complete(0);
  EXPECT_TRUE(scheduler->anything_to_try());
  state().launches = kMaxLaunches;
  EXPECT_FALSE(scheduler->anything_to_try());
  EXPECT_FALSE(scheduler->retries_soon());
}

TEST_F(GraphSchedulerState, OnlyWhatSharesAContextWaitsForIt) {
  make(3, 1, {0, 0, 1});
  accept(0, 1);
  accept(1, 2); // waits
  accept(2, 3);
  EXPECT_EQ(in_flight(), (numbers{0, 2}));
  complete(2);
  EXPECT_FALSE(scheduler->anything_to_try());
  accept(3, 3);
  complete(0);
  EXPECT_TRUE(scheduler->retries_soon());
  EXPECT_TRUE(pump().empty());
  EXPECT_EQ(in_flight(), (numbers{1, 2}));
  EXPECT_FALSE(scheduler->anything_to_try());
}

TEST_F(GraphSchedulerState, OnesThatShareAContextTakeTurns) {
  make(3, 1, {0, 0, 0});
  for (std::uint32_t slot = 0; slot < 12; ++slot)
    accept(slot, 1 + slot / 4);
  numbers served_by{0};
  for (int completions = 1; completions < 12; ++completions) {
    complete(in_flight().at(0));
    EXPECT_TRUE(pump().empty());
    ASSERT_EQ(in_flight().size(), 1u);
    served_by.push_back(view().graphs[in_flight()[0]].pool);
  }
  for (std::uint32_t n = 0; n < 9; ++n) // as long as all three functions have requests
    EXPECT_EQ(std::count(served_by.begin() + n / 3 * 3, served_by.begin() + n / 3 * 3 + 3, n % 3), 1) << n;
  complete(in_flight().at(0));
  EXPECT_TRUE(scheduler->drained());
}

// The place of that instance in the pool's list must not matter.
TEST_F(GraphSchedulerState, APoolGoesOnWithoutTheInstanceWhoseContextIsTaken) {
  for (std::uint32_t shared = 0; shared < 3; ++shared) {
    make(4, 3, {0, 1, 2, shared});
    accept(0, 2);
    for (std::uint32_t slot = 1; slot < 4; ++slot)
      accept(slot, 1);
    numbers others{0, 1, 2, 3};
    others.erase(others.begin() + shared);
    EXPECT_EQ(in_flight(), others);
    EXPECT_FALSE(scheduler->anything_to_try());
    complete(3);
    EXPECT_TRUE(pump().empty());
    EXPECT_EQ(in_flight(), (numbers{0, 1, 2}));
    for (std::uint32_t graph = 0; graph < 3; ++graph)
      complete(graph);
    for (std::uint32_t slot = 1; slot < 4; ++slot)
      accept(slot, 1);
    EXPECT_EQ(in_flight(), (numbers{0, 1, 2}));
    accept(0, 2); // takes the shared context again
    EXPECT_EQ(in_flight(), (numbers{0, 1, 2}));
    complete(shared);
    EXPECT_TRUE(pump().empty());
    EXPECT_EQ(in_flight(), others);
  }
}

// A graph that runs on for a tenth of a second after its signal, and then ends.
TEST_F(GraphSchedulerState, RetriesOfABusyGraphBecomeRarerAndItsSuccessForgivesThem) {
  make(1);
  accept(0, 1);
  complete(0);
  cuda.refuses = {1};
  accept(1, 1);
  EXPECT_TRUE(scheduler->retries_soon());
  for (int look = 0; look < 100'000; ++look, cuda.now += 1000)
    EXPECT_TRUE(pump().empty());
  EXPECT_FALSE(scheduler->retries_soon());
  EXPECT_GT(cuda.attempts, 100u);
  EXPECT_LT(cuda.attempts, 300u);
  cuda.refuses.clear();
  cuda.now += graph_scheduler_state<scripted_launcher>::kMaxPauseNs;
  pump();
  EXPECT_EQ(state().in_flight, 1u);
  EXPECT_EQ(state().doubt, 0u);
}

// The runtime may allow fewer launches than the library assumes. So the next execution tries again before the request
// fails.
TEST_F(GraphSchedulerState, LongRefusalsEndAnExecutionThatHasLaunchedSomethingBeforeTheyFail) {
  using tested = graph_scheduler_state<scripted_launcher>;
  make(2);
  accept(0, 1);
  complete(0);
  cuda.refuses = {1};
  accept(1, 1);
  EXPECT_FALSE(scheduler->spent());
  cuda.now += tested::kTryElsewhereNs;
  EXPECT_TRUE(pump().empty());
  EXPECT_TRUE(scheduler->spent());
  EXPECT_TRUE(scheduler->may_relaunch());
  accept(2, 2); // another graph can be launched, so the refused graph is the cause
  EXPECT_FALSE(scheduler->spent());
  complete(1);
  scheduler->begin_execution();
  cuda.now += tested::kTryElsewhereNs;
  EXPECT_TRUE(pump().empty());
  EXPECT_FALSE(scheduler->spent()) << "an execution without a launch has all its launches left";
  cuda.refuses.clear();
  cuda.now += tested::kMaxPauseNs;
  EXPECT_TRUE(pump().empty());
  EXPECT_EQ(in_flight(), numbers{0});
}

// Known failure 7.
TEST_F(GraphSchedulerState, WhatWaitsForAGraphThatCannotBeLaunchedFailsTogether) {
  make(1);
  cuda.refuses = {1};
  for (std::uint32_t slot = 0; slot < 5; ++slot)
    accept(slot, 1);
  EXPECT_TRUE(pump().empty());
  cuda.now += graph_scheduler_state<scripted_launcher>::kRetryNs;
  std::vector<std::uint32_t> failed;
  for (int look = 0; look < 5; ++look)
    for (const std::uint32_t slot : pump())
      failed.push_back(slot);
  EXPECT_EQ(failed, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(scheduler->drained());
  accept(5, 1); // the graph is still refused
  EXPECT_EQ(pump(), std::vector<std::uint32_t>{5});
  cuda.refuses.clear();
  accept(6, 1);
  EXPECT_EQ(state().in_flight, 1u);
}

TEST_F(GraphSchedulerState, AProvenGraphHasMoreTimeAndAClockThatIsLateIsNoFailure) {
  make(1);
  accept(0, 1);
  complete(0);
  cuda.refuses = {1};
  accept(1, 1);
  cuda.now -= 1000; // the clock of another member may be slightly slow
  EXPECT_TRUE(pump().empty());
  cuda.now += graph_scheduler_state<scripted_launcher>::kBusyNs / 2;
  EXPECT_TRUE(pump().empty());
  cuda.now += graph_scheduler_state<scripted_launcher>::kBusyNs;
  EXPECT_EQ(pump(), std::vector<std::uint32_t>{1});
}

// The function id is new, but the graph was launched before.
TEST_F(GraphSchedulerState, AGraphThatWasLaunchedUnderOneIdHasMoreTimeUnderAnother) {
  make(3, 1, {0, 0, 0}, {1, 1, 2});
  accept(0, 1);
  complete(0);
  cuda.refuses = {1, 2};
  accept(1, 2);
  accept(2, 3); // another graph with the same context
  cuda.now += graph_scheduler_state<scripted_launcher>::kRetryNs;
  EXPECT_EQ(pump(), numbers{2});
  cuda.now += graph_scheduler_state<scripted_launcher>::kBusyNs / 2;
  EXPECT_TRUE(pump().empty());
  cuda.refuses.clear();
  cuda.now += graph_scheduler_state<scripted_launcher>::kMaxPauseNs;
  EXPECT_TRUE(pump().empty());
  EXPECT_EQ(in_flight(), numbers{1});
}

// One instance is broken. The other one ran for a long time and has not quite ended when it has answered.
TEST_F(GraphSchedulerState, ACompletionGivesAPoolItsTimeAnew) {
  make(2, 2);
  cuda.refuses = {1};
  accept(0, 1);
  accept(1, 1);
  EXPECT_EQ(in_flight(), numbers{1});
  cuda.now += 2 * graph_scheduler_state<scripted_launcher>::kBusyNs;
  cuda.refuses = {1, 2};
  complete(1);
  EXPECT_TRUE(pump().empty());
  cuda.refuses = {1};
  EXPECT_TRUE(pump().empty());
  EXPECT_EQ(in_flight(), numbers{1});
}

TEST_F(GraphSchedulerState, AnInstanceThatCompletesIsTriedAtOnceBesideOneThatRefuses) {
  make(2, 2);
  accept(0, 1);
  accept(1, 1);
  cuda.refuses = {1};
  complete(0);
  accept(2, 1);
  cuda.now += 1'000'000;
  EXPECT_TRUE(pump().empty());
  complete(1);
  EXPECT_TRUE(pump().empty());
  EXPECT_EQ(state().in_flight, 1u);
  EXPECT_FALSE(scheduler->anything_to_try());
}

TEST_F(GraphSchedulerState, FailsEverythingThatWaits) {
  make(3);
  for (std::uint32_t function = 1; function <= 3; ++function)
    accept(function, function);
  cuda.refuses = {2};
  complete(1);
  for (std::uint32_t function = 1; function <= 3; ++function)
    accept(4 + function, function);
  std::set<std::uint32_t> failed;
  scheduler->fail_waiting([&](std::uint32_t slot) { failed.insert(slot); });
  EXPECT_EQ(failed, (std::set<std::uint32_t>{5, 6, 7}));
  EXPECT_EQ(state().accepted, 2u);
  EXPECT_FALSE(scheduler->anything_to_try());
}

TEST(GraphBindings, OneGraphHasOneContext) {
  std::vector<graph_binding> graphs{{1, 8, 0, 0, false}, {2, 16, 1, 1, false}, {1, 8, 2, 2, false}};
  EXPECT_EQ(graph_of_two_contexts(graphs).first, nullptr);
  graphs.push_back({2, 24, 3, 3, false});
  EXPECT_EQ(graph_of_two_contexts(graphs).first->entry, 1u);
  EXPECT_EQ(graph_of_two_contexts(graphs).second->entry, 3u);
}

constexpr std::uint64_t kTriggered = 77;

class TriggeredGraph : public GraphSchedulerState {
protected:
  void SetUp() override {
    triggered = kTriggered;
    make(1);
  }
};

TEST_F(TriggeredGraph, IsLaunchedOnceForEachTriggerAndCountsAsALaunch) {
  for (std::uint64_t n = 1; n <= 3; ++n) {
    EXPECT_FALSE(scheduler->anything_to_try());
    scheduler->want_trigger();
    EXPECT_TRUE(scheduler->anything_to_try() && scheduler->backlog());
    EXPECT_FALSE(scheduler->drained()) << "a stop comes after the launch";
    pump();
    EXPECT_FALSE(scheduler->trigger_waits());
    EXPECT_TRUE(scheduler->drained());
    EXPECT_EQ(cuda.attempts, n);
    EXPECT_EQ(state().launches, n);
    EXPECT_EQ(report.triggered, n);
  }
  EXPECT_EQ(report.trigger_error, 0u);
  EXPECT_EQ(state().mine, 0u) << "a relaunch waits for the triggered graph, but the scheduler does not";
}

TEST_F(TriggeredGraph, WaitsForTheNextExecutionIfTheBudgetIsSpent) {
  state().launches = kMaxLaunches;
  scheduler->want_trigger();
  EXPECT_FALSE(scheduler->anything_to_try());
  EXPECT_TRUE(scheduler->spent() && scheduler->may_relaunch());
  pump();
  EXPECT_EQ(cuda.attempts, 0u);
  scheduler->begin_execution();
  pump();
  EXPECT_EQ(report.triggered, 1u);
  EXPECT_FALSE(scheduler->trigger_waits());
}

TEST_F(TriggeredGraph, ThatRunsIsTriedAgainAndFailsWhenItRunsTooLong) {
  using tested = graph_scheduler_state<scripted_launcher>;
  scheduler->want_trigger();
  pump();
  cuda.refuses = {kTriggered};
  scheduler->want_trigger();
  pump();
  EXPECT_TRUE(scheduler->trigger_waits() && scheduler->retries_soon());
  cuda.now += tested::kBusyNs / 2;
  pump();
  EXPECT_TRUE(scheduler->trigger_waits());
  EXPECT_EQ(report.trigger_error, 0u);
  cuda.now += tested::kBusyNs;
  pump();
  EXPECT_FALSE(scheduler->trigger_waits());
  EXPECT_EQ(report.trigger_error, 1u);
  scheduler->want_trigger(); // it runs on: the next one does not hold the requests up again
  pump();
  EXPECT_FALSE(scheduler->trigger_waits());
  cuda.refuses.clear();
  scheduler->want_trigger();
  pump();
  EXPECT_EQ(report.triggered, 2u);
  EXPECT_EQ(report.trigger_error, 0u);
}

TEST_F(TriggeredGraph, ThatWasNeverUploadedFailsSoon) {
  cuda.refuses = {kTriggered};
  scheduler->want_trigger();
  pump();
  cuda.now += graph_scheduler_state<scripted_launcher>::kRetryNs;
  pump();
  EXPECT_FALSE(scheduler->trigger_waits());
  EXPECT_EQ(report.trigger_error, 1u);
  EXPECT_EQ(report.triggered, 0u);
}

TEST_F(TriggeredGraph, EndsWithTheRequestsThatWaitIfNothingCanBeLaunched) {
  cuda.refuses = {1, kTriggered};
  accept(0, 1);
  scheduler->want_trigger();
  numbers failed;
  scheduler->fail_waiting([&](std::uint32_t slot) { failed.push_back(slot); });
  EXPECT_EQ(failed, numbers{0});
  EXPECT_TRUE(scheduler->drained());
  EXPECT_EQ(report.trigger_error, static_cast<std::uint64_t>(cudaErrorLaunchFailure));
}

} // namespace
} // namespace cudaq::realtime::test

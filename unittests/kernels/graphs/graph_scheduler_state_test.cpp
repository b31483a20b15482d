// SPDX-License-Identifier: Apache-2.0
// The ledger by itself: when it tries again, and when it does not.
#include "cudaq/realtime/detail/ring/function_index_builder.h"
#include "kernels/graphs/graph_block.h"
#include "kernels/graphs/graph_scheduler_state.h"

#include <gtest/gtest.h>

#include <set>

namespace cudaq::realtime::test {
namespace {

using namespace detail;

constexpr std::uint32_t kSlots = 16;

/// What the runtime says, and when.
struct runtime {
  std::set<std::uint64_t> refuses;
  std::uint32_t attempts = 0;
  std::uint64_t now = 1'000'000'000;
};
struct told_launcher {
  runtime *of;
  int launch(std::uint64_t exec) const {
    ++of->attempts;
    return of->refuses.count(exec) != 0;
  }
  static int relaunch() { return 0; }
  std::uint64_t now_ns() const { return of->now; }
};

using numbers = std::vector<std::uint32_t>;

/// Function 1 is the pool of the first `first` graphs, each further function has one. Graph g has exec g + 1 and context g,
/// or what it is told.
class GraphLedger : public ::testing::Test {
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
    block_ = make_graph_block(plan_, index_.view(), layout_);
    view_ = std::make_unique<graph_ledger_view>(layout_, block_.data(), block_.data());
    ledger = std::make_unique<graph_ledger<told_launcher>>(*view_, plan_.dispatch.ring, told_launcher{&says});
    ledger->begin_shift();
  }
  /// Route r belongs to function r + 1: they are sorted by id.
  void accept(std::uint32_t slot, std::uint32_t function) { ledger->accept(slot, function - 1); }
  void land(std::uint32_t graph) {
    view_->graphs[graph].phase = static_cast<std::uint32_t>(graph_phase::landed);
    ++view_->state.landed;
    ledger->collect<single_thread_group>();
  }
  std::vector<std::uint32_t> pump() {
    std::vector<std::uint32_t> failed;
    ledger->pump([&](std::uint32_t slot) { failed.push_back(slot); });
    return failed;
  }
  graph_state &state() { return view_->state; }
  /// The graph raises its word, and the harvester looks once.
  void answer(std::uint32_t graph) {
    view_->ends[graph] = view_->graphs[graph].ticket;
    graph_harvester<single_thread_group, cuda::thread_scope_system>(*view_, plan_.dispatch.ring).round();
  }
  std::uint64_t &rx_flag(std::uint32_t slot) { return flags_[slot]; }
  std::uint64_t tx_flag(std::uint32_t slot) const { return tx_flags_[slot]; }
  numbers flying() const {
    numbers found;
    for (std::uint32_t g = 0; g < view_->num_graphs; ++g)
      if (view_->graphs[g].phase == static_cast<std::uint32_t>(graph_phase::flying))
        found.push_back(g);
    return found;
  }

  const graph_ledger_view &view() const { return *view_; }

  runtime says;
  std::unique_ptr<graph_ledger<told_launcher>> ledger;

private:
  std::uint64_t flags_[kSlots] = {}, tx_flags_[kSlots] = {};
  alignas(16) std::uint8_t slots_[kSlots * 64] = {};
  std::vector<GraphIOContextV2> contexts_;
  function_index index_;
  graph_plan plan_;
  graph_layout layout_;
  graph_block block_{0};
  std::unique_ptr<graph_ledger_view> view_;
};

TEST_F(GraphLedger, TheHarvesterGivesTheSlotUpAndTheSchedulerTakesTheGraphBack) {
  make(1);
  rx_flag(3) = 7;
  EXPECT_FALSE(view().holds(3));
  accept(3, 1);
  accept(5, 1); // waits
  EXPECT_TRUE(view().holds(3) && view().holds(5));
  EXPECT_TRUE(ledger->backlog());
  answer(0);
  EXPECT_EQ(rx_flag(3), 0u);
  EXPECT_NE(tx_flag(3), 0u);
  EXPECT_FALSE(view().holds(3));
  EXPECT_TRUE(view().holds(5));
  EXPECT_EQ(view().graphs[0].phase, static_cast<std::uint32_t>(graph_phase::landed));
  EXPECT_EQ(ledger->collect<single_thread_group>(), 1u);
  pump();
  EXPECT_EQ(flying(), numbers{0});
  EXPECT_EQ(view().graphs[0].slot, 5u);
  EXPECT_FALSE(ledger->backlog());
  EXPECT_EQ(tx_flag(5), 0u);
  answer(0);
  EXPECT_EQ(ledger->collect<single_thread_group>(), 1u);
  EXPECT_TRUE(ledger->drained());
  EXPECT_FALSE(view().holds(5));
}

TEST_F(GraphLedger, ABacklogWithoutAnIdleInstanceIsNeitherTriedNorHurriedFor) {
  make(2);
  accept(0, 1);
  accept(1, 1); // waits
  accept(2, 2);
  land(1);
  EXPECT_FALSE(ledger->anything_to_try());
  EXPECT_FALSE(ledger->hurries());
  const std::uint32_t before = says.attempts;
  pump();
  EXPECT_EQ(says.attempts, before);
  land(0);
  EXPECT_TRUE(ledger->hurries());
  EXPECT_TRUE(pump().empty());
  EXPECT_EQ(says.attempts, before + 1);
  EXPECT_FALSE(ledger->anything_to_try());
}

TEST_F(GraphLedger, NothingIsTriedBeyondTheBudgetOrWhileTheOnlyContextIsTaken) {
  make(2, 1, {0, 0});
  accept(0, 1);
  accept(1, 2);
  EXPECT_FALSE(ledger->anything_to_try());
  land(0);
  EXPECT_TRUE(ledger->anything_to_try());
  state().launches = kMostLaunches;
  EXPECT_FALSE(ledger->anything_to_try());
  EXPECT_FALSE(ledger->hurries());
}

TEST_F(GraphLedger, OnlyWhatSharesAContextWaitsForIt) {
  make(3, 1, {0, 0, 1});
  accept(0, 1);
  accept(1, 2); // waits
  accept(2, 3);
  EXPECT_EQ(flying(), (numbers{0, 2}));
  land(2);
  EXPECT_FALSE(ledger->anything_to_try());
  accept(3, 3);
  land(0);
  EXPECT_TRUE(ledger->hurries());
  EXPECT_TRUE(pump().empty());
  EXPECT_EQ(flying(), (numbers{1, 2}));
  EXPECT_FALSE(ledger->anything_to_try());
}

TEST_F(GraphLedger, OnesThatShareAContextTakeTurns) {
  make(3, 1, {0, 0, 0});
  for (std::uint32_t slot = 0; slot < 12; ++slot)
    accept(slot, 1 + slot / 4);
  numbers served_by{0};
  for (int landings = 1; landings < 12; ++landings) {
    land(flying().at(0));
    EXPECT_TRUE(pump().empty());
    ASSERT_EQ(flying().size(), 1u);
    served_by.push_back(view().graphs[flying()[0]].pool);
  }
  for (std::uint32_t n = 0; n < 9; ++n) // while all of them have requests
    EXPECT_EQ(std::count(served_by.begin() + n / 3 * 3, served_by.begin() + n / 3 * 3 + 3, n % 3), 1) << n;
  land(flying().at(0));
  EXPECT_TRUE(ledger->drained());
}

// In a pool, whichever place the instance has in the list.
TEST_F(GraphLedger, APoolGoesOnWithoutTheInstanceWhoseContextIsTaken) {
  for (std::uint32_t shared = 0; shared < 3; ++shared) {
    make(4, 3, {0, 1, 2, shared});
    accept(0, 2);
    for (std::uint32_t slot = 1; slot < 4; ++slot)
      accept(slot, 1);
    numbers others{0, 1, 2, 3};
    others.erase(others.begin() + shared);
    EXPECT_EQ(flying(), others);
    EXPECT_FALSE(ledger->anything_to_try());
    land(3);
    EXPECT_TRUE(pump().empty());
    EXPECT_EQ(flying(), (numbers{0, 1, 2}));
    for (std::uint32_t graph = 0; graph < 3; ++graph)
      land(graph);
    for (std::uint32_t slot = 1; slot < 4; ++slot)
      accept(slot, 1);
    EXPECT_EQ(flying(), (numbers{0, 1, 2}));
    accept(0, 2); // its context is taken again
    EXPECT_EQ(flying(), (numbers{0, 1, 2}));
    land(shared);
    EXPECT_TRUE(pump().empty());
    EXPECT_EQ(flying(), others);
  }
}

// A graph that goes on after its signal for a tenth of a second, and then ends.
TEST_F(GraphLedger, RetriesOfABusyGraphBecomeRarerAndItsSuccessForgivesThem) {
  make(1);
  accept(0, 1);
  land(0);
  says.refuses = {1};
  accept(1, 1);
  EXPECT_TRUE(ledger->hurries());
  for (int look = 0; look < 100'000; ++look, says.now += 1000)
    EXPECT_TRUE(pump().empty());
  EXPECT_FALSE(ledger->hurries());
  EXPECT_GT(says.attempts, 100u);
  EXPECT_LT(says.attempts, 300u);
  says.refuses.clear();
  says.now += graph_ledger<told_launcher>::kMostPauseNs;
  pump();
  EXPECT_EQ(state().in_flight, 1u);
  EXPECT_EQ(state().doubt, 0u);
}

// Perhaps the runtime allows fewer launches than we know: the next execution finds out before the request fails.
TEST_F(GraphLedger, LongRefusalsEndAShiftThatHasLaunchedSomethingBeforeTheyAreBelieved) {
  using tested = graph_ledger<told_launcher>;
  make(2);
  accept(0, 1);
  land(0);
  says.refuses = {1};
  accept(1, 1);
  EXPECT_FALSE(ledger->spent());
  says.now += tested::kDoubtNs;
  EXPECT_TRUE(pump().empty());
  EXPECT_TRUE(ledger->spent());
  EXPECT_TRUE(ledger->may_relaunch());
  accept(2, 2); // others can be launched: it is the graph
  EXPECT_FALSE(ledger->spent());
  land(1);
  ledger->begin_shift();
  says.now += tested::kDoubtNs;
  EXPECT_TRUE(pump().empty());
  EXPECT_FALSE(ledger->spent()) << "nothing was launched in this shift: it has all its launches";
  says.refuses.clear();
  says.now += tested::kMostPauseNs;
  EXPECT_TRUE(pump().empty());
  EXPECT_EQ(flying(), numbers{0});
}

TEST_F(GraphLedger, Row07_WhatWaitsForAGraphThatCannotBeLaunchedFailsTogether) {
  make(1);
  says.refuses = {1};
  for (std::uint32_t slot = 0; slot < 5; ++slot)
    accept(slot, 1);
  EXPECT_TRUE(pump().empty());
  says.now += graph_ledger<told_launcher>::kRetryNs;
  std::vector<std::uint32_t> failed;
  for (int look = 0; look < 5; ++look)
    for (const std::uint32_t slot : pump())
      failed.push_back(slot);
  EXPECT_EQ(failed, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(ledger->drained());
  accept(5, 1); // nothing has changed
  EXPECT_EQ(pump(), std::vector<std::uint32_t>{5});
  says.refuses.clear();
  accept(6, 1);
  EXPECT_EQ(state().in_flight, 1u);
}

TEST_F(GraphLedger, AProvenGraphHasMoreTimeAndAClockThatIsBehindIsNoFailure) {
  make(1);
  accept(0, 1);
  land(0);
  says.refuses = {1};
  accept(1, 1);
  says.now -= 1000; // another member's
  EXPECT_TRUE(pump().empty());
  says.now += graph_ledger<told_launcher>::kBusyNs / 2;
  EXPECT_TRUE(pump().empty());
  says.now += graph_ledger<told_launcher>::kBusyNs;
  EXPECT_EQ(pump(), std::vector<std::uint32_t>{1});
}

// The function is new, the graph is not.
TEST_F(GraphLedger, AGraphThatWasLaunchedUnderOneIdHasMoreTimeUnderAnother) {
  make(3, 1, {0, 0, 0}, {1, 1, 2});
  accept(0, 1);
  land(0);
  says.refuses = {1, 2};
  accept(1, 2);
  accept(2, 3); // the same context, another graph
  says.now += graph_ledger<told_launcher>::kRetryNs;
  EXPECT_EQ(pump(), numbers{2});
  says.now += graph_ledger<told_launcher>::kBusyNs / 2;
  EXPECT_TRUE(pump().empty());
  says.refuses.clear();
  says.now += graph_ledger<told_launcher>::kMostPauseNs;
  EXPECT_TRUE(pump().empty());
  EXPECT_EQ(flying(), numbers{1});
}

// One is broken, the other was at work for long, and is not quite over when it has answered.
TEST_F(GraphLedger, ALandingGivesAPoolItsTimeAnew) {
  make(2, 2);
  says.refuses = {1};
  accept(0, 1);
  accept(1, 1);
  EXPECT_EQ(flying(), numbers{1});
  says.now += 2 * graph_ledger<told_launcher>::kBusyNs;
  says.refuses = {1, 2};
  land(1);
  EXPECT_TRUE(pump().empty());
  says.refuses = {1};
  EXPECT_TRUE(pump().empty());
  EXPECT_EQ(flying(), numbers{1});
}

TEST_F(GraphLedger, AnInstanceThatLandsIsTriedAtOnceBesideOneThatRefuses) {
  make(2, 2);
  accept(0, 1);
  accept(1, 1);
  says.refuses = {1};
  land(0);
  accept(2, 1);
  says.now += 1'000'000;
  EXPECT_TRUE(pump().empty());
  land(1);
  EXPECT_TRUE(pump().empty());
  EXPECT_EQ(state().in_flight, 1u);
  EXPECT_FALSE(ledger->anything_to_try());
}

TEST_F(GraphLedger, FailsEverythingThatWaits) {
  make(3);
  for (std::uint32_t function = 1; function <= 3; ++function)
    accept(function, function);
  says.refuses = {2};
  land(1);
  for (std::uint32_t function = 1; function <= 3; ++function)
    accept(4 + function, function);
  std::set<std::uint32_t> failed;
  ledger->fail_waiting([&](std::uint32_t slot) { failed.insert(slot); });
  EXPECT_EQ(failed, (std::set<std::uint32_t>{5, 6, 7}));
  EXPECT_EQ(state().accepted, 2u);
  EXPECT_FALSE(ledger->anything_to_try());
}

TEST(GraphBindings, OneGraphHasOneContext) {
  std::vector<graph_binding> graphs{{1, 8, 0, 0, false}, {2, 16, 1, 1, false}, {1, 8, 2, 2, false}};
  EXPECT_EQ(graph_of_two_contexts(graphs).first, nullptr);
  graphs.push_back({2, 24, 3, 3, false});
  EXPECT_EQ(graph_of_two_contexts(graphs).first->entry, 1u);
  EXPECT_EQ(graph_of_two_contexts(graphs).second->entry, 3u);
}

} // namespace
} // namespace cudaq::realtime::test

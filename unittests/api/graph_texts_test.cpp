// SPDX-License-Identifier: Apache-2.0
// What dump_state says about graphs that a stop of the device path has found.
#include "lib/api/device_path/graph_texts.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::test {
namespace {

using detail::graph_in_slot;
const std::vector<std::string> kNames = {"the graph of table->entries[3] (function 0x00000064, routing key 7)"};

// Known failure 59.
TEST(GraphTexts, NameASilentGraphAndItsSlot) {
  const detail::graph_report seen{2, graph_in_slot(0, 5), 0, 0, 0};
  const std::string text = detail::describe_stop_of_graphs(seen, false, kNames);
  for (const char *word :
       {"without raising their flag, found by the stop: 2, ", kNames[0].c_str(), ", slot 5.", "NO_RESPONSE"})
    EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
  EXPECT_EQ(detail::describe_stop_of_graphs({}, true, kNames), "");
}

TEST(GraphTexts, NameAGraphThatTheStopWaitsForWhileTheRunLasts) {
  const detail::graph_report seen{0, 0, graph_in_slot(0, 1), 0, 0};
  const std::string text = detail::describe_stop_of_graphs(seen, true, kNames);
  EXPECT_EQ(text, "the stop waits, after its grace period, for the end of " + kNames[0] + ", slot 1\n");
  EXPECT_EQ(detail::describe_stop_of_graphs(seen, false, kNames), "");
}

TEST(GraphTexts, AGraphOfAnotherTableHasNoName) {
  EXPECT_EQ(detail::describe_graph(graph_in_slot(9, 4), kNames), "a graph, slot 4");
}

} // namespace
} // namespace cudaq::realtime::test

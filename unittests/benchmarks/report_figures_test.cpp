// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/compare/report_figures.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

const report_figure *find(const std::vector<report_figure> &all, const std::string &of, const std::string &what) {
  const auto found = std::ranges::find_if(all, [&](const report_figure &f) { return f.of == of && f.what == what; });
  return found == all.end() ? nullptr : &*found;
}

json latency(int p50) { return {{"count", 9}, {"p50", p50}, {"p99", 2 * p50}, {"max", 3 * p50}}; }

TEST(ReportFigures, AreFoundByTheirForm) {
  const json report = {{"latency_ns", latency(100)},
                       {"shots_per_second", 5e3},
                       {"completed", 200},
                       {"logical_errors", {{"shots", 200}, {"with_predecoder", 4}, {"matcher_alone", 3}}},
                       {"machine", {{"p50", 1}, {"p99", 1}, {"max", 1}}}};
  const auto all = figures_of(report);
  ASSERT_NE(find(all, "latency_ns", "p50"), nullptr);
  EXPECT_EQ(find(all, "latency_ns", "p50")->value, 100);
  EXPECT_EQ(find(all, "latency_ns", "max")->value, 300);
  ASSERT_NE(find(all, "", "rate"), nullptr);
  EXPECT_TRUE(find(all, "", "rate")->higher_is_better());
  const report_figure *errors = find(all, "logical_errors", "errors");
  ASSERT_NE(errors, nullptr);
  EXPECT_EQ(errors->errors, 4);
  EXPECT_EQ(errors->shots, 200);
  EXPECT_EQ(find(all, "machine", "p50"), nullptr);
}

TEST(ReportFigures, OfListsHaveTheNameOfTheirElement) {
  const json report = {{"cases",
                        {{{"name", "host_call"}, {"latency_ns", latency(10)}, {"round_p50_ns", {9, 10, 11}}},
                         {{"id", "P1a"}, {"ours", {{"unit", "cycles"}, {"per_exchange", latency(7)}}}}}},
                       {"points", {{{"slots", 64}, {"stop_ns", latency(5)}}}}};
  const auto all = figures_of(report);
  ASSERT_NE(find(all, "host_call latency_ns", "p50"), nullptr);
  EXPECT_EQ(find(all, "host_call latency_ns", "p50")->rounds, (std::vector<double>{9, 10, 11}));
  EXPECT_TRUE(find(all, "host_call latency_ns", "p99")->rounds.empty()) << "the rounds are of p50";
  ASSERT_NE(find(all, "P1a ours per_exchange", "p50"), nullptr);
  EXPECT_EQ(find(all, "P1a ours per_exchange", "p50")->unit, "cycles");
  EXPECT_NE(find(all, "slots 64 stop_ns", "max"), nullptr);
}

TEST(ReportFigures, OfALagAreRounds) {
  const auto all = figures_of({{"lag_rounds", latency(7)}, {"tail_ns", latency(9)}});
  ASSERT_NE(find(all, "lag_rounds", "p50"), nullptr);
  EXPECT_EQ(find(all, "lag_rounds", "p50")->unit, "rounds");
  EXPECT_EQ(find(all, "tail_ns", "p50")->unit, "ns");
}

TEST(ReportFigures, ErrorsAreOfTheNearestNumberOfPlayedShots) {
  const json report = {
      {"shots", 1000},
      {"cases", {{{"name", "lookup"}, {"failures", 5}}}},
      {"passes", {{{"label", "pass 1"}, {"shots_sent", 50}, {"shots_answered", 40}, {"logical_errors", 2}}}}};
  const auto all = figures_of(report);
  EXPECT_EQ(find(all, "lookup", "errors")->shots, 1000);
  EXPECT_EQ(find(all, "pass 1", "errors")->shots, 50);
}

TEST(ReportFigures, HaveConditionsWithoutWhatChangesInEveryRun) {
  const json report = {
      {"version", "0.1.0"}, {"machine", {{"cpu_model", "A"}, {"load_average", "1.0"}}}, {"config", {{"slots", 64}}}};
  using list = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(conditions_of(report), (list{{"version", "0.1.0"}, {"machine.cpu_model", "A"}, {"config.slots", "64"}}));
}

} // namespace
} // namespace cudaq::realtime::tools

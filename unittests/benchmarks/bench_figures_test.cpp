// SPDX-License-Identifier: Apache-2.0
// Cases, ratios, table and JSON of `cudaq-realtime-bench device`, computed from invented figures. Needs no GPU.
#include "benchmarks/common/bench_report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace cudaq::realtime::tools {
namespace {

measured_case made_up(std::initializer_list<std::uint64_t> values, std::uint64_t wall_ns, int rounds = 1) {
  measured_case c;
  c.what = "made up";
  loop_result round;
  for (const std::uint64_t value : values)
    round.per_exchange.record(value);
  round.exchanges = values.size();
  round.wall_ns = wall_ns;
  for (int r = 0; r < rounds; ++r)
    c.add_round(round);
  return c;
}

bench_result result_of(const char *name, const measured_case &floor, const measured_case &ours) {
  return {select_cases({name}).front(), floor, ours, {}};
}

TEST(BenchPlan, SelectsByNamesAndTheirFirstWordsInItsOwnOrder) {
  const auto chosen = select_cases({"idle-poll", "regular-4K", "regular-4K-add-words"});
  ASSERT_EQ(chosen.size(), 4u);
  EXPECT_STREQ(chosen[0].name, "regular-4K-add-words");
  EXPECT_STREQ(chosen[1].name, "regular-4K-last-word");
  EXPECT_STREQ(chosen[3].name, "idle-poll");
  EXPECT_EQ(select_cases({}).size(), all_bench_cases().size());
  EXPECT_THROW((void)select_cases({"regular-4"}), usage_error) << "part of a word";
}

TEST(BenchPlan, GraphCasesAreAListOfTheirOwn) {
  const auto chosen = select_cases({"worker"}, all_graph_cases());
  ASSERT_EQ(chosen.size(), 3u);
  EXPECT_STREQ(chosen[0].name, "worker-8B");
  EXPECT_EQ(select_cases({}, all_graph_cases()).size(), all_graph_cases().size());
  EXPECT_THROW((void)select_cases({"echo-8B"}, all_graph_cases()), usage_error);
}

TEST(BenchPlan, RefusesAnUnknownCaseAndNamesTheOthers) {
  try {
    (void)select_cases({"echo-8B", "worker-8B"});
    FAIL() << "worker-8B is not a case of the device path";
  } catch (const usage_error &e) {
    EXPECT_NE(std::string(e.what()).find("worker-8B"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("idle-poll"), std::string::npos) << e.what();
  }
}

TEST(BenchPlan, EndsEveryRoundAtSlotZero) {
  for (const std::uint32_t slots : {1u, 3u, 64u, 1024u})
    for (const std::uint64_t exchanges : {1u, 999u, 100000u}) {
      bench_options o;
      o.exchanges = exchanges;
      o.rounds = 10;
      const round_size size = size_of_round(o, slots);
      EXPECT_EQ((size.exchanges + size.warm_up) % slots, 0u) << slots << " " << exchanges;
      EXPECT_GE(size.exchanges * o.rounds, exchanges);
    }
}

TEST(BenchFigures, DividesALatencyByTheFloorOfTheSameRun) {
  const auto floor = made_up({100, 100, 100}, 300);
  EXPECT_DOUBLE_EQ(ratio_of(result_of("echo-8B", floor, made_up({96, 96, 96}, 300))).pooled, 0.96);
  EXPECT_DOUBLE_EQ(ratio_of(result_of("idle-poll", floor, made_up({150}, 300))).pooled, 1.5);
}

TEST(BenchFigures, TakesRatesByTheWallClock) {
  const auto floor = made_up({50, 50, 50, 50}, 400, 3);
  const ratio_line half = ratio_of(result_of("any-256", floor, made_up({50, 50, 50, 50}, 800, 3)));
  EXPECT_DOUBLE_EQ(half.pooled, 0.5);
  const ratio_line rate = ratio_of(result_of("fifo-64", floor, made_up({50, 50, 50, 50}, 1600, 3)));
  EXPECT_DOUBLE_EQ(rate.pooled, 2.5e6);
}

TEST(BenchFigures, WritesEveryFigureAndTheWholeHistogramAsJson) {
  bench_context context;
  context.gpu_name = "Some GPU";
  context.cuda_driver_version = 13000;
  const bench_result result =
      result_of("device-ring-8B", made_up({2000, 2400, 3000}, 100), made_up({2600, 2600, 9000}, 100));
  bench_curve curve{
      "slots", "slots", "slots", false, {{"64", made_up({5}, 5), made_up({4}, 4)}, {"1", made_up({5}, 5), {}}}};
  const json j = bench_json_body({}, context, {result}, {curve});
  EXPECT_EQ(j.at("gpu").at("name"), "Some GPU");
  EXPECT_EQ(j.at("gpu").at("cuda_driver_version"), "13.0");
  const json &c = j.at("cases").at(0);
  EXPECT_EQ(c.at("name"), "device-ring-8B");
  EXPECT_EQ(c.at("ours").at("unit"), "cycles");
  EXPECT_EQ(c.at("ratio").at("round_max"), c.at("ratio_to_floor"));
  for (const char *key : {"min", "p50", "p99", "p99.9", "max"})
    EXPECT_GT(c.at("ours").at("per_exchange").at(key).get<double>(), 0) << key;
  std::uint64_t counted = 0;
  for (const json &bucket : c.at("ours").at("histogram"))
    counted += bucket.at(1).get<std::uint64_t>();
  EXPECT_EQ(counted, 3u);
  EXPECT_TRUE(j.at("curves").at(0).at("points").at(0).contains("floor"));
  EXPECT_FALSE(j.at("curves").at(0).at("points").at(1).contains("floor"));
}

TEST(BenchFigures, CountsWrongRepliesWhereverTheyAre) {
  bench_result result = result_of("echo-8B", made_up({1}, 1), made_up({1}, 1));
  result.other_floors.push_back(made_up({1}, 1));
  bench_curve curve{"slots", "slots", "slots", false, {{"64", made_up({5}, 5), made_up({4}, 4)}}};
  EXPECT_EQ(wrong_replies({result}, {curve}), 0u);
  result.floor.total.wrong = 1;
  result.ours.total.wrong = 2;
  result.other_floors[0].total.wrong = 4;
  curve.points[0].ours.total.wrong = 8;
  curve.points[0].floor->total.wrong = 16;
  EXPECT_EQ(wrong_replies({result}, {curve}), 31u);
}

TEST(BenchFigures, PrintsATableLineForEveryCaseAndPoint) {
  ::testing::internal::CaptureStdout();
  bench_curve curve{"slots", "slots", "slots", true, {{"4711", made_up({5}, 5), {}}}};
  print_bench(output({}), {}, {}, {result_of("echo-8B", made_up({100}, 1), made_up({110}, 1))}, {curve});
  std::fflush(stdout);
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("1.10"), std::string::npos) << text;
  EXPECT_NE(text.find("echo-8B"), std::string::npos) << text;
  EXPECT_NE(text.find("4711"), std::string::npos) << text;
}

// Known failure 71.
TEST(BenchFigures, ArePrintedOnAPageWithTheirFloors) {
  const bench_result result = result_of("echo-8B", made_up({2000, 2400, 3000}, 100), made_up({2600, 2600, 9000}, 100));
  const bench_result cycles = result_of("device-ring-8B", made_up({2000}, 100), made_up({2600}, 100));
  bench_curve curve;
  curve.what = "cost by payload";
  curve.x_name = "bytes";
  curve.points.push_back({"64", made_up({2000}, 100), made_up({1000}, 100)});
  curve.points.push_back({"128", made_up({2000}, 100), std::nullopt});
  bench_context context;
  context.gpu_name = "a <GPU>";
  json report = bench_json_body({}, context, {result, cycles}, {curve});
  report["machine"] = json::object();
  report["command"] = "device";
  const std::string page = bench_html(report, {result, cycles}, {curve});
  const auto p50 = [](const measured_case &c) {
    return format_ns(static_cast<double>(c.total.per_exchange.percentile(50)));
  };
  for (const std::string &part : std::vector<std::string>{
           "<h1>Benchmark device on a &lt;GPU&gt;", "<h2>Cases and their floors", "<td>echo-8B</td>", p50(result.floor),
           p50(result.ours), " cycles</td>", "<h2>cost by payload", "<td>128</td><td>-</td>", "latency over "})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  std::size_t plots = 0;
  for (std::size_t at = page.find("<svg"); at != std::string::npos; at = page.find("<svg", at + 1))
    ++plots;
  EXPECT_EQ(plots, 1u) << "of cycles there is no plot with an axis of time";
}

TEST(Histogram, VisitsItsBucketsInOrder) {
  latency_histogram h;
  for (const std::uint64_t value : {7u, 7u, 300u, 5u})
    h.record(value);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;
  h.each_bucket([&](std::uint64_t upper, std::uint64_t count) { seen.emplace_back(upper, count); });
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> expected = {{5, 1}, {7, 2}, {300, 1}};
  EXPECT_EQ(seen, expected); // 300 is in the bucket of 301, which was not recorded
}

} // namespace
} // namespace cudaq::realtime::tools

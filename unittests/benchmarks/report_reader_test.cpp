// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/compare/report_reader.h"

#include "benchmarks/compare/report_figures.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

const std::string kBegin = R"({"tool": "cudaq-realtime", "command": "demo")";

TEST(ReportReader, RefusesAReportThatIsNestedTooDeep) {
  std::string text = kBegin + R"(, "a": )";
  for (int i = 0; i < 500'000; ++i)
    text += R"({"a":)";
  EXPECT_THROW((void)parse_report(text, "x.json"), usage_error);
  text += "1" + std::string(500'000, '}') + "}";
  try {
    (void)parse_report(text, "x.json");
    FAIL() << "it was read";
  } catch (const usage_error &refused) {
    EXPECT_STREQ(refused.what(), "x.json: not a report that --json wrote: more than 64 levels");
  }
}

TEST(ReportReader, RefusesWhatIsNoReport) {
  for (const std::string text : {"", "1", "[]", "{}", "{\"tool\": \"other\", \"command\": \"demo\"}", "{\"tool\": 5}"})
    EXPECT_THROW((void)parse_report(text, "x.json"), usage_error) << text;
}

TEST(ReportReader, FieldsOfAnotherTypeAreNoFigures) {
  const json report = parse_report(kBegin + R"(, "version": 1, "unit": 5, "completed": "x",
    "latency_ns": {"p50": 100, "p99": "x", "max": 300}, "round_p50_ns": [9, "x", {}]})",
                                   "x.json");
  const auto figures = figures_of(report);
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].what, "p50");
  EXPECT_EQ(figures[0].unit, "ns");
  EXPECT_TRUE(figures[0].rounds.empty());
  EXPECT_EQ(figures[1].what, "max");
  EXPECT_EQ(conditions_of(report).front().second, "");
}

TEST(ReportReader, NothingOfAReportSteersTheTerminal) {
  const json report = parse_report(kBegin + R"(, "version": "\u001b[2Jx\u007f"})", "x.json");
  EXPECT_EQ(report.at("version"), "?[2Jx?");
  EXPECT_THROW((void)parse_report(kBegin + R"(, "a\u001b": 1})", "x.json"), usage_error);
}

} // namespace
} // namespace cudaq::realtime::tools

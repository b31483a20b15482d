// SPDX-License-Identifier: Apache-2.0
// Logical error rates of several models: counts in a CSV of sinter, and a run that adds what is missing.
#include "benchmarks/decoding/error_curve.h"
#include "benchmarks/decoding/sinter_csv.h"

#include <gtest/gtest.h>
#include <sstream>

namespace cudaq::realtime::tools {
namespace {

std::vector<sinter_row> rows_of(const std::string &text) {
  std::istringstream file(text);
  return read_sinter_csv(file, "counts.csv");
}

TEST(ErrorCurve, LabelsComeFromTheNameOfTheFile) {
  const model_labels one = labels_of("a.d9/surface_z_d13_p0.003_r26.dem");
  EXPECT_EQ(one.distance, 13);
  EXPECT_EQ(one.rounds, 26);
  EXPECT_DOUBLE_EQ(one.noise, 0.003);
  const model_labels sinter = labels_of("b=Z,d=5,p=1e-3,r=15.dem");
  EXPECT_EQ(sinter.distance, 5);
  EXPECT_EQ(sinter.rounds, 15);
  EXPECT_DOUBLE_EQ(sinter.noise, 0.001);
  const model_labels none = labels_of("d=x,p2_pd_rounds_dem.dem");
  EXPECT_EQ(none.distance, 0);
  EXPECT_EQ(none.rounds, 0);
  EXPECT_EQ(none.noise, 0) << "2 is no probability";
}

TEST(ErrorCurve, TheRateOfARoundIsThatOfIndependentRounds) {
  EXPECT_DOUBLE_EQ(rate_of_a_round(0.25, 1), 0.25);
  // Two rounds: the shot is wrong if exactly one of them is.
  EXPECT_NEAR(rate_of_a_round(2 * 0.1 * 0.9, 2), 0.1, 1e-12);
  EXPECT_NEAR(rate_of_a_round(0, 100), 0, 0);
  EXPECT_NEAR(rate_of_a_round(0.5, 100), 0.5, 1e-12);
  EXPECT_NEAR(rate_of_a_round(0.75, 1), 0.75, 1e-12);
}

TEST(SinterCsv, RowsOfTheSameTaskAreAddedUp) {
  // As sinter 1.16.0 writes them.
  const auto rows =
      rows_of("     shots,    errors,  discards, seconds,decoder,strong_id,json_metadata,custom_counts\n"
              "      1000,        10,         5,    0.25,pymatching,7f,\"{\"\"d\"\":3,\"\"p\"\":0.01}\",\n"
              "       200,         0,         0,       1,ab,8,,\"{\"\"E0\"\":42}\"\n\n"
              "        24,         1,         0,    1e-3,pymatching,7f,\"{\"\"d\"\":3,\"\"p\"\":0.01}\",\n");
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].shots, 1024);
  EXPECT_EQ(rows[0].errors, 11);
  EXPECT_EQ(rows[0].discards, 5);
  EXPECT_NEAR(rows[0].seconds, 0.251, 1e-12);
  EXPECT_EQ(rows[0].decoder, "pymatching");
  EXPECT_EQ(rows[0].json_metadata, R"({"d":3,"p":0.01})");
  EXPECT_EQ(rows[1].strong_id, "8");
}

TEST(SinterCsv, WhatIsWrittenIsRead) {
  const sinter_row row{123456789012, 7, 0, 1.5, "a,b:\"c\"", "cudaq-1", R"({"d":5,"dem":"a,b"})"};
  const auto rows = rows_of(kSinterHeader + sinter_line(row) + sinter_line(row));
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].shots, 2 * row.shots);
  EXPECT_EQ(rows[0].errors, 14);
  EXPECT_EQ(rows[0].decoder, row.decoder);
  EXPECT_EQ(rows[0].json_metadata, row.json_metadata);
  EXPECT_TRUE(rows_of("").empty());
  EXPECT_TRUE(rows_of(kSinterHeader).empty());
}

TEST(SinterCsv, DamagedLinesAreRefusedWithTheirNumber) {
  const std::string good = sinter_line({10, 1, 0, 1, "x", "y", ""});
  for (const char *const line :
       {"10,11,0,1,x,y,,\n", "10,1\n", "ten,1,0,1,x,y,,\n", "-1,1,0,1,x,y,,\n", "10,5,6,1,x,y,,\n", "10,1,0,1,x,,,\n"})
    try {
      rows_of(kSinterHeader + good + line);
      ADD_FAILURE() << line;
    } catch (const usage_error &error) {
      EXPECT_NE(std::string(error.what()).find("counts.csv: line 3"), std::string::npos) << error.what();
    }
  EXPECT_THROW(rows_of("error(0.1) D0\n"), usage_error);
}

} // namespace
} // namespace cudaq::realtime::tools

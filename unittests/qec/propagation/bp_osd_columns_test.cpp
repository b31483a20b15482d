// SPDX-License-Identifier: Apache-2.0
// How a model becomes columns, and what bp-osd refuses.
#include "unittests/qec/propagation/bp_osd_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

std::vector<std::uint32_t> checks_of(const tanner_graph &graph, std::uint32_t column) {
  const auto checks = graph.checks_of(column);
  return {checks.begin(), checks.end()};
}

TEST(BpOsdColumns, AddTheComponentsOfAnInstructionMod2) {
  const tanner_graph graph = graph_or_throw("error(0.1) D0 D1 L0 ^ D1 D2 L0 L1\n");
  ASSERT_EQ(graph.num_columns(), 1U);
  EXPECT_EQ(graph.num_checks, 2U); // no error flips D1
  EXPECT_EQ(graph.check_of, (std::vector<std::uint32_t>{0, kNoCheck, 1}));
  EXPECT_EQ(checks_of(graph, 0), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(graph.observables_of(0).size(), 1U);
  EXPECT_EQ(graph.observables_of(0)[0], 1U);
}

TEST(BpOsdColumns, MergeEqualErrorsAndKeepDifferentObservablesApart) {
  const tanner_graph graph =
      graph_or_throw("error(0.1) D0 D1\nerror(0.2) D1 D0\nerror(0.3) D0 D1 L0\nerror(0) D0\nerror(0.1) L0\n");
  ASSERT_EQ(graph.num_columns(), 2U);
  EXPECT_DOUBLE_EQ(graph.probability[0], 0.1 * 0.8 + 0.2 * 0.9);
  EXPECT_DOUBLE_EQ(graph.probability[1], 0.3);
}

TEST(BpOsdColumns, KeepInstructionsOfALoopApart) {
  const tanner_graph graph = graph_or_throw("repeat 3 {\nerror(0.1) D0 ^ D1\nshift_detectors 1\n}\n");
  EXPECT_EQ(graph.num_columns(), 3U);
  EXPECT_EQ(graph.num_checks, 4U);
}

TEST(BpOsdColumns, CountErrorsLikelierThanNotAsPresent) {
  const tanner_graph graph = graph_or_throw("error(0.9) D0 D1 L0\nerror(1) D1 L1\nerror(0.7) L2\n");
  ASSERT_EQ(graph.num_columns(), 1U);
  EXPECT_DOUBLE_EQ(graph.probability[0], 1 - 0.9);
  EXPECT_EQ(graph.certain_checks, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(graph.certain_observables, (std::vector<std::uint64_t>{0, 1, 2}));
}

TEST(BpOsdDecoder, IsUsedAsTheManualShows) {
  const char *dem_text = "error(0.1) D0 D1 D2 L0\n"; // docs/decoders/bp_osd.md quotes the next lines
  auto made = make_decoder("bp-osd:max_iterations=100,osd_order=0", dem_text);
  ASSERT_TRUE(made) << made.error;
  EXPECT_EQ(decode(*made.instance, {0, 1, 2}), (answer{decode_status::ok, bits(1, {0})}));
}

TEST(BpOsdDecoder, TakesErrorsThatAreCertain) {
  const auto with = make_or_throw("bp-osd", "error(1) D0 L0\nerror(0.1) D1 L1\n");
  EXPECT_EQ(decode(*with, {}).status, decode_status::no_solution);
  EXPECT_EQ(decode(*with, {0}), (answer{decode_status::ok, bits(2, {0})}));
  EXPECT_EQ(decode(*with, {0, 1}), (answer{decode_status::ok, bits(2, {0, 1})}));
}

TEST(BpOsdDecoder, TakesProbabilitiesAtTheEndsOfTheirRange) {
  for (const char *name : {"bp-osd:scaling=1", "bp-osd:method=product_sum"}) {
    const auto with =
        make_or_throw(name, "error(5e-320) D0 L0\nerror(0.5) D0 D1\nerror(0.9999999999999999) D1 D2 L1\n");
    EXPECT_EQ(decode(*with, {0, 2}), (answer{decode_status::ok, bits(2, {1})}));
    EXPECT_EQ(decode(*with, {0}), (answer{decode_status::ok, bits(2, {0})}));
  }
}

TEST(BpOsdDecoder, TakesHyperedgesThatMatchingRefuses) {
  const char *dem = "error(0.1) D0 D1 D2 L0\nerror(0.01) D0\nerror(0.01) D1\nerror(0.01) D2\n";
  EXPECT_EQ(decode(*make_or_throw("bp-osd", dem), {0, 1, 2}), (answer{decode_status::ok, bits(1, {0})}));
  EXPECT_EQ(decode(*make_or_throw("bp-osd", dem), {1}), (answer{decode_status::ok, bits(1, {})}));
  const std::string error = make_decoder("pymatching", dem).error;
  EXPECT_EQ(error.find("the decoder bp-osd takes such models") != std::string::npos, pymatching_available()) << error;
}

TEST(BpOsdDecoder, IsNamedByALookupDecoderThatIsTooSmall) {
  const std::string error = make_decoder("lookup", oracle_set("color_d5_p0.003").dem_text).error;
  EXPECT_NE(error.find("the decoder bp-osd takes such models"), std::string::npos) << error;
}

TEST(BpOsdDecoder, ServesMoreThan64Observables) {
  const auto with = make_or_throw("bp-osd", "error(0.1) D0 D1 L69\nerror(0.1) D1 D2 L3\nerror(0.1) D2 D0\n");
  EXPECT_EQ(decode(*with, {0}), (answer{decode_status::no_solution, bits(70, {})}));
  EXPECT_EQ(decode(*with, {0, 1}), (answer{decode_status::ok, bits(70, {69})}));
  EXPECT_EQ(decode(*with, {1, 2}), (answer{decode_status::ok, bits(70, {3})}));
}

TEST(BpOsdDecoder, RefusesTooManyDetectorsWithTheirNumber) {
  std::string dem;
  for (int d = 0; d <= 8192; ++d)
    dem += "error(0.1) D" + std::to_string(d) + "\n";
  const decoder_result made = make_decoder("bp-osd", dem);
  EXPECT_FALSE(made);
  EXPECT_NE(made.error.find("8193 detectors; this decoder takes at most 8192"), std::string::npos) << made.error;
  EXPECT_NE(made.error.find("decodes with pymatching"), std::string::npos) << made.error;
  EXPECT_TRUE(make_decoder("bp-osd", "error(0.1) D100000 L0\n")) << "only detectors that an error flips count";
}

TEST(BpOsdDecoder, RefusesOptionsOutOfRangeByName) {
  for (const std::string bad : {"max_iterations=0", "max_iterations=1000001", "scaling=1.5", "scaling=nan",
                                "scaling=-1", "osd_order=65", "osd_order=", "method=sum", "posterior=mean"}) {
    const decoder_result made = make_decoder("bp-osd:" + bad, "error(0.1) D0");
    EXPECT_FALSE(made);
    EXPECT_NE(made.error.find(bad + ": expected"), std::string::npos) << made.error;
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

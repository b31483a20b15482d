// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/learning/learning_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

/// Rates of these lines; the errors of a text have one line each.
learned_rates rates_of_lines(const std::vector<std::pair<std::uint64_t, double>> &lines) {
  learned_rates rates;
  for (const auto &[line, rate] : lines)
    rates.errors.push_back({.line = line, .rate = rate});
  return rates;
}

TEST(LearnedText, ReplacesTheProbabilitiesAndNothingElse) {
  const std::string text = "# error(1) D0\n"
                           "detector(1, 2) D0\n"
                           "  error[a (tag) ERROR(3)](0.25) D0 L0 # error(0.5)\n"
                           "repeat[x{y] 3 {  ERROR( 1e-1 ) D0 ^ D1\r\n"
                           "shift_detectors(0, 1) 1\n"
                           "} error(0) D9\n"
                           "error(0.5) D0";
  ASSERT_TRUE(parse_dem(text).ok()) << parse_dem(text).text();
  EXPECT_EQ(text_with(text, rates_of_lines({{3, 0.75}, {4, 1.0 / 3}, {7, 1e-12}})),
            "# error(1) D0\n"
            "detector(1, 2) D0\n"
            "  error[a (tag) ERROR(3)](0.75) D0 L0 # error(0.5)\n"
            "repeat[x{y] 3 {  ERROR(0.3333333333333333) D0 ^ D1\r\n"
            "shift_detectors(0, 1) 1\n"
            "} error(0) D9\n"
            "error(1e-12) D0");
}

TEST(LearnedText, HasTheLearnedModelAfterItIsReadAgain) {
  for (const char *name : {"surface_z_d3_p0.005", "surface_z_d5_p0.003"}) {
    const std::string text = load_committed(name).dem_text;
    const detector_error_model model = model_of(text);
    const learned_rates rates = learn_or_throw(model, counts_of(model, 3000, 1));
    const detector_error_model read = model_of(text_with(text, rates)), made = model_with(model, rates);
    ASSERT_EQ(read.components.size(), made.components.size());
    std::size_t differ = 0;
    for (std::size_t k = 0; k < read.components.size(); ++k) {
      ASSERT_EQ(read.components[k].probability, made.components[k].probability);
      differ += read.components[k].probability != model.components[k].probability ? 1 : 0;
    }
    EXPECT_GT(differ, read.components.size() / 2);
    EXPECT_EQ(read.targets, model.targets);
  }
}

TEST(LearnedText, ChangesEachComponentOfADecomposedError) {
  const detector_error_model model = model_of("error(0) D0\nerror(0.1) D0 ^ D1\nerror(0.2) D1\n");
  learned_rates rates;
  rates.errors = {{.mechanism = 1, .rate = 0.3}, {.mechanism = 2, .rate = 0.4}};
  const detector_error_model changed = model_with(model, rates);
  ASSERT_EQ(changed.components.size(), 3u);
  EXPECT_EQ(changed.components[0].probability, 0.3);
  EXPECT_EQ(changed.components[1].probability, 0.3);
  EXPECT_EQ(changed.components[2].probability, 0.4);
}

TEST(TiedFile, HasGroupsOfErrors) {
  const auto groups =
      parse_tied("cudaq-realtime-tied 1\nmodel 00000abc\n# text\ntie cx 3 4\n\ntie measure 7\ntie cx 1\n", 0xabc);
  ASSERT_TRUE(groups.ok()) << groups.text();
  EXPECT_EQ(*groups, (std::vector<std::vector<std::uint64_t>>{{3, 4, 1}, {7}}));
}

TEST(TiedFile, IsRefusedWithTheLineThatIsWrong) {
  const std::string head = "cudaq-realtime-tied 1\nmodel 00000abc\n";
  const auto text = [](const std::string &file) { return parse_tied(file, 0xabc).text(); };
  EXPECT_EQ(text(head + "bind a 1\n"),
            "line 3: the line begins with \"bind\", accepted: tie, a name, and numbers of errors");
  EXPECT_EQ(text(head + "tie\n"), "line 3: the line begins with \"tie\", accepted: tie, a name, and numbers of errors");
  EXPECT_EQ(text(head + "tie a 1 x\n"), "line 3: \"x\" is not the number of an error");
  EXPECT_EQ(text(head + "tie a -1\n"), "line 3: \"-1\" is not the number of an error");
  EXPECT_EQ(text(head + "tie a 1\ntie b 2 1\n"), "line 4: error 1 is in group \"a\" already");
  EXPECT_NE(text("cudaq-realtime-tied 1\nmodel 00000abd\n").find("line 2: "), std::string::npos);
  EXPECT_NE(text("").find("line 1: "), std::string::npos);
}

} // namespace
} // namespace cudaq::qec::realtime::test

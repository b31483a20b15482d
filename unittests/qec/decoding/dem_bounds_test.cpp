// SPDX-License-Identifier: Apache-2.0
// A short text cannot ask for a large model: time and memory of the parser and of the decoders are bounded.
#include "lib/qec/decoding/dem.h"
#include "unittests/qec/qec_test_support.h"

#include <cmath>
#include <ctime>
#include <functional>

namespace cudaq::qec::realtime::test {
namespace {

/// Processor time: other programs may use the cores, too.
double seconds(const auto &body) {
  const std::clock_t begin = std::clock();
  body();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

std::string refusal(std::string_view dem, const dem_limits &limits = {}) {
  const auto model = parse_dem(dem, limits);
  return model.ok() ? "accepted" : model.text();
}

// Stim accepts this model. But no decoder of a control system has so many
// detectors, and a decoder's memory is linear in them: the text is refused with its line.
// Known failure 43.
TEST(DemBounds, RefuseAShortTextThatNamesMillionsOfDetectors) {
  for (const std::string &kind : decoder_kinds()) {
    const auto made = make_decoder(kind, "error(0.1) D16777215 L0");
    EXPECT_EQ(made.instance, nullptr) << kind;
    EXPECT_EQ(
        made.error,
        kind + " decoder: line 1: the index of D16777215 is too large: a shot has at most 1048576 detectors; a model "
               "with a loop decodes as a stream of any length (decode --stream)");
  }
}

TEST(DemBounds, TheLargestModelOfOneLineCostsNoMoreThanItsDetectors) {
  // A decoder needs some hundred bytes for each detector. Three vectors of 100 bytes are made and freed for comparison.
  const double of_memory = seconds([] {
    for (int k = 0; k < 3; ++k) {
      std::vector<std::vector<std::uint64_t>> rows(std::size_t{1} << 20);
      for (auto &row : rows)
        row.assign(10, 1);
    }
  });
  for (const std::string &kind : decoder_kinds()) {
    decoder_result made;
    const double spent = seconds([&] { made = make_decoder(kind, "error(0.1) D1048575 L0"); });
    EXPECT_NE(made.instance, nullptr) << made.error;
    EXPECT_LT(spent, 2 + 20 * of_memory) << kind;
  }
}

TEST(DemBounds, RefuseALoopThatRepeatsALongLine) {
  std::string line = "error(0)";
  for (int k = 0; k < 1000; ++k)
    line += " D0";
  EXPECT_EQ(refusal("repeat 8000000 {\n" + line + "\n}"),
            "line 2: the model has too many targets when unrolled"); // would be 8 * 10^9
  EXPECT_EQ(refusal("repeat 5 {\n" + line + "\n}", {.targets = 4999}),
            "line 2: the model has too many targets when unrolled");
  EXPECT_EQ(refusal("repeat 5 {\n" + line + "\n}", {.targets = 5000}), "accepted");
}

TEST(DemBounds, RefuseALoopThatRepeatsManyCoordinates) {
  std::string coordinates = "0";
  for (int k = 1; k < 1000; ++k)
    coordinates += ",0";
  for (const auto &[line, of_a_round] : {std::pair{"detector(" + coordinates + ") D0", std::uint64_t{1001}},
                                         std::pair{"shift_detectors(" + coordinates + ") 0", std::uint64_t{1000}}}) {
    const std::string refused = "line 2: the model has too many coordinates when unrolled";
    EXPECT_EQ(refusal("repeat 8000000 {\n" + line + "\n}"), refused);
    EXPECT_EQ(refusal("repeat 5 {\n" + line + "\n}", {.targets = 5 * of_a_round - 1}), refused);
    EXPECT_EQ(refusal("repeat 5 {\n" + line + "\n}", {.targets = 5 * of_a_round}), "accepted");
  }
}

TEST(DemBounds, EachLimitCountsExactly) {
  EXPECT_EQ(refusal("error(0.1) D0\nerror(0.1) D1", {.instructions = 2}), "accepted");
  EXPECT_EQ(refusal("error(0.1) D0\nerror(0.1) D1", {.instructions = 1}),
            "line 2: the model has too many instructions when unrolled");
  EXPECT_EQ(refusal("error(0.1) D7", {.detectors = 8}), "accepted");
  EXPECT_EQ(refusal("error(0.1) D7", {.detectors = 7}),
            "line 1: the index of D7 is too large: a shot has at most 7 "
            "detectors; a model with a loop decodes as a stream of any length (decode --stream)");
  EXPECT_EQ(refusal("error(0.1) L7", {.observables = 8}), "accepted");
  EXPECT_EQ(refusal("error(0.1) L7", {.observables = 7}), "line 1: the index of L7 is too large");
}

std::string nested(int depth, const std::string &innermost) {
  std::string text;
  for (int k = 0; k < depth; ++k)
    text += "repeat 1 {\n";
  text += innermost + "\n";
  for (int k = 0; k < depth; ++k)
    text += "}\n";
  return text;
}

TEST(DemBounds, NestedLoopsAreLimitedWithTheirLine) {
  for (const std::string &kind : decoder_kinds()) {
    EXPECT_EQ(make_decoder(kind, nested(1024, "error(0.1) D0 L0")).error, "");
    EXPECT_EQ(make_decoder(kind, nested(1025, "error(0.1) D0 L0")).error,
              kind + " decoder: line 1025: repeat blocks are nested deeper than 1024");
  }
  EXPECT_EQ(refusal(std::string(1 << 20, '}')), "line 1: } without a repeat block");
}

TEST(DemBounds, NestingNeedsNoStack) {
  constexpr int kDepth = 1000000;
  EXPECT_EQ(refusal(nested(kDepth, "error(0.1) D0"), {.nesting = kDepth}), "accepted");
  EXPECT_EQ(refusal(nested(kDepth, "fault"), {.nesting = kDepth}), "line 1000001: unknown instruction \"fault\"");
}

/// Texts of n parts each; the time to read one is linear in n.
struct grown_text {
  const char *name;
  std::string (*of)(int n);
};

void PrintTo(const grown_text &text, std::ostream *out) { *out << text.name; }

std::string repeated(int n, const std::function<std::string(int)> &part) {
  std::string text;
  for (int k = 0; k < n; ++k)
    text += part(k);
  return text;
}

const grown_text kGrownTexts[] = {
    {"ShortLines",
     [](int n) {
       return repeated(n, [](int k) {
         return "error(0.1) D" + std::to_string(k % 1000) + " D" + std::to_string(1000 + k % 1000) + "\n";
       });
     }},
    {"OneLongLine",
     [](int n) { return "error(0.1)" + repeated(n, [](int k) { return " D" + std::to_string(k % 5000); }); }},
    {"OneLineOfOneTarget", [](int n) { return "error(0.1)" + repeated(n, [](int) { return " D0"; }); }},
    {"ManyComponents", [](int n) { return "error(0.1) D0" + repeated(n, [](int) { return " ^ D1"; }); }},
    {"Tags", [](int n) { return repeated(n, [](int) { return "error[a \\C tag](0.1) D0\n"; }); }},
    {"Comments", [](int n) { return repeated(n, [](int) { return "# a comment\n"; }); }},
    {"NestedLoops", [](int n) { return nested(n, "error(0.1) D0"); }},
    {"LoopsInARow",
     [](int n) { return repeated(n, [](int) { return "repeat 2 {\nerror(0.1) D0\nshift_detectors 1\n}\n"; }); }},
    {"OneLoop", [](int n) { return "repeat " + std::to_string(n) + " {\nerror(0.1) D0 ^ D1\nshift_detectors 1\n}"; }},
    {"LoopsInLoops",
     [](int n) {
       return "repeat " + std::to_string(n / 100) + " {\nrepeat 10 {\nrepeat 10 {\nerror(0.1) D0 L0\n}\n}\n}";
     }},
};

class DemTime : public testing::TestWithParam<grown_text> {};

// Known failure 43.
TEST_P(DemTime, IsLinearInTheText) {
  constexpr int kParts = 20000;
  const std::string few = GetParam().of(kParts), many = GetParam().of(8 * kParts);
  const auto fastest = [](const std::string &text) {
    double least = HUGE_VAL;
    for (int k = 0; k < 3; ++k)
      least = std::min(least, seconds([&] { EXPECT_EQ(refusal(text, {.nesting = 1 << 20}), "accepted"); }));
    return least;
  };
  EXPECT_LT(fastest(many), 0.2 + 8 * 4 * fastest(few));
}

INSTANTIATE_TEST_SUITE_P(Texts, DemTime, testing::ValuesIn(kGrownTexts),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::qec::realtime::test

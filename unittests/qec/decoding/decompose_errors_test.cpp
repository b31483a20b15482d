// SPDX-License-Identifier: Apache-2.0
// Errors with more than two detectors become edges, and matching decodes models that Stim did not decompose.
#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoding/decoder_model.h"
#include "lib/qec/decoding/split_errors/connected_parts.h"
#include "lib/qec/decoding/split_errors/decompose_errors.h"
#include "unittests/qec/equal_models.h"
#include "unittests/qec/qec_test_support.h"
#include "unittests/qec/whole_errors.h"

#include <sstream>
#include <utility>

namespace cudaq::qec::realtime::test {
namespace {

/// The components of the errors with a probability below 0.1, in the form of Stim: "D0 D1 L0 ^ D4".
std::string decomposed(const std::string &dem) {
  const detector_error_model model = decompose_errors(*parse_dem(dem));
  std::ostringstream text;
  const dem_component *before = nullptr;
  for (const dem_component &c : model.components) {
    if (c.probability >= 0.1)
      continue;
    if (before != nullptr)
      text << (before->mechanism == c.mechanism ? " ^ " : "; ");
    const char *gap = "";
    for (const std::uint64_t d : model.detectors_of(c))
      text << std::exchange(gap, " ") << 'D' << d;
    for (const std::uint64_t o : model.observables_of(c))
      text << std::exchange(gap, " ") << 'L' << o;
    before = &c;
  }
  return text.str();
}

/// Two parts, D0 to D3 and D4 to D7, in lines with a boundary at each end.
const std::string kTwoParts = "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1 D2\nerror(0.1) D2 D3\nerror(0.1) D3\n"
                              "error(0.1) D4 L1\nerror(0.1) D4 D5\nerror(0.1) D5 D6\nerror(0.1) D6 D7\nerror(0.1) D7\n";

TEST(DecomposeErrors, SplitsAnErrorIntoOneEdgeOfEachPart) {
  EXPECT_EQ(decomposed(kTwoParts + "error(0.01) D1 D2 D5 D6\n"), "D1 D2 ^ D5 D6");
  EXPECT_EQ(decomposed(kTwoParts + "error(0.01) D5 D2 D1 D6 L0 L0\n"), "D1 D2 ^ D5 D6") << "in any order";
  EXPECT_EQ(decomposed(kTwoParts + "error(0.01) D0 D5 D6 L0\n"), "D0 L0 ^ D5 D6");
  EXPECT_EQ(decomposed(kTwoParts + "error(0.02) D0 D4 D5 L0\nerror(0.01) D2 D3 D7\n"), "D0 L0 ^ D4 D5; D2 D3 ^ D7");
  EXPECT_EQ(decomposed(kTwoParts + "error(0.01) D1 D2 D5 D6 ^ D0 L0\n"), "D1 D2 ^ D5 D6 ^ D0 L0") << "one error";
}

TEST(DecomposeErrors, SplitsAnErrorWithOneDetectorOfEachPartOnlyBesideLargerOnes) {
  const std::string both = "error(0.01) D0 D4 L0 L1\n", larger = "error(0.01) D0 D1 D4 L1\n";
  EXPECT_EQ(decomposed(kTwoParts + both + larger), "D0 L0 ^ D4 L1; D0 D1 ^ D4 L1");
  EXPECT_EQ(decomposed(kTwoParts + both), "D0 D4 L0 L1") << "a model that matching takes is not changed";
}

// In a code of distance 3 each check has a boundary, and the same check in two rounds, too.
TEST(DecomposeErrors, KeepsMeasurementErrorsOfChecksAtABoundary) {
  const std::string rounds = "error(0.1) D0 L0\nerror(0.1) D1\nerror(0.1) D0 D1\n"
                             "error(0.1) D2 L0\nerror(0.1) D3\nerror(0.1) D2 D3\n"
                             "error(0.1) D4 L1\nerror(0.1) D5\nerror(0.1) D4 D5\n";
  EXPECT_EQ(decomposed(rounds + "error(0.01) D0 D2\nerror(0.01) D0 D1 D4 D5\n"), "D0 D2; D0 D1 ^ D4 D5");
}

TEST(DecomposeErrors, LeavesWhatIsNoSumOfEdges) {
  for (const char *error : {"D1 D2 D5 D6 L0",     // other observables
                            "D0 D1 D2 D5",        // three of one part
                            "D1 D3 D5 D6",        // no edge between D1 and D3
                            "D1 D5 D6",           // D1 has no boundary
                            "D1 D2 D5 D6 D8 D9"}) // two detectors of no part
    EXPECT_EQ(decomposed(kTwoParts + "error(0.01) " + error + "\n"), error);
  // The Steane code: each error of a qubit in the middle flips three checks, which edges connect.
  const std::string steane = "error(0.1) D0 L0\nerror(0.1) D1 L0\nerror(0.1) D2\nerror(0.1) D0 D1\nerror(0.1) D0 D2\n"
                             "error(0.1) D1 D2\n";
  EXPECT_EQ(decomposed(steane + "error(0.01) D0 D1 D2\n"), "D0 D1 D2");
}

TEST(DecomposeErrors, TakesTheLikeliestOfErrorsThatDifferInTheirObservables) {
  const std::string variants = "error(0.2) D1 D2 L1\nerror(0.3) D5 D6 L1\n";
  EXPECT_EQ(decomposed(kTwoParts + variants + "error(0.01) D1 D2 D5 D6\n"), "D1 D2 L1 ^ D5 D6 L1");
  EXPECT_EQ(decomposed(kTwoParts + variants + "error(0.01) D1 D2 D5 D6 L1\n"), "D1 D2 ^ D5 D6 L1");
}

TEST(DecomposeErrors, EndsSoonForModelsOfNoCode) {
  std::string dem;
  for (int k = 0; k < 3000; ++k) // each detector with thousands of errors, each with other observables
    dem += "error(0.1) D" + std::to_string(k % 4) + " L" + std::to_string(k) + "\nerror(0.1) D" +
           std::to_string(k % 4) + " D" + std::to_string(4 + k % 4) + " L" + std::to_string(k) + "\n";
  std::string wide = "error(0.01)";
  for (int k = 0; k < 3000; ++k)
    wide += " D" + std::to_string(k);
  EXPECT_EQ(decomposed(dem + wide + "\n" + "error(0.01) D0 D1 D4 D5\n"), wide.substr(12) + "; D0 D1 D4 D5");
}

TEST(DecomposeErrors, EndsSoonForErrorsWithManyWaysToSplitThem) {
  std::string dem, error;
  for (int part = 0; part < 4; ++part) {
    const std::string pair = " D" + std::to_string(2 * part) + " D" + std::to_string(2 * part + 1);
    error += pair;
    for (int k = 0; k < 4; ++k)
      dem += "error(0.1)" + pair + " L" + std::to_string(4 * part + k) + "\n";
  }
  for (int k = 0; k < 10000; ++k)
    dem += "error(0.01)" + error + " L" + std::to_string(k % 4) + " L5 L10 L" + std::to_string(12 + k % 4) + "\n";
  const auto model = decompose_errors(*parse_dem(dem));
  EXPECT_EQ(model.components.size(), 16U + 4 * 10000);
}

TEST(DecomposeErrors, TheModelStaysWithinItsLimitWhereEdgesHaveThousandsOfObservables) {
  std::string observables, dem;
  for (int k = 0; k < 5000; ++k)
    observables += " L" + std::to_string(k);
  for (const char *pair : {" D0 D1", " D2 D3"})
    dem += std::string("error(0.1)") + pair + observables + "\n";
  dem += "repeat 20000 {\nerror(0.01) D0 D1 D2 D3\n}\n";
  const auto model = decompose_errors(*parse_dem(dem));
  EXPECT_LE(model.targets.size(), dem_limits{}.targets + 200000);
}

/// Logical errors of all shots of a set. `name` must be a kind of matching for this model.
std::uint64_t logical_errors(const shot_set &set, std::string_view name, const std::string &dem) {
  const auto with = make_or_throw(name, dem);
  EXPECT_TRUE(std::string_view(with->name()).starts_with("pymatching")) << with->name();
  std::vector<std::uint64_t> events(set.num_detectors);
  std::vector<std::uint8_t> out(with->observable_bytes());
  std::uint64_t wrong = 0;
  for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
    const auto unpacked = unpack_events(set.detection_row(shot), set.num_detectors, events);
    EXPECT_EQ(with->decode(std::span(events).first(unpacked.count), out), decode_status::ok) << shot;
    const auto truth = set.observable_row(shot);
    wrong += !std::equal(out.begin(), out.end(), truth.begin(), truth.end());
  }
  return wrong;
}

class UndecomposedModel : public testing::TestWithParam<std::string> {};

TEST_P(UndecomposedModel, HasAsFewLogicalErrorsAsStimsDecomposition) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const shot_set set = load_committed(GetParam());
  const std::string whole = whole_errors(set.dem_text);
  ASSERT_NE(whole, set.dem_text);
  const std::uint64_t few = 3; // shots in which equally likely corrections decide
  EXPECT_LE(logical_errors(set, "auto", whole), set.offline_logical_errors + few);
  EXPECT_LE(logical_errors(set, "pymatching-correlated", whole),
            logical_errors(set, "pymatching-correlated", set.dem_text) + few);
}

INSTANTIATE_TEST_SUITE_P(OfStim, UndecomposedModel,
                         testing::Values("surface_z_d3_p0.003", "surface_z_d3_p0.005", "surface_z_d5_p0.003",
                                         "surface_z_d5_p0.005"),
                         kind_name);

TEST(UndecomposedModel, TheLookupDecoderTakesWholeErrors) {
  const std::string dem = kTwoParts + "error(0.09) D1 D2 D5 D6 L1\n";
  EXPECT_EQ(decode(*make_or_throw("lookup", dem), {1, 2, 5, 6}).observables, bits(2, {1}));
}

connected_parts parts_of(std::string_view dem, bool by_component) { return {*parse_dem(dem), by_component}; }

TEST(ConnectedParts, ArePartsOfTheModelWithWhatTheyFlip) {
  const connected_parts all = parts_of("error(0.1) D0 D1 L0\nerror(0.1) D2 D4\nerror(0.1) D4\nerror(0.1) D5 D6\n"
                                       "detector D7\n",
                                       true);
  EXPECT_EQ(all.part_of, (std::vector<std::uint32_t>{0, 0, 1, 2, 1, 3, 3, 4}));
  ASSERT_EQ(all.parts.size(), 5U);
  EXPECT_TRUE(all.parts[0].flips_observables && !all.parts[0].has_boundary);
  EXPECT_TRUE(!all.parts[1].flips_observables && all.parts[1].has_boundary);
  EXPECT_FALSE(all.parts[2].flips_observables || all.parts[2].has_boundary) << "a detector that no error flips";
  EXPECT_FALSE(all.parts[3].flips_observables || all.parts[3].has_boundary);
}

TEST(ConnectedParts, ComponentsOfAnErrorJoinPartsOnlyWhereTheyBelongTogether) {
  const std::string dem = "error(0.1) D0 D1 L0 ^ D2 D3\nerror(0.1) D3 ^ L1\n";
  EXPECT_EQ(parts_of(dem, true).part_of, (std::vector<std::uint32_t>{0, 0, 1, 1}));
  EXPECT_FALSE(parts_of(dem, true).parts[1].flips_observables) << "component_errors() moves them before";
  EXPECT_EQ(parts_of(dem, false).part_of, (std::vector<std::uint32_t>{0, 0, 0, 0}));
  EXPECT_TRUE(parts_of(dem, false).parts[0].flips_observables);
}

// A model as a text and as a value.

constexpr const char *kText = "error(0.1) D0 L2 ^ D1\n"
                              "error(1e-09) D3\n"
                              "error(0.30000000000000004) L0\n"
                              "error(0.25) D1 D2 D3\n"
                              "error(5e-324) D2 L0 L1\n"
                              "detector D5\n"
                              "logical_observable L7\n";

TEST(DecoderModel, OfATextAndOfAValueAreTheSameBitByBit) {
  const decoder_model of_text(kText);
  ASSERT_TRUE(of_text.errors().ok()) << of_text.errors().text();
  const detector_error_model &errors = **of_text.errors();
  EXPECT_EQ(of_text.text(), kText);
  const decoder_model of_errors(errors);
  EXPECT_EQ(of_errors.text(), kText);
  expect_equal(*parse_dem(of_errors.text()), errors);
  expect_equal(*parse_dem(text_of({})), {});
}

TEST(DecoderModel, IsMadeFromTheOtherFormOnce) {
  const decoder_model of_text(kText);
  EXPECT_EQ(*of_text.errors(), *of_text.errors());
  const decoder_model of_errors(**of_text.errors());
  EXPECT_EQ(of_errors.text().data(), of_errors.text().data());
  EXPECT_EQ(*of_errors.errors(), *of_text.errors());
}

TEST(DecoderModel, SaysWhereATextIsWrong) {
  EXPECT_EQ(decoder_model("error(0.1) D0\nerror(2) D0\n").errors().text().substr(0, 8), "line 2: ");
}

TEST(DecoderModel, GivesTheSameDecodersInBothForms) {
  const shot_set set = load_committed("surface_z_d3_p0.003");
  const decoder_model of_text(set.dem_text), of_errors(**of_text.errors());
  for (const std::string &name : decoder_names()) {
    const chosen_decoder a = choose_decoder(name, of_text), b = choose_decoder(name, of_errors);
    ASSERT_TRUE(a && b) << name << ": " << a.error << b.error;
    for (std::uint64_t shot = 0; shot < 200; ++shot) {
      std::vector<std::uint8_t> one(a.instance->observable_bytes()), other(one);
      EXPECT_EQ(a.instance->decode_bits(set.detection_row(shot), one),
                b.instance->decode_bits(set.detection_row(shot), other));
      EXPECT_EQ(one, other) << name << ", shot " << shot;
    }
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

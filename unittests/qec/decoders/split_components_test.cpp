// SPDX-License-Identifier: Apache-2.0
// An observable in a component without detectors belongs to its error: `D0 ^ L0` is decoded as `D0 L0`, or the model is
// refused with its line.
#include "cudaq/qec/decoding/stream.h"
#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoding/predecoder.h"
#include "lib/qec/decoding/split_errors/component_errors.h"
#include "unittests/qec/every_error_set.h"
#include "unittests/qec/qec_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

/// The same errors, but with the observables spread over components with and without detectors. Some components stand
/// before the one with detectors, some have detectors that cancel, and some have observables that cancel.
std::string spread_dem_of(const std::vector<random_error> &errors, std::mt19937 &random) {
  std::string dem;
  for (const random_error &e : errors) {
    std::string detectors, loose;
    for (const std::uint64_t d : indices_of(e.detectors))
      detectors += " D" + std::to_string(d);
    for (std::uint64_t o = 0; o < 4; ++o) {
      const bool flipped = (e.observables >> o & 1U) != 0;
      const std::string name = " L" + std::to_string(o);
      if (random() % 4 == 0 && flipped)
        detectors += name;
      else if (random() % 4 == 0)
        loose += " ^" + name + (flipped ? "" : name);
      else if (flipped)
        loose += (random() % 2 == 0 ? " ^ D5 D5" : " ^") + name;
    }
    if (random() % 2 == 0 && !loose.empty()) {
      detectors = loose.substr(2) + " ^" + detectors;
      loose.clear();
    }
    dem += "error(" + std::to_string(e.probability) + ")" + detectors + loose + "\n";
  }
  return dem;
}

std::vector<std::string> every_kind() {
  std::vector<std::string> kinds = all_decoder_kinds();
  if (pymatching_available())
    kinds.push_back("pymatching-correlated");
  return kinds;
}

class ComponentsWithoutDetectors : public testing::TestWithParam<std::string> {};

TEST_P(ComponentsWithoutDetectors, GiveTheirObservablesToTheirError) {
  std::mt19937 random(76);
  const bool exact = GetParam() != "bp-osd" && GetParam() != "relay-bp";
  for (int k = 0; k < 40 && !HasFailure(); ++k) {
    std::vector<random_error> errors = random_model(random, 2, 0.4);
    // Correlated matching takes one set of observables for the same detectors.
    std::map<std::uint64_t, random_error> by_detectors;
    for (const random_error &e : errors)
      by_detectors.emplace(e.detectors, e);
    if (GetParam() == "pymatching-correlated") {
      errors.clear();
      for (const auto &[detectors, e] : by_detectors)
        errors.push_back(e);
    }
    const std::string spread = spread_dem_of(errors, random) + "detector D5\nlogical_observable L3\n";
    const std::string joined = dem_of(errors) + "detector D5\nlogical_observable L3\n";
    const auto with = make_or_throw(GetParam(), spread), same = make_or_throw(GetParam(), joined);
    const weights least = try_every_set(errors);
    for (std::uint64_t syndrome = 0; syndrome < 64; ++syndrome) {
      const answer got = decode(*with, indices_of(syndrome));
      ASSERT_EQ(got, decode(*same, indices_of(syndrome))) << spread << "syndrome " << syndrome;
      if (const auto known = least.find(syndrome); exact && known != least.end()) {
        double best = known->second.begin()->second;
        for (const auto &[observables, weight] : known->second)
          best = std::min(best, weight);
        ASSERT_TRUE(known->second.contains(got.observables[0])) << spread << "syndrome " << syndrome;
        EXPECT_NEAR(known->second.at(got.observables[0]), best, 1e-4) << spread << "syndrome " << syndrome;
      }
    }
  }
}

TEST_P(ComponentsWithoutDetectors, AreKeptInTheShortestModel) {
  for (const char *dem : {"error(0.1) D0 ^ L0\n", "error(0.1) L0 ^ D0\n", "error(0.1) D1 D1 L0 ^ D0\n",
                          "error(0.1) D0 L0 ^ L1 ^ L1\n", "repeat 1 {\n  error(0.1) D0 ^ L0\n  shift_detectors 1\n}\n"})
    EXPECT_EQ(decode(*make_or_throw(GetParam(), dem), {0}).observables[0], 1) << dem;
}

TEST_P(ComponentsWithoutDetectors, AreRefusedWithTheLineWhereTheyBelongToSeveralComponents) {
  const std::string dem = "error(0.1) D0 D1\nerror(0.1) D0 D1 ^ D2 ^ L4\n";
  const decoder_result made = make_decoder(GetParam(), dem);
  ASSERT_EQ(static_cast<bool>(made), GetParam() == "bp-osd" || GetParam() == "relay-bp") << made.error;
  if (made)
    EXPECT_EQ(decode(*made.instance, {0, 1, 2}).observables, bits(5, {4}));
  else
    EXPECT_NE(made.error.find("line 2: L4 is in a component without detectors, and the error has 2 others"),
              std::string::npos)
        << made.error;
  // Observables that cancel need no place.
  EXPECT_TRUE(make_decoder(GetParam(), "error(0.1) D0 D1 ^ D2 ^ L4 ^ L4\n"));
}

// Errors that no detector sees, below and at 1/2: the likeliest set has none of them.
TEST_P(ComponentsWithoutDetectors, AloneInTheirErrorFlipNothingUnlessLikelierThanNot) {
  for (const char *line :
       {"error(0) L0\n", "error(0.1) L0 ^ L1\n", "error(0.4) D1 D1 L0\n", "error(0.3) L0\nerror(0.3) L0\n"})
    EXPECT_EQ(decode(*make_or_throw(GetParam(), std::string("error(0.1) D0\n") + line), {0}).observables[0], 0) << line;
  const decoder_result likely = make_decoder(GetParam(), "error(0.1) D0\nerror(0.9) L0 ^ L1\n");
  if (likely)
    EXPECT_EQ(decode(*likely.instance, {0}).observables[0], 3);
  else
    EXPECT_NE(likely.error.find("line 2: "), std::string::npos) << likely.error;
}

INSTANTIATE_TEST_SUITE_P(Kinds, ComponentsWithoutDetectors, testing::ValuesIn(every_kind()), kind_name);

TEST(DecoderAuto, TakesBpOsdWhereItsFirstChoiceRefusesTheModelAndSaysWhy) {
  for (const char *dem : {"error(0.1) D0\nerror(0.1) D0 D1 D2 L0\n", "error(0.1) D0\nerror(0.1) D0 D1 ^ D2 ^ L0\n"}) {
    if (!pymatching_available() && std::string_view(dem).find('^') == std::string_view::npos)
      continue; // the lookup decoder takes it
    const auto with = make_or_throw("auto", dem);
    EXPECT_STREQ(with->name(), "bp-osd");
    EXPECT_EQ(decode(*with, {0, 1, 2}).observables, bits(1, {0}));
    const std::string why = choose_decoder("auto", dem).auto_reason;
    EXPECT_NE(why.find("auto took bp-osd"), std::string::npos) << why;
    EXPECT_NE(why.find("line 2: "), std::string::npos) << why;
    EXPECT_STREQ(make_or_throw("auto:osd_order=3", dem)->name(), "bp-osd");
  }
  const char *const graph = "error(0.1) D0\nerror(0.1) D0 D1 L0\n";
  const auto first = make_or_throw("auto", graph);
  EXPECT_STRNE(first->name(), "bp-osd");
  EXPECT_EQ(choose_decoder("auto", graph).auto_reason, "");
  EXPECT_EQ(choose_decoder("bp-osd", graph).auto_reason, "");
  EXPECT_NE(make_decoder("auto:osd_order=3", graph).error.find("unknown setting \"osd_order\""), std::string::npos);
  EXPECT_NE(make_decoder("auto", "rubbish").error.find("line 1: "), std::string::npos);
}

// Components of split errors that contradict other errors of the model: who takes such a model, and who refuses it.

/// D0 alone is the second error, which flips nothing. D0 and D1 together are the first one, which flips nothing either.
const std::string kContradiction = "error(0.1) D0 L0 ^ D1 L0\nerror(0.01) D0\nerror(0.01) D1 L0\n";

TEST(ContradictingComponents, AreRefusedByEachDecoderThatTakesThemAsErrors) {
  for (const char *name : {"pymatching", "pymatching-correlated", "lookup"}) {
    if (std::string_view(name).starts_with("pymatching") && !pymatching_available())
      continue;
    const std::string error = make_decoder(name, kContradiction).error;
    EXPECT_NE(error.find("line 1: the component D0 L0 contradicts line 2, which has D0: "), std::string::npos)
        << name << ": " << error;
    EXPECT_NE(error.find("the decoder bp-osd takes errors whole"), std::string::npos) << error;
  }
  EXPECT_NE(make_predecoder("local", kContradiction).text().find("line 1: the component D0 L0 contradicts line 2"),
            std::string::npos);
}

TEST(ContradictingComponents, MakeAutoTakeADecoderThatIsRight) {
  const auto with = make_or_throw("auto", kContradiction);
  EXPECT_STREQ(with->name(), "bp-osd");
  EXPECT_NE(choose_decoder("auto", kContradiction).auto_reason.find("contradicts line 2"), std::string::npos);
  EXPECT_EQ(decode(*with, {0}), (answer{decode_status::ok, {0}}));
  EXPECT_EQ(decode(*with, {1}), (answer{decode_status::ok, {1}}));
  EXPECT_EQ(decode(*with, {0, 1}), (answer{decode_status::ok, {0}}));
}

TEST(ContradictingComponents, AreFoundInEachFormOfTheText) {
  const std::vector<std::pair<std::string, bool>> models{
      {"error(0.1) D0 L0 ^ D1 L0\nerror(0.01) D0 L0\n", true},
      {"error(0.1) D0 L0\nerror(0.01) D0\n", true}, // whole errors: both happen
      {"error(0.1) D0 L0\nerror(0.01) D0\nerror(0.1) D1 ^ D2 D3\n", true},
      {"error(0.1) D0 ^ L0\nerror(0.01) D0\n", true}, // one component with detectors
      {"error(0) D0 L0 ^ D1 L0\nerror(0.01) D0\n", true},
      {"error(0.1) D0 L0 ^ D1\nerror(0.1) D0\nerror(0.1) D0 L0\n", true}, // a code of distance 2
      {"error(0.1) D0 L0 ^ D1\nerror(0.01) D0\nerror(0.0001) D0 L0\n", false},
      {"error(0.01) D0\nerror(0.1) D1 L0 ^ D0 L0\n", false},
      {"error(0.1) D0 L0 ^ D1\nerror(0.1) D0 ^ D2\n", false}, // two splits that differ
      {"error(0.1) D0 L0 ^ D0\n", false},
      {"error(0.1) D0 D1 L0 ^ D2\nerror(0.01) D1 D0\n", false},
      {"error(0.1) D0 D1 D2 L0 ^ D3\nerror(0.01) D2 D0 D1 L1\n", false},
      {"repeat 2 {\n error(0.1) D0 L0 ^ D1 L0\n shift_detectors 2\n}\nerror(0.1) D0\nerror(0.1) L1 ^ D2\n"
       "shift_detectors 1\nerror(0.1) D0\n",
       true},
      {"error(0.01) D2\nrepeat 2 {\n error(0.1) D0 L0 ^ D1 L0\n shift_detectors 2\n}\n", false}};
  for (const auto &[text, is_taken] : models) {
    const auto taken = component_errors(*parse_dem(text));
    EXPECT_EQ(taken.ok(), is_taken) << text << taken.text();
    EXPECT_TRUE(is_taken || taken.text().find(" contradicts line ") != std::string::npos) << taken.text();
  }
}

/// Lines of a rotated surface code of distance 2 with 4 rounds, as Stim splits it with all noises at 0.001. With and
/// without L0, D8 has the same probability, but for the last bit of the sum.
TEST(ContradictingComponents, OfEqualProbabilityAreTaken) {
  const std::string text = R"(error(0.001332355650390693036) D5
error(0.0003334000326131335203) D6 ^ D8
error(0.0002000667052120994288) D6 ^ D8 ^ D5
error(6.669779853440971351e-05) D6 ^ D8 ^ D7 ^ D5
error(0.00139887571854761068) D7 ^ D8 L0
error(0.00139887571854761068) D8
error(0.001797809825744136518) D8 L0
error(0.0002000667052120994288) D8 L0 ^ D5 L0
error(6.669779853440971351e-05) D8 L0 ^ D6
error(0.0001333866998761607556) D8 ^ D6
error(0.0001333866998761607556) D8 ^ D9 ^ D6
error(0.0001333866998761607556) D9 ^ D6 ^ D8
error(0.001066186619241731026) D9 ^ D8
error(0.0001333866998761607556) D9 ^ D8 L0
error(0.0002667378157289137966) D9 ^ D10 ^ D8
error(0.002794590681356897994) D10
error(0.0004000533570511300221) D10 L0 ^ D8 L0
error(0.0002667378157289137966) D10 ^ D8
)";
  const auto taken = component_errors(*parse_dem(text));
  EXPECT_TRUE(taken.ok()) << taken.text();
}

TEST(ContradictingComponents, MakeAutoTakeAnotherDecoderForWindows) {
  std::string text = "error(0.01) D0 L0\n";
  text += "repeat 20 {\n error(0.01) D0 D1\n error(0.05) D0 L0 ^ D1 L0\n error(0.01) D1 L0\n error(0.02) D1\n"
          " detector(0) D0\n shift_detectors(1) 1\n}\n";
  text += "error(0.01) D0\ndetector(0) D0\n";
  stream_options options;
  options.commit = options.buffer = 3;
  options.decoder = "pymatching";
  EXPECT_NE(make_stream_decoder(text, options).error.find(" contradicts line "), std::string::npos);
  options.decoder = "auto";
  const stream_result made = make_stream_decoder(text, options);
  ASSERT_TRUE(made) << made.error;
  EXPECT_NE(
      made.instance->description().find("; bp-osd; sequential; auto took bp-osd, because its first choice refuses "),
      std::string::npos)
      << made.instance->description();
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Components of split errors that contradict other errors of the model: who takes such a model, and who refuses it.
#include "cudaq/qec/decoding/stream.h"
#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoding/predecoder.h"
#include "lib/qec/decoding/split_errors/component_errors.h"
#include "unittests/qec/qec_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

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

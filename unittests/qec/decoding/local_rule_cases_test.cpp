// SPDX-License-Identifier: Apache-2.0
// The local predecoder is a heuristic. On models for which a local rule is wrong, the decoder alone is right. `auto`
// takes no predecoder, and `local` is refused before every decoder but pymatching.
#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/model_sampler.h"
#include "lib/qec/decoding/predecoder.h"
#include "unittests/qec/qec_test_support.h"

#include <fstream>
#include <iterator>

namespace cudaq::qec::realtime::test {
namespace {

std::string read_case(const std::string &name) {
  std::ifstream file(std::string(CUDAQ_TEST_CASES) + "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The events of the one shot of a file in Stim's format dets.
std::vector<std::uint64_t> events_of_case(const std::string &name) {
  std::vector<std::uint64_t> events;
  const std::string text = read_case(name);
  for (std::size_t at = text.find('D'); at != std::string::npos; at = text.find('D', at + 1))
    events.push_back(std::stoull(text.substr(at + 1)));
  return events;
}

// Known failure 41.
TEST(MatchingAlone, IsRightWhereALocalRuleIsWrong) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto toric = make_or_throw("pymatching", read_case("toric_L5_p0.005.dem"));
  EXPECT_EQ(decode(*toric, events_of_case("toric_L5_four_errors.dets")), (answer{decode_status::ok, bits(2, {1})}));
  const auto lines = make_or_throw("pymatching", read_case("nonuniform_7_lines.dem"));
  EXPECT_EQ(decode(*lines, events_of_case("nonuniform_7_lines.dets")), (answer{decode_status::ok, bits(1, {})}));
}

// One weak error links a memory of distance 7 (L0) with one of distance 3 (L1).
TEST(MatchingAlone, CorrectsThreeErrorsOfAMemoryThatIsLinkedWithASmallerOne) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const std::string dem = read_case("d7_and_d3_linked.dem");
  const auto with = make_or_throw("pymatching", dem);
  const model_sampler sampler(*parse_dem(dem));
  std::mt19937_64 random(79);
  std::vector<std::uint8_t> shot(sampler.shot_bytes()), truth(sampler.observable_bytes()), out(truth.size());
  for (int k = 0; k < 5000; ++k) {
    std::ranges::fill(shot, std::uint8_t{0});
    std::ranges::fill(truth, std::uint8_t{0});
    sampler.sample_exactly(3, random, shot, truth);
    ASSERT_EQ(with->decode_bits(shot, out), decode_status::ok);
    ASSERT_EQ(out[0] & 1, truth[0] & 1) << "shot " << k;
  }
}

// Known failure 40.
TEST(LocalPredecoder, IsRefusedBeforeEveryDecoderButPlainMatching) {
  const std::string dem = "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\n";
  for (const std::string &name : decoder_names()) {
    const decoder_result made = make_decoder(name + ":predecoder=local", dem);
    EXPECT_EQ(static_cast<bool>(made), name == "pymatching") << name;
    if (!made) {
      EXPECT_NE(made.error.find("local runs before the decoder pymatching only, not before " + name), std::string::npos)
          << made.error;
    }
    EXPECT_TRUE(make_decoder(name + ":predecoder=passthrough", dem)) << name;
  }
  EXPECT_STREQ(kAutoPredecoder, "passthrough");
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// What each decoder promises, whatever its kind.
#include "cudaq/qec/decoding/decoder.h"
#include "unittests/qec/qec_test_support.h"

#include <gtest/gtest.h>
#include <random>

namespace cudaq::qec::realtime::test {
namespace {

class DecoderContract : public testing::TestWithParam<std::string> {};

TEST_P(DecoderContract, AnswerDoesNotDependOnTheOrderOfEvents) {
  const shot_set set = load_committed(shot_set_name(3, "0.005"));
  const auto with = make_or_throw(GetParam(), set.dem_text);
  std::mt19937 random(7);
  std::vector<std::uint64_t> buffer(set.num_detectors);
  for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
    const std::size_t count = unpack_events(set.detection_row(shot), set.num_detectors, buffer).count;
    std::vector<std::uint64_t> events(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(count));
    const answer ascending = decode(*with, events);
    std::shuffle(events.begin(), events.end(), random);
    EXPECT_EQ(decode(*with, events), ascending) << "shot " << shot;
  }
}

TEST_P(DecoderContract, RefusesAnEventListedTwice) {
  const auto with = make_or_throw(GetParam(), "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\n");
  const std::vector<std::vector<std::uint64_t>> shots{{0, 0}, {1, 0, 1}, {0, 1, 1}, {0, 1, 0, 1, 0, 1}};
  for (const auto &events : shots)
    EXPECT_EQ(decode(*with, events), (answer{decode_status::duplicate_detector_index, bits(1, {})}));
}

TEST_P(DecoderContract, WritesOnlyTheObservableBytes) {
  const auto with = make_or_throw(GetParam(), "error(0.1) D0 L8\n");
  ASSERT_EQ(with->observable_bytes(), 2U);
  const std::vector<std::uint64_t> events{0};
  std::vector<std::uint8_t> out(5, 0xEE);
  EXPECT_EQ(with->decode(events, out), decode_status::ok);
  EXPECT_EQ(out, (std::vector<std::uint8_t>{0, 1, 0xEE, 0xEE, 0xEE}));
  std::vector<std::uint8_t> small(1, 0xEE);
  EXPECT_EQ(with->decode(events, small), decode_status::buffer_too_small);
  EXPECT_EQ(small[0], 0xEE);
}

TEST_P(DecoderContract, ServesAModelWithoutObservablesOrDetectors) {
  const auto blind = make_or_throw(GetParam(), "error(0.1) D0\n");
  EXPECT_EQ(decode(*blind, {0}), (answer{decode_status::ok, {}}));
  const auto empty = make_or_throw(GetParam(), "# nothing\n");
  EXPECT_EQ(empty->num_detectors(), 0U);
  EXPECT_EQ(decode(*empty, {}), (answer{decode_status::ok, {}}));
  EXPECT_EQ(decode(*empty, {0}).status, decode_status::bad_detector_index);
}

TEST_P(DecoderContract, TakesErrorsThatAreLikelierThanNot) {
  const auto with = make_or_throw(GetParam(), "error(0.9) D0 D1 L0\nerror(0.2) D0\nerror(0.4) D1\n");
  // Without events, all three errors (0.9 * 0.2 * 0.4) are likelier than no error (0.1 * 0.8 * 0.6).
  EXPECT_EQ(decode(*with, {}), (answer{decode_status::ok, bits(1, {0})}));
  EXPECT_EQ(decode(*with, {0, 1}), (answer{decode_status::ok, bits(1, {0})}));
}

TEST_P(DecoderContract, RefusesABadModelWithItsLine) {
  std::vector<std::string> models{"error(0.1) D0\nerrors(0.1) D0\n", "\nerror(2) D0\n", "\nerror(0.1) D0 ^\n"};
  if (GetParam() != "bp-osd" && GetParam() != "relay-bp") // it takes errors that are certain
    models.push_back("\nerror(1) D0\n");
  for (const std::string &dem : models) {
    const decoder_result made = make_decoder(GetParam(), dem);
    EXPECT_FALSE(made);
    EXPECT_NE(made.error.find("line 2"), std::string::npos) << made.error;
    EXPECT_NE(made.error.find(GetParam()), std::string::npos) << made.error;
  }
}

TEST_P(DecoderContract, KnowsItsName) { EXPECT_EQ(make_or_throw(GetParam(), "error(0.1) D0")->name(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Kinds, DecoderContract, testing::ValuesIn(all_decoder_kinds()), kind_name);

TEST(DecoderSelector, AutoTakesPyMatchingWhereItIsBuiltIn) {
  EXPECT_EQ(std::string(make_or_throw("auto", "error(0.1) D0")->name()),
            pymatching_available() ? "pymatching" : "lookup");
}

TEST(DecoderSelector, RefusesAnUnknownNameAndListsTheKnown) {
  const decoder_result made = make_decoder("magic", "error(0.1) D0");
  EXPECT_FALSE(made);
  EXPECT_NE(made.error.find("\"magic\""), std::string::npos);
  EXPECT_NE(made.error.find("lookup, bp-osd, relay-bp, auto, sliding-window"), std::string::npos);
}

TEST(DecoderSelector, PyMatchingRefusesUndecomposedErrors) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const decoder_result made = make_decoder("pymatching", "error(0.1) D0 D1 D2 L0\n");
  EXPECT_FALSE(made);
  EXPECT_NE(made.error.find("decompose_errors"), std::string::npos) << made.error;
}

TEST(DecodeStatus, HasATextForEveryValueAndForUnknownOnes) {
  for (std::int32_t k = 0; k <= 6; ++k)
    EXPECT_STRNE(decode_status_text(static_cast<decode_status>(k)), "");
  EXPECT_STREQ(decode_status_text(static_cast<decode_status>(99)), "unknown decode status");
}

// Field note 17: a bad shot does not affect other shots.

// A cycle without a boundary (D0 to D2), and a component with a boundary (D3, D4).
constexpr const char *kRing = R"(
error(0.1) D0 D1 L0
error(0.1) D1 D2
error(0.1) D2 D0
error(0.1) D3 L1
error(0.1) D3 D4
detector D5
)";

class DecoderRecovery : public testing::TestWithParam<std::string> {
protected:
  void expect_good_shots() {
    EXPECT_EQ(decode(*with_, {0, 1}), (answer{decode_status::ok, bits(2, {0})}));
    EXPECT_EQ(decode(*with_, {1, 2, 3}), (answer{decode_status::ok, bits(2, {1})}));
    EXPECT_EQ(decode(*with_, {}), (answer{decode_status::ok, bits(2, {})}));
  }
  void expect_bad_shot(const std::vector<std::uint64_t> &events, decode_status status) {
    EXPECT_EQ(decode(*with_, events), (answer{status, bits(2, {})}));
  }
  std::unique_ptr<decoder> with_ = make_or_throw(GetParam(), kRing);
};

// Known failure 17.
TEST_P(DecoderRecovery, DecodesAGoodSyndromeAfterOddParityWithoutBoundary) {
  for (int lap = 0; lap < 3; ++lap) {
    expect_bad_shot({0}, decode_status::no_solution);
    expect_good_shots();
    expect_bad_shot({0, 1, 2, 3}, decode_status::no_solution);
    expect_good_shots();
  }
}

TEST_P(DecoderRecovery, DecodesAGoodSyndromeAfterAnIndexOutOfRange) {
  for (const std::uint64_t bad : {std::uint64_t{6}, std::uint64_t{7}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    expect_bad_shot({0, bad}, decode_status::bad_detector_index);
    expect_bad_shot({bad, 0, 1}, decode_status::bad_detector_index);
    expect_good_shots();
  }
}

TEST_P(DecoderRecovery, DecodesAGoodSyndromeAfterThreeErrors) {
  expect_bad_shot({2}, decode_status::no_solution);
  expect_bad_shot({1, 99}, decode_status::bad_detector_index);
  expect_bad_shot({3, 0, 3}, decode_status::duplicate_detector_index);
  expect_good_shots();
}

TEST_P(DecoderRecovery, EventAtADetectorWithoutErrorsHasNoSolution) {
  expect_bad_shot({5}, decode_status::no_solution);
  expect_good_shots();
}

TEST_P(DecoderRecovery, EmptyAnswerAreaIsAnErrorNotACrash) {
  const std::vector<std::uint64_t> events{0, 1};
  EXPECT_EQ(with_->decode(events, {}), decode_status::buffer_too_small);
  expect_good_shots();
}

TEST_P(DecoderRecovery, ManyFailuresAmongRealShotsChangeNoAnswer) {
  const shot_set set = load_committed(shot_set_name(3, "0.005"));
  const auto disturbed = make_or_throw(GetParam(), set.dem_text);
  const auto quiet = make_or_throw(GetParam(), set.dem_text);
  std::vector<std::uint64_t> events(set.num_detectors);
  for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
    const std::size_t count = unpack_events(set.detection_row(shot), set.num_detectors, events).count;
    const std::vector<std::uint64_t> good(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(count));
    EXPECT_EQ(decode(*disturbed, {shot % 7, 24}).status, decode_status::bad_detector_index);
    EXPECT_EQ(decode(*disturbed, {shot % 24, shot % 24}).status, decode_status::duplicate_detector_index);
    EXPECT_EQ(decode(*disturbed, good), decode(*quiet, good)) << "shot " << shot;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DecoderRecovery, testing::ValuesIn(all_decoder_kinds()), kind_name);

// Field note 33: observables at the edges of the mask widths, and parallel edges.

constexpr std::uint64_t kLinks = 5; // per chain: 5 detectors and 5 observables, small enough for a table

/// Chains of kLinks errors; one end of each chain is at the boundary. Only error k flips observable k. Every syndrome
/// of a chain has one solution.
struct chains {
  std::string dem;
  std::vector<std::vector<std::uint64_t>> events_of; ///< per error
};

chains make_chains(std::uint64_t num_observables) {
  chains made;
  for (std::uint64_t begin = 0; begin < num_observables; begin += kLinks) {
    const std::uint64_t links = std::min(kLinks, num_observables - begin);
    for (std::uint64_t k = 0; k < links; ++k) {
      std::vector<std::uint64_t> events{begin + k};
      if (k > 0)
        events.push_back(begin + k - 1);
      made.dem += "error(0.01)";
      for (const std::uint64_t d : events)
        made.dem += " D" + std::to_string(d);
      made.dem += " L" + std::to_string(begin + k) + "\n";
      made.events_of.push_back(events);
    }
  }
  return made;
}

class DecoderObservables : public testing::TestWithParam<std::string> {};

// Known failure 33.
TEST_P(DecoderObservables, EachOfManyObservablesComesBackInItsOwnBit) {
  for (const std::uint64_t num_observables : {1U, 31U, 32U, 33U, 64U, 65U}) {
    const chains made = make_chains(num_observables);
    const auto with = make_or_throw(GetParam(), made.dem);
    ASSERT_EQ(with->num_observables(), num_observables);
    for (std::uint64_t k = 0; k < num_observables; ++k)
      EXPECT_EQ(decode(*with, made.events_of[k]), (answer{decode_status::ok, bits(num_observables, {k})}))
          << k << " of " << num_observables;
  }
}

TEST_P(DecoderObservables, SeveralObservablesAtOnceAllComeBack) {
  for (const std::uint64_t num_observables : {31U, 32U, 33U, 64U, 65U}) {
    const chains made = make_chains(num_observables);
    const auto with = make_or_throw(GetParam(), made.dem);
    std::vector<std::uint64_t> events;
    std::vector<std::uint64_t> flipped;
    for (std::uint64_t k = 0; k < num_observables; k += kLinks) { // one error of every chain
      const std::uint64_t error = std::min(k + k / kLinks % kLinks, num_observables - 1);
      events.insert(events.end(), made.events_of[error].begin(), made.events_of[error].end());
      flipped.push_back(error);
    }
    EXPECT_EQ(decode(*with, events), (answer{decode_status::ok, bits(num_observables, flipped)}));
    EXPECT_EQ(decode(*with, {}), (answer{decode_status::ok, bits(num_observables, {})}));
  }
}

TEST_P(DecoderObservables, ParallelEdgesMergeAsIndependentErrors) {
  // D0 and D1 fire. Either one edge of p = 0.1 explains it, or two errors at the boundary of p = 0.2 each, one with L0.
  // Log-odds: 2.2 for the edge, 2.8 for the two errors, so the decoder chooses the edge.
  const std::string boundary = "error(0.2) D0 L0\nerror(0.2) D1\n";
  EXPECT_EQ(decode(*make_or_throw(GetParam(), boundary + "error(0.1) D0 D1\n"), {0, 1}).observables, bits(1, {}));
  // At p = 0.04 (log-odds 3.2) it chooses the two errors. Two parallel edges merge to 0.0768 (2.5) and are chosen.
  EXPECT_EQ(decode(*make_or_throw(GetParam(), boundary + "error(0.04) D0 D1\n"), {0, 1}).observables, bits(1, {0}));
  EXPECT_EQ(decode(*make_or_throw(GetParam(), boundary + "error(0.04) D0 D1\nerror(0.04) D1 D0\n"), {0, 1}).observables,
            bits(1, {}));
}

TEST_P(DecoderObservables, ParallelBoundaryEdgesKeepTheirObservable) {
  const std::string dem = "error(0.01) D0 L1\nerror(0.01) D0 L1\nerror(0.01) D0 D1\nerror(0.01) D1 L0\n";
  const auto with = make_or_throw(GetParam(), dem);
  EXPECT_EQ(decode(*with, {0}).observables, bits(2, {1}));
  EXPECT_EQ(decode(*with, {1}).observables, bits(2, {0}));
}

TEST_P(DecoderObservables, ParallelEdgesTakeTheLikeliestObservables) {
  // Only codes of distance 2 or less have such errors. Both orders, at the boundary and between two detectors.
  for (const char *dem : {"error(0.01) D0 L0\nerror(0.1) D0 L1\n", "error(0.1) D0 L1\nerror(0.01) D0 L0\n"})
    EXPECT_EQ(decode(*make_or_throw(GetParam(), dem), {0}).observables, bits(2, {1})) << dem;
  for (const char *dem : {"error(0.02) D0 D1 L0\nerror(0.01) D0 D1\nerror(0.02) D0 D1 L0",
                          "error(0.02) D1 D0\nerror(0.03) D0 D1 L0\nerror(0.001) D0 D1"})
    EXPECT_EQ(decode(*make_or_throw(GetParam(), dem), {0, 1}).observables, bits(1, {0})) << dem;
}

INSTANTIATE_TEST_SUITE_P(Kinds, DecoderObservables, testing::ValuesIn(decoder_kinds()), kind_name);

// How to use a decoder; docs/decoding.md quotes this.

TEST(Decoder, IsUsedAsTheManualShows) {
  const char *dem_text = "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\n";
  const std::vector<std::uint8_t> events{0x01};
  const auto report = [](const std::string &error) { ADD_FAILURE() << error; };

  auto made = make_decoder("auto", dem_text); // or "pymatching", "lookup"
  if (!made)
    return report(made.error); // text: what is wrong, with the line of the model
  decoder &with = *made.instance;

  std::vector<std::uint8_t> observables(with.observable_bytes()); // once, before the loop
  decode_status status = with.decode_bits(events, observables);   // one bit per detector

  EXPECT_EQ(status, decode_status::ok);
  EXPECT_EQ(observables[0], 1);
}

} // namespace
} // namespace cudaq::qec::realtime::test

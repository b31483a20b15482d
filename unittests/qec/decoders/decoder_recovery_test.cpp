// SPDX-License-Identifier: Apache-2.0
// Field note 17: a bad shot does not affect other shots.
#include "unittests/qec/qec_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

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

TEST(DecoderRecovery, DecodesAGoodSyndromeAfterOddParityAbove64Observables) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto with = make_or_throw("pymatching", "error(0.1) D0 D1 L69\nerror(0.1) D1 D2\nerror(0.1) D2 D0\n");
  for (int lap = 0; lap < 3; ++lap) {
    EXPECT_EQ(decode(*with, {0}), (answer{decode_status::no_solution, bits(70, {})}));
    EXPECT_EQ(decode(*with, {0, 1}), (answer{decode_status::ok, bits(70, {69})}));
    EXPECT_EQ(decode(*with, {1, 2}), (answer{decode_status::ok, bits(70, {})}));
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

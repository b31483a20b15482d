// SPDX-License-Identifier: Apache-2.0
// The errors of a correction, of decoders whose errors flip any number of detectors.
#include "unittests/qec/propagation/bp_osd_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

class CorrectionErrors : public testing::TestWithParam<std::string> {
protected:
  /// The events and observables of these errors, added mod 2, and their weight.
  struct effect {
    std::vector<std::uint64_t> events;
    std::vector<std::uint8_t> observables;
    double weight = 0;
  };
  static effect effect_of(const detector_error_model &model, std::span<const std::uint64_t> errors) {
    std::vector<int> detectors(model.num_detectors);
    effect sum{{}, std::vector<std::uint8_t>((model.num_observables + 7) / 8)};
    for (const std::uint64_t error : errors) {
      double p = 0;
      for (const dem_component &part : model.components)
        if (part.mechanism == error) {
          p = part.probability;
          for (const std::uint64_t d : model.detectors_of(part))
            detectors[d] ^= 1;
          flip_bits(model.observables_of(part), sum.observables);
        }
      EXPECT_GT(p, 0) << "error " << error;
      sum.weight += p < 1 ? std::log((1 - p) / p) : 0;
    }
    for (std::uint64_t d = 0; d < detectors.size(); ++d)
      if (detectors[d] != 0)
        sum.events.push_back(d);
    return sum;
  }

  /// Decodes and compares; returns the errors.
  std::vector<std::uint64_t> check(decoder &with, const detector_error_model &model,
                                   const std::vector<std::uint64_t> &events, bool has_merged = false) {
    std::vector<std::uint64_t> room(with.num_errors());
    std::vector<std::uint8_t> out(with.observable_bytes(), 0xEE);
    decode_details details{.errors = room};
    EXPECT_EQ(with.decode(events, out, details), decode_status::ok);
    const auto errors = std::span(room).first(details.num_errors);
    EXPECT_TRUE(std::ranges::is_sorted(errors, std::less_equal{}) && errors.size() <= room.size());
    const effect sum = effect_of(model, errors);
    EXPECT_EQ(sum.events, events);
    EXPECT_EQ(sum.observables, out);
    if (!has_merged) {
      EXPECT_NEAR(details.weight, sum.weight, 1e-6);
    }
    return {errors.begin(), errors.end()};
  }
};

TEST_P(CorrectionErrors, CauseTheEventsAndFlipTheObservables) {
  for (const char *name : {"bicycle_72_r6_p0.003", "color_d5_p0.003", "surface_d3_p0.01"}) {
    SCOPED_TRACE(name);
    const oracle_set set(name);
    const auto model = parse_dem(set.dem_text);
    const auto with = make_or_throw(GetParam(), set.dem_text);
    EXPECT_EQ(with->num_errors(), model->num_errors);
    for (const auto &events : set.shots)
      static_cast<void>(check(*with, *model, events, true));
  }
}

TEST_P(CorrectionErrors, CountUnrolledInstructionsAlsoThoseWithoutAnEffect) {
  const char *text = "error(0) D7\nrepeat 3 {\nerror(0.1)\nerror(0.1) D0 D1 ^ D2 L0\nshift_detectors 3\n}\n";
  const auto with = make_or_throw(GetParam(), text);
  EXPECT_EQ(with->num_errors(), 7U);
  EXPECT_EQ(check(*with, *parse_dem(text), {3, 4, 5}), (std::vector<std::uint64_t>{4}));
}

TEST_P(CorrectionErrors, OfEqualOnesTheLikeliestIsGiven) {
  const char *text = "error(0.1) D0 L0\nerror(0.2) D0 L0\nerror(0.15) D0 L0\n";
  EXPECT_EQ(check(*make_or_throw(GetParam(), text), *parse_dem(text), {0}, true), (std::vector<std::uint64_t>{1}));
}

TEST_P(CorrectionErrors, ThatAreLikelierThanNotAreListedUnlessTheirColumnMeansTheirAbsence) {
  const char *text = "error(0.9) D0 L0\nerror(0.1) D1 L1\nerror(1) D2\nerror(0.8) L2\n";
  const auto with = make_or_throw(GetParam(), text);
  const auto model = parse_dem(text);
  EXPECT_EQ(check(*with, *model, {0, 2}), (std::vector<std::uint64_t>{0, 2, 3}));
  EXPECT_EQ(check(*with, *model, {2}), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(check(*with, *model, {0, 1, 2}), (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

TEST_P(CorrectionErrors, NeedRoomAndADecoderThatGivesThem) {
  const auto with = make_or_throw(GetParam(), "error(0.1) D0 L0\nerror(0.1) D1\n");
  std::uint64_t room = 0;
  std::uint8_t out = 0xEE;
  decode_details details{.errors = {&room, 1}};
  EXPECT_EQ(with->decode(std::vector<std::uint64_t>{0, 1}, {&out, 1}, details), decode_status::buffer_too_small);
  EXPECT_EQ(details.num_errors, 0U);
  EXPECT_EQ(out, 0);
  const auto table = make_or_throw("lookup", "error(0.1) D0 L0\n");
  EXPECT_FALSE(table->gives_errors());
  EXPECT_EQ(table->decode(std::vector<std::uint64_t>{0}, {&out, 1}, details), decode_status::not_supported);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CorrectionErrors, testing::Values("relay-bp", "bp-osd"), kind_name);

} // namespace
} // namespace cudaq::qec::realtime::test

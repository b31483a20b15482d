// SPDX-License-Identifier: Apache-2.0
// Logical errors with the default rule and by the matcher alone, on the same shots. The random numbers are fixed.
#include "lib/qec/decoding/predecoding/model_sampler.h"
#include "unittests/qec/predecoding/gate.h"
#include "unittests/qec/qec_test_support.h"
#include "unittests/support/sanitized.h"

namespace cudaq::qec::realtime::test {
namespace {

using cudaq::realtime::test::kSanitized;

constexpr std::uint32_t kErrors = 8;
constexpr std::uint64_t kShots = kSanitized ? 2000 : 100000;

struct paired_count {
  std::uint64_t with = 0, alone = 0, events = 0, left = 0;
};

/// Shots with exactly `errors` errors.
paired_count count_failures(const std::string &dem, std::uint32_t errors, std::uint64_t shots) {
  const model_sampler sampler(*parse_dem(dem));
  offline_decoder alone = make_offline(dem);
  offline_decoder with(std::move(*make_predecoder("local", dem)), make_or_throw("pymatching", dem));
  std::mt19937_64 random(40);
  paired_count count;
  std::vector<std::uint8_t> shot(sampler.shot_bytes()), truth(sampler.observable_bytes());
  for (std::uint64_t i = 0; i < shots; ++i) {
    std::ranges::fill(shot, std::uint8_t{0});
    std::ranges::fill(truth, std::uint8_t{0});
    sampler.sample_exactly(errors, random, shot, truth);
    EXPECT_EQ(alone.decode(shot), decode_status::ok);
    EXPECT_EQ(with.decode(shot), decode_status::ok);
    count.alone += !std::ranges::equal(alone.observables(), truth);
    count.with += !std::ranges::equal(with.observables(), truth);
    count.events += alone.decoded_events();
    count.left += with.decoded_events();
  }
  return count;
}

// At p = 0.001 a d7 shot fails once in 100,000, most of those with 4 to 8 errors. Shots with exactly 8 errors show the
// same ratio in seconds.
// Known failure 40.
TEST(PairedRates, TheDefaultRuleFailsNotMoreOftenThanTheMatcherAlone) {
  const gate_model d7(7, "uniform", 0);
  const paired_count count = count_failures(d7.dem(), kErrors, kShots);
  if (!kSanitized) {
    EXPECT_GT(count.alone, 20u) << "too few failures to compare";
  }
  EXPECT_LE(100 * count.with, 105 * count.alone);
  EXPECT_LT(3 * count.left, 2 * count.events) << "it removes more than a third of the events";
}

// An edge of 1e-9 weighs as much as four typical errors. (d - 1) / 2 errors and a pair weigh about as much at d5, and
// more at d7. So the rule must leave events to the matcher that it could match without those edges.
// Known failure 41.
TEST(PairedRates, UnlikelyEdgesDoNotChangeAccuracy) {
  for (const int distance : {5, 7}) {
    const gate_model model(distance, "uniform", 0), more(distance, "uniform", 2000);
    const std::uint32_t errors = distance == 7 ? kErrors : 4;
    const paired_count before = count_failures(model.dem(), errors, kShots),
                       after = count_failures(more.dem(), errors, kShots);
    EXPECT_LE(100 * after.with, 105 * after.alone) << distance;
    EXPECT_LT(100 * after.left, (distance == 5 ? 125 : 170) * before.left) << distance;
    EXPECT_LT(after.left, after.events) << distance;
  }
}

TEST(PairedRates, NoiseOfOneKindIsDecodedAsTheMatcherAloneDecodesIt) {
  for (const char *noise : {"data", "measurement"}) {
    const gate_model d7(7, noise, 0);
    const paired_count count = count_failures(d7.dem(), kErrors, kShots);
    EXPECT_LE(100 * count.with, 105 * count.alone) << noise;
    EXPECT_LT(10 * count.left, 9 * count.events) << noise;
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Data that must not change a model: each is refused with its reason, or the learned model scores no worse on good
// shots than the model that was there.
#include "unittests/qec/learning/learning_test_support.h"

#include "lib/qec/decoding/splitmix.h"
#include "lib/qec/learning/model_score.h"

namespace cudaq::qec::realtime::test {
namespace {

constexpr std::size_t kShots = 40000;

class PoisonedData : public testing::Test {
protected:
  const detector_error_model model_ = surface_code();
  event_counts counts_{sets_of(model_)};

  template <class Poison>
  void add_shots(const Poison &poison, std::size_t shots = kShots, std::uint64_t seed = 21) {
    std::size_t k = 0;
    sample_shots(model_, shots, seed, [&](shot_bytes &shot) {
      poison(shot, k++);
      ASSERT_EQ(counts_.add(shot), decode_status::ok);
    });
  }
  std::string refusals() {
    counts_.flush();
    std::string all;
    for (const std::string &text : learn_or_throw(model_, counts_).refusals)
      all += text + "\n";
    return all;
  }
  /// Expects a text that begins with `text`.
  void expect_refusal(const std::string &text) {
    const std::string all = "\n" + refusals();
    EXPECT_NE(all.find("\n" + text), std::string::npos) << all;
  }
  /// Expects that what is learned does not score worse than the model on good shots, beyond three sigma.
  void expect_harmless() {
    EXPECT_EQ(refusals(), "");
    model_score score(counts_.sets(), model_, model_with(model_, learn_or_throw(model_, counts_)), 512);
    sample_shots(model_, kShots, 99, [&](const shot_bytes &shot) { ASSERT_EQ(score.add(shot), decode_status::ok); });
    EXPECT_GT(score.difference().per_shot, -0.02); // nats a shot; half or double rates cost more than 0.1
  }
};

void set_bit(shot_bytes &shot, std::size_t d, bool fires) {
  const auto bit = static_cast<std::uint8_t>(1U << d % 8);
  shot[d / 8] = static_cast<std::uint8_t>(fires ? shot[d / 8] | bit : shot[d / 8] & ~bit);
}
bool has_bit(const shot_bytes &shot, std::size_t d) { return (shot[d / 8] >> d % 8 & 1) != 0; }

/// A number that looks random, for the choices of a poison.
std::uint64_t mixed(std::size_t k, std::uint64_t salt) { return splitmix(k * 64 + salt + 1); }

TEST_F(PoisonedData, GoodShotsAreNotRefused) {
  add_shots([](shot_bytes &, std::size_t) {});
  expect_harmless();
}

TEST_F(PoisonedData, ADetectorThatAlwaysFiresIsRefused) {
  add_shots([](shot_bytes &shot, std::size_t) { set_bit(shot, 7, true); });
  expect_refusal("detector 7 fires in 1 of the shots, the model expects ");
}

TEST_F(PoisonedData, ARandomDetectorIsRefused) {
  add_shots([](shot_bytes &shot, std::size_t k) { set_bit(shot, 7, mixed(k, 0) % 2 != 0); });
  expect_refusal("detector 7 fires in 0.");
}

TEST(PoisonedDetector, OneThatFiresAsOftenAsItsModelSaysIsNotRefused) {
  const detector_error_model model = model_of("error(0.4) D0\nerror(0.2) D0\n"); // it fires in 0.44 of the shots
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U}) {
    const auto refusals = learn_or_throw(model, counts_of(model, 20000, seed)).refusals;
    EXPECT_TRUE(refusals.empty()) << refusals.front();
  }
}

TEST_F(PoisonedData, ADetectorThatNeverFiresIsRefused) {
  add_shots([](shot_bytes &shot, std::size_t) { set_bit(shot, 7, false); });
  expect_refusal("detector 7 fires in 0 of the shots, the model expects ");
}

TEST_F(PoisonedData, ADeadQubitMakesItsDetectorsRandomAndIsRefused) {
  add_shots([](shot_bytes &shot, std::size_t k) {
    for (const std::size_t d : {4U, 5U, 8U, 9U, 12U, 13U})
      set_bit(shot, d, mixed(k, d) % 2 != 0);
  });
  for (const char *detector : {"detector 4 fires", "detector 9 fires", "detector 13 fires"})
    expect_refusal(detector);
}

TEST_F(PoisonedData, ABurstIsRefused) {
  add_shots([](shot_bytes &shot, std::size_t k) {
    if (k >= 20000 && k < 20400) // 1 % of the shots
      for (std::size_t d = 0; d < 24; ++d)
        set_bit(shot, d, mixed(k, d) % 2 != 0);
  });
  expect_refusal("the number of events of a shot varies more than independent errors explain");
}

TEST_F(PoisonedData, ASlowChangeOfAllRatesByTenPercentIsNotRefused) {
  for (int part = 0; part < 8; ++part) {
    const double factor = 0.9 + 0.2 * part / 7;
    sample_shots(with_factors(model_, [&](auto &, auto &) { return factor; }), kShots / 8,
                 static_cast<std::uint64_t>(part) + 30,
                 [&](const shot_bytes &shot) { ASSERT_EQ(counts_.add(shot), decode_status::ok); });
  }
  expect_harmless();
}

TEST_F(PoisonedData, DetectorsInAnotherOrderAreRefused) {
  add_shots([](shot_bytes &shot, std::size_t) {
    const shot_bytes old = shot;
    for (std::size_t d = 0; d < 24; ++d)
      set_bit(shot, d, has_bit(old, (d * 7 + 5) % 24));
  });
  EXPECT_NE(refusals().find("has the place of another detector"), std::string::npos) << refusals();
}

TEST_F(PoisonedData, TwoSwappedDetectorsAreRefused) {
  add_shots([](shot_bytes &shot, std::size_t) {
    const bool a = has_bit(shot, 6), b = has_bit(shot, 17);
    set_bit(shot, 6, b);
    set_bit(shot, 17, a);
  });
  expect_refusal("detector 6: of ");
  expect_refusal("detector 17: of ");
}

TEST_F(PoisonedData, TooFewShotsAreRefused) {
  add_shots([](shot_bytes &, std::size_t) {}, 500);
  expect_refusal("too few shots: 500, needed: 1000");
}

TEST_F(PoisonedData, ARepeatedBlockIsRefused) {
  std::vector<shot_bytes> block;
  sample_shots(model_, 1000, 5, [&](const shot_bytes &shot) { block.push_back(shot); });
  add_shots([&](shot_bytes &shot, std::size_t k) { shot = block[k % block.size()]; });
  expect_refusal("at least ");
}

TEST_F(PoisonedData, ShotsWithoutAnyEventAreRefused) {
  add_shots([](shot_bytes &shot, std::size_t) { std::ranges::fill(shot, std::uint8_t{0}); });
  expect_refusal("detector 0 fires in 0 of the shots");
}

TEST_F(PoisonedData, ShotsOfAnotherNoiseAreRefusedIfItIsFarAway) {
  const detector_error_model quiet = with_factors(model_, [](auto &, auto &) { return 1.0 / 30; });
  sample_shots(quiet, kShots, 3, [&](const shot_bytes &shot) { ASSERT_EQ(counts_.add(shot), decode_status::ok); });
  EXPECT_NE(refusals().find("a change by more than a factor of 10"), std::string::npos) << refusals();
}

TEST_F(PoisonedData, ShotsOfInvertedBitsAreRefused) {
  add_shots([](shot_bytes &shot, std::size_t) {
    for (std::uint8_t &byte : shot)
      byte = static_cast<std::uint8_t>(~byte);
  });
  expect_refusal("detector 0 fires in 0.9");
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
#include "tools/shots/own_data.h"
#include "tools/shots/stream_sampler.h"
#include "unittests/qec/model_text.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

namespace cudaq::realtime::tools {
namespace {

/// Repetitions of two rounds of 2 detectors; errors reach into the head, over a repetition, and from the tail back.
std::string model_text(const char *p) {
  const std::string error = std::string("error(") + p + ") ";
  return "detector(0) D0\ndetector(0) D1\n" + error + "D0 D2 L0\n" + error + "D1\nshift_detectors(1) 2\nrepeat 50 {\n" +
         "detector(0) D0\ndetector(0) D1\ndetector(1) D2\ndetector(1) D3\n" + error + "D0 D4 L1\n" + error +
         "D1 D6 ^ D3 L0\n" + error + "D2 D3\nshift_detectors(2) 4\n}\n" +
         "detector(0) D0\ndetector(0) D1\ndetector(1) D2\n" + error + "D0 D2 L0\n" + error + "D1 D2 L1\n";
}

qec::repeating_model parsed(const std::string &text) {
  auto model = qec::repeating_model::of(text, *qec::round_rule::parse("time"));
  if (model.failed())
    throw std::runtime_error(model.text());
  return std::move(*model);
}

struct sampled_experiment {
  std::vector<std::uint8_t> events, observables;
  bool operator==(const sampled_experiment &) const = default;
};

sampled_experiment whole(stream_sampler &sampler, std::uint64_t seed, std::uint64_t k) {
  sampled_experiment all;
  sampler.begin(seed, k);
  for (std::uint64_t round = 0; round < sampler.rounds(); ++round) {
    const auto bits = sampler.next_round();
    all.events.insert(all.events.end(), bits.begin(), bits.end());
  }
  all.observables.assign(sampler.observables().begin(), sampler.observables().end());
  return all;
}

TEST(StreamSampler, FlipsWhatTheUnrolledModelFlipsIfEveryErrorHappens) {
  const qec::repeating_model model = parsed(model_text("1"));
  for (const std::uint64_t repetitions : {1U, 2U, 3U, 7U, 40U}) {
    const auto unrolled = model.unrolled(repetitions);
    ASSERT_TRUE(unrolled.ok());
    std::vector<std::uint8_t> events(unrolled->num_detectors), observables(1);
    for (const qec::dem_component &c : unrolled->components) {
      for (const std::uint64_t d : unrolled->detectors_of(c))
        events[d] ^= 1;
      for (const std::uint64_t o : unrolled->observables_of(c))
        observables[0] = static_cast<std::uint8_t>(observables[0] ^ 1U << o);
    }
    stream_sampler sampler(model, repetitions);
    EXPECT_EQ(sampler.rounds(), 1 + 2 * repetitions + 2);
    EXPECT_EQ(sampler.rounds_before_tail(), 1 + 2 * repetitions);
    const sampled_experiment got = whole(sampler, 1, 0);
    EXPECT_EQ(got.events, events) << repetitions;
    EXPECT_EQ(got.observables, observables) << repetitions;
  }
}

TEST(StreamSampler, GivesTheSameRoundsForTheSameSeedAndNumber) {
  const qec::repeating_model model = parsed(model_text("0.2"));
  stream_sampler first(model, 100), second(model, 100);
  EXPECT_EQ(whole(first, 5, 3), whole(second, 5, 3));
  EXPECT_NE(whole(first, 5, 3), whole(second, 5, 4));
  EXPECT_NE(whole(first, 5, 3), whole(second, 6, 3));
}

TEST(StreamSampler, HasTheProbabilitiesOfTheModelInEveryRepetition) {
  const qec::repeating_model model = parsed(model_text("0.1"));
  constexpr std::uint64_t kRepetitions = 40000;
  stream_sampler sampler(model, kRepetitions);
  const sampled_experiment got = whole(sampler, 11, 0);
  // Detector 0 of a repetition: its own error, and that of the repetition before it.
  std::uint64_t flipped = 0;
  for (std::uint64_t r = 1; r < kRepetitions; ++r)
    flipped += got.events[2 + 4 * r];
  const double p = 2 * 0.1 * 0.9, n = static_cast<double>(kRepetitions - 1);
  EXPECT_NEAR(static_cast<double>(flipped) / n, p, 5 * std::sqrt(p * (1 - p) / n));
}

/// A round has one detector, and fires if its measurement is misread: value k is of round k.
struct read_model {
  std::string text, table;
  qec::repeating_model model;

  /// With flags: that of round k is 2 if its detector fires, and 1 if it does so in half of the cases.
  explicit read_model(bool has_flags = false)
      : text(text_of()), table(table_of(text, has_flags)), model(parsed(text)) {}
  qec::stream_readout readout() const {
    auto table_of_text = qec::parse_readout_table(table, qec::decoder_model(text));
    return std::move(*qec::stream_readout::make((*table_of_text)->contents(), model));
  }

private:
  static std::string text_of() {
    const std::string round = "detector(0) D0\nerror(1e-9) D0 L0\n";
    return round + "shift_detectors(1) 1\nrepeat 5 {\n" + round + "shift_detectors(1) 1\n}\n" + round;
  }
  static std::string table_of(const std::string &text, bool has_flags) {
    std::string lines, listed;
    for (int k = 0; k < 7; ++k) {
      const std::string number = std::to_string(k);
      lines += "misread " + number + " 0 " + number + " 0\n";
      listed += "flag " + number + " 1 " + number + " 0.5\nflag " + number + " 2 " + number + " 1\n";
    }
    const std::string head = qec::test::head_of_text("cudaq-realtime-readout 1", text);
    return has_flags ? head + "flags 7\n" + listed : head + "measurements 7\ngaussian 0 12 3 2.5 0.25\n" + lines;
  }
};

TEST(StreamSampler, HasErrorsAsOftenAsTheDrawnValuesSay) {
  const read_model of;
  const qec::stream_readout readout = of.readout();
  constexpr std::uint64_t kRepetitions = 40000, kRounds = kRepetitions + 2;
  drawn_values values(readout, qec::soft_kind::f32, kRepetitions, 0);
  EXPECT_EQ(values.total(), kRounds);
  stream_sampler sampler(of.model, kRepetitions, &values);
  const sampled_experiment got = whole(sampler, 3, 1);
  std::vector<std::uint8_t> bytes;
  values.append(0, kRounds, bytes);
  double sure = 0, unsure = 0, mean = 0; // expected events
  std::uint64_t sure_events = 0, unsure_events = 0;
  for (std::uint64_t k = 0; k < kRounds; ++k) {
    float value = 0;
    std::memcpy(&value, bytes.data() + 4 * k, sizeof value);
    mean += static_cast<double>(value) / kRounds;
    const double p = readout.calibrations()[0].misread_of(static_cast<double>(value));
    (p > 0.2 ? unsure : sure) += p;
    (p > 0.2 ? unsure_events : sure_events) += got.events[k];
  }
  EXPECT_GT(unsure, 100);
  EXPECT_GT(sure, 100);
  EXPECT_NEAR(static_cast<double>(unsure_events), unsure, 5 * std::sqrt(unsure));
  EXPECT_NEAR(static_cast<double>(sure_events), sure, 5 * std::sqrt(sure));
  EXPECT_NEAR(mean, 0.75 * 12 + 0.25 * 3, 0.1);
}

TEST(StreamSampler, HasErrorsAsOftenAsTheDrawnFlagsSay) {
  const read_model of(true);
  const qec::stream_readout readout = of.readout();
  constexpr std::uint64_t kRepetitions = 40000, kRounds = kRepetitions + 2;
  drawn_values values(readout, qec::soft_kind::f32, kRepetitions, 0.1);
  stream_sampler sampler(of.model, kRepetitions, &values);
  const sampled_experiment got = whole(sampler, 3, 1);
  std::vector<std::uint8_t> flags, part;
  sampler.append_flags(0, kRounds, flags);
  sampler.append_flags(5, 8, part); // from a whole byte on
  double count[3] = {}, events[3] = {};
  for (std::uint64_t k = 0; k < kRounds; ++k) {
    const unsigned flag = flags[k / 4] >> 2 * (k % 4) & 3;
    ASSERT_LT(flag, 3U);
    if (k >= 5 && k < 8) {
      EXPECT_EQ(part[0] >> 2 * (k - 5) & 3, flag) << k;
    }
    ++count[flag];
    events[flag] += got.events[k];
  }
  EXPECT_EQ(part.size(), 1U);
  for (const unsigned flag : {1U, 2U})
    EXPECT_NEAR(count[flag], 0.1 * kRounds, 5 * std::sqrt(0.09 * kRounds)) << flag;
  EXPECT_EQ(events[2], count[2]);
  EXPECT_NEAR(events[1], count[1] / 2, 5 * std::sqrt(count[1] / 4));
  EXPECT_EQ(events[0], 0);
}

TEST(StreamSampler, SendsTheSameDrawnValuesInEachKindAndInParts) {
  const read_model of;
  const qec::stream_readout readout = of.readout();
  drawn_values floats(readout, qec::soft_kind::f32, 5, 0), halves(readout, qec::soft_kind::u4, 5, 0);
  std::vector<std::uint8_t> as_floats, as_halves, first, last;
  floats.begin(8, 2);
  halves.begin(8, 2);
  floats.append(0, 7, as_floats);
  halves.append(0, 7, as_halves);
  ASSERT_EQ(as_floats.size(), 28U);
  ASSERT_EQ(as_halves.size(), 4U);
  for (std::size_t k = 0; k < 7; ++k) {
    float value = 0;
    std::memcpy(&value, as_floats.data() + 4 * k, sizeof value);
    const auto level = static_cast<unsigned>(std::lround(std::clamp(value, 0.0F, 15.0F)));
    EXPECT_EQ(unsigned{as_halves[k / 2]} >> 4 * (k % 2) & 15U, level) << k;
  }
  floats.append(0, 3, first);
  floats.append(3, 7, last);
  first.insert(first.end(), last.begin(), last.end());
  EXPECT_EQ(first, as_floats);
  floats.begin(8, 3);
  last.clear();
  floats.append(0, 7, last);
  EXPECT_NE(last, as_floats) << "another experiment";
}

TEST(ErrorRate, OfARepeatedSetHasTheIntervalOfItsDifferentShots) {
  const auto once = error_rate{6, 1000}.interval_95(), again = error_rate{1200, 200000, 1000}.interval_95(),
             part = error_rate{6, 1000, 2000}.interval_95();
  EXPECT_DOUBLE_EQ(again.low, once.low);
  EXPECT_DOUBLE_EQ(again.high, once.high);
  EXPECT_DOUBLE_EQ(part.low, once.low) << "fewer than the set has";
  EXPECT_DOUBLE_EQ((error_rate{0, 5000, 1000}.interval_95().high), (error_rate{0, 1000}.interval_95().high));
}

} // namespace
} // namespace cudaq::realtime::tools

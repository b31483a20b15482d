// SPDX-License-Identifier: Apache-2.0
// How often the detectors of a served decoder fire, beside its model.
#include "lib/qec/decoding/dem.h"
#include "lib/qec/server/model_detectors.h"
#include "lib/qec/server/server_config.h"
#include "unittests/qec/server/server_stream_support.h"
#include "unittests/qec/server/server_threads_support.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

/// Detectors of shots that all have this rate in the model.
model_detectors all_alike(std::uint64_t number, double rate) {
  return {.all = std::vector<model_detector>(number, {.rate = rate}), .body = number};
}

/// Shots whose detectors fire independently.
struct independent_shots {
  independent_shots(std::size_t detectors, double of_each) : rate(detectors, of_each), shot((detectors + 7) / 8) {}
  std::vector<double> rate;
  std::mt19937_64 random{7};
  bytes shot;

  const bytes &next() {
    std::ranges::fill(shot, std::uint8_t{0});
    for (std::size_t d = 0; d < rate.size(); ++d)
      if (static_cast<double>(random() >> 11) * 0x1p-53 < rate[d])
        shot[d / 8] = static_cast<std::uint8_t>(shot[d / 8] | 1U << d % 8);
    return shot;
  }
};

TEST(DetectorRates, SigmasOfARightModelAreThoseOfANormalDistribution) {
  constexpr std::uint64_t kDetectors = 2000;
  detector_rates rates(all_alike(kDetectors, 0.03), 1000);
  independent_shots source(kDetectors, 0.03);
  for (int k = 0; k < 3700; ++k) // also between two halvings
    rates.count_shot(source.next());
  const detector_reading now = rates.read();
  double squares = 0;
  for (const detector_state &d : now.detectors)
    squares += d.sigma * d.sigma;
  EXPECT_NEAR(std::sqrt(squares / kDetectors), 1, 0.06) << "the exactness of decayed counts is known";
  EXPECT_EQ(certain_differences(now), 0u);
  EXPECT_GT(now.shots, 1300);
  EXPECT_LT(now.shots, 1500);
}

TEST(DetectorRates, ShowADyingDetectorWithinAWindow) {
  constexpr std::uint64_t kDetectors = 130; // more than two words of bits
  detector_rates rates(all_alike(kDetectors, 0.02), 4096);
  independent_shots source(kDetectors, 0.02);
  for (int k = 0; k < 20000; ++k)
    rates.count_shot(source.next());
  EXPECT_EQ(certain_differences(rates.read()), 0u);
  source.rate[129] = 0.3;
  source.rate[64] = 0;
  for (int k = 0; k < 4096; ++k)
    rates.count_shot(source.next());
  const detector_reading now = rates.read();
  EXPECT_EQ(certain_differences(now), 2u);
  const auto worst = worst_detectors(now, 2);
  ASSERT_EQ(worst.size(), 2u);
  EXPECT_EQ(worst[0], 129u);
  EXPECT_GT(now.detectors[129].sigma, 20);
  EXPECT_EQ(worst[1], 64u);
  EXPECT_LT(now.detectors[64].sigma, -5) << "one that fires too rarely is below 0";
  source.rate[129] = source.rate[64] = 0.02;
  for (int k = 0; k < 20 * 4096; ++k)
    rates.count_shot(source.next());
  EXPECT_EQ(certain_differences(rates.read()), 0u) << "what is over is forgotten";
}

TEST(DetectorRates, OfTheModelThatAreZeroOrUnknownAreNoAlarmByThemselves) {
  EXPECT_TRUE(std::isnan(sigma_between(0.5, kUnknown, 100)));
  EXPECT_TRUE(std::isnan(sigma_between(0.5, 0.5, 0))) << "without shots";
  EXPECT_NEAR(sigma_between(0.0110, 0.01, 1e6), 9.9, 0.2) << "as the normal distribution where counts are large";
  EXPECT_LT(sigma_between(2e-3, 1e-4, 1000), 3.1) << "two events where 0.1 are expected: the chance is one in 200";
  EXPECT_NEAR(sigma_between(0, 0, 1000), 0, 1e-3);
  EXPECT_LT(sigma_between(0, 1, 1000), -100);
  EXPECT_TRUE(std::isfinite(sigma_between(1, 0, 1e9)));
  detector_rates rates({.all = {{.rate = kUnknown}, {.rate = 0}}, .body = 2}, 100);
  EXPECT_TRUE(std::isnan(rates.read().detectors[1].rate)) << "no shot was counted";
  for (int k = 0; k < 50; ++k)
    rates.count_shot(packed("10"));
  const detector_reading now = rates.read();
  EXPECT_EQ(now.detectors[0].rate, 1);
  EXPECT_TRUE(std::isnan(now.detectors[0].sigma));
  EXPECT_EQ(worst_detectors(now, 5), std::vector<std::size_t>{1}) << "one without a rate of the model is not ranked";
}

TEST(DetectorRates, OfAStreamCountHeadRepetitionAndTailByThemselves) {
  detector_rates rates({.all = std::vector<model_detector>(7, {.rate = 0.5}), .head = 2, .body = 3, .tail = 2}, 1000);
  // Head 10, repetitions 011 100 111, in pieces that respect no border.
  const std::string bits = "10011100111";
  std::uint64_t first = 0;
  for (const std::size_t piece : {1u, 3u, 0u, 6u, 1u}) {
    rates.count_rounds(packed(bits.substr(static_cast<std::size_t>(first), piece)), first, piece);
    first += piece;
  }
  rates.count_tail(packed("01"));
  const std::vector<double> wanted{1, 0, 2. / 3, 2. / 3, 2. / 3, 0, 1};
  const detector_reading now = rates.read();
  for (std::size_t d = 0; d < wanted.size(); ++d)
    EXPECT_NEAR(now.detectors[d].rate, wanted[d], 1e-9) << d;
  EXPECT_NEAR(now.shots, 3, 1e-9) << "repetitions";
}

TEST(DetectorRates, AreReadWhileAThreadCounts) {
  constexpr std::uint64_t kDetectors = 200;
  detector_rates rates(all_alike(kDetectors, 0.5), 64); // halved every 32 shots
  const bytes all(kDetectors / 8, 0xFF);
  rates.count_shot(all);
  rt::shared_word<std::uint32_t> done;
  std::thread counts([&] {
    for (int k = 0; k < 50'000; ++k)
      rates.count_shot(all);
    done.store(1);
  });
  double least = 1;
  do
    for (const detector_state &d : rates.read().detectors)
      least = std::min(least, d.rate);
  while (done.load() == 0);
  counts.join();
  EXPECT_GT(least, 0.9) << "each shot has all events: a reader never mixes counts of different halvings";
}

TEST(DetectorRates, OfAModelAreThoseOfItsErrors) {
  const auto found = detectors_of("detector(1, 2, 5) D0\ndetector(4, 6) D1\nerror(0.1) D0 D1 ^ D1\nerror(0.2) D0\n"
                                  "error(0.25) D2 ^ D2 L0\nshift_detectors(0, 0, 3) 2\ndetector(7, 8, 1, 9) D1\n",
                                  "");
  ASSERT_TRUE(found.ok()) << found.text();
  ASSERT_EQ(found->all.size(), 4u);
  EXPECT_EQ(found->body, 4u);
  EXPECT_NEAR(found->all[0].rate, 0.1 * 0.8 + 0.9 * 0.2, 1e-12);
  EXPECT_EQ(found->all[1].rate, 0) << "the components of an error happen together: D1 is flipped twice";
  EXPECT_EQ(found->all[2].rate, 0);
  EXPECT_FALSE(found->all[2].has_place());
  EXPECT_EQ(found->all[0].x, 1);
  EXPECT_EQ(found->all[0].time, 5);
  EXPECT_EQ(found->all[1].y, 0) << "two coordinates are a place on a line, and the time";
  EXPECT_EQ(found->all[1].time, 6);
  EXPECT_EQ(found->all[3].time, 4) << "shifted; a fourth coordinate is not the time";
  EXPECT_TRUE(detectors_of("error(2) D0", "").failed());
}

TEST(DetectorRates, OfAStreamsModelAreThoseFarFromItsEnds) {
  const std::string body = "detector(0) D0\nerror(0.1) D0 D1 L0\nshift_detectors(1) 1\n";
  auto source = read_stream("error(0.25) D0\n" + body + "repeat 50 {\n" + body + "}\ndetector(0) D0\nerror(0.2) D0\n",
                            {.decoder = "lookup"});
  ASSERT_TRUE(source.ok()) << source.text();
  const auto found = detectors_of(*source);
  ASSERT_TRUE(found.ok()) << found.text();
  ASSERT_EQ(found->all.size(), 3u);
  EXPECT_NEAR(found->all[0].rate, 0.25 * 0.9 + 0.75 * 0.1, 1e-12);
  EXPECT_NEAR(found->all[1].rate, 2 * 0.1 * 0.9, 1e-12);
  EXPECT_NEAR(found->all[2].rate, 0.1 * 0.8 + 0.9 * 0.2, 1e-12);
}

/// The server of a configuration of one decoder of id 1.
decoding_server server_of(const std::string &fields) {
  auto config = read_server_config("decoders: [{id: 1, queue_length: 0, " + fields + "}]");
  if (config.failed())
    throw std::runtime_error(config.text());
  auto setups = build_decoders(*config, ".");
  if (setups.failed())
    throw std::runtime_error(setups.text());
  return decoding_server(std::move(*setups));
}

TEST(DetectorRates, OfAServerCountEachShotThatWasDecodedOnce) {
  if (read_server_config("decoders: [{id: 1, type: lookup}]").failed())
    GTEST_SKIP() << "this build has no YAML parser";
  decoding_server server = server_of(R"(type: lookup, dem: "error(0.1) D0 L0\nerror(0.1) D1 L1\nerror(0.1) D2")");
  EXPECT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 0, "1"), 5, 99).status, 0);
  EXPECT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 1, "10"), 6, 100).status, 0);
  EXPECT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 1, "10"), 6, 100).status, 0) << "sent again";
  EXPECT_EQ(call(server, kOneShotFunctionId, packed("100")).status, 0);
  EXPECT_NE(call(server, kOneShotFunctionId, packed("10001")).status, 0) << "a bit after the last detector";
  EXPECT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 2, "1")).status, 0) << "the begin of a shot";
  const auto identity = server.decoders()[0]->identity();
  ASSERT_NE(identity->rates, nullptr) << "on unless it is switched off";
  const detector_reading now = identity->rates->read();
  EXPECT_NEAR(now.shots, 2, 1e-9);
  ASSERT_EQ(now.detectors.size(), 3u);
  EXPECT_EQ(now.detectors[0].rate, 1);
  EXPECT_EQ(now.detectors[1].rate, 0.5);
  EXPECT_EQ(now.detectors[2].rate, 0);
  EXPECT_EQ(server_of(R"(type: lookup, dem: "error(0.1) D0 L0", detector_rates: 0)").decoders()[0]->identity()->rates,
            nullptr);
}

TEST(DetectorRates, OfMatricesWithoutRatesOfErrorsHaveNoSigma) {
  if (read_server_config("decoders: [{id: 1, type: lookup}]").failed())
    GTEST_SKIP() << "this build has no YAML parser";
  const std::string matrices =
      "type: lookup, block_size: 2, syndrome_size: 2, H_sparse: [0, -1, 1, -1], O_sparse: [1, -1]";
  for (const bool has_rates : {false, true}) {
    decoding_server server = server_of(matrices + (has_rates ? ", decoder_custom_args: {error_rate: 0.01}" : ""));
    for (std::uint64_t k = 0; k < 100; ++k)
      ASSERT_EQ(call(server, kOneShotFunctionId, packed("10")).status, 0);
    const auto identity = server.decoders()[0]->identity();
    const detector_reading now = identity->rates->read();
    EXPECT_EQ(now.detectors[0].rate, 1);
    EXPECT_EQ(std::isnan(now.detectors[0].sigma), !has_rates) << "the rate that stands for them is no measurement";
    EXPECT_EQ(certain_differences(now), has_rates ? 1u : 0u);
  }
}

TEST(DetectorRates, OfAServedStreamCountItsBitsOnce) {
  if (read_server_config("decoders: [{id: 1, type: lookup}]").failed())
    GTEST_SKIP() << "this build has no YAML parser";
  std::string model = rotated_stream_model(2);
  for (std::size_t at = 0; (at = model.find('\n', at)) != std::string::npos; at += 2)
    model.replace(at, 1, "\\n");
  decoding_server server = server_of(
      "stream: true, type: \"sliding-window:inner=lookup,commit=2,buffer=1,mode=sequential\", dem: \"" + model + "\"");
  EXPECT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 0, "101")).status, 0);
  EXPECT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 1, "101")).status, 0);
  EXPECT_EQ(call(server, kBeginTailFunctionId, begin_tail_payload(1, 2)).status, 0);
  EXPECT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 3, "01")).status, 0);
  EXPECT_EQ(call(server, kResetFunctionId, reset_payload(1)).status, 0);
  EXPECT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 7, "10")).status, 0) << "the head of the next stream";
  const detector_reading now = server.decoders()[0]->identity()->rates->read();
  const std::vector<double> wanted{1, 0, 0.5, 1, 0, 1};
  ASSERT_EQ(now.detectors.size(), wanted.size());
  for (std::size_t d = 0; d < wanted.size(); ++d)
    EXPECT_EQ(now.detectors[d].rate, wanted[d]) << d;
}

} // namespace

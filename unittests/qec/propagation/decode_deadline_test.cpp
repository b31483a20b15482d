// SPDX-License-Identifier: Apache-2.0
// Deadlines and cancellation of decodes.
#include "unittests/qec/propagation/bp_osd_test_support.h"

#include "lib/qec/decoders/stop_check.h"
#include "lib/qec/stages/decode_stage.h"

#include <thread>

namespace cudaq::qec::realtime::test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kLong = 60 * kSecond; ///< ends a test that would never end

/// Two columns that no message tells apart: belief propagation with equal strengths never converges.
constexpr const char *kTwins = "error(0.1) D0 L0\nerror(0.1) D0 L1\nerror(0.1) D1 L2\n";
constexpr const char *kEndless = "gamma0=0,gamma_lowest=0,gamma_highest=0,pre_iter=1000000,num_sets=1000000";

struct timed_answer {
  decode_status status;
  std::vector<std::uint8_t> observables;
  decode_details details;
};

timed_answer decode_with(decoder &with, const std::vector<std::uint64_t> &events, const decode_control &control) {
  timed_answer got{decode_status::ok, std::vector<std::uint8_t>(with.observable_bytes(), 0xEE), {.control = control}};
  got.status = with.decode(events, got.observables, got.details);
  EXPECT_EQ(got.details.has_solution, with.has_solution());
  return got;
}

class DecodeDeadline : public testing::TestWithParam<std::string> {};

TEST_P(DecodeDeadline, InThePastEndsTheDecodeWithoutASolutionAndTheNextShotIsDecoded) {
  const auto with = make_or_throw(GetParam(), kTwins);
  ASSERT_TRUE(with->obeys_deadline());
  for (const bool cancelled : {false, true}) {
    const std::uint32_t word = 1;
    const timed_answer got =
        decode_with(*with, {1}, cancelled ? decode_control{.cancel = &word} : decode_control{.deadline_ns = 1});
    EXPECT_EQ(got.status, cancelled ? decode_status::cancelled : decode_status::deadline);
    EXPECT_FALSE(got.details.has_solution);
    EXPECT_EQ(got.observables, std::vector<std::uint8_t>{0});
    EXPECT_TRUE(std::isnan(got.details.weight));
    EXPECT_EQ(decode(*with, {1}), (answer{decode_status::ok, {4}}));
    EXPECT_TRUE(with->has_solution());
  }
  EXPECT_EQ(with->deadlines().missed, 1U);
  EXPECT_EQ(with->deadlines().met + with->deadlines().late, 0U);
}

TEST_P(DecodeDeadline, OfABudgetHoldsForEachDecode) {
  const auto with = make_or_throw(GetParam() + ":deadline_us=0.001", kTwins);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(decode(*with, {1}), (answer{decode_status::deadline, {0}}));
  const timed_answer own = decode_with(*with, {1}, {.deadline_ns = monotonic_ns() + kLong});
  EXPECT_EQ(own.status, decode_status::ok) << "a deadline of its own stands above the budget";
  EXPECT_EQ(with->deadlines().missed, 3U);
  EXPECT_EQ(with->deadlines().met, 1U);
  with->set_budget(0);
  EXPECT_EQ(decode(*with, {1}).status, decode_status::ok);
}

TEST_P(DecodeDeadline, OfABudgetOfAnyLengthIsNotInThePast) {
  const auto with = make_or_throw(GetParam(), kTwins);
  for (const std::uint64_t budget : {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - monotonic_ns()}) {
    with->set_budget(budget);
    EXPECT_EQ(decode(*with, {1}).status, decode_status::ok) << budget;
  }
  EXPECT_EQ(with->deadlines().met, 3U);
}

TEST_P(DecodeDeadline, LeavesTheControlOfTheCallerAsItWas) {
  const auto with = make_or_throw(GetParam() + ":deadline_us=1000000000", kTwins);
  const timed_answer got = decode_with(*with, {1}, {});
  EXPECT_EQ(got.status, decode_status::ok);
  EXPECT_EQ(got.details.control.deadline_ns, kNoDeadline);
  EXPECT_EQ(with->deadlines().met, 1U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DecodeDeadline, testing::Values("relay-bp", "bp-osd"), kind_name);

TEST(DecodeCancel, FromAnotherThreadEndsAnEndlessDecode) {
  const auto with = make_or_throw(std::string("relay-bp:") + kEndless, kTwins);
  std::uint32_t word = 0;
  std::jthread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancel_decode(word);
  });
  const std::vector<std::uint64_t> events{0};
  std::vector<std::uint8_t> observables{0xEE};
  const std::uint64_t deadline_ns = monotonic_ns() + kLong;
  decode_details details{.control = {.deadline_ns = deadline_ns, .cancel = &word}};
  const decode_status status = with->decode(events, observables, details); // cancel_decode(word) on another thread
  canceller.join();
  EXPECT_EQ(status, decode_status::cancelled);
  EXPECT_EQ(observables, std::vector<std::uint8_t>{0});
  EXPECT_EQ(decode(*with, {1}), (answer{decode_status::ok, {4}}));
}

TEST(DecodeDeadlineOf, ADecoderThatDoesNotConvergeIsObeyed) {
  const auto with = make_or_throw(std::string("relay-bp:deadline_us=5000,") + kEndless, kTwins);
  EXPECT_EQ(decode(*with, {0}), (answer{decode_status::deadline, {0}}));
  EXPECT_EQ(with->deadlines().missed, 1U);
  EXPECT_EQ(with->deadlines().late, 0U);
}

TEST(DecodeDeadlineOf, RelayBpGivesItsBestSolutionSoFar) {
  const oracle_set set("color_d5_p0.003");
  const auto first = make_or_throw("relay-bp:stop_nconv=1", set.dem_text);
  const auto endless = make_or_throw("relay-bp:stop_nconv=1000000,num_sets=1000000", set.dem_text);
  const auto &events = *std::ranges::max_element(set.shots, {}, &std::vector<std::uint64_t>::size);
  const timed_answer one = decode_with(*first, events, {});
  ASSERT_EQ(one.status, decode_status::ok);
  timed_answer got;
  std::uint64_t budget = kSecond / 100;
  do // on a busy machine the first leg may take long
    got = decode_with(*endless, events, {.deadline_ns = monotonic_ns() + budget});
  while (!got.details.has_solution && (budget *= 2) < kLong);
  EXPECT_EQ(got.status, decode_status::deadline);
  EXPECT_TRUE(got.details.has_solution);
  EXPECT_LE(got.details.weight, one.details.weight);
}

TEST(DecodeDeadlineOf, BpOsdGivesASetThatCausesTheEventsIfItEndsTheSweep) {
  const oracle_set set("bicycle_72_r6_p0.003");
  bp_osd_options options;
  options.max_iterations = 1;
  options.osd_order = kMaxOsdOrder;
  bp_osd solver(graph_or_throw(set.dem_text), options);
  std::size_t best_so_far = 0, without = 0;
  for (std::size_t shot = 0; shot < 40; ++shot)
    for (std::uint64_t budget = 1000; budget < kSecond / 100; budget *= 2) {
      const auto &events = set.shots[shot];
      const decode_status status = solver.solve(events, stop_check({.deadline_ns = monotonic_ns() + budget}));
      if (solver.has_solution()) {
        ASSERT_EQ(events_of(solver), events);
        best_so_far += status == decode_status::deadline;
      } else {
        ASSERT_EQ(status, decode_status::deadline);
        ++without;
      }
    }
  EXPECT_GT(best_so_far, 0U);
  EXPECT_GT(without, 0U);
}

TEST(DecodeDeadlineOf, ADecoderThatIgnoresItIsCountedAsLate) {
  for (const std::string &kind : decoder_kinds()) {
    const auto with = make_or_throw(kind + ":deadline_us=0.001", "error(0.1) D0 L0\n");
    EXPECT_FALSE(with->obeys_deadline()) << kind;
    EXPECT_EQ(decode(*with, {0}), (answer{decode_status::ok, {1}})) << kind;
    EXPECT_EQ(with->deadlines().missed, 1U) << kind;
    EXPECT_EQ(with->deadlines().late, 1U) << kind;
  }
}

TEST(DecodeDeadlineOf, AnInnerDecoderHoldsForWindowsAndAfterAPredecoder) {
  const std::string loop = "error(0.1) D0 L0\nrepeat 8 {\nerror(0.1) D0 D1\nshift_detectors(0, 1) 1\n}\n"
                           "error(0.1) D0\ndetector(0, 0) D0\n";
  const auto before = make_or_throw("relay-bp:predecoder=passthrough,deadline_us=0.001", kTwins);
  EXPECT_TRUE(before->obeys_deadline());
  EXPECT_EQ(decode(*before, {1}), (answer{decode_status::deadline, {0}}));
  const auto windows =
      make_decoder("sliding-window:inner=relay-bp,rounds=index:1,commit=2,buffer=2,deadline_us=0.001", loop);
  ASSERT_TRUE(windows) << windows.error;
  EXPECT_EQ(decode(*windows.instance, {1}).status, decode_status::deadline);
}

TEST(DecodeDeadlineOf, TheDecodeStageIsTheStatusOfItsAnswer) {
  decode_stage stage(make_or_throw("relay-bp:deadline_us=0.001", kTwins));
  std::vector<std::uint64_t> predecoded((stage.layout().bytes() + 7) / 8), response(8);
  predecoder_header header{};
  header.num_events = 1;
  std::memcpy(predecoded.data(), &header, sizeof header);
  std::size_t size = 0;
  EXPECT_EQ(stage.run(predecoded.data(), response.data(), 64, size), decode_status::deadline);
  EXPECT_EQ(size, sizeof(DecodeResponse)) << "there is no solution";
}

TEST(DecodeDeadlineOf, ASettingIsARealNumberOfMicroseconds) {
  for (const std::string bad : {"-1", "x", "1e12", "nan"})
    EXPECT_NE(make_decoder("lookup:deadline_us=" + bad, kTwins).error.find("deadline_us"), std::string::npos) << bad;
}

} // namespace
} // namespace cudaq::qec::realtime::test

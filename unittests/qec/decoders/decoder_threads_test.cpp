// SPDX-License-Identifier: Apache-2.0
// Decoders of several threads: instances of their own, and races of several on one shot.
#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/decoders/stop_check.h"
#include "unittests/qec/qec_test_support.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

namespace cudaq::qec::realtime::test {
namespace {

class DecoderThreads : public testing::TestWithParam<std::string> {};

// Known failure 33.
TEST_P(DecoderThreads, WorkersWithTheirOwnInstanceShareNothing) {
  constexpr int kWorkers = 4;
  const shot_set set = load_committed(shot_set_name(GetParam() == "pymatching" ? 5 : 3, "0.005"));
  std::vector<std::uint8_t> expected(set.shots);
  ASSERT_EQ(make_or_throw(GetParam(), set.dem_text)->decode_batch(set.shots, set.detections, expected),
            decode_status::ok);
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker)
    workers.emplace_back([&] {
      // Built here, so that the construction also races with the decoding of the other threads.
      const auto with = make_or_throw(GetParam(), set.dem_text);
      std::vector<std::uint64_t> events(set.num_detectors);
      for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
        const std::size_t count = unpack_events(set.detection_row(shot), set.num_detectors, events).count;
        std::uint8_t out = 0;
        const decode_status status = with->decode(std::span(events).first(count), {&out, 1});
        wrong += status != decode_status::ok || out != expected[shot];
      }
    });
  for (std::thread &worker : workers)
    worker.join();
  EXPECT_EQ(wrong, 0U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DecoderThreads, testing::ValuesIn(all_decoder_kinds()), kind_name);

// Races: several decoders on the same shot.

/// A plug-in that never ends a shot with detector 0, unless it is cancelled (early_plugin.c).
const std::string kEarly = CUDAQ_TEST_EARLY_PLUGIN;
constexpr const char *kModel = "error(0.1) D0 L0\nerror(0.1) D1 L0\nerror(0.1) D2 L0\nerror(0.1) D3 L0\nerror(0.1) D4 "
                               "L0\n";

struct raced {
  decode_status status;
  std::uint8_t observables;
  decode_details details;
};

raced decode_one(decoder &with, const std::vector<std::uint64_t> &events, decode_details details = {}) {
  raced got{decode_status::ok, 0xEE, details};
  got.status = with.decode(events, {&got.observables, 1}, got.details);
  return got;
}

std::size_t threads_of_this_process() {
  std::size_t count = 0;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/task"))
    count += entry.is_directory();
  return count;
}

TEST(Race, TheFirstSolutionWinsAndTheOthersAreCancelled) {
  const auto with = make_or_throw("race:" + kEarly + "|relay-bp", kModel);
  EXPECT_STREQ(with->name(), "race");
  EXPECT_TRUE(with->obeys_deadline());
  const std::size_t threads = threads_of_this_process();
  for (int shot = 0; shot < 200; ++shot) { // the plug-in never ends them by itself
    const raced got = decode_one(*with, {0});
    ASSERT_EQ(got.status, decode_status::ok);
    ASSERT_EQ(got.observables, 1);
    ASSERT_STREQ(got.details.winner, "relay-bp");
  }
  EXPECT_EQ(threads_of_this_process(), threads) << "no thread is made for a shot";
  EXPECT_EQ(with->wins(), (std::vector<std::pair<std::string, std::uint64_t>>{{kEarly, 0}, {"relay-bp", 200}}));
  EXPECT_EQ(decode(*with, {}), (answer{decode_status::ok, {0}}));
}

// With detector 2 the errors of the plug-in are not those of the model.
TEST(Race, AMemberThatFailsIsNamedWhereAnotherOneAnswers) {
  const auto with = make_or_throw("race:" + kEarly + "|relay-bp,mode=best", kModel);
  std::vector<std::uint64_t> errors(with->num_errors());
  decode_details wanted;
  wanted.errors = errors;
  EXPECT_EQ(decode_one(*with, {3}, wanted).status, decode_status::ok);
  EXPECT_EQ(with->member_faults(), 0u);
  EXPECT_STREQ(with->fault(), "");
  ASSERT_EQ(decode_one(*with, {2}, wanted).status, decode_status::ok);
  EXPECT_EQ(with->member_faults(), 1u);
  const std::string fault = with->fault();
  EXPECT_TRUE(fault.starts_with("member " + kEarly + ": plug-in early: ")) << fault;
}

TEST(Race, ALoserThatIgnoresItsCancellationDelaysNoShot) {
  const auto with = make_or_throw("race:" + kEarly + "|relay-bp", kModel);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_STREQ(decode_one(*with, {4}).details.winner, "relay-bp");
  for (int shot = 0; shot < 20; ++shot)
    ASSERT_EQ(decode_one(*with, {4}).status, decode_status::ok);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10))
      << "the plug-in takes a second for each";
}

TEST(Race, InModeBestTheLeastWeightWins) {
  const shot_set set = load_committed("surface_z_d5_p0.005");
  const std::vector<std::string> members{"relay-bp(seed=1)", "relay-bp(seed=2,stop_nconv=2)", "bp-osd(osd_order=0)"};
  const auto race =
      make_or_throw("race:" + members[0] + "|" + members[1] + "|" + members[2] + ",mode=best", set.dem_text);
  std::vector<std::unique_ptr<decoder>> alone;
  for (const char *name : {"relay-bp:seed=1", "relay-bp:seed=2,stop_nconv=2", "bp-osd:osd_order=0"})
    alone.push_back(make_or_throw(name, set.dem_text));
  std::size_t different = 0;
  for (std::size_t shot = 0; shot < 20; ++shot) {
    std::vector<std::uint64_t> events(race->num_detectors());
    events.resize(unpack_events(set.detection_row(shot), race->num_detectors(), events).count);
    const raced got = decode_one(*race, events);
    ASSERT_EQ(got.status, decode_status::ok);
    double min_weight = HUGE_VAL, max_weight = 0;
    for (const auto &one : alone) {
      const raced answer = decode_one(*one, events);
      if (answer.status != decode_status::ok)
        continue;
      min_weight = std::min(min_weight, answer.details.weight);
      max_weight = std::max(max_weight, answer.details.weight);
    }
    ASSERT_EQ(got.details.weight, min_weight);
    different += min_weight != max_weight;
  }
  EXPECT_GT(different, 0U) << "all members gave the same answers";
}

TEST(Race, AtTheDeadlineTheBestSolutionSoFarIsTheAnswerOrNone) {
  for (const char *mode : {"first", "best"}) {
    const auto with = make_or_throw("race:" + kEarly + "|" + kEarly + ",mode=" + mode, kModel);
    for (const bool has_best : {false, true}) {
      std::vector<std::uint64_t> events{0};
      if (has_best)
        events = {0, 1, 3};
      const raced got = decode_one(*with, events, {.control = {.deadline_ns = monotonic_ns() + 1'000'000}});
      EXPECT_EQ(got.status, decode_status::deadline);
      if (got.details.has_solution) { // on a busy machine the members may come too late
        EXPECT_TRUE(has_best);
        EXPECT_EQ(got.observables, 1);
        EXPECT_EQ(got.details.weight, 4.5);
      } else {
        EXPECT_EQ(got.observables, 0);
      }
    }
    EXPECT_EQ(decode(*with, {1}), (answer{decode_status::ok, {1}}));
  }
}

TEST(Race, HasNoDeadlineNearTheEndOfTime) {
  const auto with = make_or_throw("race:" + kEarly + "|" + kEarly, kModel);
  for (const std::uint64_t before : {0U, 1U, 500'000U}) {
    const auto deadline = static_cast<std::uint64_t>(INT64_MAX) - before;
    const raced got = decode_one(*with, {1}, {.control = {.deadline_ns = deadline}});
    EXPECT_EQ(got.status, decode_status::ok) << before;
    EXPECT_EQ(got.observables, 1) << before;
  }
}

TEST(Race, IsCancelledAsAWhole) {
  const auto with = make_or_throw("race:" + kEarly + "|" + kEarly, kModel);
  std::uint32_t word = 0;
  std::jthread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    cancel_decode(word);
  });
  EXPECT_EQ(decode_one(*with, {0}, {.control = {.cancel = &word}}).status, decode_status::cancelled);
  EXPECT_EQ(decode(*with, {1}), (answer{decode_status::ok, {1}}));
}

TEST(Race, EndsWhenNoMemberHasASolution) {
  const auto no_solution = make_or_throw("race:relay-bp|bp-osd,mode=best", "error(0.1) D0 D1 L0\n");
  EXPECT_EQ(decode(*no_solution, {0}), (answer{decode_status::no_solution, {0}}));
  EXPECT_EQ(decode(*no_solution, {0, 1}), (answer{decode_status::ok, {1}}));
  const char *twins = "error(0.1) D0 L0\nerror(0.1) D0 L1\n";
  const std::string starved = "relay-bp(gamma0=0,gamma_lowest=0,gamma_highest=0,num_sets=2)";
  EXPECT_EQ(decode(*make_or_throw("race:" + starved + "|" + starved, twins), {0}),
            (answer{decode_status::not_converged, {0}}));
}

TEST(Race, GivesTheErrorsOfTheWinnerIfAllMembersGiveThem) {
  const auto with = make_or_throw("race:relay-bp|bp-osd", kModel);
  EXPECT_EQ(with->num_errors(), 5U);
  std::vector<std::uint64_t> room(5);
  const raced got = decode_one(*with, {1, 3}, {.errors = room});
  ASSERT_EQ(got.status, decode_status::ok);
  EXPECT_EQ(got.details.num_errors, 2U);
  EXPECT_EQ(room[0], 1U);
  EXPECT_EQ(room[1], 3U);
}

TEST(Race, TakesABudgetAndAPredecoder) {
  const auto with = make_or_throw("race:relay-bp|bp-osd,deadline_us=1000000000,predecoder=passthrough", kModel);
  EXPECT_STREQ(with->name(), "passthrough+race");
  EXPECT_EQ(decode(*with, {2}), (answer{decode_status::ok, {1}}));
  EXPECT_EQ(with->deadlines().met, 1U);
}

TEST(Race, RefusesMembersThatCannotBeCancelledAndListsThatAreNone) {
  const std::pair<const char *, const char *> wrong[] = {
      {"race", "is not a list of members"},
      {"race:relay-bp", "a race has 2 to 16 members, this one has 1"},
      {"race:relay-bp|lookup", "member lookup: lookup cannot be cancelled; bp-osd, relay-bp and plug-ins with"},
      {"race:relay-bp|bp-osd(osd_order=99)", "member bp-osd:osd_order=99"},
      {"race:relay-bp|bp-osd(osd_order=1", "is not a list of members"},
      {"race:relay-bp||bp-osd", "is not a list of members"},
      {"race:relay-bp|bp-osd,mode=last", "mode=last: expected one of first, best"},
      {"race:relay-bp|bp-osd,speed=3", "speed"},
      {"race:relay-bp|none", "unknown decoder \"none\""}};
  for (const auto &[name, text] : wrong) {
    const decoder_result made = make_decoder(name, kModel);
    ASSERT_FALSE(made) << name;
    EXPECT_NE(made.error.find(text), std::string::npos) << name << ": " << made.error;
  }
}

TEST(DecoderNames, OfARaceKeepCommasInParentheses) {
  const auto name = decoder_name::parse("race:relay-bp(seed=1,num_sets=2)|bp-osd,mode=best");
  ASSERT_TRUE(name.ok());
  EXPECT_EQ(name->name, "race");
  EXPECT_EQ(name->settings.rest(),
            (decoder_settings::list{{"members", "relay-bp(seed=1,num_sets=2)|bp-osd"}, {"mode", "best"}}));
}

} // namespace
} // namespace cudaq::qec::realtime::test

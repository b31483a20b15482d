// SPDX-License-Identifier: Apache-2.0
// Decoders whose models are learned while they serve.
#include "lib/qec/decoding/model_sampler.h"
#include "lib/qec/decoding/model_text_file.h"
#include "lib/qec/server/hosted_server.h"
#include "unittests/qec/server/server_threads_support.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sched.h>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

/// A line of detectors; each error flips two neighbours, those at the ends one. Error k has rates[k].
std::string line_model(const std::vector<double> &rates) {
  std::string text;
  for (std::size_t k = 0; k < rates.size(); ++k) {
    text += "error(" + std::to_string(rates[k]) + ")";
    if (k != 0)
      text += " D" + std::to_string(k - 1);
    if (k + 1 != rates.size())
      text += " D" + std::to_string(k);
    text += k == 0 ? " L0\n" : "\n";
  }
  return text;
}

const std::vector<double> kServed(9, 0.02);
std::vector<double> drifted() {
  std::vector<double> rates = kServed;
  for (std::size_t k = 0; k < rates.size(); ++k)
    rates[k] *= k % 2 == 0 ? 1.8 : 0.6;
  return rates;
}

/// Shots of a model.
class shot_source {
public:
  explicit shot_source(const std::vector<double> &rates, unsigned seed = 1)
      : sampler_(*parse_dem(line_model(rates))), random_(seed) {}
  bytes next() {
    bytes shot(sampler_.shot_bytes()), observables(sampler_.observable_bytes());
    sampler_.sample(random_, shot, observables);
    return shot;
  }

private:
  model_sampler sampler_;
  std::mt19937_64 random_;
};

expected<std::unique_ptr<decoding_unit>> lookup_of(const decoder_learner::shared_model &model) {
  return unit_for(std::string(model->text()));
}

std::unique_ptr<decoder_learner> learner_of(learn_settings settings = {}, const tied_errors &ties = {}) {
  settings.shots = 40'000;
  settings.held_out = 30'000;
  const auto model = decoder_model::of_text(line_model(kServed));
  learning_options options{.tied = ties};
  auto sets = learnable_sets(**model->errors(), options);
  if (sets.failed())
    throw std::runtime_error(sets.text());
  return std::make_unique<decoder_learner>(learned_source{model, std::move(*sets), std::move(options)}, settings,
                                           &lookup_of);
}

/// The end of a round with such shots.
learn_verdict round_of(decoder_learner &learner, const std::function<bytes()> &next) {
  const bytes nothing(1);
  while (!learner.add(next(), nothing, true))
    ;
  return learner.verdict();
}

TEST(DecoderLearner, FindsABetterModelWhenRatesHaveDrifted) {
  const auto learner = learner_of();
  shot_source source(drifted());
  const learn_verdict first = round_of(*learner, [&] { return source.next(); });
  ASSERT_EQ(first.what, learn_verdict::kind::better) << (first.reasons.empty() ? "" : first.reasons[0]);
  EXPECT_GT(first.score.better_by_sigmas, 3);
  EXPECT_EQ(first.shadow_shots, 30'000u / 16);
  EXPECT_GT(first.shadow_differ, 0u) << "the served answers were all 0";
  const detector_error_model &learned = **learner->candidate()->errors();
  for (std::size_t k = 0; k < kServed.size(); ++k)
    EXPECT_NEAR(learned.components[k].probability / drifted()[k], 1, 0.25) << k;
  EXPECT_NE(learner->take_candidate(), nullptr);
  learner->serve_candidate();
  const learn_verdict second = round_of(*learner, [&] { return source.next(); });
  EXPECT_EQ(second.what, learn_verdict::kind::not_better) << "the same data a second time";
  EXPECT_EQ(learner->take_candidate(), nullptr);
}

TEST(DecoderLearner, LearnsOneFactorForTheErrorsOfAGroup) {
  const auto learner = learner_of({}, {{0, 2, 4, 6, 8}, {1, 3, 5}});
  shot_source source(drifted());
  ASSERT_EQ(round_of(*learner, [&] { return source.next(); }).what, learn_verdict::kind::better);
  const auto learned = learner->candidate()->errors();
  ASSERT_TRUE(learned.ok()) << learned.text();
  const auto rate = [&](std::size_t error) { return (*learned)->components[error].probability; };
  for (const std::size_t error : {2, 4, 6, 8})
    EXPECT_EQ(rate(error), rate(0)) << error;
  EXPECT_EQ(rate(3), rate(1));
  EXPECT_NE(rate(7), rate(1)) << "it is in no group";
  EXPECT_NEAR(rate(0) / drifted()[0], 1, 0.05);
}

TEST(DecoderLearner, KeepsAModelThatIsRight) {
  const auto learner = learner_of();
  shot_source source(kServed, 7);
  for (int round = 0; round < 3; ++round)
    EXPECT_EQ(round_of(*learner, [&] { return source.next(); }).what, learn_verdict::kind::not_better) << round;
}

TEST(DecoderLearner, RefusesDataThatNoDriftExplainsAndGoesOnAfterThem) {
  struct poison {
    const char *name, *text;
    std::function<void(bytes &shot, std::uint64_t number)> change;
  };
  const std::vector<poison> poisons{
      {"stuck", "detector 3 fires in 1 of the shots", [](bytes &shot, std::uint64_t) { shot[0] |= 8; }},
      {"dead", "detector 3 fires in 0 of the shots",
       [](bytes &shot, std::uint64_t) { shot[0] = static_cast<std::uint8_t>(shot[0] & ~8U); }},
      {"bursts", "the number of events of a shot varies more than independent errors explain",
       [](bytes &shot, std::uint64_t number) { shot[0] = number % 40 == 0 ? 0xFF : shot[0]; }},
      {"lost qubit", "stuck or random",
       [random = std::mt19937_64(3)](bytes &shot, std::uint64_t) mutable {
         shot[0] = static_cast<std::uint8_t>(shot[0] ^ (random() & 0x18));
       }},
  };
  for (const poison &p : poisons) {
    const auto learner = learner_of();
    shot_source source(drifted());
    std::uint64_t number = 0;
    const learn_verdict verdict = round_of(*learner, [&] {
      bytes shot = source.next();
      p.change(shot, number++);
      return shot;
    });
    EXPECT_EQ(verdict.what, learn_verdict::kind::refused) << p.name;
    ASSERT_FALSE(verdict.reasons.empty()) << p.name;
    EXPECT_NE(verdict.reasons[0].find(p.text), std::string::npos) << p.name << ": " << verdict.reasons[0];
    EXPECT_EQ(learner->take_candidate(), nullptr) << p.name;
    EXPECT_EQ(round_of(*learner, [&] { return source.next(); }).what, learn_verdict::kind::better)
        << p.name << ": what is over is forgotten";
  }
}

TEST(DecoderLearner, RefusesHeldOutShotsThatArePoisoned) {
  const auto learner = learner_of();
  shot_source source(drifted());
  std::uint64_t number = 0;
  const learn_verdict verdict = round_of(*learner, [&] {
    bytes shot = source.next();
    if (++number > 40'000)
      shot[0] |= 8;
    return shot;
  });
  EXPECT_EQ(verdict.what, learn_verdict::kind::refused);
  ASSERT_FALSE(verdict.reasons.empty());
  EXPECT_TRUE(verdict.reasons[0].starts_with("held-out shots: detector 3")) << verdict.reasons[0];
  EXPECT_EQ(learner->take_candidate(), nullptr);
}

std::string in_quotes(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2)
    text.replace(at, 1, "\\n");
  return "\"" + text + "\"";
}

/// A server whose decoder learns.
class LiveLearning : public testing::Test {
protected:
  void SetUp() override {
    if (read_server_config("decoders: [{id: 1, type: lookup}]").failed())
      GTEST_SKIP() << "this build has no YAML parser";
  }
  static std::string config(const std::string &learn = ", learn: {shots: 20000, held_out: 20480, priority: normal}") {
    return "decoders: [{id: 5, type: lookup, queue_length: 0, dem: " + in_quotes(line_model(kServed)) + learn + "}]";
  }
  static loaded_config loaded(const std::string &yaml) {
    auto config = load_config(yaml, ".");
    if (config.failed())
      throw std::runtime_error(config.text());
    return std::move(*config);
  }
  /// Sends shots until `is_over`, at most 60 s.
  bool send_until(hosted_server &host, const std::function<bool(const learning_report &)> &is_over) {
    bytes result(8);
    for (const auto deadline = rt::deadline_after(60'000'000'000); rt::steady_clock::now() < deadline;) {
      for (int k = 0; k < 1000; ++k) {
        server_answer now;
        (void)host.server().submit(kOneShotFunctionId, source_.next(), result, {}, now);
      }
      if (is_over(host.learning().reports().at(0)))
        return true;
    }
    return false;
  }
  static std::uint64_t digest(const hosted_server &host) { return host.server().decoders()[0]->facts().digest; }

  shot_source source_{drifted()};
};

TEST_F(LiveLearning, SwapsABetterModelInAndGoesBack) {
  hosted_server host(loaded(config()));
  ASSERT_TRUE(host.start(CUDAQ_WAIT_BLOCK, 0).ok());
  const std::uint64_t of_config = digest(host);
  ASSERT_TRUE(send_until(host, [](const learning_report &r) { return r.swaps != 0; }));
  EXPECT_NE(digest(host), of_config);
  EXPECT_TRUE(host.learning().reports().at(0).uses_learned);
  EXPECT_EQ(host.server().decoders()[0]->counts().exchanges, 1u);
  std::string log;
  for (const std::string &line : host.learning().take_lines())
    log += line + "\n";
  EXPECT_NE(log.find("decoder 5: learn: score of the learned model less that of the served one"), std::string::npos)
      << log;
  EXPECT_NE(log.find("decoder 5: learn: swapped"), std::string::npos) << log;
  EXPECT_EQ(host.go_back(60'000'000'000).outcome, reload_outcome::applied);
  EXPECT_EQ(digest(host), of_config);
  EXPECT_FALSE(host.learning().reports().at(0).uses_learned);
  bytes result(8);
  server_answer now;
  EXPECT_TRUE(host.server().submit(kOneShotFunctionId, source_.next(), result, {}, now));
  EXPECT_EQ(now.status, 0) << "it serves on";
  EXPECT_EQ(host.go_back(0).outcome, reload_outcome::applied) << "a second time has no effect";
  EXPECT_EQ(host.reload(config(), ".", 60'000'000'000).outcome, reload_outcome::applied);
  EXPECT_TRUE(send_until(host, [](const learning_report &r) { return r.swaps != 0; })) << "a reload begins again";
}

TEST_F(LiveLearning, GoesBackToTheModelBeforeTheLastSwap) {
  hosted_server host(loaded(config()));
  ASSERT_TRUE(host.start(CUDAQ_WAIT_BLOCK, 0).ok());
  const std::uint64_t of_config = digest(host);
  ASSERT_TRUE(send_until(host, [](const learning_report &r) { return r.swaps == 1; }));
  const std::uint64_t first = digest(host);
  source_ = shot_source(std::vector<double>(9, 0.05)); // it drifts on
  ASSERT_TRUE(send_until(host, [](const learning_report &r) { return r.swaps == 2; }));
  EXPECT_NE(digest(host), first);
  const auto go_back = [&](earlier_model to) { return host.go_back(60'000'000'000, to).outcome; };
  EXPECT_EQ(go_back(earlier_model::before_swap), reload_outcome::applied);
  EXPECT_EQ(digest(host), first);
  EXPECT_TRUE(host.learning().reports().at(0).uses_learned);
  EXPECT_EQ(go_back(earlier_model::before_swap), reload_outcome::applied);
  EXPECT_EQ(digest(host), of_config);
  EXPECT_FALSE(host.learning().reports().at(0).uses_learned);
}

TEST_F(LiveLearning, TakesGroupsOfTiedErrorsFromAFile) {
  const std::string model = line_model(kServed);
  char crc[9];
  std::snprintf(crc, sizeof crc, "%08x", crc32_of(model));
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "live_learning_ties.txt";
  const std::string with_ties = config(", learn: {shots: 20000, held_out: 20480, ties: " + path.string() + "}");
  const auto load = [&](const std::string &ties) {
    std::ofstream(path) << ties;
    return load_config(with_ties, ".");
  };
  const auto expect_refused = [](const expected<loaded_config> &refused, const std::string &text) {
    EXPECT_NE(refused.text().find(text), std::string::npos) << refused.text();
  };
  const std::string head = "cudaq-realtime-tied 1\nmodel " + std::string(crc) + "\n";
  const auto made = load(head + "tie all 0 1 2\n");
  ASSERT_TRUE(made.ok()) << made.text();
  EXPECT_EQ(made->setups.at(0).unit->identity()->tap->source().options.tied, (tied_errors{{0, 1, 2}}));
  expect_refused(load(head + "tie all 0 9\n"), "learn: error 9 of a group of tied errors is not in the model");
  expect_refused(load("cudaq-realtime-tied 1\nmodel 00000000\n"), "learn.ties: " + path.string() + ": line 2: ");
  std::filesystem::remove(path);
  expect_refused(load_config(with_ties, "."), "learn.ties: ");
}

TEST_F(LiveLearning, OnlyReportsWithSwapFalse) {
  hosted_server host(loaded(config(", learn: {shots: 20000, held_out: 20480, priority: normal, swap: false}")));
  ASSERT_TRUE(host.start(CUDAQ_WAIT_BLOCK, 0).ok());
  const std::uint64_t of_config = digest(host);
  ASSERT_TRUE(send_until(host, [](const learning_report &r) { return r.better >= 2; }));
  EXPECT_EQ(digest(host), of_config);
  EXPECT_EQ(host.learning().reports().at(0).swaps, 0u);
}

TEST_F(LiveLearning, StaysAfterAReloadThatIsRefused) {
  hosted_server host(loaded(config()));
  ASSERT_TRUE(host.start(CUDAQ_WAIT_BLOCK, 0).ok());
  ASSERT_TRUE(send_until(host, [](const learning_report &r) { return r.swaps != 0; }));
  const std::uint64_t learned = digest(host);
  EXPECT_EQ(host.reload("decoders: [{id: 6, type: lookup, dem: \"error(0.1) D0 L0\"}]", ".", 0).outcome,
            reload_outcome::rejected);
  EXPECT_EQ(digest(host), learned);
  EXPECT_TRUE(host.learning().reports().at(0).uses_learned) << "so that it can go back";
  EXPECT_EQ(host.go_back(60'000'000'000).outcome, reload_outcome::applied);
  EXPECT_NE(digest(host), learned);
}

/// The policies of the threads of this process whose names begin so.
std::vector<int> policies_of(const std::string &name) {
  std::vector<int> found;
  for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string its_name;
    std::ifstream(task.path() / "comm") >> its_name;
    if (its_name.starts_with(name))
      found.push_back(sched_getscheduler(std::stoi(task.path().filename())));
  }
  return found;
}

TEST_F(LiveLearning, GivesTheThreadsOfALearnedDecoderThePriorityOfTheProgram) {
  std::string yaml = config(", learn: {shots: 20000, held_out: 20480}");
  yaml.replace(yaml.find("type: lookup"), 12, "type: \"race:bp-osd|bp-osd(osd_order=0)\"");
  hosted_server host(loaded(yaml));
  ASSERT_TRUE(host.start(CUDAQ_WAIT_BLOCK, 0).ok());
  if (!send_until(host, [](const learning_report &r) { return r.swaps != 0; }))
    GTEST_SKIP() << "the cores are busy: qec-learn got too little time to end a round";
  const std::vector<int> of_race = policies_of("qec-race"), of_test = policies_of("qec-swap");
  EXPECT_GE(of_race.size(), 2u);
  for (const int policy : of_race)
    EXPECT_EQ(policy, of_test.at(0)) << "not that of qec-learn, which is idle";
}

TEST_F(LiveLearning, IsRefusedForTablesOfErrorsThatCountTheSame) {
  const auto refused =
      load_config("decoders: [{id: 5, type: multi_error_lut, block_size: 2, syndrome_size: 2, H_sparse: "
                  "[0, -1, 1, -1], O_sparse: [1, -1], learn: {}}]",
                  ".");
  EXPECT_NE(refused.text().find("learn: for multi_error_lut all errors count the same"), std::string::npos)
      << refused.text();
}

TEST_F(LiveLearning, IsRefusedForStreams) {
  const std::string stream = "detector(0) D0\\nerror(0.1) D0 L0\\nshift_detectors(1) 1\\n";
  const auto refused = load_config(
      "decoders: [{id: 5, type: \"sliding-window:inner=lookup,commit=2,buffer=1\", stream: true, learn: {}, dem: \"" +
          stream + "repeat 9 {\\n" + stream + "}\\ndetector(0) D0\\nerror(0.1) D0\\n\"}]",
      ".");
  EXPECT_NE(refused.text().find("learn: it is for shots"), std::string::npos) << refused.text();
  EXPECT_NE(load_config(config(", learn: {shots: 5}"), ".").text().find("learn.shots: \"5\""), std::string::npos);
}

} // namespace

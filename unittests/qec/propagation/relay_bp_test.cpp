// SPDX-License-Identifier: Apache-2.0
// relay-bp against the package relay_bp, whose answers tools/data/bp_osd/make_relay_bp_data.py wrote.
#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/decoders/relay_bp/relay_bp.h"
#include "unittests/qec/propagation/bp_osd_test_support.h"

#include <sstream>

namespace cudaq::qec::realtime::test {
namespace {

relay_bp_options options_of(const std::string &setting) {
  auto name = decoder_name::parse(setting.empty() ? "relay-bp" : "relay-bp:" + setting);
  const relay_bp_options options = relay_bp_options_of(name->settings);
  EXPECT_EQ(name->settings.check().text(), "");
  return options;
}

std::string text_of(std::span<const std::uint32_t> columns) {
  std::string text;
  for (const std::uint32_t column : columns)
    text += (text.empty() ? "" : ",") + std::to_string(column);
  return text.empty() ? "-" : text;
}

/// A set with the answers of relay_bp.
struct relay_set : oracle_set {
  explicit relay_set(const std::string &name) : oracle_set(name), graph(graph_or_throw(dem_text)), syndrome(graph) {
    std::istringstream lines(read_file(data_folder() / "bp_osd" / (name + ".relay.meta")));
    for (std::string line; std::getline(lines, line);)
      values[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
  }
  const tanner_graph graph;
  graph_syndrome syndrome;
};

class RelayBp : public testing::TestWithParam<std::string> {
protected:
  relay_set set_{GetParam()};
};

TEST_P(RelayBp, GivesInDoublePrecisionTheIterationsAndCorrectionsOfTheReference) {
  std::size_t without_solution = 0;
  for (const std::string number : {"0", "1", "2"}) {
    relay_bp_options options = options_of(set_.values.at("setting." + number));
    options.double_precision = true;
    relay_bp solver(set_.graph, options);
    std::istringstream iterations(set_.values.at("iterations." + number)), columns(set_.values.at("columns." + number));
    for (const auto &events : set_.shots) {
      ASSERT_TRUE(set_.syndrome.set_events(events));
      const bool found = solver.solve(set_.syndrome.bytes()) == decode_status::ok;
      std::uint64_t expected_iterations = 0;
      std::string expected;
      ASSERT_TRUE(iterations >> expected_iterations && columns >> expected);
      EXPECT_EQ(text_of(solver.correction()) + (found ? "" : "!"), expected);
      EXPECT_EQ(solver.iterations(), expected_iterations);
      without_solution += !found;
    }
  }
  EXPECT_GT(without_solution, 10U) << "nothing without a solution was tested";
}

TEST_P(RelayBp, GivesTheSameBitsWithAndWithoutTheInstructionsOfThisProcessor) {
  for (const bool double_precision : {false, true}) {
    relay_bp_options options = options_of("num_sets=6,stop_nconv=2");
    options.double_precision = double_precision;
    relay_bp quick(set_.graph, options), plain(set_.graph, options, true);
    EXPECT_STREQ(plain.instruction_set(), "plain");
    for (const auto &events : set_.shots) {
      ASSERT_TRUE(set_.syndrome.set_events(events));
      ASSERT_EQ(quick.solve(set_.syndrome.bytes()), plain.solve(set_.syndrome.bytes()));
      ASSERT_EQ(text_of(quick.correction()), text_of(plain.correction()));
      ASSERT_EQ(quick.iterations(), plain.iterations());
      ASSERT_EQ(quick.weight(), plain.weight());
    }
  }
}

TEST_P(RelayBp, ExplainsTheEventsWithAWeightThatIsTheSumOfItsColumns) {
  relay_bp solver(set_.graph, {});
  for (const auto &events : set_.shots) {
    ASSERT_TRUE(set_.syndrome.set_events(events));
    ASSERT_EQ(solver.solve(set_.syndrome.bytes()), decode_status::ok);
    std::vector<std::uint8_t> remaining(set_.syndrome.bytes().begin(), set_.syndrome.bytes().end());
    double weight = 0;
    for (const std::uint32_t column : solver.correction()) {
      weight += std::log((1 - set_.graph.probability[column]) / set_.graph.probability[column]);
      for (const std::uint32_t check : set_.graph.checks_of(column))
        remaining[check] ^= 1;
    }
    ASSERT_EQ(remaining, std::vector<std::uint8_t>(remaining.size()));
    ASSERT_NEAR(solver.weight(), weight, 1e-9);
  }
}

TEST_P(RelayBp, MoreSolutionsNeverMakeTheAnswerHeavier) {
  relay_bp first(set_.graph, options_of("stop_nconv=1")), lightest(set_.graph, options_of("stop_nconv=5"));
  for (const auto &events : set_.shots) {
    ASSERT_TRUE(set_.syndrome.set_events(events));
    ASSERT_EQ(first.solve(set_.syndrome.bytes()), decode_status::ok);
    ASSERT_EQ(lightest.solve(set_.syndrome.bytes()), decode_status::ok);
    ASSERT_LE(lightest.weight(), first.weight());
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, RelayBp, testing::Values("bicycle_72_r6_p0.003", "color_d5_p0.003"), kind_name);

TEST(RelayBpStrengths, AreThoseThatTheScriptOfTheReferenceComputes) {
  EXPECT_DOUBLE_EQ(unit_strength(0, 1, 0), 0.28176129772258496);
  EXPECT_DOUBLE_EQ(unit_strength(5, 3, 17), 0.010446078825316563);
}

TEST(RelayBpDecoder, SaysThatItDidNotConvergeAndDecodesTheNextShot) {
  const oracle_set set("bicycle_72_r6_p0.003");
  const auto starved = make_or_throw("relay-bp:pre_iter=1,num_sets=0", set.dem_text);
  std::size_t not_converged = 0, after = 0;
  for (const auto &events : set.shots) {
    const answer given = decode(*starved, events);
    if (given.status == decode_status::not_converged) {
      ++not_converged;
      EXPECT_EQ(given.observables, bits(starved->num_observables(), {}));
    } else {
      after += not_converged != 0;
      EXPECT_EQ(given, decode(*make_or_throw("relay-bp:pre_iter=1,num_sets=0", set.dem_text), events));
    }
  }
  EXPECT_GT(not_converged, 0U);
  EXPECT_GT(after, 0U);
}

TEST(RelayBpDecoder, RefusesSettingsWithTheirRange) {
  for (const std::string bad : {"gamma0=2", "num_sets=-1", "pre_iter=0", "gamma_lowest=0.5,gamma_highest=0.4",
                                "precision=half", "alpha=1.5", "osd_order=3", "stop_nconv=0", "alpha=nan"}) {
    const decoder_result made = make_decoder("relay-bp:" + bad, "error(0.1) D0");
    ASSERT_FALSE(made) << bad;
    EXPECT_NE(made.error.find("relay-bp decoder: "), std::string::npos) << made.error;
  }
}

TEST(RelayBpDecoder, GivesItsWeight) {
  const auto with = make_or_throw("relay-bp", "error(0.1) D0 D1 D2 L0\nerror(0.01) D0\n");
  std::uint8_t out = 0;
  decode_details details;
  ASSERT_EQ(with->decode(std::vector<std::uint64_t>{0, 1, 2}, {&out, 1}, details), decode_status::ok);
  EXPECT_EQ(out, 1);
  EXPECT_NEAR(details.weight, std::log(9.0), 1e-12);
}

// Ensembles of relay-bp: several chains of legs, one after another.

/// A solver and what it gives for a shot.
struct solved {
  solved(const tanner_graph &graph, const std::string &setting) : solver(graph, options_of(setting)) {}
  decode_status shot(graph_syndrome &syndrome) {
    const decode_status status = solver.solve(syndrome.bytes());
    columns.assign(solver.correction().begin(), solver.correction().end());
    return status;
  }
  relay_bp solver;
  std::vector<std::uint32_t> columns;
};

class RelayBpEnsemble : public testing::Test {
protected:
  /// Calls body(shot) with the syndrome of each shot.
  template <class Body>
  void for_each_shot(const Body &body) {
    for (const auto &events : set_.shots) {
      ASSERT_TRUE(syndrome_.set_events(events));
      body();
    }
  }
  const oracle_set set_{"bicycle_72_r6_p0.003"};
  const tanner_graph graph_ = graph_or_throw(set_.dem_text);
  graph_syndrome syndrome_{graph_};
};

TEST_F(RelayBpEnsemble, OfOneChainIsRelayBpItself) {
  solved plain(graph_, "stop_nconv=2"), one(graph_, "stop_nconv=2,ensemble=1"),
      in_step(graph_, "stop_nconv=2,ensemble=1,mode=in_step");
  for_each_shot([&] {
    ASSERT_EQ(plain.shot(syndrome_), decode_status::ok);
    ASSERT_EQ(one.shot(syndrome_), decode_status::ok);
    ASSERT_EQ(in_step.shot(syndrome_), decode_status::ok);
    ASSERT_EQ(one.columns, plain.columns);
    ASSERT_EQ(in_step.columns, plain.columns);
    ASSERT_EQ(one.solver.iterations(), plain.solver.iterations());
  });
}

TEST_F(RelayBpEnsemble, OfLeastWeightIsNeverHeavierWithMoreChains) {
  solved one(graph_, "ensemble=1"), two(graph_, "ensemble=2"), five(graph_, "ensemble=5");
  std::size_t lighter = 0;
  for_each_shot([&] {
    one.shot(syndrome_);
    two.shot(syndrome_);
    five.shot(syndrome_);
    ASSERT_LE(two.solver.weight(), one.solver.weight() + 1e-6);
    ASSERT_LE(five.solver.weight(), two.solver.weight() + 1e-6);
    lighter += five.solver.weight() < one.solver.weight() - 1e-6;
  });
  EXPECT_GT(lighter, 0U) << "the chains are all the same";
}

TEST_F(RelayBpEnsemble, InStepEndsAfterTheFewestIterations) {
  solved one(graph_, ""), many(graph_, "ensemble=2,mode=in_step");
  std::uint64_t sooner = 0;
  for_each_shot([&] {
    ASSERT_EQ(one.shot(syndrome_), decode_status::ok);
    ASSERT_EQ(many.shot(syndrome_), decode_status::ok);
    // Chain 1 does not go on after the iteration in which chain 0 ended.
    const std::uint64_t of_chain_0 = one.solver.iterations(), of_chain_1 = many.solver.iterations() - of_chain_0;
    ASSERT_LE(of_chain_1, of_chain_0 + 1);
    ASSERT_TRUE(of_chain_1 < of_chain_0 || many.columns == one.columns);
    sooner += of_chain_1 < of_chain_0;
  });
  EXPECT_GT(sooner, set_.shots.size() / 10);
}

TEST_F(RelayBpEnsemble, FindsSolutionsWhereOneChainHasNone) {
  const std::string starved = "pre_iter=8,num_sets=0";
  for (const std::string mode : {"least_weight", "in_step"}) {
    solved one(graph_, starved), many(graph_, starved + ",ensemble=16,mode=" + mode);
    std::size_t alone = 0, together = 0;
    for_each_shot([&] {
      const bool found = one.shot(syndrome_) == decode_status::ok;
      alone += found;
      const decode_status status = many.shot(syndrome_);
      together += status == decode_status::ok;
      ASSERT_EQ(many.solver.has_solution(), status == decode_status::ok);
      ASSERT_TRUE(!found || status == decode_status::ok);
      if (!many.solver.has_solution()) {
        ASSERT_EQ(many.columns, one.columns) << "the last decision of leg 0 of chain 0";
        return;
      }
      std::vector<std::uint8_t> left(syndrome_.bytes().begin(), syndrome_.bytes().end());
      for (const std::uint32_t column : many.columns)
        for (const std::uint32_t check : graph_.checks_of(column))
          left[check] ^= 1;
      ASSERT_EQ(left, std::vector<std::uint8_t>(left.size()));
    });
    EXPECT_GT(together, alone + set_.shots.size() / 10);
  }
}

TEST_F(RelayBpEnsemble, HasTheBestSolutionSoFarAtItsDeadline) {
  relay_bp solver(graph_, options_of("ensemble=1000"));
  ASSERT_TRUE(syndrome_.set_events(set_.shots.front()));
  decode_control control;
  std::uint64_t budget = 1000000;
  decode_status status = decode_status::not_converged;
  do { // 1000 chains take far longer than the first of them
    control.deadline_ns = monotonic_ns() + budget;
    status = solver.solve(syndrome_.bytes(), stop_check(control));
    budget *= 2;
  } while (status == decode_status::deadline && !solver.has_solution());
  EXPECT_EQ(status, decode_status::deadline);
  EXPECT_TRUE(solver.has_solution());
}

TEST(RelayBpEnsembleSettings, AreRefusedWithWhatIsAccepted) {
  for (const auto &[bad, text] :
       {std::pair{"ensemble=0", "1 to 1024"}, {"ensemble=1025", "1 to 1024"}, {"mode=first", "least_weight"}}) {
    const decoder_result made = make_decoder(std::string("relay-bp:") + bad, "error(0.1) D0");
    ASSERT_FALSE(made) << bad;
    EXPECT_NE(made.error.find(text), std::string::npos) << made.error;
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

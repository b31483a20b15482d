// SPDX-License-Identifier: Apache-2.0
// Ensembles of relay-bp: several chains of legs, one after another.
#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/decoders/relay_bp/relay_bp.h"
#include "unittests/qec/propagation/bp_osd_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

relay_bp_options options_of(const std::string &setting) {
  auto name = decoder_name::parse(setting.empty() ? "relay-bp" : "relay-bp:" + setting);
  const relay_bp_options options = relay_bp_options_of(name->settings);
  EXPECT_EQ(name->settings.check().text(), "");
  return options;
}

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
      ASSERT_TRUE(syndrome_.take(events));
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
  ASSERT_TRUE(syndrome_.take(set_.shots.front()));
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

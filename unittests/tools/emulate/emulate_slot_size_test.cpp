// SPDX-License-Identifier: Apache-2.0
// A server whose slots have another size than the model of `emulate` needs.
#include "unittests/tools/common/two_terminals.h"

namespace cudaq::realtime::tools::test {
namespace {

/// Two models; the second one needs slots of more than 256 bytes, and a stream.
class SlotSizes : public TwoTerminals {
protected:
  std::string decoders() const override {
    const std::string data = CUDAQ_TEST_DATA;
    return "decoders:\n  - {id: 0, type: pymatching, dem_file: " + data +
           "/surface_z_d3_p0.005.dem}\n  - {id: 1, type: pymatching, dem_file: " + data +
           "/surface_z_d13_p0.005.dem}\n  - {id: 2, type: pymatching, stream: true, dem_file: " + data +
           "/surface_loop_d3_p0.004.dem}\n";
  }
};

TEST_P(SlotSizes, AreLearntFromTheServer) {
  for (const char *options : {"--config d3 --shots 200", "--config d3 --shots 50 --protocol server --decoder-ids 0",
                              "--config d13 --shots 20 --protocol server --decoder-ids 1"}) {
    const auto report = play(options);
    ASSERT_FALSE(report.is_discarded()) << options;
    EXPECT_EQ(report.at("shots_answered"), report.at("shots")) << options;
    EXPECT_EQ(report.at("mismatches"), 0) << options;
  }
  const auto stream = play("--decoder-ids 2 --rounds 500 --cycle-us 10 --dem " + std::string(CUDAQ_TEST_DATA) +
                           "/surface_loop_d3_p0.004.dem");
  ASSERT_FALSE(stream.is_discarded());
  EXPECT_EQ(stream.at("shots_answered"), 1);
  EXPECT_EQ(stream.at("mismatches"), 0);
}

TEST_P(SlotSizes, AreNamedBothIfTheUserGivesAnotherOne) {
  for (const std::string &options :
       {std::string("--config d3 --slot-size 256"), "--decoder-ids 2 --rounds 500 --slot-size 256 --dem " +
                                                        std::string(CUDAQ_TEST_DATA) + "/surface_loop_d3_p0.004.dem"}) {
    const program_result r = run_program(command(options));
    EXPECT_EQ(r.exit_code, 2) << r.err;
    EXPECT_TRUE(contains(r.err, "--slot-size is 256, and the server has slots of ")) << r.err;
    EXPECT_TRUE(contains(r.err, "leave the option out")) << r.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, SlotSizes,
                         testing::Values(shape{"Udp", "udp", CUDAQ_UDP_PROVIDER, "--port=0"},
                                         shape{"Roce", "roce", CUDAQ_ROCE_PROVIDER, "--port=0 --peer-port=0"}),
                         [](const auto &one) { return std::string(one.param.name); });

/// Slots of 64 bytes, which a whole shot of d13 does not fit in.
class SmallSlots : public TwoTerminals {};

TEST_P(SmallSlots, AreNamedWithWhatARequestNeeds) {
  const program_result r = run_program(command("--config d3 --protocol server --noise 0.005"));
  EXPECT_EQ(r.exit_code, 2) << r.err;
  EXPECT_TRUE(contains(r.err,
                       "the server has slots of 57 bytes, and a request of this model needs 59: start the server "
                       "with a larger --slot-size"))
      << r.err;
}

INSTANTIATE_TEST_SUITE_P(Shapes, SmallSlots,
                         testing::Values(shape{"Udp", "udp", CUDAQ_UDP_PROVIDER, "--port=0 --slot-size=57"}),
                         [](const auto &one) { return std::string(one.param.name); });

/// A stream whose rounds need slots of more than 256 bytes.
class WideRounds : public TwoTerminals {
protected:
  static constexpr int kDetectors = 1700; ///< of a round
  static constexpr const char *kWindows = "sliding-window:inner=pymatching,commit=2,buffer=2";

  static std::string round(bool has_next) {
    std::string text;
    for (int k = 0; k < kDetectors; ++k) {
      const std::string detector = "D" + std::to_string(k);
      text += "detector(" + std::to_string(k) + ",0) " + detector + "\nerror(0.001) " + detector +
              (k == 0 ? " L0\n" : "\n");
      if (has_next)
        text += "error(0.001) " + detector + " D" + std::to_string(k + kDetectors) + "\n";
    }
    return text;
  }
  std::string dem() const { return (scratch_.path() / "wide.dem").string(); }
  std::string decoders() const override {
    const std::string shift = "shift_detectors(0,1) " + std::to_string(kDetectors) + "\n";
    std::ofstream(dem()) << round(true) << shift << "repeat 100 {\n" << round(true) << shift << "}\n" << round(false);
    return "decoders:\n  - id: 0\n    type: " + std::string(kWindows) + "\n    stream: true\n    dem_file: " + dem() +
           "\n";
  }
};

TEST_P(WideRounds, ArePlayedToTheEnd) {
  const auto report =
      play("--decoder-ids 0 --rounds 20 --cycle-us 0 --dem " + dem() + " --decoder " + std::string(kWindows));
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("rounds"), 20);
  EXPECT_EQ(report.at("shots_answered"), 1);
  EXPECT_EQ(report.at("mismatches"), 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, WideRounds,
                         testing::Values(shape{"Udp", "udp", CUDAQ_UDP_PROVIDER, "--port=0"},
                                         shape{"Shm", "shm", CUDAQ_SHM_PROVIDER, "--name= --unified"}),
                         [](const auto &one) { return std::string(one.param.name); });

} // namespace
} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
// The expected answers of `emulate` are those of the server's decoder, whatever it is; and a server that is BUSY.
#include "unittests/tools/common/two_terminals.h"

#include <fstream>

namespace cudaq::realtime::tools::test {
namespace {

std::string decoder_of(int id, const std::string &type, const std::string &model, const std::string &more = "") {
  return "  - {id: " + std::to_string(id) + ", type: '" + type + "', dem_file: " + CUDAQ_TEST_DATA + "/" + model +
         ".dem" + more + "}\n";
}

TEST(EmulatedDecoder, OfTheRingIsCheckedByItselfIfItIsNamed) {
  const std::string data = CUDAQ_TEST_DATA, own = " --dem " + data + "/surface_z_d3_p0.005.dem --in " + data +
                                                  "/surface_z_d3_p0.005.dets.b8 --obs_in " + data +
                                                  "/surface_z_d3_p0.005.obs.b8";
  const std::string ring = "emulate --json --transport ring --shots 300";
  for (const std::string &shots : {own, " --config d3 --data '" + data + "'"})
    for (const std::string &decoder : {std::string("lookup"), std::string(CUDAQ_TEST_LEAST_WEIGHT_PLUGIN)}) {
      const auto report = run_good_program(ring + shots + " --decoder " + decoder);
      ASSERT_FALSE(report.is_discarded());
      EXPECT_EQ(report.at("mismatches"), 0) << report.at("corrections_checked");
      EXPECT_EQ(report.at("corrections_checked"), "as expected (" + decoder + ", decoded here)");
    }
  const auto late = run_good_program(ring + own + " --decoder lookup:deadline_us=1000000");
  EXPECT_EQ(late.at("corrections_checked"), "not checked: the server has the decoder lookup:deadline_us=1000000, and "
                                            "it has a deadline, so its answers depend on time");
}

class OtherDecoders : public TwoTerminals {
protected:
  std::string decoders() const override {
    const std::string model = "surface_z_d3_p0.005";
    return "decoders:\n" + decoder_of(0, "bp-osd:osd_order=2", model) + decoder_of(1, "relay-bp", model) +
           decoder_of(2, "race:bp-osd|relay-bp", "surface_z_d3_p0.005") +
           decoder_of(3, "sliding-window:inner=bp-osd,commit=4,buffer=2", "surface_loop_d3_p0.004", ", stream: true");
  }
  static std::string loop() { return std::string(CUDAQ_TEST_DATA) + "/surface_loop_d3_p0.004.dem"; }
};

TEST_P(OtherDecoders, AreCheckedByTheSameDecoder) {
  for (const auto &[options, name] : {std::pair("--shots 300", "bp-osd:osd_order=2"),
                                      std::pair("--shots 300 --protocol server", "bp-osd:osd_order=2"),
                                      std::pair("--shots 300 --protocol server --decoder-ids 1", "relay-bp")}) {
    const auto report = emulate(options);
    ASSERT_FALSE(report.is_discarded()) << options;
    EXPECT_EQ(report.at("shots_answered"), 300) << options;
    EXPECT_EQ(report.at("mismatches"), 0) << options;
    EXPECT_EQ(report.at("server_decoder"), name);
    EXPECT_EQ(report.at("corrections_checked"), "as expected (" + std::string(name) + ", decoded here)");
  }
}

TEST_P(OtherDecoders, WhoseAnswersDependOnTimeAreNotChecked) {
  const auto report = emulate("--shots 50 --protocol server --decoder-ids 2");
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("mismatches"), nullptr);
  EXPECT_TRUE(
      contains(report.at("corrections_checked"), "not checked: the server has the decoder race:bp-osd|relay-bp"))
      << report.at("corrections_checked");
}

TEST_P(OtherDecoders, AreThoseOfTheUserIfOneIsNamed) {
  const program_result same = run_program(command("--config d3 --shots 300 --decoder bp-osd:osd_order=2"));
  EXPECT_EQ(same.exit_code, 0) << same.err;
  const program_result other =
      run_program(command("--config d3 --noise 0.005 --shots 1000 --decoder bp-osd:max_iterations=1,"
                          "osd_order=0"));
  EXPECT_EQ(other.exit_code, 1) << other.err;
  EXPECT_TRUE(contains(other.err, "give --decoder as the server has it")) << other.err;
  const program_result both =
      run_program(command("--decoder bp-osd --dem " + loop() + " --in /nowhere --predictions /nowhere"));
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_TRUE(contains(both.err, "it has no effect with --predictions")) << both.err;
}

TEST_P(OtherDecoders, OfAStreamGiveTheWindowsToo) {
  const auto report = play("--decoder-ids 3 --rounds 400 --cycle-us 50 --dem " + loop());
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("commit"), 4);
  EXPECT_EQ(report.at("buffer"), 2);
  EXPECT_EQ(report.at("mismatches"), 0);
  EXPECT_EQ(report.at("shots_answered"), 1);
}

INSTANTIATE_TEST_SUITE_P(Shapes, OtherDecoders, testing::Values(shape{"Udp", "udp", CUDAQ_UDP_PROVIDER, "--port=0"}),
                         [](const auto &one) { return std::string(one.param.name); });

/// A queue of one request, and eight requests at a time.
class BusyServer : public TwoTerminals {
protected:
  std::string decoders() const override {
    return "decoders:\n" + decoder_of(0, "bp-osd", "surface_z_d3_p0.005", ", queue_length: 1");
  }
};

TEST_P(BusyServer, GetsARefusedShotAgainAndBothSidesCountTheSame) {
  const auto report = emulate("--shots 2000 --window 8");
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("shots_answered"), 2000);
  EXPECT_EQ(report.at("error_statuses"), 0);
  EXPECT_EQ(report.at("busy_given_up"), 0);
  const auto busy = report.at("busy").get<std::uint64_t>();
  EXPECT_GT(busy, 0U);
  EXPECT_EQ(report.at("requests").get<std::uint64_t>(), 2000 + busy);
  const std::string page = counters_at(counters());
  EXPECT_TRUE(
      contains(page, "\ncudaq_decoder_answers_total{decoder=\"0\",status=\"busy\"} " + std::to_string(busy) + "\n"))
      << page;
  EXPECT_TRUE(contains(page, "\ncudaq_decoder_answers_total{decoder=\"0\",status=\"ok\"} 2000\n")) << page;
  EXPECT_FALSE(contains(page, "failed_one_shots"));
}

INSTANTIATE_TEST_SUITE_P(Shapes, BusyServer,
                         testing::Values(shape{"Udp", "udp", CUDAQ_UDP_PROVIDER, "--port=0 --unified --num-slots=16"}),
                         [](const auto &one) { return std::string(one.param.name); });

/// The configuration and the command of the page about streams.
class StreamOfThePage : public TwoTerminals {
protected:
  static std::string section() {
    const std::string page = read_file(CUDAQ_TEST_SERVER_PAGE);
    const std::size_t begin = page.find("\n## Streams\n");
    return page.substr(begin, page.find("\n## ", begin + 1) - begin);
  }
  static std::string with_model(std::string text) {
    const std::string model = "model.dem";
    if (const std::size_t at = text.find(model); at != std::string::npos)
      text.replace(at, model.size(), std::string(CUDAQ_TEST_DATA) + "/surface_loop_d3_p0.004.dem");
    return text;
  }
  std::string decoders() const override {
    const std::string text = section();
    const std::size_t begin = text.find("```text\ndecoders:") + 8;
    return with_model(text.substr(begin, text.find("```", begin) - begin));
  }
};

TEST_P(StreamOfThePage, IsPlayedByTheCommandOfThePage) {
  const std::string text = section(), prompt = "$ cudaq-realtime ", port = "--port 7000";
  const std::size_t begin = text.find(prompt + "emulate ");
  ASSERT_NE(begin, std::string::npos);
  std::string line = with_model(text.substr(begin + prompt.size(), text.find('\n', begin) - begin - prompt.size()));
  ASSERT_NE(line.find(port), std::string::npos) << line;
  line.replace(line.find(port), port.size(), where());
  const program_result r = run_program(line);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "commit 5 and buffer 5 rounds")) << r.out;
}

INSTANTIATE_TEST_SUITE_P(Shapes, StreamOfThePage, testing::Values(shape{"Udp", "udp", CUDAQ_UDP_PROVIDER, "--port=0"}),
                         [](const auto &one) { return std::string(one.param.name); });

// A server whose answers have gaps after the bits: `emulate` compares the bits.

class EmulatedGaps : public TwoTerminals {
protected:
  std::string decoders() const override {
    std::ofstream(path("model.dem")) << "error(0.1) D0 L0\nerror(0.05) D0 D1\nerror(0.01) D1\n";
    std::string events, wanted;
    for (int shot = 0; shot < 40; ++shot) {
      events += static_cast<char>(shot % 4);
      wanted += static_cast<char>(shot % 4 == 1 ? 1 : 0);
    }
    std::ofstream(path("events.b8")) << events;
    std::ofstream(path("wanted.b8")) << wanted;
    return "decoders:\n  - {id: 6, type: pymatching, dem_file: model.dem, decoder_custom_args: {confidence: 1}}\n";
  }
  std::string path(const std::string &name) const { return (scratch_.path() / name).string(); }
};

TEST_P(EmulatedGaps, AreNotComparedWithTheBits) {
  for (const std::string protocol : {"--protocol decode", "--protocol server --decoder-ids 6"}) {
    const auto r = play("--dem " + path("model.dem") + " --in " + path("events.b8") + " --predictions " +
                        path("wanted.b8") + " --shots 60 " + protocol);
    ASSERT_FALSE(r.is_discarded());
    EXPECT_EQ(r.at("shots_answered"), 60) << protocol;
    EXPECT_EQ(r.at("mismatches"), 0) << protocol;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, EmulatedGaps,
                         testing::Values(shape{"UdpRing", "udp", CUDAQ_UDP_PROVIDER, "--port=0"},
                                         shape{"ShmUnified", "shm", CUDAQ_SHM_PROVIDER, "--name= --unified"}),
                         [](const auto &one) { return std::string(one.param.name); });

// A server whose slots have another size than the model of `emulate` needs.

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

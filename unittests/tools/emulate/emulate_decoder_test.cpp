// SPDX-License-Identifier: Apache-2.0
// The expected answers of `emulate` are those of the server's decoder, whatever it is; and a server that is BUSY.
#include "unittests/tools/common/two_terminals.h"

namespace cudaq::realtime::tools::test {
namespace {

std::string decoder_of(int id, const std::string &type, const std::string &model, const std::string &more = "") {
  return "  - {id: " + std::to_string(id) + ", type: '" + type + "', dem_file: " + CUDAQ_TEST_DATA + "/" + model +
         ".dem" + more + "}\n";
}

TEST(EmulatedDecoder, ThatFindsNoSolutionHereEitherFailsInTheRateAndNotTheRun) {
  const auto report =
      run_good_program("emulate --json --transport ring --config d3 --shots 1000 --data '" +
                       std::string(CUDAQ_TEST_DATA) + "' --decoder relay-bp:pre_iter=2,num_sets=0,set_max_iter=1");
  ASSERT_FALSE(report.is_discarded());
  EXPECT_GT(report.at("not_converged"), 0);
  EXPECT_EQ(report.at("unanswered"), report.at("not_converged"));
  EXPECT_EQ(report.at("mismatches"), 0);
  EXPECT_GE(report.at("logical_errors"), report.at("unanswered"));
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

} // namespace
} // namespace cudaq::realtime::tools::test

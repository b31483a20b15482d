// SPDX-License-Identifier: Apache-2.0
// `serve` with decoders on the GPU (dispatch: device_graph) in one process, `emulate` in another: all answers are
// compared with the same decoder on the CPU.
#include "unittests/gpu/support/gpu_test.h"
#include "unittests/tools/common/two_terminals.h"

#include <thread>

namespace cudaq::realtime::test {
namespace {

using namespace cudaq::realtime::tools::test;

const std::string kModel = std::string(CUDAQ_TEST_DATA_DIR) + "/bp_osd/bicycle_72_r6_p0.003.dem";
const std::string kFirst = "relay-bp:mode=least_weight,num_sets=20",
                  kSecond = "relay-bp:mode=in_step,ensemble=4,num_sets=20,seed=3";

class ServeRelayBpGpu : public gpu_test {
protected:
  void prepare() override {
    if (contains(run_program("serve --config /dev/null").err, "no YAML parser"))
      GTEST_SKIP() << "this build has no YAML parser, so no server";
    std::ofstream(config()) << "decoders:\n" << decoder(0, kFirst) << decoder(1, kSecond);
    server_ = std::make_unique<running_program>(std::vector<std::string>{"serve", "--config", config(), "--counters",
                                                                         counters(), "--transport", CUDAQ_UDP_PROVIDER,
                                                                         "--", "--port=0"},
                                                err());
    const std::string ready = server_->line();
    ASSERT_TRUE(contains(ready, "QEC_DECODING_SERVER_READY")) << ready << read_file(err());
    port_ = value_in(ready, "port");
  }
  static std::string decoder(int id, const std::string &type) {
    return "  - {id: " + std::to_string(id) + ", type: '" + type + "', dem_file: " + kModel +
           ", dispatch: device_graph, cuda_device_id: " + std::to_string(test_device()) + "}\n";
  }
  std::string config() const { return (scratch_.path() / "decoders.yaml").string(); }
  std::filesystem::path err() const { return scratch_.path() / "serve.err"; }
  std::string counters() const { return (scratch_.path() / "counters").string(); }
  std::string command(const std::string &decoder, const std::string &options, const std::string &timeout = "30") const {
    return "emulate --json --timeout " + timeout + " --transport udp --port " + port_ + " --dem " + kModel +
           " --sample --seed 5 --decoder " + decoder + " " + options;
  }
  void expect_answers_of_the_cpu(const std::string &decoder, int shots, const std::string &options = "") const {
    const auto report = run_good_program(command(decoder, "--shots " + std::to_string(shots) + " " + options));
    ASSERT_FALSE(report.is_discarded());
    EXPECT_EQ(report.at("shots_answered"), shots);
    EXPECT_EQ(report.at("mismatches"), 0);
    EXPECT_EQ(report.at("lost"), 0);
  }

  scratch_folder scratch_;
  std::string port_;
  std::unique_ptr<running_program> server_;
};

TEST_F(ServeRelayBpGpu, GivesTheAnswersOfTheCpuFromBothDecodersOfOneGpu) {
  expect_answers_of_the_cpu(kFirst, 1000);
  expect_answers_of_the_cpu(kFirst, 200, "--protocol server --decoder-ids 0");
  expect_answers_of_the_cpu(kSecond, 200, "--protocol server --decoder-ids 1");
  server_->signal(SIGTERM);
  EXPECT_EQ(server_->wait(), 0) << read_file(err());
}

TEST_F(ServeRelayBpGpu, GivesThemDuringReloads) {
  std::thread player([&] { expect_answers_of_the_cpu(kFirst, 1000, "--rate 200"); });
  for (int reload = 0; reload < 3; ++reload) { // the new decoders take their places on the GPU beside the old ones
    server_->signal(SIGHUP);
    EXPECT_EQ(server_->line(), "QEC_DECODING_SERVER_CONFIG_APPLIED") << read_file(err());
  }
  player.join();
}

TEST_F(ServeRelayBpGpu, RefusesAReloadWithoutRoomOnTheGpuAndServesOn) {
  std::ofstream(config()) << "decoders:\n" << decoder(0, kFirst) << decoder(1, "relay-bp:mode=in_step,ensemble=1024");
  server_->signal(SIGHUP);
  EXPECT_EQ(server_->line(), "QEC_DECODING_SERVER_CONFIG_REJECTED old_config_active");
  EXPECT_TRUE(contains(read_file(err()), "multiprocessors, and each chain needs one for each block"))
      << read_file(err());
  expect_answers_of_the_cpu(kFirst, 100);
}

TEST_F(ServeRelayBpGpu, EndsInTheMiddleOfTheShots) {
  program_result client;
  std::thread player([&] { client = run_program(command(kFirst, "--shots 3000 --rate 100", "1")); }); // half a minute
  bool plays = false;
  for (int look = 0; look < 1000 && !plays; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::string text = counters_at(counters()), shots = "cudaq_decoder_shots_total{decoder=\"0\"} ";
    plays = contains(text, shots) && !contains(text, shots + "0\n");
  }
  EXPECT_TRUE(plays);
  server_->signal(SIGTERM);
  EXPECT_EQ(server_->wait(), 0) << read_file(err());
  player.join();
  EXPECT_NE(client.exit_code, 0) << "its server has ended";
}

} // namespace
} // namespace cudaq::realtime::test

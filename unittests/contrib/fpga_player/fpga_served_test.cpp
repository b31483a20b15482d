// SPDX-License-Identifier: Apache-2.0
// Three programs: `cudaq-realtime serve`, `emulate` as an FPGA, and `playback` as its host. And a host of the test's
// own, which knows the registers from the document.
#include "contrib/fpga_player/control_client.h"
#include "contrib/fpga_player/fpga_registers.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/json_schema.h"
#include "unittests/tools/common/served_program.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace cudaq::realtime::tools::test {
namespace {

/// Runs cudaq-realtime-fpga-player.
program_result run_player(const std::string &arguments) { return run_program(arguments, CUDAQ_FPGA_PLAYER_PATH); }
nlohmann::json run_good_player(const std::string &arguments) {
  return run_good_program(arguments, CUDAQ_FPGA_PLAYER_PATH);
}

/// `emulate --control-port 0` with these options more.
class running_fpga {
public:
  running_fpga(const std::filesystem::path &folder, const std::vector<std::string> &options,
               const std::string &timeout = "20")
      : report_(folder / "fpga.json"), err_(folder / "fpga.err") {
    std::vector<std::string> words{"emulate", "--control-port", "0", "--json", report_.string(), "--timeout", timeout};
    words.insert(words.end(), options.begin(), options.end());
    program_ = std::make_unique<running_program>(words, err_, "", CUDAQ_FPGA_PLAYER_PATH);
    ready = program_->line();
    EXPECT_TRUE(contains(ready, "CUDAQ_REALTIME_EMULATOR_READY")) << ready << read_file(err_);
    port = value_in(ready, "control_port");
  }
  /// Ends it and returns its report.
  nlohmann::json end(int status = 0) {
    program_->signal(SIGTERM);
    EXPECT_EQ(program_->wait(), status) << read_file(err_);
    return nlohmann::json::parse(read_file(report_), nullptr, false);
  }
  std::string err() const { return read_file(err_); }

  std::string ready, port;

private:
  const std::filesystem::path report_, err_;
  std::unique_ptr<running_program> program_;
};

struct fpga_shape {
  const char *name, *transport, *library, *options;
  std::uint32_t page;
  const char *mtu;
};
void PrintTo(const fpga_shape &s, std::ostream *out) { *out << s.name; }

class FpgaServed : public testing::TestWithParam<fpga_shape> {
protected:
  void SetUp() override {
    if (contains(run_program("serve --config /dev/null").err, "no YAML parser"))
      GTEST_SKIP() << "this build has no YAML parser, so no server";
    const auto config = scratch_.path() / "decoders.yaml";
    std::ofstream(config) << "decoders:\n  - id: 0\n    type: lookup\n    dem_file: " << CUDAQ_TEST_DATA
                          << "/surface_z_d3_p0.005.dem\n";
    std::vector<std::string> words = {"serve", "--config", config.string(), "--transport", GetParam().library, "--"};
    std::istringstream options(GetParam().options);
    for (std::string option; options >> option;)
      words.push_back(option);
    server_ = std::make_unique<running_program>(words, scratch_.path() / "serve.err");
    const std::string ready = server_->line();
    ASSERT_TRUE(contains(ready, "QEC_DECODING_SERVER_READY")) << ready << read_file(scratch_.path() / "serve.err");
    port_ = value_in(ready, "port");
  }

  std::vector<std::string> fpga_options(const std::vector<std::string> &more = {}) const {
    std::vector<std::string> all{"--transport", GetParam().transport, "--mtu", GetParam().mtu};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string playback_of(const running_fpga &fpga) const {
    return "playback --emulator --timeout 20 --num-pages 8 --page-size " + std::to_string(GetParam().page) +
           " --control-port " + fpga.port + " --bridge-port " + port_ + " ";
  }

  scratch_folder scratch_;
  std::string port_;
  std::unique_ptr<running_program> server_;
};

TEST_P(FpgaServed, PlaysBackRecordedShotsAndChecksTheRecord) {
  running_fpga fpga(scratch_.path(), fpga_options({"--ila", (scratch_.path() / "f.csv").string()}));
  const auto j =
      run_good_player(playback_of(fpga) + "--no-verify --json --ila " + (scratch_.path() / "p.csv").string());
  ASSERT_FALSE(j.is_discarded());
  EXPECT_EQ(json_schema(nlohmann::json::parse(read_file(CUDAQ_REPORT_SCHEMA))).problems_of(j),
            std::vector<std::string>{});
  EXPECT_EQ(j.at("answered"), 100);
  EXPECT_EQ(j.at("round_trip_ns").at("count"), 100);
  EXPECT_GT(j.at("round_trip_ns").at("min"), 0);
  const std::string played = read_file(scratch_.path() / "p.csv");
  EXPECT_TRUE(played.starts_with("request_id,send_ns,answer_ns,round_trip_ns,status\n0,")) << played.substr(0, 200);
  EXPECT_EQ(std::count(played.begin(), played.end(), '\n'), 101);
  const auto report = fpga.end();
  EXPECT_EQ(report.at("passes"), 1);
  EXPECT_EQ(report.at("shots_answered"), 100);
  EXPECT_EQ(report.at("round_trip_ns").at("min"), j.at("round_trip_ns").at("min")) << "the same two clocks";
  EXPECT_EQ(read_file(scratch_.path() / "f.csv"), played) << "the record that was read back, and the FPGA's own";
}

// The answers are those of `decode` with the same decoder.
TEST_P(FpgaServed, FindsTheAnswersOfTheDecoderAndNamesAWrongOne) {
  const std::string data(CUDAQ_TEST_DATA), set = data + "/surface_z_d3_p0.005";
  const auto predictions = scratch_.path() / "predictions.b8";
  const program_result decoded =
      run_program("decode --decoder lookup --dem " + set + ".dem --in " + set + ".dets.b8 --in_format b8 --out " +
                  predictions.string() + " --out_format b8");
  ASSERT_EQ(decoded.exit_code, 0) << decoded.err;
  running_fpga fpga(scratch_.path(), fpga_options());
  const std::string where = playback_of(fpga) + "--rate 0 --num-messages 200 --dem " + set + ".dem --in " + set +
                            ".dets.b8 --in_format b8 --predictions_format b8 --json --predictions ";
  const auto j = run_good_player(where + predictions.string());
  ASSERT_FALSE(j.is_discarded());
  EXPECT_EQ(j.at("verified"), true);
  EXPECT_EQ(j.at("wrong"), 0);
  std::string wrong = read_file(predictions);
  wrong[17] = static_cast<char>(wrong[17] ^ 1);
  std::ofstream(predictions, std::ios::binary) << wrong;
  const program_result bad = run_player(where + predictions.string());
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_EQ(bad.json().at("wrong"), 1);
  EXPECT_TRUE(contains(bad.err, "message 17: the result is not the expected one")) << bad.err;
  EXPECT_EQ(fpga.end().at("passes"), 2);
}

TEST_P(FpgaServed, PlaysForAHostThatKnowsTheRegistersOnly) {
  running_fpga fpga(scratch_.path(), fpga_options({"--vp-address", "0x2000"}));
  control_client host("127.0.0.1", static_cast<std::uint32_t>(std::stoul(fpga.port)), std::chrono::seconds(20));
  // Two requests of an unknown function: it is answered with a status.
  const register_value words[] = {
      {0x2000, 0x11},   {0x2004, 0x1234},         {0x2010, GetParam().page / 128},
      {0x2014, 7},      {0x2028, 0x7F000001},     {0x202C, static_cast<std::uint32_t>(std::stoul(port_))},
      {0x080C, 1},      {0x50000008, 32200},      {0x5000000C, 24},
      {0x50000010, 2},  {0x50100000, 0x43555152}, {0x50100800, 0xD0C},
      {0x50101800, 41}, {0x50100004, 0x43555152}, {0x50100804, 0xD0C},
      {0x50101804, 42}};
  host.write(words);
  host.write(0x40000000, 1);
  host.write(0x50000004, 0xD);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const std::uint32_t rows = GetParam().page / 64, second = 4 * rows;
  while (host.read(0x40000084) < 2 * rows && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(host.read(0x40000084), 2 * rows) << "two answers of the size of a slot, in rows of 64 bytes";
  EXPECT_EQ(host.read(0x40100000), 0x43555153u) << "the magic number of a response";
  EXPECT_NE(host.read(0x40100000 + 0x8000), 0u) << "its status";
  EXPECT_EQ(host.read(0x40100000 + 3 * 0x8000), 41u) << "its request id";
  EXPECT_EQ(host.read(0x40100000 + 3 * 0x8000 + second), 42u);
  EXPECT_EQ(host.read(0x40100000 + 16 * 0x8000 + second - 4) & 0x1FF, 0x103u) << "valid, last, 64 bytes";
  fpga.end();
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, FpgaServed,
    testing::Values(fpga_shape{"Roce", "roce", CUDAQ_ROCE_PROVIDER, "--port=0 --peer-port=0", 256, "4096"},
                    fpga_shape{"RoceManyPackets", "roce", CUDAQ_ROCE_PROVIDER,
                               "--port=0 --peer-port=0 --mtu=256 --slot-size=640 --unified", 640, "256"},
                    fpga_shape{"Udp", "udp", CUDAQ_UDP_PROVIDER, "--port=0", 256, "4096"}),
    [](const auto &one) { return std::string(one.param.name); });

/// A server of the test's own: increments or returns what it gets, in frames of 256 bytes.
class simple_server {
public:
  explicit simple_server(bool forwards) : forwards_(forwards), fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr *>(&address), length), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr *>(&address), &length), 0);
    port = ntohs(address.sin_port);
    thread_ = std::jthread([this](const std::stop_token &stop) { serve(stop); });
  }
  ~simple_server() {
    thread_.request_stop();
    thread_.join();
    close(fd_);
  }
  std::uint16_t port = 0;

private:
  void serve(const std::stop_token &stop) {
    while (!stop.stop_requested()) {
      pollfd ready{fd_, POLLIN, 0};
      if (poll(&ready, 1, 20) <= 0)
        continue;
      bytes frame(256);
      sockaddr_in from{};
      socklen_t length = sizeof from;
      const ssize_t n = recvfrom(fd_, frame.data(), frame.size(), 0, reinterpret_cast<sockaddr *>(&from), &length);
      if (n < static_cast<ssize_t>(CUDAQ_RPC_HEADER_SIZE))
        continue;
      if (!forwards_) {
        cudaq_rpc_header_t request;
        std::memcpy(&request, frame.data(), sizeof request);
        const cudaq_rpc_response_t answer = {CUDAQ_RPC_MAGIC_RESPONSE, 0, request.arg_len, request.request_id,
                                             request.ptp_timestamp};
        std::memcpy(frame.data(), &answer, sizeof answer);
        for (std::uint32_t k = 0; k < request.arg_len; ++k)
          ++frame[sizeof answer + k];
      }
      (void)sendto(fd_, frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr *>(&from), length);
    }
  }

  const bool forwards_;
  const int fd_;
  std::jthread thread_;
};

TEST(Playback, ChecksMadeUpBytesOfAServerThatIncrementsAndOfOneThatForwards) {
  scratch_folder scratch;
  running_fpga fpga(scratch.path(), {"--transport", "udp"});
  for (const bool forwards : {false, true}) {
    simple_server server(forwards);
    const std::string where = "playback --timeout 20 --payload-size 40 --page-size 256 --json --control-port " +
                              fpga.port + " --bridge-port " + std::to_string(server.port);
    const auto j = run_good_player(where + (forwards ? " --forward" : ""));
    ASSERT_FALSE(j.is_discarded());
    EXPECT_EQ(j.at("verified"), true);
    EXPECT_EQ(j.at("answered"), 100);
    const program_result other = run_player(where + (forwards ? "" : " --forward"));
    EXPECT_EQ(other.exit_code, 1);
    EXPECT_EQ(other.json().at("wrong"), 100);
  }
  EXPECT_EQ(fpga.end().at("passes"), 4);
}

TEST(Playback, SaysWhatIsSilent) {
  scratch_folder scratch;
  const program_result no_fpga = run_player("playback --timeout 0.5 --control-port 9");
  EXPECT_EQ(no_fpga.exit_code, 3);
  EXPECT_TRUE(contains(no_fpga.err, "no reply from 127.0.0.1:9 within 0.5 s")) << no_fpga.err;
  running_fpga fpga(scratch.path(), {"--transport", "udp"}, "0.2");
  const program_result no_server =
      run_player("playback --emulator --timeout 20 --page-size 256 --bridge-port 9 --json --control-port " + fpga.port);
  EXPECT_EQ(no_server.exit_code, 1);
  EXPECT_TRUE(contains(no_server.err, "100 messages without a recorded answer")) << no_server.err;
  const program_result refused =
      run_player("playback --emulator --timeout 20 --bridge-buffer 4096 --control-port " + fpga.port);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(contains(refused.err, "the player refuses the pass")) << refused.err;
  const auto report = fpga.end(1);
  EXPECT_EQ(report.at("passes_silent"), 1);
  EXPECT_EQ(report.at("passes_refused"), 1);
  EXPECT_TRUE(contains(fpga.err(), "PAGE_LSB and PAGE_MSB must be 0")) << fpga.err();
}

TEST(Playback, RefusesWhatItCannotPlay) {
  EXPECT_TRUE(contains(run_player("playback --page-size 200").err, "--page-size 200: a multiple of 128"));
  EXPECT_TRUE(contains(run_player("playback --config d13 --page-size 256").err, "--page-size 256: a message has"));
  EXPECT_TRUE(contains(run_player("playback --config d13 --page-size 384 --num-messages 103").err,
                       "--num-messages 103: the player's memory holds 102"));
  EXPECT_EQ(run_player("playback --function f").exit_code, 2);
  EXPECT_TRUE(contains(run_player("playback --rate 0.05").err, "--rate 0.05: the player's timer holds at most 13.3 s"));
  EXPECT_TRUE(contains(run_player("playback --emulator --bridge-buffer 77").err, "a multiple of 128 is accepted"));
  EXPECT_TRUE(contains(run_player("playback --vp-address 3").err, "3 is not a multiple of 4"));
  EXPECT_EQ(run_player("playback --payload-size 8 --config d3").exit_code, 2);
  EXPECT_EQ(run_player("emulate --control-port 0 --transport shm").exit_code, 2);
  EXPECT_EQ(run_player("emulate --control-port 0 --shots 5").exit_code, 2);
  const program_result overlap = run_player("emulate --control-port 0 --vp-address 0x804");
  EXPECT_EQ(overlap.exit_code, 2);
  EXPECT_TRUE(contains(overlap.err, "do not overlap")) << overlap.err;
}

} // namespace
} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
// `emulate` with repeats beside a server that is killed and started again, and beside none.
#include "unittests/tools/common/two_terminals.h"
#include "unittests/tools/serve/serve_fixture.h"

namespace cudaq::realtime::tools::test {
namespace {

class EmulateRestart : public Serve {
protected:
  std::unique_ptr<running_program> serve(const std::string &port) const {
    return std::make_unique<running_program>(std::vector<std::string>{"serve", "--config", yaml(), "--counters",
                                                                      counters(), "--transport", CUDAQ_UDP_PROVIDER,
                                                                      "--", "--port", port},
                                             err());
  }
  std::string counters() const { return folder_.path() / "counters"; }
  /// The server has had 50 requests for decoder 0. False: not before the limit.
  bool has_served() const {
    const std::string name = "\ncudaq_decoder_requests_total{decoder=\"0\"} ";
    const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimitMs);
    while (std::chrono::steady_clock::now() < limit) {
      const std::string text = counters_at(counters());
      if (const std::size_t at = text.find(name);
          at != std::string::npos && std::stoi(text.substr(at + name.size())) > 50)
        return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }
};

TEST_F(EmulateRestart, SaysThatTheServerWasRestarted) {
  write(yaml(),
        std::string("decoders: [{id: 0, type: lookup, dem_file: ") + CUDAQ_TEST_DATA + "/surface_z_d3_p0.005.dem}]\n");
  const std::string port = std::to_string(unused_udp_port());
  auto server = serve(port);
  ASSERT_NE(server->line(), "") << read_file(err());
  const std::string json = folder_.path() / "run.json";
  running_program client({"emulate", "--transport", "udp", "--port", port, "--protocol", "server", "--config", "d3",
                          "--duration", "3600", "--rate", "500", "--retry-ms", "20", "--timeout", "120", "--json",
                          json},
                         folder_.path() / "client.err");
  ASSERT_TRUE(has_served()) << read_file(folder_.path() / "client.err");
  client.signal(SIGSTOP); // it gives up after 3 s of refusals, and a server starts slower than that on a busy machine
  server->signal(SIGKILL);
  server->wait();
  server = serve(port);
  ASSERT_NE(server->line(), "") << read_file(err());
  client.signal(SIGCONT);
  EXPECT_TRUE(has_served()) << read_file(folder_.path() / "client.err");
  client.signal(SIGTERM);
  client.wait();
  const auto report = nlohmann::json::parse(read_file(json), nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << read_file(folder_.path() / "client.err");
  EXPECT_GT(report.at("error_statuses"), 0) << report.dump(2);
  EXPECT_EQ(report.at("mismatches"), 0) << "no correction was made from two halves";
  EXPECT_TRUE(contains(report.at("notes").dump(), "the server was restarted")) << report.dump(2);
}

TEST_F(EmulateRestart, DoesNotRepeatForTheWholeTimeoutToAPortWhereNothingListens) {
  const std::uint32_t port = unused_udp_port();
  const auto begin = std::chrono::steady_clock::now();
  const program_result r =
      run_program("emulate --timeout 600 --retry-ms 20 --config d3 --port " + std::to_string(port));
  EXPECT_TRUE(r.exit_code == 3 || r.exit_code == 1) << r.exit_code << r.err;
  EXPECT_TRUE(contains(r.err, "no server listens there")) << r.err;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(250));
}

} // namespace
} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
// `emulate` with repeats beside a server that is killed and started again, and beside none.
#include "unittests/tools/emulate/two_terminals.h"
#include "unittests/tools/serve/serve_fixture.h"

namespace cudaq::realtime::tools::test {
namespace {

class EmulateRestart : public Serve {
protected:
  std::unique_ptr<running_program> serve(const std::string &port) const {
    return std::make_unique<running_program>(
        std::vector<std::string>{"serve", "--config", yaml(), "--transport", CUDAQ_UDP_PROVIDER, "--", "--port", port},
        err());
  }
};

TEST_F(EmulateRestart, SaysThatTheServerWasRestarted) {
  write(yaml(),
        std::string("decoders: [{id: 0, type: lookup, dem_file: ") + CUDAQ_TEST_DATA + "/surface_z_d3_p0.005.dem}]\n");
  auto server = serve("0");
  const std::string port = value_in(server->line(), "port");
  ASSERT_NE(port, "") << read_file(err());
  const std::string json = folder_.path() / "run.json";
  running_program client({"emulate", "--transport", "udp", "--port", port, "--protocol", "server", "--config", "d3",
                          "--duration", "3600", "--rate", "500", "--retry-ms", "20", "--json", json},
                         folder_.path() / "client.err");
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimitMs);
  while (!client.catches(SIGTERM) && client.runs() && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::this_thread::sleep_for(std::chrono::milliseconds(300)); // some shots
  server->signal(SIGKILL);
  server->wait();
  server = serve(port);
  ASSERT_NE(server->line(), "") << read_file(err());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
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
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(100));
}

} // namespace
} // namespace cudaq::realtime::tools::test

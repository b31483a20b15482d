// SPDX-License-Identifier: Apache-2.0
// serve --check: what it accepts and refuses is what the server would.
#include "unittests/tools/common/json_schema.h"
#include "unittests/tools/serve/serve_fixture.h"

namespace cudaq::realtime::tools::test {
namespace {

class ServeCheck : public Serve {
protected:
  program_result check(const std::string &more = "") const {
    return run_program("serve --check '" + yaml().string() + "'" + more);
  }
};

TEST_F(ServeCheck, AcceptsAConfigurationInOneLineAndOpensNoPort) {
  detail::udp_address address;
  detail::udp_socket other; // has the port of the configuration
  ASSERT_TRUE(detail::udp_address_of("address", "127.0.0.1", 0, address).ok());
  ASSERT_TRUE(other.open(address, 0).ok());
  write(yaml(), config(0, "transport: {provider: udp, args: [--port=" + std::to_string(other.port()) + "]}\n"));
  EXPECT_NE(run_program("serve --config '" + yaml().string() + "'").exit_code, 0) << "the port is in use";
  const program_result run = check();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "QEC_DECODING_SERVER_CONFIG_GOOD decoders=1 transport=udp\n");
  EXPECT_EQ(run.err, "");
}

TEST_F(ServeCheck, NamesTheDecodersInItsReport) {
  const auto report = check(" --json").json();
  EXPECT_EQ(json_schema(nlohmann::json::parse(read_file(CUDAQ_REPORT_SCHEMA))).problems_of(report),
            std::vector<std::string>{});
  ASSERT_EQ(report.at("decoders").size(), 1U);
  EXPECT_EQ(report.at("decoders")[0].at("id"), 6);
  EXPECT_EQ(report.at("decoders")[0].at("decoder"), "lookup");
}

TEST_F(ServeCheck, RefusesWhatTheServerRefusesWithTheSameTextAndStatus) {
  const std::string one = "decoders:\n  - id: 6\n    dem: 'error(0.1) D0 L0'\n    type: ";
  const std::pair<std::string, std::string> refused[] = {
      {"decoders: [\n", "not YAML"},
      {"decoders: [{id: 6, type: mwpm}]\n", "mwpm"},
      {one + "/nonexistent/plugin.so\n", "plugin.so"},
      {one + "lookup\n    queue_length: -1\n", "queue_length"},
      {one + "lookup\n    dem_file: model.dem\n", "more than one model"},
      {"decoders:\n  - {id: 6, type: pymatching, dem: 'error(0.1) D0 D1 D2 L0'}\n", "decoders[0] (id 6): "},
      {one + CUDAQ_TEST_SOCKET_PROVIDER + "\n", "cudaq_qec_decoder_plugin_get"},
      {one + "lookup\n  - {id: 6, type: lookup, dem: 'error(0.1) D0 L0'}\n", "id"},
      {one + "lookup\n    queue_length: 65536\n    measurements: 1048576\n    D_sparse: [0, -1]\n", "MiB, at most"}};
  for (const auto &[text, reason] : refused) {
    write(yaml(), text);
    const program_result served = run_program("serve --transport udp --config '" + yaml().string() + "'");
    const program_result checked = check();
    ASSERT_NE(served.exit_code, 0) << text;
    EXPECT_EQ(checked.exit_code, served.exit_code) << text;
    EXPECT_TRUE(contains(checked.err, reason)) << checked.err;
    std::string as_served = checked.err;
    const std::size_t option = as_served.find("--check");
    ASSERT_NE(option, std::string::npos) << checked.err;
    as_served.replace(option, std::strlen("--check"), "--config");
    EXPECT_EQ(as_served, served.err);
  }
}

TEST_F(ServeCheck, NamesFilesBesideTheConfigurationWithOneDotOnly) {
  const auto check_here = [this](const std::string &type, const std::string &model_of) {
    write(yaml(), "decoders:\n  - {id: 6, type: " + type + ", " + model_of + "}\n");
    return run_program("-C '" + folder_.path().string() + "' '" + CUDAQ_TOOL_PATH +
                           "' serve --check decoders.yaml --json",
                       "/usr/bin/env");
  };
  std::filesystem::create_symlink(CUDAQ_TEST_STUCK_DECODER, folder_.path() / "plugin.so");
  const program_result good = check_here("./plugin.so", "dem: 'error(0.1) D0 L0'");
  ASSERT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.json().at("decoders")[0].at("decoder"), "./plugin.so");
  for (const auto &[type, model_of] :
       {std::pair("./missing.so", "dem: 'error(0.1) D0 L0'"), std::pair("lookup", "dem_file: ./missing.dem")}) {
    const program_result bad = check_here(type, model_of);
    EXPECT_EQ(bad.exit_code, 2);
    EXPECT_TRUE(contains(bad.err, " ./missing.")) << bad.err;
    EXPECT_FALSE(contains(bad.err, "././")) << bad.err;
  }
}

TEST_F(ServeCheck, IsNotTogetherWithAConfigurationToServe) {
  const program_result run = check(" --config other.yaml");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(contains(run.err, "--check")) << run.err;
}

} // namespace
} // namespace cudaq::realtime::tools::test

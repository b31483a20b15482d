// SPDX-License-Identifier: Apache-2.0
// The unit file for systemd agrees with the program.
#include "unittests/tools/serve/serve_fixture.h"

#include <map>
#include <regex>
#include <sstream>

namespace cudaq::realtime::tools::test {
namespace {

class UnitFile : public Serve {
protected:
  /// All values of each key, in their order.
  static std::map<std::string, std::vector<std::string>> settings() {
    std::map<std::string, std::vector<std::string>> found;
    std::istringstream lines(read_file(CUDAQ_TEST_UNIT_FILE));
    for (std::string line; std::getline(lines, line);)
      if (const std::size_t equals = line.find('='); !line.starts_with('#') && equals != std::string::npos)
        found[line.substr(0, equals)].push_back(line.substr(equals + 1));
    return found;
  }
  /// The words after the program; paths of the system become those of this test.
  std::vector<std::string> words(const std::string &command) const {
    std::istringstream in(command);
    std::string word;
    in >> word;
    EXPECT_EQ(word, "cudaq-realtime");
    std::vector<std::string> all;
    while (in >> word)
      all.push_back(word.starts_with("/etc/")   ? yaml().string()
                    : word.starts_with("/run/") ? counters().string()
                                                : word);
    return all;
  }
  std::filesystem::path counters() const { return folder_.path() / "counters"; }
};

TEST_F(UnitFile, StartsChecksAndEndsTheServerWithinItsLimits) {
  auto unit = settings();
  write(yaml(), config(0, "transport: {provider: udp, args: [--port=0]}\n"));
  const notified_socket manager((folder_.path() / "notify").string());
  running_program server(words(unit["ExecStart"].at(0)), err(), manager.path());
  EXPECT_TRUE(manager.next().starts_with("READY=1\n")) << read_file(err());
  EXPECT_TRUE(contains(counters_at(counters()), "cudaq_server_processed_total 0\n"));
  running_program check(words(unit["ExecReload"].at(0)), err());
  EXPECT_EQ(check.wait(), 0) << read_file(err());
  ASSERT_EQ(unit["KillSignal"], std::vector<std::string>{"SIGTERM"});
  server.signal(SIGTERM);
  EXPECT_EQ(manager.next(), "STOPPING=1");
  EXPECT_EQ(server.wait(), 0) << read_file(err());

  const std::string help = run_program("serve --help").out;
  std::smatch limit;
  ASSERT_TRUE(std::regex_search(help, limit, std::regex("--end-limit [^=\n]*=([0-9.]+)"))) << help;
  EXPECT_GE(std::stod(unit["TimeoutStopSec"].at(0)), std::stod(limit[1]) + 5) << "3 s after the limit, and some time";
}

TEST_F(UnitFile, IsNotRestartedForAWrongConfigurationOnly) {
  auto unit = settings();
  write(yaml(), "decoders: [\n");
  running_program wrong(words(unit["ExecStart"].at(0)), err());
  EXPECT_EQ(std::to_string(wrong.wait()), unit["RestartPreventExitStatus"].at(0));
  EXPECT_EQ(unit["Restart"], std::vector<std::string>{"on-failure"});
}

TEST_F(UnitFile, IsOneThatSystemdUnderstands) {
  if (std::system("systemd-analyze --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "no systemd-analyze on this machine";
  const auto copy = folder_.path() / "cudaq-realtime-serve.service";
  std::string text = read_file(CUDAQ_TEST_UNIT_FILE);
  for (std::size_t at = 0; (at = text.find("=cudaq-realtime serve", at)) != std::string::npos; ++at)
    text.replace(at + 1, std::strlen("cudaq-realtime"), CUDAQ_TOOL_PATH);
  write(copy, text);
  const program_result run = run_program("verify '" + copy.string() + "'", "systemd-analyze");
  // It may also print what is wrong with units of the machine.
  EXPECT_FALSE(contains(run.err, "cudaq-realtime-serve.service")) << run.err;
  write(copy, text + "\n[Service]\nRestartSec=never\n");
  EXPECT_TRUE(
      contains(run_program("verify '" + copy.string() + "'", "systemd-analyze").err, "cudaq-realtime-serve.service"))
      << "it reads the file";
}

} // namespace
} // namespace cudaq::realtime::tools::test

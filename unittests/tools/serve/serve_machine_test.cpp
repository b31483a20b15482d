// SPDX-License-Identifier: Apache-2.0
// The server and its surroundings: plug-ins, the realtime section, the unit of systemd.
#include "unittests/support/program_paths.h"
#include "unittests/tools/serve/serve_fixture.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sched.h>
#include <sstream>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <thread>

namespace cudaq::realtime::tools::test {
namespace {

// `serve` with a plug-in: where its path begins, and what the log says if it breaks its contract.

class ServePlugins : public Serve {
protected:
  void SetUp() override {
    Serve::SetUp();
    std::filesystem::copy_file(CUDAQ_TEST_BREAKING_PLUGIN, folder_.path() / "breaking.so");
  }
  static std::string plugin_config(const std::string &type) {
    return "decoders:\n  - id: 6\n    type: " + type + "\n    dem: |\n" + model(0);
  }
};

TEST_F(ServePlugins, ARelativePathBeginsInTheFolderOfTheConfiguration) {
  write(yaml(), plugin_config("./breaking.so")); // the test runs in another folder
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  EXPECT_EQ(peer.call(kOneShot, {0b0110}).result, bytes{0b0110});
}

TEST_F(ServePlugins, ABrokenPromiseIsInTheLogAndInTheReport) {
  write(yaml(), plugin_config("./breaking.so:break=status"));
  const std::string report = (folder_.path() / "report.json").string();
  running_program server(arguments({"--json", report}), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  EXPECT_EQ(peer.call(kEnqueue, enqueue(0, 0b0101)).status, 3);
  EXPECT_EQ(peer.call(kOneShot, {0b0110}).status, 5);
  const std::string text = "internal error of the decoder: plug-in breaking: decode returned 17, accepted: 0, 3, 5, 7";
  for (int wait = 0; wait < kLimitMs / 50 && !contains(read_file(err()), text); ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(contains(read_file(err()), "cudaq-realtime: decoder 6: ")) << read_file(err());
  EXPECT_TRUE(contains(read_file(err()), "; the last one: " + text)) << read_file(err());
  server.signal(SIGTERM);
  while (server.line() != "")
    ;
  EXPECT_EQ(server.wait(), 0) << read_file(err());
  const auto j = nlohmann::json::parse(read_file(report));
  EXPECT_EQ(j["decoders"][0]["failed_decodes"], 2);
  EXPECT_EQ(j["decoders"][0]["last_failure"], text);
}

TEST_F(ServePlugins, AServerThatEndsAtOnceSaysWhyADecodeFailed) {
  write(yaml(), plugin_config("./breaking.so:break=status"));
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  for (int shot = 0; shot < 3; ++shot) // a line comes once a second
    EXPECT_EQ(peer.call(kOneShot, {0b0110}).status, 5);
  server.signal(SIGTERM);
  while (server.line() != "")
    ;
  EXPECT_EQ(server.wait(), 0) << read_file(err());
  EXPECT_TRUE(contains(read_file(err()), "failed decodes: 3; the last one: internal error of the decoder: plug-in "
                                         "breaking: decode returned 17"))
      << read_file(err());
}

TEST_F(ServePlugins, TheFaultOfAMemberIsInTheLogWhereTheOtherOneDoesNotConverge) {
  const std::string broken = (folder_.path() / "breaking.so").string() + "(break=status)";
  write(yaml(), plugin_config("race:" + broken + "|" + CUDAQ_TEST_LEAST_WEIGHT_PLUGIN + "(steps=1)"));
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  EXPECT_EQ(socket_peer(socket()).call(kOneShot, {0b0110}).status, 7) << "one step is not enough";
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << read_file(err());
  const std::string log = read_file(err());
  EXPECT_TRUE(contains(log,
                       "failed decodes: 2, 1 of them not converged; the last of the others: of a race, whose other "
                       "members go on: member "))
      << log;
  EXPECT_TRUE(contains(log, "plug-in breaking: decode_until returned 17")) << log;
}

// Another file takes the name of the plug-in between two reloads, as a linker or `install` does it. The requests go on.
TEST_F(ServePlugins, AReloadTakesTheNewFileWhileRequestsRun) {
  const auto put = [&](const char *library) {
    std::filesystem::copy_file(library, folder_.path() / "fresh.so");
    std::filesystem::rename(folder_.path() / "fresh.so", folder_.path() / "plugin.so");
  };
  const auto write_config = [&](unsigned shift, const std::string &settings) {
    write(yaml(), "decoders:\n  - id: 6\n    type: ./plugin.so" + settings + "\n    dem: |\n" + model(shift));
  };
  put(CUDAQ_TEST_BREAKING_PLUGIN);
  write_config(0, "");
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  std::uint64_t counter = 0;
  for (unsigned reload = 1; reload <= 6; ++reload) {
    put(reload % 2 != 0 ? CUDAQ_TEST_LEAST_WEIGHT_PLUGIN : CUDAQ_TEST_BREAKING_PLUGIN);
    write_config(reload % 2, reload % 2 != 0 ? ":steps=1000" : ":break=nothing"); // each is of one of the two only
    ASSERT_NO_FATAL_FAILURE(reload_under_requests(server, peer, counter, reload % 2));
  }
  put(CUDAQ_TEST_LEAST_WEIGHT_PLUGIN);
  server.signal(SIGHUP);
  EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_REJECTED old_config_active") << "it has no setting `break`";
  EXPECT_TRUE(contains(read_file(err()), "setting break=nothing: the only one is steps=N")) << read_file(err());
  ASSERT_EQ(peer.call(kEnqueue, enqueue(counter++, 1)).status, 0);
  EXPECT_EQ(peer.call(kGet, get()).result, bytes{1}) << "the old decoder keeps the code of its file";
}

// A copy of the plug-in has not ended, or its file is gone: the server goes on, and says that a start would fail.
TEST_F(ServePlugins, AReloadWithoutAWholeFileIsRejectedAndTheServerGoesOn) {
  const auto plugin = folder_.path() / "breaking.so";
  const std::string whole = read_file(plugin);
  write(yaml(), plugin_config("./breaking.so"));
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  const auto expect_rejected = [&](const std::string &why) {
    server.signal(SIGHUP);
    EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_REJECTED old_config_active") << why;
    EXPECT_TRUE(contains(read_file(err()), why)) << read_file(err());
    EXPECT_EQ(peer.call(kOneShot, {0b0110}).result, bytes{0b0110});
  };
  std::filesystem::remove(plugin);
  expect_rejected("breaking.so: cannot open shared object file: No such file or directory");
  for (const std::size_t length : {1000U, 4096U, 12288U}) {
    write(plugin, whole.substr(0, length));
    expect_rejected("the file is not whole: it has " + std::to_string(length) + " bytes");
    std::filesystem::remove(plugin);
  }
  write(plugin, whole);
  server.signal(SIGHUP);
  EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_APPLIED") << read_file(err());
}

// The section `realtime` on this machine, which may grant it or not.

/// The last core that this process may use.
int own_core() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  int last = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set))
      last = core;
  return last;
}

/// The id of the program's thread of this name; 0: there is none.
pid_t thread_of(pid_t program, const std::string &name) {
  for (const auto &task : std::filesystem::directory_iterator("/proc/" + std::to_string(program) + "/task"))
    if (read_file(task.path() / "comm") == name + "\n")
      return std::stoi(task.path().filename().string());
  return 0;
}

TEST_F(Serve, AppliesItsRealtimeSectionOrNamesTheMissingRight) {
  const int core = own_core();
  const std::string section = fmt::format(
      "realtime: {{loop_core: {0}, pool_cores: [{0}], priority: 5, lock_memory: true, cpu_dma_latency_us: 10}}\n",
      core);
  write(yaml(), config(0, section));
  const auto json_file = folder_.path() / "report.json";
  std::vector<std::string> with_json = arguments({"--json", json_file.string()});
  running_program server(with_json, err());
  ASSERT_NE(server.line(), "") << read_file(err());
  const std::string log = read_file(err());
  const pid_t thread = thread_of(server.pid(), "qec-decode-0");
  ASSERT_NE(thread, 0);
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(thread, sizeof set, &set), 0);
  EXPECT_EQ(CPU_COUNT(&set), 1);
  EXPECT_TRUE(CPU_ISSET(core, &set));
  const bool has_priority = contains(log, "realtime: priority 5: applied\n");
  EXPECT_EQ(sched_getscheduler(thread), has_priority ? SCHED_FIFO : SCHED_OTHER);
  EXPECT_TRUE(has_priority || contains(log, "realtime: priority 5: not applied: ")) << log;
  const bool is_locked = contains(log, "realtime: lock_memory: applied\n");
  EXPECT_TRUE(is_locked || contains(log, "realtime: lock_memory: not applied: ")) << log;
  const std::string status = read_file("/proc/" + std::to_string(server.pid()) + "/status");
  if (contains(status, "VmLck:")) {
    EXPECT_EQ(contains(status, "VmLck:\t       0 kB"), !is_locked) << status;
  }
  EXPECT_TRUE(contains(log, fmt::format("realtime: pool_cores {}: applied\n", core))) << log;
  EXPECT_TRUE(contains(log, "realtime: cpu_dma_latency_us 10: ")) << log;

  socket_peer peer(socket());
  std::uint64_t counter = 0;
  write(yaml(), config(1, section));
  reload_under_requests(server, peer, counter, 1);
  write(yaml(), config(0, "realtime: {priority: 5}\n"));
  server.signal(SIGHUP);
  EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_REJECTED old_config_active");
  EXPECT_TRUE(contains(read_file(err()), "realtime: it is fixed; start the server again to change it"));
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << read_file(err());
  const auto report = nlohmann::json::parse(read_file(json_file));
  EXPECT_EQ(report.at("realtime").size(), 5u);
  EXPECT_EQ(report.at("realtime").at(0).at("what"), fmt::format("loop_core {}", core));
  EXPECT_EQ(report.at("decoders").at(0).at("stages_ns").at("whole").at("count"),
            report.at("decoders").at(0).at("requests"));
}

TEST_F(Serve, ChecksItsRealtimeSection) {
  const auto run = [this](const std::string &option, const std::string &fields) {
    return run_program("serve --transport udp " + option + " '" + yaml().string() + "' --realtime '" + fields +
                       "' -- --port=0");
  };
  const program_result checked = run("--check", "priority: 5, cpu_dma_latency_us: 9");
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_TRUE(contains(checked.out, "QEC_DECODING_SERVER_CONFIG_GOOD")) << checked.out;
  EXPECT_TRUE(contains(checked.out, "\nrealtime: priority 5: can")) << checked.out;
  const bool can_all = !contains(checked.out, ": cannot: ");
  const program_result required = run("--check", "priority: 5, cpu_dma_latency_us: 9, required: true");
  EXPECT_EQ(required.exit_code, can_all ? 0 : 3) << required.err;
  EXPECT_EQ(contains(required.err, "realtime: it is required, and not all of it can be applied: "), !can_all)
      << required.err;
  if (!can_all) {
    EXPECT_EQ(run("--config", "priority: 5, cpu_dma_latency_us: 9, required: true").err, required.err);
  }
  for (const char *option : {"--check", "--config"}) {
    const program_result no_core = run(option, "pool_cores: [1023]");
    EXPECT_EQ(no_core.exit_code, 2) << no_core.err;
    EXPECT_TRUE(contains(no_core.err, "realtime: pool_cores 1023: this machine has the cores 0")) << no_core.err;
  }
  // The priority is refused while the configuration is read, the latency at the start.
  const bool can_wake = contains(checked.out, "\nrealtime: cpu_dma_latency_us 9: can be applied");
  const program_result latency = run("--check", "cpu_dma_latency_us: 9, required: true");
  EXPECT_EQ(latency.exit_code, can_wake ? 0 : 3) << latency.err;
  EXPECT_EQ(contains(latency.err, "realtime: it is required, and not all of it can be applied: cpu_dma_latency_us 9: "),
            !can_wake)
      << latency.err;
  const program_result refused = run_program("serve --config '" + yaml().string() + "' --realtime 'priority: high'");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err, "--realtime \"priority: high\": ")) << refused.err;
}

TEST_F(Serve, TakesNoRequestBeforeARequiredStepIsApplied) {
  const notified_socket manager((folder_.path() / "notify").string()), own((folder_.path() / "own").string());
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  const rlimit no_memory{0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &no_memory), 0);
  // The thread, and what it starts, lose the right that is above this limit; a user who may not do that lacks it.
  std::thread([&] {
    (void)prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK);
    running_program server({"serve", "--config", yaml(), "--transport", "shm", "--realtime",
                            "lock_memory: true, required: true", "--", "--name=required-" + std::to_string(getpid())},
                           err(), manager.path());
    EXPECT_EQ(server.wait(), 3);
  }).join();
  EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
  const std::string log = read_file(err());
  EXPECT_TRUE(contains(log, "realtime: it is required, and not all of it can be applied: lock_memory: ")) << log;
  own.send_to(manager, "no message before");
  EXPECT_EQ(manager.next(), "no message before") << "a server whose transport has begun tells of its end";
}

// The unit file for systemd agrees with the program.

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

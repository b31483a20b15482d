// SPDX-License-Identifier: Apache-2.0
// The section `realtime` on this machine, which may grant it or not.
#include "unittests/support/program_paths.h"
#include "unittests/tools/serve/serve_fixture.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sched.h>

namespace cudaq::realtime::tools::test {
namespace {

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
      "realtime: {{loop_core: {0}, pool_cores: [{0}, 1023], priority: 5, lock_memory: true, cpu_dma_latency_us: 10}}\n",
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
  EXPECT_TRUE(contains(log, "realtime: pool_cores 1023: not applied: core 1023: the system refused the affinity: "))
      << log;
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
  EXPECT_EQ(report.at("realtime").size(), 6u);
  EXPECT_EQ(report.at("realtime").at(0).at("what"), fmt::format("loop_core {}", core));
  EXPECT_EQ(report.at("decoders").at(0).at("stages_ns").at("whole").at("count"),
            report.at("decoders").at(0).at("requests"));
}

TEST_F(Serve, ChecksItsRealtimeSection) {
  const program_result checked =
      run_program("serve --check '" + yaml().string() + "' --realtime 'pool_cores: [1023], priority: 5'");
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_TRUE(contains(checked.out, "QEC_DECODING_SERVER_CONFIG_GOOD")) << checked.out;
  EXPECT_TRUE(contains(checked.out, "\nrealtime: pool_cores 1023: cannot: ")) << checked.out;
  EXPECT_TRUE(contains(checked.out, "\nrealtime: priority 5: can")) << checked.out;
  const program_result refused = run_program("serve --config '" + yaml().string() + "' --realtime 'priority: high'");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err, "--realtime \"priority: high\": ")) << refused.err;
}

} // namespace
} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
// The section `realtime`, with a system that grants or refuses.
#include "tools/serve/realtime_setup.h"

#include "unittests/support/scratch_folder.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>

namespace cudaq::realtime::tools::test {
namespace {

using cudaq::qec::realtime::realtime_config;
using cudaq::qec::realtime::server_config;

/// Refuses the core 9, every priority, and what is said.
struct fake_system {
  realtime_calls calls() {
    return {[this](int core, int priority) -> std::string {
              ++placed;
              return core == 9 ? "Invalid argument" : priority != 0 ? "Operation not permitted" : "";
            },
            [this](int flags) {
              lock_flags.push_back(flags);
              errno = lock_error;
              return lock_error == 0 ? 0 : -1;
            },
            dma_latency, "0-15"};
  }

  int placed = 0, lock_error = 0;
  std::vector<int> lock_flags;
  std::string dma_latency = "/no-such-folder/latency";
};

/// With a device that holds the wake-up latency.
struct latency_device_system : fake_system {
  latency_device_system() {
    dma_latency = (folder.path() / "latency").string();
    std::ofstream(dma_latency).close();
  }
  const realtime::test::scratch_folder folder;
};

server_config with(const realtime_config &section) {
  server_config config;
  config.realtime = section;
  return config;
}

TEST(RealtimeSetup, LeavesWhatTheSystemGrantsAndNamesWhatIsMissing) {
  fake_system system;
  realtime_setup setup("", system.calls());
  const realtime_config wanted{0, {1, 9, 2}, {9}, 50};
  server_config config = with(wanted);
  setup.adjust(config);
  const realtime_config granted{0, {1, 2}, {}};
  EXPECT_EQ(config.realtime, granted);
  std::vector<std::string> applied, refused;
  for (const realtime_step &step : setup.steps())
    (step.why.empty() ? applied : refused).push_back(step.what);
  EXPECT_EQ(applied, (std::vector<std::string>{"loop_core 0", "pool_cores 1", "pool_cores 2"}));
  EXPECT_EQ(refused, (std::vector<std::string>{"pool_cores 9", "stream_cores 9", "priority 50"}));
  EXPECT_NE(setup.steps()[2].why.find("the process may use the cores "), std::string::npos) << setup.steps()[2].why;
  EXPECT_NE(setup.steps().back().why.find("CAP_SYS_NICE"), std::string::npos) << setup.steps().back().why;
  EXPECT_EQ(setup.as_json().at(5).at("applied"), false);

  server_config same = with(wanted), other = with({3, {}, {}});
  setup.adjust(same);
  EXPECT_EQ(same.realtime, granted) << "a reload with the same section keeps what was granted";
  setup.adjust(other);
  EXPECT_EQ(other.realtime.loop_core, 3) << "a changed one stays different";
  EXPECT_EQ(system.placed, 6) << "and is not tried";
}

TEST(RealtimeSetup, HoldsTheWakeUpLatencyAndLocksTheMemoryAgainAfterAReload) {
  latency_device_system system;
  realtime_setup setup("", system.calls());
  const realtime_config section{CUDAQ_CORE_ANY, {}, {}, 0, true, 3};
  setup.apply(section);
  ASSERT_EQ(setup.steps().size(), 2u);
  EXPECT_EQ(setup.steps()[0].why + setup.steps()[1].why, "");
  std::int32_t us = -1;
  std::ifstream(system.dma_latency, std::ios::binary).read(reinterpret_cast<char *>(&us), sizeof us);
  EXPECT_EQ(us, 3);
  EXPECT_EQ(setup.lock_again(section), "");
  ASSERT_EQ(system.lock_flags.size(), 2u);
  EXPECT_NE(system.lock_flags[1] & MCL_CURRENT, 0);
  EXPECT_EQ(setup.lock_again({}), "");
  EXPECT_EQ(system.lock_flags.size(), 2u) << "not without lock_memory";
}

TEST(RealtimeSetup, LocksTheMemoryOfTheTransportTooAndHasOneStepForBoth) {
  latency_device_system system;
  realtime_setup setup("", system.calls());
  const realtime_config section{CUDAQ_CORE_ANY, {}, {}, 0, true, 3};
  const auto reasons = [&] {
    std::vector<std::string> all;
    for (const realtime_step &step : setup.steps())
      all.push_back(step.why.substr(0, step.why.find(':')));
    return all;
  };
  setup.apply(section);
  EXPECT_EQ(reasons(), (std::vector<std::string>{"", ""}));
  system.lock_error = ENOMEM; // the limit has no room for the threads
  setup.apply(section);
  EXPECT_EQ(reasons(), (std::vector<std::string>{"mlockall", ""}));
  EXPECT_EQ(system.lock_flags.size(), 2u);
}

TEST(RealtimeSetup, NamesTheRightsThatMemoryAndLatencyNeed) {
  fake_system system;
  system.lock_error = ENOMEM;
  realtime_setup setup("", system.calls());
  setup.apply({CUDAQ_CORE_ANY, {}, {}, 0, true, 0});
  ASSERT_EQ(setup.steps().size(), 2u);
  EXPECT_NE(setup.steps()[0].why.find("RLIMIT_MEMLOCK is "), std::string::npos) << setup.steps()[0].why;
  EXPECT_NE(setup.steps()[0].why.find("CAP_IPC_LOCK"), std::string::npos) << setup.steps()[0].why;
  EXPECT_NE(setup.steps()[1].why.find("/no-such-folder/latency: No such file"), std::string::npos)
      << setup.steps()[1].why;
  EXPECT_NE(setup.lock_again({CUDAQ_CORE_ANY, {}, {}, 0, true}), "");
}

TEST(RealtimeSetup, ChangesNothingByDefault) {
  fake_system system;
  realtime_setup setup("", system.calls());
  server_config config;
  setup.adjust(config);
  setup.apply(config.realtime);
  EXPECT_EQ(config.realtime, realtime_config{});
  EXPECT_EQ(system.placed, 0);
  EXPECT_TRUE(system.lock_flags.empty());
  EXPECT_TRUE(setup.steps().empty());
  EXPECT_TRUE(setup.as_json().is_null());
}

TEST(RealtimeSetup, TakesTheFieldsOfTheCommandLineInPlaceOfTheSection) {
  if (cudaq::qec::realtime::read_realtime_config("").failed())
    GTEST_SKIP() << "this build has no YAML parser";
  fake_system system;
  realtime_setup setup("pool_cores: [4, 5], cpu_dma_latency_us: 0", system.calls());
  server_config config = with({1, {}, {}, 0, true});
  setup.adjust(config);
  EXPECT_EQ(config.realtime, (realtime_config{CUDAQ_CORE_ANY, {4, 5}, {}, 0, false, 0}));
  const auto refused = [](const char *fields) {
    try {
      realtime_setup wrong(fields);
    } catch (const usage_error &e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(refused("priority: 100").find("priority: \"100\" is not a whole number from 0 to 99"), std::string::npos)
      << refused("priority: 100");
  EXPECT_NE(refused("cores: 1").find("cores"), std::string::npos) << refused("cores: 1");
  EXPECT_NE(refused("}").find("--realtime \"}\": "), std::string::npos) << refused("}");
}

/// What the call throws, with its kind.
template <typename Call>
std::string thrown_by(const Call &call) {
  try {
    call();
  } catch (const usage_error &e) {
    return std::string("usage: ") + e.what();
  } catch (const std::runtime_error &e) {
    return std::string("refused: ") + e.what();
  }
  return "";
}

TEST(RealtimeSetup, RefusesACoreThatTheMachineDoesNotHave) {
  fake_system system;
  realtime_calls calls = system.calls();
  calls.cores = "0-8,10-15"; // so the core 9 is none
  for (const realtime_config &section :
       {realtime_config{9, {}, {}}, realtime_config{0, {1, 9}, {}}, realtime_config{0, {}, {9}}}) {
    realtime_setup setup("", calls);
    server_config config = with(section);
    const std::string text = thrown_by([&] { setup.adjust(config); });
    EXPECT_EQ(text.rfind("usage: realtime: ", 0), 0u) << text;
    EXPECT_NE(text.find("_core"), std::string::npos) << text;
    EXPECT_NE(text.find(" 9: this machine has the cores 0-8,10-15"), std::string::npos) << text;
  }
  calls.cores = "";
  realtime_setup unknown("", calls);
  server_config config = with({9, {}, {}});
  EXPECT_EQ(thrown_by([&] { unknown.adjust(config); }), "") << "the system does not say which cores there are";
  EXPECT_EQ(config.realtime.loop_core, CUDAQ_CORE_ANY);
}

TEST(RealtimeSetup, RefusesTheStartIfARequiredStepIsNotApplied) {
  fake_system system;
  system.lock_error = EPERM;
  const auto adjusted = [&](realtime_config section, bool required) {
    section.required = required;
    realtime_setup setup("", system.calls());
    server_config config = with(section);
    return thrown_by([&] { setup.adjust(config); });
  };
  EXPECT_EQ(adjusted({0, {9}, {}, 50}, false), "");
  EXPECT_EQ(adjusted({0, {1}, {2}}, true), "");
  const std::string cores = adjusted({0, {9}, {}, 50}, true);
  EXPECT_EQ(cores.rfind("refused: realtime: it is required, and not all of it can be applied: pool_cores 9: ", 0), 0u)
      << cores;
  EXPECT_NE(cores.find("; priority 50: Operation not permitted"), std::string::npos) << cores;

  const auto applied = [&](realtime_config section) {
    section.required = true;
    realtime_setup setup("", system.calls());
    return thrown_by([&] { setup.apply(section); });
  };
  EXPECT_EQ(applied({0, {}, {}}), "");
  EXPECT_NE(applied({0, {}, {}, 0, true}).find("applied: lock_memory: mlockall: "), std::string::npos);
  EXPECT_NE(applied({0, {}, {}, 0, false, 0}).find("applied: cpu_dma_latency_us 0: "), std::string::npos);
}

} // namespace
} // namespace cudaq::realtime::tools::test

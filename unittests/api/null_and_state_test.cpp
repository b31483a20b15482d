// SPDX-License-Identifier: Apache-2.0
// Null arguments of every function, and every call in every state.
#include "cudaq/realtime/version.h"
#include "unittests/support/api_fixture.h"

#include <algorithm>

namespace cudaq::realtime::test {
namespace {

// Known failure 8.
TEST(Null, EveryArgumentOfEveryFunctionIsRefusedByName) {
  bench b;
  cudaq_dispatcher_t *const d = b.get();
  const cudaq_dispatcher_config_t config = host_config({});
  const cudaq_function_table_t table{};
  cudaq_dispatcher_t *out = nullptr;
  volatile int flag = 0;
  std::uint64_t number = 0;
  cudaq_dispatcher_state_t state{};
  cudaq_dispatcher_stats_t stats{};
  cudaq_host_job_t job{};
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring = b.ring.ring;
  cudaq_rpc_response_t header;
  const void *result = nullptr;
  cudaq_ringbuffer_options_t ring_options;
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_options_init(&ring_options, sizeof(ring_options)));
  ring_options.num_slots = 1;
  ring_options.slot_size = 64;
#define EXPECT_NULL(name, call)                                                                                        \
  EXPECT_EQ((call), CUDAQ_ERR_INVALID_ARG);                                                                            \
  EXPECT_TRUE(error_names({name " is NULL"}))
  EXPECT_NULL("out_mgr", cudaq_dispatch_manager_create(nullptr));
  EXPECT_NULL("mgr", cudaq_dispatch_manager_destroy(nullptr));
  EXPECT_NULL("mgr", cudaq_dispatcher_create(nullptr, &config, &out));
  EXPECT_NULL("config", cudaq_dispatcher_create(b.manager.get, nullptr, &out));
  EXPECT_NULL("out_dispatcher", cudaq_dispatcher_create(b.manager.get, &config, nullptr));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_destroy(nullptr));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_set_ringbuffer(nullptr, &ring));
  EXPECT_NULL("ringbuffer", cudaq_dispatcher_set_ringbuffer(d, nullptr));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_set_function_table(nullptr, &table));
  EXPECT_NULL("table", cudaq_dispatcher_set_function_table(d, nullptr));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_set_control(nullptr, &flag, &number));
  EXPECT_NULL("shutdown_flag", cudaq_dispatcher_set_control(d, nullptr, &number));
  EXPECT_NULL("stats", cudaq_dispatcher_set_control(d, &flag, nullptr));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_start(nullptr));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_stop(nullptr));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_stop_timeout(nullptr, 1));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_get_processed(nullptr, &number));
  EXPECT_NULL("out_packets", cudaq_dispatcher_get_processed(d, nullptr));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_get_state(nullptr, &state));
  EXPECT_NULL("out_state", cudaq_dispatcher_get_state(d, nullptr));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_get_stats(nullptr, &stats));
  EXPECT_NULL("out_stats", cudaq_dispatcher_get_stats(d, nullptr));
  EXPECT_NULL("options", cudaq_dispatcher_options_init(nullptr, sizeof(cudaq_dispatcher_options_t)));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_set_options(nullptr, &b.options));
  EXPECT_NULL("options", cudaq_dispatcher_set_options(d, nullptr));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_dump_state(nullptr, nullptr, 0, nullptr));
  EXPECT_NULL("buf", cudaq_dispatcher_dump_state(d, nullptr, 1, nullptr));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_set_host_handler_v2(nullptr, 1, nullptr, nullptr, nullptr));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_set_launch_fn(nullptr, nullptr));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_set_launch_fn_v2(nullptr, nullptr));
  EXPECT_NULL("dispatcher", cudaq_dispatcher_set_unified_launch(nullptr, nullptr, nullptr));
  EXPECT_NULL("launch_fn", cudaq_dispatcher_set_launch_fn(d, nullptr));
  EXPECT_NULL("launch_fn", cudaq_dispatcher_set_launch_fn_v2(d, nullptr));
  EXPECT_NULL("launch_fn", cudaq_dispatcher_set_unified_launch(d, nullptr, nullptr));
  EXPECT_NULL("mgr", cudaq_dispatch_manager_reserve_blocks(nullptr, 0, 1));
  EXPECT_NULL("dispatcher", cudaq_host_complete_deferred(nullptr, &job, 0, 0));
  EXPECT_NULL("job", cudaq_host_complete_deferred(d, nullptr, 0, 0));
  EXPECT_NULL("options", cudaq_ringbuffer_options_init(nullptr, sizeof(ring_options)));
  EXPECT_NULL("options", cudaq_ringbuffer_create(nullptr, &memory, &ring));
  EXPECT_NULL("out_memory", cudaq_ringbuffer_create(&ring_options, nullptr, &ring));
  EXPECT_NULL("out_ring", cudaq_ringbuffer_create(&ring_options, &memory, nullptr));
  EXPECT_NULL("memory", cudaq_ringbuffer_destroy(nullptr));
  EXPECT_NULL("rb", cudaq_host_ringbuffer_write_rpc_request(nullptr, 0, 1, nullptr, 0, 1, 1));
  EXPECT_NULL("payload", cudaq_host_ringbuffer_write_rpc_request(&ring, 0, 1, nullptr, 1, 1, 1));
  EXPECT_NULL("rb", cudaq_host_ringbuffer_read_rpc_response(nullptr, 0, &header, &result));
  EXPECT_NULL("out_header", cudaq_host_ringbuffer_read_rpc_response(&ring, 0, nullptr, &result));
  EXPECT_NULL("out_result", cudaq_host_ringbuffer_read_rpc_response(&ring, 0, &header, nullptr));
  EXPECT_NULL("config", cudaq_host_dispatcher_loop(nullptr, &ring, &table, nullptr, 0, nullptr, &flag, &number));
  EXPECT_NULL("ringbuffer", cudaq_host_dispatcher_loop(&config, nullptr, &table, nullptr, 0, nullptr, &flag, &number));
  EXPECT_NULL("table", cudaq_host_dispatcher_loop(&config, &ring, nullptr, nullptr, 0, nullptr, &flag, &number));
  EXPECT_NULL("workers", cudaq_host_dispatcher_loop(&config, &ring, &table, nullptr, 1, nullptr, &flag, &number));
  EXPECT_NULL("shutdown_flag",
              cudaq_host_dispatcher_loop(&config, &ring, &table, nullptr, 0, nullptr, nullptr, &number));
  EXPECT_NULL("stats", cudaq_host_dispatcher_loop(&config, &ring, &table, nullptr, 0, nullptr, &flag, nullptr));
#undef EXPECT_NULL
  EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_WIRED) << "an error must change nothing";
}

TEST(Null, SlotHelpersWithoutAStatusDoNothing) {
  cudaq_host_ringbuffer_signal_slot(nullptr, 0);
  cudaq_host_ringbuffer_clear_slot(nullptr, 0);
  EXPECT_EQ(cudaq_host_ringbuffer_slot_available(nullptr, 0), 0);
  int error = 7;
  EXPECT_EQ(cudaq_host_ringbuffer_poll_tx_flag(nullptr, 0, &error), CUDAQ_TX_EMPTY);
  EXPECT_EQ(error, 0);
  cudaq_ringbuffer_t device_only{};
  cudaq_host_ringbuffer_signal_slot(&device_only, 0);
  cudaq_host_ringbuffer_clear_slot(&device_only, 0);
  EXPECT_EQ(cudaq_host_ringbuffer_slot_available(&device_only, 0), 0);
  EXPECT_EQ(cudaq_host_ringbuffer_poll_tx_flag(&device_only, 0, nullptr), CUDAQ_TX_EMPTY);
}

struct parts {
  parts() {
    const cudaq_dispatcher_config_t config = host_config(ring.shape());
    CUDAQ_EXPECT_OK(cudaq_dispatcher_create(manager.get, &config, &d));
  }
  ~parts() { CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(d)); }
  cudaq_dispatcher_state_t state() const {
    cudaq_dispatcher_state_t s{};
    CUDAQ_EXPECT_OK(cudaq_dispatcher_get_state(d, &s));
    return s;
  }
  void wire(char what) {
    const cudaq_function_table_t table{&entry, 1};
    if (what == 'r')
      CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(d, &ring.ring));
    else if (what == 't')
      CUDAQ_EXPECT_OK(cudaq_dispatcher_set_function_table(d, &table));
    else
      CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(d, &flag, &stats));
  }
  manager_handle manager;
  host_ring ring;
  cudaq_function_entry_t entry = host_entry("reverse", reverse_handler);
  volatile int flag = 0;
  std::uint64_t stats = 0;
  cudaq_dispatcher_t *d = nullptr;
};

TEST(State, IsWiredOnceAllThreeAreSetInAnyOrder) {
  for (const std::string order : {"rtc", "rct", "trc", "tcr", "crt", "ctr"}) {
    parts p;
    for (const char what : order) {
      EXPECT_EQ(p.state(), CUDAQ_DISPATCHER_CREATED) << order;
      EXPECT_EQ(cudaq_dispatcher_start(p.d), CUDAQ_ERR_INVALID_ARG);
      EXPECT_TRUE(error_names({"not wired: cudaq_dispatcher_set_"}));
      CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(p.d));
      p.wire(what);
    }
    EXPECT_EQ(p.state(), CUDAQ_DISPATCHER_WIRED) << order;
  }
}

TEST(State, IsNoLongerWiredWhenTheOnlyHandlerIsRemoved) {
  parts p;
  p.wire('r');
  p.wire('c');
  const auto handler = [](cudaq_host_call_t *, void *) -> std::int32_t { return 0; };
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_host_handler_v2(p.d, 1, handler, nullptr, nullptr));
  EXPECT_EQ(p.state(), CUDAQ_DISPATCHER_WIRED);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_host_handler_v2(p.d, 1, nullptr, nullptr, nullptr));
  EXPECT_EQ(p.state(), CUDAQ_DISPATCHER_CREATED) << "start would refuse it as not wired";
}

void expect_running_refuses(bench &b) {
  const cudaq_function_table_t table{};
  const auto handler = [](cudaq_host_call_t *, void *) -> std::int32_t { return 0; };
  CUDAQ_EXPECT_OK(cudaq_dispatcher_start(b.get()));
  EXPECT_EQ(cudaq_dispatcher_set_ringbuffer(b.get(), &b.ring.ring), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"running"}));
  EXPECT_EQ(cudaq_dispatcher_set_function_table(b.get(), &table), CUDAQ_ERR_STATE);
  EXPECT_EQ(cudaq_dispatcher_set_control(b.get(), &b.dispatcher->shutdown, &b.dispatcher->processed), CUDAQ_ERR_STATE);
  EXPECT_EQ(cudaq_dispatcher_set_options(b.get(), &b.options), CUDAQ_ERR_STATE);
  EXPECT_EQ(cudaq_dispatcher_set_host_handler_v2(b.get(), 5, handler, nullptr, nullptr), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"stop it first"}));
}

TEST(State, RunningRefusesSettersAndStartAndStopMayBeCalledTwice) {
  bench b({4, 64, false}, {host_entry("reverse", reverse_handler)});
  for (int run = 0; run < 3; ++run) {
    b.start();
    EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_RUNNING);
    expect_running_refuses(b);
    EXPECT_EQ(b.client.call(fnv1a_hash("reverse"), {1, 2}).result, (std::vector<std::uint8_t>{2, 1}));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
    EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_STOPPED);
    EXPECT_EQ(b.dispatcher->stats().state, CUDAQ_DISPATCHER_STOPPED);
  }
}

// Known failure 12.
TEST(State, CallersFlagEndsTheLoopAndStartWorksAgain) {
  for (const std::uint32_t wait : {CUDAQ_WAIT_SPIN, CUDAQ_WAIT_SPIN_YIELD, CUDAQ_WAIT_BLOCK}) {
    bench b({4, 64, false}, {host_entry("reverse", reverse_handler)});
    b.options.wait_policy = wait;
    for (int run = 0; run < 3; ++run) {
      b.start();
      EXPECT_EQ(load_acquire(b.dispatcher->shutdown), 0) << "start must clear the flag";
      EXPECT_EQ(b.client.call(fnv1a_hash("reverse"), {1}).header.status, 0);
      store_release(b.dispatcher->shutdown, 1);
      EXPECT_TRUE(eventually([&] { return b.dispatcher->state() == CUDAQ_DISPATCHER_STOPPED; }));
    } // the next start follows without a stop
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(b.get(), &b.ring.ring));
    EXPECT_EQ(b.dispatcher->processed, 3u);
  }
}

TEST(State, FailedStartLeavesEverythingAsItWas) {
  bench b({4, 64, false}, {host_entry("reverse", reverse_handler)});
  b.options.dispatcher_core = 1000;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(b.get(), &b.options));
  for (const std::uint32_t pool : {0u, 2u}) {
    b.options.handler_pool_size = pool;
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(b.get(), &b.options));
    b.dispatcher->shutdown = 5;
    EXPECT_NE(cudaq_dispatcher_start(b.get()), CUDAQ_OK);
    EXPECT_TRUE(error_names({"core 1000"}));
    EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_WIRED);
    EXPECT_EQ(b.dispatcher->shutdown, 5) << "an error must change nothing";
  }
  b.options.dispatcher_core = CUDAQ_CORE_ANY;
  b.start();
  EXPECT_EQ(b.client.call(fnv1a_hash("reverse"), {1, 2}).header.status, 0);
}

TEST(State, ProcessedIsTheValueOfTheCounterThatIsWired) {
  bench b({4, 64, false}, {host_entry("reverse", reverse_handler)});
  store_release<std::uint64_t>(b.dispatcher->processed, 100); // its observer reads the word
  b.start();
  b.client.call(fnv1a_hash("reverse"), {1});
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
  EXPECT_EQ(b.dispatcher->processed, 101u);
  std::uint64_t other = 7, got = 0;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_control(b.get(), &b.dispatcher->shutdown, &other));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_get_processed(b.get(), &got));
  EXPECT_EQ(got, 7u);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(b.get()));
  b.client.call(fnv1a_hash("reverse"), {1});
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
  EXPECT_EQ(other, 8u);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(b.get(), &b.dispatcher->shutdown, &b.dispatcher->processed));
}

TEST(State, ManagerWithDispatchersIsNotDestroyed) {
  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *a = nullptr, *c = nullptr;
  const cudaq_dispatcher_config_t config = host_config({});
  CUDAQ_ASSERT_OK(cudaq_dispatch_manager_create(&manager));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_create(manager, &config, &a));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_create(manager, &config, &c));
  EXPECT_EQ(cudaq_dispatch_manager_destroy(manager), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"2 dispatchers"}));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(a));
  EXPECT_EQ(cudaq_dispatch_manager_destroy(manager), CUDAQ_ERR_STATE);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(c));
  CUDAQ_EXPECT_OK(cudaq_dispatch_manager_destroy(manager));
}

TEST(State, TwoDispatchersDoNotRunOnOneRingUnlessItIsShared) {
  bench b({4, 64, false}, {host_entry("reverse", reverse_handler)});
  host_dispatcher_handle second(b.manager.get, b.ring, {host_entry("other", reverse_handler)},
                                host_config({4, 64, false}));
  b.start();
  EXPECT_EQ(cudaq_dispatcher_start(second.get), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"shared_ring_mode"}));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_start(second.get));
  EXPECT_EQ(cudaq_dispatcher_start(b.get()), CUDAQ_ERR_STATE);
}

TEST(LastError, IsKeptPerThreadAndSurvivesSuccess) {
  EXPECT_EQ(cudaq_dispatcher_start(nullptr), CUDAQ_ERR_INVALID_ARG);
  std::thread([] {
    EXPECT_STREQ(cudaq_last_error_message(), "");
    EXPECT_EQ(cudaq_ringbuffer_destroy(nullptr), CUDAQ_ERR_INVALID_ARG);
    EXPECT_TRUE(error_names({"cudaq_ringbuffer_destroy: memory is NULL"}));
  }).join();
  EXPECT_STREQ(cudaq_last_error_message(), "cudaq_dispatcher_start: dispatcher is NULL");
  cudaq_dispatcher_options_t options;
  EXPECT_EQ(cudaq_dispatcher_options_init(&options, sizeof(options)), CUDAQ_OK);
  EXPECT_STREQ(cudaq_last_error_message(), "cudaq_dispatcher_start: dispatcher is NULL");
}

TEST(Strings, EveryStatusHasATextOfItsOwnThatBeginsWithItsName) {
  const char *names[] = {"CUDAQ_OK",       "CUDAQ_ERR_INVALID_ARG", "CUDAQ_ERR_INTERNAL",
                         "CUDAQ_ERR_CUDA", "CUDAQ_ERR_UNSUPPORTED", "CUDAQ_ERR_TIMEOUT",
                         "CUDAQ_ERR_STATE"};
  for (int status = 0; status < 7; ++status)
    EXPECT_EQ(std::string(cudaq_status_string(static_cast<cudaq_status_t>(status))).rfind(names[status], 0), 0u)
        << status;
  EXPECT_NE(std::string(cudaq_status_string(static_cast<cudaq_status_t>(7))), "");
  std::vector<std::string> texts;
  for (int status = -1010; status <= -1000; ++status)
    texts.emplace_back(cudaq_rpc_status_string(status));
  texts.emplace_back(cudaq_rpc_status_string(0));
  texts.emplace_back(cudaq_rpc_status_string(1));
  texts.emplace_back(cudaq_rpc_status_string(-1));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_NE(texts[i], "");
    EXPECT_EQ(std::count(texts.begin(), texts.end(), texts[i]), 1) << texts[i];
  }
  for (const int status : {INT32_MIN, INT32_MAX, -1011, -999})
    EXPECT_NE(cudaq_rpc_status_string(status), nullptr);
}

// Known failure 25.
TEST(Version, IsThatOfTheHeader) {
  EXPECT_EQ(cudaq_realtime_version(), static_cast<std::uint32_t>(CUDAQ_REALTIME_VERSION));
  EXPECT_NE(cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_HOST_PATH, 0u);
}

} // namespace
} // namespace cudaq::realtime::test

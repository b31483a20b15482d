// SPDX-License-Identifier: Apache-2.0
// Wiring of graph workers: which settings are refused, and with which text. No GPU is needed.
#include "lib/api/host_path/host_workers.h"
#include "unittests/support/api_fixture.h"

namespace cudaq::realtime::test {
namespace {

class HostWorkers : public ::testing::Test {
protected:
  host_ring ring;
  manager_handle manager;
  host_dispatcher_handle dispatcher{manager.get, ring, {}, host_config(ring.shape())};
  cudaq_host_worker_t worker{};

  void SetUp() override {
    worker.struct_size = sizeof(worker);
    worker.graph_exec = reinterpret_cast<cudaGraphExec_t>(&worker); // never used: no start reaches the launch
    worker.function_id = 1;
  }
  cudaq_status_t set(std::size_t count = 1) {
    return cudaq_dispatcher_set_host_workers(dispatcher.get, &worker, count);
  }
};

TEST_F(HostWorkers, RefusesWhatIsWrong) {
  CUDAQ_EXPECT_OK(set());
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_host_workers(dispatcher.get, nullptr, 0));
  EXPECT_EQ(cudaq_dispatcher_set_host_workers(dispatcher.get, nullptr, 2), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"workers is NULL", "num_workers is 2"}));
  EXPECT_EQ(set(65), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"num_workers is 65"}));
  worker.hand_over_fn = [](void *, cudaq_host_launch_fn_t, void *) { return 0; };
  EXPECT_EQ(set(), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"workers[0].hand_over_fn is set", "CALLER_PUBLISHES"}));
  worker.completion = CUDAQ_WORKER_CALLER_PUBLISHES;
  CUDAQ_EXPECT_OK(set());
  worker.hand_over = 2;
  EXPECT_EQ(set(), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"workers[0].hand_over is 2", "0..1"}));
  worker.hand_over = CUDAQ_HAND_OVER_HOOK_AND_LAUNCH;
  CUDAQ_EXPECT_OK(set());
  worker.completion = 3;
  EXPECT_EQ(set(), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"workers[0].completion is 3"}));
  worker.completion = CUDAQ_WORKER_GRAPH_PUBLISHES;
  EXPECT_EQ(set(), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"workers[0].io_ctx is NULL"}));
  worker.graph_exec = nullptr;
  EXPECT_EQ(set(), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"workers[0].graph_exec is NULL"}));
  worker.struct_size = 0;
  EXPECT_EQ(set(), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"workers[0].struct_size is 0"}));
}

// Known failure 4.
TEST_F(HostWorkers, RefusesWorkersThatShareWhatALaunchWrites) {
  int other = 0;
  GraphIOContext context{};
  cudaq_host_worker_t two[] = {worker, worker};
  EXPECT_EQ(cudaq_dispatcher_set_host_workers(dispatcher.get, two, 2), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"workers 0 and 1 have the same graph_exec"}));
  two[1].graph_exec = reinterpret_cast<cudaGraphExec_t>(&other);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_host_workers(dispatcher.get, two, 2));
  two[0].io_ctx = two[1].io_ctx = &context;
  EXPECT_EQ(cudaq_dispatcher_set_host_workers(dispatcher.get, two, 2), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"workers 0 and 1 have the same io_ctx"}));
}

// Known failure 25.
TEST_F(HostWorkers, TakesTheShorterStructOfAnOlderHeader) {
  worker.struct_size = offsetof(cudaq_host_worker_t, completion);
  CUDAQ_EXPECT_OK(set());
}

TEST_F(HostWorkers, StartRefusesARingThatTheDeviceCannotReach) {
  cudaq_ringbuffer_t host_only = ring.ring;
  host_only.rx_data = nullptr;
  host_only.tx_data = nullptr;
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(dispatcher.get, &host_only));
  CUDAQ_EXPECT_OK(set());
  EXPECT_EQ(cudaq_dispatcher_start(dispatcher.get), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"ringbuffer->rx_data is NULL"}));
}

TEST_F(HostWorkers, MemoryThatTheDeviceCannotUseIsRefusedByName) {
  int word = 0;
  cudaPointerAttributes seen{};
  const auto check = [&](bool pageable) {
    return detail::check_reachable("ringbuffer->rx_data", &word, seen, pageable);
  };
  seen.type = cudaMemoryTypeUnregistered;
  const detail::expected<> result = check(false);
  EXPECT_EQ(result.status(), CUDAQ_ERR_INVALID_ARG);
  EXPECT_NE(result.text().find("ringbuffer->rx_data"), std::string::npos) << result.text();
  EXPECT_NE(result.text().find("plain host memory"), std::string::npos) << result.text();
  EXPECT_TRUE(check(true).ok()) << "a device that can read any host memory";
  seen.type = cudaMemoryTypeHost;
  EXPECT_EQ(check(false).status(), CUDAQ_ERR_INVALID_ARG) << "pinned, but not mapped";
  seen.devicePointer = &word;
  EXPECT_TRUE(check(false).ok());
  seen.type = cudaMemoryTypeDevice;
  EXPECT_TRUE(check(false).ok());
}

TEST_F(HostWorkers, AMailboxMakesWorkersOfTheTablesGraphs) {
  cudaq_function_entry_t entry{};
  entry.function_id = 1;
  entry.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
  const cudaq_function_table_t table{&entry, 1};
  void *mailbox = nullptr;
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_function_table(dispatcher.get, &table));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_mailbox(dispatcher.get, &mailbox));
  EXPECT_EQ(cudaq_dispatcher_start(dispatcher.get), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"table->entries[0].handler.graph_exec is NULL"}));
}

TEST_F(HostWorkers, WorkerCallsNameTheWorkerThatIsNotThere) {
  cudaq_host_job_t job{};
  EXPECT_EQ(cudaq_host_worker_job(dispatcher.get, 0, &job), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"worker_id is 0", "0 graph workers"}));
  EXPECT_EQ(cudaq_host_release_worker(dispatcher.get, 3), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(cudaq_host_worker_job(dispatcher.get, 0, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(cudaq_host_release_worker(nullptr, 0), CUDAQ_ERR_INVALID_ARG);
}

TEST_F(HostWorkers, OptionsRefuseAnUnknownWayToWait) {
  cudaq_dispatcher_options_t options = default_options();
  options.busy_workers = 3;
  EXPECT_EQ(cudaq_dispatcher_set_options(dispatcher.get, &options), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"options->busy_workers is 3"}));
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The graph scheduler: each CUDA call that the archive makes fails once, in create, launch and destroy, and in the
// launch function of a dispatcher. The same call then succeeds when it is repeated, requests are served, and no stream,
// event, graph or memory is lost.
#include "unittests/gpu/graphs/device_graph_dispatcher.h"
#include "unittests/gpu/support/wrapped_cuda.h"

#include <set>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kLap = 4, kMaxRequests = 8000;
constexpr std::uint64_t kMaxCalls = 400; ///< more than any call of the archive makes

class DeviceGraphFaults : public device_graph_test {
protected:
  void prepare() override {
    device_graph_test::prepare();
    if (IsSkipped() || HasFatalFailure())
      return;
    ring_ = std::make_unique<host_ring>(ring_shape{kLap, 256, false}, CUDAQ_MEMORY_MAPPED);
    graphs_ = std::make_unique<graph_set>(std::vector<graph_target>{graph_of(100), call_of(1)}, 256, kMaxRequests);
    load_ = std::make_unique<graph_traffic>(*ring_, *graphs_);
  }
  /// One lap of the ring, so that the next scheduler, which begins at slot 0, finds the next request.
  void serve() {
    load_->run(kLap, kLap, [](std::uint32_t m) { return m % 2; });
    EXPECT_EQ(load_->wrong, 0u) << load_->last_wrong;
  }
  /// once(n) makes call n of one part fail, and returns whether that part makes n calls.
  template <class Once>
  void sweep(const char *part, Once &&once) {
    std::uint64_t n = 1;
    once(0); // what is made once in a process
    while (once(n) && !HasFailure()) {
      ++n;
      ASSERT_LT(n, kMaxCalls) << part;
    }
    std::printf("faults injected in %s: %llu\n", part, static_cast<unsigned long long>(n - 1));
    EXPECT_GE(n - 1, 4u) << part << ": its calls are not intercepted";
  }
  /// Runs `call` while its call `n` fails. `where_` is then the name of the call that has failed, or empty.
  template <class Call>
  auto while_failing(std::uint64_t n, Call &&call) {
    const failing_cuda_call one(n);
    const auto result = call();
    where_ = one.failed() != nullptr ? one.failed() : "";
    if (!where_.empty())
      failed_.insert(where_);
    return result;
  }
  void expect_failed(std::initializer_list<const char *> calls) const {
    for (const char *call : calls)
      EXPECT_EQ(failed_.count(call), 1u) << call << " has not failed";
  }

  std::unique_ptr<host_ring> ring_;
  std::unique_ptr<graph_set> graphs_;
  std::unique_ptr<graph_traffic> load_;
  std::string where_;
  std::set<std::string> failed_;
};

/// A context without a dispatcher.
class DeviceGraphContextFaults : public DeviceGraphFaults, public ::testing::WithParamInterface<bool> {
protected:
  enum class part { create, launch, destroy, destroy_while_it_runs };

  bool run(part faulty, std::uint64_t n) {
    scheduler_options o;
    o.members = 2;
    o.own_streams = GetParam();
    o.later = true;
    graph_scheduler scheduler(*ring_, *graphs_, o);
    const long before = cuda_objects();
    const auto chosen = [&](part p) { return p == faulty ? n : 0; };
    std::string where;
    const auto note = [&](part p) {
      if (p == faulty)
        where = where_;
    };
    const auto create = [&] {
      scheduler.create(o);
      return scheduler.created;
    };
    if (while_failing(chosen(part::create), create) != cudaSuccess) {
      EXPECT_TRUE(faulty == part::create && !where_.empty()) << cudaGetErrorName(scheduler.created);
      EXPECT_EQ(scheduler.get, nullptr);
      EXPECT_EQ(cuda_objects(), before) << "create has lost something after a fault in " << where_;
      note(part::create);
      CUDA_EXPECT_OK(create());
    }
    note(part::create);
    if (scheduler.get == nullptr)
      return false;
    store_release(*scheduler.shutdown, 0);
    const auto launch = [&] { return cudaq_launch_dispatch_graph(scheduler.get, scheduler.stream.get); };
    cudaError_t result = while_failing(chosen(part::launch), launch);
    note(part::launch);
    EXPECT_TRUE(result == cudaSuccess || (faulty == part::launch && !where.empty())) << cudaGetErrorName(result);
    if (result != cudaSuccess) {
      // A part of the schedulers may have begun; they end by themselves. A call may return the reason of that run.
      int reasons = 0;
      EXPECT_TRUE(eventually([&] {
        result = launch();
        reasons += result != cudaSuccess && result != cudaErrorNotReady;
        return result == cudaSuccess || reasons > 1;
      })) << "repeated after a fault in "
          << where;
      EXPECT_LE(reasons, 1) << cudaGetErrorName(result) << ", repeated after a fault in " << where;
    }
    if (result == cudaSuccess)
      serve();
    if (faulty != part::destroy_while_it_runs)
      scheduler.stop();
    EXPECT_TRUE(destroy(scheduler, faulty >= part::destroy ? n : 0));
    if (faulty >= part::destroy)
      where = where_;
    EXPECT_EQ(cuda_objects(), before) << "something is lost after a fault in " << where;
    return !where.empty();
  }

private:
  /// Ends the process if the scheduler does not end.
  bool destroy(graph_scheduler &scheduler, std::uint64_t n) {
    cudaError_t result = cudaErrorUnknown;
    const bool in_time = finishes_within(kDeadline, "cudaq_destroy_dispatch_graph", [&] {
      result = while_failing(n, [&] { return cudaq_destroy_dispatch_graph(scheduler.get); });
      if (result == cudaErrorNotReady) // nothing is freed
        result = cudaq_destroy_dispatch_graph(scheduler.get);
    });
    scheduler.get = nullptr;
    return in_time && (result == cudaSuccess || !where_.empty());
  }
};

TEST_P(DeviceGraphContextFaults, CostNothingAndTheCallCanBeRepeated) {
  sweep("create", [this](std::uint64_t n) { return run(part::create, n); });
  sweep("launch", [this](std::uint64_t n) { return run(part::launch, n); });
  sweep("destroy", [this](std::uint64_t n) { return run(part::destroy, n); });
  sweep("destroy while it runs", [this](std::uint64_t n) { return run(part::destroy_while_it_runs, n); });
  load_->expect_clean();
  expect_failed({"cudaStreamCreateWithFlags", "cudaMallocAsync", "cudaMemcpyAsync", "cudaStreamSynchronize",
                 "cudaEventCreateWithFlags", "cudaGraphCreate", "cudaGraphAddKernelNode",
                 "cudaGraphInstantiateWithFlags", "cudaGraphUpload", "cudaGraphLaunch", "cudaEventRecord",
                 "cudaEventQuery", "cudaStreamQuery", "cudaGraphExecDestroy", "cudaGraphDestroy", "cudaEventDestroy",
                 "cudaFreeAsync", "cudaStreamDestroy"});
}

INSTANTIATE_TEST_SUITE_P(Streams, DeviceGraphContextFaults, ::testing::Bool(),
                         [](const auto &tested) { return tested.param ? "OwnStreams" : "OneStream"; });

/// A dispatcher whose launch function is the archive's: the first start, or the second one, which uses the graphs of
/// the first.
class DeviceGraphDispatcherFaults : public DeviceGraphFaults {
protected:
  bool run(std::uint64_t n, bool second) {
    const long before = cuda_objects();
    std::string where;
    {
      const manager_handle manager; // keeps the schedulers of its dispatchers
      graph_dispatcher dispatcher(manager.get, *ring_, *graphs_, 2);
      if (second) {
        dispatcher.expect_start();
        serve();
        CUDAQ_EXPECT_OK_WITHIN(kDeadline, cudaq_dispatcher_stop(dispatcher.get));
      }
      const call_result started = call_within(kStartLimit, "cudaq_dispatcher_start", [&] {
        return while_failing(n, [&] { return cudaq_dispatcher_start(dispatcher.get); });
      });
      where = where_;
      if (started.status != CUDAQ_OK) {
        EXPECT_FALSE(where.empty()) << started.text;
        EXPECT_NE(started.text, "") << where;
        dispatcher.expect_start();
      }
      if (!HasFailure())
        serve();
      CUDAQ_EXPECT_OK_WITHIN(kDeadline, cudaq_dispatcher_stop(dispatcher.get));
    }
    EXPECT_EQ(cuda_objects(), before) << "something is lost after a fault in " << where;
    return !where.empty();
  }
};

TEST_F(DeviceGraphDispatcherFaults, OfTheLaunchFunctionCostNothingAndStartCanBeRepeated) {
  sweep("the first start", [this](std::uint64_t n) { return run(n, false); });
  sweep("the second start", [this](std::uint64_t n) { return run(n, true); });
  load_->expect_clean();
  expect_failed({"cudaStreamCreateWithFlags", "cudaMallocAsync", "cudaMemcpyAsync", "cudaGraphInstantiateWithFlags",
                 "cudaGraphUpload", "cudaGraphLaunch", "cudaEventRecord", "cudaGraphExecKernelNodeSetParams"});
}

} // namespace
} // namespace cudaq::realtime::test

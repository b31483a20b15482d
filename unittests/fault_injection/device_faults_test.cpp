// SPDX-License-Identifier: Apache-2.0
// The device path: every allocation, thread, CUDA call and launch fails once. A CPU thread runs the loop of the kernels
// with the state that start prepares. It has no helper threads, so a cooperative kernel is one group here. A graph
// scheduler and a kernel of the program are played by a thread that obeys the shutdown words.
#include "unittests/fault_injection/dispatch_script.h"
#include "unittests/loop/loop_host.h"

#include "cudaq/realtime/detail/kernel_abi/launch_state.h"

namespace cudaq::realtime::test {
namespace {

enum class kernel { regular, any_order, cooperative, unified, graphs, of_the_program };

struct flavour {
  const char *name;
  kernel plays = kernel::regular;
  bool shared = false;
  cudaMemoryType words = cudaMemoryTypeHost; ///< of the shutdown flag and the stats
  bool old_form = false;                     ///< the launch function with 14 arguments
  std::uint64_t least_faults = 0;
};

/// Sleeps after 64 looks that find nothing: on few cores other threads run then. The loop reads the shutdown words only
/// after several such looks.
struct sleeping_thread_group : single_thread_group {
  static std::uint32_t ballot(bool vote) {
    thread_local std::uint32_t empty = 0;
    if (!vote && ++empty % 64 == 0)
      std::this_thread::sleep_for(kNap);
    return vote;
  }
};
using device_transport = ring_transport<sleeping_thread_group, thread_scope_system>;

int no_result(const void *, void *, std::uint32_t, std::uint32_t, std::uint32_t *) { return 0; }

class device_life;
device_life *current = nullptr; ///< launch functions have no user pointer

class device_life : public dispatch_script {
public:
  explicit device_life(const flavour &f) : dispatch_script(f.shared ? 2 : 1, f.words), flavour_(f) {
    ring_options.memory_kind = CUDAQ_MEMORY_MAPPED;
    ring_options.device_id = 1;
    entry_.function_id = 1;
    entry_.handler.device_fn_ptr = reinterpret_cast<void *>(&no_result);
    if (f.plays == kernel::graphs) {
      entry_.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
      entry_.handler.graph_exec = &graph_;
    }
    host_entry_ = test::host_entry("reverse", reverse_handler);
    host_entry_.function_id = 2;
    current = this;
  }
  ~device_life() override { current = nullptr; }
  bool spares_the_first_device() const override { return true; }

  std::vector<step> steps() override {
    cudaq_dispatcher_options_t options = sleeping_options();
    options.ordering = flavour_.plays == kernel::any_order ? CUDAQ_ORDERING_ANY : CUDAQ_ORDERING_FIFO;
    std::vector<step> all = {
        make_manager(),         make_ring(), make_dispatcher(0, config()), set_table(0, {&entry_, 1}), set_control(0),
        set_options(0, options)};
    const auto add = [&](std::initializer_list<step> more) { all.insert(all.end(), more); };
    if (flavour_.plays != kernel::unified)
      add({set_ring(0)});
    add({set_launch()});
    if (flavour_.plays == kernel::graphs)
      add({set_graph_io(), set_graph_io()});
    if (flavour_.shared) {
      cudaq_dispatcher_config_t host = host_config({kSlots, kSlotBytes, false});
      host.shared_ring_mode = 1;
      add({make_dispatcher(1, host), set_ring(1), set_table(1, {&host_entry_, 1}), set_control(1),
           set_options(1, sleeping_options()), start(1)});
    }
    add_readers(all, 0);
    const std::vector<step> requests = serve_all();
    const auto run = [&](const step &end) {
      add({start(0)});
      all.insert(all.end(), requests.begin(), requests.end());
      add({end});
    };
    run(refused(start(0), CUDAQ_OK));
    add_readers(all, 0);
    add({stop(0)});
    run(stop_timeout(0));
    add_readers(all, 0);
    if (flavour_.plays != kernel::unified && !flavour_.shared)
      add({set_ring(0)});
    run(destroy(0));
    if (flavour_.shared)
      add({serve(2), destroy(1)});
    add({destroy_ring(), destroy_manager()});
    return all;
  }

  /// The launch function: queues what plays the kernel.
  cudaError_t launch(cudaq_dispatch_launch_state_t *state, cudaStream_t stream) {
    if (faults::hits("the launch"))
      return cudaErrorLaunchOutOfResources;
    if (faults::hits("the launch function"))
      throw std::runtime_error("out of luck");
    const bool and_fail = faults::hits("the launch, but a kernel runs");
    const faults::exempt_scope program;
    if (flavour_.plays == kernel::of_the_program) {
      volatile int *const flag = members[0].flag;
      fake_cuda::launch(stream, [flag] {
        while (load_acquire(*flag) == 0)
          std::this_thread::sleep_for(kNap);
      });
      return and_fail ? cudaErrorUnknown : cudaSuccess;
    }
    state->taken = 1;
    state->resident_blocks = 1;
    if (flavour_.plays == kernel::graphs)
      play_scheduler(*state, stream);
    else
      play_loop(state->params, stream);
    state->error = and_fail ? cudaErrorUnknown : cudaSuccess;
    return cudaSuccess;
  }

private:
  static cudaError_t launch_v2(const cudaq_dispatch_launch_params_t *p) {
    return current->launch(static_cast<cudaq_dispatch_launch_state_t *>(p->state), p->stream);
  }
  static void launch_v1(volatile uint64_t *, volatile uint64_t *, uint8_t *, uint8_t *, size_t, size_t,
                        cudaq_function_entry_t *, size_t, volatile int *, uint64_t *, size_t, uint32_t, uint32_t,
                        cudaStream_t stream) {
    launch_by_state(stream);
  }
  static void launch_unified(void *, cudaq_function_entry_t *, size_t, volatile int *, uint64_t *,
                             cudaStream_t stream) {
    launch_by_state(stream);
  }
  static void launch_by_state(cudaStream_t stream) {
    auto *const state = static_cast<cudaq_dispatch_launch_state_t *>(cudaq_dispatch_launch_state());
    if (const cudaError_t error = current->launch(state, stream))
      state->error = error;
  }

  cudaq_dispatcher_config_t config() const {
    cudaq_dispatcher_config_t c{};
    c.device_id = 1;
    c.num_slots = flavour_.plays == kernel::unified ? 0 : kSlots;
    c.slot_size = flavour_.plays == kernel::unified ? 0 : kSlotBytes;
    c.threads_per_block = flavour_.plays == kernel::any_order ? 64 : 32;
    c.kernel_type = flavour_.plays == kernel::unified       ? CUDAQ_KERNEL_UNIFIED
                    : flavour_.plays == kernel::cooperative ? CUDAQ_KERNEL_COOPERATIVE
                                                            : CUDAQ_KERNEL_REGULAR;
    c.dispatch_mode = flavour_.plays == kernel::graphs ? CUDAQ_DISPATCH_GRAPH_LAUNCH : CUDAQ_DISPATCH_DEVICE_CALL;
    c.shared_ring_mode = flavour_.shared;
    return c;
  }
  step set_launch() {
    if (flavour_.plays == kernel::unified)
      return {"cudaq_dispatcher_set_unified_launch",
              [this] { return cudaq_dispatcher_set_unified_launch(members[0].get, launch_unified, nullptr); }};
    if (flavour_.old_form)
      return {"cudaq_dispatcher_set_launch_fn",
              [this] { return cudaq_dispatcher_set_launch_fn(members[0].get, launch_v1); }};
    return {"cudaq_dispatcher_set_launch_fn_v2",
            [this] { return cudaq_dispatcher_set_launch_fn_v2(members[0].get, launch_v2); }};
  }
  step set_graph_io() {
    return {"cudaq_dispatcher_set_graph_io", [this] {
              void *contexts[] = {&graph_context_};
              const cudaq_dispatch_graph_io_t io{sizeof(io), CUDAQ_GRAPH_IO_FORWARDED, 0, 1, contexts};
              return cudaq_dispatcher_set_graph_io(members[0].get, &io);
            }};
  }
  std::vector<step> serve_all() {
    if (flavour_.plays == kernel::graphs || flavour_.plays == kernel::of_the_program)
      return {};
    if (flavour_.shared)
      return {serve(1), serve(2), serve(1)};
    return {serve(1), serve(1)};
  }

  void play_loop(dispatch_params params, cudaStream_t stream) {
    if (flavour_.plays == kernel::unified) {
      params.ring = host_view_of_ring();
      params.ring.num_slots = kSlots;
    }
    const std::uint32_t groups = num_loops(params.any_order, 1, 64);
    fake_cuda::launch(stream, [params, groups] {
      std::vector<group_memory> workspaces(groups);
      std::vector<std::thread> threads;
      for (std::uint32_t g = 0; g < groups; ++g) {
        workspaces[g].lay_out(kSlotBytes, params.any_order);
        threads.emplace_back([&params, &workspaces, g, groups] {
          const faults::exempt_scope of_the_device;
          if (params.sharing == ring_sharing::routed) {
            std::uint32_t looked[inbox_transport<sleeping_thread_group>::kLooked] = {};
            run_group<false, sleeping_thread_group>(
                params, g, groups, workspaces[g],
                inbox_transport<sleeping_thread_group>(params.ring, params.inbox, looked));
          } else if (params.any_order) {
            run_group<true, sleeping_thread_group>(params, g, groups, workspaces[g],
                                                   device_transport(params.ring, params.first_slot));
          } else {
            run_group<false, sleeping_thread_group>(params, g, groups, workspaces[g],
                                                    device_transport(params.ring, params.first_slot));
          }
        });
      }
      for (std::thread &t : threads)
        t.join();
    });
  }
  slot_ring host_view_of_ring() const {
    return view_of(ring, host_config({kSlots, kSlotBytes, false}), ring_side::host);
  }

  static void play_scheduler(cudaq_dispatch_launch_state_t &state, cudaStream_t stream) {
    if (state.graphs.made == nullptr) {
      state.graphs.made = new int(1);
      state.graphs.destroy = [](void *made) { delete static_cast<int *>(made); };
    }
    state.graphs.launched = true;
    const dispatch_params params = state.params;
    fake_cuda::launch(stream, [params] {
      while (load_acquire(*params.library_shutdown) == 0 && load_acquire(*params.caller_shutdown) == 0) {
        store_relaxed(params.reports->heartbeat, load_relaxed(params.reports->heartbeat) + 1);
        std::this_thread::sleep_for(kNap);
      }
    });
  }

  const flavour flavour_;
  cudaq_function_entry_t entry_{}, host_entry_{};
  CUgraphExec_st graph_;
  alignas(8) std::uint64_t graph_context_[8] = {};
};

class DeviceFaults : public ::testing::TestWithParam<flavour> {
protected:
  void SetUp() override {
    if ((cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_DEVICE_PATH) == 0)
      GTEST_SKIP() << "this library was built without the CUDA runtime";
  }
};

TEST_P(DeviceFaults, LeaveTheDispatcherUsableAndLoseNothing) {
  fault_sweep sweep([] { return std::make_unique<device_life>(GetParam()); });
  sweep.each_call();
  sweep.pairs_in_the_end();
  std::vector<std::string> calls = {"operator new",        "the launch",
                                    "the launch function", "the launch, but a kernel runs",
                                    "cudaHostAlloc",       "cudaHostGetDevicePointer",
                                    "cudaFreeHost",        "cudaPointerGetAttributes",
                                    "cudaMallocAsync",     "cudaMemcpyAsync",
                                    "cudaFreeAsync",       "cudaStreamCreateWithPriority",
                                    "cudaStreamQuery",     "cudaStreamSynchronize",
                                    "cudaStreamDestroy",   "cudaDeviceGetAttribute",
                                    "cudaSetDevice",       "cuCtxPushCurrent"};
  if (GetParam().shared)
    calls.emplace_back("pthread_create"); // the routing thread
  sweep.expect_at_least(GetParam().least_faults, calls);
}

INSTANTIATE_TEST_SUITE_P(
    Flavours, DeviceFaults,
    ::testing::Values(flavour{"Regular", kernel::regular, false, cudaMemoryTypeHost, false, 480},
                      flavour{"WordsInDeviceMemory", kernel::regular, false, cudaMemoryTypeDevice, true, 480},
                      flavour{"AnyOrder", kernel::any_order, false, cudaMemoryTypeHost, false, 480},
                      flavour{"Cooperative", kernel::cooperative, false, cudaMemoryTypeHost, true, 480},
                      flavour{"Unified", kernel::unified, false, cudaMemoryTypeHost, false, 450},
                      flavour{"SharedRing", kernel::regular, true, cudaMemoryTypeHost, false, 520},
                      flavour{"GraphScheduler", kernel::graphs, false, cudaMemoryTypeHost, false, 480},
                      flavour{"KernelOfTheProgram", kernel::of_the_program, false, cudaMemoryTypeDevice, false, 430}),
    [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test

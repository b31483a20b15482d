// SPDX-License-Identifier: Apache-2.0
// Graph dispatch from the device: the C functions for the scheduler graphs.
#include "cudaq/realtime/daemon/dispatcher/device_dispatch.h"
#include "cudaq/realtime/daemon/dispatcher/upstream_interface.h"
#include "cudaq/realtime/detail/base/entered_device.h"
#include "kernels/entry_points/entry_points.cuh"
#include "kernels/graphs/graph_launch.cuh"

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

using namespace cudaq::realtime::detail;

struct cudaq_dispatch_graph_context {
  int device = 0;
  device_table table;
  scheduler_graphs schedulers;
  cudaStream_t stream = nullptr; ///< non-blocking, for freeing the table

  ~cudaq_dispatch_graph_context() {
    if (stream == nullptr)
      return;
    table.release(stream);
    cudaStreamDestroy(stream);
  }
};

namespace cudaq::realtime::detail {
namespace {

#if defined(CUDAQ_REALTIME_GRAPHS_ONLY)
/// For the library of programs without device functions: the kernel calls no function.
struct graph_table : table_handlers {
  static constexpr bool kCallsFunctions = false;
};
#else
using graph_table = entry_point_handlers;
#endif

} // namespace

static_assert(kTriggerStatus == CUDAQ_DISPATCH_STATUS_TRIGGER_GRAPH);

cudaError_t preload_graph_kernels() { return scheduler_graphs::preload<graph_table>(); }

namespace {

/// Reads a struct that may grow at its end. Fields that an older caller does not have are 0. Structs of a newer caller,
/// larger than T, are refused, and so are sizes that end inside a field. `eight_bytes_from`: where the
/// fields of 8 bytes begin; all fields before have 4 bytes.
template <class T>
bool read_sized(const T *given, T &into, std::size_t eight_bytes_from) {
  if (given == nullptr || given->struct_size == 0 || given->struct_size > sizeof(T) || given->struct_size % 4 != 0 ||
      (given->struct_size > eight_bytes_from && given->struct_size % 8 != 0))
    return false;
  std::memcpy(&into, given, given->struct_size);
  into.struct_size = sizeof(T);
  return true;
}

constexpr std::size_t kEightBytesInParams = offsetof(cudaq_dispatch_graph_params_t, launch);
constexpr std::size_t kEightBytesInLaunch = offsetof(cudaq_dispatch_launch_params_t, rx_flags);

constexpr std::uint8_t kSchedulerModes = 1u << CUDAQ_DISPATCH_DEVICE_CALL | 1u << CUDAQ_DISPATCH_GRAPH_LAUNCH;

cudaError_t check_device(const launch_report &report, int &device) {
  int major = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (error != cudaSuccess)
    return report(error, "reading the compute capability");
  if (!has_device_graphs(major))
    return report(cudaErrorNotSupported,
                  "device %d has compute capability %d.x; graph launches from the device need 9.0 or higher", device,
                  major);
  return cudaSuccess;
}

/// The plan of a context without a dispatcher, from the ring, the words and the table of `a`.
cudaError_t plan_directly(const cudaq_dispatch_graph_params_t &p, const cudaq_dispatch_launch_params_t &a,
                          cudaq_dispatch_graph_context &context, graph_plan &plan) {
  if (a.func_count > UINT32_MAX || p.ordering > CUDAQ_ORDERING_ANY ||
      p.unknown_function > CUDAQ_UNKNOWN_FUNCTION_ANSWER || p.graph_io_kind > CUDAQ_GRAPH_IO_PUBLISHING ||
      p.num_schedulers > kMaxMembers || (p.graph_io_ctxs == nullptr && a.func_count != 0) ||
      (a.function_table == nullptr && a.func_count != 0))
    return cudaErrorInvalidValue;
  dispatch_params &d = plan.dispatch;
  if (const cudaError_t refused = ring_of(a, d.ring))
    return refused;
  if (const device_error refused =
          context.table.load(a.function_table, static_cast<std::uint32_t>(a.func_count), a.stream, false, &plan.graphs))
    return refused.cuda != cudaSuccess ? refused.cuda : cudaErrorInvalidValue;
  context.table.fill(d);
  d.caller_shutdown = a.shutdown_flag;
  d.caller_stats = a.stats;
  d.rules.served_modes = kSchedulerModes;
  d.rules.answer_unknown = p.unknown_function == CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  for (graph_binding &b : plan.graphs) {
    b.io = reinterpret_cast<std::uint64_t>(p.graph_io_ctxs[b.entry]);
    b.publishes = p.graph_io_kind == CUDAQ_GRAPH_IO_PUBLISHING;
  }
  plan.members = p.num_schedulers == 0 ? kUsualMembers : p.num_schedulers;
  plan.order_by_key = p.ordering == CUDAQ_ORDERING_ANY;
  plan.own_streams = p.own_streams != 0;
  plan.shutdown_word = context.table.shutdown_word();
  return cudaSuccess;
}

struct trigger_counts {
  int error = 0;
  std::uint64_t launches = 0, relaunches = 0;
};

/// For cudaq_dispatch_get_trigger_debug. It is process-wide, because that function has no context as an argument: it
/// returns the counts of the newest context with a triggered graph, also when that context is destroyed.
class newest_trigger {
public:
  static newest_trigger &get() {
    static newest_trigger *const one = new newest_trigger; // never destroyed: contexts may live as long as the process
    return *one;
  }
  void set(cudaq_dispatch_graph_context *context) {
    const std::lock_guard lock(mutex_);
    context_ = context;
    counts_ = {};
  }
  /// Before the context is destroyed, with its device current.
  void forget(const cudaq_dispatch_graph_context *context) {
    const std::lock_guard lock(mutex_);
    if (context_ != context)
      return;
    (void)update();
    context_ = nullptr;
  }
  cudaError_t read(trigger_counts &out) {
    const std::lock_guard lock(mutex_);
    entered_device device;
    cudaError_t error = context_ != nullptr ? device.enter(context_->device) : cudaSuccess;
    if (error == cudaSuccess)
      error = update();
    out = counts_;
    return error;
  }

private:
  cudaError_t update() {
    loop_report loop{};
    graph_report graphs{};
    const cudaError_t error = context_ != nullptr ? context_->schedulers.read_reports(loop, graphs) : cudaSuccess;
    if (context_ != nullptr && error == cudaSuccess)
      counts_ = {static_cast<int>(graphs.trigger_error), graphs.triggered, loop.relaunches};
    return error;
  }
  std::mutex mutex_;
  cudaq_dispatch_graph_context *context_ = nullptr;
  trigger_counts counts_;
};

cudaError_t create(const cudaq_dispatch_graph_params_t &p, const cudaq_dispatch_launch_params_t &launch,
                   cudaGraphExec_t triggered, cudaq_dispatch_graph_context **out) {
  const launch_report report{nullptr};
  int device = 0;
  if (const cudaError_t refused = check_device(report, device))
    return refused;
  if (const cudaError_t error = preload_entry_points())
    return error;
  auto context = std::make_unique<cudaq_dispatch_graph_context>();
  context->device = device;
  if (const cudaError_t error = cudaStreamCreateWithFlags(&context->stream, cudaStreamNonBlocking))
    return error;
  graph_plan plan;
  if (const cudaError_t error = plan_directly(p, launch, *context, plan))
    return error;
  plan.triggered = reinterpret_cast<std::uint64_t>(triggered);
  if (const cudaError_t error =
          context->schedulers.create<graph_table>(plan, context->table.host_index().view(), launch.stream, report))
    return error;
  if (triggered != nullptr)
    newest_trigger::get().set(context.get());
  *out = context.release();
  return cudaSuccess;
}

void destroy_schedulers(void *made) { delete static_cast<scheduler_graphs *>(made); }

cudaError_t launch_for_dispatcher(const cudaq_dispatch_launch_params_t &p) {
  cudaq_dispatch_launch_state_t *state = nullptr;
  if (const cudaError_t refused = state_of(p.state, state))
    return refused;
  if (state == nullptr || state->graphs.members == 0) // only a dispatcher in GRAPH_LAUNCH mode has graph contexts
    return cudaErrorInvalidValue;
  const launch_report report{state};
  int device = 0;
  if (const cudaError_t refused = check_device(report, device))
    return refused;
  if (const cudaError_t error = preload_entry_points())
    return report(error, "loading the kernels");
  graph_launch_state &g = state->graphs;
  graph_plan plan;
  plan.dispatch = state->params;
  plan.dispatch.rules.served_modes = kSchedulerModes;
  plan.graphs.assign(g.graphs, g.graphs + g.num_graphs);
  plan.members = g.members;
  plan.order_by_key = g.order_by_key;
  plan.grace_ns = g.grace_ns;
  plan.report = g.report;
  const bool usable = g.destroy == destroy_schedulers && static_cast<scheduler_graphs *>(g.made)->rests();
  if (!usable) {
    g.made = new scheduler_graphs;
    g.destroy = destroy_schedulers;
  }
  scheduler_graphs &schedulers = *static_cast<scheduler_graphs *>(g.made);
  if (const cudaError_t error = schedulers.create<graph_table>(plan, g.host_index, p.stream, report))
    return error;
  report.will_hold(plan.members);
  g.launched = true; // even if the launch fails: something may be on the stream
  return report(schedulers.launch(p.stream), "launching the schedulers");
}

/// No exception crosses the C boundary.
template <class Body>
cudaError_t guarded(Body &&body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return cudaErrorMemoryAllocation;
  } catch (...) {
    return cudaErrorUnknown;
  }
}

cudaError_t create_checked(const cudaq_dispatch_graph_params_t *params, cudaGraphExec_t triggered,
                           cudaq_dispatch_graph_context **out_context) {
  if (out_context != nullptr)
    *out_context = nullptr;
  cudaq_dispatch_graph_params_t p{};
  cudaq_dispatch_launch_params_t launch{};
  if (out_context == nullptr || !read_sized(params, p, kEightBytesInParams) ||
      !read_sized(p.launch, launch, kEightBytesInLaunch) || launch.state != nullptr)
    return cudaErrorInvalidValue;
  return guarded([&] { return create(p, launch, triggered, out_context); });
}

/// The forms without a struct: one context for all graphs.
cudaError_t create_regular(const cudaq_dispatch_launch_params_t &launch, void *graph_io_ctx, cudaGraphExec_t triggered,
                           cudaq_dispatch_graph_context **out_context) {
  return guarded([&] {
    cudaq_dispatch_graph_params_t p{};
    p.struct_size = sizeof(p);
    p.launch = &launch;
    const std::vector<void *> contexts(launch.func_count, graph_io_ctx);
    p.graph_io_ctxs = contexts.data();
    return create_checked(&p, triggered, out_context);
  });
}

} // namespace
} // namespace cudaq::realtime::detail

extern "C" {

cudaError_t cudaq_create_dispatch_graph_v2(const cudaq_dispatch_graph_params_t *params,
                                           cudaq_dispatch_graph_context **out_context) {
  return create_checked(params, nullptr, out_context);
}

cudaError_t cudaq_create_dispatch_graph_regular_spec(volatile uint64_t *rx_flags, volatile uint64_t *tx_flags,
                                                     uint8_t *rx_data, uint8_t *tx_data, size_t rx_stride_sz,
                                                     size_t tx_stride_sz, cudaq_function_entry_t *function_table,
                                                     size_t func_count, void *graph_io_ctx, volatile int *shutdown_flag,
                                                     uint64_t *stats, size_t num_slots, uint32_t num_blocks,
                                                     uint32_t threads_per_block, cudaStream_t stream,
                                                     cudaq_dispatch_graph_context **out_context) {
  return create_regular({sizeof(cudaq_dispatch_launch_params_t), num_blocks, threads_per_block, 0, rx_flags, tx_flags,
                         rx_data, tx_data, rx_stride_sz, tx_stride_sz, function_table, func_count, shutdown_flag, stats,
                         num_slots, stream, nullptr},
                        graph_io_ctx, nullptr, out_context);
}

cudaError_t cudaq_create_dispatch_graph_regular_upstream(
    volatile uint64_t *rx_flags, volatile uint64_t *tx_flags, uint8_t *rx_data, uint8_t *tx_data, size_t rx_stride_sz,
    size_t tx_stride_sz, cudaq_function_entry_t *function_table, size_t func_count, void *graph_io_ctx,
    volatile int *shutdown_flag, uint64_t *stats, size_t num_slots, uint32_t num_blocks, uint32_t threads_per_block,
    cudaGraphExec_t triggered_graph_exec, cudaStream_t stream, cudaq_dispatch_graph_context **out_context) {
  if (out_context != nullptr)
    *out_context = nullptr;
  if (triggered_graph_exec != nullptr && num_blocks > 1)
    return cudaErrorInvalidValue;
  return create_regular({sizeof(cudaq_dispatch_launch_params_t), num_blocks, threads_per_block, 0, rx_flags, tx_flags,
                         rx_data, tx_data, rx_stride_sz, tx_stride_sz, function_table, func_count, shutdown_flag, stats,
                         num_slots, stream, nullptr},
                        graph_io_ctx, triggered_graph_exec, out_context);
}

cudaError_t cudaq_dispatch_get_trigger_debug(int *trigger_rc, unsigned long long *trigger_fires,
                                             unsigned long long *tail_relaunches) {
  trigger_counts counts;
  const cudaError_t error = newest_trigger::get().read(counts);
  if (trigger_rc != nullptr)
    *trigger_rc = counts.error;
  if (trigger_fires != nullptr)
    *trigger_fires = counts.launches;
  if (tail_relaunches != nullptr)
    *tail_relaunches = counts.relaunches;
  return error;
}

cudaError_t cudaq_launch_dispatch_graph(cudaq_dispatch_graph_context *context, cudaStream_t stream) {
  if (context == nullptr)
    return cudaErrorInvalidValue;
  entered_device device;
  if (const cudaError_t error = device.enter(context->device))
    return error;
  scheduler_graphs &schedulers = context->schedulers;
  if (schedulers.running())
    return cudaErrorNotReady;
  if (const cudaError_t error = schedulers.fault())
    return error;
  return schedulers.launch(stream);
}

cudaError_t cudaq_launch_dispatch_kernel_graph_v2(const cudaq_dispatch_launch_params_t *params) {
  cudaq_dispatch_launch_params_t p{};
  if (!read_sized(params, p, kEightBytesInLaunch))
    return cudaErrorInvalidValue;
  return guarded([&] { return launch_for_dispatcher(p); });
}

cudaError_t cudaq_destroy_dispatch_graph(cudaq_dispatch_graph_context *context) {
  if (context == nullptr)
    return cudaErrorInvalidValue;
  entered_device device;
  if (device.enter(context->device) != cudaSuccess && device.enter(context->device) != cudaSuccess)
    return cudaErrorNotReady; // any other error says that the context is freed
  if (!context->schedulers.end_within(std::chrono::nanoseconds(kUsualGraceNs + kEndAfterGraceNs)))
    return cudaErrorNotReady;
  const cudaError_t fault = context->schedulers.fault();
  newest_trigger::get().forget(context);
  delete context;
  return fault;
}

} // extern "C"

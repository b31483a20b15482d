// SPDX-License-Identifier: Apache-2.0
// Turns a plan into running scheduler graphs. Host code; it uses the CUDA runtime of the program that instantiates the
// kernel. Other kernels may run without limit, so this code waits for its own copies only.
#pragma once

#include "cudaq/realtime/detail/loop/launch.cuh"
#include "kernels/graphs/graph_block.h"
#include "kernels/graphs/graph_scheduler.cuh"
#include "kernels/graphs/one_node_graph.h"

#include <chrono>
#include <thread>

namespace cudaq::realtime::detail {

/// The scheduler graphs of one dispatcher with their state.
class scheduler_graphs {
public:
  scheduler_graphs() = default;
  scheduler_graphs(const scheduler_graphs &) = delete;
  scheduler_graphs &operator=(const scheduler_graphs &) = delete;
  ~scheduler_graphs() { release(); }

  /// For a dispatcher that has seen its last run end. True: no scheduler runs, and create() may be called again.
  bool rests() {
    untracked_ = nullptr; // its dispatcher may be destroyed
    return !running();
  }
  /// Uses `stream` and waits for it. May be called again for the next run and then reuses the graphs: a graph for
  /// launches from the device can be created, but not destroyed, while kernels run.
  template <class Handlers>
  cudaError_t create(const graph_plan &plan, const function_index_view &host_index, cudaStream_t stream,
                     const launch_report &report) {
    if (plan.members == 0 || plan.members > kMaxMembers)
      return report(cudaErrorInvalidValue, "%u schedulers, allowed: 1..%u", plan.members, kMaxMembers);
    for (const graph_binding &b : plan.graphs)
      if (b.io == 0 || b.io % alignof(GraphIOContext) != 0)
        return report(cudaErrorInvalidValue,
                      "entry %u of the function table: its GraphIOContext is NULL or not a multiple of 8; each graph "
                      "needs one",
                      b.entry);
    if (const auto [a, b] = graph_of_two_contexts(plan.graphs); a != nullptr)
      return report(cudaErrorInvalidValue,
                    "entries %u and %u have the same graph and different contexts; give both one context, or each its "
                    "own graph",
                    a->entry, b->entry);
    if (!Handlers::kCallsFunctions)
      for (std::uint32_t r = 0; r < host_index.num_routes; ++r)
        if (host_index.routes[r].mode == CUDAQ_DISPATCH_DEVICE_CALL)
          return report(cudaErrorNotSupported,
                        "function 0x%08x is a device call: its address is valid in one module only; device-link it "
                        "with libcudaq-realtime-dispatch.a",
                        host_index.routes[r].function_id);
    void *const kernel = kernel_for<Handlers>(plan);
    if (const cudaError_t error = preload<Handlers>())
      return report(error, "loading the scheduler's kernels");
    graph_block block = make_graph_block(plan, host_index, params_.layout);
    const std::uint32_t memory =
        scheduler_memory(plan.dispatch.ring.slot_size, params_.layout.shared() ? params_.layout.image_bytes : 0);
    const std::uint32_t reserved = report.state != nullptr ? report.state->reserved_blocks : 0;
    std::uint32_t room = 0;
    if (const cudaError_t error = room_for_blocks(kernel, kSchedulerThreads, memory, reserved, room))
      return report(error, "occupancy of the scheduler");
    if (plan.members > room)
      return report(
          cudaErrorLaunchOutOfResources,
          "no room for the blocks of %u schedulers: %u blocks are resident, and %u more fit; use fewer schedulers",
          plan.members, reserved, room);
    shutdown_word_ = plan.shutdown_word;
    params_.dispatch = plan.dispatch;
    params_.members = plan.members;
    if (const cudaError_t error = allocate(block, stream))
      return report(error, "memory of the graph scheduler's state (%zu bytes)", block.size());
    for (std::uint32_t k = 0; k < plan.members; ++k)
      if (const cudaError_t error = add_member(kernel, memory, k, plan.own_streams, stream))
        return report(error, "making scheduler graph %u", k);
    if (!plan.own_streams)
      if (const cudaError_t error = add_root(stream))
        return report(error, "making the root graph");
    return report(cudaStreamSynchronize(stream), "uploading the scheduler graphs");
  }

  /// The run has ended when `stream` has. cudaErrorNotReady: the last launch still runs. After another error some
  /// members may run; without a dispatcher this call then sets the stop word for them.
  cudaError_t launch(cudaStream_t stream) {
    if (running())
      return cudaErrorNotReady;
    cudaError_t error = prepare(stream);
    if (error == cudaSuccess) {
      launched_ = true;
      error = root_.exec != nullptr ? cudaGraphLaunch(root_.exec, stream) : launch_members(stream);
      if (error == cudaSuccess)
        error = cudaEventRecord(end_, stream);
      if (error == cudaSuccess)
        return cudaSuccess;
      cudaStreamWaitEvent(own_, begin_, 0); // after the words that let them serve
      set_stop(1, own_);
    }
    if (cudaEventRecord(end_, stream) != cudaSuccess) // work on the stream may still write into the block
      untracked_ = stream;
    return error;
  }
  /// The error that ended the last run, or cudaSuccess; each error is returned once. Waits for a copy: without a
  /// dispatcher the report is in device memory.
  cudaError_t fault() {
    if (!launched_)
      return cudaSuccess;
    launched_ = false;
    std::uint32_t word = 0;
    cudaError_t error =
        cudaMemcpyAsync(&word, &params_.dispatch.reports->fault, sizeof(word), cudaMemcpyDeviceToHost, own_);
    if (error == cudaSuccess)
      error = cudaStreamSynchronize(own_);
    return error == cudaSuccess ? static_cast<cudaError_t>(word) : error;
  }
  /// Without a dispatcher: what the schedulers have posted, in all runs. Waits for a copy.
  cudaError_t read_reports(loop_report &loop, graph_report &graphs) const {
    const loop_report *const posted = report_in_block();
    cudaError_t error = cudaMemcpyAsync(&loop, posted, sizeof(loop), cudaMemcpyDeviceToHost, own_);
    if (error == cudaSuccess)
      error = cudaMemcpyAsync(&graphs, posted + 1, sizeof(graphs), cudaMemcpyDeviceToHost, own_);
    const cudaError_t copied = cudaStreamSynchronize(own_); // also after an error: both are the caller's memory
    return error == cudaSuccess ? copied : error;
  }
  /// Without a dispatcher: requests the end of the run and waits for it. False: it did not end within `limit`; the
  /// request stands.
  bool end_within(std::chrono::nanoseconds limit) {
    constexpr auto kPollInterval = std::chrono::microseconds(50);
    if (!running())
      return true;
    const auto until = std::chrono::steady_clock::now() + limit;
    cudaError_t error = set_stop(1, own_);
    while (running()) {
      if (error != cudaSuccess) // without this copy the scheduler runs on
        error = set_stop(1, own_);
      if (std::chrono::steady_clock::now() >= until)
        return false;
      std::this_thread::sleep_for(kPollInterval);
    }
    return true;
  }
  bool running() {
    if (!busy(untracked_))
      untracked_ = nullptr;
    return untracked_ != nullptr || (end_ != nullptr && goes_on([this] { return cudaEventQuery(end_); })) ||
           busy(own_) ||
           std::any_of(members().begin(), members().end(), [](const member &m) { return busy(m.stream); });
  }

  template <class Handlers>
  static cudaError_t preload() {
    int device = 0, max_memory = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
      error = cudaDeviceGetAttribute(&max_memory, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    for (const auto kernel :
         {graph_scheduler_kernel<Handlers, thread_scope_device>, graph_scheduler_kernel<Handlers, thread_scope_system>})
      if (error == cudaSuccess)
        error = cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, max_memory);
    cudaFuncAttributes loaded;
    return error == cudaSuccess ? cudaFuncGetAttributes(&loaded, reinterpret_cast<const void *>(graph_root_kernel))
                                : error;
  }

private:
  struct member : one_node_graph {
    cudaStream_t stream = nullptr; ///< with own_streams, for all members but the first
    cudaEvent_t end = nullptr;     ///< on this stream, after the member
  };

  /// Queries at most three times while they return an error: a single error may concern the query alone, and
  /// a scheduler that is taken for ended goes on to use its memory.
  template <class Query>
  static bool goes_on(Query &&query) {
    constexpr int kQueries = 3;
    cudaError_t found = query();
    for (int n = 1; n < kQueries && found != cudaSuccess && found != cudaErrorNotReady; ++n)
      found = query();
    return found == cudaErrorNotReady;
  }
  static bool busy(cudaStream_t stream) {
    return stream != nullptr && goes_on([stream] { return cudaStreamQuery(stream); });
  }
  std::vector<member> &members() { return members_[params_.dispatch.device_scope ? 1 : 0]; }
  template <class Handlers>
  static void *kernel_for(const graph_plan &plan) {
    return reinterpret_cast<void *>(plan.dispatch.device_scope ? graph_scheduler_kernel<Handlers, thread_scope_device>
                                                               : graph_scheduler_kernel<Handlers, thread_scope_system>);
  }

  /// One block of memory: the state, then reports for the case without a dispatcher, then the members' handles. Copies
  /// only: a memset may be a kernel that has to be loaded first.
  cudaError_t allocate(graph_block &block, cudaStream_t stream) {
    cudaError_t error = own_ == nullptr ? cudaStreamCreateWithFlags(&own_, cudaStreamNonBlocking) : cudaSuccess;
    void *memory = nullptr;
    if (error == cudaSuccess && params_.block != nullptr)
      error = cudaFreeAsync(params_.block, stream);
    if (error == cudaSuccess)
      error = cudaMallocAsync(&memory, execs_at() + kMaxMembers * sizeof(cudaGraphExec_t), stream);
    params_.block = static_cast<std::uint8_t *>(memory);
    auto &state = *reinterpret_cast<graph_scheduler_words *>(block.data());
    if (state.report == nullptr)
      state.report = reinterpret_cast<graph_report *>(report_in_block() + 1);
    if (error == cudaSuccess)
      error = cudaMemcpyAsync(memory, block.data(), block.size(), cudaMemcpyHostToDevice, stream);
    const struct {
      loop_report loop{};
      graph_report graphs{};
    } nothing_yet;
    static_assert(offsetof(decltype(nothing_yet), graphs) == sizeof(loop_report));
    if (error == cudaSuccess)
      error = cudaMemcpyAsync(params_.block + params_.layout.bytes, &nothing_yet, sizeof(nothing_yet),
                              cudaMemcpyHostToDevice, stream);
    if (params_.dispatch.reports == nullptr)
      params_.dispatch.reports = report_in_block();
    if (error == cudaSuccess)
      error = cudaStreamSynchronize(stream);
    for (cudaEvent_t *event : {&begin_, &end_})
      if (error == cudaSuccess && *event == nullptr)
        error = cudaEventCreateWithFlags(event, cudaEventDisableTiming);
    return error;
  }

  loop_report *report_in_block() const { return reinterpret_cast<loop_report *>(params_.block + params_.layout.bytes); }
  /// The report is in the block. Otherwise it belongs to a dispatcher, which resets it for each run.
  bool own_report() const { return params_.dispatch.reports == report_in_block(); }
  std::size_t execs_at() const { return params_.layout.bytes + 2 * sizeof(loop_report); } // a graph_report is smaller

  cudaError_t add_member(void *kernel, std::uint32_t memory, std::uint32_t number, bool own_stream,
                         cudaStream_t stream) {
    if (number == members().size())
      members().emplace_back();
    member &m = members()[number];
    graph_params own = params_;
    own.number = number;
    void *arguments[] = {&own};
    cudaKernelNodeParams node{};
    node.func = kernel;
    node.gridDim = dim3(1);
    node.blockDim = dim3(kSchedulerThreads);
    node.sharedMemBytes = memory;
    node.kernelParams = arguments;
    cudaError_t error = m.set(node, cudaGraphInstantiateFlagDeviceLaunch);
    if (error == cudaSuccess)
      error = cudaGraphUpload(m.exec, stream);
    if (number == 0 || !own_stream || m.stream != nullptr)
      return error;
    if (error == cudaSuccess)
      error = cudaStreamCreateWithFlags(&m.stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
      error = cudaEventCreateWithFlags(&m.end, cudaEventDisableTiming);
    return error;
  }

  cudaError_t add_root(cudaStream_t stream) {
    cudaGraphExec_t execs[kMaxMembers] = {};
    for (std::uint32_t k = 0; k < params_.members; ++k)
      execs[k] = members()[k].exec;
    std::uint8_t *const at = params_.block + execs_at();
    if (const cudaError_t error = cudaMemcpyAsync(at, execs, sizeof(execs), cudaMemcpyHostToDevice, stream))
      return error;
    const auto *schedulers = reinterpret_cast<const cudaGraphExec_t *>(at);
    auto *words = reinterpret_cast<graph_rotation_words *>(params_.block + params_.layout.rotation);
    std::uint32_t *fault = &params_.dispatch.reports->fault;
    void *arguments[] = {&schedulers, &params_.members, &words, &fault};
    cudaKernelNodeParams node{};
    node.func = reinterpret_cast<void *>(graph_root_kernel);
    node.gridDim = node.blockDim = dim3(1);
    node.kernelParams = arguments;
    return root_.set(node, 0);
  }

  /// Writes the stop word, if there is one: only without a dispatcher.
  cudaError_t set_stop(std::uint32_t stop, cudaStream_t by) {
    return shutdown_word_ == nullptr ? cudaSuccess
                                     : cudaMemcpyAsync(shutdown_word_, &stop, sizeof(stop), cudaMemcpyHostToDevice, by);
  }
  /// Resets the words of a run.
  cudaError_t prepare(cudaStream_t stream) {
    graph_rotation_words words{};
    words.token = root_.exec != nullptr ? kTokenShut : kTokenFree;
    const graph_stop_words not_stopped{};
    const std::uint32_t no = 0;
    cudaError_t error =
        cudaMemcpyAsync(params_.block + params_.layout.rotation, &words, sizeof(words), cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess)
      error = cudaMemcpyAsync(params_.block + offsetof(graph_scheduler_words, stop), &not_stopped, sizeof(not_stopped),
                              cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess && own_report())
      error = cudaMemcpyAsync(&params_.dispatch.reports->fault, &no, sizeof(no), cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess)
      error = set_stop(0, stream);
    return error == cudaSuccess ? cudaEventRecord(begin_, stream) : error;
  }
  cudaError_t launch_members(cudaStream_t stream) {
    cudaError_t error = cudaSuccess;
    for (std::uint32_t k = 1; k < params_.members && error == cudaSuccess; ++k) {
      const member &m = members()[k];
      error = cudaStreamWaitEvent(m.stream, begin_, 0);
      if (error == cudaSuccess)
        error = cudaGraphLaunch(m.exec, m.stream);
      if (error == cudaSuccess)
        error = cudaEventRecord(m.end, m.stream);
    }
    if (error == cudaSuccess)
      error = cudaGraphLaunch(members()[0].exec, stream);
    for (std::uint32_t k = 1; k < params_.members && error == cudaSuccess; ++k)
      error = cudaStreamWaitEvent(stream, members()[k].end, 0);
    return error;
  }

  void release() {
    root_.destroy();
    for (const std::vector<member> &of_a_scope : members_)
      for (const member &m : of_a_scope) {
        m.destroy();
        if (m.stream != nullptr)
          cudaStreamDestroy(m.stream);
        if (m.end != nullptr)
          cudaEventDestroy(m.end);
      }
    for (const cudaEvent_t event : {begin_, end_})
      if (event != nullptr)
        cudaEventDestroy(event);
    if (params_.block != nullptr)
      cudaFreeAsync(params_.block, own_);
    if (own_ != nullptr)
      cudaStreamDestroy(own_);
  }

  graph_params params_;
  std::vector<member> members_[2]; ///< by params_.dispatch.device_scope: a graph keeps its kernel
  one_node_graph root_;            ///< launches the members; not with own_streams
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  cudaStream_t own_ = nullptr;            ///< for work that must not wait for the caller's stream
  cudaStream_t untracked_ = nullptr;      ///< the caller's stream after a launch whose end could not be recorded
  std::uint8_t *shutdown_word_ = nullptr; ///< nullptr: a dispatcher writes it
  bool launched_ = false;                 ///< there was a run whose fault() was not read yet
};

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// The part of a device start that calls the launch function and verifies that a kernel runs.
#include "lib/api/device_path/device_back_end.h"
#include "lib/base/cuda_device.h"

#include <cstdio>

namespace cudaq::realtime::detail {
namespace {

constexpr auto kProofDeadline = std::chrono::seconds(5);

/// The dispatcher whose launch function the calling thread is in.
thread_local const device_back_end *launching = nullptr;

} // namespace

const char *device_back_end::caller_is_inside() const { return launching == this ? "the launch function" : nullptr; }

expected<> device_back_end::launch(const wiring &w, cudaq_dispatch_launch_state_t &state) {
  state.reserved_blocks = manager_.add_resident(this, config_.device_id, blocks());
  if (expected<> result = set_caller_flag(0); result.failed())
    return result;
  if (const cudaError_t error = cudaStreamSynchronize(control_stream_)) {
    (void)set_caller_flag(flag_before_);
    return cuda_failed("clearing shutdown_flag", error);
  }
  // From here to the end of the start nothing may throw: a kernel may run.
  cudaError_t said = cudaSuccess;
  expected<> result;
  const auto take_over = [&] { // whatever the launch function has launched
    own_kernel_.store(state.taken == 0);
    if (state.resident_blocks != 0) // the blocks that the library's kernel really occupies
      manager_.add_resident(this, config_.device_id, state.resident_blocks);
    under_way_.store(1);
    take_made(state.graphs);
  };
  try {
    said = call_launch_fn(w, state);
  } catch (abi::__forced_unwind &) { // pthread_exit in the launch function: start does not return
    take_over();
    (void)end_failed_launch({CUDAQ_ERR_INTERNAL, ""});
    throw;
  } catch (...) {
    result = make_reason(CUDAQ_ERR_INTERNAL, "the launch function threw an exception");
  }
  if (said == cudaSuccess)
    said = static_cast<cudaError_t>(state.error);
  take_over();
  if (result.failed())
    return end_failed_launch(result.reason());
  if (said == cudaSuccess && shared() && state.taken == 0)
    return end_failed_launch(make_reason(CUDAQ_ERR_UNSUPPORTED,
                                         "config->shared_ring_mode is %u: the launch function launched no kernel of "
                                         "the library; another kernel would take the requests of other dispatchers",
                                         config_.shared_ring_mode));
  if (said == cudaSuccess && launches_graphs() && !state.graphs.launched)
    return end_failed_launch(make_reason(CUDAQ_ERR_UNSUPPORTED,
                                         "config->dispatch_mode is 1 (graph launch): the launch function launched no "
                                         "graph scheduler; use cudaq_launch_dispatch_kernel_graph_v2"));
  if (said == cudaSuccess)
    return prove_running(state);
  state.text[sizeof(state.text) - 1] = '\0';
  return end_failed_launch(make_reason(said == cudaErrorCooperativeLaunchTooLarge ? CUDAQ_ERR_INVALID_ARG
                                       : said == cudaErrorNotSupported            ? CUDAQ_ERR_UNSUPPORTED
                                                                                  : CUDAQ_ERR_CUDA,
                                       "launch of the dispatch kernel: %s (%s)",
                                       state.text[0] != '\0' ? state.text : cudaGetErrorString(said),
                                       cudaGetErrorName(said)));
}

cudaError_t device_back_end::call_launch_fn(const wiring &w, cudaq_dispatch_launch_state_t &state) {
  struct scope {
    scope(const device_back_end *who, void *s) {
      launching = who;
      launch_state_of_this_thread = s;
    }
    ~scope() {
      launching = nullptr;
      launch_state_of_this_thread = nullptr;
    }
  };
  const scope inside(this, &state);
  if (unified()) {
    if (w.unified.peer_fn != nullptr)
      w.unified.peer_fn(w.unified.transport_ctx, config_.slot_size, w.table->entries, w.table->count, w.shutdown_flag,
                        w.stats, kernel_stream_);
    else
      w.unified.spec_fn(w.unified.transport_ctx, w.table->entries, w.table->count, w.shutdown_flag, w.stats,
                        kernel_stream_);
    return cudaSuccess;
  }
  // The library's kernels take the ring from the state. Another kernel must not touch a ring that others serve.
  const slot_ring &ring = shared() ? decoy_ : state.params.ring;
  if (w.launch_fn != nullptr) {
    w.launch_fn(ring.rx_flags, ring.tx_flags, ring.rx_data, ring.tx_data, ring.rx_stride, ring.tx_stride,
                w.table->entries, w.table->count, w.shutdown_flag, w.stats, ring.num_slots, blocks(), threads(),
                kernel_stream_);
    return cudaSuccess;
  }
  cudaq_dispatch_launch_params_t p{};
  p.struct_size = sizeof(p);
  p.num_blocks = blocks();
  p.threads_per_block = threads();
  p.rx_flags = ring.rx_flags;
  p.tx_flags = ring.tx_flags;
  p.rx_data = ring.rx_data;
  p.tx_data = ring.tx_data;
  p.rx_stride_sz = ring.rx_stride;
  p.tx_stride_sz = ring.tx_stride;
  p.function_table = w.table->entries;
  p.func_count = w.table->count;
  p.shutdown_flag = w.shutdown_flag;
  p.stats = w.stats;
  p.num_slots = config_.num_slots;
  p.stream = kernel_stream_;
  p.state = &state;
  return w.launch_fn_v2(&p);
}

/// The library's CUDA runtime does not see launch errors of the program's runtime. Therefore start verifies that the
/// kernel runs: the library's kernel must post a heartbeat, another kernel must be on its stream.
expected<> device_back_end::prove_running(const cudaq_dispatch_launch_state_t &state) {
  const bool ours = state.taken != 0;
  const auto queued = [&] { return stream_state(kernel_stream_) == cudaErrorNotReady; };
  if (ours)
    wait_until(steady_clock::now() + kProofDeadline, [&] { return reports_.heard() || !queued(); });
  const cudaError_t now = stream_state(kernel_stream_);
  const bool proved = ours ? reports_.heard() : now == cudaErrorNotReady;
  if (proved &&
      (now == cudaErrorNotReady || now == cudaSuccess)) // success: the caller's flag has ended the kernel already
    return {};
  if (now == cudaErrorNotReady) {
    (void)raise_shutdown();
    char what[64];
    if (launches_graphs())
      std::snprintf(what, sizeof(what), "any of the blocks of %u schedulers", state.graphs.members);
    else
      std::snprintf(what, sizeof(what), "%u blocks of %u threads", blocks(), threads());
    return make_reason(
        CUDAQ_ERR_TIMEOUT,
        "the dispatch kernel was queued but did not begin to run within 5 s: device %d has no room for "
        "%s together with the resident kernels, or no hardware queue is left (see CUDA_DEVICE_MAX_CONNECTIONS); "
        "it will end as soon as it begins",
        config_.device_id, what);
  }
  under_way_.store(0);
  (void)set_caller_flag(flag_before_);
  if (now == cudaSuccess)
    if (expected<> result = gave_up(); result.failed())
      return result;
  if (now != cudaSuccess)
    return cuda_failed("the dispatch kernel ended immediately", now);
  return make_reason(CUDAQ_ERR_CUDA, "the launch function left no running kernel on its stream: its launch failed (see "
                                     "cudaGetLastError in the program), or the kernel has ended immediately");
}

/// A launch function that reports an error may still have launched a kernel: it is stopped here.
expected<> device_back_end::end_failed_launch(reason why) {
  expected<> result;
  if (stream_state(kernel_stream_) == cudaErrorNotReady && !end_kernel(steady_clock::now() + kProofDeadline, result))
    return make_reason(CUDAQ_ERR_TIMEOUT, "%s; the work that it left on its stream did not end within 5 s",
                       why.text.c_str());
  under_way_.store(0);
  (void)set_caller_flag(flag_before_);
  return why;
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
#include "lib/api/device_path/device_back_end.h"

#include "cudaq/realtime/detail/ring/ring_record.h"
#include "lib/api/device_path/idle_blocks.h"
#include "lib/base/cuda_device.h"
#include "lib/host_dispatcher/diagnostics.h"

#include <cinttypes>
#include <cstdio>

namespace cudaq::realtime::detail {
namespace {

constexpr auto kProofDeadline = std::chrono::seconds(5);

/// The dispatcher whose launch function the calling thread is in.
thread_local const device_back_end *launching = nullptr;

expected<> as_reason(const device_error &e) {
  return {e.cuda == cudaSuccess ? CUDAQ_ERR_INVALID_ARG : CUDAQ_ERR_CUDA, e.text};
}

void *address_of(const volatile void *p) { return reinterpret_cast<void *>(reinterpret_cast<std::uintptr_t>(p)); }

/// The host address of the memory that a device sees at `p`. NULL if the host cannot access it directly.
void *host_address(const volatile void *p) {
  cudaPointerAttributes a{};
  if (cudaPointerGetAttributes(&a, const_cast<const void *>(p)) != cudaSuccess)
    return nullptr;
  return a.type == cudaMemoryTypeHost ? a.hostPointer : a.type == cudaMemoryTypeUnregistered ? address_of(p) : nullptr;
}

bool is_memory_of(int device, const volatile void *p) {
  cudaPointerAttributes a{};
  return cudaPointerGetAttributes(&a, const_cast<const void *>(p)) == cudaSuccess && a.type == cudaMemoryTypeDevice &&
         a.device == device;
}

} // namespace

const char *device_back_end::missing_call(const wiring &w) const {
  if (!w.ring && !unified())
    return "cudaq_dispatcher_set_ringbuffer";
  if (!w.table)
    return "cudaq_dispatcher_set_function_table";
  if (w.shutdown_flag == nullptr)
    return "cudaq_dispatcher_set_control";
  if (unified())
    return w.unified.none() ? "cudaq_dispatcher_set_unified_launch with a launch_fn" : nullptr;
  if (launches_graphs() && !w.graph_io)
    return "cudaq_dispatcher_set_graph_io";
  return w.launch_fn == nullptr && w.launch_fn_v2 == nullptr ? "cudaq_dispatcher_set_launch_fn" : nullptr;
}

device_back_end::~device_back_end() {
  member_.leave();
  if (inbox_memory_ != nullptr)
    manager_.give_back_mapped_block(inbox_memory_);
  if (schedulers_.made != nullptr)
    manager_.keep_spare_graphs(schedulers_);
  if (control_stream_ == nullptr && kernel_stream_ == nullptr)
    return;
  const device_guard guard(config_.device_id);
  table_.release(control_stream_);
  if (grid_memory_ != nullptr)
    cudaFreeAsync(grid_memory_, control_stream_);
  for (const cudaStream_t stream : {control_stream_, kernel_stream_})
    if (stream != nullptr)
      cudaStreamDestroy(stream);
}

// ------------------------------------------------------------------ start --

expected<> device_back_end::start(wiring &w) {
  if (expected<> result = check_device_options(w.options, config_); result.failed())
    return result;
  const auto prepare_and_launch = [&]() -> expected<> {
    cudaq_dispatch_launch_state_t state;
    if (expected<> result = prepare(w, state); result.failed())
      return result;
    if (expected<> result = join_ring(w); result.failed())
      return result;
    return launch(w, state);
  };
  expected<> result;
  try {
    result = take_ring(w);
    if (result.ok())
      result = on_device(config_.device_id, prepare_and_launch);
  } catch (...) {
    if (under_way_.load() == 0)
      release_ring();
    throw;
  }
  if (under_way_.load() == 0)
    release_ring();
  if (result.ok())
    w.rewired = false;
  return result;
}

void device_back_end::release_ring() {
  manager_.remove_resident(this);
  manager_.unclaim(this);
  if (held_ring_ == nullptr)
    return;
  if (shared()) {
    member_.leave();
    manager_.leave_ring(held_ring_);
  } else {
    manager_.release_ring(held_ring_);
  }
  held_ring_ = nullptr;
}

expected<> device_back_end::acquire_streams() {
  int least = 0, greatest = 0;
  if (const cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest))
    return cuda_failed("cudaDeviceGetStreamPriorityRange", error);
  const auto make = [](cudaStream_t &stream, int priority) -> expected<> {
    if (stream == nullptr)
      if (const cudaError_t error = cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority))
        return cuda_failed("cudaStreamCreateWithPriority", error);
    return {};
  };
  if (expected<> result = make(control_stream_, greatest); result.failed())
    return result;
  return make(kernel_stream_, least);
}

expected<> device_back_end::check_memory(const wiring &w) {
  int pageable = 0;
  if (const cudaError_t error = cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, config_.device_id))
    return cuda_failed("cudaDeviceGetAttribute", error);
  const cudaq_ringbuffer_t ring = unified() ? cudaq_ringbuffer_t{} : *w.ring;
  const struct {
    const char *what;
    const volatile void *where;
  } areas[] = {{"shutdown_flag", w.shutdown_flag},      {"stats", w.stats},
               {"ringbuffer->rx_flags", ring.rx_flags}, {"ringbuffer->tx_flags", ring.tx_flags},
               {"ringbuffer->rx_data", ring.rx_data},   {"ringbuffer->tx_data", ring.tx_data}};
  for (const auto &area : areas) {
    if (area.where == nullptr)
      continue;
    cudaPointerAttributes a{};
    if (const cudaError_t error = cudaPointerGetAttributes(&a, const_cast<const void *>(area.where)))
      return cuda_failed(area.what, error);
    if (a.type == cudaMemoryTypeUnregistered && pageable == 0)
      return make_reason(CUDAQ_ERR_INVALID_ARG,
                         "%s is %p: plain host memory, which device %d cannot reach; it must be pinned and mapped, "
                         "managed, or device memory",
                         area.what, address_of(area.where), config_.device_id);
  }
  return {};
}

expected<> device_back_end::prepare(const wiring &w, cudaq_dispatch_launch_state_t &state) {
  dispatch_params &p = state.params;
  if (expected<> result = acquire_streams(); result.failed())
    return result;
  if (expected<> result = check_memory(w); result.failed())
    return result;
  table_.release(control_stream_);
  if (const device_error e = table_.load(w.table->entries, w.table->count, control_stream_, unified(),
                                         launches_graphs() ? &graphs_ : nullptr))
    return as_reason(e);
  if (expected<> result = prepare_graphs(w, state.graphs); result.failed())
    return result;
  table_.fill(p);
  p.rules.served_modes = 1u << CUDAQ_DISPATCH_DEVICE_CALL;
  p.rules.answer_unknown = w.options.unknown_function == CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  p.rules.check_schema = w.options.check_schema != 0;
  p.rules.strict_flag_values = w.options.strict_flag_values != 0;
  p.any_order = w.options.ordering == CUDAQ_ORDERING_ANY && config_.kernel_type == CUDAQ_KERNEL_REGULAR &&
                !launches_graphs(); // a graph scheduler is one loop, also with ANY ordering
  if (expected<> result = prepare_ring(w, p); result.failed())
    return result;
  if (expected<> result = prepare_sharing(w, p); result.failed())
    return result;
  if (expected<> result = prepare_words(w); result.failed())
    return result;
  p.caller_shutdown = w.shutdown_flag;
  p.caller_stats = w.stats;
  if (expected<> result = prepare_reports(w, p); result.failed())
    return result;
  state.graphs.report = reinterpret_cast<graph_report *>(p.reports + num_loops(p.any_order, blocks(), threads()));
  if (cooperative())
    if (expected<> result = prepare_grid(p); result.failed())
      return result;
  if (const cudaError_t error = cudaStreamSynchronize(control_stream_))
    return cuda_failed("preparing the start", error);
  const std::lock_guard lock(reading_);
  account_ = {w.options, w.ring, state.graphs.num_graphs, state.graphs.members, graph_names(), ""};
  return {};
}

expected<> device_back_end::prepare_ring(const wiring &w, dispatch_params &p) const {
  if (unified())
    return {};
  p.ring = view_of(*w.ring, config_, ring_side::device);
  if (w.ring->tx_flags_host == nullptr)
    p.ring.lap_offset =
        lap_offset_of(static_cast<const std::uint64_t *>(host_address(w.ring->tx_flags)), config_.num_slots);
  cudaPointerAttributes a{};
  if (p.ring.lap_offset != 0 && cudaPointerGetAttributes(&a, w.ring->rx_data) == cudaSuccess &&
      (a.type == cudaMemoryTypeDevice || a.type == cudaMemoryTypeManaged) && a.device != config_.device_id)
    return make_reason(CUDAQ_ERR_UNSUPPORTED,
                       "the ring's requests are in the memory of device %d, and config->device_id is %d: only that "
                       "device sees the CPU's writes to it in order",
                       a.device, config_.device_id);
  // A NIC, too, can write device memory: only the caller can promise (ring_peers) that just this device's kernels do.
  p.device_scope = w.options.ring_peers == CUDAQ_RING_PEERS_SAME_DEVICE &&
                   is_memory_of(config_.device_id, p.ring.rx_flags) && is_memory_of(config_.device_id, p.ring.tx_flags);
  return {};
}

expected<> device_back_end::prepare_words(const wiring &w) {
  caller_flag_ = w.shutdown_flag;
  caller_flag_host_ = static_cast<volatile int *>(host_address(w.shutdown_flag));
  stats_host_.store(static_cast<const std::uint64_t *>(host_address(w.stats)));
  if (caller_flag_host_ != nullptr)
    flag_before_ = load_acquire(*caller_flag_host_);
  else if (expected<> result = copy_word(&flag_before_, address_of(w.shutdown_flag), sizeof(flag_before_));
           result.failed())
    return result;
  std::uint64_t stats = 0;
  if (const std::uint64_t *host = stats_host_.load())
    stats = load_relaxed(*host);
  else if (expected<> result = copy_word(&stats, w.stats, sizeof(stats)); result.failed())
    return result;
  stats_base_.store(stats - reports_.processed());
  started_.store(1);
  return {};
}

expected<> device_back_end::prepare_reports(const wiring &w, dispatch_params &p) {
  p.first_slot = w.rewired ? 0 : reports_.cursor();
  if (config_.num_slots != 0)
    p.first_slot %= config_.num_slots;
  if (expected<> result = reports_.renew(num_loops(p.any_order, blocks(), threads()), p.first_slot); result.failed())
    return result;
  return reports_.device_address(p.reports);
}

expected<> device_back_end::prepare_grid(dispatch_params &p) {
  constexpr std::size_t kBytes = sizeof(grid_command) + 2 * std::size_t{kDeviceStagingBytes};
  cudaError_t error = cudaSuccess;
  if (grid_memory_ == nullptr) {
    void *memory = nullptr;
    error = cudaMallocAsync(&memory, kBytes, control_stream_);
    grid_memory_ = static_cast<std::uint8_t *>(memory);
  }
  const std::vector<std::uint8_t> zeros(kBytes);
  if (error == cudaSuccess) // a copy: a memset may be a kernel that must be loaded first
    error = cudaMemcpyAsync(grid_memory_, zeros.data(), kBytes, cudaMemcpyHostToDevice, control_stream_);
  if (error == cudaSuccess)
    error = cudaStreamSynchronize(control_stream_);
  if (error != cudaSuccess)
    return cuda_failed("memory of the cooperative grid", error);
  p.command = reinterpret_cast<grid_command *>(grid_memory_);
  p.grid_staging = grid_memory_ + sizeof(grid_command);
  return {};
}

// ----------------------------------------------------------------- launch --

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
  cudaError_t error = cudaSuccess;
  expected<> result;
  try {
    error = must_return([&] { return call_launch_fn(w, state); }, "the launch function");
  } catch (...) {
    result = make_reason(CUDAQ_ERR_INTERNAL, "the launch function threw an exception");
  }
  if (error == cudaSuccess)
    error = static_cast<cudaError_t>(state.error);
  // Whatever the launch function has launched.
  own_kernel_.store(state.taken == 0);
  if (state.resident_blocks != 0) // the blocks that the library's kernel really occupies
    manager_.add_resident(this, config_.device_id, state.resident_blocks);
  under_way_.store(1);
  take_made(state.graphs);
  if (result.failed())
    return end_failed_launch(result.reason());
  if (error == cudaSuccess && shared() && state.taken == 0)
    return end_failed_launch(make_reason(CUDAQ_ERR_UNSUPPORTED,
                                         "config->shared_ring_mode is %u: the launch function launched no kernel of "
                                         "the library; another kernel would take the requests of other dispatchers",
                                         config_.shared_ring_mode));
  if (error == cudaSuccess && launches_graphs() && !state.graphs.launched)
    return end_failed_launch(make_reason(CUDAQ_ERR_UNSUPPORTED,
                                         "config->dispatch_mode is 1 (graph launch): the launch function launched no "
                                         "graph scheduler; use cudaq_launch_dispatch_kernel_graph_v2"));
  if (error == cudaSuccess)
    return prove_running(state);
  state.text[sizeof(state.text) - 1] = '\0';
  return end_failed_launch(make_reason(error == cudaErrorCooperativeLaunchTooLarge ? CUDAQ_ERR_INVALID_ARG
                                       : error == cudaErrorNotSupported            ? CUDAQ_ERR_UNSUPPORTED
                                                                                   : CUDAQ_ERR_CUDA,
                                       "launch of the dispatch kernel: %s (%s)",
                                       state.text[0] != '\0' ? state.text : cudaGetErrorString(error),
                                       cudaGetErrorName(error)));
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
    if (w.unified.upstream_fn != nullptr)
      w.unified.upstream_fn(w.unified.transport_ctx, config_.slot_size, w.table->entries, w.table->count,
                            w.shutdown_flag, w.stats, kernel_stream_);
    else
      w.unified.spec_fn(w.unified.transport_ctx, w.table->entries, w.table->count, w.shutdown_flag, w.stats,
                        kernel_stream_);
    return cudaSuccess;
  }
  // The library's kernels take the ring from the state. Another kernel must not touch a ring that others serve.
  const slot_ring &ring = shared() ? placeholder_ring_ : state.params.ring;
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
    wait_until(steady_clock::now() + kProofDeadline, [&] { return reports_.has_heartbeat() || !queued(); });
  const cudaError_t now = stream_state(kernel_stream_);
  const bool proved = ours ? reports_.has_heartbeat() : now == cudaErrorNotReady;
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

// -------------------------------------------------------------------- end --

cudaError_t device_back_end::stream_state(cudaStream_t stream) const { return query_stream(config_.device_id, stream); }

run_phase device_back_end::observe() const {
  if (under_way_.load() == 0)
    return run_phase::ended;
  if (reports_.fault() != cudaSuccess) // other work may still be on the stream, but no kernel serves any more
    return run_phase::faulted;
  const cudaError_t state = stream_state(kernel_stream_);
  if (state == cudaErrorNotReady)
    return run_phase::going;
  // Read again: the kernel may have posted its fault, and ended, since the first read.
  return state == cudaSuccess && reports_.fault() == cudaSuccess ? run_phase::ended : run_phase::faulted;
}

expected<> device_back_end::copy_word(void *to, const void *from, std::size_t bytes) const {
  cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, control_stream_);
  if (error == cudaSuccess)
    error = cudaStreamSynchronize(control_stream_);
  return error == cudaSuccess ? expected<>{} : cuda_failed("reading shutdown_flag and stats", error);
}

/// Does not wait for the device: cudaMemcpyAsync copies a few pageable bytes during the call.
expected<> device_back_end::set_caller_flag(int value) {
  if (caller_flag_host_ != nullptr) {
    store_release(*caller_flag_host_, value);
    return {};
  }
  const cudaError_t error = insist([&] {
    return cudaMemcpyAsync(address_of(caller_flag_), &value, sizeof(value), cudaMemcpyDefault, control_stream_);
  });
  return error == cudaSuccess ? expected<>{} : cuda_failed("writing shutdown_flag", error);
}

expected<> device_back_end::raise_shutdown() {
  expected<> result = set_caller_flag(1);
  const std::uint32_t one = 1;
  const cudaError_t error =
      cudaMemcpyAsync(table_.shutdown_word(), &one, sizeof(one), cudaMemcpyHostToDevice, control_stream_);
  if (error != cudaSuccess)
    result = cuda_failed("raising the shutdown word", error);
  return result;
}

/// Sets the shutdown words and waits for the end of the kernel. A copy that failed is repeated: without it the kernel
/// runs on. False: the kernel, or such a copy, has not ended by the deadline.
bool device_back_end::end_kernel(steady_clock::time_point deadline, expected<> &result) {
  const device_guard guard(config_.device_id); // may fail after a fault; the run must still end
  result = raise_shutdown();
  return wait_until(deadline, [&] {
    if (result.failed())
      result = raise_shutdown();
    return stream_state(kernel_stream_) != cudaErrorNotReady && stream_state(control_stream_) != cudaErrorNotReady;
  });
}

expected<> device_back_end::finish(std::uint64_t timeout_ns, steady_clock::time_point deadline) {
  if (under_way_.load() == 0)
    return {};
  if (shared())
    member_.begin_leaving();
  if (expected<> result; !end_kernel(end_deadline(timeout_ns, deadline), result))
    return make_reason(CUDAQ_ERR_TIMEOUT,
                       "the kernel did not end within %.3f s; cudaq_dispatcher_dump_state names the slots "
                       "whose handlers still run, if any, and the number of requests that graphs still have%s%s%s",
                       static_cast<double>(timeout_ns) * 1e-9, late_graph().c_str(), result.failed() ? "; " : "",
                       result.text().c_str());
  const cudaError_t state = stream_state(kernel_stream_);
  under_way_.store(0);
  release_ring();
  expected<> result =
      state != cudaSuccess ? cuda_failed("the dispatch kernel was ended by a fault of its device", state) : gave_up();
  if (result.ok())
    return {};
  const std::lock_guard lock(reading_);
  try {
    account_.fault = result.text();
  } catch (const std::bad_alloc &) { // the run has ended, and this call returns the fault
  }
  return result;
}

// ---------------------------------------------------------------- reading --

expected<> device_back_end::processed(bool, const std::uint64_t *stats, std::uint64_t &out) const {
  out = 0;
  if (started_.load() == 0)
    return {}; // before the first start no device word is read: the caller has not used the device yet
  if (own_kernel_.load() == 0) {
    out = stats_base_.load() + reports_.processed() + disposed_of_by_router();
    return {};
  }
  if (const std::uint64_t *host = stats_host_.load()) {
    out = load_relaxed(*host);
    return {};
  }
  return on_device(config_.device_id, [&] { return copy_word(&out, stats, sizeof(out)); });
}

std::string device_back_end::describe() const {
  account now;
  {
    const std::lock_guard lock(reading_);
    now = account_;
  }
  std::string text;
  append(text, "device %d: ", config_.device_id);
  if (started_.load() == 0)
    return text + "never started\n";
  const cudaError_t state = under_way_.load() != 0 ? stream_state(kernel_stream_) : cudaSuccess;
  append(text, "%u blocks of %u threads, kernel %s, %s\n", blocks(), threads(),
         own_kernel_.load() != 0 ? "of the program, which counts by itself" : "of the library",
         state == cudaErrorNotReady ? "running"
         : state == cudaSuccess     ? "ended"
                                    : cudaGetErrorName(state));
  if (own_kernel_.load() == 0)
    text += describe_idle_blocks(config_, now.options);
  if (now.fault.empty()) // stop has not stored the fault yet
    now.fault = gave_up().text();
  if (!now.fault.empty())
    text += "fault: " + now.fault + "\n";
  text += describe_rules(now.options);
  cudaq_dispatcher_stats_t stats{};
  read_stats(stats);
  text += describe_sharing() + describe_graphs() + describe_counters(stats) + reports_.describe_loops();
  if (!now.ring || now.ring->rx_flags_host == nullptr || now.ring->tx_flags_host == nullptr)
    return text + "slots: in device memory, not shown\n";
  for (std::uint32_t i = 0; i < config_.num_slots; ++i) {
    const std::uint64_t rx = load_acquire(now.ring->rx_flags_host[i]), tx = load_acquire(now.ring->tx_flags_host[i]);
    if (rx != 0 || tx != 0)
      append(text, "slot %u: rx 0x%016" PRIx64 " tx 0x%016" PRIx64 "\n", i, rx, tx);
  }
  return text;
}

} // namespace cudaq::realtime::detail

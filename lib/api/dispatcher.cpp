// SPDX-License-Identifier: Apache-2.0
#include "lib/api/dispatcher.h"

#include "lib/api/host_path/host_back_end.h"
#if defined(CUDAQ_REALTIME_HAS_CUDART)
#include "lib/api/device_path/device_back_end.h"
#endif

using namespace cudaq::realtime::detail;

namespace {

const char *state_name(cudaq_dispatcher_state_t state) {
  static constexpr const char *names[] = {"created", "wired", "running", "stopped", "failed", "stopping"};
  return names[state];
}

int device_of_this_thread() {
  int device = 0;
#if defined(CUDAQ_REALTIME_HAS_CUDART)
  if (cudaGetDevice(&device) != cudaSuccess) { // no driver: nothing will run on a device
    (void)cudaGetLastError();
    device = 0;
  }
#endif
  return device;
}

/// The host path serves a configuration that names no device, and a dataplane of any number of slots.
full_config completed(const cudaq_dispatcher_config_t &given) {
  full_config c{given, given.num_slots};
  if (c.dispatch_path != CUDAQ_DISPATCH_PATH_HOST)
    return c;
  if (c.device_id < 0)
    c.device_id = device_of_this_thread();
  if (is_unified_host(c) && c.num_slots == 0) {
    c.num_slots = kDataplaneSlots;
    c.known_slots = 1;
  }
  return c;
}

/// The existing loop reads no stride of the RX slots.
cudaq_ringbuffer_t with_stride(cudaq_ringbuffer_t ring, const cudaq_dispatcher_config_t &c) {
  if (ring.rx_stride_sz == 0 && c.dispatch_path == CUDAQ_DISPATCH_PATH_HOST)
    ring.rx_stride_sz = c.slot_size != 0 ? c.slot_size : ring.tx_stride_sz;
  return ring;
}

} // namespace

cudaq_dispatcher_t::cudaq_dispatcher_t(cudaq_dispatch_manager_t &m, const cudaq_dispatcher_config_t &given)
    : manager(m), config(completed(given)) {
  const full_config &c = config;
  wiring_.options = default_dispatcher_options();
  grace_period_ns_.set(wiring_.options.grace_period_ns);
#if defined(CUDAQ_REALTIME_HAS_CUDART)
  if (c.dispatch_path == CUDAQ_DISPATCH_PATH_DEVICE) {
    path_ = std::make_unique<device_back_end>(m, c);
    if (c.dispatch_mode == CUDAQ_DISPATCH_GRAPH_LAUNCH)
      m.grow_stream_pool(c.device_id);
    return;
  }
#endif
  auto host = std::make_unique<host_back_end>(m, c);
  host_ = host.get();
  path_ = std::move(host);
}

cudaq_dispatcher_t::~cudaq_dispatcher_t() = default;

cudaq_dispatcher_state_t cudaq_dispatcher_t::shown(phase p) {
  switch (p) {
  case phase::created:
    return CUDAQ_DISPATCHER_CREATED;
  case phase::wired:
    return CUDAQ_DISPATCHER_WIRED;
  case phase::running:
    return CUDAQ_DISPATCHER_RUNNING;
  case phase::stopping:
    return CUDAQ_DISPATCHER_STOPPING;
  case phase::failed:
    return CUDAQ_DISPATCHER_FAILED;
  default:
    return CUDAQ_DISPATCHER_STOPPED;
  }
}

cudaq_dispatcher_state_t cudaq_dispatcher_t::state() const {
  for (;;) {
    const run_word::snapshot now = run_.load();
    if (now.phase != phase::running)
      return shown(now.phase);
    const run_phase seen = path_->observe();
    if (seen == run_phase::going || seen == run_phase::ending) {
      // Still in the phase of that run: else another thread may have reported a later state before the look.
      if (const run_word::snapshot after = run_.load();
          after.phase != phase::running || after.generation != now.generation)
        continue;
      return seen == run_phase::going ? CUDAQ_DISPATCHER_RUNNING : CUDAQ_DISPATCHER_STOPPING;
    }
    run_.claim(now.generation, phase::running, seen == run_phase::faulted ? phase::failed : phase::ended);
  }
}

bool cudaq_dispatcher_t::in_run() const {
  const phase p = run_.phase();
  return p == phase::running || p == phase::ended || p == phase::stopping || p == phase::failed;
}

template <class Body>
expected<> cudaq_dispatcher_t::alone(steady_clock::time_point deadline, Body &&body) {
  if (const char *what = path_->caller_is_inside())
    return make_reason(CUDAQ_ERR_STATE, "called inside %s of this dispatcher; call it from another thread", what);
  std::unique_lock lock(control_, std::defer_lock);
  if (deadline == steady_clock::time_point::max())
    lock.lock();
  else if (!wait_until(deadline, [&] { return lock.try_lock(); }))
    return make_reason(CUDAQ_ERR_TIMEOUT, "another control call of this dispatcher did not end by the deadline");
  return body();
}

expected<> cudaq_dispatcher_t::finish_ended_run(cudaq_dispatcher_state_t &now) {
  expected<> result;
  now = state();
  const phase p = run_.phase();
  if (p == phase::ended || (p == phase::running && now == CUDAQ_DISPATCHER_STOPPING)) {
    result = finish_run(grace_period_ns(), deadline_after(grace_period_ns()));
    now = state();
  }
  return result;
}

expected<> cudaq_dispatcher_t::check_wired() const {
  if (const char *missing = path_->missing_call(wiring_))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "not wired: %s was not called; call it first", missing);
  return {};
}

expected<> cudaq_dispatcher_t::check_startable() const {
  if (expected<> result = check_wired(); result.failed())
    return result;
  if (wiring_.options.default_owner != 0 && config.shared_ring_mode == 0)
    return make_reason(
        CUDAQ_ERR_INVALID_ARG,
        "options->default_owner is %u but config->shared_ring_mode is 0: only a shared ring has a default owner",
        wiring_.options.default_owner);
  return {};
}

expected<> cudaq_dispatcher_t::refuse_unless(cudaq_dispatch_path_t path, const char *what) const {
  if (config.dispatch_path == path)
    return {};
  const bool host = config.dispatch_path == CUDAQ_DISPATCH_PATH_HOST;
  return make_reason(CUDAQ_ERR_UNSUPPORTED, "%s belongs to the %s path; config->dispatch_path is %s", what,
                     host ? "device" : "host",
                     host ? "1 (host)" : "0 (device), also if it was not set: set it to CUDAQ_DISPATCH_PATH_HOST");
}

template <class Check, class Set>
expected<> cudaq_dispatcher_t::wire(const char *what, Check &&check, Set &&set) {
  return alone([&]() -> expected<> {
    cudaq_dispatcher_state_t s{};
    if (expected<> result = finish_ended_run(s); result.failed())
      return result;
    if (in_run())
      return make_reason(CUDAQ_ERR_STATE, "%s cannot be set: the dispatcher is %s; stop it first", what, state_name(s));
    if (expected<> result = check(); result.failed())
      return result;
    set();
    if (s == CUDAQ_DISPATCHER_CREATED || s == CUDAQ_DISPATCHER_WIRED)
      run_.enter(check_wired().ok() ? phase::wired : phase::created);
    return {};
  });
}

expected<> cudaq_dispatcher_t::set_ringbuffer(const cudaq_ringbuffer_t &ring) {
  cudaq_ringbuffer_t whole = with_stride(ring, config);
  const auto check = [&]() -> expected<> {
    if (is_unified_host(config))
      return make_reason(CUDAQ_ERR_UNSUPPORTED, "config->kernel_type is 2 (unified): on the host path its slots come "
                                                "from cudaq_dispatcher_set_cpu_dataplane");
    return path_->check_ring(whole);
  };
  return wire("the ring", check, [&] {
    wiring_.ring = whole;
    wiring_.rewired = true;
  });
}

expected<> cudaq_dispatcher_t::set_cpu_dataplane(const cudaq_cpu_dataplane_t &given) {
  cudaq_ringbuffer_t slots = with_stride(given.ring, config);
  std::shared_ptr<std::vector<std::uint64_t>> flags;
  const auto check = [&]() -> expected<> {
    if (expected<> result = refuse_unless(CUDAQ_DISPATCH_PATH_HOST, "a CPU dataplane"); result.failed())
      return result;
    if (!is_unified_host(config))
      return make_reason(CUDAQ_ERR_UNSUPPORTED, "config->kernel_type is %d: a CPU dataplane needs 2 (unified)",
                         static_cast<int>(config.kernel_type));
    if (given.rx_poll == nullptr || given.tx_publish == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "cpu_dataplane->%s is NULL",
                         given.rx_poll == nullptr ? "rx_poll" : "tx_publish");
    flags = std::make_shared<std::vector<std::uint64_t>>(std::size_t{2} * config.num_slots);
    slots.rx_flags = slots.tx_flags = nullptr;
    slots.rx_flags_host = flags->data();
    slots.tx_flags_host = flags->data() + config.num_slots;
    return path_->check_ring(slots);
  };
  return wire("the CPU dataplane", check, [&] {
    wiring_.dataplane = given;
    wiring_.dataplane_flags = std::move(flags);
    wiring_.ring = slots;
    wiring_.rewired = true;
  });
}

expected<> cudaq_dispatcher_t::set_max_result_bytes(std::uint32_t bytes) {
  return wire(
      "the limit of results", [&] { return refuse_unless(CUDAQ_DISPATCH_PATH_HOST, "a limit of results"); },
      [&] { wiring_.max_result_bytes = bytes; });
}

expected<> cudaq_dispatcher_t::set_handler_times(bool on) {
  return wire(
      "the times of handlers",
      [&] { return refuse_unless(CUDAQ_DISPATCH_PATH_HOST, "a histogram of the times of handlers"); },
      [&] { wiring_.handler_times = on; });
}

expected<> cudaq_dispatcher_t::set_function_table(const cudaq_function_table_t &table) {
  return wire(
      "the function table", [&] { return check_table_pointer(table); }, [&] { wiring_.table = table; });
}

expected<> cudaq_dispatcher_t::set_control(volatile int *shutdown_flag, std::uint64_t *stats) {
  return wire(
      "the control words", [&] { return check_control(shutdown_flag, stats); },
      [&] {
        wiring_.shutdown_flag = shutdown_flag;
        wiring_.stats = stats;
        stats_.store(stats);
      });
}

expected<> cudaq_dispatcher_t::set_options(const cudaq_dispatcher_options_t &given) {
  return wire(
      "options", [&] { return validate_options(given); },
      [&] {
        wiring_.options = given;
        grace_period_ns_.set(given.grace_period_ns);
      });
}

expected<> cudaq_dispatcher_t::set_host_handler_v2(const v2_handler &handler) {
  return wire(
      "a handler", [&] { return refuse_unless(CUDAQ_DISPATCH_PATH_HOST, "a HOST_CALL handler"); },
      [&] {
        if (handler.fn != nullptr)
          wiring_.v2.reserve(wiring_.v2.size() + 1); // may throw: before the old handler is removed
        std::erase_if(wiring_.v2, [&](const v2_handler &h) { return h.function_id == handler.function_id; });
        if (handler.fn != nullptr)
          wiring_.v2.push_back(handler);
      });
}

expected<> cudaq_dispatcher_t::set_host_workers(std::vector<cudaq_host_worker_t> workers) {
  return wire(
      "the graph workers", [&] { return refuse_unless(CUDAQ_DISPATCH_PATH_HOST, "a graph worker"); },
      [&] { wiring_.workers = std::move(workers); });
}

expected<> cudaq_dispatcher_t::set_mailbox(void **mailbox, bool of_contexts) {
  return wire(
      "the mailbox", [&] { return refuse_unless(CUDAQ_DISPATCH_PATH_HOST, "a mailbox"); },
      [&] {
        wiring_.mailbox = mailbox;
        wiring_.mailbox_of_contexts = wiring_.finds_device_views = of_contexts;
      });
}

expected<> cudaq_dispatcher_t::set_launch_fn(cudaq_dispatch_launch_fn_t launch_fn,
                                             cudaq_dispatch_launch_fn_v2_t launch_fn_v2) {
  const auto check = [&]() -> expected<> {
    if (launch_fn == nullptr && launch_fn_v2 == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "launch_fn is NULL");
    return refuse_unless(CUDAQ_DISPATCH_PATH_DEVICE, "a launch function");
  };
  return wire("the launch function", check, [&] {
    wiring_.launch_fn = launch_fn;
    wiring_.launch_fn_v2 = launch_fn_v2;
  });
}

expected<> cudaq_dispatcher_t::set_graph_io(const cudaq_dispatch_graph_io_t &given) {
  const auto check = [&]() -> expected<> {
    if (expected<> result = refuse_unless(CUDAQ_DISPATCH_PATH_DEVICE, "a GraphIOContext"); result.failed())
      return result;
    if (config.dispatch_mode != CUDAQ_DISPATCH_GRAPH_LAUNCH)
      return make_reason(CUDAQ_ERR_UNSUPPORTED, "config->dispatch_mode is %d: a GraphIOContext needs 1 (graph launch)",
                         static_cast<int>(config.dispatch_mode));
    return validate_graph_io(given);
  };
  return wire("graph contexts", check, [&] {
    wiring_.graph_contexts.assign(given.contexts, given.contexts + given.num_contexts);
    wiring_.graph_io = given;
    wiring_.graph_io->contexts = wiring_.graph_contexts.data();
  });
}

expected<> cudaq_dispatcher_t::set_unified_launch(const unified_launch &given) {
  const auto check = [&]() -> expected<> {
    if (config.kernel_type != CUDAQ_KERNEL_UNIFIED)
      return make_reason(CUDAQ_ERR_UNSUPPORTED,
                         "config->kernel_type is %d: a unified launch function needs 2 (unified)",
                         static_cast<int>(config.kernel_type));
    return {};
  };
  return wire("the launch function", check, [&] {
    wiring_.unified = given;
    wiring_.rewired = true; // the transport context brings its ring
  });
}

expected<> cudaq_dispatcher_t::start() {
  return alone([&]() -> expected<> {
    cudaq_dispatcher_state_t s{};
    if (expected<> result = finish_ended_run(s); result.failed())
      return result;
    if (s == CUDAQ_DISPATCHER_RUNNING)
      return {};
    if (in_run())
      return make_reason(CUDAQ_ERR_STATE, "the dispatcher is %s; stop it first", state_name(s));
    expected<> result = check_startable();
    if (result.failed())
      return result;
    result = path_->start(wiring_);
    if (result.ok())
      run_.start_at(run_.generation() + 1, phase::running);
    else if (result.status() == CUDAQ_ERR_TIMEOUT) // a kernel was started that has not ended
      run_.start_at(run_.generation() + 1, phase::failed);
    return result;
  });
}

expected<> cudaq_dispatcher_t::run_here() {
  const auto begin = [&]() -> expected<> {
    expected<> result = refuse_unless(CUDAQ_DISPATCH_PATH_HOST, "a loop on the calling thread");
    if (result.ok())
      result = check_startable();
    if (result.ok())
      result = host_->start_without_thread(wiring_);
    if (result.ok())
      run_.start_at(run_.generation() + 1, phase::running);
    return result;
  };
  expected<> result = alone(begin);
  if (result.ok())
    host_->run_loop_here();
  return result;
}

bool cudaq_dispatcher_t::graph_runs() const { return host_ != nullptr && host_->graph_runs(); }
bool cudaq_dispatcher_t::threads_run() const { return host_ != nullptr && host_->threads_run(); }

expected<> cudaq_dispatcher_t::stop(std::uint64_t timeout_ns) {
  const steady_clock::time_point deadline = deadline_after(timeout_ns);
  return alone(deadline, [&]() -> expected<> { return in_run() ? finish_run(timeout_ns, deadline) : expected<>{}; });
}

expected<> cudaq_dispatcher_t::finish_run(std::uint64_t timeout_ns, steady_clock::time_point deadline) {
  // A reader may write down the end of the run at the same time. Its state stays, because it has been reported.
  while (run_.phase() == phase::running) {
    const cudaq_dispatcher_state_t now = state();
    if (now == CUDAQ_DISPATCHER_RUNNING || now == CUDAQ_DISPATCHER_STOPPING)
      run_.claim(run_.generation(), phase::running, phase::stopping);
  }
  expected<> result = path_->finish(timeout_ns, deadline);
  if (result.status() == CUDAQ_ERR_TIMEOUT)
    return result;
  const bool failed = result.failed() && run_.phase() != phase::ended; // an end that was reported is not taken back
  run_.enter(failed ? phase::failed : phase::stopped);
  return result;
}

expected<> cudaq_dispatcher_t::processed(std::uint64_t &out) const {
  return path_->processed(in_run(), stats_.load(), out);
}

std::string cudaq_dispatcher_t::describe() const {
  return std::string("state: ") + state_name(state()) + "\n" + path_->describe();
}

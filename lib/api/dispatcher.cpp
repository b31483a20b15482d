// SPDX-License-Identifier: Apache-2.0
#include "lib/api/dispatcher.h"

using namespace cudaq::realtime::detail;

namespace {

// A century is as good as for ever, and does not overflow the clock.
steady_clock::time_point deadline_after(std::uint64_t timeout_ns) {
  constexpr std::uint64_t kForever = 100ull * 365 * 86400 * 1000000000;
  return steady_clock::now() + std::chrono::nanoseconds(timeout_ns < kForever ? timeout_ns : kForever);
}

const char *state_name(cudaq_dispatcher_state_t state) {
  static constexpr const char *names[] = {"created", "wired", "running", "stopped", "failed"};
  return names[state];
}

} // namespace

cudaq_dispatcher_t::cudaq_dispatcher_t(cudaq_dispatch_manager_t &m, const cudaq_dispatcher_config_t &c)
    : manager(m), config(c), options_(default_dispatcher_options()), grace_period_ns_(options_.grace_period_ns) {}

cudaq_dispatcher_state_t cudaq_dispatcher_t::state() const {
  const auto s = static_cast<cudaq_dispatcher_state_t>(state_.load());
  return s == CUDAQ_DISPATCHER_RUNNING && host.loop_ended() ? CUDAQ_DISPATCHER_STOPPED : s;
}

template <class Body>
finding cudaq_dispatcher_t::alone(steady_clock::time_point deadline, Body &&body) {
  if (host.is_own_thread())
    return make_finding(CUDAQ_ERR_STATE, "called from a handler of this dispatcher");
  std::unique_lock lock(control_, std::defer_lock);
  if (deadline == steady_clock::time_point::max())
    lock.lock();
  else if (!wait_until(deadline, [&] { return lock.try_lock(); }))
    return make_finding(CUDAQ_ERR_TIMEOUT, "another call is starting or stopping the dispatcher");
  return body();
}

finding cudaq_dispatcher_t::settle() {
  if (state_.load() == CUDAQ_DISPATCHER_RUNNING && host.loop_ended())
    return finish_run(grace_period_ns(), deadline_after(grace_period_ns()));
  return {};
}

finding cudaq_dispatcher_t::check_settable(const char *what) {
  if (finding found = settle())
    return found;
  const auto s = static_cast<cudaq_dispatcher_state_t>(state_.load());
  if (s == CUDAQ_DISPATCHER_RUNNING || s == CUDAQ_DISPATCHER_FAILED)
    return make_finding(CUDAQ_ERR_STATE, "%s cannot be set: the dispatcher is %s%s", what, state_name(s),
                        s == CUDAQ_DISPATCHER_RUNNING ? "; stop it first" : "");
  return {};
}

void cudaq_dispatcher_t::update_wired() {
  const auto s = static_cast<cudaq_dispatcher_state_t>(state_.load());
  if (s == CUDAQ_DISPATCHER_CREATED || s == CUDAQ_DISPATCHER_WIRED)
    set_state(check_wired() ? CUDAQ_DISPATCHER_CREATED : CUDAQ_DISPATCHER_WIRED);
}

finding cudaq_dispatcher_t::check_wired() const {
  const auto missing = [](const char *call) {
    return make_finding(CUDAQ_ERR_INVALID_ARG, "not wired: %s was not called", call);
  };
  if (!ring_)
    return missing("cudaq_dispatcher_set_ringbuffer");
  if (!table_ && v2_.empty())
    return missing("cudaq_dispatcher_set_function_table");
  if (shutdown_flag_ == nullptr)
    return missing("cudaq_dispatcher_set_control");
  return {};
}

finding cudaq_dispatcher_t::set_ringbuffer(const cudaq_ringbuffer_t &ring) {
  return alone([&]() -> finding {
    if (finding found = check_settable("the ring"))
      return found;
    if (finding found = validate_host_ring(ring, config))
      return found;
    ring_ = ring;
    rewired_ = true;
    update_wired();
    return {};
  });
}

finding cudaq_dispatcher_t::set_function_table(const cudaq_function_table_t &table) {
  return alone([&]() -> finding {
    if (finding found = check_settable("the function table"))
      return found;
    if (finding found = check_table_pointer(table))
      return found;
    table_ = table;
    update_wired();
    return {};
  });
}

finding cudaq_dispatcher_t::set_control(volatile int *shutdown_flag, std::uint64_t *stats) {
  return alone([&]() -> finding {
    if (finding found = check_settable("the control words"))
      return found;
    if (shutdown_flag == nullptr || stats == nullptr)
      return make_finding(CUDAQ_ERR_INVALID_ARG, "%s is NULL", shutdown_flag == nullptr ? "shutdown_flag" : "stats");
    shutdown_flag_ = shutdown_flag;
    stats_.store(stats);
    update_wired();
    return {};
  });
}

finding cudaq_dispatcher_t::set_options(const cudaq_dispatcher_options_t &given) {
  return alone([&]() -> finding {
    if (finding found = check_settable("options"))
      return found;
    if (finding found = validate_options(given))
      return found;
    options_ = given;
    grace_period_ns_.set(given.grace_period_ns);
    return {};
  });
}

finding cudaq_dispatcher_t::set_host_handler_v2(const v2_handler &handler) {
  return alone([&]() -> finding {
    if (finding found = check_settable("a handler"))
      return found;
    std::erase_if(v2_, [&](const v2_handler &h) { return h.function_id == handler.function_id; });
    if (handler.fn != nullptr)
      v2_.push_back(handler);
    update_wired();
    return {};
  });
}

slot_ring cudaq_dispatcher_t::host_view() const {
  slot_ring view;
  view.rx_flags = ring_->rx_flags_host;
  view.tx_flags = ring_->tx_flags_host;
  view.rx_data = ring_->rx_data_host;
  view.tx_data = is_in_place(*ring_) ? ring_->rx_data_host : ring_->tx_data_host;
  view.rx_stride = ring_->rx_stride_sz;
  view.tx_stride = is_in_place(*ring_) ? ring_->rx_stride_sz : ring_->tx_stride_sz;
  view.rx_alias = reinterpret_cast<std::uint64_t>(ring_->rx_data);
  view.num_slots = config.num_slots;
  view.slot_size = static_cast<std::uint32_t>(usable_slot_bytes(*ring_, config));
  return view;
}

finding cudaq_dispatcher_t::acquire_ledger(std::shared_ptr<ring_ledger> &out) {
  const slot_ring view = host_view();
  const bool shared = config.shared_ring_mode != 0;
  if (shared && rewired_) // a ring that is wired anew begins at slot 0, unless others are on it
    host.forget_ring();
  if (finding refused = shared ? manager.join_ring(view, out) : manager.reserve_ring(view))
    return refused;
  holds_ring_ = true;
  if (!shared) {
    if (!ledger_)
      ledger_ = manager.make_ledger(config.num_slots);
    if (rewired_)
      ledger_->bind(view);
    out = ledger_;
  }
  rewired_ = false;
  return {};
}

void cudaq_dispatcher_t::release_ledger() {
  if (!holds_ring_)
    return;
  holds_ring_ = false;
  if (config.shared_ring_mode != 0)
    manager.leave_ring(host_view());
  else
    manager.release_ring(host_view());
}

finding cudaq_dispatcher_t::begin_run(bool with_thread) {
  if (finding found = check_wired())
    return found;
  if (options_.default_owner != 0 && config.shared_ring_mode == 0)
    return make_finding(CUDAQ_ERR_INVALID_ARG, "options->default_owner is %u: it means something on a shared ring only",
                        options_.default_owner);
  host_setup setup;
  setup.table = table_.value_or(cudaq_function_table_t{});
  if (finding found = validate_host_table(setup.table))
    return found;
  setup.v2 = v2_;
  setup.options = options_;
  setup.shared_ring = config.shared_ring_mode != 0;
  setup.markers = config.skip_tx_markers == 0;
  setup.shutdown_flag = shutdown_flag_;
  setup.stats = stats_.load();
  const int flag_before = load_acquire(*shutdown_flag_);
  const auto take_back = [&] {
    if (with_thread)
      store_release(*shutdown_flag_, flag_before);
    release_ledger();
  };
  finding refused;
  try {
    {
      const std::lock_guard lock(reading_);
      refused = acquire_ledger(setup.ledger);
      if (!refused)
        refused = host.prepare(std::move(setup));
    }
    if (!refused && with_thread)
      store_release(*shutdown_flag_, 0);
    if (!refused)
      refused = host.start(with_thread);
  } catch (...) {
    take_back();
    throw;
  }
  if (refused)
    take_back();
  return refused;
}

finding cudaq_dispatcher_t::start() {
  return alone([&]() -> finding {
    if (finding found = settle())
      return found;
    const auto s = static_cast<cudaq_dispatcher_state_t>(state_.load());
    if (s == CUDAQ_DISPATCHER_RUNNING || s == CUDAQ_DISPATCHER_FAILED)
      return make_finding(CUDAQ_ERR_STATE, "the dispatcher is %s", state_name(s));
    if (finding refused = begin_run(true))
      return refused;
    set_state(CUDAQ_DISPATCHER_RUNNING);
    return {};
  });
}

finding cudaq_dispatcher_t::run_here() {
  finding refused = alone([&]() -> finding {
    finding found = begin_run(false);
    if (!found)
      set_state(CUDAQ_DISPATCHER_RUNNING);
    return found;
  });
  if (!refused)
    host.loop();
  return refused;
}

finding cudaq_dispatcher_t::stop(std::uint64_t timeout_ns) {
  const steady_clock::time_point deadline = deadline_after(timeout_ns);
  return alone(deadline, [&]() -> finding {
    const auto s = static_cast<cudaq_dispatcher_state_t>(state_.load());
    if (s != CUDAQ_DISPATCHER_RUNNING && s != CUDAQ_DISPATCHER_FAILED)
      return {};
    return finish_run(timeout_ns, deadline);
  });
}

finding cudaq_dispatcher_t::finish_run(std::uint64_t timeout_ns, steady_clock::time_point deadline) {
  host.request_stop();
  store_release(*shutdown_flag_, 1);
  if (!host.finish(deadline)) {
    set_state(CUDAQ_DISPATCHER_FAILED);
    return make_finding(CUDAQ_ERR_TIMEOUT,
                        "a thread of the dispatcher did not end within %.3f s; cudaq_dispatcher_dump_state names the "
                        "handler that it is in, if any",
                        static_cast<double>(timeout_ns) * 1e-9);
  }
  host.leave_ring();
  release_ledger();
  set_state(CUDAQ_DISPATCHER_STOPPED);
  return {};
}

std::uint64_t cudaq_dispatcher_t::processed() const {
  if (state_.load() == CUDAQ_DISPATCHER_RUNNING) // the word itself lags behind by a turn
    return host.stats_value();
  const std::uint64_t *stats = stats_.load();
  return stats != nullptr ? load_relaxed(*stats) : 0;
}

std::string cudaq_dispatcher_t::describe() const {
  const std::lock_guard lock(reading_);
  return std::string("state: ") + state_name(state()) + "\n" + host.describe();
}

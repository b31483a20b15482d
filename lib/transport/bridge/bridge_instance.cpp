// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/bridge/bridge_exclusive.h"

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "lib/base/condition.h"

#include <functional>
#include <vector>

namespace cudaq::realtime::detail {
namespace {

struct state_name {
  bridge_state state;
  const char *name;
};
constexpr state_name kNames[] = {
    {bridge_state::creating, "creating"},         {bridge_state::created, "created"},
    {bridge_state::connecting, "connecting"},     {bridge_state::cancelling, "cancelling"},
    {bridge_state::connected, "connected"},       {bridge_state::launched, "launched"},
    {bridge_state::disconnected, "disconnected"}, {bridge_state::destroyed, "destroyed"},
};

std::string names_of(std::uint32_t states) {
  std::string text;
  for (const state_name &n : kNames)
    if ((states & only(n.state)) != 0)
      text += (text.empty() ? "" : ", ") + std::string(n.name);
  return text;
}

} // namespace

expected<> bridge_instance::reason_of(const char *entry, int returned) const {
  if (returned == CUDAQ_OK)
    return {};
  if (returned < 0 || returned > CUDAQ_ERR_STATE)
    return make_reason(CUDAQ_ERR_INTERNAL, "provider %s: %s returned %d, which is no cudaq_status_t", name_.c_str(),
                       entry, returned);
  const auto status = static_cast<cudaq_status_t>(returned);
  const char *const text = table_.error_text != nullptr ? table_.error_text() : nullptr;
  if (text != nullptr && *text != 0)
    return make_reason(status, "provider %s: %s: %s", name_.c_str(), entry, text);
  return make_reason(status, "provider %s: %s returned %s", name_.c_str(), entry, cudaq_status_string(status));
}

expected<> bridge_instance::check_allowed(std::uint32_t allowed) const {
  if (in(bridge_state::destroyed))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "the handle is destroyed");
  if (running_entry_ != nullptr)
    return make_reason(CUDAQ_ERR_STATE, "%s runs on another thread; a handle takes one call at a time", running_entry_);
  const auto now = only(state_);
  if ((now & allowed) != 0)
    return {};
  const bool busy = in(bridge_state::connecting) || in(bridge_state::cancelling);
  return make_reason(CUDAQ_ERR_STATE,
                     "the state is %s, allowed: %s; the order is create, connect, launch, disconnect, destroy%s",
                     names_of(now).c_str(), names_of(allowed).c_str(),
                     busy ? "; the provider's connect still runs, and disconnect cancels it" : "");
}

bool bridge_instance::wait(std::unique_lock<std::mutex> &lock, steady_clock::time_point deadline,
                           const std::function<bool()> &done) {
  if (deadline != steady_clock::time_point::max())
    return changed_.wait_until(lock, deadline, done);
  wait_on(changed_, lock, done);
  return true;
}

// ------------------------------------------------------------------ create, launch, destroy --

expected<> bridge_instance::create(int argc, char **argv) {
  // The provider may change the strings and their order (getopt does).
  std::vector<std::string> strings(argv, argv + argc);
  std::vector<char *> pointers;
  for (std::string &s : strings)
    pointers.push_back(s.data());
  pointers.push_back(nullptr);

  exclusive use(*this, std::unique_lock(mutex_), "create", only(bridge_state::creating));
  if (use.result().failed())
    return use.result();
  cudaq_realtime_bridge_handle_t made = nullptr;
  if (expected<> result = call("create", table_.entries.create, &made, argc, pointers.data()); result.failed())
    return result;
  if (made == nullptr)
    return make_reason(CUDAQ_ERR_INTERNAL, "provider %s: create returned CUDAQ_OK, but stored no handle",
                       name_.c_str());
  handle_ = made;
  use.enter(bridge_state::created);
  return {};
}

expected<> bridge_instance::launch() {
  exclusive use(*this, std::unique_lock(mutex_), "launch", only(bridge_state::connected));
  if (use.result().failed())
    return use.result();
  if (expected<> result = call("launch", table_.entries.launch, handle_); result.failed())
    return result;
  use.enter(bridge_state::launched);
  return {};
}

expected<> bridge_instance::destroy() {
  exclusive use(*this, std::unique_lock(mutex_), "destroy", kAtRest);
  if (use.result().failed())
    return use.result();
  const bool may_run = use.state() == bridge_state::connected || use.state() == bridge_state::launched;
  if (may_run && !disconnect_failed_) {
    disconnect_failed_ = true;
    if (expected<> result = call("disconnect", table_.entries.disconnect, handle_); result.failed())
      return result;
    use.enter(bridge_state::disconnected);
  }
  if (expected<> result = call("destroy", table_.entries.destroy, handle_); result.failed())
    return result;
  use.enter(bridge_state::destroyed);
  return {};
}

// ------------------------------------------------------------------------ connect, disconnect --

expected<> bridge_instance::connect(steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  const bool at_rest = in(bridge_state::created) || in(bridge_state::connected);
  if (at_rest && not_reported_ && running_entry_ == nullptr)
    return result_of_connect();
  if (!in(bridge_state::connecting)) {
    if (expected<> result = check_allowed(only(bridge_state::created)); result.failed())
      return result;
    state_ = bridge_state::connecting;
    under_way_ = true;
    body_ended_ = start_returned_ = cancel_accepted_ = gave_up_ = false;
    lock.unlock();
    start_attempt();
    lock.lock();
  }
  const auto ended = [this] { return !in(bridge_state::connecting) && (!in(bridge_state::cancelling) || gave_up_); };
  if (!wait(lock, deadline, ended))
    return make_reason(CUDAQ_ERR_TIMEOUT,
                       "provider %s: the time limit has passed, and its connect still waits; call "
                       "connect again to wait on, or disconnect to cancel it",
                       name_.c_str());
  return result_of_connect();
}

expected<> bridge_instance::result_of_connect() {
  switch (state_) {
  case bridge_state::created:
    not_reported_ = false;
    return connect_result_;
  case bridge_state::connected:
  case bridge_state::launched:
    not_reported_ = false;
    return {};
  default:
    return make_reason(CUDAQ_ERR_STATE,
                       "disconnect was called on another thread and has cancelled connect; the state "
                       "is %s",
                       names_of(only(state_)).c_str());
  }
}

void bridge_instance::start_attempt() {
  thread_.join_until(steady_clock::time_point::max()); // of an earlier attempt, which has ended
  expected<> result;
  try {
    result = thread_.start("cudaq-connect", {}, [this] { run_attempt(); });
  } catch (const std::exception &) {
    result = {CUDAQ_ERR_INTERNAL, kOutOfMemory};
  }
  const std::lock_guard lock(mutex_);
  start_returned_ = true;
  if (result.failed()) {
    connect_result_ = std::move(result);
    body_ended_ = true;
  }
  attempt_ended();
}

void bridge_instance::run_attempt() {
  std::unique_lock lock(mutex_);
  wait_on(changed_, lock, [this] { return cancel_accepted_ || !in(bridge_state::cancelling); });
  // The provider's disconnect may have run before, and have found nothing to cancel: its result decides.
  expected<> result = make_reason(CUDAQ_ERR_STATE, "disconnect came before connect was called");
  if (!cancel_accepted_) {
    lock.unlock();
    result = call("connect", table_.entries.connect, handle_);
    lock.lock();
  }
  connect_result_ = std::move(result);
  body_ended_ = true;
  attempt_ended();
}

void bridge_instance::attempt_ended() {
  if (!body_ended_ || !start_returned_)
    return;
  under_way_ = false;
  leave_attempt();
}

void bridge_instance::leave_attempt() {
  if (in(bridge_state::connecting)) {
    state_ = connect_result_.failed() ? bridge_state::created : bridge_state::connected;
    not_reported_ = true;
  } else if (in(bridge_state::cancelling) && cancel_accepted_) {
    state_ = bridge_state::disconnected;
  } // else the thread that cancels calls it again
  changed_.notify_all();
}

expected<> bridge_instance::cancel_attempt(std::unique_lock<std::mutex> &lock) {
  state_ = bridge_state::cancelling;
  gave_up_ = false;
  lock.unlock();
  expected<> result = call("disconnect", table_.entries.disconnect, handle_);
  lock.lock();
  cancel_accepted_ = result.ok();
  if (result.failed())
    state_ = bridge_state::connecting;
  if (!under_way_)
    leave_attempt();
  changed_.notify_all();
  return result;
}

expected<> bridge_instance::disconnect() {
  std::unique_lock lock(mutex_);
  if (in(bridge_state::connecting))
    if (expected<> result = cancel_attempt(lock); result.failed())
      return result;
  if (in(bridge_state::cancelling)) {
    wait(lock, steady_clock::now() + cancel_grace_, [this] { return !in(bridge_state::cancelling); });
    if (in(bridge_state::cancelling)) {
      gave_up_ = true;
      changed_.notify_all();
      return make_reason(CUDAQ_ERR_TIMEOUT,
                         "provider %s: its connect has not returned within %g s after its disconnect; "
                         "call disconnect again to wait on",
                         name_.c_str(), std::chrono::duration<double>(cancel_grace_).count());
    }
    if (in(bridge_state::connecting))
      return make_reason(CUDAQ_ERR_STATE, "the provider refused a disconnect of another thread; call it again");
  }
  if (in(bridge_state::disconnected))
    return {};
  if (in(bridge_state::created) && running_entry_ == nullptr) {
    state_ = bridge_state::disconnected;
    return {};
  }
  exclusive use(*this, std::move(lock), "disconnect", bridge_state::connected | bridge_state::launched);
  if (use.result().failed())
    return use.result();
  disconnect_failed_ = true;
  if (expected<> result = call("disconnect", table_.entries.disconnect, handle_); result.failed())
    return result;
  disconnect_failed_ = false;
  use.enter(bridge_state::disconnected);
  return {};
}

} // namespace cudaq::realtime::detail

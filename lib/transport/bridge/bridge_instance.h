// SPDX-License-Identifier: Apache-2.0
// One instance of a provider: which calls are allowed in which state, and the thread that connects.
//
// Allowed calls, and the state after a success. "-" is CUDAQ_ERR_STATE with a text. After an error the state is the
// same as before, except where the table says otherwise.
//
//   state          connect               launch      disconnect        destroy      getters  set_function_table
//   created        runs -> connected (1) -           -> disconnected(2) runs         run      runs
//   connecting     waits on              -           cancels (3)       -            -        -
//   cancelling     -                     -           waits on (3)      -            -        -
//   connected      - (4)                 -> launched -> disconnected   runs (5)     run      runs
//   launched       -                     -           -> disconnected   runs (5)     run      -
//   disconnected   -                     -           no effect         runs         run      -
//
//   (1) The provider's connect runs on a thread of the instance. The state is connecting until it has returned; a
//       failure leads back to created. After a time-out the next connect waits for the same call and returns its
//       result.
//   (2) Without a call of the provider. A connect that comes later on another thread is refused, so it cannot wait
//       without limit for a program that is about to end.
//   (3) Calls the provider's disconnect once, on the calling thread, while its connect runs. The state is cancelling
//       until connect has returned, then disconnected. The call waits for that, but at most the cancel grace.
//   (4) Except once after a time-out, to report the success.
//   (5) After the provider's disconnect. If disconnect has failed before, it is not called again.
//
// The getters are get_transport_context, get_cpu_dataplane, get_endpoint_info, get_ring_geometry. The provider is
// called by one thread at a time, except in (3): a call that finds another one running is refused, and waits for
// nothing.
#pragma once

#include "lib/base/enum_number.h"
#include "lib/base/runner.h"
#include "lib/transport/bridge/provider_library.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace cudaq::realtime::detail {

/// Bits, so that a call can name the states in which it is allowed.
enum class bridge_state : std::uint32_t {
  creating = 1,
  created = 2,
  connecting = 4,
  cancelling = 8,
  connected = 16,
  launched = 32,
  disconnected = 64,
  destroyed = 128
};

/// All functions may be called from any thread. No lock is held while the provider runs.
class bridge_instance {
public:
  /// How long disconnect waits for a connect that it has cancelled.
  static constexpr std::chrono::milliseconds kCancelGrace{5000};

  /// `table` must outlive the instance. `library` is for the texts.
  bridge_instance(const std::string &library, const provider_table &table,
                  std::chrono::milliseconds cancel_grace = kCancelGrace)
      : name_(short_name(library)), table_(table), cancel_grace_(cancel_grace) {}
  bridge_instance(const bridge_instance &) = delete;
  bridge_instance &operator=(const bridge_instance &) = delete;

  /// The first call. The provider gets a copy of the arguments, with a NULL after them.
  expected<> create(int argc, char **argv);
  expected<> connect(steady_clock::time_point deadline);
  expected<> launch();
  expected<> disconnect();
  /// The last call if it succeeds.
  expected<> destroy();

  expected<> get_transport_context(cudaq_realtime_transport_context_t type, void *out);
  expected<> get_cpu_dataplane(cudaq_cpu_dataplane_t *out);
  expected<> get_endpoint_info(char *buffer, std::size_t length);
  expected<> get_ring_geometry(std::uint32_t *num_slots, std::uint32_t *slot_size);
  expected<> set_function_table(const cudaq_function_table_t *table);

private:
  class exclusive;

  template <class... Parameters, class... Arguments>
  expected<> call(const char *entry, cudaq_status_t (*function)(Parameters...), Arguments... arguments) const {
    return without_exceptions(name_, entry, [&] {
      const cudaq_status_t status = function(arguments...);
      return reason_of(entry, number_in(status));
    });
  }
  expected<> reason_of(const char *entry, int returned) const;
  expected<> since_version(int version, bool present, const char *entry) const;

  // All below: mutex_ is held.
  bool in(bridge_state state) const { return state_ == state; }
  expected<> check_allowed(std::uint32_t allowed) const;
  void attempt_ended();
  void leave_attempt();
  expected<> result_of_connect();

  // Without mutex_.
  void start_attempt();
  void run_attempt();
  expected<> cancel_attempt(std::unique_lock<std::mutex> &lock);
  bool wait(std::unique_lock<std::mutex> &lock, steady_clock::time_point deadline, const std::function<bool()> &done);

  const std::string name_;
  const provider_table &table_;
  const std::chrono::milliseconds cancel_grace_;
  cudaq_realtime_bridge_handle_t handle_ = nullptr; ///< the provider's own; constant after create

  std::mutex mutex_;
  std::condition_variable changed_; ///< state_ or gave_up_
  bridge_state state_ = bridge_state::creating;
  const char *running_entry_ = nullptr; ///< of an exclusive call; connect is not one
  bool disconnect_failed_ = false;

  // The attempt to connect. It is under way until its body has ended and the thread that started it has noticed.
  loop_thread thread_; ///< belongs to the starter while under way, else to the exclusive call
  bool under_way_ = false;
  bool body_ended_ = false;
  bool start_returned_ = false;
  bool not_reported_ = false;    ///< its result
  bool cancel_accepted_ = false; ///< the provider's disconnect has returned CUDAQ_OK
  bool gave_up_ = false;         ///< a disconnect has waited for cancel_grace_
  expected<> connect_result_;
};

} // namespace cudaq::realtime::detail

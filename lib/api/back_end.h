// SPDX-License-Identifier: Apache-2.0
// What each path (host or device) of a dispatcher implements. cudaq_dispatcher_t has the wiring and the state machine,
// which are common to both.
#pragma once

#include "cudaq/realtime/daemon/bridge/bridge_types.h"
#include "cudaq/realtime/daemon/dispatcher/device_dispatch.h"
#include "cudaq/realtime/detail/base/shared_word.h"
#include "lib/api/options.h"
#include "lib/api/ring_claims.h"
#include "lib/base/runner.h"
#include "lib/host_dispatcher/handler_table.h"

#include <optional>

namespace cudaq::realtime::detail {

/// The launch function of a unified kernel, in one of its two forms, and its transport context.
struct unified_launch {
  cudaq_unified_launch_spec_fn_t spec_fn = nullptr;
  cudaq_unified_launch_upstream_fn_t upstream_fn = nullptr;
  void *transport_ctx = nullptr;
  bool none() const { return spec_fn == nullptr && upstream_fn == nullptr; }
};

/// Words of the caller that the loop of the upstream interface writes; NULL: not wanted (upstream_interface.h).
struct upstream_words {
  shared_word<std::uint64_t> *idle_mask = nullptr;
  shared_word<std::uint64_t> *live_dispatched = nullptr;
  int *slot_tags = nullptr;
  bool any() const { return live_dispatched != nullptr || slot_tags != nullptr; } ///< words that a launch changes
};

/// Everything that the caller has set, validated as far as possible without a run.
struct wiring {
  std::optional<cudaq_ringbuffer_t> ring; ///< with a dataplane: its slots, and flags of the library
  std::optional<cudaq_cpu_dataplane_t> dataplane;
  std::shared_ptr<std::vector<std::uint64_t>> dataplane_flags; ///< the rx flags, then the tx flags of `ring`
  std::uint32_t max_result_bytes = 0;                          ///< 0: as many as a slot holds
  bool handler_times = false;                                  ///< recorded
  std::optional<cudaq_function_table_t> table;
  std::vector<v2_handler> v2;
  std::vector<cudaq_host_worker_t> workers;
  void **mailbox = nullptr;
  bool mailbox_of_contexts = false; ///< of the upstream form
  bool finds_device_views = false;  ///< upstream forms: views of the device that the ring lacks are looked up
  upstream_words words;             ///< of a loop on the thread of the caller
  cudaq_dispatcher_options_t options{};
  cudaq_dispatch_launch_fn_t launch_fn = nullptr; ///< at most one of launch_fn and launch_fn_v2 is set
  cudaq_dispatch_launch_fn_v2_t launch_fn_v2 = nullptr;
  unified_launch unified;
  std::optional<cudaq_dispatch_graph_io_t> graph_io; ///< its `contexts` points to graph_contexts
  std::vector<void *> graph_contexts;
  volatile int *shutdown_flag = nullptr;
  std::uint64_t *stats = nullptr;
  bool rewired = true; ///< the ring was set after the last start: the cursor starts at slot 0
};

/// State of a run between start and finish.
enum class run_phase {
  going,
  ending, ///< by the caller's shutdown flag: no request is accepted; a handler runs, or a request is not answered
  ended,  ///< the same; no thread runs, and all requests are answered
  faulted ///< ended by an error, which finish returns
};

/// The dispatcher serialises the calls, except those marked "any thread".
class back_end {
public:
  virtual ~back_end() = default;

  /// May complete the ring: sets host views that the caller has left NULL.
  virtual expected<> check_ring(cudaq_ringbuffer_t &ring) const = 0;
  /// The name of a C function that this path needs and the caller has not called, or NULL.
  virtual const char *missing_call(const wiring &w) const = 0;

  /// Starts a run. After an error nothing runs. Exception: after CUDAQ_ERR_TIMEOUT the kernel that was started ends as
  /// soon as it can, and finish waits for it.
  virtual expected<> start(wiring &w) = 0;
  /// State of the run. Only between start and finish. Any thread.
  virtual run_phase observe() const = 0;
  /// Ends the run. CUDAQ_ERR_TIMEOUT: the run did not end by the deadline; may be called again. Any other error: the
  /// run has ended with this error, which is returned once. `timeout_ns` is only for the error text.
  virtual expected<> finish(std::uint64_t timeout_ns, steady_clock::time_point deadline) = 0;

  /// The callback of this dispatcher that the calling thread is in ("a handler", "the launch function"), or NULL. Any
  /// thread.
  virtual const char *caller_is_inside() const = 0;
  /// Any thread.
  virtual expected<> complete_deferred(const cudaq_host_job_t &, std::int32_t, std::uint32_t) {
    return make_reason(CUDAQ_ERR_UNSUPPORTED, "config->dispatch_path is 0 (device): only host handlers can defer");
  }

  virtual expected<> release_worker(int) { return no_workers(); }
  virtual expected<> worker_job(int, cudaq_host_job_t &) const { return no_workers(); }

  // Any thread, any time.
  virtual expected<> read_times(std::uint32_t, cudaq_handler_times_t &) const {
    return make_reason(CUDAQ_ERR_UNSUPPORTED,
                       "config->dispatch_path is 0 (device): only the host path records the times of handlers");
  }
  virtual void read_stats(cudaq_dispatcher_stats_t &out) const = 0;
  /// The value of the wired counter `stats` (may be NULL).
  virtual expected<> processed(bool running, const std::uint64_t *stats, std::uint64_t &out) const = 0;
  virtual std::string describe() const = 0;

private:
  static expected<> no_workers() {
    return make_reason(CUDAQ_ERR_UNSUPPORTED,
                       "config->dispatch_path is 0 (device): only the host path has graph workers");
  }
};

/// A ring as one side sees it. The ring must be valid for the configuration.
slot_ring view_of(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config, ring_side side);

/// Identifies a ring: the host address of its rx flags if there is one, so that both paths get the same identity.
inline const volatile void *identity_of(const cudaq_ringbuffer_t &ring) {
  return ring.rx_flags_host != nullptr ? ring.rx_flags_host : ring.rx_flags;
}

/// The memory that a run with this wiring uses. `known_slots`: of the ring, as of memory_claim.
memory_claim claim_of(const wiring &w, const cudaq_dispatcher_config_t &config, std::uint32_t known_slots);

/// The result of cudaq_dispatch_launch_state(): not NULL while the calling thread is in the launch function of a start.
inline thread_local void *launch_state_of_this_thread = nullptr;

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// A dispatcher on the host path whose requests come from a provider of a transport.
#pragma once

#include "cudaq/realtime/daemon/bridge/bridge_types.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"
#include "lib/base/expected.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// A text with a / or the end .so: no name of a provider, but where its library is.
bool is_provider_path(const std::string &name);

/// The library of a provider. A path is taken as it is. Of a name, the library
/// libcudaq-realtime-bridge-NAME.so (with - for _) is looked for beside the program, in the library folder of an
/// install tree and in that of a build tree; else the dynamic linker looks for it.
std::string provider_library(const std::string &name);

/// dlopen for what is no transport instance: functions that a provider exports. `library`: of provider_library.
[[nodiscard]] detail::expected<void *> open_provider(const std::string &library);

/// The transport to serve: the one of --transport, else the configured one. Throws usage_error without either.
const std::string &chosen_transport(const std::string &option, const std::string &configured);

/// The policy of a word of --wait: "spin", "block", "auto" (blocks with `few_cores`), or "yield".
cudaq_wait_policy_t wait_policy_of(const std::string &word, bool few_cores);

/// The value of `key` in a line of key=value words; `otherwise` if the line has no such key.
std::string endpoint_value(const std::string &endpoint, const std::string &key, const std::string &otherwise);

/// The lines from which scripts of a sensor bridge read its numbers, if `endpoint` has these; else "".
std::string bridge_banner(const std::string &endpoint);

/// Owns an instance of a provider, a manager and a dispatcher. One thread calls everything.
///
/// If a handler does not return within the grace period, the destructor frees nothing: everything stays in memory.
class provider_service {
public:
  /// Loads the provider, which binds its sockets. Takes the shape that it has. Throws usage_error if the library, or
  /// an option for the provider, cannot be used, and api_error if the system refuses something, such as a port in use.
  provider_service(const std::string &library, const std::vector<std::string> &args, cudaq_wait_policy_t wait);
  provider_service(const provider_service &) = delete;
  provider_service &operator=(const provider_service &) = delete;
  ~provider_service();

  /// Before start. `user` must live longer than this object. Throws api_error.
  void serve(std::uint32_t function_id, cudaq_host_handler_v2_t handler, void *user);
  /// Before start: the core and the real-time priority of the dispatcher's thread. Throws api_error.
  void place(int core, int realtime_priority);
  /// For other settings before start. It stays this object's.
  [[nodiscard]] cudaq_dispatcher_t *dispatcher() noexcept { return dispatcher_; }
  void start();
  /// False: the peer has not come within this time; call it again. Throws api_error.
  bool connect(std::uint64_t timeout_ns);
  /// After connect.
  void launch();
  /// Calls cudaq_host_complete_deferred; any thread may call it.
  cudaq_status_t complete(const cudaq_host_job_t &job, std::int32_t status, std::uint32_t result_len) noexcept;
  /// Waits until all slots of a ring are free, so that the provider has sent every answer. False: not before the
  /// deadline. Always true with a provider that has no ring.
  bool flush(std::uint64_t timeout_ns);
  /// Stops the dispatcher, which answers its accepted requests, then the provider, after it has sent the answers that
  /// it can send in the rest of the time (at least 0.1 s, at most 1 s). False: a handler has not returned within this
  /// time; then nothing is disconnected, and the objects of the handlers must stay. Throws api_error.
  [[nodiscard]] bool stop(std::uint64_t timeout_ns);

  /// As it was at the start, or after connect.
  [[nodiscard]] const std::string &endpoint() const noexcept { return endpoint_; }
  /// Asks the provider; "" if it has none.
  [[nodiscard]] std::string endpoint_now() const;
  /// As the constructor got it.
  [[nodiscard]] const std::string &library() const noexcept { return library_; }
  [[nodiscard]] std::uint32_t num_slots() const noexcept { return config_.num_slots; }
  [[nodiscard]] std::uint32_t slot_bytes() const noexcept { return config_.slot_size; }
  /// A provider with a ring fills its slots in order, one with the unified shape any slot that is free.
  [[nodiscard]] bool is_unified() const noexcept { return unified_; }
  [[nodiscard]] const char *shape() const noexcept { return unified_ ? "unified" : "ring"; }
  /// The words of a READY line: port, transport, shape and slots, then `own`, then the other words of the endpoint.
  [[nodiscard]] std::string ready_words(const std::string &own = "") const;
  [[nodiscard]] std::uint64_t processed() const;
  [[nodiscard]] cudaq_dispatcher_stats_t stats() const;

private:
  void create_dispatcher(cudaq_wait_policy_t wait);
  bool release() noexcept;

  cudaq_realtime_bridge_handle_t bridge_ = nullptr;
  cudaq_dispatch_manager_t *manager_ = nullptr;
  cudaq_dispatcher_t *dispatcher_ = nullptr;
  cudaq_dispatcher_config_t config_{};
  cudaq_ringbuffer_t ring_{};
  cudaq_cpu_dataplane_t dataplane_{};
  cudaq_dispatcher_options_t dispatcher_options_{};
  bool unified_ = false, connected_ = false;
  const std::string library_;
  std::string endpoint_;
  /// The words that the dispatcher reads and writes; left in memory together with it.
  struct control_words {
    volatile int shutdown = 0;
    std::uint64_t processed = 0;
  };
  control_words *control_ = nullptr;
};

} // namespace cudaq::realtime::tools

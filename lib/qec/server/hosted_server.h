// SPDX-License-Identifier: Apache-2.0
// The decoding server as a program has it: made from a configuration, for requests of a dispatcher and of the program
// itself. `serve` and the C library (decoding_server_c.cpp) stand on it.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"
#include "lib/qec/server/learning/live_learning.h"
#include "lib/qec/server/server_config.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace cudaq::qec::realtime {

/// A configuration that was read, and its decoders.
struct loaded_config {
  server_config config;
  std::vector<decoder_setup> setups;
  std::string folder; ///< where its relative paths begin
};

/// What a program changes in a configuration that was read, before its decoders are made; empty: nothing.
using config_change = std::function<void(server_config &config)>;

/// Reads a YAML text and makes the decoders; `folder` as of build_decoders. It may take any time, in the file system
/// and in plug-ins.
[[nodiscard]] expected<loaded_config> load_config(std::string_view yaml, const std::string &folder,
                                                  const config_change &change = {});

/// Threads: submit by any number of threads; all others by one control thread, reload also by another one.
class hosted_server {
public:
  /// Called once for a request of submit, with its status and the bytes of its result. Must not throw.
  struct answer_function {
    void (*answered)(void *user, std::int32_t status, std::uint64_t bytes) = nullptr;
    void *user = nullptr;
  };

  /// Throws std::bad_alloc.
  explicit hosted_server(loaded_config loaded);

  /// Bytes of a slot that holds the request and the answer of a whole shot of each decoder: usual_slot_size.
  [[nodiscard]] std::uint32_t slot_bytes() const noexcept { return slot_bytes_; }
  /// Bytes of the longest request of a whole shot: a slot of so many has room for it.
  [[nodiscard]] std::uint64_t shot_request_bytes() const noexcept { return shot_request_bytes_; }
  /// Fails if an answer of a decoder is longer than a slot of this size.
  [[nodiscard]] expected<> check_slots(std::uint32_t slot_bytes) const;
  /// Makes this server the handler of its functions, in a dispatcher that does not run. At most once. The dispatcher
  /// must stay until the requests that it gave are answered. `slots`: those of the dispatcher. Throws std::bad_alloc.
  expected<> attach(cudaq_dispatcher_t *dispatcher, const transport_slots &slots = {});
  /// Makes the file of the section `record`, if there is one; before start.
  expected<> record();
  /// decoding_server::start, with the places of the configuration. Its loop_core, lock_memory and cpu_dma_latency_us
  /// are the program's.
  expected<> start(cudaq_wait_policy_t wait, std::uint32_t max_threads);

  /// Serves a request of the program. It is answered exactly once, by this thread before the return or by a thread of
  /// the server. The payload is read during the call only; `result` must stay until the answer. Throws std::bad_alloc:
  /// then the request was not taken.
  void submit(std::uint32_t function_id, std::span<const std::uint8_t> payload, std::span<std::uint8_t> result,
              std::uint32_t request_id, std::uint64_t timestamp, const answer_function &answer);

  /// Reads another configuration and gives the decoders their new models; waits for the ends of shots up to `limit_ns`
  /// after the configuration was read. Rejected, too: a text that load_config refuses, or another transport or section
  /// `realtime` or `record`. `give_up` as of decoding_server::reload.
  reload_result reload(std::string_view yaml, const std::string &folder, std::uint64_t limit_ns,
                       const std::function<bool()> &give_up = {}, const config_change &change = {});
  /// decoding_server::drain; it waits for the ends of submit, too, and of the answers that it gives.
  [[nodiscard]] bool drain(cudaq::realtime::detail::steady_clock::time_point read_deadline,
                           cudaq::realtime::detail::steady_clock::time_point deadline);
  /// live_learning::go_back: what comes next is a reload.
  reload_result go_back(std::uint64_t limit_ns, earlier_model to = earlier_model::configured) {
    return learning_.go_back(limit_ns, to);
  }
  [[nodiscard]] live_learning &learning() noexcept { return learning_; }
  [[nodiscard]] const live_learning &learning() const noexcept { return learning_; }
  /// That were applied.
  [[nodiscard]] std::uint64_t reloads() const noexcept { return reloads_.value(); }

  /// After an end that did not come in time: which decoders have requests, or serve one, and how many have no answer.
  [[nodiscard]] std::string unended_text() const;

  [[nodiscard]] const server_config &config() const noexcept { return config_; }
  [[nodiscard]] decoding_server &server() noexcept { return server_; }
  [[nodiscard]] const decoding_server &server() const noexcept { return server_; }

private:
  static std::int32_t handle(cudaq_host_call_t *call, void *self) noexcept;
  static void answer(void *self, const cudaq_host_job_t &job, const server_answer &answer) noexcept;

  const server_config config_;
  const std::string folder_;
  const std::uint32_t slot_bytes_;
  const std::uint64_t shot_request_bytes_, exchange_bytes_;
  cudaq_dispatcher_t *dispatcher_ = nullptr;
  cudaq::realtime::detail::counter reloads_;
  running_calls submits_;  ///< of this object; they call the functions that take answers
  decoding_server server_; ///< its threads use the members before it
  live_learning learning_{server_};
};

} // namespace cudaq::qec::realtime

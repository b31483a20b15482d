// SPDX-License-Identifier: Apache-2.0
// The decoding server without its transport: requests as bytes in, answers as bytes out. The wire:
// docs/transport/server_wire.md.
#pragma once

#include "lib/qec/server/decoder/served_decoder.h"
#include "lib/qec/server/running_calls.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace cudaq::qec::realtime {

/// One decoder of a configuration, built.
struct decoder_setup {
  decoder_limits limits;
  std::unique_ptr<decoding_unit> unit;
  std::string place{}; ///< in the file, for texts: "line 3, column 5: decoders[0]"; "" if there is none
};

/// The result of a new configuration. After `rejected` and `busy` the old one is in use; after busy, decoders that
/// already used the new one return to the old one between shots.
enum class reload_outcome : std::uint8_t { applied, rejected, busy };
struct reload_result {
  reload_outcome outcome = reload_outcome::applied;
  std::string reason;                            ///< "" if it was applied
  cudaq_status_t status = CUDAQ_ERR_INVALID_ARG; ///< of `rejected`; UNSUPPORTED: the machine lacks something
};

/// Several decoders, chosen by the id in a request. qec_decode, which names no decoder, is for the first of them.
///
/// Threads: submit, arrive and counts by any number of threads; start, stop, close and reload by control threads.
class decoding_server {
public:
  /// `setups`: at least one, all ids different. Throws std::bad_alloc.
  explicit decoding_server(std::vector<decoder_setup> setups);
  ~decoding_server(); ///< stops, and waits as long as that takes

  /// The threads that start makes if it may make this number. 0: as many as the machine has cores, at least 8. Never
  /// more than there are decoders with a queue.
  [[nodiscard]] std::uint32_t threads_for(std::uint32_t max_threads) const noexcept;
  /// Before the first request of a transport, at most once: its slots. Throws std::bad_alloc.
  void limit_waits(const transport_slots &slots);
  /// A request of the transport has come in this slot: before its submit.
  void arrive(std::uint32_t slot) noexcept { slots_.arrive(slot); }
  /// Before start: from the first request on, each is recorded in a file, docs/transport/recorder.md. Fails as
  /// request_recorder::create.
  expected<> record(const std::string &path, const request_recorder::sizes &size);
  /// Starts the threads that the decoders share. After a failure, such as a placement that the system refuses, the
  /// server is stopped.
  expected<> start(const answer_receiver &receiver, cudaq_wait_policy_t wait, std::uint32_t max_threads = 0,
                   const thread_places &places = {});
  /// From now on no shot and no part of a stream is begun: such requests, and those that wait for a round, are answered
  /// not_ready. Shots that have begun go on, and corrections can be read: has_unfinished() tells whether there are any.
  void begin_end() noexcept;
  [[nodiscard]] bool has_unfinished() const noexcept;
  /// From now on requests are answered not_ready, except describe_decoder and copies of requests that were taken. These
  /// are still served: idle() tells when.
  void close() noexcept;
  [[nodiscard]] bool is_closed() const noexcept { return phase_.load() == closed; }
  /// No request is in a queue or with a decoder. has_unfinished() is asked after it: a request that is served may begin
  /// a shot.
  [[nodiscard]] bool idle() const noexcept;
  /// The end without a loss, before stop(): begin_end(); once all shots have ended and their corrections were read, or
  /// at `read_deadline`, close(); then waits until all requests are answered. False: one is not at `deadline`. The
  /// answer with the last corrections may be lost on its way and asked for again, so it waits a moment after it.
  [[nodiscard]] bool drain(cudaq::realtime::detail::steady_clock::time_point read_deadline,
                           cudaq::realtime::detail::steady_clock::time_point deadline);
  /// Closes, serves the requests that were taken, and ends the threads. False: one still runs at the deadline.
  bool stop(cudaq::realtime::detail::steady_clock::time_point deadline);

  /// Serves a request, or takes it for later. True: `now` is its answer; bytes of `result` were written. False: the
  /// receiver gets its answer. Every request is answered once. The payload is only read during the call. `timestamp`:
  /// of the request's frame; with job.request_id it tells a request that was sent again from another one.
  bool submit(std::uint32_t function_id, std::span<const std::uint8_t> payload, std::span<std::uint8_t> result,
              const cudaq_host_job_t &job, server_answer &now, std::uint64_t timestamp = 0);

  /// Gives every decoder a new model, each between two of its shots; a stream before the next stream, which reload()
  /// does not wait for. No request is refused or lost meanwhile: until then the old decoder serves. rejected: the ids,
  /// their order, the limits or the shapes differ. busy: another reload runs or has not returned to the old decoders
  /// yet, or a decoder was inside a shot until the deadline, or until `give_up` returned true. The calling thread calls
  /// it again and again while it waits; it may be empty.
  reload_result reload(std::vector<decoder_setup> setups, cudaq::realtime::detail::steady_clock::time_point deadline,
                       const std::function<bool()> &give_up = {});

  /// The same for some decoders: units[k] is the new one of decoders()[k], null: it keeps its own.
  reload_result exchange(std::vector<std::unique_ptr<decoding_unit>> units,
                         cudaq::realtime::detail::steady_clock::time_point deadline,
                         const std::function<bool()> &give_up = {});

  /// Frees the models that earlier reloads have replaced: there may be no room for a third one. That may take long, so
  /// it is called before the models of a reload are made. No effect while a reload runs, or returns to the old models.
  void free_replaced();

  [[nodiscard]] std::span<const std::unique_ptr<served_decoder>> decoders() const noexcept { return decoders_; }
  /// Requests that named no decoder of this server, or could not be read.
  [[nodiscard]] std::uint64_t strays() const noexcept { return strays_.value(); }
  /// Of this object; random, and not 0.
  [[nodiscard]] std::uint64_t boot_id() const noexcept { return boot_id_; }

private:
  enum server_phase : std::uint32_t { serves, ends, closed };
  bool answer_or_queue(std::uint32_t function_id, std::span<const std::uint8_t> payload, std::span<std::uint8_t> result,
                       const cudaq_host_job_t &job, server_answer &now, std::uint64_t timestamp,
                       request_moments &moments);
  server_answer describe(const wire_request &request, const served_decoder &decoder,
                         std::span<std::uint8_t> result) const noexcept;
  served_decoder *find(const read_result &read) const noexcept;
  expected<> check_fixed(const std::vector<decoder_setup> &setups) const;
  bool offers_are_accepted() const;
  reload_result offer_all(std::vector<std::unique_ptr<decoding_unit>> units,
                          cudaq::realtime::detail::steady_clock::time_point deadline,
                          const std::function<bool()> &give_up);
  void discard_previous();

  // Before the decoders, whose threads use both.
  const cudaq::realtime::detail::tick_clock ticks_ = cudaq::realtime::detail::tick_clock::measured();
  std::unique_ptr<request_recorder> recorder_; ///< null: requests are not recorded
  held_slots slots_;
  std::vector<std::unique_ptr<served_decoder>> decoders_;
  std::vector<served_decoder *> by_id_;
  worker_pool pool_;
  std::mutex reloading_;
  cudaq::realtime::detail::counter strays_;
  running_calls submits_;                                     ///< a decoder without a queue serves inside submit
  cudaq::realtime::detail::shared_word<std::uint32_t> phase_; ///< it only grows
  const std::uint64_t boot_id_;
};

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
// libcudaq-qec-server: hosted_server in C.
#include "cudaq/qec/realtime/decoding_server.h"

#include "lib/base/condition.h"
#include "lib/base/error_text.h"
#include "lib/base/process_mark.h"
#include "lib/base/public_histogram.h"
#include "lib/qec/server/hosted_server.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <condition_variable>
#include <memory>
#include <mutex>

using namespace cudaq::realtime::detail;
using namespace cudaq::qec::realtime;

struct cudaq_qec_decoding_server_t {
  cudaq_qec_decoding_server_t(loaded_config loaded, const char *in) : folder(in), host(std::move(loaded)) {}

  const std::string folder;
  process_mark mark;
  hosted_server host; ///< the last member: until its end it calls functions that may submit requests
};

namespace {

static_assert(std::endian::native == std::endian::little,
              "the structs of decoding_server_wire.h are those of the wire");
constexpr std::size_t kAnswerCounts = sizeof(cudaq_qec_decoding_server_counts_t::answers) / sizeof(std::uint64_t);
static_assert(kServerStatuses <= kAnswerCounts);
static_assert(static_cast<int>(request_stage::accepted) == CUDAQ_QEC_STAGE_ACCEPTED &&
              static_cast<int>(request_stage::whole) == CUDAQ_QEC_STAGE_WHOLE);

expected<> check_options(const cudaq_qec_decoding_server_options_t *given, cudaq_qec_decoding_server_options_t &out) {
  out = {sizeof(out), CUDAQ_WAIT_BLOCK, 0, 0, nullptr};
  if (given != nullptr) {
    if (given->struct_size != sizeof(out))
      return make_reason(CUDAQ_ERR_INVALID_ARG, "struct_size is %u, accepted: %zu", given->struct_size, sizeof(out));
    out = *given;
  }
  if (out.wait_policy < CUDAQ_WAIT_SPIN || out.wait_policy > CUDAQ_WAIT_BLOCK)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "wait_policy is %d, accepted: a value of cudaq_wait_policy_t",
                       static_cast<int>(out.wait_policy));
  if (out.reserved != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "reserved is %u, accepted: 0", out.reserved);
  out.folder = out.folder == nullptr ? "." : out.folder;
  return {};
}

/// `what` names the argument that may be NULL.
expected<> check_server(const cudaq_qec_decoding_server_t *server, const void *argument, const char *what) {
  if (server == nullptr || argument == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", server == nullptr ? "server" : what);
  if (!server->mark.is_of_this_process())
    return make_reason(CUDAQ_ERR_STATE,
                       "process %ld created this server, and a child has none of its threads. Create another one after "
                       "fork",
                       static_cast<long>(server->mark.process()));
  return {};
}

expected<const served_decoder *> decoder_of(const cudaq_qec_decoding_server_t *server, std::uint64_t id) {
  for (const auto &decoder : server->host.server().decoders())
    if (decoder->limits().id == id)
      return decoder.get();
  return make_reason(CUDAQ_ERR_INVALID_ARG, "decoder_id is %" PRIu64 ", and no decoder has this id", id);
}

expected<> submit(cudaq_qec_decoding_server_t *server, const cudaq_qec_decoding_server_request_t *request,
                  const hosted_server::answer_function &answer) {
  if (expected<> result = check_server(server, request, "request"); result.failed())
    return result;
  const cudaq_qec_decoding_server_request_t &r = *request;
  if ((r.payload == nullptr && r.payload_bytes != 0) || (r.result == nullptr && r.result_bytes != 0))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL, and has bytes", r.payload == nullptr ? "payload" : "result");
  if (r.payload_bytes > UINT32_MAX)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "payload_bytes is %" PRIu64 ", accepted: up to %u", r.payload_bytes,
                       UINT32_MAX);
  // Answers count their bytes in 32 bits.
  const auto room = static_cast<std::size_t>(std::min<std::uint64_t>(r.result_bytes, UINT32_MAX));
  server->host.submit(r.function_id,
                      {static_cast<const std::uint8_t *>(r.payload), static_cast<std::size_t>(r.payload_bytes)},
                      {static_cast<std::uint8_t *>(r.result), room}, r.request_id, r.timestamp, answer);
  return {};
}

expected<> status_of(const reload_result &result) {
  if (result.outcome == reload_outcome::applied)
    return {};
  return {result.outcome == reload_outcome::rejected ? result.status : CUDAQ_ERR_TIMEOUT, result.reason};
}

/// The answer that a caller waits for.
struct awaited_answer {
  std::mutex mutex; ///< protects the members below
  std::condition_variable changed;
  bool is_there = false;
  std::int32_t status = 0;
  std::uint64_t bytes = 0;

  static void set(void *self, std::int32_t status, std::uint64_t bytes) noexcept {
    auto &here = *static_cast<awaited_answer *>(self);
    const std::lock_guard<std::mutex> lock(here.mutex);
    here.status = status;
    here.bytes = bytes;
    here.is_there = true;
    here.changed.notify_one(); // with the lock: the caller frees this object when it has it
  }
};

} // namespace

extern "C" {

cudaq_status_t cudaq_qec_decoding_server_create(cudaq_qec_decoding_server_t **out_server, const char *config,
                                                const cudaq_qec_decoding_server_options_t *options) {
  return guarded(__func__, [&]() -> expected<> {
    if (out_server == nullptr || config == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", out_server == nullptr ? "out_server" : "config");
    cudaq_qec_decoding_server_options_t o;
    if (expected<> result = check_options(options, o); result.failed())
      return result;
    expected<loaded_config> loaded = load_config(config, o.folder);
    if (loaded.failed())
      return loaded;
    auto made = std::make_unique<cudaq_qec_decoding_server_t>(std::move(*loaded), o.folder);
    expected<> result = made->host.record();
    if (result.ok())
      result = made->host.start(o.wait_policy, o.max_threads);
    if (result.ok())
      *out_server = made.release();
    return result;
  });
}

cudaq_status_t cudaq_qec_decoding_server_get_slot_size(const cudaq_qec_decoding_server_t *server,
                                                       uint32_t *out_slot_size) {
  return guarded_brief(__func__, [&]() -> expected<> {
    if (expected<> result = check_server(server, out_slot_size, "out_slot_size"); result.failed())
      return result;
    *out_slot_size = server->host.slot_bytes();
    return {};
  });
}

cudaq_status_t cudaq_qec_decoding_server_serve(cudaq_qec_decoding_server_t *server, cudaq_dispatcher_t *dispatcher,
                                               uint32_t slot_size) {
  return guarded(__func__, [&]() -> expected<> {
    if (expected<> result = check_server(server, dispatcher, "dispatcher"); result.failed())
      return result;
    if (expected<> result = server->host.check_slots(slot_size); result.failed())
      return result;
    return server->host.attach(dispatcher);
  });
}

cudaq_status_t cudaq_qec_decoding_server_submit(cudaq_qec_decoding_server_t *server,
                                                const cudaq_qec_decoding_server_request_t *request,
                                                cudaq_qec_decoding_server_answered_t answered, void *user) {
  return guarded(__func__, [&]() -> expected<> {
    if (answered == nullptr)
      return {CUDAQ_ERR_INVALID_ARG, "answered is NULL"};
    return submit(server, request, {answered, user});
  });
}

cudaq_status_t cudaq_qec_decoding_server_call(cudaq_qec_decoding_server_t *server,
                                              const cudaq_qec_decoding_server_request_t *request, int32_t *out_status,
                                              uint64_t *out_result_bytes) {
  return guarded(__func__, [&]() -> expected<> {
    if (out_status == nullptr)
      return {CUDAQ_ERR_INVALID_ARG, "out_status is NULL"};
    awaited_answer answer;
    if (expected<> result = submit(server, request, {&awaited_answer::set, &answer}); result.failed())
      return result;
    std::unique_lock<std::mutex> lock(answer.mutex);
    wait_on(answer.changed, lock, [&] { return answer.is_there; });
    *out_status = answer.status;
    if (out_result_bytes != nullptr)
      *out_result_bytes = answer.bytes;
    return {};
  });
}

cudaq_status_t cudaq_qec_decoding_server_reload(cudaq_qec_decoding_server_t *server, const char *config,
                                                uint64_t timeout_ns) {
  return guarded(__func__, [&]() -> expected<> {
    if (expected<> result = check_server(server, config, "config"); result.failed())
      return result;
    return status_of(server->host.reload(config, server->folder, timeout_ns, [&] {
      return server->host.server().is_closed(); // a shot that has begun cannot end any more
    }));
  });
}

cudaq_status_t cudaq_qec_decoding_server_go_back(cudaq_qec_decoding_server_t *server, cudaq_qec_earlier_model_t to,
                                                 uint64_t timeout_ns) {
  return guarded(__func__, [&]() -> expected<> {
    if (expected<> result = check_server(server, server, "server"); result.failed())
      return result;
    if (to != CUDAQ_QEC_MODEL_CONFIGURED && to != CUDAQ_QEC_MODEL_BEFORE_SWAP)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "to is %d, accepted: a value of cudaq_qec_earlier_model_t",
                         static_cast<int>(to));
    return status_of(server->host.go_back(timeout_ns, to == CUDAQ_QEC_MODEL_CONFIGURED ? earlier_model::configured
                                                                                       : earlier_model::before_swap));
  });
}

cudaq_status_t cudaq_qec_decoding_server_drain(cudaq_qec_decoding_server_t *server, uint64_t read_ns,
                                               uint64_t timeout_ns) {
  return guarded(__func__, [&]() -> expected<> {
    if (expected<> result = check_server(server, server, "server"); result.failed())
      return result;
    if (!server->host.drain(deadline_after(read_ns), deadline_after(timeout_ns)))
      return {CUDAQ_ERR_TIMEOUT, server->host.unended_text()};
    return {};
  });
}

cudaq_status_t cudaq_qec_decoding_server_get_counts(const cudaq_qec_decoding_server_t *server, uint64_t decoder_id,
                                                    cudaq_qec_decoding_server_counts_t *out_counts) {
  return guarded(__func__, [&]() -> expected<> {
    if (expected<> result = check_server(server, out_counts, "out_counts"); result.failed())
      return result;
    cudaq_qec_decoding_server_counts_t counts{};
    if (out_counts->struct_size != sizeof(counts))
      return make_reason(CUDAQ_ERR_INVALID_ARG, "struct_size is %u, accepted: %zu", out_counts->struct_size,
                         sizeof(counts));
    expected<const served_decoder *> decoder = decoder_of(server, decoder_id);
    if (decoder.failed())
      return decoder;
    counts.struct_size = sizeof(counts);
    counts.num_decoders = static_cast<std::uint32_t>(server->host.server().decoders().size());
    counts.reloads = server->host.reloads();
    counts.strays = server->host.server().strays();
    const decoder_counts of_decoder = (*decoder)->counts();
    counts.requests = of_decoder.requests;
    counts.waiting = (*decoder)->waiting();
    counts.shots = of_decoder.shots;
    counts.failed_decodes = (*decoder)->failures().count;
    counts.repeated = of_decoder.repeated;
    counts.too_old = of_decoder.too_old;
    counts.exchanges = of_decoder.exchanges;
    std::ranges::copy(of_decoder.by_status, counts.answers);
    *out_counts = counts;
    return {};
  });
}

cudaq_status_t cudaq_qec_decoding_server_get_stage_times(const cudaq_qec_decoding_server_t *server, uint64_t decoder_id,
                                                         cudaq_qec_request_stage_t stage,
                                                         cudaq_handler_times_t *out_times) {
  return guarded(__func__, [&]() -> expected<> {
    if (expected<> result = check_server(server, out_times, "out_times"); result.failed())
      return result;
    if (out_times->struct_size != sizeof(cudaq_handler_times_t))
      return make_reason(CUDAQ_ERR_INVALID_ARG, "struct_size is %u, accepted: %zu", out_times->struct_size,
                         sizeof(cudaq_handler_times_t));
    if (stage < CUDAQ_QEC_STAGE_ACCEPTED || stage > CUDAQ_QEC_STAGE_WHOLE)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "stage is %d, accepted: a value of cudaq_qec_request_stage_t",
                         static_cast<int>(stage));
    expected<const served_decoder *> decoder = decoder_of(server, decoder_id);
    if (decoder.failed())
      return decoder;
    out_times->reserved = 0;
    write_histogram((*decoder)->times().read(static_cast<request_stage>(stage)), *out_times);
    return {};
  });
}

cudaq_status_t cudaq_qec_decoding_server_get_detector_rates(const cudaq_qec_decoding_server_t *server,
                                                            uint64_t decoder_id, cudaq_qec_detector_rate_t *out_rates,
                                                            uint64_t room, cudaq_qec_detector_rates_t *out_summary) {
  return guarded(__func__, [&]() -> expected<> {
    if (expected<> result = check_server(server, out_summary, "out_summary"); result.failed())
      return result;
    if (out_rates == nullptr && room != 0)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "out_rates is NULL, and room is %" PRIu64, room);
    if (out_summary->struct_size != sizeof(*out_summary))
      return make_reason(CUDAQ_ERR_INVALID_ARG, "struct_size is %u, accepted: %zu", out_summary->struct_size,
                         sizeof(*out_summary));
    expected<const served_decoder *> decoder = decoder_of(server, decoder_id);
    if (decoder.failed())
      return decoder;
    const auto identity = (*decoder)->identity(); // keeps the counts while they are read
    if (identity->rates == nullptr)
      return make_reason(CUDAQ_ERR_UNSUPPORTED,
                         "decoder %" PRIu64
                         " counts no detection events: its detector_rates is 0, or its plug-in leaves detectors out",
                         decoder_id);
    const detector_reading reading = identity->rates->read();
    const auto &model = identity->rates->model().all;
    for (std::size_t d = 0; d < std::min<std::uint64_t>(room, model.size()); ++d)
      out_rates[d] = {
          reading.detectors[d].rate, model[d].rate, reading.detectors[d].sigma, model[d].x, model[d].y, model[d].time};
    *out_summary = {sizeof(*out_summary), 0, model.size(), reading.shots, certain_differences(reading)};
    return {};
  });
}

void cudaq_qec_decoding_server_destroy(cudaq_qec_decoding_server_t *server) {
  const cancellation_disabled during_the_call;
  if (server != nullptr && server->mark.is_of_this_process())
    delete server;
}

const char *cudaq_qec_decoding_server_error(void) { return last_error_text(); }

} // extern "C"

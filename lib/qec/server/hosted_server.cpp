// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/hosted_server.h"

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"
#include "lib/base/callback.h"
#include "lib/base/error_text.h"
#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/decoding/number_of.h"
#include "lib/qec/server/slot_size.h"

#include <algorithm>
#include <cinttypes>
#include <memory>
#include <utility>

namespace cudaq::qec::realtime {

namespace rt = cudaq::realtime::detail;
using cudaq::realtime::detail::make_reason;

namespace {

/// The slot in the job of a request that came by submit; its generation is the address of an answer_function.
constexpr std::uint32_t kNoSlot = UINT32_MAX;

std::uint64_t shot_bits_of(const std::vector<decoder_setup> &setups) {
  std::uint64_t bits = 0;
  for (const decoder_setup &setup : setups)
    bits = std::max(bits, bits_with_readout(std::max(setup.unit->bits_per_shot(), setup.unit->num_detectors()),
                                            setup.unit->readout()));
  return bits;
}

std::uint32_t slot_bytes_of(const std::vector<decoder_setup> &setups) {
  std::uint64_t bits = shot_bits_of(setups);
  for (const decoder_setup &setup : setups)
    bits = std::max(bits, 8 * setup.unit->answer_bytes(setup.unit->num_observables()));
  return usual_slot_size(bits);
}

/// Of the longest request and its answer, without their frames.
std::uint64_t exchange_bytes_of(const std::vector<decoder_setup> &setups) {
  std::uint64_t bytes = 0;
  for (const decoder_setup &setup : setups)
    bytes = std::max(bytes, kEnqueueReadoutHeadBytes + setup.unit->max_request_bytes() + kCommittedHeadBytes +
                                setup.unit->answer_bytes(setup.unit->num_observables()));
  return bytes;
}

/// transport_slots::next_slot of a dispatcher.
std::uint32_t next_slot_of(void *dispatcher) {
  cudaq_dispatcher_stats_t stats{};
  stats.struct_size = sizeof(stats);
  return cudaq_dispatcher_get_stats(static_cast<cudaq_dispatcher_t *>(dispatcher), &stats) == CUDAQ_OK ? stats.cursor
                                                                                                       : UINT32_MAX;
}

void deliver(const hosted_server::answer_function &to, const server_answer &answer) noexcept {
  cudaq::realtime::detail::must_not_throw([&] { to.answered(to.user, answer.status, answer.bytes); },
                                          "a decoding server", "answered");
}

} // namespace

expected<loaded_config> load_config(std::string_view yaml, const std::string &folder, const config_change &change) {
  expected<server_config> config = read_server_config(yaml);
  if (config.failed())
    return config.reason();
  if (!config->record.file.empty())
    config->record.file = path_in(folder, config->record.file);
  if (change)
    change(*config);
  expected<std::vector<decoder_setup>> setups = build_decoders(*config, folder);
  if (setups.failed())
    return setups.reason();
  return loaded_config{std::move(*config), std::move(*setups), folder};
}

hosted_server::hosted_server(loaded_config loaded)
    : config_(std::move(loaded.config)), folder_(std::move(loaded.folder)), slot_bytes_(slot_bytes_of(loaded.setups)),
      shot_request_bytes_(enqueue_bytes(shot_bits_of(loaded.setups))),
      exchange_bytes_(exchange_bytes_of(loaded.setups)), server_(std::move(loaded.setups)) {}

expected<> hosted_server::check_slots(std::uint32_t slot_bytes) const {
  for (const auto &decoder : server_.decoders()) {
    const std::uint64_t bytes = decoder->answer_bytes() + (decoder->is_stream() ? kCommittedHeadBytes : 0);
    if (bytes + CUDAQ_RPC_HEADER_SIZE > slot_bytes)
      return make_reason(CUDAQ_ERR_INVALID_ARG,
                         "an answer of decoder %" PRIu64 " has %" PRIu64 " bytes and a header of %u, a slot of the "
                         "transport %" PRIu32,
                         decoder->limits().id, bytes, CUDAQ_RPC_HEADER_SIZE, slot_bytes);
  }
  return {};
}

expected<> hosted_server::attach(cudaq_dispatcher_t *dispatcher, const transport_slots &slots) {
  if (dispatcher_ != nullptr)
    return make_reason(CUDAQ_ERR_STATE, "a dispatcher is attached already, and a server has one");
  for (const std::uint32_t id :
       {kEnqueueFunctionId, kEnqueueReadoutFunctionId, kGetCorrectionsFunctionId, kResetFunctionId, kOneShotFunctionId,
        kOneShotReadoutFunctionId, kDescribeFunctionId, kBeginTailFunctionId, kGetCommittedFunctionId, kNameFunctionId})
    if (const cudaq_status_t status = cudaq_dispatcher_set_host_handler_v2(dispatcher, id, &handle, this, nullptr);
        status != CUDAQ_OK)
      return {status, cudaq_last_error_message()};
  transport_slots known = slots;
  if (slots.in_ring_order) {
    known.next_slot = &next_slot_of;
    known.user = dispatcher;
  }
  server_.limit_waits(known);
  dispatcher_ = dispatcher;
  return {};
}

expected<> hosted_server::record() {
  const record_config &wanted = config_.record;
  return wanted.file.empty() ? expected<>{} : server_.record(wanted.file, {wanted.requests, exchange_bytes_});
}

expected<> hosted_server::start(cudaq_wait_policy_t wait, std::uint32_t max_threads) {
  expected<> result = server_.start({&answer, this}, wait, max_threads, config_.realtime.pool());
  return result.failed() ? result : learning_.start(config_, folder_);
}

std::int32_t hosted_server::handle(cudaq_host_call_t *call, void *self) noexcept {
  server_answer now;
  auto &here = *static_cast<hosted_server *>(self);
  here.server_.arrive(call->job.slot);
  if (!here.server_.submit(call->function_id, {static_cast<const std::uint8_t *>(call->payload), call->payload_len},
                           {static_cast<std::uint8_t *>(call->result), call->max_result_len}, call->job, now,
                           call->ptp_timestamp))
    return CUDAQ_HOST_CALL_DEFERRED;
  if (now.status == CUDAQ_RPC_ERR_BUSY) { // a status of the library, which only a completion may have
    answer(self, call->job, now);
    return CUDAQ_HOST_CALL_DEFERRED;
  }
  call->result_len = now.bytes;
  return now.status;
}

void hosted_server::answer(void *self, const cudaq_host_job_t &job, const server_answer &answer) noexcept {
  if (job.slot != kNoSlot) {
    // Refused only after a stop whose grace period ended: then the library has answered.
    (void)cudaq_host_complete_deferred(static_cast<hosted_server *>(self)->dispatcher_, &job, answer.status,
                                       answer.bytes);
    return;
  }
  const std::unique_ptr<answer_function> to(reinterpret_cast<answer_function *>(job.generation));
  deliver(*to, answer);
}

void hosted_server::submit(std::uint32_t function_id, std::span<const std::uint8_t> payload,
                           std::span<std::uint8_t> result, std::uint32_t request_id, std::uint64_t timestamp,
                           const answer_function &answer) {
  const running_calls::one call(submits_);
  auto kept = std::make_unique<answer_function>(answer);
  server_answer now;
  if (server_.submit(function_id, payload, result, {reinterpret_cast<std::uint64_t>(kept.get()), kNoSlot, request_id},
                     now, timestamp))
    deliver(answer, now);
  else
    (void)kept.release(); // the thread that answers frees it, perhaps already
}

bool hosted_server::drain(rt::steady_clock::time_point read_deadline, rt::steady_clock::time_point deadline) {
  return server_.drain(read_deadline, deadline) &&
         rt::wait_until(deadline, [this] { return submits_.none_since(submits_.ended()); });
}

reload_result hosted_server::reload(std::string_view yaml, const std::string &folder, std::uint64_t limit_ns,
                                    const std::function<bool()> &give_up, const config_change &change) {
  server_.free_replaced(); // there may be no room for a third model
  expected<loaded_config> loaded = load_config(yaml, folder, change);
  if (loaded.failed())
    return {reload_outcome::rejected, loaded.text(), loaded.status()};
  if (loaded->config.transport != config_.transport || loaded->config.transport_args != config_.transport_args)
    return {reload_outcome::rejected, "transport: it is fixed; start the server again to change it"};
  if (loaded->config.realtime != config_.realtime)
    return {reload_outcome::rejected, "realtime: it is fixed; start the server again to change it"};
  if (loaded->config.record != config_.record)
    return {reload_outcome::rejected, "record: it is fixed; start the server again to change it"};
  learning_.stop(); // a swap would make the reload busy
  reload_result result =
      server_.reload(std::move(loaded->setups), cudaq::realtime::detail::deadline_after(limit_ns), give_up);
  if (result.outcome != reload_outcome::applied) {
    (void)learning_.resume(); // without a thread it serves on, and does not learn
    return result;
  }
  reloads_.add();
  if (const expected<> learns = learning_.start(loaded->config, folder); learns.failed())
    result.reason = "applied, but it does not learn: " + learns.text();
  return result;
}

std::string hosted_server::unended_text() const {
  std::string ids;
  std::uint64_t unanswered = 0;
  for (const auto &decoder : server_.decoders())
    if (!decoder->idle() || decoder->is_serving()) {
      ids += (ids.empty() ? "" : ", ") + std::to_string(decoder->limits().id);
      unanswered += decoder->counts().unanswered();
    }
  if (ids.empty() && !submits_.none_since(submits_.ended()))
    return "a function that takes answers did not end, inside a call of submit";
  return (ids.empty() ? "a decoder" : "decoder " + ids) + " did not end; " + number_of(unanswered, "request") +
         (unanswered == 1 ? " has" : " have") + " no answer";
}

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
#include "tools/services/decode_service.h"

#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoding/event_bits.h"
#include "tools/common/clock.h"
#include "tools/common/report.h"

namespace cudaq::realtime::tools {

decode_service::decode_service(const std::string &decoder_name, const qec::shot_set &shots, std::uint32_t instances) {
  const qec::decoder_model model(shots.dem_text);
  for (std::uint32_t i = 0; i < instances; ++i) {
    qec::chosen_decoder made = qec::choose_decoder(decoder_name, model);
    if (!made)
      refuse(made.machine_lacks,
             fmt::format("--decoder {}: no decoder for {}: {}", decoder_name, shots.name, made.error));
    if (i == 0)
      choice_ = made.auto_reason;
    entry &e = entries_.emplace_back();
    e.events.resize(static_cast<std::size_t>(made.instance->num_detectors()));
    e.decoder = std::move(made.instance);
  }
  if (num_detectors() != shots.num_detectors || observable_bytes() != shots.observable_bytes())
    throw usage_error(fmt::format("{}: the model has {} detectors and {} observables, the shots have {} and {}",
                                  shots.name, num_detectors(), entries_.front().decoder->num_observables(),
                                  shots.num_detectors, shots.num_observables));
}

decode_service::entry *decode_service::borrow() noexcept {
  // Each thread first tries the decoder that it used last, whose memory is in its cache.
  thread_local std::size_t hint = 0;
  for (std::size_t tried = 0; tried < entries_.size(); ++tried) {
    const std::size_t at = (hint + tried) % entries_.size();
    if (!entries_[at].busy.exchange(true, std::memory_order_acquire)) {
      hint = at;
      return &entries_[at];
    }
  }
  return nullptr;
}

qec::decode_status decode_service::decode(std::span<const std::uint8_t> packed, std::span<std::uint8_t> observables,
                                          std::string *fault, bool *is_late, qec::shot_probabilities known) noexcept {
  entry *const e = borrow();
  if (e == nullptr) // more threads than instances: a bug of this program
    return qec::decode_status::internal_error;
  const qec::unpack_result unpacked = qec::unpack_events(packed, num_detectors(), e->events);
  qec::decode_status status = unpacked.status;
  if (status == qec::decode_status::ok)
    status = e->decoder->decode(std::span<const std::uint64_t>(e->events).first(unpacked.count), observables, known);
  if (fault != nullptr && status == qec::decode_status::internal_error)
    *fault = e->decoder->fault();
  if (is_late != nullptr)
    *is_late = unpacked.status == qec::decode_status::ok && e->decoder->is_late();
  e->busy.store(false, std::memory_order_release);
  return status;
}

void decode_service::record_spans(std::uint32_t slots) {
  spans_.assign(slots, {});
  ++recording_;
  threads_.store(0);
}

std::uint32_t decode_service::number_of_this_thread() noexcept {
  thread_local std::uint32_t recording = 0, number = 0;
  if (recording != recording_) {
    recording = recording_;
    number = threads_.fetch_add(1, std::memory_order_relaxed);
  }
  return number;
}

std::int32_t decode_service::handle(cudaq_host_call_t *call, void *self) noexcept {
  auto &service = *static_cast<decode_service *>(self);
  const std::size_t bytes = service.observable_bytes();
  if (call->max_result_len < bytes)
    return static_cast<std::int32_t>(qec::decode_status::buffer_too_small);
  const std::uint64_t begin = service.spans_.empty() ? 0 : now_ns();
  bool is_late = false;
  qec::decode_status status = service.decode({static_cast<const std::uint8_t *>(call->payload), call->payload_len},
                                             {static_cast<std::uint8_t *>(call->result), bytes}, nullptr, &is_late);
  if (is_late && status == qec::decode_status::ok) // an answer after its deadline says so
    status = qec::decode_status::deadline;
  if (begin != 0)
    service.spans_[call->job.slot] = {begin, now_ns(), service.number_of_this_thread()};
  call->result_len = status == qec::decode_status::ok ? static_cast<std::uint32_t>(bytes) : 0;
  return static_cast<std::int32_t>(status);
}

cudaq_handler_schema_t decode_service::schema() const noexcept {
  cudaq_handler_schema_t s{};
  s.num_args = 1;
  s.args[0] = make_type_desc(TYPE_BIT_PACKED, static_cast<std::uint32_t>(num_detectors()));
  s.num_results = 1;
  s.results[0] =
      make_type_desc(TYPE_BIT_PACKED, static_cast<std::uint32_t>(entries_.front().decoder->num_observables()));
  return s;
}

} // namespace cudaq::realtime::tools

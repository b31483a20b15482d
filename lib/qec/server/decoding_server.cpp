// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/decoding_server.h"

#include "lib/qec/server/decoder/probes.h"

#include <algorithm>
#include <sys/random.h>
#include <thread>
#include <utility>

namespace cudaq::qec::realtime {

namespace rt = cudaq::realtime::detail;

namespace {

/// So that on a small machine, too, a few slow decoders do not delay the others.
constexpr std::uint32_t kFewestUsualThreads = 8;

/// At the end, after the last correction was read: for requests that are sent again.
constexpr std::chrono::milliseconds kLastAnswerTime{100};

std::uint64_t random_boot_id() noexcept {
  std::uint64_t id = 0;
  if (getrandom(&id, sizeof id, GRND_NONBLOCK) != sizeof id) // early in the boot of the machine
    id = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  return id | 1;
}

server_answer give_name(const served_decoder &decoder, std::span<std::uint8_t> result) {
  const std::shared_ptr<const decoder_identity> known = decoder.identity();
  if (known->name.size() > result.size())
    return refuse(wire_function::name, server_status::bad_request); // the slot is too small for the answer
  std::ranges::copy(known->name, result.begin());
  return {0, static_cast<std::uint32_t>(known->name.size())};
}

} // namespace

decoding_server::decoding_server(std::vector<decoder_setup> setups) : pool_(setups.size()), boot_id_(random_boot_id()) {
  for (decoder_setup &setup : setups)
    decoders_.push_back(std::make_unique<served_decoder>(setup.limits, std::move(setup.unit), ticks_));
  for (const auto &decoder : decoders_)
    by_id_.push_back(decoder.get());
  std::sort(by_id_.begin(), by_id_.end(),
            [](const served_decoder *a, const served_decoder *b) { return a->limits().id < b->limits().id; });
}

decoding_server::~decoding_server() {
  stop(rt::steady_clock::time_point::max());
  decoders_.clear(); // the workers of a stream use the pool
}

std::uint32_t decoding_server::threads_for(std::uint32_t max_threads) const noexcept {
  const auto queued = std::count_if(decoders_.begin(), decoders_.end(),
                                    [](const auto &decoder) { return decoder->limits().queue_length != 0; });
  const std::uint32_t usual = std::max(std::thread::hardware_concurrency(), kFewestUsualThreads);
  return std::min(static_cast<std::uint32_t>(queued), max_threads != 0 ? max_threads : usual);
}

void decoding_server::limit_waits(const transport_slots &slots) {
  slots_.limit(slots, static_cast<std::size_t>(std::ranges::count_if(
                          decoders_, [](const auto &decoder) { return decoder->holds_slots(); })));
}

expected<> decoding_server::record(const std::string &path, const request_recorder::sizes &size) {
  expected<std::unique_ptr<request_recorder>> made = request_recorder::create(path, size, boot_id_, ticks_);
  if (made.ok())
    recorder_ = std::move(*made);
  return made;
}

expected<> decoding_server::start(const answer_receiver &receiver, cudaq_wait_policy_t wait, std::uint32_t max_threads,
                                  const thread_places &places) {
  for (const auto &decoder : decoders_)
    decoder->connect(receiver, pool_, slots_, recorder_.get());
  expected<> result = pool_.start(
      "qec-decode-", threads_for(max_threads), wait, [this] { return idle(); }, places);
  if (result.failed())
    stop(rt::steady_clock::time_point::max());
  return result;
}

void decoding_server::begin_end() noexcept {
  if (phase_.load() == serves)
    phase_.store(ends);
  for (const auto &decoder : decoders_)
    decoder->end_waits();
}

bool decoding_server::has_unfinished() const noexcept {
  return std::any_of(decoders_.begin(), decoders_.end(), [](const auto &decoder) { return decoder->is_unfinished(); });
}

void decoding_server::close() noexcept {
  begin_end();
  phase_.store(closed);
}

bool decoding_server::idle() const noexcept {
  // In this order: if the two are equal, no submit has run meanwhile, and no request has come to the decoders.
  const std::uint64_t ended = submits_.ended();
  return std::all_of(decoders_.begin(), decoders_.end(), [](const auto &decoder) { return decoder->idle(); }) &&
         submits_.none_since(ended);
}

bool decoding_server::drain(rt::steady_clock::time_point read_deadline, rt::steady_clock::time_point deadline) {
  begin_end();
  auto quiet_since = rt::steady_clock::now();
  rt::wait_until(std::min(read_deadline, deadline), [&] {
    const auto now = rt::steady_clock::now();
    if (!idle() || has_unfinished()) // in this order: a request that is served may begin a shot
      quiet_since = now;
    return now - quiet_since >= kLastAnswerTime;
  });
  close();
  return rt::wait_until(deadline, [this] { return idle(); });
}

bool decoding_server::stop(rt::steady_clock::time_point deadline) {
  close();
  for (const auto &decoder : decoders_)
    decoder->close();
  return pool_.stop(deadline);
}

served_decoder *decoding_server::find(const read_result &read) const noexcept {
  const wire_function function = read.request.function;
  if ((function == wire_function::one_shot && !read.request.names_kind) ||
      ((function == wire_function::describe || function == wire_function::name) && read.status == server_status::ok &&
       !read.knows_decoder))
    return decoders_.front().get();
  if (!read.knows_decoder)
    return nullptr;
  const std::uint64_t id = read.request.decoder_id;
  const auto found =
      std::lower_bound(by_id_.begin(), by_id_.end(), id,
                       [](const served_decoder *d, std::uint64_t wanted) { return d->limits().id < wanted; });
  return found != by_id_.end() && (*found)->limits().id == id ? *found : nullptr;
}

server_answer decoding_server::describe(const wire_request &request, const served_decoder &decoder,
                                        std::span<std::uint8_t> result) const noexcept {
  const std::size_t bytes = request.with_gaps      ? kGapsDescriptionBytes
                            : request.with_readout ? kReadoutDescriptionBytes
                            : request.with_stream  ? kStreamDescriptionBytes
                            : request.with_server  ? kDescriptionBytes
                                                   : kModelFactsBytes;
  if (result.size() < bytes) // the slot is too small for the answer
    return refuse(request.function, server_status::bad_request);
  write_model_facts(decoder.facts(), result);
  if (request.with_server)
    write_server_facts({boot_id_, phase_.load() != serves}, result);
  if (request.with_stream)
    write_stream_parts(decoder.parts(), result);
  if (request.with_readout)
    write_readout_facts(decoder.readout(), result);
  if (request.with_gaps)
    write_gap_bytes(decoder.gap_bytes(), result);
  return {0, static_cast<std::uint32_t>(bytes)};
}

bool decoding_server::submit(std::uint32_t function_id, std::span<const std::uint8_t> payload,
                             std::span<std::uint8_t> result, const cudaq_host_job_t &job, server_answer &now,
                             std::uint64_t timestamp) {
  const running_calls::one call(submits_);
  request_moments moments{.arrived = ticks_.about_now()};
  CUDAQ_QEC_PROBE(arrived, job.request_id, job.slot);
  if (recorder_ == nullptr)
    return answer_or_queue(function_id, payload, result, job, now, timestamp, moments);
  moments.record = recorder_->add_request(function_id, payload, job.request_id, timestamp, moments.arrived);
  if (!answer_or_queue(function_id, payload, result, job, now, timestamp, moments))
    return false;
  if (recorder_->add_answer(moments.record, now.status, result.first(now.bytes)))
    recorder_->end(moments, moments.decoded != 0 ? moments.decoded : ticks_.about_now());
  return true;
}

bool decoding_server::answer_or_queue(std::uint32_t function_id, std::span<const std::uint8_t> payload,
                                      std::span<std::uint8_t> result, const cudaq_host_job_t &job, server_answer &now,
                                      std::uint64_t timestamp, request_moments &moments) {
  read_result read = read_request(function_id, payload);
  served_decoder *const decoder = find(read);
  if (decoder != nullptr && read.request.function == wire_function::describe) {
    now = read.status == server_status::ok ? describe(read.request, *decoder, result)
                                           : refuse(read.request.function, read.status);
    return true;
  }
  if (decoder != nullptr && read.request.function == wire_function::name) {
    now = give_name(*decoder, result);
    return true;
  }
  if (decoder != nullptr) {
    const std::uint32_t phase = phase_.load();
    read.request.request_id = job.request_id;
    read.request.timestamp = timestamp;
    read.request.while_ending = phase == ends;
    if (phase != closed)
      return decoder->submit(read, result, job, now, moments);
    now = decoder->answer_at_end(read);
    return true;
  }
  strays_.add();
  now = refuse(read.request.function, read.knows_decoder ? server_status::invalid_decoder : read.status);
  return true;
}

expected<> decoding_server::check_fixed(const std::vector<decoder_setup> &setups) const {
  if (setups.size() != decoders_.size())
    return reason("it has " + std::to_string(setups.size()) + " decoders, the running one has " +
                  std::to_string(decoders_.size()));
  for (std::size_t i = 0; i < setups.size(); ++i) {
    const decoder_limits &now = decoders_[i]->limits(), &wanted = setups[i].limits;
    const std::string which = (setups[i].place.empty() ? "decoders[" + std::to_string(i) + "]" : setups[i].place) +
                              " (id " + std::to_string(wanted.id) + "): ";
    if (wanted.id != now.id)
      return reason(which + "the running server has id " + std::to_string(now.id) +
                    " in this place; ids and their order are fixed");
    if (wanted != now)
      return reason(which + "counter, queue_length and age_limit_us are fixed; start the server again to change them");
    if (!decoders_[i]->same_shape(*setups[i].unit))
      return reason(which + "the new model " + setups[i].unit->shape_text() + ", the running one " +
                    decoders_[i]->shape_text() + "; these are fixed");
  }
  return {};
}

bool decoding_server::offers_are_accepted() const {
  return std::all_of(decoders_.begin(), decoders_.end(),
                     [](const auto &decoder) { return decoder->is_offer_accepted(); });
}

void decoding_server::discard_previous() {
  for (const auto &decoder : decoders_)
    decoder->discard_previous();
}

void decoding_server::free_replaced() {
  const std::unique_lock<std::mutex> one(reloading_, std::try_to_lock);
  if (one.owns_lock() && offers_are_accepted())
    discard_previous();
}

reload_result decoding_server::reload(std::vector<decoder_setup> setups, rt::steady_clock::time_point deadline,
                                      const std::function<bool()> &give_up) {
  const std::unique_lock<std::mutex> one(reloading_, std::try_to_lock);
  if (!one.owns_lock())
    return {reload_outcome::busy, "another configuration is being applied"};
  if (!offers_are_accepted())
    return {reload_outcome::busy, "a decoder has not returned to the configuration before the last one yet"};
  if (expected<> result = check_fixed(setups); result.failed())
    return {reload_outcome::rejected, result.text()};
  std::vector<std::unique_ptr<decoding_unit>> units;
  for (decoder_setup &setup : setups)
    units.push_back(std::move(setup.unit));
  return offer_all(std::move(units), deadline, give_up);
}

reload_result decoding_server::exchange(std::vector<std::unique_ptr<decoding_unit>> units,
                                        rt::steady_clock::time_point deadline, const std::function<bool()> &give_up) {
  const std::unique_lock<std::mutex> one(reloading_, std::try_to_lock);
  if (!one.owns_lock() || !offers_are_accepted())
    return {reload_outcome::busy, "another configuration is being applied"};
  for (std::size_t i = 0; i < units.size(); ++i)
    if (units[i] != nullptr && !decoders_[i]->same_shape(*units[i]))
      return {reload_outcome::rejected, "the new model " + units[i]->shape_text() + ", the running one " +
                                            decoders_[i]->shape_text() + "; these are fixed"};
  return offer_all(std::move(units), deadline, give_up);
}

reload_result decoding_server::offer_all(std::vector<std::unique_ptr<decoding_unit>> units,
                                         rt::steady_clock::time_point deadline, const std::function<bool()> &give_up) {
  discard_previous(); // of an earlier reload that was taken back, or of an earlier stream
  bool given_up = false;
  // Made before the first offer: after it nothing allocates until all decoders have the same configuration.
  const std::function<bool()> is_over = [&] { return offers_are_accepted() || (given_up = give_up && give_up()); };
  std::vector<served_decoder *> offered;
  for (std::size_t i = 0; i < units.size(); ++i)
    if (units[i] != nullptr)
      offered.push_back(decoders_[i].get());
  auto decoder = offered.begin();
  for (std::unique_ptr<decoding_unit> &unit : units)
    if (unit != nullptr)
      (*decoder++)->offer(std::move(unit));
  rt::wait_until(deadline, is_over);
  if (offers_are_accepted()) {
    discard_previous();
    return {};
  }
  for (served_decoder *const one : offered)
    one->take_back();
  return {reload_outcome::busy, given_up ? "a decoder was inside a shot, and the server ends"
                                         : "a decoder was inside a shot until the deadline"};
}

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/player.h"

#include "cudaq/qec/decoding/decoder.h"
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "lib/qec/server/session/wire_requests.h"
#include "tools/emulate/play_loop.h"

#include <algorithm>
#include <bit>

namespace cudaq::realtime::tools {
namespace {

constexpr std::size_t kMaxNotes = 5;
constexpr std::uint32_t kTurnsPerLossCheck = 256; ///< between two checks for losses
constexpr int kMaxAnswers = 1024;                 ///< of one turn: a server that floods must not keep the player in it

void put(std::vector<std::uint8_t> &to, std::uint64_t number) {
  for (int byte = 0; byte < 8; ++byte)
    to.push_back(static_cast<std::uint8_t>(number >> (8 * byte)));
}

/// The bits of an answer. Of a decoder with the setting confidence=1 a gap of each observable is after them.
std::span<const std::uint8_t> without_gaps(std::span<const std::uint8_t> answer, std::uint64_t observables) {
  const std::uint64_t bytes = (observables + 7) / 8;
  return answer.size() == bytes + observables * sizeof(float) ? answer.first(static_cast<std::size_t>(bytes)) : answer;
}

} // namespace

std::string answer_status_text(bool server, std::int32_t status) {
  const std::int32_t of_server = server && status > 0 ? status : -status;
  if (of_server > 0 && of_server < static_cast<std::int32_t>(qec::kServerStatuses)) {
    const auto known = static_cast<qec::server_status>(of_server);
    const bool has_state = status > 0; // the request is of a stream or of a shot in parts
    const char *const meaning =
        known == qec::server_status::internal ? ": the decoder failed, or nothing explains the shot; the server logs it"
        : known == qec::server_status::not_converged ? ": the decoder found no solution within its limits"
        : known == qec::server_status::not_ready     ? ": the server ends, or no node is there"
        : has_state && known == qec::server_status::syndromes_dropped
            ? ": requests before it are missing, or another requester uses the decoder: give each its own"
        : has_state && known == qec::server_status::bad_request
            ? ": it does not fit those before it; if another requester uses the decoder, give each its own"
            : "";
    return std::string(qec::kServerStatusNames[static_cast<std::size_t>(of_server)]) + meaning;
  }
  return status > 0 && !server ? qec::decode_status_text(static_cast<qec::decode_status>(status))
                               : cudaq_rpc_status_string(status);
}

qec::decode_status decode_status_of(bool server, std::int32_t status) {
  const auto is = [&](qec::server_status of_server, qec::decode_status of_decode) {
    return status == (server ? static_cast<std::int32_t>(of_server) : static_cast<std::int32_t>(of_decode));
  };
  return is(qec::server_status::deadline, qec::decode_status::deadline) ? qec::decode_status::deadline
         : is(qec::server_status::not_converged, qec::decode_status::not_converged)
             ? qec::decode_status::not_converged
             : qec::decode_status::internal_error;
}

bool is_busy(bool server, std::int32_t status) {
  constexpr auto kServerBusy = static_cast<std::int32_t>(qec::server_status::busy);
  return status == CUDAQ_RPC_ERR_BUSY || status == (server ? kServerBusy : -kServerBusy);
}

std::size_t player::payload_bytes(const emulate_options &o, const qec::shot_set &shots,
                                  const recorded_readout *readout) {
  const std::size_t arrays = shots.detection_bytes() + (readout != nullptr ? readout->shot_bytes() : 0);
  const std::size_t head = readout != nullptr ? qec::kEnqueueReadoutHeadBytes : qec::kEnqueueHeadBytes;
  return o.protocol == "server" ? std::max(head + arrays, qec::kGetCorrectionsBytes) : arrays;
}

std::uint32_t player::streams(const emulate_options &o) {
  return o.protocol == "server" ? static_cast<std::uint32_t>(o.decoder_ids.size()) : o.window;
}

std::uint32_t player::id_window(const emulate_options &o) { return 4 * std::bit_ceil(streams(o)); }

std::vector<std::string> problems_of(const play_result &r, bool interrupted, std::uint64_t wanted) {
  problem_list problems;
  problems.none(r.lost, "requests without an answer");
  problems.none(r.bad_status - r.busy_given_up, "answers with an error status");
  problems.none(r.busy_given_up, "requests that were BUSY for the whole --timeout");
  problems.none(r.wrong_echo, "answers with a wrong timestamp");
  problems.none(r.mismatches, "corrections that are not the expected ones");
  if (r.stalled)
    problems.texts.push_back("no progress");
  else if (!interrupted && wanted != 0 && r.answered + r.undecided.total() + r.lost + r.bad_status < wanted)
    problems.texts.push_back("not all shots were played");
  return problems.texts;
}

player::player(const emulate_options &options, const shot_plan &plan, bool check, link &to,
               std::function<std::uint64_t()> clock)
    : options_(options), plan_(plan), check_(check), link_(to), clock_(std::move(clock)),
      timeout_ns_(static_cast<std::uint64_t>(options.timeout_s * 1e9)),
      gap_ns_(options.rate == 0 ? 0 : static_cast<std::uint64_t>(1e9 / options.rate)),
      // In a search a pause of the client, shorter than its bound, is no lack of the server's.
      allowed_late_ns_(options.search_rate ? std::max(gap_ns_, static_cast<std::uint64_t>(options.search_p999_us * 1e3))
                                           : gap_ns_),
      duration_ns_(static_cast<std::uint64_t>(options.duration_s * 1e9)), server_(options.protocol == "server"),
      streams_(streams(options)), owners_(id_window(options), kFree),
      max_shots_(duration_ns_ != 0 ? UINT64_MAX : options.shots) {
  if (!server_)
    return;
  for (stream &s : streams_) // the decoders may have a state from before
    s.at = step::reset;
  open_ = static_cast<std::uint32_t>(streams_.size());
}

bool player::turn() {
  std::uint64_t now = clock_();
  if (begin_ns_ == 0)
    begin_ns_ = last_answer_ns_ = quiet_since_ns_ = now;
  if (duration_ns_ != 0 && now - begin_ns_ >= duration_ns_)
    stop_sending();
  bool worked = false;
  std::optional<link_answer> answer;
  for (int taken = 0; taken < kMaxAnswers && (answer = link_.receive()); ++taken) {
    now = clock_();
    on_answer(*answer, now);
    worked = true;
  }
  for (std::uint32_t n = 0; n < streams_.size(); ++n) {
    stream &s = streams_[n];
    if (s.at == step::idle && !begin_shot(s, now))
      continue;
    if (!s.waits && s.busy.is_over(now))
      worked = send(n, now) || worked;
  }
  if (++turns_ % kTurnsPerLossCheck == 0)
    check_losses(now);
  return worked;
}

/// False: no shot is due.
bool player::begin_shot(stream &s, std::uint64_t now) {
  const std::uint64_t due = gap_ns_ == 0 ? now : begin_ns_ + result_.shots * gap_ns_;
  if (begun_all() || now < due)
    return false;
  result_.late += gap_ns_ != 0 && now - due > allowed_late_ns_;
  s.due_ns = due;
  s.shot = plan_.shot_of(result_.shots++);
  s.at = !server_ ? step::decode : s.needs_reset ? step::reset : step::enqueue;
  s.waits = false;
  if (open_++ == 0 && !losing())
    quiet_since_ns_ = now;
  return true;
}

std::span<const std::uint8_t> player::payload_of(const stream &s, std::uint32_t number) {
  const qec::shot_set &shots = plan_.shots();
  const std::span<const std::uint8_t> events = shots.detection_row(s.shot);
  const recorded_readout *const readout = plan_.readout();
  if (!server_ && readout == nullptr)
    return events;
  buffer_.clear();
  const auto put_arrays = [&] {
    buffer_.insert(buffer_.end(), events.begin(), events.end());
    if (readout == nullptr)
      return;
    for (const auto row : {readout->soft_row(s.shot), readout->leakage_row(s.shot)})
      buffer_.insert(buffer_.end(), row.begin(), row.end());
  };
  if (!server_) {
    put_arrays();
    return buffer_;
  }
  put(buffer_, options_.decoder_ids[number]);
  if (s.at == step::enqueue) {
    put(buffer_, s.enqueued + 1); // not from 0: see the server's page about restarts
    if (readout == nullptr)
      put(buffer_, 0); // mapping id
    put(buffer_, shots.num_detectors);
    if (readout != nullptr) {
      put(buffer_, readout->facts().measurements);
      put(buffer_, readout->facts().flags);
      put(buffer_, static_cast<std::uint64_t>(readout->kind())); // and a 0 after it
    }
    put_arrays();
  } else if (s.at == step::corrections) {
    put(buffer_, shots.num_observables);
    buffer_.push_back(1); // the next shot begins without corrections
  }
  return buffer_;
}

bool player::send(std::uint32_t number, std::uint64_t now) {
  stream &s = streams_[number];
  const std::uint32_t enqueue = plan_.readout() != nullptr ? qec::kEnqueueReadoutFunctionId : qec::kEnqueueFunctionId;
  const std::uint32_t function = s.at == step::decode    ? qec::kOneShotFunctionId
                                 : s.at == step::enqueue ? enqueue
                                 : s.at == step::reset   ? qec::kResetFunctionId
                                                         : qec::kGetCorrectionsFunctionId;
  std::uint32_t &owner = owners_[next_id_ % owners_.size()];
  if (owner != kFree || !link_.send(next_id_, function, payload_of(s, number), now))
    return false;
  owner = number;
  s.id = next_id_++;
  s.sent_ns = now;
  s.waits = true;
  s.request = result_.requests++;
  if (traced_request *const r = trace_ == nullptr ? nullptr : trace_->at(s.request)) {
    r->sent = now;
    r->accepted = clock_();
    r->slot = number;
  }
  return true;
}

void player::on_answer(const link_answer &answer, std::uint64_t now) {
  std::uint32_t &owner = owners_[answer.header.request_id % owners_.size()];
  if (owner == kFree || streams_[owner].id != answer.header.request_id)
    return; // given up before
  stream &s = streams_[owner];
  owner = kFree;
  last_answer_ns_ = now;
  s.waits = false;
  if (answer.header.ptp_timestamp != s.sent_ns) {
    ++result_.wrong_echo;
    note(s, "the answer echoes another timestamp than its request has");
  } else {
    result_.request_time.record(now - answer.header.ptp_timestamp);
    result_.timeline.record(now, now - answer.header.ptp_timestamp);
    if (traced_request *const r = trace_ == nullptr ? nullptr : trace_->at(s.request))
      r->seen = r->collected = now;
  }
  const std::int32_t status = answer.header.status;
  if (record_ != nullptr)
    record_->add({s.id - first_id_, s.sent_ns, now, status});
  if (is_busy(server_, status)) {
    ++result_.busy; // the same request is sent again
    refused_ = true;
    s.busy.refused(now);
    if (s.busy.lasts(now, timeout_ns_)) {
      ++result_.busy_given_up;
      ++busy_in_row_;
      on_error(s, status);
    }
    return;
  }
  s.busy.accepted();
  quiet_since_ns_ = now;
  lost_in_row_ = busy_in_row_ = 0;
  refused_ = false;
  if (status != 0) {
    on_error(s, status);
  } else if (s.at == step::enqueue) {
    ++s.enqueued;
    s.at = step::corrections;
  } else if (s.at == step::reset) {
    s.enqueued = 0;
    if (s.needs_reset)
      s.at = step::enqueue;
    else
      end_shot(s);
    s.needs_reset = false;
  } else {
    finish_shot(s, without_gaps(answer.result, plan_.shots().num_observables), now);
  }
}

/// The decoding server reports an error until the decoder is reset.
void player::on_error(stream &s, std::int32_t status) {
  s.busy.accepted();
  const qec::decode_status decoded = decode_status_of(server_, status);
  if (s.at == step::reset || !result_.undecided.add(decoded)) {
    ++result_.bad_status;
    note(s, fmt::format("status {}: {}", status, answer_status_text(server_, status)));
  } else if (check_ && !unanswered_shots::agree(decoded, plan_.expected_status(s.shot))) {
    ++result_.mismatches;
    ++result_.missing;
    note(s,
         fmt::format("no answer to shot {} of the set ({}), expected one", s.shot, qec::decode_status_text(decoded)));
  }
  reset_or_end_shot(s, is_busy(server_, status));
}

/// The decoder's state is not known. `unanswered`: the request was lost, or BUSY until the end.
void player::reset_or_end_shot(stream &s, bool unanswered) {
  if (server_ && s.at != step::reset) {
    s.at = step::reset;
    return;
  }
  s.needs_reset = server_ && unanswered;
  end_shot(s);
}

void player::end_shot(stream &s) {
  s.at = step::idle;
  --open_;
}

void player::finish_shot(stream &s, std::span<const std::uint8_t> correction, std::uint64_t now) {
  end_shot(s);
  ++result_.answered;
  result_.shot_time.record(now - s.due_ns);
  const qec::decode_status offline = plan_.expected_status(s.shot);
  if (check_ && !unanswered_shots::agree(qec::decode_status::ok, offline)) {
    ++result_.mismatches;
    note(s, fmt::format("a correction of shot {} of the set, expected none ({})", s.shot,
                        qec::decode_status_text(offline)));
  } else if (check_ && offline == qec::decode_status::ok &&
             !std::ranges::equal(correction, plan_.expected_row(s.shot))) {
    ++result_.mismatches;
    note(s, fmt::format("the correction of shot {} of the set is not the expected one", s.shot));
  }
  const qec::shot_set &shots = plan_.shots();
  result_.logical_errors += shots.has_observables() && !std::ranges::equal(correction, shots.observable_row(s.shot));
}

void player::check_losses(std::uint64_t now) {
  for (stream &s : streams_)
    if (s.waits && now > s.sent_ns + timeout_ns_) {
      link_.give_up(s.id);
      ++result_.lost;
      if (record_ != nullptr)
        record_->add({s.id - first_id_, s.sent_ns, 0, 0});
      note(s, "no answer within the timeout");
      owners_[s.id % owners_.size()] = kFree;
      ++lost_in_row_;
      s.waits = false;
      reset_or_end_shot(s, true);
    }
  check_stall(now); // lost requests are given up first: the others may have waited for the places of their ids
}

void player::check_stall(std::uint64_t now) {
  if (open_ != 0 && !link_.alive()) {
    result_.stalled = true;
    result_.notes.push_back(link_.end_text());
  } else if ((losing() || open_ != 0) && now > quiet_since_ns_ + 2 * timeout_ns_) {
    result_.stalled = true;
    result_.notes.emplace_back(lost_in_row_ != 0 ? "no answer at all within twice the timeout"
                               : refused_        ? "the server has answered nothing but BUSY for twice the timeout"
                                                 : "no slot has become free within twice the timeout");
  }
}

void player::interrupt() {
  for (stream &s : streams_) {
    if (s.waits || s.at == step::idle || s.at == step::corrections)
      continue;
    result_.shots -= s.at == step::reset && !s.needs_reset ? 0 : 1; // nothing of it was sent
    end_shot(s);
  }
  stop_sending();
}

play_result player::result() const {
  play_result r = result_;
  r.wall_ns = last_answer_ns_ - begin_ns_;
  return r;
}

void player::note(const stream &s, const std::string &what) {
  if (result_.notes.size() < kMaxNotes)
    result_.notes.push_back(fmt::format("request {}: {}", s.id, what));
}

} // namespace cudaq::realtime::tools

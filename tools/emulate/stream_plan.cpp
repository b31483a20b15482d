// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/stream_plan.h"

#include "lib/qec/server/stream_builder.h"
#include "tools/common/report.h"
#include "tools/emulate/server_query.h"
#include "tools/shots/stream_record.h"
#include "tools/shots/stream_sampler.h"

#include <algorithm>
#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

template <class Value>
Value value_or_throw(qec::expected<Value> result) {
  if (result.failed())
    throw usage_error(result.text());
  return std::move(*result);
}

void pack(std::span<const std::uint8_t> round, std::vector<std::uint8_t> &packed) {
  packed.assign((round.size() + 7) / 8, 0);
  for (std::size_t k = 0; k < round.size(); ++k)
    packed[k / 8] = static_cast<std::uint8_t>(packed[k / 8] | round[k] << k % 8);
}

} // namespace

stream_plan::stream_plan(const std::string &dem_text, const std::string &decoder, std::size_t workers,
                         std::uint64_t rounds, std::uint64_t seed, std::chrono::nanoseconds check_limit,
                         const readout_files &readout, const own_data &record)
    : seed_(seed), check_limit_(check_limit), kind_(readout.kind()) {
  qec::stream_options options{.decoder = has_limit() ? with_decode_limit(decoder) : decoder, .workers = workers};
  if (!readout.readout.empty())
    options.readout = read_readout_file(readout);
  source_ = std::make_unique<qec::stream_source>(value_or_throw(qec::read_stream(dem_text, options)));
  const qec::repeating_model &model = source_->model;
  if (has_limit())
    if (const std::uint64_t bytes = value_or_throw(qec::estimated_stream_bytes(*source_, 0));
        bytes > kServedDecoderBytes)
      throw usage_error(fmt::format("{}: it needs about {} bytes here, and a decoder that only the server names may "
                                    "take {}",
                                    decoder, bytes, kServedDecoderBytes));
  facts_ = value_or_throw(qec::stream_facts(*source_, options.readout));
  readout_ = qec::readout_facts_of(source_->readout.info());
  qec::stream_result made = qec::make_stream_decoder(*source_);
  if (!made)
    refuse(made.machine_lacks, made.error);
  reference_ = std::move(made.instance);
  if (record.in.given()) {
    rounds_ = std::make_unique<stream_record>(record, readout, model, source_->readout);
  } else {
    const std::uint64_t repetitions = repetitions_for(model, rounds);
    if (readout_.any())
      values_.emplace(source_->readout, kind_, repetitions, readout.leaked);
    rounds_ = std::make_unique<stream_sampler>(model, repetitions, values_ ? &*values_ : nullptr);
  }
  for (const auto *const part : {&model.head(), &model.body(), &model.tail()})
    for (const std::uint64_t size : *part)
      max_round_bits_ = std::max(max_round_bits_, size);
  // The windows do not depend on the bits: the first one ends after commit + buffer rounds, and makes commit final.
  std::uint64_t pushed = 0;
  const std::vector<std::uint8_t> zeros(max_round_bits_);
  while (qec::complete_rounds(*reference_) == 0) {
    const std::uint64_t size = model.first_detector(pushed + 1) - model.first_detector(pushed);
    const qec::decode_status status = push_round(std::span(zeros).first(static_cast<std::size_t>(size)));
    if (status != qec::decode_status::ok)
      throw usage_error(fmt::format("{}: {}", decoder, qec::decode_status_text(status, reference_->fault())));
    ++pushed;
  }
  commit_ = qec::complete_rounds(*reference_);
  buffer_ = pushed - commit_;
}

qec::readout_place stream_plan::values_with(std::uint64_t bits) const noexcept {
  if (!readout_.any())
    return {};
  const std::uint64_t head = source_->model.head_detectors(), body = source_->model.body_detectors();
  const qec::readout_place usual = source_->readout.total((bits - std::min(bits, head) + body - 1) / body);
  // A window needs more if an error of its last round is of a measurement of the next repetition.
  const qec::readout_place needed = qec::needed_values(*reference_, bits);
  return {std::max(usual.value, needed.value), std::max(usual.flag, needed.flag)};
}

std::uint64_t stream_plan::bytes_of(qec::readout_place values) const noexcept {
  return (static_cast<std::uint64_t>(values.value) * qec::bits_of(kind_) + 7) / 8 +
         (static_cast<std::uint64_t>(values.flag) + 3) / 4;
}

void stream_plan::append_values(qec::readout_place from, qec::readout_place to,
                                std::vector<std::uint8_t> &bytes) const {
  if (to.value != from.value)
    rounds_->append_soft(static_cast<std::uint64_t>(from.value), static_cast<std::uint64_t>(to.value), bytes);
  if (to.flag != from.flag)
    rounds_->append_flags(static_cast<std::uint64_t>(from.flag), static_cast<std::uint64_t>(to.flag), bytes);
}

qec::decode_status stream_plan::push_round(std::span<const std::uint8_t> bits) {
  pack(bits, packed_);
  const qec::readout_place from = pushed_values_;
  pushed_values_ = values_with(reference_->pushed_bits() + bits.size());
  soft_.clear();
  flags_.clear();
  append_values(from, {pushed_values_.value, from.flag}, soft_);
  append_values({from.value, from.flag}, {from.value, pushed_values_.flag}, flags_);
  return qec::push_when_free(*reference_, packed_, bits.size(),
                             {soft_, static_cast<std::uint64_t>(pushed_values_.value - from.value), kind_, flags_,
                              static_cast<std::uint64_t>(pushed_values_.flag - from.flag)});
}

experiment_rounds &stream_plan::begin(std::uint64_t k) {
  rounds_->begin(seed_, k);
  return *rounds_;
}

bool stream_plan::is_too_slow(std::chrono::steady_clock::time_point begun) const {
  if (!has_limit())
    return false;
  const qec::deadline_counts windows = reference_->statistics().deadlines;
  return windows.missed > windows.late || std::chrono::steady_clock::now() - begun > check_limit_;
}

frame_check stream_plan::check(std::uint64_t k, const stream_frames &frames,
                               std::optional<std::uint64_t> unsolved_after) {
  struct comparison {
    const stream_frames &frames;
    const std::size_t frame_bytes;
    frame_check found{};
    std::size_t next = 0;

    /// The own decoder has made `rounds` rounds final.
    void compare(std::uint64_t rounds, std::span<const std::uint8_t> observables) {
      for (; next < frames.committed.size() && frames.committed[next] <= rounds; ++next) {
        const auto frame = std::span(frames.bits).subspan(next * frame_bytes, frame_bytes);
        if (frames.committed[next] != rounds)
          ++found.other_windows;
        else
          found.wrong += std::ranges::equal(frame, observables.first(frame_bytes)) ? 0 : 1;
      }
    }
  } all{frames, frame_bytes()};
  static_cast<void>(begin(k));
  reference_->reset();
  pushed_values_ = {};
  qec::listen(*reference_, {.user = &all, .released = [](void *user, std::uint64_t rounds, auto observables) {
                              static_cast<comparison *>(user)->compare(rounds, observables);
                            }});
  all.compare(0, std::vector<std::uint8_t>(frame_bytes()));
  // Only the rounds of the windows that have frames: an experiment that ended early may be a small part of the plan.
  const std::uint64_t wanted = frames.committed.empty() ? 0 : frames.committed.back();
  const std::uint64_t played = unsolved_after.value_or(0);
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::uint8_t> tail;
  constexpr auto kNoDeadline = std::chrono::steady_clock::time_point::max();
  qec::decode_status status = qec::decode_status::ok;
  bool too_slow = false;
  for (std::uint64_t round = 0; round < rounds_before_tail() && status == qec::decode_status::ok && !too_slow &&
                                (round < played || qec::complete_rounds(*reference_) < wanted);
       ++round) {
    status = push_round(rounds_->next_round());
    too_slow = is_too_slow(begun);
  }
  const bool is_whole = status == qec::decode_status::ok && !too_slow &&
                        (played == rounds() || qec::complete_rounds(*reference_) < wanted);
  if (is_whole) {
    for (std::uint64_t round = rounds_before_tail(); round < rounds(); ++round) {
      const std::span<const std::uint8_t> bits = rounds_->next_round();
      tail.insert(tail.end(), bits.begin(), bits.end());
    }
    pack(tail, packed_);
    static_cast<void>(reference_->finish(packed_, tail.size()));
  }
  std::vector<std::uint8_t> last(frame_bytes());
  if (!too_slow) {
    const qec::stream_progress end = reference_->wait_committed(qec::complete_rounds(*reference_), kNoDeadline, last);
    status = status == qec::decode_status::ok ? end.status : status;
  }
  too_slow = too_slow || is_too_slow(begun);
  frame_check found{.too_slow = true};
  if (!too_slow) {
    found = all.found;
    found.has_solutions = status == qec::decode_status::ok;
    found.wrong += frames.committed.size() - all.next; // of rounds that the own decoder does not know
    found.logical_error = is_whole && knows_observables() && !std::ranges::equal(last, rounds_->observables());
  }
  reference_->reset(); // no worker uses `all` any more
  qec::listen(*reference_, {});
  return found;
}

} // namespace cudaq::realtime::tools

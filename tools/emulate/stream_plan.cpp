// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/stream_plan.h"

#include "lib/qec/decoders/stream_settings.h"
#include "lib/qec/server/stream_builder.h"
#include "tools/common/report.h"

#include <algorithm>

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

stream_plan::stream_plan(const std::string &dem_text, const std::string &decoder, std::uint64_t rounds,
                         std::uint64_t seed)
    : seed_(seed) {
  const qec::stream_options options = value_or_throw(qec::read_stream_name(decoder));
  facts_ = value_or_throw(qec::stream_facts(dem_text, options));
  model_ = std::make_unique<qec::repeating_model>(
      value_or_throw(qec::repeating_model::parse(dem_text, value_or_throw(qec::round_rule::parse(options.rounds)))));
  qec::stream_result made = qec::make_stream_decoder(dem_text, options);
  if (!made)
    throw usage_error(made.error);
  reference_ = std::move(made.instance);
  const std::uint64_t ends = model_->head().size() + model_->tail().size(), body = model_->body().size();
  const std::uint64_t repetitions = rounds <= ends ? 1 : (rounds - ends + body - 1) / body;
  sampler_ = std::make_unique<stream_sampler>(*model_, std::max<std::uint64_t>(repetitions, 1));
  for (const auto *const part : {&model_->head(), &model_->body(), &model_->tail()})
    for (const std::uint64_t size : *part)
      most_round_bits_ = std::max(most_round_bits_, size);
  // The windows do not depend on the bits: the first one ends after commit + buffer rounds, and makes commit final.
  std::uint64_t pushed = 0;
  const std::vector<std::uint8_t> zeros((most_round_bits_ + 7) / 8);
  while (reference_->committed_rounds() == 0) {
    const std::uint64_t size = model_->first_detector(pushed + 1) - model_->first_detector(pushed);
    if (const qec::decode_status status = reference_->push(zeros, size); status != qec::decode_status::ok)
      throw usage_error(fmt::format("{}: {}", decoder, qec::decode_status_text(status)));
    ++pushed;
  }
  commit_ = reference_->committed_rounds();
  buffer_ = pushed - commit_;
}

stream_sampler &stream_plan::begin(std::uint64_t k) {
  sampler_->begin(seed_, k);
  return *sampler_;
}

frame_check stream_plan::check(std::uint64_t k, const stream_frames &frames) {
  frame_check found;
  static_cast<void>(begin(k));
  reference_->reset();
  std::vector<std::uint8_t> packed, tail;
  std::size_t next = 0;
  const auto compare = [&] {
    const std::uint64_t final_rounds = reference_->committed_rounds();
    for (; next < frames.committed.size() && frames.committed[next] <= final_rounds; ++next) {
      const auto frame = std::span(frames.bits).subspan(next * frame_bytes(), frame_bytes());
      if (frames.committed[next] != final_rounds)
        ++found.other_windows;
      else
        found.wrong += std::ranges::equal(frame, reference_->observables().first(frame_bytes())) ? 0 : 1;
    }
  };
  compare();
  qec::decode_status status = qec::decode_status::ok;
  for (std::uint64_t round = 0; round < rounds_before_tail() && status == qec::decode_status::ok; ++round) {
    const std::span<const std::uint8_t> bits = sampler_->next_round();
    pack(bits, packed);
    status = reference_->push(packed, bits.size());
    compare();
  }
  for (std::uint64_t round = rounds_before_tail(); round < rounds(); ++round) {
    const std::span<const std::uint8_t> bits = sampler_->next_round();
    tail.insert(tail.end(), bits.begin(), bits.end());
  }
  pack(tail, packed);
  if (status == qec::decode_status::ok)
    status = reference_->finish(packed, tail.size());
  compare();
  found.wrong += frames.committed.size() - next; // of rounds that the own decoder does not know
  found.logical_error = !std::ranges::equal(reference_->observables().first(frame_bytes()), sampler_->observables());
  return found;
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/pipeline/pipeline_shots.h"

#include "lib/qec/decoders/decoder_factories.h"
#include "tools/common/clock.h"
#include "tools/common/report.h"
#include "tools/common/terminal.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <numeric>
#include <random>

namespace cudaq::realtime::tools {

pipeline_shots::pipeline_shots(qec::shot_set shots, std::string engine, std::string decoder, std::uint64_t seed)
    : shots_(std::move(shots)), engine_(std::move(engine)), decoder_(std::move(decoder)) {
  order_.resize(static_cast<std::size_t>(shots_.shots));
  std::iota(order_.begin(), order_.end(), 0u);
  if (seed != 0)
    std::shuffle(order_.begin(), order_.end(), std::mt19937_64(seed));
  if (engine_ == "auto") {
    engine_ = qec::kAutoPredecoder;
    choice_ = qec::kAutoPredecoderReason;
  }
  response_bytes_ = qec::decode_response_bytes(shots_.num_observables);
}

std::unique_ptr<qec::decoding_worker> pipeline_shots::make_worker(const std::string &engine, std::string *why,
                                                                  std::unique_ptr<qec::predecoder> given) const {
  const qec::decoder_model model(shots_.dem_text);
  auto first = given != nullptr ? qec::expected<std::unique_ptr<qec::predecoder>>(std::move(given))
                                : qec::make_predecoder(engine, model);
  qec::chosen_decoder second = qec::choose_decoder(decoder_, model);
  if (first.failed() || !second)
    refuse(first.ok() && second.machine_lacks,
           fmt::format("{}: {}", shots_.name, first.ok() ? second.error : first.text()));
  if (const auto allowed = qec::check_predecoder_before(engine, second.instance->name()); allowed.failed())
    throw usage_error(fmt::format("--predecoder {}: {}", engine, allowed.text()));
  if (second.instance->num_detectors() != shots_.num_detectors)
    throw usage_error(fmt::format("--decoder {}: it has {} detectors, the shots have {}", decoder_,
                                  second.instance->num_detectors(), shots_.num_detectors));
  if (why != nullptr)
    *why = second.auto_reason;
  return std::make_unique<qec::decoding_worker>(std::move(*first), std::move(second.instance));
}

void pipeline_shots::decode_offline(std::unique_ptr<qec::predecoder> first) {
  const auto with = make_worker(engine_, &decoder_choice_, std::move(first)), without = make_worker(false);
  decoder_name_ = with->stage().decoder_name();
  expected_.resize(response_bytes_ * order_.size());
  statuses_.resize(order_.size());
  std::vector<std::uint8_t> alone(response_bytes_);
  errors_.shots = shots_.has_observables() ? shots_.shots : 0;
  progress display({"offline decode", "shots", shots_.shots});
  for (std::uint32_t shot = 0; shot < shots_.shots; ++shot) {
    if (shot % kShotsPerProgress == 0)
      display.show(shot, now_ns());
    const auto row = shots_.detection_row(shot);
    const auto answer = std::span(expected_).subspan(shot * response_bytes_, response_bytes_);
    qec::decode_status status{}, status_alone{};
    const std::uint64_t begin = now_ns();
    with->decode(row, answer, status);
    const std::uint64_t middle = now_ns();
    without->decode(row, alone, status_alone);
    for (auto [worker, ended] : {std::pair(with.get(), &status), std::pair(without.get(), &status_alone)})
      if (*ended == qec::decode_status::ok && worker->stage().inner().is_late())
        *ended = qec::decode_status::deadline; // as the pipeline answers it
    matcher_ns_ += now_ns() - middle;
    offline_ns_ += middle - begin;
    const bool unanswered = unanswered_.add(status), alone_unanswered = unanswered_alone_.add(status_alone);
    const bool failed = status != qec::decode_status::ok && !unanswered;
    if (failed || (status_alone != qec::decode_status::ok && !alone_unanswered))
      throw usage_error(fmt::format("{}: shot {} cannot be decoded: {}", shots_.name, shot,
                                    failed ? qec::decode_status_text(status, with->stage().inner().fault())
                                           : qec::decode_status_text(status_alone, without->stage().inner().fault())));
    qec::predecoder_header header;
    std::memcpy(&header, with->predecoded().data(), sizeof(header));
    input_events_ += header.input_events;
    residual_events_ += header.num_events;
    const auto differs = [](std::span<const std::uint8_t> right, const std::uint8_t *response) {
      return !std::equal(right.begin(), right.end(), response + sizeof(qec::DecodeResponse));
    };
    statuses_[shot] = status;
    prediction_differences_ +=
        shots_.has_predictions() && !unanswered && differs(shots_.prediction_row(shot), answer.data());
    if (!shots_.has_observables())
      continue;
    const auto wrong = [&](const std::uint8_t *response) { return differs(shots_.observable_row(shot), response); };
    const bool wrong_with = unanswered || wrong(answer.data()), wrong_without = alone_unanswered || wrong(alone.data());
    errors_.with += wrong_with;
    errors_.without += wrong_without;
    errors_.only_with += wrong_with && !wrong_without;
    errors_.only_without += wrong_without && !wrong_with;
  }
  if (const char *const fault = with->engine().fault(); fault != nullptr)
    throw std::runtime_error(fmt::format("--predecoder {}: {}", engine_, fault));
}

} // namespace cudaq::realtime::tools

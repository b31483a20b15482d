// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/predecoded_decoder.h"

#include "lib/qec/decoders/residual_matcher.h"
#include "lib/qec/decoding/event_bits.h"
#include "lib/qec/decoding/predecoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

class predecoded_decoder final : public decoder {
public:
  predecoded_decoder(std::unique_ptr<predecoder> first, std::unique_ptr<decoder> second)
      : decoder(second->num_detectors(), second->num_observables()), first_(std::move(first)),
        second_(std::move(second)), name_(std::string(first_->name()) + "+" + second_.inner().name()),
        shot_(event_bytes()), output_((first_->layout().bytes() + 7) / 8), words_(first_->layout().frame_words()) {}

  const char *name() const noexcept override { return name_.c_str(); }

protected:
  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *) noexcept override {
    decode_status status = pack_events(events, num_detectors(), shot_);
    if (status == decode_status::ok)
      status = first_->run(shot_, output_);
    if (status == decode_status::ok)
      status = second_.match(output_.data(), words_);
    if (status == decode_status::ok && !observables.empty())
      std::memcpy(observables.data(), words_.data(), observables.size());
    return status;
  }

private:
  std::unique_ptr<predecoder> first_;
  residual_matcher second_;
  std::string name_;
  std::vector<std::uint8_t> shot_;
  std::vector<std::uint64_t> output_;
  std::vector<std::uint64_t> words_;
};

} // namespace

decoder_result make_predecoded_decoder(const std::string &predecoder, std::unique_ptr<decoder> second,
                                       std::string_view dem_text) {
  predecoder_result first = make_predecoder(predecoder, dem_text);
  if (!first)
    return {nullptr, first.error};
  return {std::make_unique<predecoded_decoder>(std::move(first.instance), std::move(second)), {}};
}

} // namespace cudaq::qec::realtime

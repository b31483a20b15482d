// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/predecoded_decoder.h"

#include "lib/qec/decoders/offline_decoder.h"
#include "lib/qec/decoding/event_bits.h"
#include "lib/qec/decoding/predecoder.h"

#include <algorithm>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

class predecoded_decoder final : public decoder {
public:
  predecoded_decoder(std::unique_ptr<predecoder> first, std::unique_ptr<decoder> second)
      : decoder(second->num_detectors(), second->num_observables()),
        name_(std::string(first->name()) + "+" + second->name()), shot_(event_bytes()),
        both_(std::move(first), std::move(second)) {}

  const char *name() const noexcept override { return name_.c_str(); }
  bool obeys_deadline() const noexcept override { return both_.inner().obeys_deadline(); }
  const char *fault() const noexcept override { return both_.inner().fault(); }
  const char *refuses_probabilities() const noexcept override {
    return "a predecoder does not take probabilities of a shot: it knows those of the model only; use the decoder "
           "alone";
  }

protected:
  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *details) noexcept override {
    decode_status status = pack_events(events, num_detectors(), shot_);
    if (status == decode_status::ok)
      status = decode_packed(details);
    if (both_.has_solution())
      std::ranges::copy(both_.observables(), observables.begin());
    return status;
  }

private:
  /// Only the deadline goes to the decoder, and only if it obeys.
  decode_status decode_packed(decode_details *details) noexcept {
    if (details == nullptr || !obeys_deadline())
      return both_.decode(shot_);
    decode_details inner{.control = details->control};
    const decode_status status = both_.decode(shot_, &inner);
    details->has_solution = inner.has_solution;
    return status;
  }

  std::string name_;
  std::vector<std::uint8_t> shot_;
  offline_decoder both_;
};

} // namespace

decoder_result make_predecoded_decoder(const std::string &predecoder, std::unique_ptr<decoder> second,
                                       const decoder_model &model) {
  auto first = make_predecoder(predecoder, model);
  if (first.failed())
    return {nullptr, first.text()};
  if (const expected<> result = check_predecoder_before(predecoder, second->name()); result.failed())
    return {nullptr, result.text()};
  return {std::make_unique<predecoded_decoder>(std::move(*first), std::move(second)), {}};
}

} // namespace cudaq::qec::realtime

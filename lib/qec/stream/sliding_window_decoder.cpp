// SPDX-License-Identifier: Apache-2.0
// A stream decoder as a decoder of whole shots: for everything that takes a decoder by name, and for comparisons of
// windows with whole shots.
#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoders/stream_settings.h"
#include "lib/qec/decoding/event_bits.h"
#include "lib/qec/stream/stream_factory.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

/// As many as the memory for the bits of a shot allows without a thought.
constexpr std::uint64_t kMaxDetectors = std::uint64_t{1} << 28;

class sliding_window_decoder final : public decoder {
public:
  sliding_window_decoder(std::unique_ptr<stream_decoder> stream, std::uint64_t detectors)
      : decoder(detectors, stream->num_observables()), stream_(std::move(stream)),
        before_tail_(detectors - stream_->tail_detectors()), bits_((before_tail_ + 7) / 8),
        tail_((stream_->tail_detectors() + 7) / 8) {}

  const char *name() const noexcept override { return "sliding-window"; }
  const char *fault() const noexcept override { return stream_->fault(); }
  const char *refuses_probabilities() const noexcept override {
    return "sliding-window does not take probabilities of a shot: its windows have those of the model, and of a "
           "file of heralds (its setting heralds=FILE); use the inner decoder on whole shots";
  }

protected:
  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *) noexcept override {
    std::ranges::fill(bits_, std::uint8_t{0});
    std::ranges::fill(tail_, std::uint8_t{0});
    const auto tail = std::ranges::lower_bound(events, before_tail_);
    flip_bits(std::span(events).first(static_cast<std::size_t>(tail - events.begin())), bits_);
    for (auto at = tail; at != events.end(); ++at)
      flip_bits(std::initializer_list<std::uint64_t>{*at - before_tail_}, tail_);
    stream_->reset();
    decode_status status = stream_->push(bits_, before_tail_);
    if (status == decode_status::ok)
      status = stream_->finish(tail_, stream_->tail_detectors());
    if (status == decode_status::ok)
      std::ranges::copy(stream_->observables(), observables.begin());
    return status;
  }

private:
  const std::unique_ptr<stream_decoder> stream_;
  const std::uint64_t before_tail_;
  std::vector<std::uint8_t> bits_, tail_;
};

} // namespace

decoder_result make_sliding_window_decoder(const decoder_model &given, decoder_settings &settings,
                                           std::optional<std::string_view> heralds) {
  const auto failed = [](const std::string &why) { return decoder_result{nullptr, "sliding-window decoder: " + why}; };
  try {
    const auto options = read_stream_settings(settings.rest());
    if (options.failed())
      return {nullptr, options.text()};
    auto source = read_stream(given, *options, heralds);
    if (source.failed())
      return failed(source.text());
    source->is_whole_form = true;
    const repeating_model &model = source->model;
    const std::uint64_t body = model.body_detectors(), rest = model.head_detectors() + model.tail_detectors();
    if (model.repetitions() > (kMaxDetectors - rest) / body)
      return failed("a shot of this model has more than " + std::to_string(kMaxDetectors) +
                    " detectors: decode it as a stream");
    stream_result made = make_stream_decoder(*source);
    if (!made) {
      decoder_result refused = failed(made.error);
      refused.machine_lacks = made.machine_lacks;
      return refused;
    }
    return {std::make_unique<sliding_window_decoder>(std::move(made.instance), rest + model.repetitions() * body), {}};
  } catch (const std::exception &failure) { // out of memory
    return failed(failure.what());
  }
}

} // namespace cudaq::qec::realtime
